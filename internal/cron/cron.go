// SPDX-License-Identifier: Apache-2.0

// Package cron knows the moments that a cron expression names in a time zone. It
// differs from the library below it where clocks change: a time that does not
// exist because clocks go forward happens at the first moment after the gap,
// and one that exists twice because they go back happens once.
//
// It also reads the pace of inputs.schedule, which is either such an expression
// or a fixed distance ("@every 10m").
package cron

import (
	"errors"
	"fmt"
	"strings"
	"time"

	robfig "github.com/robfig/cron/v3"
)

// horizon is how far ahead a slot is looked for: the library's own limit, so
// that 29 February is found and 30 February is not looked for in vain.
const horizon = 5 * 366 * 24 * time.Hour

// Times are the moments that a cron expression names in a time zone.
type Times struct {
	spec *robfig.SpecSchedule
	loc  *time.Location
}

// Parse reads a standard cron expression of five fields, or one of its names
// (@daily). Its time zone (UTC if empty) is given apart, never as a prefix.
func Parse(expr, zone string) (*Times, error) {
	if zone == "" {
		zone = "UTC"
	}
	loc, err := loadLocation(zone)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(expr, "TZ=") || strings.HasPrefix(expr, "CRON_TZ=") {
		return nil, fmt.Errorf("cron %q: the time zone goes into a field of its own", expr)
	}
	parsed, err := robfig.ParseStandard(expr)
	if err != nil {
		return nil, fmt.Errorf("cron %q: %w", expr, err)
	}
	spec, ok := parsed.(*robfig.SpecSchedule)
	if !ok {
		return nil, fmt.Errorf("cron %q: @every has no fixed times", expr)
	}
	spec.Location = loc
	return &Times{spec: spec, loc: loc}, nil
}

// loadLocation refuses "Local" as well: what is due must not depend on the
// machine that asks.
func loadLocation(zone string) (*time.Location, error) {
	if zone == "Local" {
		return nil, errors.New(`time zone "Local" is another one on each machine`)
	}
	loc, err := time.LoadLocation(zone)
	if err != nil {
		return nil, fmt.Errorf("time zone %q is not known", zone)
	}
	return loc, nil
}

// Next is the first slot after a moment, or the zero time if there is none
// within the horizon.
//
// The library skips a local time that does not exist because clocks go forward;
// here its slot is the first moment after the gap. A local time that exists
// twice because clocks go back is one slot, at its first occurrence, unless the
// expression runs in every hour anyway.
func (s *Times) Next(after time.Time) time.Time {
	regular := s.spec.Next(after.In(s.loc))
	for s.isRepeat(regular) {
		regular = s.spec.Next(regular)
	}
	limit := regular
	if limit.IsZero() {
		limit = after.Add(horizon)
	}
	if gap := s.nextGap(after, limit); !gap.IsZero() {
		return gap
	}
	return regular
}

// nextGap is the first moment in (after, limit] at which clocks went forward
// over a slot.
func (s *Times) nextGap(after, limit time.Time) time.Time {
	for at := after.In(s.loc); ; {
		_, end := at.ZoneBounds()
		if end.IsZero() || end.After(limit) {
			return time.Time{}
		}
		if end.After(after) && s.skippedAt(end) {
			return end
		}
		at = end
	}
}

// skippedAt reports that the change of clocks at a moment jumps over a slot.
func (s *Times) skippedAt(change time.Time) bool {
	_, before := change.Add(-time.Second).Zone()
	_, after := change.Zone()
	if after <= before {
		return false
	}
	// The wall clock, with its missing hours, is the clock of UTC shifted.
	from := change.UTC().Add(time.Duration(before) * time.Second)
	to := change.UTC().Add(time.Duration(after) * time.Second)
	wall := *s.spec
	wall.Location = time.UTC
	slot := wall.Next(from.Add(-time.Second))
	return !slot.IsZero() && slot.Before(to)
}

// anyHour is how the library marks a field that was written as "*".
const anyHour = 1 << 63

// isRepeat reports that the wall clock has shown this time already.
func (s *Times) isRepeat(t time.Time) bool {
	if t.IsZero() || s.spec.Hour&anyHour != 0 {
		return false
	}
	start, _ := t.ZoneBounds()
	if start.IsZero() {
		return false
	}
	_, before := start.Add(-time.Second).Zone()
	_, now := start.Zone()
	back := time.Duration(before-now) * time.Second
	return back > 0 && t.Sub(start) < back
}

// A Pace is how often something happens that sets no times of its own.
type Pace struct {
	Every time.Duration // 0 when Times is set
	Times *Times        // nil when Every is set
}

// minEvery is the shortest distance that is a pace and not a mistake.
const minEvery = time.Second

// ParsePace reads "@every 10m", or a cron expression in UTC, which the prefix
// "CRON_TZ=Europe/Berlin " moves to another time zone.
func ParsePace(expr string) (Pace, error) {
	if after, ok := strings.CutPrefix(expr, "@every "); ok {
		every, err := ParseEvery(strings.TrimSpace(after))
		return Pace{Every: every}, err
	}
	zone := ""
	if after, ok := strings.CutPrefix(strings.TrimPrefix(expr, "CRON_"), "TZ="); ok {
		if zone, expr, ok = strings.Cut(after, " "); !ok {
			return Pace{}, fmt.Errorf("%q has a time zone and no times", "TZ="+after)
		}
	}
	times, err := Parse(strings.TrimSpace(expr), zone)
	return Pace{Times: times}, err
}

// ParseEvery reads the distance of a fixed pace.
func ParseEvery(text string) (time.Duration, error) {
	every, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is not a duration", text)
	case every < minEvery:
		return 0, fmt.Errorf("%s is shorter than a second", text)
	}
	return every, nil
}

// Next is when it happens next after it happened at a moment.
func (p Pace) Next(after time.Time) time.Time {
	if p.Times != nil {
		return p.Times.Next(after)
	}
	return after.Add(p.Every)
}
