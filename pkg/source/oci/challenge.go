// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"strings"
)

// A challenge is how a registry wants to be asked (RFC 9110, section 11.6.1).
type challenge struct {
	scheme     string // in small letters
	parameters map[string]string
}

// challenges reads WWW-Authenticate headers: each may hold several challenges,
// whose parameters are separated by the same commas.
func challenges(headers []string) []challenge {
	var found []challenge
	for _, header := range headers {
		for header != "" {
			header = strings.TrimLeft(header, " \t,=\"") // also what is left of a token68
			word, rest := token(header)
			if word == "" {
				break
			}
			if !strings.HasPrefix(rest, "=") {
				found = append(found, challenge{scheme: strings.ToLower(word), parameters: map[string]string{}})
				header = rest
				continue
			}
			value, rest := parameter(rest[1:])
			if len(found) > 0 {
				found[len(found)-1].parameters[strings.ToLower(word)] = value
			}
			header = rest
		}
	}
	return found
}

// pick is the challenge to answer: a token rather than the password.
func pick(all []challenge) (challenge, bool) {
	for _, scheme := range []string{"bearer", "basic"} {
		for _, c := range all {
			if c.scheme == scheme {
				return c, true
			}
		}
	}
	return challenge{}, false
}

func token(text string) (word, rest string) {
	end := strings.IndexAny(text, " \t,=\"")
	if end < 0 {
		return text, ""
	}
	return text[:end], strings.TrimLeft(text[end:], " \t")
}

// parameter reads a value, which may be quoted.
func parameter(text string) (value, rest string) {
	text = strings.TrimLeft(text, " \t")
	if !strings.HasPrefix(text, `"`) {
		return token(text)
	}
	var out strings.Builder
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '"':
			return out.String(), text[i+1:]
		case '\\':
			if i++; i < len(text) {
				out.WriteByte(text[i])
			}
		default:
			out.WriteByte(text[i])
		}
	}
	return out.String(), ""
}
