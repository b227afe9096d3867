// SPDX-License-Identifier: Apache-2.0

package codecommit

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/codecommit"

	"resourceset.example/renderer/pkg/source/provider"
)

// answering is an HTTP client that has one answer to everything.
type answering []byte

func (a answering) Do(req *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Request: req, Header: http.Header{"Content-Type": {"application/x-amz-json-1.1"}},
		Body: io.NopCloser(bytes.NewReader(a)),
	}, nil
}

// Whatever the API answers, it is a page of numbers and a whole pull request, or an
// error; and so it is with what it calls its errors.
func FuzzAnswers(f *testing.F) {
	for _, body := range []string{
		`{"pullRequestIds":["1","2"],"nextToken":"x"}`, `{"pullRequestIds":[null]}`, `{"pullRequestIds":["01","-1"]}`, `{}`, `null`, `[]`, "",
		`{"pullRequest":{"pullRequestId":"1","pullRequestStatus":"OPEN","title":"t","authorArn":"arn:aws:iam::1:user/ada","creationDate":1,"lastActivityDate":2,"pullRequestTargets":[{"repositoryName":"web","sourceReference":"refs/heads/a","destinationReference":"refs/heads/main","sourceCommit":"6063e25000000000000000000000000000000000"}]}}`,
		`{"pullRequest":{"pullRequestId":"1","pullRequestStatus":"CLOSED"}}`, `{"__type":"com.amazonaws.codecommit#ThrottlingException","message":null}`, `{"__type":"#:"}`,
	} {
		f.Add([]byte(body))
	}
	keys := credentials.NewStaticCredentialsProvider(accessKey, secretKey, "")
	f.Fuzz(func(t *testing.T, body []byte) {
		s := &session{repo: &repository{name: "web"}, use: keys, api: codecommit.New(codecommit.Options{
			Region: elsewhere, Credentials: keys, Retryer: aws.NopRetryer{}, HTTPClient: answering(body), BaseEndpoint: aws.String("http://127.0.0.1"),
		})}
		page, err := s.page(t.Context(), firstPage, nil)
		if err != nil && provider.ReasonOf(err) != provider.Implausible {
			t.Errorf("%q: got %v", body, err)
		}
		if err == nil {
			for i, number := range page.Items {
				if n, err := strconv.ParseInt(number, 10, 64); err != nil || n <= 0 || page.Keys[i] != number {
					t.Errorf("%q: number %q", body, number)
				}
			}
		}
		pull, err := s.pull(t.Context(), "1")
		if err != nil && (pull != nil || provider.ReasonOf(err) != provider.Implausible) {
			t.Errorf("%q: got %v, %v", body, pull, err)
		}
		if err == nil && pull != nil && (pull.ID != "1" || pull.Branch == "" || pull.TargetBranch == "" || pull.SHA == "" || pull.Author == "" || pull.CreatedAt.IsZero()) {
			t.Errorf("%q: read %+v", body, pull)
		}
		if known := explain(&http.Response{StatusCode: http.StatusBadRequest, Header: http.Header{}}, body); known != nil && known.Reason == "" {
			t.Errorf("%q: explained without a reason", body)
		}
	})
}
