// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"
)

// A script makes a row of passes out of bytes.
type script struct{ data []byte }

func (s *script) next(n int) int {
	if len(s.data) == 0 {
		return 0
	}
	b := int(s.data[0])
	s.data = s.data[1:]
	return b % n
}

// pass is a pass over up to four sets and five objects, in which anything can
// happen: sets come, go, fail and are held; objects move, are shared and change.
func (s *script) pass() LayoutParams {
	p := LayoutParams{Rendering: &Rendering{}, Keep: map[string]string{}}
	var ids []string
	for _, id := range []string{"1", "2", "3", "4"} {
		switch s.next(6) {
		case 0:
		case 1:
			p.Keep["prs-"+id] = "held"
		case 2:
			p.Keep["prs-"+id] = "held"
			fallthrough
		case 3:
			p.Rendering.Failed = append(p.Rendering.Failed, SetError{Set: len(ids), Err: errors.New("broken")})
			fallthrough
		default:
			ids = append(ids, id)
		}
	}
	p.Sets = prs(ids...)
	for n := range 5 {
		var sets []int
		producers := s.next(16)
		for i := range p.Sets {
			failed := slices.ContainsFunc(p.Rendering.Failed, func(f SetError) bool { return f.Set == i })
			if producers&(1<<i) != 0 && !failed {
				sets = append(sets, i)
			}
		}
		if len(sets) == 0 {
			continue
		}
		object := configMap(fmt.Sprintf("object-%d", n), fmt.Sprintf("of %s, %d", p.Sets[sets[0]].Name, s.next(2)), sets...)
		object.Static = n == 0
		p.Rendering.Objects = append(p.Rendering.Objects, object)
	}
	return p
}

// The law of layouts: after any row of passes every object has one file, the lock
// and the folder agree, a second pass changes nothing, what is kept keeps its bytes,
// and what was rendered is there.
func FuzzLayout(f *testing.F) {
	f.Add([]byte("\x04\x04\x04\x04\x0f\x00\x0f\x00\x01\x00\x02\x00\x04\x00\x03\x04\x03\x04\x0e\x01\x0e\x01\x02\x00"))
	f.Add([]byte("\x05\x05\x00\x00\x03\x00\x03\x00\x01\x00\x02\x00\x00\x01\x05\x05\x00\x0f\x01\x0f\x01\x0f\x01\x0f\x01\x0f\x01"))
	f.Add([]byte(strings.Repeat("\x04\x03\x01\x02\x0b\x01\x07", 12)))
	f.Fuzz(checkPasses)
}

// The same law over a hundred rows that are always the same.
func TestLayoutLaw(t *testing.T) {
	random := rand.NewChaCha8([32]byte{1})
	for range 100 {
		data := make([]byte, 120)
		random.Read(data) // never fails
		checkPasses(t, data)
	}
}

func checkPasses(t *testing.T, data []byte) {
	folder := newFolder(t)
	folder.fast = true
	s := &script{data: data}
	for range 6 {
		before := maps.Clone(folder.files)
		oldShared := map[string]SharedFile{}
		if folder.lock != nil {
			oldShared = folder.lock.Shared
		}
		p := s.pass()
		out := folder.apply(p)
		if folder.checkPass(p, out, before, oldShared); t.Failed() {
			t.Fatalf("sets %v, keep %v, failed %v, before %v, after %v", p.Sets, p.Keep, p.Rendering.Failed,
				slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(folder.files)))
		}
	}
}

func (f *folder) checkPass(p LayoutParams, out *Output, before map[string]string, oldShared map[string]SharedFile) {
	f.t.Helper()
	places := map[string]string{}
	for _, file := range f.names() {
		if other, twice := places[path.Base(file)]; twice {
			f.t.Errorf("one object in %s and %s", other, file)
		}
		places[path.Base(file)] = file
	}
	for _, object := range p.Rendering.Objects {
		kept := true
		for _, set := range object.Sets {
			_, held := p.Keep[p.Sets[set].Name]
			kept = kept && held
		}
		if _, ok := places[FileName(object.ID)]; !ok && !kept {
			f.t.Errorf("%s was rendered and is nowhere", object.ID)
		}
	}
	for file, content := range before {
		folder := path.Dir(file)
		_, held := p.Keep[folder]
		held = held || slices.ContainsFunc(p.Rendering.Failed, func(e SetError) bool { return p.Sets[e.Set].Name == folder })
		if held && f.files[file] != content {
			f.t.Errorf("%s is kept and changed", file)
		}
	}
	for name, shared := range oldShared {
		if len(shared.Sets) == 0 {
			continue
		}
		first := shared.Sets[0]
		_, held := p.Keep[first]
		held = held || slices.ContainsFunc(p.Rendering.Failed, func(e SetError) bool { return p.Sets[e.Set].Name == first })
		if file := sharedDir + "/" + name; held && f.files[file] != before[file] {
			f.t.Errorf("%s has its content from %s, which is kept, and changed", file, first)
		}
	}
	for name := range f.lock.Shared {
		for _, set := range f.lock.Shared[name].Sets {
			if f.lock.Set(set) == nil {
				f.t.Errorf("%s is recorded for %s, which is gone", name, set)
			}
		}
	}
	if len(out.Failed) != len(p.Rendering.Failed) {
		f.t.Errorf("%d sets failed, %d are reported", len(p.Rendering.Failed), len(out.Failed))
	}
}
