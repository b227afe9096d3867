// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"resourceset.example/renderer/internal/reconcile"
)

// Metrics are what the loop counts. Its labels are few: results and triggers are
// fixed words, and a provider has its series only as long as it is defined.
type Metrics struct {
	passes   *prometheus.CounterVec
	duration prometheus.Histogram
	commits  *prometheus.CounterVec
	races    prometheus.Counter
}

// NewMetrics registers the metrics of a loop. What is a state rather than an event is
// asked of it when somebody looks.
func NewMetrics(registry *prometheus.Registry, source StatusSource) (*Metrics, error) {
	m := &Metrics{
		passes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "renderer_passes_total", Help: "Passes by result: ok, held (something is held back) or failed.",
		}, []string{"result"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "renderer_pass_duration_seconds", Help: "How long passes take.",
			Buckets: []float64{.01, .03, .1, .3, 1, 3, 10, 30, 100, 300},
		}),
		commits: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "renderer_commits_total", Help: "Commits pushed, by what led to them.",
		}, []string{"trigger"}),
		races: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "renderer_push_races_total", Help: "Pushes that were made again because another writer was first.",
		}),
	}
	for _, result := range []string{reconcile.ResultOK, reconcile.ResultHeld, reconcile.ResultFailed} {
		m.passes.WithLabelValues(result) // so that a first failure is an increase
	}
	var errs []error
	for _, c := range []prometheus.Collector{m.passes, m.duration, m.commits, m.races, newStateCollector(source)} {
		errs = append(errs, registry.Register(c))
	}
	return m, errors.Join(errs...)
}

// Observe counts a pass that has ended.
func (m *Metrics) Observe(report *reconcile.Report) {
	m.passes.WithLabelValues(report.Result()).Inc()
	m.duration.Observe(report.Ended.Sub(report.Began).Seconds())
	m.races.Add(float64(report.Lost))
	if n := len(report.Commits); n > 0 {
		m.commits.WithLabelValues(report.Trigger).Add(float64(n))
	}
}

// A stateCollector makes metrics of the status.
type stateCollector struct {
	source                                   StatusSource
	success, held, inputs, failures, failing *prometheus.Desc
}

func newStateCollector(source StatusSource) *stateCollector {
	labels := []string{"namespace", "name"}
	return &stateCollector{
		source:   source,
		success:  prometheus.NewDesc("renderer_last_success_timestamp_seconds", "End of the last pass without any problem; 0 before the first.", nil, nil),
		held:     prometheus.NewDesc("renderer_held", "ResourceSets of which something is held back or left as somebody left it.", nil, nil),
		inputs:   prometheus.NewDesc("renderer_provider_inputs", "Input sets that a provider exported last.", labels, nil),
		failures: prometheus.NewDesc("renderer_provider_failures_total", "Fetches of a provider that failed.", labels, nil),
		failing:  prometheus.NewDesc("renderer_provider_failing", "1 while the last fetch of a provider has failed.", labels, nil),
	}
}

// Describe implements prometheus.Collector.
func (c *stateCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.success, c.held, c.inputs, c.failures, c.failing} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *stateCollector) Collect(out chan<- prometheus.Metric) {
	s := c.source.Status()
	success := 0.0
	if !s.LastSuccess.IsZero() {
		success = float64(s.LastSuccess.UnixMilli()) / 1000
	}
	out <- prometheus.MustNewConstMetric(c.success, prometheus.GaugeValue, success)
	held := 0
	for _, set := range s.ResourceSets {
		if set.Held != nil || len(set.TakenBack) > 0 {
			held++
		}
	}
	out <- prometheus.MustNewConstMetric(c.held, prometheus.GaugeValue, float64(held))
	for _, p := range s.Providers {
		namespace, name, _ := strings.Cut(p.Name, "/")
		out <- prometheus.MustNewConstMetric(c.failures, prometheus.CounterValue, float64(p.Failed), namespace, name)
		out <- prometheus.MustNewConstMetric(c.failing, prometheus.GaugeValue, float64(btoi(p.Error != "")), namespace, name)
		if !p.Answered.IsZero() {
			out <- prometheus.MustNewConstMetric(c.inputs, prometheus.GaugeValue, float64(p.Inputs), namespace, name)
		}
	}
}
