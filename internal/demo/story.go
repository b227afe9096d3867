// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// A chapter is one thing that happens, and the commit that follows from it.
type chapter struct {
	title string
	text  string
	event func(ctx context.Context) error
}

// play tells the story from the first definition to the last tenant.
func (s *stage) play(ctx context.Context, began time.Time) error {
	s.title("Start")
	s.note("People write definitions: a ResourceSet and where its inputs come from.")
	s.note("The orchestrator knows two tenants. The first pass renders both.")
	o := s.orchestrator
	if err := s.landed(ctx, began, 1); err != nil {
		return err
	}
	if err := s.ready(ctx); err != nil {
		return err
	}
	for _, c := range []chapter{
		{"Onboard tenant3", "The orchestrator adds a tenant and calls the webhook.", func(ctx context.Context) error {
			return o.set(ctx, tenant{"tenant3", "1.9.0", []string{"feature1"}})
		}},
		{"Upgrade tenant2 to 2.0.0", "One line of one manifest changes.", func(ctx context.Context) error {
			return o.set(ctx, tenant{"tenant2", "2.0.0", []string{"feature1", "feature2"}})
		}},
		{"Toggle a feature of tenant1", "feature3 is switched off.", func(ctx context.Context) error {
			return o.set(ctx, tenant{"tenant1", "2.0.0-rc.1", []string{"feature1", "feature2"}})
		}},
		{"Offboard tenant3", "Its folder goes, and Flux would uninstall it.", func(ctx context.Context) error {
			return o.remove(ctx, "tenant3")
		}},
		{"Change the definition", "Somebody merges a shorter interval: every tenant follows in one commit.", func(context.Context) error {
			return s.publish("Look for new charts every ten minutes", func(_, text string) string {
				return strings.ReplaceAll(text, "interval: 1h", "interval: 10m")
			})
		}},
	} {
		s.title(c.title)
		s.note("%s", c.text)
		since := time.Now()
		if err := c.event(ctx); err != nil {
			return err
		}
		if err := s.landed(ctx, since, 1); err != nil {
			return err
		}
	}
	for _, act := range []func(context.Context) error{s.proof, s.handEdit, s.outage} {
		if err := act(ctx); err != nil {
			return err
		}
	}
	return nil
}

func firstTenants() map[string]tenant {
	return map[string]tenant{
		"tenant1": {"tenant1", "2.0.0-rc.1", []string{"feature1", "feature2", "feature3"}},
		"tenant2": {"tenant2", "1.9.0", []string{"feature1", "feature2"}},
	}
}

func unchanged(_, text string) string { return text }

// outage shows what does not happen: an answer that is no data removes nothing.
func (s *stage) outage(ctx context.Context) error {
	s.title("The orchestrator breaks")
	s.note("It answers with a page of HTML and status 200. That is an error, not an empty list:")
	before := s.orchestrator.answers()
	if err := s.orchestrator.fail(ctx, true); err != nil {
		return err
	}
	err := s.until(ctx, "renderer to ask", func() (bool, error) { return s.orchestrator.answers() > before, nil })
	if err != nil {
		return err
	}
	if err := s.quiet(ctx); err != nil {
		return err
	}
	s.note("renderer asked, nothing was removed, no commit was made.")
	return s.orchestrator.fail(ctx, false)
}

// quiet watches for a second that no commit lands.
func (s *stage) quiet(ctx context.Context) error {
	watch, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	err := s.until(watch, "", func() (bool, error) {
		hash, _, err := s.manifests.head()
		return hash != s.seen, err
	})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case watch.Err() != nil:
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("an outage made a commit, which it never may")
}

// whereToLook tells what is left, and how to go on.
func (s *stage) whereToLook(keep bool) {
	command := func(format string, args ...any) {
		s.line("     %s", s.paint(bold, fmt.Sprintf(format, args...)))
	}
	s.title("Where to look")
	s.note("The audit trail, and the manifests that Flux would apply:")
	command("git -C %s log --stat main", s.manifests.dir)
	command("git -C %s ls-tree -r --name-only main", s.manifests.dir)
	s.note("When each input came, changed and went; and the proof of it:")
	command("%s history --config %s/config.yaml", s.program, s.dir)
	command("%s verify --config %s/config.yaml", s.program, s.dir)
	s.note("What people wrote, and the configuration that connects the two:")
	command("git -C %s log -p main", s.definitions.dir)
	command("cat %s/config.yaml", s.dir)
	s.note("What the service said meanwhile:")
	command("cat %s/renderer.log", s.dir)
	if keep {
		s.note("Both services are still running. The status page, and the same as JSON:")
		command("http://%s/", s.listen)
		command("curl http://%s/api/v1/status", s.listen)
		s.note("Change something yourself:")
		command("curl -X PUT %s/tenants/tenant4 -d '{\"version\": \"2.0.0\", \"featureFlags\": [\"feature1\"]}'", s.orchestrator.url())
		command("curl -X DELETE %s/tenants/tenant4", s.orchestrator.url())
		s.note("The orchestrator was down a moment ago: the first answer may take 15 s, until it is asked again.")
		s.note("Ctrl-C ends it. Everything is in %s.", s.dir)
		return
	}
	s.note("Everything is in this folder; remove it when you have seen enough:")
	command("rm -r %s", s.dir)
}
