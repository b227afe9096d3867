// SPDX-License-Identifier: Apache-2.0

package api

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	"github.com/robfig/cron/v3"
	"go.yaml.in/yaml/v3"
)

func (d *decoder) provider(n *yaml.Node, meta Meta) *ResourceSetInputProvider {
	p := &ResourceSetInputProvider{Meta: meta}
	s := &p.Spec
	d.root(n, &p.Meta, schema{
		"type":               d.text(&s.Type),
		"url":                d.text(&s.URL),
		"serviceAccountName": d.text(&s.ServiceAccountName),
		"secretRef":          d.secretName(&s.SecretRef),
		"certSecretRef":      d.secretName(&s.CertSecretRef),
		"insecure":           d.boolean(&s.Insecure),
		"defaultValues":      func(path string, n *yaml.Node) { s.DefaultValues, _ = d.input(path, n) },
		"filter":             d.filter(&s.Filter),
		"skip":               d.nested(schema{"labels": d.texts(&s.Skip.Labels)}),
		"schedule":           d.items(func(path string, n *yaml.Node) { s.Schedule = append(s.Schedule, d.schedule(path, n)) }),
		"selectors":          d.items(func(path string, n *yaml.Node) { s.Selectors = append(s.Selectors, d.artifact(path, n)) }),
		"revision":           d.text(&s.Revision),
		"selector":           func(path string, n *yaml.Node) { s.Selectors = append(s.Selectors, d.artifact(path, n)) },
	})
	if s.Filter.Limit == 0 {
		s.Filter.Limit = DefaultFilterLimit
	}
	if _, ok := d.lines["spec"]; ok {
		d.checkProvider(n, s)
		d.checkBaseURL(n, p.Meta, s)
	}
	if s.Filter.Fork != nil && *s.Filter.Fork && p.Annotations[AnnotationAllowForks] != "true" {
		d.warn(d.line("spec.filter.fork", n), "set the annotation "+AnnotationAllowForks+`: "true", or take the filter out`,
			"spec.filter.fork is true, and forks are left out: nothing passes")
	}
	return p
}

func (d *decoder) filter(f *Filter) read {
	return d.nested(schema{
		"includeBranch":      d.pattern(&f.IncludeBranch),
		"excludeBranch":      d.pattern(&f.ExcludeBranch),
		"includeTag":         d.pattern(&f.IncludeTag),
		"excludeTag":         d.pattern(&f.ExcludeTag),
		"includeEnvironment": d.pattern(&f.IncludeEnvironment),
		"excludeEnvironment": d.pattern(&f.ExcludeEnvironment),
		"labels":             d.texts(&f.Labels),
		"targetBranch":       d.pattern(&f.TargetBranch),
		"title":              d.pattern(&f.Title),
		"author":             d.pattern(&f.Author),
		"draft":              d.choice(&f.Draft),
		"fork":               d.choice(&f.Fork),
		"updatedWithin":      d.duration(&f.UpdatedWithin),
		"includePath":        d.globs(&f.IncludePath),
		"excludePath":        d.globs(&f.ExcludePath),
		"limit": func(path string, n *yaml.Node) {
			before := len(d.faults)
			d.integer(&f.Limit)(path, n)
			if len(d.faults) == before && (f.Limit < 1 || f.Limit > MaxFilterLimit) {
				d.fault(n, "", "%s is %d, allowed are 1 to %d", path, f.Limit, MaxFilterLimit)
			}
		},
		"semver": func(path string, n *yaml.Node) {
			d.text(&f.Semver)(path, n)
			if f.Semver == "" {
				return
			}
			if _, err := semver.NewConstraint(f.Semver); err != nil {
				d.fault(n, `write it like ">=1.0.0" or "1.x"`, "%s %q: %v", path, f.Semver, err)
			}
		},
	})
}

// choice reads a boolean that need not be there.
func (d *decoder) choice(to **bool) read {
	return func(path string, n *yaml.Node) {
		value, before := false, len(d.faults)
		d.boolean(&value)(path, n)
		if len(d.faults) == before {
			*to = &value
		}
	}
}

// globs reads patterns of slash-separated paths: "*" and "?" match within one name,
// "[a-z]" a class, and "**" as a whole name any number of folders.
func (d *decoder) globs(to *[]string) read {
	return func(at string, n *yaml.Node) {
		d.texts(to)(at, n)
		for _, glob := range *to {
			_, err := path.Match(glob, "")
			if err != nil || glob == "" || strings.HasPrefix(glob, "/") || slices.Contains(strings.Split(glob, "/"), "..") {
				d.fault(n, `write a path from the root of the repository, like "apps/*" or "tenants/**/config.yaml"`, "%s %q is no pattern of paths", at, glob)
			}
		}
	}
}

// pattern reads a regular expression.
func (d *decoder) pattern(to *string) read {
	return func(path string, n *yaml.Node) {
		d.text(to)(path, n)
		if _, err := regexp.Compile(*to); err != nil {
			d.fault(n, "the syntax is that of RE2, as in Go", "%s %q: %v", path, *to, err)
		}
	}
}

