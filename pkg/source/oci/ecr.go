// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"encoding/base64"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ecr"
	"github.com/aws/smithy-go/logging"
	"github.com/google/go-containerregistry/pkg/authn"

	"resourceset.example/renderer/pkg/source/provider"
)

// privateECR are the registries of accounts, in all partitions, also with FIPS and
// with addresses of both kinds.
var privateECR = regexp.MustCompile(`^[0-9]{12}\.dkr[.-]ecr(?:-fips)?\.([a-z0-9-]+)\.(?:amazonaws\.com|amazonaws\.com\.cn|amazonaws\.eu|on\.aws|on\.amazonwebservices\.com\.cn|c2s\.ic\.gov|sc2s\.sgov\.gov)$`)

// publicECR can be read by anybody.
const publicECR = "public.ecr.aws"

// NewECRTags returns the provider of a definition of type ECRArtifactTag.
func NewECRTags(cfg provider.Config) (*Tags, error) {
	repo, err := cloudRepository(cfg)
	if err != nil {
		return nil, err
	}
	host := repo.base.Hostname()
	if host == publicECR {
		return newTags(cfg, repo, fixed{repo: repo})
	}
	match := privateECR.FindStringSubmatch(host)
	if match == nil {
		return nil, wrongHost(host, "ECR", "ACCOUNT.dkr.ecr.REGION.amazonaws.com")
	}
	return newTags(cfg, repo, &ecrLogin{cfg: cfg, region: match[1]})
}

// An ecrLogin exchanges the AWS identity of this process for a password of the
// registries in one region.
type ecrLogin struct {
	cfg    provider.Config
	region string

	mu      sync.Mutex
	aws     *aws.Config
	config  authn.AuthConfig
	expires time.Time
}

func (l *ecrLogin) advice() string {
	return "the AWS identity of this process (IRSA, Pod Identity, instance role or AWS_… variables) needs ecr:GetAuthorizationToken, " +
		"and ecr:ListImages and ecr:BatchGetImage on the repository"
}

func (l *ecrLogin) credential(ctx context.Context, rejected bool) (authn.AuthConfig, time.Time, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !rejected && time.Now().Before(early(l.expires)) {
		return l.config, l.expires, nil
	}
	client, err := l.client(ctx)
	if err != nil {
		return authn.AuthConfig{}, time.Time{}, l.describe(err)
	}
	answer, err := client.GetAuthorizationToken(ctx, &ecr.GetAuthorizationTokenInput{})
	if err != nil {
		return authn.AuthConfig{}, time.Time{}, l.describe(err)
	}
	if len(answer.AuthorizationData) == 0 {
		return authn.AuthConfig{}, time.Time{}, l.implausible()
	}
	data := answer.AuthorizationData[0]
	decoded, err := base64.StdEncoding.DecodeString(aws.ToString(data.AuthorizationToken))
	username, password, ok := strings.Cut(string(decoded), ":")
	if err != nil || !ok || password == "" {
		return authn.AuthConfig{}, time.Time{}, l.implausible()
	}
	l.config = authn.AuthConfig{Username: username, Password: password}
	l.expires = aws.ToTime(data.ExpiresAt)
	return l.config, l.expires, nil
}

// client is that of the SDK. The identity comes from the SDK's own chain; what is
// asked with it goes over our connections.
func (l *ecrLogin) client(ctx context.Context) (*ecr.Client, error) {
	if l.aws == nil {
		loaded, err := config.LoadDefaultConfig(ctx, config.WithRegion(l.region))
		if err != nil {
			return nil, err
		}
		l.aws = &loaded
	}
	return ecr.NewFromConfig(*l.aws, func(o *ecr.Options) {
		o.HTTPClient, o.Retryer = signedRequests{l.cfg}, aws.NopRetryer{}
		o.Logger = logging.Nop{} // what is wrong is in the error
	}), nil
}

func (l *ecrLogin) describe(err error) error {
	return cloudError("ECR in "+l.region+" gives no token", l.advice(), err)
}

func (l *ecrLogin) implausible() error {
	return &provider.Error{Reason: provider.Implausible, Msg: "ECR in " + l.region + " gave no token", Hint: "the last good list stands"}
}
