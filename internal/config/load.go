// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"

	yaml "go.yaml.in/yaml/v3"
)

// maxSize caps what is read: a configuration is a page of text.
const maxSize = 1 << 20

// Read reads the file at path ("-" is stdin), loads it, and checks what it
// refers to on this machine. The error is of type [Faults].
func Read(path string, stdin io.Reader) (*Config, []*Fault, error) {
	file, data, err := readAll(path, stdin)
	if err != nil {
		return nil, nil, err
	}
	cfg, warnings, err := Load(file, data)
	if err != nil {
		return nil, warnings, err
	}
	return cfg, warnings, cfg.CheckFiles()
}

func readAll(path string, stdin io.Reader) (string, []byte, error) {
	file, in := path, stdin
	if path == "-" {
		file = "stdin"
	} else {
		f, err := os.Open(path)
		if err != nil {
			return path, nil, Faults{openFault(path, err)}
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, maxSize+1))
	if err != nil {
		return file, nil, Faults{{File: file, Msg: "reading: " + cause(err)}}
	}
	if len(data) > maxSize {
		return file, nil, Faults{{File: file, Msg: "is larger than 1 MiB", Hint: "is it the right file?"}}
	}
	return file, data, nil
}

func openFault(path string, err error) *Fault {
	f := &Fault{File: path, Msg: cause(err)}
	if errors.Is(err, fs.ErrNotExist) {
		f.Msg = "there is no such file"
		f.Hint = "name the configuration with --config FILE; config.example.yaml shows every field"
	}
	return f
}

// cause is the text of a file error without the path, which the fault names already.
func cause(err error) string {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err.Error()
	}
	return err.Error()
}

// Load reads a configuration from data; file is its name in messages. The
// error, if there is one, is of type [Faults] and holds everything that is
// wrong. Warnings hold what is doubtful and what this version does not act on.
func Load(file string, data []byte) (*Config, []*Fault, error) {
	cfg := Default()
	d := &decoder{file: file, root: reflect.TypeFor[Config](), lines: map[string]int{}}
	cfg.file, cfg.lines = file, d.lines
	if node := d.parse(data); node != nil {
		d.decode(node, reflect.ValueOf(cfg).Elem(), "")
	}
	if len(d.lines) == 0 && len(d.faults) > 0 {
		return nil, nil, sorted(d.faults) // not YAML, or not a configuration at all
	}
	v := &validator{cfg: cfg, decoded: d.faults}
	v.all()
	if faults := append(d.faults, v.faults...); len(faults) > 0 {
		return nil, sorted(v.warnings), sorted(faults)
	}
	return cfg, sorted(v.warnings), nil
}

// parse is the root node of the only document, or nil when there is none.
func (d *decoder) parse(data []byte) *yaml.Node {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil // an empty file: the required fields will be missed
	case err != nil:
		d.syntax(err)
		return nil
	}
	var second yaml.Node
	switch err := dec.Decode(&second); {
	case err == nil:
		d.fault(second.Line, "", "keep one document, without --- lines", "a second YAML document starts here")
	case !errors.Is(err, io.EOF):
		d.syntax(err)
	}
	return doc.Content[0]
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(?s:(.*))$`)

func (d *decoder) syntax(err error) {
	line, msg := 0, err.Error()
	if m := yamlLine.FindStringSubmatch(msg); m != nil {
		line, _ = strconv.Atoi(m[1]) // no digits: line 0, unknown
		msg = m[2]
	}
	d.fault(line, "", "check indentation, quotes and brackets around this line", "this is not YAML: %s", msg)
}

// CheckFiles reports what the configuration refers to on this machine and is
// not there: the directory of secrets, as far as a secret is named, and each
// secret named. The error is of type [Faults]. The state folder is not looked
// at; it is made when it is missing.
func (c *Config) CheckFiles() error {
	var faults Faults
	if c.Secrets.Kubernetes {
		return nil
	}
	for _, use := range c.secretUses() {
		dir := filepath.Join(c.Secrets.Directory, use.ref.Namespace, use.ref.Name)
		info, err := os.Stat(dir)
		switch {
		case err == nil && info.IsDir():
		case err == nil:
			faults = append(faults, c.faultAt(use.path, "make it a folder with one file for each key",
				"secret %s: %s is not a folder", use.ref, dir))
		default:
			hint := fmt.Sprintf("make the folder %s with one file for each key, or correct secrets.directory", dir)
			faults = append(faults, c.faultAt(use.path, hint, "secret %s: %s: %s", use.ref, dir, cause(err)))
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return sorted(faults)
}

type secretUse struct {
	path string
	ref  SecretRef
}

// secretUses are the secrets that the file itself names.
func (c *Config) secretUses() []secretUse {
	var uses []secretUse
	for _, u := range []secretUse{
		{"source.auth.secret", c.Source.Auth.Secret},
		{"source.verify.secret", c.Source.Verify.Secret},
		{"target.auth.secret", c.Target.Auth.Secret},
		{"target.pullRequest.secret", c.Target.PullRequest.Secret},
		{"target.commit.signing.secret", c.Target.Commit.Signing.Secret},
	} {
		if !u.ref.IsZero() && c.isSet(u.path) {
			uses = append(uses, u)
		}
	}
	return uses
}

// faultAt is a fault at a field, or at its nearest parent that the file sets.
func (c *Config) faultAt(path, hint, format string, args ...any) *Fault {
	return &Fault{File: c.file, Line: lineOf(c.lines, path), Path: path, Msg: fmt.Sprintf(format, args...), Hint: hint}
}
