// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// The format of inputs.lock is described in docs/inputs-lock.md. The version comes
// first, in a line of its own, in every format to come.
const (
	lockHeader  = "# What this folder was rendered from. Written by renderer, applied by nobody.\n"
	versionLine = "version: "
	// checksumLine, the second, holds the SHA-256 of all that follows it.
	checksumLine = "checksum: \""
	allSets      = "all"
)

// Encode returns the bytes of inputs.lock.
func (l *Lock) Encode() []byte {
	out := make([]byte, 0, 256*(1+len(l.Shared))+512*len(l.Sets))
	out = append(out, lockHeader...)
	out = append(out, versionLine...)
	version := int64(1)
	if l.Flux != nil {
		version = 2
	}
	out = strconv.AppendInt(out, version, 10)
	out = append(out, '\n')
	out = append(out, checksumLine...)
	sum := len(out)
	out = append(out, make([]byte, hex.EncodedLen(sha256.Size))...)
	out = append(out, '"', '\n')
	body := len(out)
	doc := map[string]any{
		"resourceSet":   l.ResourceSet,
		"kustomization": l.Kustomization,
	}
	if l.Flux != nil {
		doc["flux"] = l.Flux.document()
	}
	if len(l.Keys) > 0 {
		doc["keys"] = textMap(l.Keys)
	}
	if len(l.Shared) > 0 {
		shared := make(map[string]any, len(l.Shared))
		for name, file := range l.Shared {
			shared[name] = file.document()
		}
		doc["shared"] = shared
	}
	sets := make([]any, len(l.Sets))
	for i := range l.Sets {
		sets[i] = l.Sets[i].document()
	}
	doc["sets"] = sets
	out = appendMap(out, doc, 0)
	digest := sha256.Sum256(out[body:])
	hex.Encode(out[sum:], digest[:])
	return out
}

// checkSum reports whether the rest of a lock is what its checksum says. It is no
// proof of anything, for who edits the one can edit the other: it tells an edit by
// hand, which looks like a record and is none, from what a renderer wrote. A lock
// without one is older than checksums.
func checkSum(want string, rest string) bool {
	if strings.Contains(rest, "\r\n") {
		rest = strings.ReplaceAll(rest, "\r\n", "\n") // a checkout on Windows that was committed
	}
	digest := sha256.Sum256([]byte(rest))
	return want == hex.EncodeToString(digest[:])
}

func (f SharedFile) document() map[string]any {
	doc := map[string]any{"blob": f.Blob}
	switch {
	case f.All:
		doc["sets"] = allSets
	case len(f.Sets) > 0:
		doc["sets"] = textList(f.Sets)
	}
	if f.Part > 1 {
		doc["part"] = int64(f.Part)
	}
	if f.Step != "" {
		doc["step"] = f.Step
	}
	return doc
}

func (s *LockedSet) document() map[string]any {
	doc := map[string]any{"name": s.Name, "files": textMap(s.Files)}
	if s.ID != "" {
		doc["id"] = s.ID
	}
	if s.Provider != "" {
		doc["provider"] = s.Provider
	}
	if s.Inline {
		doc["inline"] = true
	}
	if s.Kept {
		doc["kept"] = true
	}
	if len(s.Inputs) > 0 {
		doc["inputs"] = s.Inputs
	}
	if len(s.Sensitive) > 0 {
		doc["sensitive"] = textList(s.Sensitive)
	}
	if s.Part > 1 {
		doc["part"] = int64(s.Part)
	}
	if len(s.Steps) > 0 {
		doc["steps"] = textMap(s.Steps)
	}
	return doc
}

func textMap(m map[string]string) map[string]any {
	out := make(map[string]any, len(m))
	for key, value := range m {
		out[key] = value
	}
	return out
}

func textList(texts []string) []any {
	out := make([]any, len(texts))
	for i, text := range texts {
		out[i] = text
	}
	return out
}

