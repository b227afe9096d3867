// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Kubernetes reads YAML by the rules of YAML 1.1, turns it into JSON and reads
// numbers back as int64 where they are whole and fit. The parser used here
// follows YAML 1.2 in places, so its own resolution of plain scalars is not
// used: what "on", "012" or "1_000" mean is decided below, and a test compares
// it with sigs.k8s.io/yaml.

var errNotJSON = errors.New("has no form in JSON")

// decimal is a number as YAML 1.1 writes it; what else Go's parser reads as a
// float (hex mantissas, "Infinity") is text.
var decimal = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)

// scalarValue is the JSON value of a scalar node.
func scalarValue(n *yaml.Node) (any, error) {
	plain := n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0
	if n.Style&yaml.TaggedStyle != 0 {
		return taggedValue(n.Tag, n.Value)
	}
	if !plain {
		return n.Value, nil
	}
	return plainValue(n.Value)
}

func taggedValue(tag, text string) (any, error) {
	mismatch := fmt.Errorf("is tagged %s and is none", tag)
	switch tag {
	case "!!binary":
		data, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, errors.New("is tagged !!binary but is not base64")
		}
		return string(data), nil
	case "!!bool", "!!null":
		value := wordValue(text)
		if _, isBool := value.(bool); isBool != (tag == "!!bool") || tag == "!!null" && value != nil {
			return nil, mismatch
		}
		return value, nil
	case "!!int", "!!float":
		number := parseNumber(text)
		if i, isInt := number.(int64); isInt && tag == "!!float" {
			return floatValue(float64(i))
		}
		if _, isFloat := number.(float64); number == nil || isFloat != (tag == "!!float") {
			return nil, mismatch
		}
		return jsonNumber(number)
	}
	return text, nil
}

func plainValue(s string) (any, error) {
	if s == "" {
		return nil, nil
	}
	switch c := s[0]; {
	case strings.IndexByte("yYnNtTfFoO~", c) >= 0:
		return wordValue(s), nil
	case beginsNumber(c):
		return numberValue(s)
	}
	return s, nil
}

func beginsNumber(c byte) bool {
	return c == '.' || c == '+' || c == '-' || '0' <= c && c <= '9'
}

func wordValue(s string) any {
	switch s {
	case "y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON":
		return true
	case "n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF":
		return false
	case "", "~", "null", "Null", "NULL":
		return nil
	}
	return s
}

func numberValue(s string) (any, error) {
	if number := parseNumber(s); number != nil {
		return jsonNumber(number)
	}
	return s, nil
}

// parseNumber reads a number as int64, uint64 or float64. It is nil for what is
// no number.
func parseNumber(s string) any {
	switch s {
	case ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF":
		return math.Inf(1)
	case "-.inf", "-.Inf", "-.INF":
		return math.Inf(-1)
	case ".nan", ".NaN", ".NAN":
		return math.NaN()
	}
	if s == "" || !beginsNumber(s[0]) {
		return nil
	}
	if s[0] == '.' {
		if f, err := strconv.ParseFloat(s, 64); err == nil {
			return f
		}
		return nil
	}
	digits := strings.ReplaceAll(s, "_", "")
	if i, err := strconv.ParseInt(digits, 0, 64); err == nil {
		return i
	}
	if u, err := strconv.ParseUint(digits, 0, 64); err == nil {
		return u
	}
	if decimal.MatchString(digits) {
		if f, err := strconv.ParseFloat(digits, 64); err == nil {
			return f
		}
	}
	return nil
}

// jsonNumber is what is left of a number after a round trip through JSON.
func jsonNumber(number any) (any, error) {
	switch n := number.(type) {
	case uint64:
		return float64(n), nil
	case float64:
		return floatValue(n)
	}
	return number, nil
}

// floatValue makes whole numbers int64, by way of the text that they have in
// JSON: 2^62 written as a float is 4611686018427388000 there.
func floatValue(f float64) (any, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, errNotJSON
	}
	if math.Abs(f) < 1e21 {
		if i, err := strconv.ParseInt(strconv.FormatFloat(f, 'f', -1, 64), 10, 64); err == nil {
			return i, nil
		}
	}
	return f, nil
}

// keyText is the JSON key that a scalar node becomes: YAML 1.1 gives keys types
// too, and JSON takes them as text, so the key on is "true".
func keyText(n *yaml.Node) (string, error) {
	value, err := scalarValue(n)
	if err != nil {
		return "", err
	}
	switch v := value.(type) {
	case string:
		return v, nil
	case bool:
		return strconv.FormatBool(v), nil
	case int64:
		if f, isFloat := parseNumber(n.Value).(float64); isFloat {
			return floatKey(f), nil
		}
		return strconv.FormatInt(v, 10), nil
	case float64:
		return floatKey(v), nil
	}
	return "", errors.New("is null, which cannot be a key")
}

func floatKey(f float64) string { return strconv.FormatFloat(f, 'g', -1, 32) }
