// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/sync/errgroup"

	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/source/listing"
	"resourceset.example/renderer/pkg/source/provider"
	"resourceset.example/renderer/pkg/source/transport"
)

// concurrency is how many digests are asked for at once.
const concurrency = 6

// A Tags provider lists the tags of one repository.
type Tags struct {
	object *api.ResourceSetInputProvider
	reader *reader
}

// NewTags returns the provider of a definition of type OCIArtifactTag.
func NewTags(cfg provider.Config) (*Tags, error) {
	spec := cfg.Object.Spec
	if spec.ServiceAccountName != "" {
		return nil, misconfigured("spec.serviceAccountName is not used: the pull secrets of a ServiceAccount are in the cluster, which is not read",
			"name the pull secret in spec.secretRef")
	}
	repo, err := parseURL(spec.URL, spec.Insecure)
	if err != nil {
		return nil, err
	}
	credential, err := fromSecret(cfg.Secret, repo)
	if err != nil {
		return nil, err
	}
	return newTags(cfg, repo, fixed{credential, repo})
}

func newTags(cfg provider.Config, repo *repository, from login) (*Tags, error) {
	if _, err := provider.NewFilter(cfg.Object.Spec.Filter); err != nil {
		return nil, err
	}
	key := strings.Join([]string{cfg.Object.Spec.Type, cfg.Identity(), repo.base.String(), repo.name.RepositoryStr()}, " ")
	r, err := provider.Share(cfg.Shared, key, func() (*reader, error) {
		c, err := newClient(cfg, repo, from)
		if err != nil {
			return nil, err
		}
		return &reader{client: c, list: listing.New("tags", repo.tags(), c.page)}, nil
	})
	if err != nil {
		return nil, err
	}
	return &Tags{object: cfg.Object, reader: r}, nil
}

// Fetch lists the tags, in the order that provider.ExportTags has.
func (t *Tags) Fetch(ctx context.Context, previous []api.Input) (provider.Result, error) {
	ctx, cancel := transport.Bound(ctx)
	defer cancel()
	all, err := t.reader.list.All(ctx)
	if err != nil {
		return provider.Result{}, err
	}
	items, listed := make([]provider.Item, len(all)), make(map[string]bool, len(all))
	for i, tag := range all {
		items[i] = provider.Item{Key: tag, Input: api.Input{"id": provider.Checksum(tag), "tag": tag}}
		listed[tag] = true
	}
	result, err := provider.ExportTags(t.object, items, previous)
	if err != nil {
		return provider.Result{}, err
	}
	if err := t.addDigests(ctx, result.Inputs, listed); err != nil {
		return provider.Result{}, err
	}
	return result, nil
}

// addDigests adds what the tags point to, for all or none. A tag that is gone and
// held keeps the digest that it had.
func (t *Tags) addDigests(ctx context.Context, inputs []api.Input, listed map[string]bool) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(concurrency)
	for _, input := range inputs {
		tag, _ := provider.Text(input["tag"])
		if !listed[tag] {
			continue
		}
		group.Go(func() error {
			digest, err := t.reader.digest(ctx, tag)
			input["digest"] = digest
			return err
		})
	}
	return group.Wait()
}

// A reader is what the providers of one repository share.
type reader struct {
	client *client
	list   *listing.List[string]

	mu      sync.Mutex
	pass    any
	digests map[string]string // what was read in this pass
}

func (r *reader) digest(ctx context.Context, tag string) (string, error) {
	pass := provider.Pass(ctx)
	if digest, ok := r.known(pass, tag); ok {
		return digest, nil
	}
	digest, err := r.client.digest(ctx, tag)
	if err == nil && pass != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.digests[tag] = digest
	}
	return digest, err
}

func (r *reader) known(pass any, tag string) (string, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if pass == nil || pass != r.pass {
		r.pass, r.digests = pass, map[string]string{}
	}
	digest, ok := r.digests[tag]
	return digest, ok
}