// WithoutChecksum is an encoded lock as it was before there were checksums.
func WithoutChecksum(data []byte) []byte {
	begin := bytes.Index(data, []byte("\n"+checksumLine))
	if begin < 0 {
		return data
	}
	end := begin + 1 + bytes.IndexByte(data[begin+1:], '\n')
	return slices.Concat(data[:begin], data[end:])
}

// ParseLock reads inputs.lock. The error is a [*NewerLockError] or a
// [*DamagedLockError]: a lock is either understood whole or not at all, and one that
// was edited by hand is damaged. No path that a parsed lock holds leaves the
// ResourceSet's folder.
func ParseLock(data []byte) (*Lock, error) {
	lock, intact, err := readLock(data)
	if err == nil && !intact {
		return nil, &DamagedLockError{Msg: "was edited by hand: what it records is not used"}
	}
	return lock, err
}

// ReadLock is ParseLock without the checksum: for those who look at what somebody
// wrote, or at a part of a lock, and act on nothing in it.
func ReadLock(data []byte) (*Lock, error) {
	lock, _, err := readLock(data)
	return lock, err
}

func readLock(data []byte) (lock *Lock, intact bool, err error) {
	if len(data) > maxLockBytes {
		return nil, false, &DamagedLockError{Msg: fmt.Sprintf("larger than %d bytes", maxLockBytes)}
	}
	r := &yamlReader{data: string(data)}
	r.next()
	text, ok := strings.CutPrefix(r.text, versionLine)
	version, err := strconv.ParseInt(text, 10, 64)
	if !ok || err != nil || version < 1 || r.indent > 0 {
		return nil, false, &DamagedLockError{Line: r.line, Msg: "does not begin with a version"}
	}
	if version > LockVersion {
		return nil, false, &NewerLockError{Version: version}
	}
	_, summed, _ := strings.Cut(r.data, "\n")
	doc, err := readYAML(r)
	if err != nil {
		damaged := &DamagedLockError{Msg: err.Error()}
		if at := (*lineError)(nil); errors.As(err, &at) {
			damaged.Line, damaged.Msg = at.line, at.msg
		}
		return nil, false, damaged
	}
	fields := fieldReader{doc: doc}
	sum := fields.text("checksum")
	lock = &Lock{
		ResourceSet:   fields.text("resourceSet"),
		Kustomization: fields.text("kustomization"),
		Keys:          fields.texts("keys"),
	}
	shared := fields.object("shared")
	sets := fields.list("sets")
	if version >= 2 {
		lock.readFlux(&fields, fields.object("flux"))
	}
	fields.end("")
	lock.readShared(&fields, shared)
	lock.readSets(&fields, sets)
	if fields.err == nil {
		fields.err = lock.check()
	}
	if fields.err != nil {
		return nil, false, &DamagedLockError{Msg: fields.err.Error()}
	}
	return lock, sum == "" || checkSum(sum, summed), nil
}

func (l *Lock) readShared(fields *fieldReader, shared map[string]any) {
	for name, value := range shared {
		f := fieldReader{}
		f.doc, _ = value.(map[string]any)
		file := SharedFile{Blob: f.text("blob")}
		if f.doc["sets"] == allSets {
			file.All = true
			delete(f.doc, "sets")
		} else {
			file.Sets = f.textList("sets")
		}
		file.Part, file.Step = f.number("part"), f.text("step")
		f.end("shared " + name)
		fields.fail(f.err)
		if l.Shared == nil {
			l.Shared = make(map[string]SharedFile, len(shared))
		}
		l.Shared[name] = file
	}
}

func (l *Lock) readSets(fields *fieldReader, sets []any) {
	if len(sets) > 0 {
		l.Sets = make([]LockedSet, 0, len(sets))
	}
	for i, value := range sets {
		f := fieldReader{}
		f.doc, _ = value.(map[string]any)
		set := LockedSet{
			Name:      f.text("name"),
			ID:        f.text("id"),
			Provider:  f.text("provider"),
			Inline:    f.bool("inline"),
			Kept:      f.bool("kept"),
			Inputs:    f.object("inputs"),
			Sensitive: f.textList("sensitive"),
			Files:     f.texts("files"),
			Part:      f.number("part"),
			Steps:     f.texts("steps"),
		}
		f.end("sets[" + strconv.Itoa(i) + "]")
		fields.fail(f.err)
		l.Sets = append(l.Sets, set)
	}
}

