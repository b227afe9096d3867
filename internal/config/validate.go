// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"resourceset.example/renderer/internal/cron"
)

// A validator checks what types cannot say, and fills in what follows from
// other fields. It goes on after a fault, like the decoder. A field that the
// decoder refused already is not judged again.
type validator struct {
	cfg      *Config
	decoded  Faults
	faults   Faults
	warnings Faults
}

func (v *validator) all() {
	v.source()
	v.target()
	v.commit()
	v.flux()
	v.limits()
	v.others()
}

func (v *validator) fault(path, hint, format string, args ...any) {
	if v.refused(path) {
		return
	}
	v.faults = append(v.faults, v.cfg.faultAt(path, hint, format, args...))
}

func (v *validator) warn(path, hint, format string, args ...any) {
	v.warnings = append(v.warnings, v.cfg.faultAt(path, hint, format, args...))
}

// refused reports that the decoder has a fault at path or above it.
func (v *validator) refused(path string) bool {
	return slices.ContainsFunc(v.decoded, func(f *Fault) bool {
		return f.Path != "" && (path == f.Path || strings.HasPrefix(path, f.Path+"."))
	})
}

func (v *validator) source() {
	s := &v.cfg.Source
	if s.URL == "" {
		v.fault("source.url", "name the repository that holds the definitions, as in "+exampleURL, "is required")
	} else {
		v.gitURL("source.url", s.URL, s.Auth)
	}
	v.branch("source.branch", s.Branch)
	v.auth("source.auth", s.Auth)
	v.interval("source.interval", s.Interval)
	clean, problem, hint := cleanPath(s.Path)
	if problem != "" {
		v.fault("source.path", hint, "%s", problem)
		return
	}
	s.Path = clean
}

func (v *validator) target() {
	t, s := &v.cfg.Target, v.cfg.Source
	v.auth("target.auth", t.Auth)
	if t.URL == "" {
		t.URL = s.URL
	} else {
		v.gitURL("target.url", t.URL, t.Auth)
	}
	if t.Branch == "" {
		t.Branch = s.Branch
	}
	v.branch("target.branch", t.Branch)
	v.inheritAuth()
	v.targetPath()
	v.oneOf("target.mode", t.Mode, ModePush, ModePullRequest)
	v.pullRequest()
}

// inheritAuth takes source's credentials for the target, unless that would hand
// them to another host.
func (v *validator) inheritAuth() {
	t, s := &v.cfg.Target, v.cfg.Source
	if !t.Auth.Secret.IsZero() || s.Auth.Secret.IsZero() || v.cfg.isSet("target.auth") {
		return
	}
	if !sameHost(s.URL, t.URL) {
		v.warn("target.url", "name the target's own credentials in target.auth.secret",
			"is on another host than source.url, so source.auth is not used for it")
		return
	}
	t.Auth = s.Auth
}

func (v *validator) targetPath() {
	t := &v.cfg.Target
	const hint = "give generated files a folder of their own, as in ./clusters/preview/generated"
	if t.Path == "" {
		v.fault("target.path", hint, "is required")
		return
	}
	clean, problem, problemHint := cleanPath(t.Path)
	if problem != "" {
		v.fault("target.path", problemHint, "%s", problem)
		return
	}
	t.Path = clean
	if clean == "." {
		v.fault("target.path", hint, "is the whole repository, which is not ours to write")
		return
	}
	if !v.cfg.SameTree() {
		return
	}
	switch source := v.cfg.Source.Path; {
	case clean == source:
		v.fault("target.path", hint, "is source.path: generated files would lie among the definitions")
	case strings.HasPrefix(source+"/", clean+"/"):
		v.fault("target.path", hint, "contains source.path (%s)", source)
	}
}

func (v *validator) commit() {
	c := v.cfg.Target.Commit
	for _, field := range []struct{ path, value string }{
		{"target.commit.author.name", c.Author.Name},
		{"target.commit.author.email", c.Author.Email},
	} {
		switch {
		case strings.TrimSpace(field.value) == "":
			v.fault(field.path, "remove the field to use the default", "is empty")
		case strings.ContainsAny(field.value, "<>\r\n\x00"):
			v.fault(field.path, "Git keeps name and address apart by < and >", "may not hold <, > or a line break")
		}
	}
	if v.cfg.isSet("target.commit.signing") && c.Signing.Secret.IsZero() {
		v.fault("target.commit.signing.secret", "name the secret that holds the signing key", "is required")
	}
	if v.cfg.isSet("source.verify") && v.cfg.Source.Verify.Secret.IsZero() {
		v.fault("source.verify.secret", "name the secret that holds the public keys", "is required")
	}
	v.oneOf("target.commit.per", c.Per, PerResourceSet, PerPass)
	v.oneOf("target.commit.skipCI", c.SkipCI, SkipCINone, SkipCISubject, SkipCITrailer)
}