// page reads one page of the list of tags.
func (c *client) page(ctx context.Context, address string, known *listing.Page[string]) (*listing.Page[string], error) {
	header := http.Header{"Accept": {"application/json"}}
	if known != nil && known.ETag != "" {
		header.Set("If-None-Match", known.ETag)
	}
	resp, err := c.do(ctx, http.MethodGet, address, header)
	if err != nil {
		return nil, err
	}
	body, err := transport.ReadBody(resp)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusNotModified && known != nil {
		return known, nil
	}
	next, err := listing.NextLink(resp, c.repo.base)
	if err != nil {
		return nil, err
	}
	p, err := decodePage(body)
	if err != nil {
		return nil, err
	}
	p.Next, p.ETag = next, resp.Header.Get("ETag")
	return p, nil
}

// decodePage reads {"name": …, "tags": […]}. Null is no list of tags (rule 1): there are
// registries that say so of a repository that they do not have, or have lost sight of.
func decodePage(body []byte) (*listing.Page[string], error) {
	var answer struct {
		Tags json.RawMessage `json:"tags"`
	}
	var list []json.RawMessage
	err := json.Unmarshal(body, &answer)
	if err == nil && string(answer.Tags) == "null" {
		return nil, &provider.Error{
			Reason: provider.Implausible,
			Msg:    "the registry names no tags (null), as some do for a repository that they do not know",
			Hint:   "check spec.url; where its tags are all gone on purpose, push one, or delete this provider; the last good list stands",
		}
	}
	if err == nil {
		err = json.Unmarshal(answer.Tags, &list)
	}
	if err != nil || list == nil {
		return nil, &provider.Error{
			Reason: provider.Implausible,
			Msg:    "the answer is not a list of tags in JSON",
			Hint:   "check that spec.url is a repository in a registry; the last good list stands",
		}
	}
	return listing.Items(list, "tags", decodeTag)
}

// tagPattern is what the OCI distribution specification lets a tag be.
var tagPattern = regexp.MustCompile(`^[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}$`)

func decodeTag(data json.RawMessage) (tag, key string, err error) {
	if err := json.Unmarshal(data, &tag); err != nil || !tagPattern.MatchString(tag) {
		return "", "", errors.New("not a tag")
	}
	return tag, tag, nil
}

// accepted are the kinds of manifests that a tag may point to. A tag for several
// platforms is the list of them, not one that the registry chooses.
func accepted() []string {
	kinds := []types.MediaType{types.OCIImageIndex, types.DockerManifestList, types.OCIManifestSchema1, types.DockerManifestSchema2}
	texts := make([]string, len(kinds))
	for i, kind := range kinds {
		texts[i] = string(kind)
	}
	return []string{strings.Join(texts, ", ")}
}

// digest asks what a tag points to.
func (c *client) digest(ctx context.Context, tag string) (string, error) {
	header := http.Header{"Accept": accepted()}
	resp, err := c.do(ctx, http.MethodHead, c.repo.manifest(tag), header)
	if err != nil {
		return "", ofTag(err, tag)
	}
	_ = resp.Body.Close() // a HEAD has none
	digest := resp.Header.Get("Docker-Content-Digest")
	if digest == "" {
		return c.computedDigest(ctx, tag, header)
	}
	if _, err := v1.NewHash(digest); err != nil {
		return "", notADigest(tag)
	}
	return digest, nil
}

// computedDigest is for registries that do not tell: the manifest's own checksum.
func (c *client) computedDigest(ctx context.Context, tag string, header http.Header) (string, error) {
	resp, err := c.do(ctx, http.MethodGet, c.repo.manifest(tag), header)
	if err != nil {
		return "", ofTag(err, tag)
	}
	body, err := transport.ReadBody(resp)
	if err != nil {
		return "", ofTag(err, tag)
	}
	var manifest struct {
		SchemaVersion int `json:"schemaVersion"`
	}
	if json.Unmarshal(body, &manifest) != nil || manifest.SchemaVersion != 2 {
		return "", notADigest(tag)
	}
	sum := sha256.Sum256(body)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

func notADigest(tag string) error {
	return &provider.Error{
		Reason: provider.Implausible,
		Msg:    fmt.Sprintf("tag %s: the answer has neither a digest nor a manifest", tag),
		Hint:   "check that spec.url is a repository in a registry; the last good list stands",
	}
}

// ofTag says which tag an error is about.
func ofTag(err error, tag string) error {
	described := transport.Fault(err).Within("tag %s", tag)
	if described.Reason == provider.NotFound {
		described.Hint = "it went away while the list was read, or its manifest cannot be pulled; the last good list stands"
	}
	return described
}
