// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"encoding/base64"
	"net/http"
	"strings"

	"resourceset.example/renderer/internal/escape"
)

// minHidden is the length of the shortest text that is hidden: shorter ones would
// make messages unreadable.
const minHidden = 4

// JobToken is the header in which GitLab takes the token of a CI job.
const JobToken = "Job-Token"

// scrub hides the credential of a request in what the server said about it, for
// some repeat what they were sent.
func scrub(sent *http.Request, text string) string {
	_, credential, _ := strings.Cut(sent.Header.Get("Authorization"), " ")
	hidden := []string{credential, sent.Header.Get("X-Amz-Security-Token"), sent.Header.Get(JobToken)}
	if username, password, ok := sent.BasicAuth(); ok {
		hidden = append(hidden, username+":"+password, password)
	}
	var pairs []string
	for _, secret := range hidden {
		if len(secret) < minHidden {
			continue
		}
		forms := append(escape.Forms(secret),
			base64.StdEncoding.EncodeToString([]byte(secret)), base64.RawURLEncoding.EncodeToString([]byte(secret)))
		for _, form := range forms {
			pairs = append(pairs, form, "[redacted]")
		}
	}
	return strings.NewReplacer(pairs...).Replace(text)
}