func (d *decoder) schedule(path string, at *yaml.Node) Schedule {
	s := Schedule{TimeZone: "UTC"}
	d.fields(path, at, schema{
		"cron":     d.text(&s.Cron),
		"timeZone": d.text(&s.TimeZone),
		"window":   d.duration(&s.Window),
	})
	if target(at).Kind != yaml.MappingNode {
		return s
	}
	cronAt := d.line(path+".cron", at)
	switch {
	case s.Cron == "":
		d.faultMissing(at, path+".cron", `five fields, like "0 9 * * 1-5"`)
	case strings.Contains(s.Cron, "TZ="): // the library reads it, and panics on some
		d.fault(cronAt, "use the field timeZone", "%s.cron %q names a time zone", path, s.Cron)
	default:
		if _, err := cron.ParseStandard(s.Cron); err != nil {
			d.fault(cronAt, `write five fields, like "0 9 * * 1-5"`, "%s.cron %q: %v", path, s.Cron, err)
		}
	}
	if _, err := time.LoadLocation(s.TimeZone); err != nil || s.TimeZone == "" || s.TimeZone == "Local" {
		d.fault(d.line(path+".timeZone", at), `write a name of the IANA database, like "Europe/Berlin"`,
			"%s.timeZone: unknown time zone %q", path, s.TimeZone)
	}
	return s
}

// artifact reads a selector of ExternalArtifact objects.
func (d *decoder) artifact(path string, n *yaml.Node) ArtifactSelector {
	var s ArtifactSelector
	fields := d.selector(&s.LabelSelector)
	fields["name"] = d.text(&s.Name)
	fields["namespace"] = d.text(&s.Namespace)
	d.fields(path, n, fields)
	return s
}

// checkProvider checks the rules that tie fields to the type.
func (d *decoder) checkProvider(n *yaml.Node, s *InputProviderSpec) {
	spec := d.line("spec", n)
	if s.Type == "" {
		d.faultMissing(spec, "spec.type", "one of "+strings.Join(ProviderTypes(), ", "))
		return
	}
	t, known := providerTypes()[s.Type]
	if !known {
		d.fault(d.line("spec.type", n), suggest(s.Type, ProviderTypes()), "unknown provider type %q", s.Type)
		return
	}
	d.checkURL(spec, t, s)
	d.forbid(s.Insecure && !t.insecure, "spec.insecure", s.Type)
	d.forbid(s.ServiceAccountName != "" && !t.serviceAccount, "spec.serviceAccountName", s.Type)
	d.forbid(s.SecretRef != "" && t.noSecret, "spec.secretRef", s.Type)
	d.forbid(s.CertSecretRef != "" && t.noCertSecret, "spec.certSecretRef", s.Type)
	d.forbid(s.Revision != "" && s.Type != TypeGitRepositoryPath, "spec.revision", s.Type)
	d.forbid(len(s.Selectors) > 0 && s.Type != TypeExternalArtifact, "spec.selectors", s.Type)
	if s.Type == TypeExternalArtifact && len(s.Selectors) == 0 {
		d.faultMissing(spec, "spec.selectors", "which objects, by name or matchLabels, and the namespace if it is another one")
	}
	d.checkFilters(t, s)
}

func (d *decoder) forbid(wrong bool, path, providerType string) {
	if wrong {
		line := d.lines[path]
		if line == 0 {
			line = d.lines["spec.selector"]
		}
		d.fault(&yaml.Node{Line: line}, "take it out", "%s cannot be used with type %s", path, providerType)
	}
}

// checkFilters warns of filters that the type does not have.
func (d *decoder) checkFilters(t providerType, s *InputProviderSpec) {
	for _, name := range []string{
		"includeBranch", "excludeBranch", "includeTag", "excludeTag", "includeEnvironment",
		"excludeEnvironment", "labels", "limit", "semver", "targetBranch", "title", "author", "draft", "fork",
		"updatedWithin", "includePath", "excludePath",
	} {
		path := "spec.filter." + name
		if name == "labels" && t.noLabels && len(s.Filter.Labels) > 0 {
			d.forbid(true, path, s.Type)
		} else if line, set := d.lines[path]; set && !slices.Contains(t.filters, name) {
			d.warn(&yaml.Node{Line: line}, "take it out", "%s has no effect with type %s", path, s.Type)
		}
	}
	if s.Type == TypeGitRepositoryPath && len(s.Filter.IncludePath) == 0 {
		d.faultMissing(d.line("spec", nil), "spec.filter.includePath", `what to look for, like ["apps/*"] or ["tenants/*.yaml"]`)
	}
	d.checkLabels("spec.filter.labels", s.Filter.Labels)
	d.checkLabels("spec.skip.labels", s.Skip.Labels)
	if len(s.Skip.Labels) > 0 && t.noLabels {
		d.forbid(true, "spec.skip.labels", s.Type)
	} else if len(s.Skip.Labels) > 0 && !slices.Contains(t.filters, "labels") {
		d.warn(d.line("spec.skip.labels", nil), "take it out", "spec.skip.labels has no effect with type %s", s.Type)
	}
}

// checkLabels refuses a label without a name: no item has it, so that all would go.
func (d *decoder) checkLabels(path string, labels []string) {
	for _, label := range labels {
		if strings.TrimSpace(strings.TrimPrefix(label, "!")) == "" {
			d.fault(d.line(path, nil), "name a label, or take it out", "%s has an empty label, which no item has", path)
			return
		}
	}
}
