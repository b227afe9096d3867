// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v2" // what sigs.k8s.io/yaml reads with
)

// decodeDocuments reads a stream of YAML documents as JSON values, with the rules
// of Kubernetes: YAML 1.1, whole numbers are int64, all keys are texts. An empty
// document is nil.
func decodeDocuments(text []byte) ([]any, error) {
	var docs []any
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var raw any
		err := decoder.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return docs, nil
		}
		if err != nil {
			return nil, errors.New(yamlMessage(err))
		}
		value, err := jsonValue(raw)
		if err != nil {
			return nil, err
		}
		docs = append(docs, value)
	}
}

// yamlMessage is the text of an error of the YAML reader without its prefixes.
func yamlMessage(err error) string {
	msg := strings.TrimPrefix(err.Error(), "yaml: ")
	msg = strings.TrimPrefix(msg, "unmarshal errors:\n")
	return strings.TrimSpace(msg)
}

// jsonValue turns what the YAML reader gives, or JSON values whose numbers are
// floats only, into JSON values.
func jsonValue(raw any) (any, error) {
	switch v := raw.(type) {
	case nil, bool:
		return v, nil
	case string:
		return validText(v), nil
	case int:
		return int64(v), nil
	case int64:
		return v, nil
	case uint64:
		return float64(v), nil
	case float64:
		return jsonNumber(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			var err error
			if out[i], err = jsonValue(v[i]); err != nil {
				return nil, err
			}
		}
		return out, nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			var err error
			if out[key], err = jsonValue(item); err != nil {
				return nil, err
			}
		}
		return out, nil
	case map[any]any:
		out := make(map[string]any, len(v))
		for k, item := range v {
			key, err := keyText(k)
			if err != nil {
				return nil, err
			}
			if out[key], err = jsonValue(item); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return nil, fmt.Errorf("a value of type %T has no counterpart in JSON", raw)
}

// jsonNumber makes a whole number that fits an int64 of any float that is one.
func jsonNumber(f float64) (any, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, fmt.Errorf("the number %v has no counterpart in JSON", f)
	}
	if f == math.Trunc(f) && math.Abs(f) < 1e19 {
		if i, err := strconv.ParseInt(strconv.FormatFloat(f, 'f', -1, 64), 10, 64); err == nil {
			return i, nil
		}
	}
	return f, nil
}

// keyText is a map's key as text, written as sigs.k8s.io/yaml does.
func keyText(key any) (string, error) {
	switch k := key.(type) {
	case string:
		return validText(k), nil
	case int:
		return strconv.Itoa(k), nil
	case int64:
		return strconv.FormatInt(k, 10), nil
	case bool:
		return strconv.FormatBool(k), nil
	case float64:
		switch {
		case math.IsInf(k, 1):
			return ".inf", nil
		case math.IsInf(k, -1):
			return "-.inf", nil
		case math.IsNaN(k):
			return ".nan", nil
		}
		return strconv.FormatFloat(k, 'g', -1, 32), nil
	}
	return "", fmt.Errorf("a key of a map is %s, not a text", describe(key))
}

// validText replaces each byte that is no UTF-8, as JSON does. Only !!binary
// values can hold such bytes.
func validText(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	return string([]rune(text))
}
