// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/sync/errgroup"

	"resourceset.example/renderer/internal/reconcile"
	"resourceset.example/renderer/internal/server"
)

// serve runs the loop and the HTTP server until the context ends, or until one of
// them cannot go on.
func (a *app) serve(ctx context.Context) error {
	listener, err := server.Listen(ctx, a.cfg.Server.Listen)
	if err != nil {
		return usageErrorf("server.listen: %w", err)
	}
	return a.serveOn(ctx, listener)
}

func (a *app) serveOn(ctx context.Context, listener net.Listener) error {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	metrics, err := server.NewMetrics(registry, a.reconciler)
	if err != nil {
		return err
	}
	srv, err := server.New(server.Config{
		Refresher: refresher{a.reconciler}, Checker: a.reconciler, Registry: registry, Log: a.log,
		Status: server.NewStatusHandler(a.reconciler, readBuildInfo().Version),
	})
	if err != nil {
		return err
	}
	notifier := a.newNotifier()
	defer notifier.close(ctx)
	a.afterPass = func(ctx context.Context, report *reconcile.Report) {
		metrics.Observe(report)
		notifier.observe(report)
		a.updateHooks(ctx, srv)
	}

	a.log.Info("listening", "address", listener.Addr().String())
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return srv.Serve(ctx, listener) })
	group.Go(func() error { return a.reconciler.Run(ctx) })
	err = group.Wait()
	a.log.Info("stopped")
	return err
}

// updateHooks serves the Receivers that the definitions hold now. Tokens are read
// anew each time, so that a rotated one counts at once.
func (a *app) updateHooks(ctx context.Context, srv *server.Server) {
	hooks, problems := a.reconciler.Hooks(ctx)
	receivers := make([]server.Receiver, len(hooks))
	for i, h := range hooks {
		receivers[i] = server.Receiver{
			Namespace: h.Receiver.Namespace, Name: h.Receiver.Name, Type: h.Receiver.Spec.Type,
			Token: h.Token, Events: h.Receiver.Spec.Events, Suspend: h.Receiver.Spec.Suspend,
		}
		for _, t := range h.Targets {
			receivers[i].Targets = append(receivers[i].Targets, server.Target(t))
		}
	}
	var errs []error
	for _, p := range problems {
		errs = append(errs, p)
	}
	errs = append(errs, srv.SetReceivers(receivers)...)
	said := map[string]bool{}
	for _, err := range errs {
		said[err.Error()] = true
		if !a.hookFaults[err.Error()] {
			a.log.Error("receiver is not served", "error", err)
		}
	}
	a.hookFaults = said
}

// A refresher hands the server's targets to the loop.
type refresher struct{ *reconcile.Reconciler }

func (r refresher) Refresh(targets []server.Target) {
	wanted := make([]reconcile.Target, len(targets))
	for i, t := range targets {
		wanted[i] = reconcile.Target(t)
	}
	r.Reconciler.Refresh(wanted)
}
