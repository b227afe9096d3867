// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"fmt"
	"net/url"
)

// ParseURL reads a spec.url that has to be an HTTP address. The error repeats no
// part of it that may be a credential.
func ParseURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, &Error{Reason: Misconfigured, Msg: "spec.url is not a URL", Hint: "it has the form https://host/path"}
	}
	if u.User != nil {
		return nil, &Error{
			Reason: Misconfigured,
			Msg:    "spec.url holds a user name or password",
			Hint:   "put them into a Secret and name it in spec.secretRef; what is in Git is no secret any more",
		}
	}
	if (u.Scheme != "https" && u.Scheme != "http") || u.Hostname() == "" {
		return nil, &Error{
			Reason: Misconfigured,
			Msg:    fmt.Sprintf("spec.url has the scheme %q and host %q", u.Scheme, u.Hostname()),
			Hint:   "it has the form https://host/path",
		}
	}
	u.Fragment, u.RawFragment = "", ""
	return u, nil
}
