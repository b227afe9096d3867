// SPDX-License-Identifier: Apache-2.0

package gitwriter

import (
	"encoding/base64"
	"net/url"
	"strings"
)

const redacted = "***"

// A redactor replaces credentials in text that comes from servers and libraries.
type redactor struct{ replacer *strings.Replacer }

// newRedactor knows the secrets raw, escaped as in URLs and in base64, alone and as
// the user:password pair of a basic Authorization header.
func newRedactor(auths ...Auth) redactor {
	var pairs []string
	add := func(secret string) {
		if len(secret) < 4 { // shorter ones would turn text into noise
			return
		}
		for _, form := range []string{
			secret, url.QueryEscape(secret), url.PathEscape(secret), url.UserPassword("", secret).String()[1:],
			base64.StdEncoding.EncodeToString([]byte(secret)), base64.RawURLEncoding.EncodeToString([]byte(secret)),
		} {
			pairs = append(pairs, form, redacted)
		}
	}
	for _, auth := range auths {
		if auth.Password != "" {
			add(base64.StdEncoding.EncodeToString([]byte(auth.Username + ":" + auth.Password)))
		}
		add(auth.Password)
		add(auth.BearerToken)
		add(auth.Passphrase)
	}
	return redactor{strings.NewReplacer(pairs...)}
}

// text is s without credentials and control characters, in one line of bounded length.
func (r redactor) text(s string) string {
	const limit = 2000
	s = strings.Map(func(c rune) rune {
		switch {
		case c == '\n' || c == '\r' || c == '\t':
			return ' '
		case c < ' ' || c == 0x7f:
			return -1
		}
		return c
	}, r.replacer.Replace(s))
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "") + "…"
	}
	return s
}
