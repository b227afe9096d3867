// SPDX-License-Identifier: Apache-2.0

package externalservice

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"resourceset.example/renderer/internal/forgetest"
	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/source/provider"
	"resourceset.example/renderer/pkg/source/provider/providertest"
)

func newFetcher(cfg provider.Config) (providertest.Fetcher, error) { return New(cfg) }

func orchestrator(t *testing.T, options forgetest.OrchestratorOptions) (*forgetest.Orchestrator, provider.Config) {
	t.Helper()
	o, err := forgetest.NewOrchestrator(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.Close)
	return o, provider.Config{
		Object: &api.ResourceSetInputProvider{
			Meta: api.Meta{Name: "flags", Namespace: "apps"},
			Spec: api.InputProviderSpec{Type: api.TypeExternalService, URL: o.URL, Insecure: true},
		},
		UserAgent: "renderer/test",
		RetryWait: time.Millisecond,
	}
}

func TestContract(t *testing.T) {
	for name, kind := range map[string]struct {
		secret  provider.Secret
		key     string
		options forgetest.OrchestratorOptions
	}{
		"bearer": {
			provider.Secret{"token": []byte("t0k3n-of-the-test")}, "token",
			forgetest.OrchestratorOptions{Token: "t0k3n-of-the-test"},
		},
		"basic": {
			provider.Secret{"username": []byte("bot"), "password": []byte("p@ss/w0rd +x")}, "password",
			forgetest.OrchestratorOptions{Username: "bot", Password: "p@ss/w0rd +x"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			providertest.Contract(t, func(t *testing.T, items int) providertest.Fixture {
				o, cfg := orchestrator(t, kind.options)
				cfg.Secret = kind.secret
				n := 0
				add := func() {
					n++
					o.Add(map[string]any{"id": fmt.Sprintf("t%d", n), "tenant": fmt.Sprintf("tenant%d", n)})
				}
				for range items {
					add()
				}
				return providertest.Fixture{Server: o, Config: cfg, New: newFetcher, Add: add, CredentialKey: kind.key, KeyField: "id"}
			})
		})
	}
}

