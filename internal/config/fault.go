// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// A Fault is one thing that is wrong (or, as a warning, doubtful) in a
// configuration file.
type Fault struct {
	File string
	Line int    // counts from 1; 0 is unknown
	Path string // "target.path", or empty
	Msg  string
	Hint string // empty when there is nothing to suggest
}

// Error is "file:line: path: message", without the hint.
func (f *Fault) Error() string {
	var b strings.Builder
	b.WriteString(f.File)
	if f.Line > 0 {
		b.WriteString(":" + strconv.Itoa(f.Line))
	}
	if f.Path != "" {
		b.WriteString(": " + f.Path)
	}
	b.WriteString(": " + f.Msg)
	return b.String()
}

// Suggestion is the hint line that is printed below the error.
func (f *Fault) Suggestion() string { return f.Hint }

// Faults are all faults of a file, in the order of its lines.
type Faults []*Fault

// Error is one line for each fault.
func (fs Faults) Error() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap makes each fault visible to errors.As and to printers of hints.
func (fs Faults) Unwrap() []error {
	errs := make([]error, len(fs))
	for i, f := range fs {
		errs[i] = f
	}
	return errs
}

// sorted orders by line, keeping the order of faults on one line.
func sorted(fs Faults) Faults {
	slices.SortStableFunc(fs, func(a, b *Fault) int { return cmp.Compare(a.Line, b.Line) })
	return fs
}
