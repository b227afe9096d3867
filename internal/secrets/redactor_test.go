// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const password = `s3cr%40t/"<x>'`

const pemKey = `-----BEGIN OPENSSH PRIVATE KEY-----
b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW
QyNTUxOQAAACBXlkXbnotarealkeyD3y4TtWnotarealkeyrn0Xc4jvn3Q1kQAAAJgKc2Ll
-----END OPENSSH PRIVATE KEY-----
`

func knowing(t testing.TB) *Redactor {
	t.Helper()
	r := &Redactor{}
	r.Add("flux-system/git", map[string][]byte{
		"username": []byte("renderer-bot"), "password": []byte(password + "\n"), "ca.crt": []byte("-----BEGIN CERTIFICATE-----"),
	})
	r.Add("apps/key", map[string][]byte{"identity": []byte(pemKey), "known_hosts": []byte("example.com ssh-ed25519 AAAAC3Nza")})
	r.Add("apps/short", map[string][]byte{"token": []byte("short")})
	return r
}

// shapes are the ways in which a value turns up in text (FR-86).
func shapes(t *testing.T) map[string]string {
	t.Helper()
	asJSON, err := json.Marshal(map[string]string{"v": password})
	if err != nil {
		t.Fatal(err)
	}
	asYAML, err := yaml.Marshal(map[string]any{"a": map[string]string{"v": password}, "key": pemKey})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{
		"as it is":        "x " + password + " y",
		"in a URL":        "https://bot:" + url.QueryEscape(password) + "@host/x.git",
		"in a URL path":   "https://host/" + url.PathEscape(password),
		"userinfo":        (&url.URL{Scheme: "https", User: url.UserPassword("bot", password), Host: "h"}).String(),
		"JSON":            string(asJSON),
		"YAML":            string(asYAML),
		"single quoted":   "v: '" + strings.ReplaceAll(password, "'", "''") + "'",
		"a line of a key": "    QyNTUxOQAAACBXlkXbnotarealkeyD3y4TtWnotarealkeyrn0Xc4jvn3Q1kQAAAJgKc2Ll",
	}
	for _, prefix := range []string{"", "a", "ab", "bot:", `{"auths":{"x":{"password":"`} {
		for name, encoding := range map[string]*base64.Encoding{"std": base64.StdEncoding, "url": base64.URLEncoding, "raw": base64.RawStdEncoding} {
			for _, suffix := range []string{"", "z", "\n", `"}}}`} {
				all[fmt.Sprintf("base64 %s %q %q", name, prefix, suffix)] = encoding.EncodeToString([]byte(prefix + password + suffix))
			}
		}
	}
	return all
}

func TestRule08_Redactor(t *testing.T) {
	r := knowing(t)
	for name, text := range shapes(t) {
		if _, found := r.Contains([]byte(text)); !found {
			t.Errorf("%s: not found in %s", name, text)
		}
		clean := r.Scrub(text)
		if _, found := r.Contains([]byte(clean)); found || !strings.Contains(clean, mask) {
			t.Errorf("%s: %s is still in it", name, clean)
		}
	}
	if owner, _ := r.Contains([]byte(password)); owner != "flux-system/git, key password" {
		t.Errorf("owner %q", owner)
	}
	for _, innocent := range []string{
		"", "renderer-bot", "short", "example.com ssh-ed25519 AAAAC3Nza", "-----BEGIN CERTIFICATE-----",
		"-----BEGIN OPENSSH PRIVATE KEY-----", "s3cr%40", "a text that is long enough to be looked at",
		"b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW", // in every OpenSSH key
	} {
		if owner, found := r.Contains([]byte(innocent)); found {
			t.Errorf("%q is said to hold %s", innocent, owner)
		}
		if got := r.Scrub(innocent); got != innocent {
			t.Errorf("%q became %q", innocent, got)
		}
	}
}

func TestScrubKeepsTheRest(t *testing.T) {
	r := &Redactor{}
	if got := r.Scrub("nothing is known yet"); got != "nothing is known yet" {
		t.Errorf("got %q", got)
	}
	r.Add("a/b", map[string][]byte{"token": []byte("hunter2-hunter2")})
	r.Add("a/c", map[string][]byte{"token": []byte("hunter2-hunter2-and-more")})
	r.Add("a/b", map[string][]byte{"token": []byte("rotated-value")}) // the old one stays known
	got := r.Scrub("<hunter2-hunter2> hunter2-hunter2-and-more, rotated-value.")
	if want := "<[redacted]> [redacted], [redacted]."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

type named struct {
	Name   string
	hidden string
}

func TestRule08_Handler(t *testing.T) {
	for name, next := range map[string]func(*bytes.Buffer) slog.Handler{
		"json": func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) },
		"text": func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			r := knowing(t)
			log := slog.New(r.Handler(next(&out))).With("with", password).WithGroup("group").With("inner", password)
			log.Info("message "+password, "error", errors.New("push to https://bot:"+url.QueryEscape(password)+"@host"),
				"bytes", []byte(password), "group", slog.GroupValue(slog.String("deep", password)),
				"struct", named{Name: password, hidden: password}, "pointer", &named{Name: password},
				"map", map[string]any{"k": []string{password}}, "url", &url.URL{Path: password}, password, "as key", "kept", 7)
			if owner, found := r.Contains(out.Bytes()); found {
				t.Errorf("the value of %s is in %s", owner, out.String())
			}
			if !strings.Contains(out.String(), "kept") || strings.Count(out.String(), mask) < 9 {
				t.Errorf("got %s", out.String())
			}
		})
	}
}

func FuzzScrub(f *testing.F) {
	f.Add("hunter2-hunter2", "xx", "yy")
	f.Add("a\nb c d e f g h", "'", "\"")
	f.Fuzz(func(t *testing.T, value, before, after string) {
		r := &Redactor{}
		r.Add("a/b", map[string][]byte{"token": []byte(value)})
		trimmed := strings.TrimSpace(value)
		text := before + trimmed + after
		clean := r.Scrub(text)
		if len(trimmed) >= MinLength && !strings.Contains(clean, mask) {
			t.Errorf("%q is still in %q", value, clean)
		}
		encoded := base64.StdEncoding.EncodeToString([]byte(text))
		if _, found := r.Contains([]byte(encoded)); len(trimmed) >= MinLength && !found {
			t.Errorf("%q not found in %q, the base64 of %q", value, encoded, text)
		}
	})
}

// BenchmarkContains is what looking through a whole output costs: 10,000 files of
// 2 KiB, 50 credentials.
func BenchmarkContains(b *testing.B) {
	r := &Redactor{}
	for i := range 50 {
		r.Add(fmt.Sprintf("apps/s%d", i), map[string][]byte{"token": []byte(fmt.Sprintf("ghp_%032d", i*7919)), "identity": []byte(pemKey)})
	}
	file := []byte(strings.Repeat("    image: ghcr.io/stefanprodan/podinfo:6.9.1\n", 45))
	b.SetBytes(int64(len(file)) * 10000)
	for b.Loop() {
		for range 10000 {
			if _, found := r.Contains(file); found {
				b.Fatal("found")
			}
		}
	}
}
