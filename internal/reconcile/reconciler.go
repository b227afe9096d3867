// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"resourceset.example/renderer/internal/config"
	"resourceset.example/renderer/internal/cron"
	"resourceset.example/renderer/internal/secrets"
	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/expand"
	"resourceset.example/renderer/pkg/gitwriter"
	"resourceset.example/renderer/pkg/gitwriter/signing"
	"resourceset.example/renderer/pkg/source"
	"resourceset.example/renderer/pkg/source/provider"
)

// A secretStore gives the data of one Kubernetes Secret.
type secretStore interface {
	Get(ctx context.Context, namespace, name string) (map[string][]byte, error)
}

// Options are what a Reconciler is made from. Config, Secrets and Redactor are
// required.
type Options struct {
	Config   *config.Config
	Secrets  secretStore
	Redactor *secrets.Redactor // learns every credential that is used
	Log      *slog.Logger      // discards if nil
	Now      func() time.Time  // time.Now if nil
	Version  string            // for the User-Agent header, and the trailer of commits
	Mirrors  string            // folder of the mirrors; the configuration's state folder if empty
	// AfterPass, if set, is called by Run at the end of every pass, by its goroutine.
	AfterPass func(context.Context, *Report)
	// Definitions, if set, is where definitions come from instead of the source
	// branch. For Preview only.
	Definitions func(context.Context) (*api.Definitions, error)
}

// A Reconciler holds what the loop remembers. Its passes must not run side by
// side; Refresh, Ready, Healthy and Status may be called at any time.
type Reconciler struct {
	cfg          *config.Config
	pace         cron.Pace // inputs.schedule
	secrets      secretStore
	redactor     *secrets.Redactor
	log          *slog.Logger
	now          func() time.Time
	userAgent    string
	version      string // empty for a build without a release
	mirrors      string
	limits       *provider.Limits
	shared       *provider.Shared
	constructors map[string]constructor

	source, target *gitwriter.Mirror // one and the same when they share a branch
	reader         *source.Reader
	defs           *definitions // last that could be read; nil until then
	sourceDue      time.Time
	sourceFailures int
	sourceErr      error
	sourceHead     *gitwriter.Snapshot // as last fetched
	sourceRead     time.Time           // when that was
	sourceSeen     uint64              // Reconciler.seen before defs were fetched

	signer  *signing.Signer // nil: commits are not signed
	trusted *signing.Keys   // nil: source commits are not verified

	heldFile HeldFile
	held     heldDocument // what it holds

	providers map[string]*providerState // by namespace/name
	answers   chan answer
	slots     chan struct{} // inputs.concurrency of them
	fetches   sync.WaitGroup
	patience  time.Duration        // how long a pass waits for providers; zero is until all have answered
	sets      map[string]*setState // by ResourceSet folder
	claims    *claimIndex
	encode    func(expand.Object) ([]byte, error) // nil but for tests of two versions

	// committed is what Git held when last looked at, by ResourceSet folder: at the
	// commit scanned. The number seen grows whenever somebody else changed some of it.
	committed map[string]*committed
	scanned   plumbing.Hash
	seen      uint64
	written   map[string]written  // by ResourceSet folder
	base      *gitwriter.Snapshot // what the plans are made on
	handovers map[string]handoverStart
	accepted  *acceptedFolders // those that are known to be as we left them
	past      *past            // the target's history as last looked at
	wholePast bool             // of it, all that is ever fetched is there

	trigger      string // of the running pass
	cause        string // foremost trigger of the answers taken in since the last pass
	pushErr      error
	pushDue      time.Time // no push before this: the server refused the last one
	pushFailures int
	logged       map[string]string // problems that have been logged, by object and set

	definitions func(context.Context) (*api.Definitions, error)

	delivery *delivery // nil unless target.mode is pull-request

	started   time.Time
	inbox     *inbox
	afterPass func(context.Context, *Report)

	mu     sync.Mutex // guards what follows
	last   *Report
	passed time.Time // when the last pass ended
	began  time.Time // when the running pass began; zero between passes
	ready  bool
	status Status // written by the loop alone
}

// releaseOf is a version, if it is one of a release.
func releaseOf(version string) string {
	if strings.HasSuffix(version, "-dev") {
		return ""
	}
	return version
}

