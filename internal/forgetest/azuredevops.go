// SPDX-License-Identifier: Apache-2.0

package forgetest

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// An AzureDevOps is an Azure DevOps Server with one collection, whose repositories
// have names like "collection/project/repository". See
// https://learn.microsoft.com/rest/api/azure/devops/git/.
type AzureDevOps struct {
	hosting
	// HideLabels keeps labels out of lists of pull requests.
	HideLabels bool
}

// NewAzureDevOps starts a server without repositories that lets everybody in.
func NewAzureDevOps() *AzureDevOps {
	a := &AzureDevOps{hosting: hosting{model: newModel()}}
	mux := http.NewServeMux()
	const repo = "/{owner}/{project}/_apis/git/repositories/{name}"
	mux.HandleFunc("GET "+repo+"/pullrequests", a.in(func(w http.ResponseWriter, r *http.Request, repo *Repo) {
		a.pulls(w, r, repo)
	}))
	mux.HandleFunc("GET "+repo+"/pullRequests/{number}/labels", a.in(func(w http.ResponseWriter, r *http.Request, repo *Repo) {
		for _, p := range repo.prs {
			if strconv.Itoa(p.number) == r.PathValue("number") {
				answerJSON(w, http.StatusOK, azureList(azureLabels(p)))
				return
			}
		}
		azureRefuse(w, http.StatusNotFound, "TF401180: The requested pull request was not found.")
	}))
	mux.HandleFunc("GET "+repo+"/refs", a.in(a.refs))
	a.start(mux)
	return a
}

// in finds the repository of a request, and whether it may be seen: a credential
// that is wrong gets a sign-in page with status 203, and none is sent to one.
func (a *AzureDevOps) in(answer func(http.ResponseWriter, *http.Request, *Repo)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		a.model.mu.Lock()
		defer a.model.mu.Unlock()
		_, password, _ := r.BasicAuth()
		switch token := a.model.token; {
		case token == "" || password == token || r.Header.Get("Authorization") == "Bearer "+token:
		case r.Header.Get("Authorization") == "":
			http.Redirect(w, r, "/_signin?reply_to=x", http.StatusFound)
			return
		default:
			SignIn()(w, r, nil)
			return
		}
		if r.URL.Query().Get("api-version") == "" {
			azureRefuse(w, http.StatusBadRequest, "No api-version was supplied for the GET request.")
			return
		}
		repo := a.model.repos[strings.ToLower(r.PathValue("owner")+"/"+r.PathValue("project")+"/"+r.PathValue("name"))]
		if repo == nil {
			azureRefuse(w, http.StatusNotFound, "TF401019: The Git repository with name or identifier "+r.PathValue("name")+
				" does not exist or you do not have permissions for the operation you are attempting.")
			return
		}
		answer(w, r, repo)
	}
}

func azureRefuse(w http.ResponseWriter, status int, message string) {
	answerJSON(w, status, map[string]any{"$id": "1", "innerException": nil, "message": message, "typeKey": "GitRepositoryNotFoundException", "errorCode": 0})
}

func azureList(items []any) map[string]any {
	return map[string]any{"value": append([]any{}, items...), "count": len(items)}
}

func (a *AzureDevOps) cut(r *http.Request, items []any, from int) []any {
	top, err := strconv.Atoi(r.URL.Query().Get("$top"))
	if err != nil || top < 1 {
		top = 101
	}
	from = min(from, len(items))
	return items[from:min(from+min(top, a.model.pageLimit), len(items))]
}

// pulls answers with the newest first.
func (a *AzureDevOps) pulls(w http.ResponseWriter, r *http.Request, repo *Repo) {
	var items []any
	for _, p := range slices.Backward(repo.prs) {
		if p.open == (r.URL.Query().Get("searchCriteria.status") == "active") {
			items = append(items, a.pull(repo, p))
		}
	}
	skip, _ := strconv.Atoi(r.URL.Query().Get("$skip"))
	answerJSON(w, http.StatusOK, azureList(a.cut(r, items, skip)))
}

func azureLabels(p *pull) []any {
	return each(p.Labels, func(name string) any {
		return map[string]any{"id": SHA(name)[:32], "name": name, "active": true}
	})
}

func (a *AzureDevOps) pull(repo *Repo, p *pull) any {
	status := "abandoned"
	if p.open {
		status = "active"
	}
	told := map[string]any{
		"repository":    map[string]any{"id": SHA(repo.fullName)[:32], "name": "web", "project": map[string]any{"name": "p"}},
		"pullRequestId": p.number, "codeReviewId": p.number, "status": status, "title": p.Title, "description": p.body, "isDraft": p.Draft,
		"createdBy":    map[string]any{"displayName": p.Author, "uniqueName": p.Author + "@example.com", "id": "1"},
		"creationDate": p.created.Format("2006-01-02T15:04:05.0000000Z"), "mergeStatus": "succeeded",
		"sourceRefName": "refs/heads/" + p.Branch, "targetRefName": "refs/heads/" + p.Target,
		"lastMergeSourceCommit": map[string]any{"commitId": p.SHA}, "lastMergeTargetCommit": map[string]any{"commitId": SHA(p.Target)},
		"reviewers": []any{}, "supportsIterations": true,
	}
	if p.Ghost {
		told["createdBy"] = map[string]any{}
	}
	if p.Fork != "" || p.ForkDeleted {
		told["forkSource"] = map[string]any{"name": "refs/heads/" + p.Branch, "repository": map[string]any{"id": "fork"}}
	}
	if len(p.Labels) > 0 && !a.HideLabels {
		told["labels"] = azureLabels(p)
	}
	return told
}

// refs answers with the refs whose names begin as asked, and with a token when
// there are more. A tag whose name begins with a v is annotated.
func (a *AzureDevOps) refs(w http.ResponseWriter, r *http.Request, repo *Repo) {
	query := r.URL.Query()
	var items []any
	for kind, prefix := range map[string]string{"branches": "heads/", "tags": "tags/"} {
		if !strings.HasPrefix(prefix, query.Get("filter")) {
			continue
		}
		for _, name := range repo.names(kind) {
			ref := map[string]any{"name": "refs/" + prefix + name, "objectId": repo.refs[kind][name], "creator": map[string]any{"displayName": "ada"}}
			if kind == "tags" && strings.HasPrefix(name, "v") {
				ref["objectId"] = SHA("tag " + name)
				if query.Get("peelTags") == "true" {
					ref["peeledObjectId"] = repo.refs[kind][name]
				}
			}
			items = append(items, ref)
		}
	}
	from, _ := strconv.Atoi(strings.TrimPrefix(query.Get("continuationToken"), "from "))
	page := a.cut(r, items, from)
	if from+len(page) < len(items) {
		w.Header().Set("X-Ms-Continuationtoken", "from "+strconv.Itoa(from+len(page)))
	}
	answerJSON(w, http.StatusOK, azureList(page))
}
