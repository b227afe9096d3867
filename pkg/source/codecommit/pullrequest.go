// SPDX-License-Identifier: Apache-2.0

package codecommit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/codecommit"
	"github.com/aws/aws-sdk-go-v2/service/codecommit/types"
	"golang.org/x/sync/errgroup"

	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/source/listing"
	"resourceset.example/renderer/pkg/source/provider"
	"resourceset.example/renderer/pkg/source/transport"
)

const (
	perPage = 100
	// atOnce is how many pull requests are asked for at the same time.
	atOnce = 4
	// ghost stands for an author who is not told.
	ghost = "ghost"
)

// A PullRequests provider lists the open pull requests of one repository.
type PullRequests struct {
	object *api.ResourceSetInputProvider
	filter *provider.Filter
	pulls  *pulls
}

// NewPullRequests returns the provider of a definition of type AWSCodeCommitPullRequest.
func NewPullRequests(cfg provider.Config) (*PullRequests, error) {
	object := *cfg.Object // without what has no effect
	object.Spec.Filter.Labels, object.Spec.Skip.Labels = nil, nil
	filter, err := provider.NewFilter(object.Spec.Filter)
	if err != nil {
		return nil, err
	}
	repo, err := parseURL(object.Spec.URL)
	if err != nil {
		return nil, err
	}
	s, err := share(cfg, repo)
	if err != nil {
		return nil, err
	}
	all, err := provider.Share(cfg.Shared, cfg.Identity()+" "+repo.git.String()+" pulls", func() (*pulls, error) { return newPulls(s), nil })
	return &PullRequests{object: &object, filter: filter, pulls: all}, err
}

// Fetch lists the open pull requests.
func (p *PullRequests) Fetch(ctx context.Context, previous []api.Input) (provider.Result, error) {
	ctx, cancel := transport.Bound(ctx)
	defer cancel()
	open, err := p.pulls.open(ctx)
	if err != nil {
		return provider.Result{}, err
	}
	return provider.ExportChangeRequests(p.object, p.filter, open, previous)
}

// pulls are the open pull requests of one repository, for all its providers.
type pulls struct {
	session *session
	numbers *listing.List[string]

	turn chan struct{} // holds one token
	pass any
	last []provider.ChangeRequest
}

// Addresses of pages: the first one, and those of which there is a token.
const (
	firstPage = "first"
	afterPage = "after "
)

func newPulls(s *session) *pulls {
	return &pulls{session: s, numbers: listing.New("pull requests", firstPage, s.page), turn: make(chan struct{}, 1)}
}

// page reads one page of the numbers of open pull requests.
func (s *session) page(ctx context.Context, address string, _ *listing.Page[string]) (*listing.Page[string], error) {
	if err := s.connect(ctx); err != nil {
		return nil, err
	}
	input := &codecommit.ListPullRequestsInput{
		RepositoryName: aws.String(s.repo.name), PullRequestStatus: types.PullRequestStatusEnumOpen, MaxResults: aws.Int32(perPage),
	}
	if token, ok := strings.CutPrefix(address, afterPage); ok {
		input.NextToken = aws.String(token)
	}
	out, err := s.api.ListPullRequests(ctx, input)
	if err != nil {
		return nil, describe(ctx, err)
	}
	if out.PullRequestIds == nil {
		return nil, implausible("the answer has no pullRequestIds")
	}
	page, err := listing.Convert(out.PullRequestIds, "pull requests", func(id string) (string, string, error) {
		if number, err := strconv.ParseInt(id, 10, 64); err != nil || number <= 0 {
			return "", "", fmt.Errorf("%.20q is no number", id)
		}
		return id, id, nil
	})
	if err == nil && aws.ToString(out.NextToken) != "" {
		page.Next = afterPage + *out.NextToken
	}
	return page, err
}