// definitions are the objects read at one commit.
type definitions struct {
	*api.Definitions
	hash       plumbing.Hash
	revision   string                    // main@sha1:…
	configMaps map[string]*api.ConfigMap // by "namespace/name"
}

// complete reports that every definition could be read. While it is false, what
// is missing may only be unreadable, and nothing is removed for being missing.
func (d *definitions) complete() bool { return len(d.Faults) == 0 }

// New opens the mirrors of both repositories. It does not use the network.
func New(ctx context.Context, opts Options) (*Reconciler, error) {
	r := &Reconciler{
		cfg: opts.Config, secrets: opts.Secrets, redactor: opts.Redactor,
		log: opts.Log, now: opts.Now, userAgent: "renderer/" + opts.Version, version: releaseOf(opts.Version),
		limits: &provider.Limits{}, shared: &provider.Shared{}, constructors: constructors(),
		reader:    &source.Reader{},
		providers: map[string]*providerState{}, answers: make(chan answer),
		slots:     make(chan struct{}, max(opts.Config.Inputs.Concurrency, 1)),
		sets:      map[string]*setState{},
		committed: map[string]*committed{}, claims: newClaimIndex(),
		logged: map[string]string{},
		inbox:  newInbox(), afterPass: opts.AfterPass, definitions: opts.Definitions,
	}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	if r.now == nil {
		r.now = time.Now
	}
	r.started = r.now()
	r.status = Status{Started: r.started, Recent: []RecentCommit{}, ResourceSets: []ResourceSetStatus{}, Providers: []ProviderStatus{}}
	r.mirrors = cmp.Or(opts.Mirrors, r.cfg.State.Directory)
	r.written = map[string]written{}
	r.handovers = map[string]handoverStart{}
	r.accepted = openAccepted(r.cfg.State.Directory)
	r.heldFile = OpenHeld(r.cfg.State.Directory)
	var err error
	if r.held, err = r.heldFile.read(); err != nil {
		r.log.Warn("the counts of held removals start again", "error", err)
	}
	if r.pace, err = cron.ParsePace(r.cfg.Inputs.Schedule); err != nil {
		return nil, fmt.Errorf("inputs.schedule: %w", err)
	}
	if err := r.loadKeys(ctx); err != nil {
		return nil, err
	}
	if r.target, err = r.open(ctx, "target", r.cfg.Target.URL, r.cfg.Target.Branch, r.cfg.Target.Auth); err != nil {
		return nil, fmt.Errorf("target: %w", err)
	}
	if r.cfg.Target.Mode == config.ModePullRequest {
		if r.delivery, err = r.newDelivery(); err != nil {
			return nil, errors.Join(err, r.target.Close())
		}
	}
	if r.cfg.SameTree() {
		r.source = r.target
		return r, nil
	}
	if r.source, err = r.open(ctx, "source", r.cfg.Source.URL, r.cfg.Source.Branch, r.cfg.Source.Auth); err != nil {
		return nil, errors.Join(fmt.Errorf("source: %w", err), r.target.Close())
	}
	return r, nil
}

// open makes the mirror of one branch below the state folder.
func (r *Reconciler) open(ctx context.Context, name, url, branch string, ref config.Auth) (*gitwriter.Mirror, error) {
	credentials := NewGitCredentials(url, ref, r.secrets, r.redactor, r.userAgent)
	if !ref.Secret.IsZero() {
		if _, err := r.secrets.Get(ctx, ref.Secret.Namespace, ref.Secret.Name); err != nil {
			return nil, err // at the start rather than with the first pass
		}
	}
	cfg := gitwriter.Config{
		URL: url, Branch: branch,
		Credentials: credentials.Get,
		Directory:   filepath.Join(r.mirrors, name),
		Logger:      r.log, Now: r.now, UserAgent: r.userAgent,
	}
	if r.signer != nil {
		cfg.Signer = r.signer // a nil pointer in an interface would not be nil
	}
	return gitwriter.Open(cfg)
}

// Close gives the state folder back.
func (r *Reconciler) Close() error {
	if r.source == r.target {
		return r.target.Close()
	}
	return errors.Join(r.source.Close(), r.target.Close())
}
