// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"resourceset.example/renderer/internal/config"
)

// Limits of a commit message (DESIGN, Commits). The subject's is Git's own
// convention; the others keep a message readable when hundreds of sets change.
const (
	maxSubject  = 72  // characters
	maxBody     = 20  // lines of inputs
	maxTrailers = 100 // of one key; after that a count
)

// trailerHeld names what a commit leaves as somebody left it although inputs.lock
// cannot mark it as kept: the objects of no single set.
const trailerHeld = "Held"

// A changeKind is what happened to an input set in a commit.
type changeKind int

const (
	added changeKind = iota
	updated
	removed
)

// A setChange is one input set that a commit adds, updates or removes. All its
// texts may come from outside: they are made harmless when they are printed.
type setChange struct {
	Kind     changeKind
	Name     string // the set's folder
	Provider string // name of its provider; empty for a permutation
	Detail   string // a branch or another field that tells a person which one it is
	OldSHA   string // of a change request
	NewSHA   string
	Reason   string // "added by GitHubPullRequest podinfo-pull-requests"
}

// label is the set's name without its provider's: "12" for
// "podinfo-pull-requests-12". Names hold only [a-z0-9.-], so it is safe to print.
func (c setChange) label() string {
	if rest, ok := strings.CutPrefix(c.Name, c.Provider+"-"); ok && c.Provider != "" && rest != "" {
		return rest
	}
	return c.Name
}

// A message is what one commit says.
type message struct {
	ResourceSet  string // namespace/name
	Whole        string // "add" or "remove" when the whole ResourceSet came or went
	Other        string // what changed when no input set did: "update shared objects"
	Changes      []setChange
	Revision     string // of the definitions: main@sha1:…
	InputsDigest string // of inputs.lock: sha256:…
	Trigger      string
	Held         []string // that the record cannot mark as kept
	Undoes       string   // commit of somebody else that this one undoes
	Version      string   // of the program
	Approved     string   // the approval that a removal rests on
	SkipCI       string   // a mark for the forge's CI: config.SkipCISubject or config.SkipCITrailer
}

// String is the whole message: subject, list of inputs, trailers.
func (m message) String() string {
	var b strings.Builder
	b.WriteString(m.subject())
	b.WriteString("\n\n")
	if body := m.body(); body != "" {
		b.WriteString(body)
		b.WriteString("\n")
	}
	if m.SkipCI == config.SkipCISubject {
		b.WriteString("[skip ci]\n\n")
	}
	m.trailers(&b)
	return b.String()
}

func (m message) subject() string {
	head := m.ResourceSet + ": "
	if utf8.RuneCountInString(head) > maxSubject-24 {
		head = cut(m.ResourceSet, maxSubject-26) + ": "
	}
	room := maxSubject - utf8.RuneCountInString(head)
	if m.Whole == "remove" {
		return head + "remove ResourceSet"
	}
	parts := m.groups()
	if len(parts) == 0 {
		return head + cut(m.Other, room)
	}
	// Name as many sets as fit; the first of every kind, at the least, is a count.
	for shown := 8; shown > 0; shown-- {
		texts := make([]string, len(parts))
		for i, p := range parts {
			texts[i] = p.verb + " " + enumerate(p.labels, shown)
		}
		if s := strings.Join(texts, ", "); utf8.RuneCountInString(s) <= room {
			return head + s
		}
	}
	texts := make([]string, len(parts))
	for i, p := range parts {
		texts[i] = p.verb + " " + strconv.Itoa(len(p.labels))
	}
	return head + cut(strings.Join(texts, ", "), room)
}

type group struct {
	verb   string
	labels []string
}

// groups are the labels of the changes by kind, in the order of the kinds.
func (m message) groups() []group {
	verbs := []string{"add", "update", "remove"}
	groups := make([]group, len(verbs))
	for i, v := range verbs {
		groups[i].verb = v
	}
	for _, c := range m.Changes {
		groups[c.Kind].labels = append(groups[c.Kind].labels, c.label())
	}
	return slices.DeleteFunc(groups, func(g group) bool { return len(g.labels) == 0 })
}

