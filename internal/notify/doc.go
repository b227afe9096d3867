// SPDX-License-Identifier: Apache-2.0

// Package notify sends Flux events: what a Flux controller posts to Flux's
// notification-controller when something happened to an object of its own.
//
// The notification-controller looks for Alerts whose eventSources match the
// involved object, and hands the event to their Providers (chat, a commit status, a
// webhook). Alerts that were written for the operator's ResourceSets go on working,
// for kind, name, severity and metadata are the same. The same JSON can be posted to
// any other service that takes Flux events, an orchestrator for instance. The format
// is the type Event of github.com/fluxcd/pkg/apis/event/v1beta1.
//
// Sending never delays the loop. Each address has a queue of its own with a bound;
// when a receiver is down for long, the oldest events are dropped, which the log
// says. An event is tried a few times, so it may arrive twice; the
// notification-controller leaves out repetitions by itself. What it takes for one is
// an event about the same object with the same message, revision and token, within
// five minutes. So an event that means something new, although in the same words (a
// fetch fails again after it went well), has a token of its own.
package notify