// check is what paths and hashes must look like before anything is deleted by them.
func (l *Lock) check() error {
	if l.Kustomization != "" && !isBlob(l.Kustomization) {
		return errors.New("kustomization is no Git blob")
	}
	for _, name := range slices.Sorted(maps.Keys(l.Shared)) {
		if err := checkFile(name, l.Shared[name].Blob); err != nil {
			return fmt.Errorf("shared: %w", err)
		}
	}
	if l.Flux != nil {
		if err := l.Flux.check(); err != nil {
			return err
		}
	}
	names := make(map[string]bool, len(l.Sets))
	for i := range l.Sets {
		set := &l.Sets[i]
		if !isFolder(set.Name) {
			return fmt.Errorf("sets[%d]: %q is no folder name", i, cut(set.Name, maxFolderName))
		}
		if names[set.Name] {
			return fmt.Errorf("sets[%d]: a second set %q", i, set.Name)
		}
		names[set.Name] = true
		for name, blob := range set.Files {
			if err := checkFile(name, blob); err != nil {
				return fmt.Errorf("set %s: %w", set.Name, err)
			}
		}
	}
	return nil
}

// isFolder says that name is one that a set's folder can have.
func isFolder(name string) bool {
	return name != "" && len(name) <= maxFolderName && slug(name) == name && !isReserved(name)
}

// checkFile refuses file names that we do not make.
func checkFile(name, blob string) error {
	if !isManifestName(name) {
		return fmt.Errorf("%q is no name of a manifest", cut(name, 2*maxFolderName))
	}
	if !isBlob(blob) {
		return fmt.Errorf("%s: no Git blob", name)
	}
	return nil
}

// isBlob says that text is the hash of a Git blob.
func isBlob(text string) bool {
	return len(text) == 40 && strings.Trim(text, "0123456789abcdef") == ""
}

// A fieldReader takes the fields out of a document, remembers the first fault and
// finds what is left over.
type fieldReader struct {
	doc map[string]any
	err error
}

func (f *fieldReader) fail(err error) {
	if f.err == nil {
		f.err = err
	}
}

// take removes and returns a field.
func take[T any](f *fieldReader, name, what string) T {
	value, ok := f.doc[name]
	delete(f.doc, name)
	typed, is := value.(T)
	if ok && !is {
		f.fail(fmt.Errorf("%s is not %s", name, what))
	}
	return typed
}

func (f *fieldReader) text(name string) string { return take[string](f, name, "a text") }
func (f *fieldReader) bool(name string) bool   { return take[bool](f, name, "true or false") }
func (f *fieldReader) list(name string) []any  { return take[[]any](f, name, "a list") }
func (f *fieldReader) object(name string) map[string]any {
	return take[map[string]any](f, name, "a map")
}

func (f *fieldReader) texts(name string) map[string]string {
	values := f.object(name)
	if values == nil {
		return nil
	}
	texts := make(map[string]string, len(values))
	for key, value := range values {
		text, ok := value.(string)
		if !ok {
			f.fail(fmt.Errorf("%s: %s is not a text", name, key))
		}
		texts[key] = text
	}
	return texts
}

func (f *fieldReader) textList(name string) []string {
	values := f.list(name)
	if values == nil {
		return nil
	}
	texts := make([]string, 0, len(values))
	for _, value := range values {
		text, ok := value.(string)
		if !ok {
			f.fail(fmt.Errorf("%s is not a list of texts", name))
		}
		texts = append(texts, text)
	}
	return texts
}

// end fails when fields are left that nobody took, and says where faults are.
func (f *fieldReader) end(where string) {
	if f.err == nil && len(f.doc) > 0 {
		f.err = fmt.Errorf("unknown field %q", cut(slices.Min(slices.Collect(maps.Keys(f.doc))), maxFolderName))
	}
	if f.err != nil && where != "" {
		f.err = fmt.Errorf("%s: %w", where, f.err)
	}
}
