// SPDX-License-Identifier: Apache-2.0

// Package config reads the configuration file: one YAML document that names
// where definitions come from, where manifests go, and how careful to be.
//
// [Load] is strict and complete. A field that does not exist, a value of the
// wrong type, a missing or contradictory setting is a [Fault] with its file and
// line, its path ("target.path") and a hint; all of them are returned at once,
// so that a file is repaired in one go. What is legal but doubtful is a
// warning of the same shape. [Load] looks at nothing but the bytes it gets; [Config.CheckFiles] then checks what the file refers to
// on this machine, and [Read] does both.
//
// There are no environment variables and no flags that override fields: what the
// file says is what runs. Credentials are never part of it, only the names of
// secrets.
package config

import (
	"time"
)

// Config is the whole configuration, with defaults filled in.
type Config struct {
	Source  Source  `yaml:"source"`
	Target  Target  `yaml:"target"`
	Prune   Prune   `yaml:"prune"`
	Drift   string  `yaml:"drift"` // DriftHold or DriftRestore
	Inputs  Inputs  `yaml:"inputs"`
	Secrets Secrets `yaml:"secrets"`
	Server  Server  `yaml:"server"`
	Events  []Event `yaml:"events"`
	State   State   `yaml:"state"`
	Log     Log     `yaml:"log"`

	file  string
	lines map[string]int // line of each field that the file sets
}

// What happens to a hand edit of generated files.
const (
	DriftHold    = "hold"    // the person's state stands and is reported
	DriftRestore = "restore" // it is undone by a commit
)

// How commits of a pass are cut.
const (
	PerResourceSet = "resourceset" // one commit for each changed ResourceSet
	PerPass        = "pass"        // one commit for the whole pass
)

// How commits reach the target branch.
const (
	ModePush        = "push"
	ModePullRequest = "pull-request"
)

// Marks that keep a forge from running CI for our commits.
const (
	SkipCINone    = "none"
	SkipCISubject = "subject" // "[skip ci]" in the message
	SkipCITrailer = "trailer" // "skip-checks: true" as a trailer
)

// Source is where definitions are read from.
type Source struct {
	URL      string        `yaml:"url"`
	Branch   string        `yaml:"branch"`
	Path     string        `yaml:"path"` // clean slash path, "." for the whole repository
	Interval time.Duration `yaml:"interval"`
	Auth     Auth          `yaml:"auth"`
	Verify   Verify        `yaml:"verify"`
}

// Verify names the secret with the public keys that the source commit has to be
// signed with; its zero value verifies nothing.
type Verify struct {
	Secret SecretRef `yaml:"secret"`
}

// Target is where manifests are written. URL, Branch and Auth are filled in
// from Source where the file leaves them out.
type Target struct {
	URL    string   `yaml:"url"`
	Branch string   `yaml:"branch"`
	Path   string   `yaml:"path"` // clean slash path, never "."
	Auth   Auth     `yaml:"auth"`
	Mode   string   `yaml:"mode"`
	Labels []string `yaml:"labels"` // put on pull requests

	PullRequest PullRequest `yaml:"pullRequest"`

	Commit Commit `yaml:"commit"`
	Flux   *Flux  `yaml:"flux"` // nil when not set
}

// Commit says how commits look.
type Commit struct {
	Author  Author  `yaml:"author"`
	Signing Signing `yaml:"signing"`
	Per     string  `yaml:"per"`
	SkipCI  string  `yaml:"skipCI"`
}

// Author is a commit's author and committer.
type Author struct {
	Name  string `yaml:"name"`
	Email string `yaml:"email"`
}

// Signing names the secret with the signing key; its zero value signs nothing.
type Signing struct {
	Secret SecretRef `yaml:"secret"`
}

// Flux asks for one Flux Kustomization per ResourceSet.
type Flux struct {
	SourceRef SourceRef     `yaml:"sourceRef"`
	Interval  time.Duration `yaml:"interval"`
	// Handover is how long Flux is given to apply a commit before the next one relies
	// on that.
	Handover time.Duration `yaml:"handover"`
}

// SourceRef is the Flux source that delivers the target repository.
type SourceRef struct {
	Kind      string `yaml:"kind"`
	Name      string `yaml:"name"`
	Namespace string `yaml:"namespace"`
}

