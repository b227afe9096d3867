// SPDX-License-Identifier: Apache-2.0

package codecommit

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"

	"resourceset.example/renderer/pkg/source/listing"
	"resourceset.example/renderer/pkg/source/provider"
	"resourceset.example/renderer/pkg/source/transport"
)

// gitCredential makes the user name and password with which CodeCommit lets Git in.
// The password is a signature (AWS Signature Version 4) of a request whose method is
// GIT, valid for some minutes; AWS publishes the recipe as git-remote-codecommit.
func gitCredential(keys aws.Credentials, region, host, path string, now time.Time) (username, password string) {
	moment := now.UTC().Format("20060102T150405") // the Z goes into the password only
	scope := strings.Join([]string{moment[:8], region, "codecommit", "aws4_request"}, "/")
	request := sha256.Sum256([]byte("GIT\n" + path + "\n\nhost:" + host + "\n\nhost\n"))
	text := strings.Join([]string{"AWS4-HMAC-SHA256", moment, scope, hex.EncodeToString(request[:])}, "\n")
	key := []byte("AWS4" + keys.SecretAccessKey)
	for _, part := range append(strings.Split(scope, "/"), text) {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(part))
		key = mac.Sum(nil)
	}
	username = keys.AccessKeyID
	if keys.SessionToken != "" {
		username += "%" + keys.SessionToken
	}
	return username, moment + "Z" + hex.EncodeToString(key)
}

// A gitRef is a branch or a tag.
type gitRef struct {
	provider.Ref
	tag bool
}

const advertisement = "application/x-git-upload-pack-advertisement"

// newRefs returns the list of branches and tags of a config, together with the
// others that have it.
func newRefs(cfg provider.Config) (*listing.List[gitRef], error) {
	repo, err := parseURL(cfg.Object.Spec.URL)
	if err != nil {
		return nil, err
	}
	s, err := share(cfg, repo)
	if err != nil {
		return nil, err
	}
	address := repo.git.String() + "/info/refs?service=git-upload-pack"
	return provider.Share(cfg.Shared, cfg.Identity()+" "+address, func() (*listing.List[gitRef], error) {
		return listing.New("branches and tags", address, s.refs), nil
	})
}

// refs reads what Git calls an advertisement: all refs, in one answer.
func (s *session) refs(ctx context.Context, address string, _ *listing.Page[gitRef]) (*listing.Page[gitRef], error) {
	if err := s.connect(ctx); err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, describe(ctx, err)
	}
	resp, err := s.git.Do(req)
	if err != nil {
		return nil, transport.Describe(err)
	}
	body, err := transport.ReadBody(resp)
	if err != nil {
		return nil, err
	}
	if kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err != nil || kind != advertisement {
		return nil, implausible("the answer is not Git's list of refs")
	}
	return decodeRefs(body)
}

// decodeRefs reads an advertisement, which has a mark at its end: one that was cut
// off is an error.
func decodeRefs(body []byte) (*listing.Page[gitRef], error) {
	page := &listing.Page[gitRef]{Items: []gitRef{}, Keys: []string{}}
	advertised := packp.NewAdvRefs()
	err := advertised.Decode(bytes.NewReader(body))
	empty := errors.Is(err, packp.ErrEmptyAdvRefs) // a repository without commits
	if err != nil && !empty {
		return nil, implausible("Git's list of refs cannot be read, or was cut off")
	}
	for name, hash := range advertised.References {
		ref := gitRef{Ref: provider.Ref{SHA: hash.String()}}
		if branch, ok := strings.CutPrefix(name, "refs/heads/"); ok {
			ref.Name = branch
		} else if tag, ok := strings.CutPrefix(name, "refs/tags/"); ok {
			ref.Name, ref.tag = tag, true
			if peeled, ok := advertised.Peeled[name]; ok {
				ref.SHA = peeled.String()
			}
		}
		if ref.Name == "" {
			continue // neither: the heads of pull requests, for example
		}
		if hash.IsZero() {
			return nil, implausible("Git's list of refs has one without a commit")
		}
		page.Items = append(page.Items, ref)
	}
	slices.SortFunc(page.Items, func(a, b gitRef) int { return strings.Compare(a.key(), b.key()) })
	for _, ref := range page.Items {
		page.Keys = append(page.Keys, ref.key())
	}
	return page, nil
}

func (r gitRef) key() string {
	if r.tag {
		return "refs/tags/" + r.Name
	}
	return "refs/heads/" + r.Name
}

// share returns the session of a config, together with the others of one region and
// credential.
func share(cfg provider.Config, repo *repository) (*session, error) {
	return provider.Share(cfg.Shared, cfg.Identity()+" "+repo.git.String(), func() (*session, error) { return newSession(cfg, repo) })
}
