// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/google/go-github/v66/github"

	"resourceset.example/renderer/internal/forgetest"
	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/source/provider"
)

// BenchmarkPolls is what a hundred polls of 500 unchanged pull requests cost, beside a
// client that reads the pages anew each time: requests, what they count for in the
// rate limit, and bytes of the answers' bodies.
func BenchmarkPolls(b *testing.B) {
	const polls = 100
	gh := forgetest.NewGitHub()
	defer gh.Close()
	repo := gh.Repo("acme/app")
	for range 500 {
		repo.Open(forgetest.PR{})
	}
	var bytes atomic.Int64
	gh.Break(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		next.ServeHTTP(countingWriter{w, &bytes}, r)
	})
	measure := func(b *testing.B, poll func(context.Context) (int, error)) {
		if _, err := poll(b.Context()); err != nil { // the first one costs both the same
			b.Fatal(err)
		}
		gh.Forget()
		bytes.Store(0)
		spent, rounds := gh.Spent(), 0
		for b.Loop() {
			for range polls {
				if n, err := poll(b.Context()); err != nil || n != 500 {
					b.Fatal(n, err)
				}
			}
			rounds++
		}
		b.ReportMetric(float64(len(gh.Requests()))/float64(rounds), "requests/op")
		b.ReportMetric(float64(gh.Spent()-spent)/float64(rounds), "ratelimit/op")
		b.ReportMetric(float64(bytes.Load())/float64(rounds)/1024, "KiB/op")
	}
	b.Run("renderer", func(b *testing.B) {
		p, err := NewPullRequests(provider.Config{Object: &api.ResourceSetInputProvider{
			Spec: api.InputProviderSpec{URL: repo.WebURL(), Filter: api.Filter{Limit: 1000}},
		}})
		if err != nil {
			b.Fatal(err)
		}
		measure(b, func(ctx context.Context) (int, error) {
			result, err := p.Fetch(ctx, nil)
			return len(result.Inputs), err
		})
	})
	b.Run("naive", func(b *testing.B) {
		at, err := parseURL(repo.WebURL())
		if err != nil {
			b.Fatal(err)
		}
		client := github.NewClient(nil)
		client.BaseURL = at.api
		measure(b, func(ctx context.Context) (int, error) {
			n, opts := 0, &github.PullRequestListOptions{State: "open", ListOptions: github.ListOptions{PerPage: perPage}}
			for {
				page, resp, err := client.PullRequests.List(ctx, at.owner, at.name, opts)
				if err != nil {
					return n, err
				}
				n += len(page)
				if resp.NextPage == 0 {
					return n, nil
				}
				opts.Page = resp.NextPage
			}
		})
	})
}

// A countingWriter counts what is sent as a body.
type countingWriter struct {
	http.ResponseWriter
	bytes *atomic.Int64
}

func (w countingWriter) Write(p []byte) (int, error) {
	n, err := w.ResponseWriter.Write(p)
	w.bytes.Add(int64(n))
	return n, err
}
