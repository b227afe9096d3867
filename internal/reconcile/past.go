// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"resourceset.example/renderer/internal/lineage"
	"resourceset.example/renderer/pkg/gitwriter"
)

// lookback is how many commits are searched at most, and the steps in which they are
// fetched. A person's change that lies deeper, with none of ours to that folder since,
// is not found on a cold start.
func lookback() []int { return []int{100, 1000} }

// maxLookback is the last of them.
func maxLookback() int { return slices.Max(lookback()) }

// An intervention is one commit of somebody else that touched a ResourceSet's folder.
type intervention struct {
	commit string
	who    string
	after  *gitwriter.Snapshot
	before *gitwriter.Snapshot // nil when the commit has no parent
}

// errNeedHistory ends a plan that cannot be finished without earlier commits.
var errNeedHistory = errors.New("earlier commits are needed")

// A past is the branch's history as far as it is looked at, shared by all searches
// that begin at one head.
type past struct {
	head  *gitwriter.Snapshot
	whole bool // all that is ever fetched is there: what lies deeper counts as nothing
	seen  map[plumbing.Hash]*gitwriter.Snapshot
	graph *lineage.Graph // nil until a merge asks for it
}

// pastOf is what is known below base.
func (r *Reconciler) pastOf(base *gitwriter.Snapshot) *past {
	if r.past == nil || r.past.head.Hash() != base.Hash() || r.past.whole != r.wholePast {
		r.past = &past{head: base, whole: r.wholePast, seen: map[plumbing.Hash]*gitwriter.Snapshot{base.Hash(): base}}
	}
	return r.past
}

// at is one commit; nil when it is not there and never will be.
func (p *past) at(commit plumbing.Hash) (*gitwriter.Snapshot, error) {
	if known, ok := p.seen[commit]; ok {
		return known, nil
	}
	found, err := p.head.At(commit)
	if errors.Is(err, gitwriter.ErrShallow) {
		if !p.whole {
			return nil, errNeedHistory
		}
		return nil, nil
	}
	if err == nil {
		p.seen[commit] = found
	}
	return found, err
}

// parents are those of a commit; known is false where history ends before.
func (p *past) parents(of *gitwriter.Snapshot) (list []*gitwriter.Snapshot, known bool, err error) {
	for _, hash := range of.Commit().ParentHashes {
		parent, err := p.at(hash)
		if err != nil || parent == nil {
			return nil, false, err
		}
		list = append(list, parent)
	}
	return list, true, nil
}

// lines is the graph of the history.
func (p *past) lines() (*lineage.Graph, error) {
	if p.graph != nil {
		return p.graph, nil
	}
	graph, err := lineage.New(p.head.Hash(), maxLookback(), func(commit plumbing.Hash) ([]plumbing.Hash, bool, error) {
		at, err := p.at(commit)
		if err != nil || at == nil {
			return nil, false, ignoreNeed(err)
		}
		_, known, err := p.parents(at)
		return at.Commit().ParentHashes, known, ignoreNeed(err)
	})
	p.graph = graph
	return graph, err
}

// ignoreNeed: whether what is missing matters is for the graph to say.
func ignoreNeed(err error) error {
	if errors.Is(err, errNeedHistory) {
		return nil
	}
	return err
}

// A search looks for what others did to one ResourceSet's folder.
type search struct {
	*past
	r        *Reconciler
	pl       *plan
	found    map[string][]intervention  // by set, newest first
	released map[string]bool            // by set
	ended    map[string][]plumbing.Hash // by set: commits below which nothing counts any more
	parted   bool                       // some set was followed into several parents
	visited  map[visit]bool
	pending  []visits
}

// A visit is a commit looked at for one set.
type visit struct {
	commit plumbing.Hash
	set    string
}

type visits struct {
	at   *gitwriter.Snapshot
	sets map[string]bool
}