func fetch(t *testing.T, cfg provider.Config, previous []api.Input) provider.Result {
	t.Helper()
	p, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	result, err := p.Fetch(t.Context(), previous)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// The answer of the seed, whose input sets have no id.
const seed = `{
  "inputs": [
    {"tenant": "tenant1", "version": "2.0.0-rc.1", "featureFlags": ["feature1", "feature2", "feature3"]},
    {"tenant": "tenant2", "version": "1.9.0", "featureFlags": ["feature1", "feature2"]}
  ]
}`

func TestSeed(t *testing.T) {
	o, cfg := orchestrator(t, forgetest.OrchestratorOptions{})
	o.Break(forgetest.JSON(seed))
	cfg.Object.Spec.URL = o.URL + "/api/v1/flux/inputs?env=prod&app=app1"
	got := fetch(t, cfg, nil)
	want := []api.Input{
		{"tenant": "tenant1", "version": "2.0.0-rc.1", "featureFlags": []any{"feature1", "feature2", "feature3"}},
		{"tenant": "tenant2", "version": "1.9.0", "featureFlags": []any{"feature1", "feature2"}},
	}
	if diff := cmp.Diff(want, got.Inputs); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	request := o.Requests()[0]
	if request.URL.RawQuery != "env=prod&app=app1" || request.Header.Get("Accept") != "application/json" ||
		request.UserAgent() != "renderer/test" {
		t.Errorf("request %s with %v", request.URL, request.Header)
	}
}

func TestMutualTLS(t *testing.T) {
	ca, err := forgetest.NewCA()
	if err != nil {
		t.Fatal(err)
	}
	crt, key, err := ca.Issue("renderer")
	if err != nil {
		t.Fatal(err)
	}
	o, cfg := orchestrator(t, forgetest.OrchestratorOptions{CA: ca, ClientCert: true})
	o.Set(map[string]any{"id": "a"})
	cfg.Object.Spec.Insecure = false

	for name, test := range map[string]struct {
		secret provider.Secret
		want   provider.Reason // of Fetch; none if empty
	}{
		"complete":       {provider.Secret{"ca.crt": ca.PEM(), "tls.crt": crt, "tls.key": key}, ""},
		"no certificate": {provider.Secret{"ca.crt": ca.PEM()}, provider.TLS},
		"no authority":   {provider.Secret{"tls.crt": crt, "tls.key": key}, provider.TLS},
		"no secret":      {nil, provider.TLS},
	} {
		t.Run(name, func(t *testing.T) {
			cfg.CertSecret = test.secret
			p, err := New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			result, err := p.Fetch(t.Context(), nil)
			if test.want == "" {
				if err != nil || len(result.Inputs) != 1 {
					t.Errorf("got %v, %v", result, err)
				}
				return
			}
			if provider.ReasonOf(err) != test.want {
				t.Errorf("got %v, want reason %s", err, test.want)
			}
		})
	}
	for name, secret := range map[string]provider.Secret{
		"empty":         {},
		"key alone":     {"tls.key": key},
		"not PEM":       {"ca.crt": []byte("hello")},
		"wrong key":     {"tls.crt": crt, "tls.key": []byte("hello")},
		"unrelated key": {"other": []byte("x")},
	} {
		t.Run(name, func(t *testing.T) {
			cfg.CertSecret = secret
			if _, err := New(cfg); provider.ReasonOf(err) != provider.Misconfigured {
				t.Errorf("got %v, want a config error", err)
			}
		})
	}
}

// A client certificate is a credential too: it does not follow a redirect (FR-81).
func TestRule08_CertificateForOneHost(t *testing.T) {
	ca, err := forgetest.NewCA()
	if err != nil {
		t.Fatal(err)
	}
	crt, key, err := ca.Issue("renderer")
	if err != nil {
		t.Fatal(err)
	}
	evil, _ := orchestrator(t, forgetest.OrchestratorOptions{CA: ca, ClientCert: true})
	o, cfg := orchestrator(t, forgetest.OrchestratorOptions{CA: ca, ClientCert: true})
	o.Break(forgetest.Redirect(evil.URL))
	cfg.CertSecret = provider.Secret{"ca.crt": ca.PEM(), "tls.crt": crt, "tls.key": key}
	p, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Fetch(t.Context(), nil); provider.ReasonOf(err) != provider.Redirected {
		t.Errorf("got %v, want a refused redirect", err)
	}
	if len(evil.Requests()) != 0 {
		t.Error("the other host was asked")
	}
}

// Without a credential a redirect to another host is followed, but not to http.
func TestRedirectWithoutCredential(t *testing.T) {
	ca, err := forgetest.NewCA()
	if err != nil {
		t.Fatal(err)
	}
	plain, _ := orchestrator(t, forgetest.OrchestratorOptions{})
	other, _ := orchestrator(t, forgetest.OrchestratorOptions{CA: ca})
	other.Set(map[string]any{"id": "a"})
	o, cfg := orchestrator(t, forgetest.OrchestratorOptions{CA: ca})
	cfg.CertSecret = provider.Secret{"ca.crt": ca.PEM()}

	o.Break(forgetest.Redirect(other.URL))
	cfg.Object.Spec.URL = o.URL + "/?token=in-the-query"
	if got := fetch(t, cfg, nil); len(got.Inputs) != 1 {
		t.Errorf("got %v", got)
	}
	if other.Sent("in-the-query") {
		t.Error("the query went along to the other host")
	}
	o.Break(forgetest.Redirect(plain.URL))
	p, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Fetch(t.Context(), nil); provider.ReasonOf(err) != provider.Redirected {
		t.Errorf("got %v, want a refused redirect", err)
	}
	if len(plain.Requests()) != 0 {
		t.Error("asked in plain text")
	}
}

func TestConfig(t *testing.T) {
	for name, test := range map[string]struct {
		url      string
		insecure bool
		secret   provider.Secret
	}{
		"plain http":       {url: "http://orchestrator.example/inputs"},
		"no host":          {url: "https:///inputs"},
		"ftp":              {url: "ftp://orchestrator.example/inputs"},
		"not a URL":        {url: "https://orchestrator.example/%zz"},
		"password in URL":  {url: "https://bot:s3cr3t-x@orchestrator.example/inputs"},
		"token and basic":  {url: "https://orchestrator.example", secret: provider.Secret{"token": []byte("s3cr3t-x"), "username": []byte("u"), "password": []byte("s3cr3t-x")}},
		"user alone":       {url: "https://orchestrator.example", secret: provider.Secret{"username": []byte("u")}},
		"password alone":   {url: "https://orchestrator.example", secret: provider.Secret{"password": []byte("s3cr3t-x")}},
		"control in token": {url: "https://orchestrator.example", secret: provider.Secret{"token": []byte("s3cr3t-x\x00y")}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(provider.Config{Secret: test.secret, Object: &api.ResourceSetInputProvider{
				Spec: api.InputProviderSpec{URL: test.url, Insecure: test.insecure},
			}})
			if provider.ReasonOf(err) != provider.Misconfigured || strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("got %v, want a config error without credentials", err)
			}
		})
	}
}

func TestBodyLimit(t *testing.T) {
	o, cfg := orchestrator(t, forgetest.OrchestratorOptions{})
	const frame = `{"inputs":[{"a":""}]}`
	o.Break(forgetest.JSON(strings.Replace(frame, `""`, `"`+strings.Repeat("x", MaxBody-len(frame))+`"`, 1)))
	fetch(t, cfg, nil)
	o.Break(forgetest.JSON(strings.Replace(frame, `""`, `"`+strings.Repeat("x", MaxBody-len(frame)+1)+`"`, 1)))
	p, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Fetch(t.Context(), nil); provider.ReasonOf(err) != provider.TooLarge {
		t.Errorf("got %v, want too large", err)
	}
	// So does one that never ends.
	o.Break(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		for {
			if _, err := w.Write([]byte(strings.Repeat(" ", 1<<16))); err != nil {
				return
			}
		}
	})
	if _, err := p.Fetch(t.Context(), nil); provider.ReasonOf(err) != provider.TooLarge {
		t.Errorf("endless: got %v, want too large", err)
	}
}

// Input sets without an id keep their places under a limit by the field that
// tells them apart, although another one changes (rule 13).
func TestRule13_LimitWithoutID(t *testing.T) {
	o, cfg := orchestrator(t, forgetest.OrchestratorOptions{})
	cfg.Object.Spec.Filter.Limit = 2
	o.Set(map[string]any{"tenant": "c", "version": "1"}, map[string]any{"tenant": "d", "version": "2"})
	before := fetch(t, cfg, nil)
	o.Set(map[string]any{"tenant": "a", "version": "1"}, map[string]any{"tenant": "b", "version": "2"},
		map[string]any{"tenant": "c", "version": "3"}, map[string]any{"tenant": "d", "version": "4"})
	after := fetch(t, cfg, before.Inputs)
	if len(after.Inputs) != 2 || after.Inputs[0]["tenant"] != "c" || after.Inputs[1]["tenant"] != "d" {
		t.Errorf("got %v, want c and d, which were there before", after.Inputs)
	}
}
