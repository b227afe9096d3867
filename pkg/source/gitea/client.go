// SPDX-License-Identifier: Apache-2.0

package gitea

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"code.gitea.io/sdk/gitea"

	"resourceset.example/renderer/pkg/source/provider"
	"resourceset.example/renderer/pkg/source/transport"
)

// maxPage is the most that one page may have, in bytes: fifty pull requests with long
// descriptions, each with two copies of the repository.
const maxPage = 32 << 20

// A repository is what spec.url names: the server's address, which may have a path,
// and two more parts.
type repository struct {
	server      *url.URL // without a slash at its end
	owner, name string
}

func parseURL(raw string) (*repository, error) {
	u, parts, err := provider.ParseRepositoryURL(raw)
	if err != nil {
		return nil, err
	}
	if before, after, ok := provider.CutAPI(parts, "api", "v1"); ok {
		if len(after) < 3 || after[0] != "repos" {
			after = []string{"repos", "OWNER", "REPOSITORY"}
		}
		return nil, provider.RefuseAPI(u, u.Host, append(slices.Clone(before), after[1:3]...)...)
	}
	server := &url.URL{Scheme: u.Scheme, Host: u.Host}
	if prefix := parts[:len(parts)-2]; len(prefix) > 0 {
		server.Path = "/" + path.Join(prefix...)
	}
	return &repository{server: server, owner: parts[len(parts)-2], name: parts[len(parts)-1]}, nil
}

// A client asks one server with one credential.
type client struct {
	server string
	http   *http.Client
}

func newClient(cfg provider.Config, server *url.URL) (*client, error) {
	options := transport.Options{Base: server, MaxBody: maxPage, Explain: explain}
	if err := authorize(cfg.Secret, &options); err != nil {
		return nil, err
	}
	http, err := transport.NewClient(cfg, options)
	if err != nil {
		return nil, err
	}
	return &client{server: server.String(), http: http}, nil
}

// api is the library's client for one call: it keeps the context inside. Which
// version the server has is not asked, for nothing here depends on it.
func (c *client) api(ctx context.Context) (*gitea.Client, error) {
	api, err := gitea.NewClient(c.server, gitea.SetHTTPClient(c.http), gitea.SetContext(ctx), gitea.SetGiteaVersion(""))
	if err != nil {
		return nil, describe(err)
	}
	return api, nil
}

// authorize adds the credential of the secret. A user name beside the password makes
// it basic authentication, where the server tries the password as a token first: so a
// made-up name, which Flux wants in Git secrets, does no harm.
func authorize(secret provider.Secret, options *transport.Options) error {
	if secret == nil {
		return nil
	}
	values := map[string]string{}
	for _, key := range []string{"username", "password", "token", "bearerToken"} {
		value, err := secret.Line(key)
		if err != nil {
			return err
		}
		values[key] = value
	}
	username, header := "", ""
	switch {
	case values["bearerToken"] != "":
		options.Identity, header = values["bearerToken"], "Bearer "+values["bearerToken"]
	case values["token"] != "":
		options.Identity, header = values["token"], "token "+values["token"]
	case values["password"] != "" && values["username"] != "":
		options.Identity, username = values["username"]+":"+values["password"], values["username"]
	case values["password"] != "":
		options.Identity, header = values["password"], "token "+values["password"]
	default:
		return &provider.Error{
			Reason: provider.Misconfigured,
			Msg:    "the secret has no credential",
			Hint:   "the Secret of spec.secretRef has a token in password or token, an OAuth token in bearerToken, or username and password",
		}
	}
	options.Authorize = func(req *http.Request) error {
		if username != "" {
			req.SetBasicAuth(username, values["password"])
			return nil
		}
		req.Header.Set("Authorization", header)
		return nil
	}
	return nil
}

// explain says what a token lacks. Servers answer with the scope that they want.
func explain(resp *http.Response, body []byte) *provider.Error {
	var answer struct{ Message string }
	if json.Unmarshal(body, &answer) != nil || resp.StatusCode != http.StatusForbidden || !strings.Contains(answer.Message, "scope") {
		return nil
	}
	return &provider.Error{
		Reason: provider.Auth, Msg: answer.Message,
		Hint: "make a token with the scope read:repository",
	}
}

// describe turns the errors of the library into those of the provider package.
func describe(err error) *provider.Error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	if errors.As(err, &syntax) || errors.As(err, &kind) {
		return &provider.Error{Reason: provider.Implausible, Msg: "the answer is not a list in JSON", Hint: notARepository}
	}
	return transport.Fault(err)
}

const notARepository = "check that spec.url is a repository on Gitea or Forgejo; the last good list stands"
