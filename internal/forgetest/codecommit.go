// SPDX-License-Identifier: Apache-2.0

package forgetest

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// A CodeCommit is one region of AWS CodeCommit: the API in its JSON 1.1 protocol, and
// Git's list of refs below /v1/repos/. It checks signatures. See
// https://docs.aws.amazon.com/codecommit/latest/APIReference/.
type CodeCommit struct {
	hosting
	region string
	keys   aws.Credentials // wanted, if set
}

// NewCodeCommit starts a region without repositories that lets everybody in.
func NewCodeCommit(region string) *CodeCommit {
	c := &CodeCommit{hosting: hosting{model: newModel()}, region: region}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{$}", c.api)
	mux.HandleFunc("GET /v1/repos/{name}/info/refs", c.refs)
	c.start(mux)
	return c
}

// RequireKeys makes the server want signatures by these keys.
func (c *CodeCommit) RequireKeys(accessKey, secretKey, sessionToken string) {
	c.model.mu.Lock()
	defer c.model.mu.Unlock()
	c.keys = aws.Credentials{AccessKeyID: accessKey, SecretAccessKey: secretKey, SessionToken: sessionToken}
}

// CodeCommitPage is the number of the page of pull requests that a request is for, 0
// for any other request of the API, and 1 for Git's list.
func CodeCommitPage(r *http.Request) int {
	if r.Method != http.MethodPost {
		return 1
	}
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	var in struct{ NextToken, PullRequestID string }
	if json.Unmarshal(body, &in) != nil || in.PullRequestID != "" {
		return 0
	}
	return codeCommitPage(in.NextToken)
}

func codeCommitRefuse(w http.ResponseWriter, status int, name, message string) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	w.Header().Set("X-Amzn-Requestid", "00000000-0000-0000-0000-000000000000")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"__type": name, "message": message})
}

func (c *CodeCommit) api(w http.ResponseWriter, r *http.Request) {
	c.model.mu.Lock()
	defer c.model.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	var in struct {
		RepositoryName, NextToken, PullRequestID, PullRequestStatus string
		MaxResults                                                  int
	}
	if json.Unmarshal(body, &in) != nil || r.Header.Get("Content-Type") != "application/x-amz-json-1.1" {
		codeCommitRefuse(w, http.StatusBadRequest, "SerializationException", "")
		return
	}
	if c.keys.AccessKeyID != "" {
		if name := c.checkSignature(r, body); name != "" {
			codeCommitRefuse(w, http.StatusBadRequest, name, "The security token included in the request is invalid.")
			return
		}
	}
	operation := strings.TrimPrefix(r.Header.Get("X-Amz-Target"), "CodeCommit_20150413.")
	repo := c.model.repos[strings.ToLower(in.RepositoryName)]
	switch {
	case operation == "ListPullRequests" && repo != nil:
		c.list(w, repo, in.PullRequestStatus, codeCommitPage(in.NextToken), in.MaxResults)
	case operation == "ListPullRequests":
		codeCommitRefuse(w, http.StatusBadRequest, "RepositoryDoesNotExistException", in.RepositoryName+" does not exist")
	case operation == "GetPullRequest":
		c.pull(w, in.PullRequestID)
	default:
		codeCommitRefuse(w, http.StatusBadRequest, "UnknownOperationException", "")
	}
}

// codeCommitPage is the number of the page that a token stands for.
func codeCommitPage(token string) int {
	page, _ := strconv.Atoi(strings.TrimPrefix(token, "page "))
	return max(page, 1)
}

// checkSignature signs a request again, as whoever sent it should have, and returns
// the name of the error if that is not what came.
func (c *CodeCommit) checkSignature(r *http.Request, body []byte) string {
	sent := r.Header.Get("Authorization")
	_, signedHeaders, ok := strings.Cut(sent, "SignedHeaders=")
	if !ok {
		return "MissingAuthenticationTokenException"
	}
	signedHeaders, _, _ = strings.Cut(signedHeaders, ",")
	if !strings.Contains(sent, "Credential="+c.keys.AccessKeyID+"/") || r.Header.Get("X-Amz-Security-Token") != c.keys.SessionToken {
		return "UnrecognizedClientException"
	}
	again, err := http.NewRequest(r.Method, "http://"+r.Host+r.URL.RequestURI(), nil)
	at, timeErr := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil || timeErr != nil {
		return "IncompleteSignatureException"
	}
	again.ContentLength = int64(len(body))
	for name := range strings.SplitSeq(signedHeaders, ";") {
		if value := r.Header.Values(name); len(value) > 0 && name != "content-length" {
			again.Header[http.CanonicalHeaderKey(name)] = value
		}
	}
	sum := sha256.Sum256(body)
	err = v4.NewSigner().SignHTTP(context.Background(), c.keys, again, hex.EncodeToString(sum[:]), "codecommit", c.region, at)
	if err != nil || again.Header.Get("Authorization") != sent {
		return "InvalidSignatureException"
	}
	return ""
}

