// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"resourceset.example/renderer/internal/secrets"
	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/expand"
	"resourceset.example/renderer/pkg/source/provider"
)

// A Status is what the loop knows, for people and programs to look at: how the last
// pass went, and where every ResourceSet and provider stands. It takes the place of
// the status that an operator writes into cluster objects; no commit is made of it.
//
// It is a value that is built at the end of each pass and never changed, so that
// looking at it neither waits for a pass nor holds one up. No credential is in it.
// The JSON names are an interface (docs/status.md): they stay, new ones may be added.
type Status struct {
	Started      time.Time           `json:"started"`
	Ready        bool                `json:"ready"`
	RunningSince time.Time           `json:"runningSince,omitzero"` // of the pass that runs now
	LastSuccess  time.Time           `json:"lastSuccess,omitzero"`  // end of the last pass without any problem
	Pass         *PassStatus         `json:"pass"`                  // the last one; null before the first has ended
	Recent       []RecentCommit      `json:"recentCommits"`         // since the start, newest first
	ResourceSets []ResourceSetStatus `json:"resourceSets"`          // by name
	Providers    []ProviderStatus    `json:"providers"`             // by name
}

// A PassStatus is how one pass went.
type PassStatus struct {
	Result   string          `json:"result"` // ResultOK, ResultHeld or ResultFailed
	Trigger  string          `json:"trigger"`
	Began    time.Time       `json:"began"`
	Ended    time.Time       `json:"ended"`
	Revision string          `json:"revision,omitempty"`
	Head     string          `json:"head,omitempty"`
	Commits  []CommitReport  `json:"commits"`
	Requests []RequestReport `json:"requests"`
	Lost     int             `json:"lostRaces"`
	Problems []ProblemStatus `json:"problems"`
	Warnings []ProblemStatus `json:"warnings"`
}

// A RecentCommit is one that this process has pushed.
type RecentCommit struct {
	Time    time.Time `json:"time"`
	Trigger string    `json:"trigger"`
	CommitReport
}

// A ProblemStatus is a Problem in words.
type ProblemStatus struct {
	Object   string `json:"object"`
	Set      string `json:"set,omitempty"`
	Position string `json:"position,omitempty"` // file:line
	Message  string `json:"message"`
	Hint     string `json:"hint,omitempty"`
}

// States of a ResourceSet.
const (
	StateOK       = "ok"
	StateHeld     = "held"     // a removal waits for agreement, or an input set is as somebody left it
	StateFailed   = "failed"   // something of it is left as committed
	StateDisabled = "disabled" // its annotation says so
)

// A ResourceSetStatus is where one ResourceSet stands.
type ResourceSetStatus struct {
	Name      string            `json:"name"` // namespace/name
	State     string            `json:"state"`
	Inputs    int               `json:"inputs"` // committed input sets
	Defined   bool              `json:"defined"`
	Held      *HeldStatus       `json:"heldRemoval,omitempty"`
	TakenBack []TakenBackStatus `json:"takenBack,omitempty"`
	Error     *ProblemStatus    `json:"error,omitempty"` // the first other problem
	Errors    int               `json:"errors"`          // how many there are
}

// A HeldStatus is a removal that the prune guard holds back.
type HeldStatus struct {
	Digest  string    `json:"digest"`
	Whole   bool      `json:"whole"` // the ResourceSet itself would go
	Sets    []string  `json:"sets"`
	Reason  string    `json:"reason"`
	Since   time.Time `json:"since"`
	Fetches int       `json:"fetches"` // that agree so far
	// What releases it without a person; 0 fetches: nothing does.
	ConfirmFetches int       `json:"confirmFetches"`
	ConfirmAt      time.Time `json:"confirmAt,omitzero"`
}

// A TakenBackStatus is an input set that is held as somebody left it.
type TakenBackStatus struct {
	Set    string `json:"set"`
	Commit string `json:"commit"`
	Who    string `json:"who"`
}

