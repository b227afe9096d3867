// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"resourceset.example/renderer/internal/config"
	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/expand"
	"resourceset.example/renderer/pkg/gitwriter"
)

// commits turns the plans into one commit for each ResourceSet that changed, or
// into one for all. The list of the ResourceSets changes in the same commit as
// they come and go, so that every commit builds.
func (r *Reconciler) commits(p *pass, root *rootList) []gitwriter.Commit {
	var commits []gitwriter.Commit
	var messages []message
	for _, pl := range p.plans {
		pl.commits, pl.changes, pl.message = 0, nil, ""
		if !pl.changed() {
			continue
		}
		pl.commits = 1
		c := gitwriter.Commit{Write: map[string][]byte{}}
		folder := path.Join(r.cfg.Target.Path, pl.dir)
		m := message{ResourceSet: pl.name, Revision: r.defs.revision, Trigger: p.trigger, SkipCI: r.cfg.Target.Commit.SkipCI, Approved: pl.approval, Version: r.version}
		if pl.restores != "" {
			m.Trigger, m.Undoes = TriggerDrift, pl.restores
		}
		if pl.removed && pl.out == nil {
			pl.lock, pl.lockHash = nil, plumbing.ZeroHash
			for _, file := range slices.Sorted(maps.Keys(pl.previous.lock.Files())) {
				c.Delete = append(c.Delete, path.Join(folder, file))
			}
			c.Delete = append(c.Delete, path.Join(folder, lockFile))
			root.remove(pl.dir)
			root.write(c.Write)
			m.Whole = "remove"
			if pl.swept {
				m.Whole, m.Other = "", "remove the empty folder"
			}
		} else if pl.out == nil || !pl.out.Changed() {
			pl.lock, pl.lockHash = pl.previous.lock, pl.previous.hash
			m.InputsDigest = pl.lock.InputsDigest()
			m.Other = "list what there is"
		} else {
			for file, data := range pl.out.Write {
				c.Write[path.Join(folder, file)] = data
			}
			for _, file := range pl.out.Delete {
				c.Delete = append(c.Delete, path.Join(folder, file))
			}
			pl.lock = pl.out.Lock
			pl.lockHash = plumbing.NewHash(expand.BlobHash(pl.out.Write[lockFile]))
			if pl.previous == nil {
				root.add(pl.dir)
				root.write(c.Write)
			}
			m.InputsDigest = pl.out.Lock.InputsDigest()
			r.describe(pl, &m)
			if _, held := pl.params.Keep[sharedFolder]; held {
				m.Held = []string{sharedFolder}
			}
			if pl.removed {
				m.Whole = "remove"
			}
		}
		if pl.lists.write != nil {
			c.Write[path.Join(folder, kustomizationFile)] = pl.lists.write
		}
		if pl.lists.inRoot {
			root.relist(pl.dir)
			root.write(c.Write)
		}
		pl.changes = m.Changes
		pl.message = r.redactor.Scrub(m.String())
		c.Message = pl.message
		c.Author = gitwriter.Signature{Name: r.cfg.Target.Commit.Author.Name, Email: r.cfg.Target.Commit.Author.Email}
		commits, messages = append(commits, c), append(messages, m)
	}
	if r.perPass() && len(commits) > 1 {
		return []gitwriter.Commit{merged(commits, messages, r.redactor.Scrub)}
	}
	return commits
}

func (r *Reconciler) perPass() bool { return r.cfg.Target.Commit.Per == config.PerPass }

// merged is one commit that does what several do.
func merged(commits []gitwriter.Commit, messages []message, scrub func(string) string) gitwriter.Commit {
	one := gitwriter.Commit{Write: map[string][]byte{}, Author: commits[0].Author}
	names := make([]string, len(messages))
	var body, trailers strings.Builder
	for i, c := range commits {
		maps.Copy(one.Write, c.Write)
		one.Delete = append(one.Delete, c.Delete...)
		names[i] = messages[i].ResourceSet
		body.WriteString(messages[i].subject() + "\n")
		m := messages[i]
		if i > 0 {
			m.Revision = ""
		}
		if i < len(messages)-1 {
			m.Trigger, m.Version, m.SkipCI = "", "", config.SkipCINone
		}
		m.trailers(&trailers)
	}
	subject := cut(fmt.Sprintf("update %d ResourceSets: %s", len(commits), strings.Join(names, ", ")), maxSubject)
	if messages[0].SkipCI == config.SkipCISubject {
		body.WriteString("\n[skip ci]\n")
	}
	one.Message = scrub(subject + "\n\n" + body.String() + "\n" + trailers.String())
	return one
}

// describe fills in what happened to the input sets.
func (r *Reconciler) describe(pl *plan, m *message) {
	types := map[string]string{}
	for _, obj := range r.defs.Providers {
		if namespace, _, _ := strings.Cut(pl.name, "/"); obj.Namespace == namespace {
			types[obj.Name] = obj.Spec.Type
		}
	}
	for _, c := range pl.out.Changes {
		change, ok := describeChange(c, types)
		if !ok {
			continue
		}
		undone := pl.undone[c.Set]
		if undone != "" && c.Kind == expand.Updated && len(c.Fields) == 0 {
			change.Reason = undone
		}
		if c.Set == sharedFolder && c.Provider == "" && c.Old == nil && c.New == nil {
			m.Other = "update shared objects"
			if c.Kind == expand.Removed {
				m.Other = "remove shared objects"
			} else if c.Kind == expand.Added {
				m.Other = "add shared objects"
			} else if undone != "" {
				m.Other += ": " + undone
			}
			continue
		}
		m.Changes = append(m.Changes, change)
	}
	if len(m.Changes) == 0 && m.Other == "" {
		m.Other = fluxNews(pl)
		if pl.previous == nil {
			m.Other = "add without inputs"
		}
	}
}

// sharedFolder is where the objects of no single input set are.
const sharedFolder = "shared"

// describeChange is false for a set that did not change.
func describeChange(c expand.Change, types map[string]string) (setChange, bool) {
	change := setChange{Name: c.Set, Provider: c.Provider, OldSHA: c.OldSHA(), NewSHA: c.NewSHA()}
	from := "inline inputs"
	if c.Provider != "" {
		from = strings.TrimSpace(types[c.Provider] + " " + c.Provider)
	}
	switch c.Kind {
	case expand.Added:
		change.Kind = added
		change.Detail = detailOf(c.New)
		change.Reason = "added by " + from
	case expand.Updated:
		change.Kind = updated
		switch {
		case len(c.Fields) == 0:
			change.Reason = "rendered anew from a changed definition"
		case change.OldSHA == change.NewSHA || change.NewSHA == "":
			change.Reason = "changed " + strings.Join(c.Fields, ", ")
		}
	case expand.Removed:
		change.Kind = removed
		change.OldSHA = ""
		change.Reason = "gone from " + from
		if _, defined := types[c.Provider]; c.Provider != "" && !defined {
			change.Reason = "provider " + c.Provider + " is gone"
		}
	default:
		return change, false
	}
	return change, true
}

// detailOf is a recorded field that tells a person which item it is.
func detailOf(in api.Input) string {
	for _, field := range []string{"branch", "tag", "version"} {
		if text, ok := in[field].(string); ok {
			return text
		}
	}
	return ""
}
