// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"
	"slices"
	"strings"
	"time"

	"resourceset.example/renderer/pkg/api"
)

// A Problem is something that failed or was held back in a pass: the object that
// it concerns, what is wrong, and what to do about it. What is committed for that
// object stands.
type Problem struct {
	Pos    api.Position // where in the definitions, if it is known
	Object string       // "ResourceSet apps/podinfo"
	Set    string       // the input set, where only one is concerned
	Err    error
}

// Error is "file:line: object: input set: cause". What the cause says already is
// not said again.
func (p *Problem) Error() string {
	cause := p.Err.Error()
	var parts []string
	if p.Pos.File != "" && !strings.Contains(cause, p.Pos.File+":") {
		parts = append(parts, p.Pos.String())
	}
	for _, s := range []string{p.Object, p.Set} {
		if s != "" && !strings.Contains(cause, s) {
			parts = append(parts, s)
		}
	}
	return strings.Join(append(parts, cause), ": ")
}

// Unwrap is the cause.
func (p *Problem) Unwrap() error { return p.Err }

// Suggestion is the cause's hint, if it has one.
func (p *Problem) Suggestion() string {
	var s interface{ Suggestion() string }
	if errors.As(p.Err, &s) {
		return s.Suggestion()
	}
	return ""
}

// A Report is the outcome of one pass.
type Report struct {
	// Trigger is the cause of the pass, as in the trailer of its commits.
	Trigger string
	// Began and Ended tell how long it took.
	Began, Ended time.Time
	// Revision of the definitions that were rendered, "main@sha1:…"; empty when none could be read.
	Revision string
	// Head of the target branch after the pass.
	Head string
	// Commits that were pushed, oldest first.
	Commits []CommitReport
	// Requests are the pull requests that were opened, updated or closed.
	Requests []RequestReport
	// Problems are the failures; what they concern stays as it is committed.
	Problems []*Problem
	// Warnings do not keep anything from being rendered.
	Warnings []*Problem
	// Annotations are those of the definitions that go along with Flux events, by
	// object as in Problem.Object.
	Annotations map[string]map[string]string
	// Lost is how many races with other writers were lost before the push landed.
	Lost int
}

// A CommitReport says what one pushed commit did.
type CommitReport struct {
	Hash        string `json:"commit"`
	ResourceSet string `json:"resourceSet"` // namespace/name; empty for a commit of several
	Added       int    `json:"added"`
	Updated     int    `json:"updated"`
	Removed     int    `json:"removed"`
	Message     string `json:"-"` // what it says of this ResourceSet, without trailers
}

// A RequestReport says what was done to one pull request.
type RequestReport struct {
	Action string `json:"action"` // opened, updated or closed
	Number int    `json:"number"`
	URL    string `json:"url"` // for people
	Branch string `json:"branch"`
}

// Results of a pass.
const (
	ResultOK     = "ok"
	ResultHeld   = "held"   // nothing failed, but something is held back
	ResultFailed = "failed" // something is left as committed because it failed
)

// Result is the outcome in one word.
func (r *Report) Result() string {
	result := ResultOK
	for _, p := range r.Problems {
		var held *HeldError
		var taken *TakenBackError
		if !errors.As(p.Err, &held) && !errors.As(p.Err, &taken) {
			return ResultFailed
		}
		result = ResultHeld
	}
	return result
}

// OK reports that nothing failed and nothing was held back.
func (r *Report) OK() bool { return len(r.Problems) == 0 }

// Err joins the problems in a stable order, or is nil when there are none.
func (r *Report) Err() error {
	errs := make([]error, len(r.Problems))
	for i, p := range r.Problems {
		errs[i] = p
	}
	return errors.Join(errs...)
}

// sortProblems orders problems by object, set and text, so that the same faults
// always come out in the same order.
func sortProblems(list []*Problem) {
	slices.SortStableFunc(list, func(a, b *Problem) int {
		if c := strings.Compare(a.Object, b.Object); c != 0 {
			return c
		}
		if c := strings.Compare(a.Set, b.Set); c != 0 {
			return c
		}
		return strings.Compare(a.Err.Error(), b.Err.Error())
	})
}