// A ProviderStatus is where one provider stands.
type ProviderStatus struct {
	Name       string    `json:"name"` // namespace/name
	Type       string    `json:"type"`
	Inputs     int       `json:"inputs"`
	Answered   time.Time `json:"answered,omitzero"` // start of the fetch that gave them; missing before the first
	Next       time.Time `json:"next,omitzero"`     // when it is asked again, if nothing asks before
	Fetching   bool      `json:"fetching"`          // an answer is awaited
	Disabled   bool      `json:"disabled,omitempty"`
	ErrorClass string    `json:"errorClass,omitempty"` // a provider.Reason
	Error      string    `json:"error,omitempty"`
	Hint       string    `json:"hint,omitempty"`
	Failures   int       `json:"failures"`      // in a row
	Failed     uint64    `json:"failuresTotal"` // since the start, or the provider's last change
}

// maxRecent is how many commits the status remembers.
const maxRecent = 20

// Status is what the loop knows. It may be called at any time.
func (r *Reconciler) Status() *Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.status
	s.Ready, s.RunningSince = r.ready, r.began
	return &s
}

// statusOf builds the status that Status gives until the next pass has ended. It
// belongs to the loop.
func (r *Reconciler) statusOf(p *pass) Status {
	s := Status{
		Started: r.started, Pass: r.describePass(p.report), Recent: r.recentCommits(p.report),
		ResourceSets: []ResourceSetStatus{}, Providers: []ProviderStatus{},
	}
	r.mu.Lock() // r.status is the loop's to write, so it stays as it is read
	s.LastSuccess = r.status.LastSuccess
	r.mu.Unlock()
	if p.report.Result() == ResultOK {
		s.LastSuccess = p.report.Ended
	}
	if r.defs != nil {
		s.ResourceSets = r.describeSets(p.report)
	}
	for _, key := range slices.Sorted(maps.Keys(r.providers)) {
		s.Providers = append(s.Providers, r.describeProvider(key, r.providers[key]))
	}
	return s
}

func (r *Reconciler) describePass(report *Report) *PassStatus {
	return &PassStatus{
		Result: report.Result(), Trigger: report.Trigger, Began: report.Began, Ended: report.Ended,
		Revision: report.Revision, Head: report.Head, Lost: report.Lost,
		Commits: append([]CommitReport{}, report.Commits...), Requests: append([]RequestReport{}, report.Requests...),
		Problems: r.describeProblems(report.Problems), Warnings: r.describeProblems(report.Warnings),
	}
}

func (r *Reconciler) describeProblems(list []*Problem) []ProblemStatus {
	out := make([]ProblemStatus, len(list))
	for i, p := range list {
		out[i] = r.describeProblem(p)
	}
	return out
}

func (r *Reconciler) describeProblem(p *Problem) ProblemStatus {
	return ProblemStatus{
		Object: p.Object, Set: r.redactor.Scrub(p.Set), Position: p.Pos.String(),
		Message: r.redactor.Scrub(p.Err.Error()), Hint: r.redactor.Scrub(p.Suggestion()),
	}
}

// recentCommits adds the commits of a pass to those before it.
func (r *Reconciler) recentCommits(report *Report) []RecentCommit {
	r.mu.Lock()
	before := r.status.Recent
	r.mu.Unlock()
	recent := make([]RecentCommit, 0, min(len(report.Commits)+len(before), maxRecent))
	for _, c := range slices.Backward(report.Commits) {
		recent = append(recent, RecentCommit{Time: report.Ended, Trigger: report.Trigger, CommitReport: c})
	}
	recent = append(recent, before...)
	return recent[:min(len(recent), maxRecent)]
}

