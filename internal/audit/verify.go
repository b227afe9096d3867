// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/expand"
	"resourceset.example/renderer/pkg/source"
)

// Verification says which commits are to be proved, and from what.
type Verification struct {
	Target string // path of the generated folder
	// Source is the history of the definitions: the Repository itself when they share one.
	Source     *Repository
	SourcePath string
	Exclude    string // the target path, when it lies in the definitions' own tree
	// AllowPlainSecrets is the configuration's secrets.allowPlainOutput.
	AllowPlainSecrets bool
	// Commit verifies one commit, Since those after one; without both, all.
	Commit, Since string
}

// A Status is the outcome for one commit.
type Status string

// What came of a commit.
const (
	// Proved: rendering again gives the same bytes, and nothing else was changed.
	Proved Status = "proved"
	// Altered: the generated folder is not what follows from the record.
	Altered Status = "altered"
	// NotReproducible: what would be needed to tell is not there.
	NotReproducible Status = "not-reproducible"
)

// A Proof is what is known of one commit. Its JSON form is documented in
// docs/verify.md and stays as it is.
type Proof struct {
	Commit       string    `json:"commit"`
	Time         time.Time `json:"time"`
	Status       Status    `json:"status"`
	Renderer     bool      `json:"renderer"` // the commit has renderer's trailers
	ResourceSets []string  `json:"resourceSets"`
	Findings     []Finding `json:"findings"`
	Subject      string    `json:"subject"`
	Author       Person    `json:"author"`
	Committer    Person    `json:"committer"`
	Signature    Signature `json:"signature"`
}

// A Finding is one thing that keeps a commit from being proved.
type Finding struct {
	Status Status `json:"status"` // Altered or NotReproducible
	File   string `json:"file,omitempty"`
	Reason string `json:"reason"`
	// Commit and By are who made the file what it is, where that was another commit.
	Commit string `json:"commit,omitempty"`
	By     string `json:"by,omitempty"`
}

// A Report is the outcome of a verification.
type Report struct {
	Commits         []Proof `json:"commits"` // newest first
	Proved          int     `json:"proved"`
	Altered         int     `json:"altered"`
	NotReproducible int     `json:"notReproducible"`
}

// OK reports that every commit is proved.
func (r *Report) OK() bool { return r.Altered+r.NotReproducible == 0 }

// Verify proves the commits that touch the target path. An error means that the
// history could not be read; what is wrong with single commits is in the report.
func (r *Repository) Verify(ctx context.Context, opts Verification) (*Report, error) {
	v := &verifier{
		Repository: r, Verification: opts, reader: &source.Reader{},
		definitions: map[plumbing.Hash]*definitions{}, programs: map[*api.ResourceSet]*expand.Program{},
		proofs: map[plumbing.Hash]*Proof{},
	}
	all, err := r.touches(opts.Target)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, &NotFoundError{
			What: fmt.Sprintf("%s: no commit touches %s", r.name, opts.Target),
			Hint: "check target.path and target.branch in the configuration, and that the clone has that branch",
		}
	}
	if err := v.order(); err != nil {
		return nil, err
	}
	if all, err = v.chosen(all); err != nil {
		return nil, err
	}
	report := &Report{Commits: make([]Proof, len(all))}
	for i := range slices.Backward(all) { // oldest first: later ones rest on them
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		proof, err := v.prove(ctx, &all[i])
		if err != nil {
			return nil, err
		}
		report.Commits[i] = *proof
		switch proof.Status {
		case Proved:
			report.Proved++
		case Altered:
			report.Altered++
		case NotReproducible:
			report.NotReproducible++
		}
	}
	return report, nil
}

// chosen are the commits that the options ask for.
func (v *verifier) chosen(all []touch) ([]touch, error) {
	switch {
	case v.Commit != "":
		hash, err := v.branchCommit(v.Commit)
		if err != nil {
			return nil, err
		}
		all = slices.DeleteFunc(all, func(t touch) bool { return t.hash != hash })
		if len(all) == 0 {
			return nil, &NotFoundError{
				What: fmt.Sprintf("commit %s does not touch %s", v.Commit, v.Target),
				Hint: "renderer history lists the commits that do",
			}
		}
	case v.Since != "":
		hash, err := v.branchCommit(v.Since)
		if err != nil {
			return nil, err
		}
		before, err := v.ancestors(hash)
		if err != nil {
			return nil, err
		}
		all = slices.DeleteFunc(all, func(t touch) bool { return before[t.hash] })
	}
	return all, nil
}

// branchCommit resolves a revision that must be in the branch's history. A commit
// that was there once and is not any more says that history was rewritten.
func (v *verifier) branchCommit(rev string) (plumbing.Hash, error) {
	hash, err := v.Resolve(rev)
	if err != nil {
		return hash, err
	}
	known, err := v.contains(hash)
	if err == nil && !known {
		err = &NotFoundError{
			What: fmt.Sprintf("%s: commit %s is not in the history of the branch", v.name, rev),
			Hint: "if it was there before, the history was rewritten: compare with another clone or the server's log of pushes",
		}
	}
	return hash, err
}