// interventions are, for each of the sets, the commits that touched its folder and
// are not ours, newest first, up to the newest of ours to that very folder, or one that
// releases it; the released ones are named apart.
//
// A merge is followed into every parent whose folder is that of the merge: there is
// where it comes from. What it takes from no parent is an intervention, and so is
// what it drops: a state that another parent has, and that the line which it follows
// never had since both parted.
func (r *Reconciler) interventions(pl *plan, base *gitwriter.Snapshot, sets []string) (found map[string][]intervention, released map[string]bool, err error) {
	s := &search{
		past: r.pastOf(base), r: r, pl: pl,
		found: map[string][]intervention{}, released: map[string]bool{},
		ended: map[string][]plumbing.Hash{}, visited: map[visit]bool{},
	}
	if base.Commit() == nil {
		return s.found, s.released, nil
	}
	open := map[string]bool{}
	for _, set := range sets {
		open[set] = true
	}
	s.follow(base, open)
	for n := 0; len(s.pending) > 0 && n < maxLookback(); n++ {
		next := s.pending[len(s.pending)-1]
		s.pending = s.pending[:len(s.pending)-1]
		if err := s.look(next.at, next.sets); err != nil {
			return nil, nil, err
		}
	}
	if err := s.forgetEnded(); err != nil {
		return nil, nil, err
	}
	return s.found, s.released, nil
}

// follow adds a commit to those that are looked at, for sets that it was not looked at
// for yet.
func (s *search) follow(at *gitwriter.Snapshot, sets map[string]bool) {
	fresh := map[string]bool{}
	for set := range sets {
		if key := (visit{at.Hash(), set}); !s.visited[key] {
			s.visited[key], fresh[set] = true, true
		}
	}
	if len(fresh) > 0 {
		s.pending = append(s.pending, visits{at, fresh})
	}
}

// end notes that nothing counts for a set below a commit.
func (s *search) end(open map[string]bool, set string, at *gitwriter.Snapshot) {
	if open[set] {
		delete(open, set)
		s.ended[set] = append(s.ended[set], at.Hash())
	}
}

// look is about one commit.
func (s *search) look(at *gitwriter.Snapshot, open map[string]bool) error {
	if s.r.accepted.isHead(at.Hash()) && s.r.knownAt(s.pl, at) {
		maps.DeleteFunc(open, func(set string, _ bool) bool { return set != rootFile }) // that is in no folder
		if len(open) == 0 {
			return nil
		}
	}
	ours, ofAny, err := s.releases(at, open)
	if err != nil {
		return err
	}
	parents, known, err := s.parents(at)
	if err != nil || !known {
		return err
	}
	if len(parents) == 0 {
		parents = []*gitwriter.Snapshot{nil}
	}
	next := make([]map[string]bool, len(parents))
	for set := range open {
		from, err := s.origin(at, parents, set)
		if err != nil {
			return err
		}
		if (ours || ofAny && set == rootFile) && len(from) == 0 {
			s.end(open, set, at)
			continue
		}
		if err := s.judge(at, parents, from, set); err != nil {
			return err
		}
		s.parted = s.parted || len(from) > 1
		if len(from) == 0 {
			from = parents
		}
		for i, parent := range parents {
			if parent != nil && slices.Contains(from, parent) {
				if next[i] == nil {
					next[i] = map[string]bool{}
				}
				next[i][set] = true
			}
		}
	}
	for i, sets := range slices.Backward(next) { // the first parent is looked at first
		s.follow(parents[i], sets)
	}
	return nil
}

// releases reports whether a commit is ours, to this ResourceSet or to any, and ends
// the search for what it releases.
func (s *search) releases(at *gitwriter.Snapshot, open map[string]bool) (ours, ofAny bool, err error) {
	trailers := trailersOf(at.Commit().Message)
	if len(trailers["ResourceSet"]) == 0 || len(trailers["Trigger"]) == 0 {
		return false, false, nil
	}
	if !slices.Contains(trailers["ResourceSet"], s.pl.name) {
		return false, true, nil
	}
	for _, name := range trailers["Released"] {
		for set := range open {
			if set != name && name != releasedAll && (set != rootFile || name != kustomizationFile) {
				continue
			}
			later, err := s.changedSince(set)
			if err != nil {
				return false, false, err
			}
			if later {
				continue // what came later is not released, nor what it builds on
			}
			s.released[set] = true
			s.end(open, set, at)
		}
	}
	return true, true, nil
}

// changedSince reports whether somebody has changed a set again in what was looked at
// so far: other files beside the manifests do not count, any change of a list does.
func (s *search) changedSince(set string) (bool, error) {
	for _, iv := range s.found[set] {
		if set == kustomizationFile || set == rootFile {
			return true, nil
		}
		before, err := s.r.manifests(iv.before, s.pl.dir, set)
		if err != nil {
			return false, err
		}
		after, err := s.r.manifests(iv.after, s.pl.dir, set)
		if err != nil || !maps.Equal(before, after) {
			return true, err
		}
	}
	return false, nil
}

