// SPDX-License-Identifier: Apache-2.0

package codecommit

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/codecommit"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/logging"

	"resourceset.example/renderer/pkg/source/provider"
	"resourceset.example/renderer/pkg/source/transport"
)

// maxAnswer is the most that one answer may have, in bytes.
const maxAnswer = 32 << 20

// A session asks one region with one credential.
type session struct {
	cfg  provider.Config
	repo *repository
	keys aws.CredentialsProvider // of the secret; nil for those of the environment

	mu  sync.Mutex
	api *codecommit.Client
	git *http.Client
	use aws.CredentialsProvider
}

func newSession(cfg provider.Config, repo *repository) (*session, error) {
	s := &session{cfg: cfg, repo: repo}
	if cfg.Secret == nil {
		return s, nil
	}
	var values [3]string
	for i, key := range []string{"accesskey", "secretkey", "sessiontoken"} {
		value, err := cfg.Secret.Line(key)
		if err != nil {
			return nil, err
		}
		values[i] = value
	}
	if values[0] == "" || values[1] == "" {
		return nil, &provider.Error{
			Reason: provider.Misconfigured,
			Msg:    "the secret has no credential",
			Hint:   "the Secret of spec.secretRef has accesskey and secretkey, and a sessiontoken where they are temporary",
		}
	}
	s.keys = credentials.NewStaticCredentialsProvider(values[0], values[1], values[2])
	return s, nil
}

// connect makes the clients, when they are asked for first, and a credential that is
// valid now. What the SDK reads for that is on this machine, apart from the services
// that hand out temporary credentials.
func (s *session) connect(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.api == nil {
		if err := s.open(ctx); err != nil {
			return err
		}
	}
	if _, err := s.use.Retrieve(ctx); err != nil {
		return describeCredential(ctx, err)
	}
	return nil
}

func (s *session) open(ctx context.Context) error {
	settings := aws.Config{Region: s.repo.region, Credentials: s.keys}
	if s.keys == nil {
		if !s.repo.aws {
			return &provider.Error{
				Reason: provider.Auth,
				Msg:    "there is no credential for " + s.repo.git.Host,
				Hint:   "set spec.secretRef: the identity of the environment is for hosts of AWS only",
			}
		}
		var err error
		if settings, err = config.LoadDefaultConfig(ctx, config.WithRegion(s.repo.region)); err != nil {
			return &provider.Error{Reason: provider.Misconfigured, Msg: "AWS configuration of the environment", Hint: "check the AWS_ variables and the files that they name"}
		}
	}
	api, err := s.openAPI(ctx, settings)
	if err != nil {
		return err
	}
	git, err := transport.NewClient(s.cfg, transport.Options{
		Base: s.repo.git, MaxBody: maxAnswer, Identity: s.identity(),
		Authorize: func(req *http.Request) error {
			keys, err := settings.Credentials.Retrieve(req.Context())
			if err != nil {
				return describeCredential(req.Context(), err)
			}
			username, password := gitCredential(keys, s.repo.region, req.URL.Host, s.repo.git.Path, time.Now())
			req.SetBasicAuth(username, password)
			return nil
		},
	})
	if err != nil {
		return err
	}
	s.api, s.git, s.use = api, git, settings.Credentials
	return nil
}

func (s *session) identity() string {
	if s.keys == nil {
		return "environment"
	}
	return string(s.cfg.Secret["accesskey"])
}

// openAPI returns the SDK's client over our transport. It tries nothing again by
// itself, for the transport does.
func (s *session) openAPI(ctx context.Context, settings aws.Config) (*codecommit.Client, error) {
	options := codecommit.NewFromConfig(settings, func(o *codecommit.Options) {
		o.Retryer = aws.NopRetryer{}
		o.Logger = logging.Nop{} // what is wrong is in the error
		if s.repo.fips {
			o.EndpointOptions.UseFIPSEndpoint = aws.FIPSEndpointStateEnabled
		}
		if !s.repo.aws {
			o.BaseEndpoint = aws.String(s.repo.git.Scheme + "://" + s.repo.git.Host)
		}
	}).Options()
	endpoint, err := options.EndpointResolverV2.ResolveEndpoint(ctx, codecommit.EndpointParameters{
		Region: aws.String(s.repo.region), UseFIPS: aws.Bool(s.repo.fips), UseDualStack: aws.Bool(false), Endpoint: options.BaseEndpoint,
	})
	if err != nil {
		return nil, &provider.Error{
			Reason: provider.Misconfigured, Msg: "no endpoint of CodeCommit in region " + s.repo.region, Hint: "check the region in spec.url",
		}
	}
	client, err := transport.NewClient(s.cfg, transport.Options{
		Base: &endpoint.URI, MaxBody: maxAnswer, Identity: s.identity(), Reads: true, Explain: explain,
		Authorize: func(req *http.Request) error {
			signature, _ := req.Context().Value(signatureKey{}).(string)
			req.Header.Set("Authorization", signature)
			return nil
		},
	})
	if err != nil {
		return nil, err
	}
	follow := client.CheckRedirect
	client.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		if err := follow(req, via); err != nil {
			return err
		}
		return &provider.Error{Reason: provider.Redirected, Msg: "redirected, which CodeCommit never does", Hint: "check the proxy, and spec.url"}
	}
	return codecommit.New(options, func(o *codecommit.Options) { o.HTTPClient = &signed{client} }), nil
}

// signatureKey is the context key of the SDK's signature of a request.
type signatureKey struct{}

// signed sends the SDK's requests through our transport, which lets no Authorization
// pass that it did not add itself for the right host, and needs a body that can be
// sent again.
type signed struct{ client *http.Client }

func (s *signed) Do(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		req.Body, _ = req.GetBody()
	}
	return s.client.Do(req.WithContext(context.WithValue(req.Context(), signatureKey{}, req.Header.Get("Authorization"))))
}

// describeCredential says why there is no credential. The SDK's own words are a list
// of all that it tried.
func describeCredential(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return transport.Describe(ctx.Err())
	}
	described := &provider.Error{
		Reason: provider.Auth,
		Msg:    "the environment has no credential for AWS",
		Hint:   "set up IRSA or EKS Pod Identity for renderer's service account, the AWS_ variables, or spec.secretRef",
	}
	var refused smithy.APIError
	if errors.As(err, &refused) {
		described.Msg = "the identity of the environment gets no credential: " + refused.ErrorCode()
		described.Hint = "check the role, and whom it trusts"
	}
	return described
}
