// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"resourceset.example/renderer/internal/notify"
	"resourceset.example/renderer/internal/reconcile"
)

// eventsPatience is how long the end of the program may be put off by events that
// are still to be sent.
const eventsPatience = 5 * time.Second

// A notifier sends what happened in each pass to the addresses of the
// configuration. Without one it does nothing.
type notifier struct {
	app    *app
	events *reconcile.Events
	sender *notify.Sender
}

func (a *app) newNotifier() *notifier {
	n := &notifier{app: a}
	if len(a.cfg.Events) == 0 {
		return n
	}
	addresses := make([]string, len(a.cfg.Events))
	for i, e := range a.cfg.Events {
		addresses[i] = e.URL
	}
	n.events = reconcile.NewEvents(a.cfg, a.redactor)
	n.sender = notify.NewSender(notify.Config{
		Addresses: addresses, Controller: "renderer", UserAgent: "renderer/" + readBuildInfo().Version, Log: a.log,
	})
	return n
}

// observe sends the events of a pass. It does not wait.
func (n *notifier) observe(report *reconcile.Report) {
	if n.sender == nil {
		return
	}
	for _, e := range n.events.Of(report) {
		severity := notify.SeverityInfo
		if e.Error {
			severity = notify.SeverityError
		}
		n.sender.Send(notify.Event{
			APIVersion: e.APIVersion, Kind: e.Kind, Namespace: e.Namespace, Name: e.Name,
			Severity: severity, Reason: e.Reason, Message: e.Message, Metadata: e.Metadata,
			Annotations: e.Annotations, Token: e.Token, Time: e.Time,
		})
	}
}

// close waits a while for what is still to be sent, also when ctx has ended.
func (n *notifier) close(ctx context.Context) {
	if n.sender == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), eventsPatience)
	defer cancel()
	if err := n.sender.Close(ctx); err != nil {
		n.app.log.Warn("events", "error", err)
	}
}