// describeSets lists the ResourceSets that are defined, and those that are not any
// more but still committed.
func (r *Reconciler) describeSets(report *Report) []ResourceSetStatus {
	sets := make([]ResourceSetStatus, 0, len(r.defs.ResourceSets))
	index := map[string]int{} // by the object's name in messages
	defined := map[string]bool{}
	add := func(object string, s ResourceSetStatus, dir string) {
		if c := r.committed[dir]; c != nil && c.lock != nil {
			s.Inputs = len(c.lock.Sets)
		}
		index[object] = len(sets)
		sets = append(sets, s)
	}
	for _, rs := range r.defs.ResourceSets {
		s := ResourceSetStatus{Name: rs.NamespacedName(), State: StateOK, Defined: true}
		if disabled(rs.Annotations) {
			s.State = StateDisabled
		}
		dir := expand.Dir(rs)
		defined[dir] = true
		add(rs.String(), s, dir)
	}
	for dir, c := range r.committed {
		if !defined[dir] && c.lock != nil {
			add(api.KindResourceSet+" "+c.lock.ResourceSet, ResourceSetStatus{Name: c.lock.ResourceSet, State: StateOK}, dir)
		}
	}
	for _, p := range report.Problems {
		if i, ok := index[p.Object]; ok {
			r.addProblem(&sets[i], p)
		}
	}
	for _, plan := range r.held.Plans {
		if i, ok := index[api.KindResourceSet+" "+plan.ResourceSet]; ok {
			sets[i].Held = r.describeHeld(plan)
			sets[i].worsen(StateHeld)
		}
	}
	slices.SortFunc(sets, func(a, b ResourceSetStatus) int { return strings.Compare(a.Name, b.Name) })
	return sets
}

func (r *Reconciler) addProblem(s *ResourceSetStatus, p *Problem) {
	var taken *TakenBackError
	var held *HeldError
	switch {
	case errors.As(p.Err, &taken):
		s.TakenBack = append(s.TakenBack, TakenBackStatus{Set: taken.Set, Commit: taken.Commit, Who: r.redactor.Scrub(taken.Who)})
		s.worsen(StateHeld)
	case errors.As(p.Err, &held): // in r.held too, with what earlier passes held
	default:
		if s.Error == nil {
			text := r.describeProblem(p)
			s.Error = &text
		}
		s.Errors++
		s.worsen(StateFailed)
	}
}

// worsen makes a state what it is called, if that is worse.
func (s *ResourceSetStatus) worsen(state string) {
	if s.State != StateFailed {
		s.State = state
	}
}

func (r *Reconciler) describeHeld(plan HeldPlan) *HeldStatus {
	confirm := r.cfg.Prune.Confirm
	s := &HeldStatus{
		Digest: plan.Digest, Whole: plan.Whole, Sets: append([]string{}, plan.Sets...), Reason: plan.Reason,
		Since: plan.Since, Fetches: plan.Fetches, ConfirmFetches: confirm.Fetches,
	}
	if confirm.Fetches > 0 {
		s.ConfirmAt = plan.Since.Add(confirm.After)
	}
	return s
}

func (r *Reconciler) describeProvider(key string, p *providerState) ProviderStatus {
	s := ProviderStatus{
		Name: key, Type: p.object.Spec.Type, Inputs: len(p.exported),
		Fetching: p.fetching, Disabled: disabled(p.object.Annotations), Failures: p.failures, Failed: p.failed,
	}
	if p.answered {
		s.Answered = p.listedAt
	}
	if !p.fetching && !s.Disabled {
		s.Next = r.decide(p).Next
	}
	if p.err != nil {
		s.ErrorClass = string(classOfProvider(p.err))
		described := r.describeProblem(&Problem{Err: p.err})
		s.Error, s.Hint = described.Message, described.Hint
	}
	return s
}

// classOfProvider is provider.ReasonOf for what goes wrong before a provider is asked,
// too.
func classOfProvider(err error) provider.Reason {
	var unsupported *unsupportedTypeError
	if errors.As(err, &unsupported) || errors.Is(err, secrets.ErrNotFound) {
		return provider.Misconfigured
	}
	return provider.ReasonOf(err)
}
