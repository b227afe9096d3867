// SPDX-License-Identifier: Apache-2.0

package cron

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	when, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return when
}

// FR-60: what a change of clocks jumps over happens right after it, once.
func TestNextAcrossClockChanges(t *testing.T) {
	for _, tt := range []struct {
		name, expr, zone, after string
		want                    []string
	}{
		{"gap at two, clocks go forward", "0 2 * * *", "America/Los_Angeles", "2025-03-08T00:00:00-08:00", []string{
			"2025-03-08T02:00:00-08:00", "2025-03-09T03:00:00-07:00", "2025-03-10T02:00:00-07:00",
		}},
		{"within the gap", "45 2 * * *", "Europe/Berlin", "2025-03-29T12:00:00+01:00", []string{
			"2025-03-30T03:00:00+02:00", "2025-03-31T02:45:00+02:00",
		}},
		{"gap at midnight", "0 0 * * *", "America/Santiago", "2025-09-06T00:00:00-04:00", []string{
			"2025-09-07T01:00:00-03:00", "2025-09-08T00:00:00-03:00",
		}},
		{"every hour needs no help", "0 * * * *", "America/Los_Angeles", "2025-03-09T00:30:00-08:00", []string{
			"2025-03-09T01:00:00-08:00", "2025-03-09T03:00:00-07:00", "2025-03-09T04:00:00-07:00",
		}},
		{"not on that day of the week", "0 2 * * 1-5", "America/Los_Angeles", "2025-03-07T12:00:00-08:00", []string{
			"2025-03-10T02:00:00-07:00",
		}},
		{"several slots in one gap are one", "0,20,40 2 * * *", "Europe/Berlin", "2025-03-30T00:00:00+01:00", []string{
			"2025-03-30T03:00:00+02:00", "2025-03-31T02:00:00+02:00",
		}},
		{"clocks go back: once", "30 1 * * *", "America/New_York", "2025-11-01T12:00:00-04:00", []string{
			"2025-11-02T01:30:00-04:00", "2025-11-03T01:30:00-05:00",
		}},
		{"clocks go back: every hour runs in both", "30 * * * *", "America/New_York", "2025-11-02T00:45:00-04:00", []string{
			"2025-11-02T01:30:00-04:00", "2025-11-02T01:30:00-05:00", "2025-11-02T02:30:00-05:00",
		}},
		{"leap day", "0 0 29 2 *", "UTC", "2025-01-01T00:00:00Z", []string{"2028-02-29T00:00:00Z"}},
		{"default is UTC", "0 9 * * 1-4", "", "2025-03-07T12:00:00+05:00", []string{"2025-03-10T09:00:00Z"}},
		{"a zone without changes", "@daily", "Asia/Kolkata", "2025-03-07T12:00:00Z", []string{"2025-03-08T00:00:00+05:30"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			times, err := Parse(tt.expr, tt.zone)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for when := at(t, tt.after); len(got) < len(tt.want); {
				when = times.Next(when)
				got = append(got, when.Format(time.RFC3339))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNextNever(t *testing.T) {
	times, err := Parse("0 2 30 2 *", "Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	if got := times.Next(at(t, "2025-01-01T00:00:00Z")); !got.IsZero() {
		t.Errorf("30 February is %s", got)
	}
}

func TestParseFaults(t *testing.T) {
	for _, tt := range []struct{ expr, zone, want string }{
		{"0 25 * * *", "", "cron"},
		{"* * * * * *", "", "5 fields"},
		{"@every 5m", "", "no fixed times"},
		{"TZ=UTC", "", "a field of its own"},
		{"CRON_TZ=UTC 0 0 * * *", "", "a field of its own"},
		{"0 0 * * *", "Mars/Olympus", "not known"},
		{"0 0 * * *", "Local", "another one on each machine"},
		{"", "", "cron"},
	} {
		if _, err := Parse(tt.expr, tt.zone); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Parse(%q, %q) = %v, want %q", tt.expr, tt.zone, err, tt.want)
		}
	}
}

func TestParsePace(t *testing.T) {
	start := at(t, "2025-07-01T10:00:00Z")
	for expr, want := range map[string]string{
		"@every 10m":                   "2025-07-01T10:10:00Z",
		"@every 90s":                   "2025-07-01T10:01:30Z",
		"*/15 * * * *":                 "2025-07-01T10:15:00Z",
		"CRON_TZ=Europe/Berlin @daily": "2025-07-02T00:00:00+02:00",
		"TZ=Europe/Berlin 0 13 * * *":  "2025-07-01T13:00:00+02:00",
		"@hourly":                      "2025-07-01T11:00:00Z",
	} {
		pace, err := ParsePace(expr)
		if err != nil {
			t.Errorf("%s: %v", expr, err)
			continue
		}
		if got := pace.Next(start).Format(time.RFC3339); got != want {
			t.Errorf("%s: next is %s, want %s", expr, got, want)
		}
	}
	for _, expr := range []string{"", "@every", "@every 0s", "@every -1m", "@every 10ms", "@every x", "every 10m", "10m", "TZ=UTC", "CRON_TZ=X 0 0 * * *"} {
		if _, err := ParsePace(expr); err == nil {
			t.Errorf("%q is a pace", expr)
		}
	}
}

func FuzzPace(f *testing.F) {
	for _, expr := range []string{"@every 10m", "0 2 * * *", "CRON_TZ=America/Santiago 0 0 * * *", "TZ=UTC", "@yearly", "*/7 1-5 L * ?"} {
		f.Add(expr, int64(1741500000))
	}
	f.Fuzz(func(t *testing.T, expr string, unix int64) {
		pace, err := ParsePace(expr)
		if err != nil {
			return
		}
		after := time.Unix(unix%4e9, 0)
		if next := pace.Next(after); !next.IsZero() && !next.After(after) {
			t.Fatalf("%q: next after %s is %s", expr, after, next)
		}
	})
}