func (v *validator) flux() {
	f := v.cfg.Target.Flux
	if f == nil {
		return
	}
	if !v.cfg.isSet("target.flux.interval") {
		f.Interval = defaultFluxInterval
	}
	v.interval("target.flux.interval", f.Interval)
	if !v.cfg.isSet("target.flux.handover") {
		f.Handover = defaultHandover
	}
	v.interval("target.flux.handover", f.Handover)
	const ref = "target.flux.sourceRef"
	if f.SourceRef.Kind == "" {
		f.SourceRef.Kind = "GitRepository"
	}
	v.oneOf(ref+".kind", f.SourceRef.Kind, "GitRepository", "OCIRepository", "Bucket", "ExternalArtifact")
	switch {
	case f.SourceRef.Name == "":
		v.fault(ref+".name", "name the Flux source that delivers the target repository", "is required")
	case !isDNSSubdomain(f.SourceRef.Name):
		v.fault(ref+".name", nameHint, "%q is not an object's name", f.SourceRef.Name)
	}
	if ns := f.SourceRef.Namespace; ns != "" && !isDNSLabel(ns) {
		v.fault(ref+".namespace", nameHint, "%q is not a namespace", ns)
	}
}

func (v *validator) limits() {
	p, i := v.cfg.Prune, v.cfg.Inputs
	if p.MaxRemovalsPercent > 100 {
		v.fault("prune.maxRemovalsPercent", "write a percentage from 0 to 100", "is %d", p.MaxRemovalsPercent)
	}
	if i.Concurrency < 1 {
		v.fault("inputs.concurrency", "write how many providers may be fetched at once, as in 8", "is %d", i.Concurrency)
	}
	if _, err := cron.ParsePace(i.Schedule); err != nil {
		v.fault("inputs.schedule", `write "@every 10m" or a cron expression such as "*/10 * * * *"`, "%v", err)
	}
}

func (v *validator) others() {
	c := v.cfg
	v.oneOf("drift", c.Drift, DriftHold, DriftRestore)
	v.oneOf("log.level", c.Log.Level, "debug", "info", "warn", "error")
	v.oneOf("log.format", c.Log.Format, "json", "text")
	v.listen()
	for i, event := range c.Events {
		v.eventURL(fmt.Sprintf("events[%d].url", i), event.URL)
	}
	if c.State.Directory == "" {
		v.fault("state.directory", "name a folder for caches, as in /var/lib/renderer", "is empty")
	}
	switch {
	case c.Secrets.Kubernetes && c.isSet("secrets.directory") && c.Secrets.Directory != "":
		v.fault("secrets.kubernetes", "keep one of the two", "contradicts secrets.directory")
	case c.Secrets.Directory == "" && !c.Secrets.Kubernetes:
		v.fault("secrets.directory", "name the folder that holds <namespace>/<name>/<key>", "is empty")
	}
	if c.Secrets.Directory != "" && c.Secrets.Directory == c.State.Directory {
		v.fault("state.directory", "keep caches and secrets apart", "is secrets.directory")
	}
	c.Secrets.Directory, c.State.Directory = cleanDirectory(c.Secrets.Directory), cleanDirectory(c.State.Directory)
}

func cleanDirectory(dir string) string {
	if dir == "" {
		return ""
	}
	return filepath.Clean(dir)
}

func (v *validator) listen() {
	const path, hint = "server.listen", `write host:port, as in ":8080" or "127.0.0.1:8080"`
	listen := v.cfg.Server.Listen
	_, port, err := net.SplitHostPort(listen)
	if err != nil {
		v.fault(path, hint, "%q is not an address", listen)
		return
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		v.fault(path, hint, "%q is not a port", port)
	}
}

func (v *validator) eventURL(path, raw string) {
	const hint = "write the address of Flux's notification-controller or of a service that takes Flux events"
	if raw == "" {
		v.fault(path, hint, "is required")
		return
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https"):
		v.fault(path, hint, "is not an http:// or https:// URL")
	case u.User != nil:
		v.fault(path, "leave them out of the URL", "holds credentials")
	}
}

func (v *validator) auth(path string, auth Auth) {
	if v.cfg.isSet(path) && auth.Secret.IsZero() {
		v.fault(path+".secret", "write <namespace>/<name>, or remove "+path, "is required")
	}
}

func (v *validator) interval(path string, d time.Duration) {
	if d < time.Second {
		v.fault(path, "write a second or more, as in 1m", "%s is too short", d)
	}
}

func (v *validator) branch(path, name string) {
	switch {
	case name == "":
		v.fault(path, "remove the field to use the default", "is empty")
	case strings.HasPrefix(name, "refs/"):
		v.fault(path, "write "+strings.TrimPrefix(name, "refs/heads/"), "is a full reference where a branch's short name is due")
	case strings.HasPrefix(name, "-"), plumbing.NewBranchReferenceName(name).Validate() != nil:
		v.fault(path, "", "%q is not a branch name that Git accepts", name)
	}
}

func (v *validator) oneOf(path, value string, allowed ...string) {
	if slices.Contains(allowed, value) {
		return
	}
	hint := "write " + strings.Join(allowed, " or ")
	if near := nearest(value, allowed); near != "" {
		hint = "did you mean " + near + "?"
	}
	v.fault(path, hint, "%q is not one of %s", value, strings.Join(allowed, ", "))
}

// lineOf is the line of the field at path, or of its nearest parent that is set.
func lineOf(lines map[string]int, path string) int {
	for path != "" {
		if line := lines[path]; line > 0 {
			return line
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return 0
}
