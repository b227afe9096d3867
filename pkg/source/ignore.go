// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
)

// ignoreFile has patterns as in .gitignore. Flux's source-controller leaves out
// what they match, so what is in there was never meant for Flux: charts with
// their templates, most often.
const ignoreFile = ".sourceignore"

// ignored says whether an entry is left out: by the patterns of the ignore files
// at and above its folder, or because source-controller leaves it out by default,
// as far as that could hold YAML.
func ignored(at string, e Entry, patterns []gitignore.Pattern) bool {
	if e.Kind == Folder && slices.Contains([]string{".git", ".github", ".circleci"}, e.Name) {
		return true
	}
	if e.Kind != Folder && slices.Contains([]string{
		".travis.yml", ".gitlab-ci.yml", "appveyor.yml", ".drone.yml", "cloudbuild.yaml",
		"codeship-services.yml", "codeship-steps.yml",
	}, e.Name) {
		return true
	}
	return len(patterns) > 0 && gitignore.NewMatcher(patterns).Match(strings.Split(at, "/"), e.Kind == Folder)
}

// patternsAbove are the patterns that hold for a folder by the ignore files of
// the folders above it.
func (v *view) patternsAbove(folder string) ([]gitignore.Pattern, error) {
	if folder == "" {
		return nil, nil
	}
	patterns, err := v.patternsAbove(parent(folder))
	if err != nil {
		return nil, err
	}
	return v.patterns(parent(folder), patterns)
}

// patterns adds those of a folder's own ignore file. Later ones override earlier ones.
func (v *view) patterns(folder string, above []gitignore.Pattern) ([]gitignore.Pattern, error) {
	e, err := v.entry(folder, ignoreFile)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && e.Kind != File:
		return above, nil
	case err != nil:
		return nil, err
	}
	data, err := v.content(path.Join(folder, ignoreFile))
	if err != nil {
		return nil, err
	}
	var domain []string
	if folder != "" {
		domain = strings.Split(folder, "/")
	}
	patterns := slices.Clip(above)
	for line := range strings.Lines(string(data)) {
		line = strings.TrimRight(line, "\r\n")
		if text := strings.TrimSpace(line); text != "" && !strings.HasPrefix(text, "#") {
			patterns = append(patterns, gitignore.ParsePattern(line, domain))
		}
	}
	return patterns, nil
}