// Prune limits what one pass may remove before somebody has to agree.
type Prune struct {
	MaxRemovals        int     `yaml:"maxRemovals"`
	MaxRemovalsPercent int     `yaml:"maxRemovalsPercent"`
	MaxRemovalsTotal   int     `yaml:"maxRemovalsTotal"`
	Confirm            Confirm `yaml:"confirm"`
}

// Confirm is how held removals are released without a person: that many fetches
// that agree, over at least that time. Zero fetches means only by a person.
type Confirm struct {
	Fetches int           `yaml:"fetches"`
	After   time.Duration `yaml:"after"`
}

// Inputs says how providers are fetched when they do not say so themselves.
type Inputs struct {
	Schedule    string `yaml:"schedule"` // "@every 10m" or a cron expression
	Concurrency int    `yaml:"concurrency"`
}

// Secrets is where credentials come from.
type Secrets struct {
	Directory        string `yaml:"directory"`
	Kubernetes       bool   `yaml:"kubernetes"`
	AllowPlainOutput bool   `yaml:"allowPlainOutput"`
}

// Server is the HTTP server for webhooks, health and metrics.
type Server struct {
	Listen string `yaml:"listen"` // host:port
}

// Event is an address that Flux events are posted to.
type Event struct {
	URL string `yaml:"url"`
}

// State is the folder for caches.
type State struct {
	Directory string `yaml:"directory"`
}

// Log says what is logged, and how.
type Log struct {
	Level  string `yaml:"level"`  // debug, info, warn or error
	Format string `yaml:"format"` // json or text
}

// Auth names the secret with Git credentials; its zero value means anonymous.
type Auth struct {
	Secret SecretRef `yaml:"secret"`
}

// SecretRef is a secret's name, written "<namespace>/<name>".
type SecretRef struct {
	Namespace, Name string
}

// String is "<namespace>/<name>", or nothing for the zero value.
func (r SecretRef) String() string {
	if r == (SecretRef{}) {
		return ""
	}
	return r.Namespace + "/" + r.Name
}

// IsZero reports that no secret is named.
func (r SecretRef) IsZero() bool { return r == SecretRef{} }

// Default is the configuration that an empty file would give if nothing were
// required. Fields of Target that follow Source are still empty.
func Default() *Config {
	return &Config{
		Source: Source{Branch: "main", Path: ".", Interval: time.Minute},
		Target: Target{
			Mode:        ModePush,
			PullRequest: PullRequest{Per: PerResourceSet},
			Commit: Commit{
				Author: Author{Name: "renderer", Email: "renderer@localhost"},
				Per:    PerResourceSet,
				SkipCI: SkipCINone,
			},
		},
		Prune: Prune{
			MaxRemovals: 10, MaxRemovalsPercent: 50, MaxRemovalsTotal: 30,
			Confirm: Confirm{Fetches: 3, After: 30 * time.Minute},
		},
		Drift:   DriftHold,
		Inputs:  Inputs{Schedule: "@every 10m", Concurrency: 8},
		Secrets: Secrets{Directory: "/var/run/renderer/secrets"},
		Server:  Server{Listen: ":8080"},
		State:   State{Directory: "/var/lib/renderer"},
		Log:     Log{Level: "info", Format: "json"},
	}
}

// defaultFluxInterval is target.flux.interval when the file leaves it out.
const defaultFluxInterval = 10 * time.Minute

// defaultHandover is target.flux.handover when the file leaves it out: an order of
// magnitude above what Flux usually takes.
const defaultHandover = time.Hour

// Handover is target.flux.handover, or its default when target.flux is not set.
func (c *Config) Handover() time.Duration {
	if c.Target.Flux == nil {
		return defaultHandover
	}
	return c.Target.Flux.Handover
}

// SameTree reports that definitions and manifests share a branch of one
// repository, so that the target path must not be read as definitions.
func (c *Config) SameTree() bool {
	return c.SameRepository() && c.Source.Branch == c.Target.Branch
}

// SameRepository reports that definitions and manifests are in one repository, on
// whatever branches.
func (c *Config) SameRepository() bool { return sameRepository(c.Source.URL, c.Target.URL) }

// isSet reports that the file itself sets the field at path.
func (c *Config) isSet(path string) bool { return c.lines[path] > 0 }
