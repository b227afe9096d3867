// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// onlyHeld are the one plan that is held.
func (w *world) onlyHeld() HeldPlan {
	w.t.Helper()
	plans, err := OpenHeld(w.cfg.State.Directory).Plans()
	if err != nil || len(plans) != 1 {
		w.t.Fatalf("held plans: %v, %v", plans, err)
	}
	return plans[0]
}

// An approval in the definitions is used once for ever: the commit that uses it says so,
// and losing the state folder changes nothing.
func TestRule05_ApprovalInDefinitionsOutlivesTheStateFolder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.cfg.Prune.Confirm.Fetches = 0 // only a person
	w.ok()
	w.tenants()
	w.problem(w.unchanged(w.once), "held back")
	digest := w.onlyHeld().Digest
	w.define(map[string]string{ApprovalFile(digest): string(ApprovalText("olga", w.clock.Now()))})
	w.ok()
	w.has()
	if message := w.repo.Git("log", "-1", "--format=%B"); !strings.Contains(message, "\nApproved: "+digest+"/") {
		t.Errorf("message:\n%s", message)
	}
	w.forget()
	w.tenants("red", "blue")
	w.ok()
	w.tenants()
	w.problem(w.unchanged(w.once), "held back")
	w.has("red", "blue")
}

// Killed between the push and the note in the state folder, the approval is used all the
// same; another one of the same plan is not.
func TestRule05_ApprovalIsUsedByThePush(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.cfg.Prune.Confirm.Fetches = 0
	w.ok()
	w.tenants()
	w.unchanged(w.once)
	held := OpenHeld(w.cfg.State.Directory)
	digest := w.onlyHeld().Digest
	if err := held.Approve(digest, "olga", w.clock.Now()); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(w.cfg.State.Directory, "held", approvedName, digest)
	note, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	w.ok()
	w.has()
	w.restart()
	if err := os.WriteFile(file, note, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(w.cfg.State.Directory, "held", heldName)); err != nil {
		t.Fatal(err)
	}
	w.tenants("red", "blue")
	w.ok()
	w.tenants()
	w.problem(w.unchanged(w.once), "held back")
	if err := held.Approve(digest, "olga", w.clock.Now()); err != nil {
		t.Fatal(err)
	}
	w.ok()
	w.has()
}

// An approval is of one event. When the source recovers before it is used, it is worth
// nothing any more, whether it was committed or not.
func TestRule05_ApprovalEndsWhenTheSourceRecovers(t *testing.T) {
	t.Parallel()
	for _, committed := range []bool{false, true} {
		w := newWorld(t)
		w.cfg.Prune.Confirm.Fetches = 0
		w.ok()
		w.tenants()
		w.unchanged(w.once)
		digest := w.onlyHeld().Digest
		approve := func() {
			t.Helper()
			w.clock.Advance(time.Minute) // another approval, not the same file again
			if committed {
				w.define(map[string]string{ApprovalFile(digest): string(ApprovalText("olga", w.clock.Now()))})
			} else if err := OpenHeld(w.cfg.State.Directory).Approve(digest, "olga", w.clock.Now()); err != nil {
				t.Fatal(err)
			}
		}
		w.tenants("red", "blue")
		approve()
		w.ok()
		w.tenants()
		w.problem(w.unchanged(w.once), "held back")
		w.has("red", "blue")
		approve()
		w.ok()
		w.has()
	}
}

// One that is merged after the recovery was given before it.
func TestRule05_ApprovalInReviewEndsWhenTheSourceRecovers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.cfg.Prune.Confirm.Fetches = 0
	w.ok()
	w.tenants()
	w.unchanged(w.once)
	digest, text := w.onlyHeld().Digest, string(ApprovalText("olga", w.clock.Now()))
	w.tenants("red", "blue")
	w.ok()
	w.define(map[string]string{ApprovalFile(digest): text})
	w.ok()
	w.tenants()
	w.problem(w.unchanged(w.once), "held back", "has ended")
	w.restart()
	w.problem(w.unchanged(w.once), "held back", "has ended")
	w.define(map[string]string{ApprovalFile(digest): string(ApprovalText("olga", w.clock.Now()))})
	w.ok()
	w.has()
}

// Nor does it wait for an event that nobody has thought of: it counts for three days,
// whatever is remembered, and not at all without saying when it was given.
func TestRule05_ApprovalEndsInTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.cfg.Prune.Confirm.Fetches = 0
	w.ok()
	w.tenants()
	w.unchanged(w.once)
	digest := w.onlyHeld().Digest
	w.define(map[string]string{ApprovalFile(digest): string(ApprovalText("olga", w.clock.Now()))})
	w.tenants("red", "blue")
	w.forget()
	w.ok()
	w.clock.Advance(ApprovalLasts)
	w.tenants()
	w.problem(w.unchanged(w.once), "held back", "has ended")
	w.define(map[string]string{ApprovalFile(digest): "approved by olga\n"})
	w.problem(w.unchanged(w.once), "held back", "does not say when")
	w.define(map[string]string{ApprovalFile(digest): "at: 2099-01-01T00:00:00Z\n"})
	w.problem(w.unchanged(w.once), "held back", "has ended")
	w.has("red", "blue")
}
