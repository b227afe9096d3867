// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"maps"
	"path"
	"slices"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	gosimple "github.com/gosimple/slug"
	"sigs.k8s.io/yaml"
)

// maxSlug is the longest name of most Kubernetes objects.
const maxSlug = 63

// functions are what templates can call, besides what text/template has built in:
// all of sprig that depends on nothing but its arguments, and the operator's
// slugify, toYaml, mustToYaml and inputs. "inputs" and the step counter are
// placeholders here; every worker puts in its own.
func functions() template.FuncMap {
	funcs := sprig.TxtFuncMap()
	for name := range funcs {
		if forbidden(name) != "" {
			delete(funcs, name)
		}
	}
	own := template.FuncMap{
		"inputs":     func() map[string]any { return nil },
		stepFunction: func() (string, error) { return "", nil },
		outFunction:  checked,

		"slugify":    slugify,
		"toYaml":     toYAML,
		"mustToYaml": mustToYAML,

		// In order, where sprig takes the map's.
		"keys":   sortedKeys,
		"values": sortedValues,

		// The same on every system.
		"osBase": path.Base, "osClean": path.Clean, "osDir": path.Dir, "osExt": path.Ext, "osIsAbs": path.IsAbs,
	}
	maps.Copy(funcs, numberFunctions())
	maps.Copy(funcs, own)
	limit(funcs)
	return funcs
}

// forbidden says why a function of sprig is not available to templates, as the
// rest of a sentence that starts with "it"; empty when it is available.
func forbidden(name string) string {
	switch name {
	case "now", "ago", "date", "date_in_zone", "date_modify", "dateInZone", "dateModify", "htmlDate", "htmlDateInZone",
		"must_date_modify", "mustDateModify", "mustToDate", "toDate", "unixEpoch":
		return "reads the clock or the time zone, and output must not depend on the moment or the machine"
	case "env", "expandenv":
		return "reads the environment, and output must not depend on the machine"
	case "getHostByName":
		return "asks the network, and output must not depend on what it answers"
	case "randAlphaNum", "randAlpha", "randAscii", "randNumeric", "randBytes", "randInt", "shuffle", "uuidv4":
		return "is random, and output must not change by itself"
	case "genPrivateKey", "genCA", "genCAWithKey", "genSelfSignedCert", "genSelfSignedCertWithKey", "genSignedCert",
		"genSignedCertWithKey", "buildCustomCert":
		return "makes keys at random, and neither randomness nor keys belong in Git"
	case "derivePassword", "bcrypt", "htpasswd", "encryptAES":
		return "makes passwords or uses random salts, and neither belongs in Git"
	}
	return ""
}

// slugify makes a text fit for names of Kubernetes objects: lower case, letters of
// other scripts written in ASCII, everything else a dash. A long one ends before a
// dash where it has any.
func slugify(text string) string {
	s := gosimple.Make(text)
	if len(s) <= maxSlug {
		return s
	}
	if dash := strings.LastIndexByte(s[:maxSlug+1], '-'); dash >= 0 {
		return s[:dash]
	}
	return s[:maxSlug]
}

// toYAML is empty where value cannot be written.
func toYAML(value any) string {
	text, err := mustToYAML(value)
	if err != nil {
		return ""
	}
	return text
}

func mustToYAML(value any) (string, error) {
	data, err := yaml.Marshal(value)
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(string(data), "\n"), nil
}

func sortedKeys(dicts ...map[string]any) []string {
	keys := []string{}
	for _, dict := range dicts {
		keys = slices.AppendSeq(keys, maps.Keys(dict))
	}
	slices.Sort(keys)
	return keys
}

// sortedValues are the values in the order of their keys.
func sortedValues(dict map[string]any) []any {
	values := make([]any, 0, len(dict))
	for _, key := range slices.Sorted(maps.Keys(dict)) {
		values = append(values, dict[key])
	}
	return values
}
