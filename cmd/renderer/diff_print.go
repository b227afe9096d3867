// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"resourceset.example/renderer/internal/reconcile"
)

// A diffPrinter writes a preview to standard output.
type diffPrinter func(w io.Writer, p *reconcile.Preview, colored bool) error

func diffPrinters() map[string]diffPrinter {
	return map[string]diffPrinter{"text": printDiffText, "json": printDiffJSON, "markdown": printDiffMarkdown}
}

// summary is "apps/app1: add tenant3, remove tenant2 (held: tenant4)".
func summary(s reconcile.SetPreview) string {
	var parts []string
	for _, group := range []struct {
		verb  string
		names []string
	}{{"add", s.Added}, {"update", s.Updated}, {"remove", s.Removed}, {"held:", s.Kept}} {
		switch n := len(group.names); {
		case n > 6:
			parts = append(parts, fmt.Sprintf("%s %s and %d more", group.verb, strings.Join(group.names[:5], ", "), n-5))
		case n > 0:
			parts = append(parts, group.verb+" "+strings.Join(group.names, ", "))
		}
	}
	switch {
	case s.Whole:
		parts = append([]string{"remove the ResourceSet"}, parts...)
	case len(parts) == 0:
		parts = []string{"update what belongs to no input set"}
	}
	return s.ResourceSet + ": " + strings.Join(parts, "; ")
}

// unified is the difference of one file, in a form that `git apply` reads.
func unified(c reconcile.FileChange) string {
	from, to := "a/"+c.Path, "b/"+c.Path
	var head strings.Builder
	fmt.Fprintf(&head, "diff --git %s %s\n", from, to)
	switch {
	case c.Old == nil:
		head.WriteString("new file mode 100644\n")
		from = "/dev/null"
	case c.New == nil:
		head.WriteString("deleted file mode 100644\n")
		to = "/dev/null"
	}
	return head.String() + udiff.Unified(from, to, string(c.Old), string(c.New))
}

func printDiffText(w io.Writer, p *reconcile.Preview, colored bool) error {
	var out bytes.Buffer
	for _, s := range p.Sets {
		fmt.Fprintf(&out, "# %s\n", summary(s))
	}
	for _, c := range p.Files {
		out.WriteString(unified(c))
	}
	text := out.String()
	if colored {
		text = colorDiff(text)
	}
	_, err := io.WriteString(w, text)
	return err
}

// colorDiff colours as git does.
func colorDiff(text string) string {
	const reset = "\x1b[m"
	var b strings.Builder
	for line := range strings.Lines(text) {
		line, end := strings.TrimSuffix(line, "\n"), "\n"
		color := ""
		switch {
		case strings.HasPrefix(line, "# "), strings.HasPrefix(line, "diff "), strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "):
			color = "\x1b[1m"
		case strings.HasPrefix(line, "@@"):
			color = "\x1b[36m"
		case strings.HasPrefix(line, "+"):
			color = "\x1b[32m"
		case strings.HasPrefix(line, "-"):
			color = "\x1b[31m"
		}
		if color != "" {
			line = color + line + reset
		}
		b.WriteString(line + end)
	}
	return b.String()
}

// diffDocument is what -o json prints.
type diffDocument struct {
	Revision     string            `json:"revision"` // of the definitions; "preview" with --definitions
	ResourceSets []diffResourceSet `json:"resourceSets"`
	Files        []diffFile        `json:"files"`
	Problems     []diffProblem     `json:"problems"`
}

type diffResourceSet struct {
	Name    string   `json:"name"` // namespace/name
	Added   []string `json:"added"`
	Updated []string `json:"updated"`
	Removed []string `json:"removed"`
	Kept    []string `json:"kept"`            // stay as committed: failed or held back
	Whole   bool     `json:"whole,omitempty"` // the ResourceSet itself goes
	Message string   `json:"message,omitempty"`
}

type diffFile struct {
	Path   string `json:"path"`
	Change string `json:"change"` // add, update or remove
	Diff   string `json:"diff"`
}

type diffProblem struct {
	Object  string `json:"object"`
	Set     string `json:"set,omitempty"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

func printDiffJSON(w io.Writer, p *reconcile.Preview, _ bool) error {
	doc := diffDocument{
		Revision: p.Report.Revision, ResourceSets: []diffResourceSet{}, Files: []diffFile{}, Problems: []diffProblem{},
	}
	list := func(names []string) []string { return append([]string{}, names...) } // [] rather than null
	for _, s := range p.Sets {
		doc.ResourceSets = append(doc.ResourceSets, diffResourceSet{
			Name: s.ResourceSet, Added: list(s.Added), Updated: list(s.Updated), Removed: list(s.Removed),
			Kept: list(s.Kept), Whole: s.Whole, Message: s.Message,
		})
	}
	for _, c := range p.Files {
		doc.Files = append(doc.Files, diffFile{Path: c.Path, Change: changeOf(c), Diff: unified(c)})
	}
	for _, problem := range p.Report.Problems {
		doc.Problems = append(doc.Problems, diffProblem{
			Object: problem.Object, Set: problem.Set, Message: problem.Error(), Hint: problem.Suggestion(),
		})
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(doc)
}

func changeOf(c reconcile.FileChange) string {
	switch {
	case c.Old == nil:
		return "add"
	case c.New == nil:
		return "remove"
	}
	return "update"
}

// maxComment keeps a comment below GitHub's limit of 65,536 characters.
const maxComment = 60000

func printDiffMarkdown(w io.Writer, p *reconcile.Preview, _ bool) error {
	var out strings.Builder
	if len(p.Sets) == 0 && len(p.Files) == 0 {
		out.WriteString("**renderer**: nothing would change.\n")
	} else {
		out.WriteString("**renderer** would commit:\n\n| ResourceSet | added | updated | removed | held |\n|---|---|---|---|---|\n")
	}
	for _, s := range p.Sets {
		if s.Whole {
			fmt.Fprintf(&out, "| `%s` | | | all of it (%d) | |\n", s.ResourceSet, len(s.Removed))
			continue
		}
		fmt.Fprintf(&out, "| `%s` | %d | %d | %d | %d |\n", s.ResourceSet, len(s.Added), len(s.Updated), len(s.Removed), len(s.Kept))
	}
	if len(p.Report.Problems) > 0 {
		out.WriteString("\nProblems:\n\n")
		for _, problem := range p.Report.Problems {
			fmt.Fprintf(&out, "- `%s`\n", strings.ReplaceAll(problem.Error(), "`", "'"))
		}
	}
	for i, c := range p.Files {
		text := unified(c)
		fence := "```"
		for strings.Contains(text, fence) {
			fence += "`"
		}
		block := fmt.Sprintf("\n<details><summary>%s <code>%s</code></summary>\n\n%sdiff\n%s%s\n</details>\n", changeOf(c), c.Path, fence, text, fence)
		if out.Len()+len(block) > maxComment {
			fmt.Fprintf(&out, "\n%d more files are not shown.\n", len(p.Files)-i)
			break
		}
		out.WriteString(block)
	}
	_, err := io.WriteString(w, out.String())
	return err
}