// ancestors are a commit and all before it.
func (r *Repository) ancestors(hash plumbing.Hash) (map[plumbing.Hash]bool, error) {
	found := map[plumbing.Hash]bool{hash: true}
	for queue := []plumbing.Hash{hash}; len(queue) > 0; {
		c, err := r.commit(queue[0])
		if err != nil {
			return nil, err
		}
		queue = queue[1:]
		for _, parent := range c.parents {
			if !found[parent] {
				found[parent] = true
				queue = append(queue, parent)
			}
		}
	}
	return found, nil
}

// A verifier remembers what several commits need.
type verifier struct {
	*Repository
	Verification
	reader      *source.Reader
	definitions map[plumbing.Hash]*definitions
	programs    map[*api.ResourceSet]*expand.Program
	proofs      map[plumbing.Hash]*Proof
	earlier     map[plumbing.Hash]line // what was rendered before each commit of ours
}

// prove judges one commit, once.
func (v *verifier) prove(ctx context.Context, t *touch) (*Proof, error) {
	if known := v.proofs[t.hash]; known != nil {
		return known, nil
	}
	said := claimOf(t.message)
	e := &examination{verifier: v, touch: t, said: said, proof: &Proof{
		Commit: t.hash.String(), Time: t.when.UTC(), Subject: t.subject(), Renderer: said != nil,
		ResourceSets: []string{}, Findings: []Finding{},
		Author: t.author, Committer: t.committer, Signature: signatureOf(t.signature),
	}}
	var err error
	switch {
	case t.cut:
		e.unknown("", "its parent is not in this clone, so what it changed is unknown (git fetch --unshallow)")
	case len(t.parents) > 1:
		err = e.merged()
	case said == nil:
		err = e.byHand()
	default:
		err = e.rendered(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("commit %s: %w", t.hash, err)
	}
	e.proof.Status = Proved
	for _, f := range e.proof.Findings {
		if f.Status == Altered || e.proof.Status == Proved {
			e.proof.Status = f.Status
		}
	}
	v.proofs[t.hash] = e.proof
	return e.proof, nil
}

// An examination is one commit under judgement.
type examination struct {
	*verifier
	*touch
	said  *claim
	proof *Proof

	parentTree plumbing.Hash     // of the whole repository; zero for a first commit
	expected   map[string]string // blob by path from the root of the repository; empty: no such file
	recorded   map[string]string // blob by path: what may be written again over somebody's edit
	free       map[string]*given // folders that cannot be rendered again, by path
	reported   map[string]bool   // files with a finding
}

func (e *examination) altered(file, reason string) {
	if file != "" && e.reported[file] {
		return
	}
	if e.reported == nil {
		e.reported = map[string]bool{}
	}
	e.reported[file] = true
	e.proof.Findings = append(e.proof.Findings, Finding{Status: Altered, File: file, Reason: reason})
}

func (e *examination) unknown(file, reason string) {
	e.proof.Findings = append(e.proof.Findings, Finding{Status: NotReproducible, File: file, Reason: reason})
}

// byHand reports every file that a commit without our trailers changed.
func (e *examination) byHand() error {
	how := "by hand"
	if undone := reverts(e.message); undone != "" {
		how = "by the revert of " + undone[:12]
	}
	verbs := map[string]string{"A": "added", "M": "changed", "D": "deleted"}
	err := e.differences(e.before, e.after, "", func(d difference) {
		e.altered(path.Join(e.Target, d.path), verbs[d.letter()]+" "+how)
	})
	if err != nil {
		return err
	}
	changed, _, err := e.folders(e.before, e.after)
	for _, d := range changed {
		e.proof.ResourceSets = append(e.proof.ResourceSets, d.dir)
	}
	return err
}

// merged: what a merge takes from one of its parents is judged there; only what is
// in none of them is its own, and what it drops.
func (e *examination) merged() error {
	for _, d := range e.drops {
		e.altered(path.Join(e.Target, d.path), fmt.Sprintf("the merge by %s takes it back: what commit %.12s of renderer made of it is dropped",
			e.by(), d.commit.hash))
		if d.dir != nil && !slices.Contains(e.proof.ResourceSets, d.path) {
			e.proof.ResourceSets = append(e.proof.ResourceSets, d.path)
		}
	}
	return e.mergedOwn()
}

func (e *examination) mergedOwn() error {
	dirs, files, err := e.folders(e.before, e.after)
	if err != nil {
		return err
	}
	for _, d := range dirs {
		found, err := e.inOthers(e.touch, d.dir, entry{mode: modeDirectory, hash: d.after})
		if err != nil {
			return err
		}
		if d.after.IsZero() {
			found, err = e.goneInOthers(d.dir)
			if err != nil {
				return err
			}
		}
		if !slices.Contains(e.proof.ResourceSets, d.dir) {
			e.proof.ResourceSets = append(e.proof.ResourceSets, d.dir)
		}
		if !found {
			e.altered(path.Join(e.Target, d.dir), "the merge holds something that neither of its parents has")
		}
	}
	files, err = e.unmerged(e.touch, files)
	if err != nil {
		return err
	}
	for _, f := range files {
		if f.path == kustomizationName {
			follows, err := e.rootFollows(f.after)
			if err != nil {
				return err
			}
			if follows {
				continue
			}
		}
		e.altered(path.Join(e.Target, f.path), "the merge holds something that neither of its parents has")
	}
	return nil
}

func (e *examination) goneInOthers(dir string) (bool, error) {
	for _, other := range e.others {
		have, err := e.at(other, dir)
		if err != nil || have.none() {
			return err == nil, err
		}
	}
	return false, nil
}
