// SPDX-License-Identifier: Apache-2.0

package bitbucket

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"resourceset.example/renderer/pkg/source/provider"
)

var errNoPull = errors.New("not a pull request in JSON")

// A cloudSide is one end of a pull request on Cloud. Its commit and repository are
// null where they are gone.
type cloudSide struct {
	Branch struct {
		Name string `json:"name"`
	} `json:"branch"`
	Commit *struct {
		Hash string `json:"hash"`
	} `json:"commit"`
	Repository *struct {
		FullName string `json:"full_name"`
		UUID     string `json:"uuid"`
	} `json:"repository"`
}

func (s cloudSide) repository() string {
	if s.Repository == nil {
		return ""
	}
	return s.Repository.FullName
}

func (s cloudSide) hash() string {
	if s.Commit == nil {
		return ""
	}
	return s.Commit.Hash
}

// sameRepository tells whether both ends are in one repository.
func sameRepository(a, b cloudSide) bool {
	if a.Repository == nil || b.Repository == nil {
		return false
	}
	if a.Repository.UUID != "" && b.Repository.UUID != "" {
		return a.Repository.UUID == b.Repository.UUID
	}
	return strings.EqualFold(a.Repository.FullName, b.Repository.FullName)
}

// decodeCloudPull reads one pull request of Cloud and checks that all is there that
// must be. Its commit is still the short one.
func decodeCloudPull(data json.RawMessage) (pullRequest, string, error) {
	var pull struct {
		ID     int64  `json:"id"`
		Title  string `json:"title"`
		State  string `json:"state"`
		Draft  bool   `json:"draft"`
		Author *struct {
			Nickname    string `json:"nickname"`
			DisplayName string `json:"display_name"`
		} `json:"author"`
		Source      cloudSide `json:"source"`
		Destination cloudSide `json:"destination"`
		CreatedOn   time.Time `json:"created_on"`
		UpdatedOn   time.Time `json:"updated_on"`
	}
	if json.Unmarshal(data, &pull) != nil {
		return pullRequest{}, "", errNoPull
	}
	fork := !sameRepository(pull.Source, pull.Destination)
	head := pull.Source.hash()
	if fork && head == "" {
		head = "gone" // told apart from one that the answer lacks; a fork's is looked at only where forks are allowed
	}
	err := require(pull.ID, map[string]string{
		"state": pull.State, "source.branch.name": pull.Source.Branch.Name, "source.commit.hash": head,
		"destination.branch.name": pull.Destination.Branch.Name, "destination.repository.full_name": pull.Destination.repository(),
	}, pull.CreatedOn.IsZero() || pull.UpdatedOn.IsZero())
	if err != nil {
		return pullRequest{}, "", err
	}
	author := ghost
	if pull.Author != nil {
		author = cmp.Or(pull.Author.Nickname, pull.Author.DisplayName, ghost)
	}
	id := strconv.FormatInt(pull.ID, 10)
	return pullRequest{
		open:   pull.State == "OPEN",
		source: pull.Source.repository(),
		ChangeRequest: provider.ChangeRequest{
			ID: id, Number: pull.ID, SHA: pull.Source.hash(), Branch: pull.Source.Branch.Name,
			TargetBranch: pull.Destination.Branch.Name, Title: pull.Title, Author: author, Draft: pull.Draft, Fork: fork,
			CreatedAt: pull.CreatedOn, UpdatedAt: pull.UpdatedOn,
		},
	}, id, nil
}

// A serverSide is one end of a pull request on Data Center.
type serverSide struct {
	DisplayID    string `json:"displayId"`
	LatestCommit string `json:"latestCommit"`
	Repository   *struct {
		ID int64 `json:"id"`
	} `json:"repository"`
}

// decodeServerPull does the same for Data Center.
func decodeServerPull(data json.RawMessage) (pullRequest, string, error) {
	var pull struct {
		ID     int64  `json:"id"`
		Title  string `json:"title"`
		State  string `json:"state"`
		Draft  bool   `json:"draft"`
		Author struct {
			User struct {
				Name string `json:"name"`
			} `json:"user"`
		} `json:"author"`
		From    serverSide `json:"fromRef"`
		To      serverSide `json:"toRef"`
		Created int64      `json:"createdDate"` // in milliseconds
		Updated int64      `json:"updatedDate"`
	}
	if json.Unmarshal(data, &pull) != nil {
		return pullRequest{}, "", errNoPull
	}
	to := ""
	if pull.To.Repository != nil && pull.To.Repository.ID != 0 {
		to = "there"
	}
	err := require(pull.ID, map[string]string{
		"state": pull.State, "fromRef.displayId": pull.From.DisplayID, "fromRef.latestCommit": pull.From.LatestCommit,
		"toRef.displayId": pull.To.DisplayID, "toRef.repository.id": to,
	}, pull.Created <= 0 || pull.Updated <= 0)
	if err != nil {
		return pullRequest{}, "", err
	}
	id := strconv.FormatInt(pull.ID, 10)
	return pullRequest{
		open: pull.State == "OPEN",
		ChangeRequest: provider.ChangeRequest{
			ID: id, Number: pull.ID, SHA: pull.From.LatestCommit, Branch: pull.From.DisplayID,
			TargetBranch: pull.To.DisplayID, Title: pull.Title, Author: cmp.Or(pull.Author.User.Name, ghost), Draft: pull.Draft,
			Fork:      pull.From.Repository == nil || pull.From.Repository.ID != pull.To.Repository.ID,
			CreatedAt: time.UnixMilli(pull.Created), UpdatedAt: time.UnixMilli(pull.Updated),
		},
	}, id, nil
}

// require checks that a pull request has what every one has.
func require(number int64, texts map[string]string, undated bool) error {
	if number <= 0 {
		return errors.New("has no number")
	}
	missing := ""
	for name, text := range texts {
		if text == "" && (missing == "" || name < missing) {
			missing = name
		}
	}
	if missing == "" && undated {
		missing = "date of its opening or last change"
	}
	if missing != "" {
		return fmt.Errorf("pull request %d has no %s", number, missing)
	}
	return nil
}

func decodeCloudRef(data json.RawMessage) (provider.Ref, string, error) {
	var ref struct {
		Name   string `json:"name"`
		Target struct {
			Hash string `json:"hash"`
		} `json:"target"`
	}
	if json.Unmarshal(data, &ref) != nil {
		return provider.Ref{}, "", errors.New("not a branch or tag in JSON")
	}
	return provider.NewRef(ref.Name, ref.Target.Hash)
}

// decodeServerRef reads a branch or tag of Data Center. For an annotated tag,
// latestCommit is the commit that it is of, and hash the tag itself.
func decodeServerRef(data json.RawMessage) (provider.Ref, string, error) {
	var ref struct {
		DisplayID    string `json:"displayId"`
		LatestCommit string `json:"latestCommit"`
	}
	if json.Unmarshal(data, &ref) != nil {
		return provider.Ref{}, "", errors.New("not a branch or tag in JSON")
	}
	return provider.NewRef(ref.DisplayID, ref.LatestCommit)
}