// enumerate is "12, 13 and 4 more".
func enumerate(labels []string, shown int) string {
	if len(labels) <= shown {
		return strings.Join(labels, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(labels[:shown], ", "), len(labels)-shown)
}

// body lists the sets: label, detail, commit, reason.
func (m message) body() string {
	shown := m.Changes[:min(len(m.Changes), maxBody)]
	width := 0
	for _, c := range shown {
		width = max(width, utf8.RuneCountInString(c.label()))
	}
	var b strings.Builder
	for _, c := range shown {
		cells := []string{c.label() + strings.Repeat(" ", width-utf8.RuneCountInString(c.label()))}
		for _, cell := range []string{cut(harmless(c.Detail), 60), shaChange(c.OldSHA, c.NewSHA), cut(harmless(c.Reason), 120)} {
			if cell != "" {
				cells = append(cells, cell)
			}
		}
		b.WriteString(strings.TrimRight(strings.Join(cells, "  "), " "))
		b.WriteString("\n")
	}
	if more := len(m.Changes) - maxBody; more > 0 {
		fmt.Fprintf(&b, "and %d more\n", more)
	}
	return b.String()
}

// withoutTrailers is a whole message without its last paragraph.
func withoutTrailers(message string) string {
	message = strings.TrimSpace(message)
	if rest, _, ok := cutLast(message, "\n\n"); ok {
		return strings.TrimSpace(rest)
	}
	return message
}

// trailers are in the form of git-interpret-trailers(1): the last paragraph, one
// "Key: value" a line.
func (m message) trailers(b *strings.Builder) {
	write := func(key, value string) {
		if value != "" {
			fmt.Fprintf(b, "%s: %s\n", key, oneLine(value))
		}
	}
	write("ResourceSet", m.ResourceSet)
	write("Source-Revision", m.Revision)
	write("Inputs-Digest", m.InputsDigest)
	for kind, key := range []string{"Input-Added", "Input-Updated", "Input-Removed"} {
		n := 0
		for _, c := range m.Changes {
			if c.Kind != changeKind(kind) {
				continue
			}
			if n++; n <= maxTrailers {
				write(key, c.Name)
			}
		}
		if n > maxTrailers {
			write(key, fmt.Sprintf("+%d more", n-maxTrailers))
		}
	}
	for _, set := range m.Held {
		write(trailerHeld, set)
	}
	write(trailerApproved, m.Approved)
	write("Undoes", m.Undoes)
	write(trailerVersion, m.Version)
	write("Trigger", m.Trigger)
	if m.SkipCI == config.SkipCITrailer {
		write("skip-checks", "true")
	}
}

// shaChange is "8492c0b → 8166bde", or the one commit that there is.
func shaChange(before, after string) string {
	before, after = shortSHA(before), shortSHA(after)
	if before != "" && after != "" && before != after {
		return "sha " + before + " → " + after
	}
	if after == "" {
		return before
	}
	return after
}

// shortSHA is the first seven digits of a commit ID; another text is none.
func shortSHA(sha string) string {
	if len(sha) < 7 || strings.Trim(sha, "0123456789abcdefABCDEF") != "" {
		return ""
	}
	return sha[:7]
}

// harmless takes from an outside text what a forge would act on when it finds it
// in a commit message: line breaks and other control characters, and the marks
// that make mentions, references to issues and links ("@", "#", "GH-", "://").
// The marks are replaced by their full-width forms, which read the same and mean
// nothing.
func harmless(s string) string {
	s = oneLine(s)
	return strings.NewReplacer("@", "＠", "#", "＃", "!", "！", "://", "：//", "GH-", "GH‑", "gh-", "gh‑").Replace(s)
}

// oneLine is s in valid UTF-8, with one space for every run of white space and
// control or invisible characters.
func oneLine(s string) string {
	fields := strings.FieldsFunc(strings.ToValidUTF8(s, "�"), func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) ||
			r == '\u2028' || r == '\u2029'
	})
	return strings.Join(fields, " ")
}

// cut shortens s to at most n characters, and shows that it did.
func cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	runes := []rune(s)
	return string(runes[:max(n-1, 0)]) + "…"
}
