// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"

	"resourceset.example/renderer/pkg/source/provider"
)

// dockerConfigKey is the key of a Secret of type kubernetes.io/dockerconfigjson.
const dockerConfigKey = ".dockerconfigjson"

// fromSecret is the credential for a repository in a secret. A docker config that
// has none for that registry is as good as none: the secret of many registries may
// stand beside a public one.
func fromSecret(secret provider.Secret, repo *repository) (authn.AuthConfig, error) {
	if secret == nil {
		return authn.AuthConfig{}, nil
	}
	if data, ok := secret[dockerConfigKey]; ok {
		return fromDockerConfig(data, repo.name.RegistryStr(), repo.name.RepositoryStr())
	}
	username, err := secret.Line("username")
	if err != nil {
		return authn.AuthConfig{}, err
	}
	password, err := secret.Line("password")
	if err != nil {
		return authn.AuthConfig{}, err
	}
	if username == "" || password == "" {
		return authn.AuthConfig{}, misconfigured("the secret has no credential for a registry",
			"the Secret of spec.secretRef has a docker config in .dockerconfigjson, or username and password")
	}
	return authn.AuthConfig{Username: username, Password: password}, nil
}

// fromDockerConfig finds the entry for a repository. Only credentials that are
// written out count: "credHelpers" and "credsStore" name programs to run.
func fromDockerConfig(data []byte, registry, repository string) (authn.AuthConfig, error) {
	var config struct {
		Auths   map[string]authEntry `json:"auths"`
		Helpers map[string]string    `json:"credHelpers"`
		Store   string               `json:"credsStore"`
	}
	err := json.Unmarshal(data, &config)
	if err == nil && len(config.Auths) == 0 && (config.Store != "" || len(config.Helpers) > 0) {
		return authn.AuthConfig{}, inAHelper()
	}
	if err != nil || config.Auths == nil {
		return authn.AuthConfig{}, misconfigured("the secret's .dockerconfigjson is not a docker config",
			`it looks like {"auths": {"registry.example.com": {"username": "…", "password": "…"}}}`)
	}
	best, longest := "", -1
	for key := range config.Auths {
		// Two keys of one length that both match are one with and one without a
		// wildcard or a scheme: the order of their texts decides, not the map's.
		if n := matches(key, registry, repository); n > longest || n == longest && n >= 0 && key > best {
			best, longest = key, n
		}
	}
	helped := slices.ContainsFunc(slices.Collect(maps.Keys(config.Helpers)), func(key string) bool {
		return matches(key, registry, repository) >= 0
	})
	if longest < 0 {
		if helped {
			return authn.AuthConfig{}, inAHelper()
		}
		return authn.AuthConfig{}, nil
	}
	if found := config.Auths[best]; found != (authEntry{}) || !helped && config.Store == "" {
		return found.credential()
	}
	return authn.AuthConfig{}, inAHelper() // which leaves an empty entry behind
}

// inAHelper is the error of a docker config whose credential is elsewhere. To go on
// without one would be to ask as nobody, and to be told that there is no such thing.
func inAHelper() error {
	return misconfigured("the secret's .dockerconfigjson leaves the credential to a helper (credsStore or credHelpers), and helpers are not run",
		"write the credential out: kubectl create secret docker-registry does, with --docker-server, --docker-username and --docker-password")
}

// An authEntry is one registry's entry in a docker config.
type authEntry struct {
	Username      string `json:"username"`
	Password      string `json:"password"`
	Auth          string `json:"auth"` // base64 of user:password
	IdentityToken string `json:"identitytoken"`
	RegistryToken string `json:"registrytoken"`
}

func (e authEntry) credential() (authn.AuthConfig, error) {
	config := authn.AuthConfig{
		Username: e.Username, Password: e.Password, IdentityToken: e.IdentityToken, RegistryToken: e.RegistryToken,
	}
	if e.Auth != "" {
		// Docker pads with zero bytes that it does not count.
		decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(e.Auth))
		username, password, ok := strings.Cut(strings.TrimRight(string(decoded), "\x00"), ":")
		if err != nil || !ok {
			return authn.AuthConfig{}, misconfigured("an auth in the secret's .dockerconfigjson is not the base64 of user:password",
				"kubectl create secret docker-registry writes it right")
		}
		config.Username, config.Password = username, password
	}
	for _, value := range []*string{&config.Username, &config.Password, &config.IdentityToken, &config.RegistryToken} {
		line, err := provider.Secret{dockerConfigKey: []byte(*value)}.Line(dockerConfigKey)
		if err != nil {
			return authn.AuthConfig{}, err
		}
		*value = line
	}
	return config, nil
}

// matches tells how long the part of a docker config's key is that matches a
// repository; less than 0 if it does not. Keys are registries, with or without a
// scheme and the path of an API; as in Kubernetes, they may go on with the
// beginning of a repository, and have wildcards for the names in a host.
func matches(key, registry, repository string) int {
	_, rest, ok := strings.Cut(key, "://")
	if !ok {
		rest = key
	}
	host, prefix, _ := strings.Cut(rest, "/")
	prefix = strings.Trim(prefix, "/")
	if prefix == "v1" || prefix == "v2" {
		prefix = ""
	}
	if host == "docker.io" || host == "registry-1.docker.io" {
		host = "index.docker.io"
	}
	if !matchesHost(strings.ToLower(host), strings.ToLower(registry)) {
		return -1
	}
	if prefix != "" && prefix != repository && !strings.HasPrefix(repository, prefix+"/") {
		return -1
	}
	return len(prefix)
}

func matchesHost(pattern, host string) bool {
	patterns, names := strings.Split(pattern, "."), strings.Split(host, ".")
	if len(patterns) != len(names) {
		return false
	}
	for i := range names {
		if ok, err := path.Match(patterns[i], names[i]); err != nil || !ok {
			return false
		}
	}
	return true
}