// open reads all open pull requests. One that is gone since it was listed means that
// the list has moved, and is read again.
func (p *pulls) open(ctx context.Context) ([]provider.ChangeRequest, error) {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return nil, transport.Describe(ctx.Err())
	}
	pass := provider.Pass(ctx)
	if pass != nil && pass == p.pass {
		return slices.Clone(p.last), nil
	}
	missed := map[string]bool{}
	for {
		open, err := p.read(provider.WithPass(ctx)) // one of its own: the list is to be read anew
		if err == nil {
			p.last, p.pass = slices.Clone(open), pass
			return open, nil
		}
		var gone *goneError
		if !errors.As(err, &gone) || missed[gone.number] || len(missed) == listing.MaxReads-1 {
			return nil, err // a list that has it again contradicts itself
		}
		missed[gone.number] = true
	}
}

// A goneError is a pull request that was in the list and is not there.
type goneError struct{ number string }

func (*goneError) Error() string { return "it was in the list a moment before" }

func (p *pulls) read(ctx context.Context) ([]provider.ChangeRequest, error) {
	numbers, err := p.numbers.All(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]*provider.ChangeRequest, len(numbers))
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i, number := range numbers {
		group.Go(func() (err error) {
			all[i], err = p.session.pull(within, number)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	open := make([]provider.ChangeRequest, 0, len(all))
	for _, pull := range all {
		if pull != nil {
			open = append(open, *pull)
		}
	}
	return open, nil
}

// pull reads one pull request; nil where it has been closed since it was listed.
func (s *session) pull(ctx context.Context, number string) (*provider.ChangeRequest, error) {
	out, err := s.api.GetPullRequest(ctx, &codecommit.GetPullRequestInput{PullRequestId: aws.String(number)})
	if err == nil {
		return s.convert(number, out.PullRequest)
	}
	described := transport.Fault(describe(ctx, err)).Within("pull request %s", number)
	if described.Reason == provider.NotFound {
		described.Err = &goneError{number}
	}
	return nil, described
}

const branchPrefix = "refs/heads/"

// convert checks that all is there that must be.
func (s *session) convert(number string, pull *types.PullRequest) (*provider.ChangeRequest, error) {
	missing := func(what string) (*provider.ChangeRequest, error) {
		return nil, implausible(fmt.Sprintf("pull request %s: the answer has no %s", number, what))
	}
	if pull == nil || aws.ToString(pull.PullRequestId) != number {
		return missing("pull request of that number")
	}
	switch pull.PullRequestStatus {
	case types.PullRequestStatusEnumOpen:
	case types.PullRequestStatusEnumClosed:
		return nil, nil
	default:
		return missing("status")
	}
	i := slices.IndexFunc(pull.PullRequestTargets, func(t types.PullRequestTarget) bool { return aws.ToString(t.RepositoryName) == s.repo.name })
	if i < 0 {
		return missing("target in this repository")
	}
	target := pull.PullRequestTargets[i]
	branch := strings.TrimPrefix(aws.ToString(target.SourceReference), branchPrefix)
	to := strings.TrimPrefix(aws.ToString(target.DestinationReference), branchPrefix)
	switch {
	case branch == "":
		return missing("sourceReference")
	case to == "":
		return missing("destinationReference")
	case aws.ToString(target.SourceCommit) == "":
		return missing("sourceCommit")
	case pull.CreationDate == nil || pull.LastActivityDate == nil:
		return missing("creationDate or lastActivityDate")
	}
	_, author, _ := cutLast(aws.ToString(pull.AuthorArn), "/")
	if author == "" {
		author = ghost
	}
	id, _ := strconv.ParseInt(number, 10, 64) // checked when it was listed
	return &provider.ChangeRequest{
		ID: number, Number: id, SHA: *target.SourceCommit, Branch: branch, TargetBranch: to, Title: aws.ToString(pull.Title),
		Author: author, URL: s.repo.page(number), CreatedAt: *pull.CreationDate, UpdatedAt: *pull.LastActivityDate,
	}, nil
}
