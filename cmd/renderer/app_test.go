// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"resourceset.example/renderer/internal/reconcile"
)

// A commit that changes no input set is told in its own words.
func TestDidWhat(t *testing.T) {
	for want, c := range map[string]reconcile.CommitReport{
		"apps/app1: 0 added, 1 updated, 0 removed":  {ResourceSet: "apps/app1", Updated: 1, Message: "apps/app1: update a\n\na  changed"},
		"apps/app1: remove":                         {ResourceSet: "apps/app1", Message: "apps/app1: remove"},
		"list only the ResourceSets that there are": {Message: "list only the ResourceSets that there are"},
		"apps/app1: list what there is":             {ResourceSet: "apps/app1", Message: "apps/app1: list what there is\n\nmore"},
		"apps/app1: 0 added, 0 updated, 0 removed":  {ResourceSet: "apps/app1"},
	} {
		if got := didWhat(&c); got != want {
			t.Errorf("%+v: %q, want %q", c, got, want)
		}
	}
}
