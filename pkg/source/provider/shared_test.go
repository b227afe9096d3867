// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"errors"
	"runtime"
	"testing"
)

func TestShare(t *testing.T) {
	shared, made := &Shared{}, 0
	get := func(key string) *[1000]int {
		t.Helper()
		thing, err := Share(shared, key, func() (*[1000]int, error) { made++; return new([1000]int), nil })
		if err != nil {
			t.Fatal(err)
		}
		return thing
	}
	a := get("a")
	if get("a") != a || get("b") == a || made != 2 {
		t.Errorf("made %d", made)
	}
	runtime.KeepAlive(a)
	runtime.GC() // nobody uses "a" and "b" any more
	kept := get("c")
	if len(shared.things) != 1 {
		t.Errorf("%d things are kept, want the one in use", len(shared.things))
	}
	runtime.KeepAlive(kept)
	broken := errors.New("broken")
	if _, err := Share(shared, "d", func() (*int, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if n, err := Share(nil, "a", func() (*int, error) { return new(int), nil }); n == nil || err != nil {
		t.Errorf("without sharing: %v", err)
	}
}

func TestIdentity(t *testing.T) {
	seen := map[string]int{}
	for i, cfg := range []Config{
		{},
		{Secret: Secret{}},
		{Secret: Secret{"a": []byte("b")}},
		{CertSecret: Secret{"a": []byte("b")}},
		{Secret: Secret{"a": []byte("c")}},
		{Secret: Secret{"a": []byte("b"), "c": nil}},
	} {
		if first, ok := seen[cfg.Identity()]; ok {
			t.Errorf("configs %d and %d have one identity", first, i)
		}
		seen[cfg.Identity()] = i
	}
	one, two := Config{Secret: Secret{"a": []byte("b"), "c": []byte("d")}}, Config{Secret: Secret{"c": []byte("d"), "a": []byte("b")}}
	if one.Identity() != two.Identity() {
		t.Error("the identity depends on the order of keys")
	}
}
