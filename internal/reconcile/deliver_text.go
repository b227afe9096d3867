// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"resourceset.example/renderer/internal/forge"
	"resourceset.example/renderer/pkg/gitwriter"
)

// Limits of a pull request's text. GitHub takes 65,536 characters.
const (
	maxRows     = 100    // of one ResourceSet's table
	maxSections = 50_000 // bytes of all tables
)

// content is what the pull request of a proposal says.
func (r *Reconciler) content(pr *proposal, base *gitwriter.Snapshot) forge.Content {
	var b strings.Builder
	fmt.Fprintf(&b, "renderer proposes to bring `%s` on %s up to date.\n", r.cfg.Target.Path, code(r.cfg.Target.Branch))
	for i, pl := range pr.plans {
		if b.Len() > maxSections {
			fmt.Fprintf(&b, "\nAnd %d more ResourceSets: see the commits.\n", len(pr.plans)-i)
			break
		}
		pl.section(&b)
	}
	b.WriteString("\n" + r.countFiles(pr, base) + "\n")
	b.WriteString("\nMerge it in whichever way you like. Closing it without merging is a no: it comes back when something else is wanted.\n")
	fmt.Fprintf(&b, "\n%s\n", mark(pr))
	return forge.Content{
		Title: r.redactor.Scrub(pr.title()), Body: r.redactor.Scrub(b.String()), Labels: r.cfg.Target.Labels,
	}
}

// title is the subject of the only commit, or counts the ResourceSets.
func (pr *proposal) title() string {
	if len(pr.plans) == 1 {
		subject, _, _ := strings.Cut(pr.plans[0].message, "\n")
		return subject
	}
	names := make([]string, len(pr.plans))
	for i, pl := range pr.plans {
		names[i] = pl.name
	}
	return cut(fmt.Sprintf("update %d ResourceSets: %s", len(names), strings.Join(names, ", ")), maxSubject)
}

// mark tells from a request's text what it proposes. Nobody sees it.
func mark(pr *proposal) string {
	return fmt.Sprintf("<!-- renderer proposal %s base %s -->", pr.wanted, pr.base)
}

// proposes reports whether a text has the mark of a proposal of the same content.
func proposes(body, wanted string) bool {
	return strings.Contains(body, "<!-- renderer proposal "+wanted+" base ")
}

// withdrawn is the mark of a request that renderer closed itself, which is nobody's
// answer.
const withdrawn = "<!-- renderer proposal withdrawn -->"

var anyMark = regexp.MustCompile(`<!-- renderer proposal [^>]*-->`)

// withdraw is the text of a request without what it proposed.
func withdraw(body string) string {
	return strings.TrimRight(anyMark.ReplaceAllString(body, ""), "\n ") + "\n\n" + withdrawn + "\n"
}

// section is what happens to one ResourceSet: a table of its input sets, and the
// trailers of the commit.
func (pl *plan) section(b *strings.Builder) {
	fmt.Fprintf(b, "\n### ResourceSet %s\n\n", code(pl.name))
	changes := pl.changes
	if pl.removed {
		b.WriteString("It is not defined any more: all that was made for it goes.\n\n")
		changes = pl.gone()
	}
	if len(changes) > 0 {
		b.WriteString("| | input set | what | why |\n|---|---|---|---|\n")
	}
	for _, c := range changes[:min(len(changes), maxRows)] {
		what := strings.TrimSpace(code(cut(harmless(c.Detail), 60)) + " " + shaChange(c.OldSHA, c.NewSHA))
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", [...]string{"added", "updated", "removed"}[c.Kind],
			code(c.label()), what, plain(cut(harmless(c.Reason), 120)))
	}
	if more := len(changes) - maxRows; more > 0 {
		fmt.Fprintf(b, "\nAnd %d more.\n", more)
	}
	if len(changes) == 0 && !pl.removed {
		subject, _, _ := strings.Cut(pl.message, "\n")
		fmt.Fprintf(b, "%s\n", plain(harmless(strings.TrimPrefix(subject, pl.name+": "))))
	}
	if _, trailers, ok := cutLast(strings.TrimRight(pl.message, "\n"), "\n\n"); ok {
		fmt.Fprintf(b, "\n```text\n%s\n```\n", strings.ReplaceAll(trailers, "```", "'''"))
	}
}

// gone are the sets of a ResourceSet that goes.
func (pl *plan) gone() []setChange {
	var changes []setChange
	if pl.previous != nil && pl.previous.lock != nil {
		for _, set := range pl.previous.lock.Sets {
			changes = append(changes, setChange{Kind: removed, Name: set.Name, Provider: set.Provider, Reason: "the ResourceSet goes"})
		}
	}
	return changes
}

// countFiles says how many files are touched.
func (r *Reconciler) countFiles(pr *proposal, base *gitwriter.Snapshot) string {
	fresh, changed, deleted := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, c := range pr.commits {
		for _, file := range c.Delete {
			deleted[path.Clean(file)] = true
		}
		for file := range c.Write {
			if _, err := base.Entry(file); err != nil {
				fresh[file] = true
			} else {
				changed[file] = true
			}
			delete(deleted, file)
		}
	}
	return fmt.Sprintf("Files: %d new, %d changed, %d deleted.", len(fresh), len(changed), len(deleted))
}

// code shows an outside text as code, where Markdown means nothing: no mention, link,
// table cell or command can come of it.
func code(s string) string {
	s = oneLine(s)
	if s == "" {
		return ""
	}
	return "`" + strings.NewReplacer("`", "'", "|", "¦").Replace(s) + "`"
}

// plain takes their meaning from the characters that make Markdown.
func plain(s string) string {
	return strings.NewReplacer(`\`, `\\`, "`", "\\`", "|", "¦", "<", "&lt;", ">", "&gt;", "&", "&amp;",
		"*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "~", `\~`, "www.", `www\.`).Replace(s)
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}