// origin are the parents that have a set's folder as the commit has it.
func (s *search) origin(at *gitwriter.Snapshot, parents []*gitwriter.Snapshot, set string) ([]*gitwriter.Snapshot, error) {
	var from []*gitwriter.Snapshot
	for _, parent := range parents {
		same, err := s.r.sameFolder(path.Join(s.pl.dir, set), at, parent)
		if err != nil {
			return nil, err
		}
		if same {
			from = append(from, parent)
		}
	}
	return from, nil
}

// judge adds what a commit does to a set's folder, for every parent that has it
// differently.
func (s *search) judge(at *gitwriter.Snapshot, parents, from []*gitwriter.Snapshot, set string) error {
	against := from
	if len(from) == 0 {
		against = parents
	}
	for _, parent := range parents {
		if slices.Contains(from, parent) {
			continue
		}
		newer, err := s.newer(parent, against, set)
		if err != nil {
			return err
		}
		if newer {
			author := at.Commit().Author
			s.found[set] = append(s.found[set], intervention{
				commit: at.Hash().String(), after: at, before: parent,
				who: oneLine(author.Name + " <" + author.Email + ">"),
			})
		}
	}
	return nil
}

// newer reports whether a set's folder at one parent is a state that none of the
// others' lines has had since they parted.
func (s *search) newer(parent *gitwriter.Snapshot, others []*gitwriter.Snapshot, set string) (bool, error) {
	for _, other := range others {
		if other == parent {
			continue
		}
		graph, err := s.lines()
		if err != nil {
			return false, err
		}
		side, complete := graph.Side(other.Hash(), parent.Hash())
		if !complete && !s.whole {
			return false, errNeedHistory
		}
		for _, commit := range slices.Backward(side) {
			was, err := s.at(commit)
			if err != nil || was == nil {
				return false, err
			}
			had, err := s.r.sameFolder(path.Join(s.pl.dir, set), was, parent)
			if err != nil || had {
				return false, err
			}
		}
	}
	return true, nil
}

// forgetEnded drops what was found on one line although another line, which was merged
// with it, has ended the matter later.
func (s *search) forgetEnded() error {
	if !s.parted || len(s.ended) == 0 || len(s.found) == 0 {
		return nil
	}
	graph, err := s.lines()
	if err != nil {
		return err
	}
	for set, list := range s.found {
		s.found[set] = slices.DeleteFunc(list, func(iv intervention) bool {
			return slices.ContainsFunc(s.ended[set], func(end plumbing.Hash) bool {
				return graph.Precedes(plumbing.NewHash(iv.commit), end)
			})
		})
		if len(s.found[set]) == 0 {
			delete(s.found, set)
		}
	}
	return nil
}

// sameFolder reports whether a folder is the same at both commits.
func (r *Reconciler) sameFolder(dir string, a, b *gitwriter.Snapshot) (bool, error) {
	one, err := r.folderHash(a, dir)
	if err != nil {
		return false, err
	}
	other, err := r.folderHash(b, dir)
	return one == other, err
}

// knownAt reports whether a plan's folder was at that commit as it is known to be
// nobody else's.
func (r *Reconciler) knownAt(pl *plan, at *gitwriter.Snapshot) bool {
	tree, err := r.folderHash(at, pl.dir)
	return err == nil && (r.accepted.is(pl.dir, tree) || tree.IsZero() && !r.accepted.has(pl.dir))
}

// folderHash is the tree of a folder below the target path; zero when there is none.
func (r *Reconciler) folderHash(at *gitwriter.Snapshot, dir string) (plumbing.Hash, error) {
	if at == nil {
		return plumbing.ZeroHash, nil
	}
	entry, err := at.Entry(path.Join(r.cfg.Target.Path, dir))
	if errors.Is(err, fs.ErrNotExist) {
		return plumbing.ZeroHash, nil
	}
	return entry.Hash, err
}

// trailersOf are the trailers of a commit message: its last paragraph, if every line
// of it has the form of one.
func trailersOf(text string) map[string][]string {
	paragraphs := strings.Split(strings.TrimRight(text, "\n"), "\n\n")
	if len(paragraphs) < 2 {
		return nil
	}
	trailers := map[string][]string{}
	for line := range strings.SplitSeq(paragraphs[len(paragraphs)-1], "\n") {
		key, value, ok := strings.Cut(line, ": ")
		if !ok || key == "" || strings.ContainsAny(key, " \t") {
			return nil
		}
		trailers[key] = append(trailers[key], value)
	}
	return trailers
}
