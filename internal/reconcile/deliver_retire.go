// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"resourceset.example/renderer/internal/config"
	"resourceset.example/renderer/internal/forge"
)

// A retirement is why a branch of ours is needed no more.
type retirement struct {
	reason string // for the request's readers
	wanted string // what would be proposed, if the target branch did not have it
}

// idle reports that a plan has nothing to propose, for good reasons: it could be
// made, completely, from what all providers say now. A plan that failed, is held back
// or rests on old answers says nothing about an open request.
func (pl *plan) idle() bool {
	return pl.out != nil && !pl.changed() && len(pl.problems) == 0 && pl.current && !pl.recorded
}

// retirable says why a branch without a proposal can go, or that it must stay.
func (r *Reconciler) retirable(p *pass, name string) (retirement, bool) {
	perAll := r.cfg.Target.PullRequest.Per == config.PerAll
	if (name == allBranch(r.delivery.scope)) != perAll {
		return retirement{reason: "Pull requests are cut differently now (`target.pullRequest.per`)."}, true
	}
	if perAll {
		for _, pl := range p.plans {
			if !pl.idle() {
				return retirement{}, false
			}
		}
		return retirement{reason: "There is nothing left to propose: the inputs and definitions are again what the target branch was made from."}, r.defs.complete()
	}
	for _, pl := range p.plans {
		if branchName(pl.dir, r.delivery.scope) == name {
			return retirement{
				reason: fmt.Sprintf("There is nothing left to propose for %s: its inputs and definition are again what the target branch was made from.", code(pl.name)),
				wanted: wantedOf(pl),
			}, pl.idle()
		}
	}
	return retirement{reason: "The ResourceSet is not defined any more, and the target branch has nothing of it."}, r.defs.complete()
}

// retire closes the request of a branch that is needed no more, if it is open, and
// deletes the branch. What people pushed to it and nobody merged is left alone.
func (r *Reconciler) retire(ctx context.Context, p *pass, name string, why retirement, at plumbing.Hash) (plumbing.Hash, error) {
	d := r.delivery
	branch := d.own.Branch(name)
	client, err := r.forgeClient(ctx)
	if err != nil {
		return at, err
	}
	req, err := client.Find(ctx, branch)
	if err != nil {
		return at, err
	}
	from, err := r.originOf(ctx, client, at)
	if err != nil {
		return at, err
	}
	merged := req != nil && req.State == forge.Merged && strings.EqualFold(req.Head, at.String())
	if from.others && !merged {
		d.branches[name].notice = "there is nothing left to propose, but somebody else's commits are on the branch: it is left to them"
		return at, nil
	}
	if req != nil && req.State == forge.Open {
		reason := why.reason
		if why.wanted != "" && from.wanted == why.wanted {
			reason = "The target branch has all of it already."
		}
		if err := client.Close(ctx, req, withdraw(req.Body), reason+" If something changes, there will be a new pull request."); err != nil {
			return at, err
		}
		r.reportRequest(p, branch, "closed", req)
	}
	if err := d.own.Delete(ctx, name, at); err != nil {
		return at, err
	}
	delete(d.origins, at.String())
	r.log.Info("deleted a branch", "branch", branch)
	return plumbing.ZeroHash, nil
}

// useApprovals takes an approval of a removal back once the removal has been merged:
// until then the pull request rests on it.
func (r *Reconciler) useApprovals(p *pass) error {
	d := r.delivery
	for _, pl := range p.plans {
		digest, waits := d.released[pl.name]
		switch {
		case pl.released != "":
			d.released[pl.name] = pl.released
		case waits && pl.idle():
			delete(d.released, pl.name)
			if err := r.lapse(digest, &r.held); err != nil {
				return err
			}
			if err := r.heldFile.write(r.held); err != nil {
				return err
			}
		}
	}
	return nil
}

// answerNotice tells people what became of their answer.
func answerNotice(req *forge.Request) string {
	if req.State == forge.Merged {
		return fmt.Sprintf("#%d proposed this and was merged, but the target branch is different: somebody has changed it since. It is not proposed again until something else is wanted (%s)", req.Number, req.URL)
	}
	return fmt.Sprintf("#%d proposed this and was closed without merging: it is not proposed again until something else is wanted (%s)", req.Number, req.URL)
}

// A noticeError is something that people should know, and that is no failure.
type noticeError string

func (e noticeError) Error() string { return string(e) }

// A foreignBranchError is a branch of ours with commits of others, which would be lost.
type foreignBranchError struct {
	Branch  string
	Request *forge.Request // may be nil
}

func (e *foreignBranchError) Error() string {
	return fmt.Sprintf("%s has commits that are not renderer's, and would lose them if it were brought up to date", e.Branch)
}

// Suggestion is what to do about it.
func (e *foreignBranchError) Suggestion() string {
	return "merge the pull request as it is, or delete the branch to have it made anew"
}

// A noBaseError is a target branch that does not exist: nothing can be proposed to it.
type noBaseError struct{ Branch string }

func (e *noBaseError) Error() string {
	return fmt.Sprintf("there is no branch %q that a pull request could go to", e.Branch)
}

// Suggestion is what to do about it.
func (e *noBaseError) Suggestion() string {
	return "push a first commit to it, or correct target.branch in the configuration"
}
