// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"resourceset.example/renderer/pkg/api"
)

// sum puts checksums into an object, beside every checksumFrom.
func (r *references) sum(o *Object) {
	if !o.wantsSum() {
		return
	}
	content, problem := r.summed(o.Content)
	if problem != "" {
		r.refuse(o, "the annotation "+annotationChecksumFrom+": "+problem,
			"render what it names with this ResourceSet, put the ConfigMap among the definitions, "+
				"or write a checksum of your own beside it, as in << inputs | toYaml | sha256sum >>")
		return
	}
	o.Content = content.(map[string]any)
}

// wantsSum looks for checksumFrom in the metadata of an object, and of what is within it:
// the template of its pods, and the template of a job in that of a CronJob.
func wantsSum(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		if sumOf(v) != "" {
			return true
		}
		for _, below := range v {
			if wantsSum(below) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, wantsSum)
	}
	return false
}

func sumOf(content map[string]any) string {
	refs, _ := annotationsOf(content)[annotationChecksumFrom].(string)
	return refs
}

// summed is a value with its checksums; what has none is shared with the value.
func (r *references) summed(value any) (any, string) {
	switch v := value.(type) {
	case map[string]any:
		return r.summedMap(v)
	case []any:
		v, problem := slices.Clone(v), ""
		for i := range v {
			if wantsSum(v[i]) {
				var why string
				v[i], why = r.summed(v[i])
				problem = cmp.Or(problem, why)
			}
		}
		return v, problem
	}
	return value, ""
}

func (r *references) summedMap(content map[string]any) (map[string]any, string) {
	problem := ""
	if refs := sumOf(content); refs != "" {
		sum, why := r.checksum(refs)
		own := annotationsOf(content)[annotationChecksum] != nil
		if sum != "" {
			content = with(content, sum, "metadata", "annotations", annotationChecksum)
		} else if !own {
			problem = why
		}
	}
	for _, key := range slices.Sorted(maps.Keys(content)) {
		if !wantsSum(content[key]) {
			continue
		}
		below, why := r.summed(content[key])
		content = with(content, below, key)
		problem = cmp.Or(problem, why)
	}
	return content, problem
}

// checksum is over the data of all objects that refs names, "Kind/namespace/name" each
// and separated by commas. It is the operator's: the pods of who moves here from there do
// not restart. When it is empty, problem says why.
func (r *references) checksum(refs string) (sum, problem string) {
	h := sha256.New()
	write := func(text string) {
		h.Write([]byte(text))
		h.Write([]byte{0})
	}
	n := 0
	for ref := range strings.SplitSeq(refs, ",") {
		if ref = strings.TrimSpace(ref); ref == "" {
			continue
		}
		data, problem := r.raw(ref)
		if problem != "" {
			return "", problem
		}
		n++
		write(ref)
		for _, name := range slices.Sorted(maps.Keys(data)) {
			write(name)
			write(data[name])
		}
	}
	if n == 0 {
		return "", "it names nothing"
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), ""
}

// raw is the data of an object by "Kind/namespace/name", as the API server would have it.
func (r *references) raw(ref string) (data map[string]string, problem string) {
	kind, name, _ := strings.Cut(ref, "/")
	namespace, rest, _ := strings.Cut(name, "/")
	if namespace == "" || rest == "" || strings.Contains(rest, "/") || kind != api.KindConfigMap && kind != "Secret" {
		return nil, fmt.Sprintf("%q is not of the form ConfigMap/namespace/name or Secret/namespace/name", ref)
	}
	if o := r.rendered[ref]; o != nil {
		return dataOf(o.Content), ""
	}
	if kind == "Secret" {
		return nil, fmt.Sprintf("Secret %s is not rendered by this ResourceSet: it may be in the live cluster, which renderer does not read", name)
	}
	c, problem := r.defined(name)
	if problem != "" {
		return nil, problem
	}
	return dataOf(map[string]any{"kind": api.KindConfigMap, "data": values(c.Data), "binaryData": values(c.BinaryData)}), ""
}

// dataOf is the data of a ConfigMap or Secret, decoded.
func dataOf(content map[string]any) map[string]string {
	data := map[string]string{}
	secret := content["kind"] == "Secret"
	add := func(field string, encoded bool) {
		values, _ := content[field].(map[string]any)
		for name, value := range values {
			text, _ := value.(string)
			if raw, err := base64.StdEncoding.DecodeString(text); encoded && err == nil {
				text = string(raw)
			}
			data[name] = text
		}
	}
	add("data", secret)
	if !secret {
		add("binaryData", true)
	} else {
		add("stringData", false)
	}
	return data
}
