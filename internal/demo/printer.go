// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing/object"
)

// A printer writes what happens for people to read: plain text, and colour only
// where it is wanted.
type printer struct {
	w      io.Writer
	colour bool
}

const (
	bold   = "1"
	green  = "32"
	red    = "31"
	yellow = "33"
	faint  = "2"
)

func (p *printer) paint(style, text string) string {
	if !p.colour || text == "" || style == "" {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

// line writes one line. A terminal that is gone is no reason to stop.
func (p *printer) line(format string, args ...any) {
	_, _ = fmt.Fprintf(p.w, format+"\n", args...)
}

func (p *printer) title(text string) {
	p.line("")
	p.line("%s", p.paint(bold, "== "+text))
}

func (p *printer) note(format string, args ...any) {
	p.line("   %s", fmt.Sprintf(format, args...))
}

// commit shows what landed, and how long after its cause; or who made it, if no time
// is given.
func (p *printer) commit(ctx context.Context, c *object.Commit, took time.Duration) error {
	p.line("")
	when := "by " + c.Author.Name
	if took > 0 {
		when = fmt.Sprintf("landed after %d ms", took.Milliseconds())
	}
	p.line("   %s  %s", p.paint(yellow, "commit "+c.Hash.String()[:12]), p.paint(faint, when))
	for text := range strings.Lines(strings.TrimSpace(c.Message)) {
		text = strings.TrimRight(text, "\n")
		if text == "" {
			p.line("")
			continue
		}
		p.line("       %s", text)
	}
	p.line("")
	changes, err := diffstat(ctx, c)
	if err != nil {
		return err
	}
	p.stat(changes)
	return nil
}

// A change is one file of a diffstat.
type change struct {
	verb           string // add, change or delete
	path           string
	added, removed int
}

// diffstat compares a commit with its first parent.
func diffstat(ctx context.Context, c *object.Commit) ([]change, error) {
	tree, err := c.Tree()
	if err != nil {
		return nil, fmt.Errorf("commit %s: %w", c.Hash, err)
	}
	before := &object.Tree{}
	if c.NumParents() > 0 {
		parent, err := c.Parent(0)
		if err != nil {
			return nil, fmt.Errorf("commit %s: %w", c.Hash, err)
		}
		if before, err = parent.Tree(); err != nil {
			return nil, fmt.Errorf("commit %s: %w", c.Hash, err)
		}
	}
	diff, err := object.DiffTreeContext(ctx, before, tree)
	if err != nil {
		return nil, fmt.Errorf("commit %s: %w", c.Hash, err)
	}
	changes := make([]change, 0, len(diff))
	for _, d := range diff {
		patch, err := d.PatchContext(ctx)
		if err != nil {
			return nil, fmt.Errorf("commit %s: %w", c.Hash, err)
		}
		entry := change{verb: "change", path: d.To.Name}
		switch {
		case d.From.Name == "":
			entry.verb = "add"
		case d.To.Name == "":
			entry.verb, entry.path = "delete", d.From.Name
		}
		for _, stat := range patch.Stats() {
			entry.added += stat.Addition
			entry.removed += stat.Deletion
		}
		changes = append(changes, entry)
	}
	return changes, nil
}

// stat prints a diffstat by folder, as the names of manifests are long.
func (p *printer) stat(changes []change) {
	added, removed, last := 0, 0, ""
	for _, c := range changes {
		if dir := path.Dir(c.path); dir != last {
			p.line("       %s", p.paint(faint, dir+"/"))
			last = dir
		}
		counts := fmt.Sprintf("%5s %5s", signed("+", c.added), signed("-", c.removed))
		p.line("       %s  %s", p.paint(styleOf(c.verb), fmt.Sprintf("%-6s %s", c.verb, counts)), path.Base(c.path))
		added, removed = added+c.added, removed+c.removed
	}
	p.line("       %s", p.paint(faint, fmt.Sprintf("%s, %s added, %d removed", count(len(changes), "file"), count(added, "line"), removed)))
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func signed(sign string, n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%s%d", sign, n)
}

func styleOf(verb string) string {
	switch verb {
	case "add":
		return green
	case "delete":
		return red
	}
	return yellow
}