// list answers with the newest first, numbers only.
func (c *CodeCommit) list(w http.ResponseWriter, repo *Repo, status string, page, size int) {
	ids := []string{}
	for _, p := range slices.Backward(repo.prs) {
		if p.open == (status == "OPEN") {
			ids = append(ids, strconv.Itoa(p.number))
		}
	}
	size = min(size, c.model.pageLimit)
	from, to := min((page-1)*size, len(ids)), min(page*size, len(ids))
	out := map[string]any{"pullRequestIds": ids[from:to]}
	if to < len(ids) {
		out["nextToken"] = fmt.Sprintf("page %d", page+1)
	}
	codeCommitAnswer(w, out)
}

func codeCommitAnswer(w http.ResponseWriter, out any) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	_ = json.NewEncoder(w).Encode(out)
}

func (c *CodeCommit) pull(w http.ResponseWriter, id string) {
	for _, repo := range c.model.repos {
		for _, p := range repo.prs {
			if strconv.Itoa(p.number) != id {
				continue
			}
			status := "CLOSED"
			if p.open {
				status = "OPEN"
			}
			arn := "arn:aws:iam::111111111111:user/" + p.Author
			if p.Ghost {
				arn = ""
			}
			codeCommitAnswer(w, map[string]any{"pullRequest": map[string]any{
				"pullRequestId": id, "title": p.Title, "description": p.body, "pullRequestStatus": status, "authorArn": arn,
				"creationDate": float64(p.created.UnixMilli()) / 1000, "lastActivityDate": float64(p.updated.UnixMilli()) / 1000,
				"pullRequestTargets": []any{map[string]any{
					"repositoryName": repo.fullName, "sourceReference": "refs/heads/" + p.Branch, "destinationReference": "refs/heads/" + p.Target,
					"sourceCommit": p.SHA, "destinationCommit": SHA(p.Target), "mergeBase": SHA("base"), "mergeMetadata": map[string]any{"isMerged": false},
				}},
				"approvalRules": []any{}, "clientRequestToken": "", "revisionId": "1",
			}})
			return
		}
	}
	codeCommitRefuse(w, http.StatusBadRequest, "PullRequestDoesNotExistException", id+" does not exist")
}

// refs answers as git-upload-pack does. A tag whose name begins with a v is annotated.
func (c *CodeCommit) refs(w http.ResponseWriter, r *http.Request) {
	c.model.mu.Lock()
	defer c.model.mu.Unlock()
	username, password, _ := r.BasicAuth()
	if c.keys.AccessKeyID != "" {
		wanted := c.keys.AccessKeyID
		if c.keys.SessionToken != "" {
			wanted += "%" + c.keys.SessionToken
		}
		if username != wanted || password != c.gitPassword(r, password) {
			w.WriteHeader(http.StatusForbidden)
			return
		}
	}
	repo := c.model.repos[strings.ToLower(r.PathValue("name"))]
	if repo == nil || r.URL.Query().Get("service") != "git-upload-pack" {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	lines := []string{strings.Repeat("1", 40) + " refs/pull/1/head"} // neither a branch nor a tag
	for _, name := range repo.names("branches") {
		lines = append(lines, repo.refs["branches"][name]+" refs/heads/"+name)
	}
	for _, name := range repo.names("tags") {
		if sha := repo.refs["tags"][name]; strings.HasPrefix(name, "v") {
			lines = append(lines, SHA("tag "+name)+" refs/tags/"+name, sha+" refs/tags/"+name+"^{}")
		} else {
			lines = append(lines, sha+" refs/tags/"+name)
		}
	}
	lines[0] += "\x00multi_ack side-band-64k ofs-delta agent=codecommit"
	w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
	var out strings.Builder
	packet := func(text string) { fmt.Fprintf(&out, "%04x%s", len(text)+4, text) }
	packet("# service=git-upload-pack\n")
	out.WriteString("0000")
	for _, line := range lines {
		packet(line + "\n")
	}
	out.WriteString("0000")
	_, _ = io.WriteString(w, out.String())
}

// gitPassword is what the password should be, made at the moment that the one which
// was sent names.
func (c *CodeCommit) gitPassword(r *http.Request, sent string) string {
	moment, _, ok := strings.Cut(sent, "Z")
	if at, err := time.Parse("20060102T150405", moment); !ok || err != nil || time.Since(at).Abs() > 5*time.Minute {
		return "none"
	}
	path := strings.TrimSuffix(r.URL.Path, "/info/refs")
	request := sha256.Sum256([]byte("GIT\n" + path + "\n\nhost:" + r.Host + "\n\nhost\n"))
	key := []byte("AWS4" + c.keys.SecretAccessKey)
	for _, text := range []string{
		moment[:8], c.region, "codecommit", "aws4_request",
		"AWS4-HMAC-SHA256\n" + moment + "\n" + moment[:8] + "/" + c.region + "/codecommit/aws4_request\n" + hex.EncodeToString(request[:]),
	} {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(text))
		key = mac.Sum(nil)
	}
	return moment + "Z" + hex.EncodeToString(key)
}
