// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"sigs.k8s.io/yaml"

	"resourceset.example/renderer/pkg/api"
)

// What Flux reads of a ConfigMap that tells of another cluster.
const (
	clusterAddress = "address"
	clusterCA      = "ca.crt"
)

// convert writes address and authority of a cluster into a ConfigMap. The operator takes
// them from a kubeconfig in a Secret of the live cluster. Here they may come from a
// ConfigMap that holds a kubeconfig without credentials; those that the template
// writes itself stay, as with the operator.
func (r *references) convert(o *Object) {
	from, wanted := annotationsOf(o.Content)[annotationConvertKubeCfg]
	if !wanted || o.Content["apiVersion"] != "v1" || o.ID.Kind != api.KindConfigMap {
		return
	}
	data, _ := o.Content["data"].(map[string]any)
	_, address := data[clusterAddress]
	_, ca := data[clusterCA]
	if address && ca {
		return
	}
	name, key := kubeconfigRef(fmt.Sprint(from))
	source, problem := r.configMap(name)
	if problem != "" {
		r.refuse(o, fmt.Sprintf("the annotation %s: %v wants data of a Secret in the live cluster, which renderer does not read", annotationConvertKubeCfg, from),
			"write the address and ca.crt of the cluster into the ConfigMap's data: neither is a secret. "+
				"Or put a ConfigMap of that name with the kubeconfig, without its users, among the definitions")
		return
	}
	server, authority, problem := clusterOf(source.data, key)
	if problem != "" {
		r.refuse(o, fmt.Sprintf("the annotation %s: %s %s: %s", annotationConvertKubeCfg, api.KindConfigMap, name, problem),
			"put a kubeconfig with the cluster's server and certificate-authority-data into it, and nothing else")
		return
	}
	if !address {
		o.Content = with(o.Content, server, "data", clusterAddress)
	}
	if !ca {
		o.Content = with(o.Content, authority, "data", clusterCA)
	}
}

// kubeconfigRef takes "namespace/name:key" apart; the key may be left out.
func kubeconfigRef(from string) (name, key string) {
	from = strings.TrimSpace(from)
	if colon := strings.LastIndex(from, ":"); colon > strings.Index(from, "/") && strings.Contains(from, "/") {
		return from[:colon], from[colon+1:]
	}
	return from, ""
}

// clusterOf is the first cluster of a kubeconfig. One that holds credentials is refused:
// in a ConfigMap they are in plain text already, and nothing here should rest on that. No
// message quotes what is in it.
func clusterOf(data map[string]any, key string) (server, authority, problem string) {
	var text string
	keys := []string{key}
	if key == "" {
		keys = []string{"kubeconfig", "value"}
	}
	for _, k := range keys {
		if text, _ = data[k].(string); text != "" {
			break
		}
	}
	if text == "" {
		return "", "", "has no data " + strings.Join(keys, " or ")
	}
	var config struct {
		Clusters []struct {
			Cluster struct {
				Server    string `json:"server"`
				Authority string `json:"certificate-authority-data"`
			} `json:"cluster"`
		} `json:"clusters"`
		Users []struct {
			User map[string]any `json:"user"`
		} `json:"users"`
	}
	if yaml.Unmarshal([]byte(text), &config) != nil || len(config.Clusters) == 0 {
		return "", "", "its data is no kubeconfig with a cluster"
	}
	for _, u := range config.Users {
		if len(u.User) > 0 {
			return "", "", "its kubeconfig holds credentials"
		}
	}
	server = config.Clusters[0].Cluster.Server
	raw, err := base64.StdEncoding.DecodeString(config.Clusters[0].Cluster.Authority)
	address, addressErr := url.Parse(server)
	switch {
	case server == "" || addressErr != nil || address.Host == "":
		return "", "", "its first cluster has no server"
	case address.User != nil:
		return "", "", "its kubeconfig holds credentials"
	case err != nil || len(raw) == 0 || !utf8.Valid(raw):
		return "", "", "its first cluster has no certificate-authority-data"
	}
	return server, string(raw), ""
}
