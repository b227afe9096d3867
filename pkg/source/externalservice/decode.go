// SPDX-License-Identifier: Apache-2.0

package externalservice

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/source/provider"
)

// maxDepth is how deeply an answer may be nested.
const maxDepth = 64

// decode reads an answer. Whole numbers become int64, as everywhere in inputs.
func decode(body []byte) (inputs []api.Input, warnings []string, err error) {
	body = bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, nil, errors.New("the body is empty")
	}
	if !utf8.Valid(body) {
		return nil, nil, errors.New("not JSON: the text is not UTF-8")
	}
	d := &decoder{json: json.NewDecoder(bytes.NewReader(body))}
	d.json.UseNumber()
	answer, err := d.value("", 0)
	if err != nil {
		return nil, nil, notJSON(err)
	}
	if _, err := d.json.Token(); !errors.Is(err, io.EOF) {
		return nil, nil, errors.New("not JSON: text after the end of the object")
	}
	object, ok := answer.(map[string]any)
	if !ok {
		return nil, nil, fmt.Errorf("%s where an object is due", kind(answer))
	}
	list, ok := object["inputs"]
	if !ok {
		return nil, nil, errors.New(`the object has no "inputs"`)
	}
	items, ok := list.([]any)
	if !ok {
		return nil, nil, fmt.Errorf(`"inputs" is %s where an array is due`, kind(list))
	}
	inputs, err = checkInputs(items)
	return inputs, d.warnings, err
}

// checkInputs checks that each input set is an object, and each id a text of its own.
func checkInputs(items []any) ([]api.Input, error) {
	inputs := make([]api.Input, len(items))
	ids := make(map[string]int, len(items))
	for i, item := range items {
		input, ok := item.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("inputs[%d] is %s where an object is due", i, kind(item))
		}
		inputs[i] = input
		value, ok := input["id"]
		if !ok {
			continue
		}
		id, ok := provider.Text(value)
		if _, isBool := value.(bool); !ok || isBool {
			return nil, fmt.Errorf("inputs[%d].id is %s where a text is due", i, kind(value))
		}
		if id == "" {
			return nil, fmt.Errorf("inputs[%d].id is empty", i)
		}
		if first, ok := ids[id]; ok {
			return nil, fmt.Errorf("inputs[%d] and inputs[%d] have the same id %q", first, i, id)
		}
		ids[id] = i
		input["id"] = id
	}
	return inputs, nil
}

type decoder struct {
	json     *json.Decoder
	warnings []string
}

// value reads one JSON value. encoding/json alone would take the last of two
// fields with one name.
func (d *decoder) value(path string, depth int) (any, error) {
	token, err := d.json.Token()
	if err != nil {
		return nil, err
	}
	if depth > maxDepth {
		return nil, fmt.Errorf("nested deeper than %d", maxDepth)
	}
	switch token := token.(type) {
	case json.Number:
		return d.number(path, token)
	case json.Delim:
		if token == '{' {
			return d.object(path, depth)
		}
		return d.array(path, depth)
	}
	return token, nil
}

func (d *decoder) object(path string, depth int) (any, error) {
	object := map[string]any{}
	for d.json.More() {
		token, err := d.json.Token()
		if err != nil {
			return nil, err
		}
		name, ok := token.(string)
		if !ok {
			return nil, errors.New("a field without a name")
		}
		field := name
		if path != "" {
			field = path + "." + name
		}
		if _, ok := object[name]; ok {
			return nil, fmt.Errorf("%s is there twice", field)
		}
		if object[name], err = d.value(field, depth+1); err != nil {
			return nil, err
		}
	}
	_, err := d.json.Token()
	return object, err
}

func (d *decoder) array(path string, depth int) (any, error) {
	list := []any{}
	for d.json.More() {
		value, err := d.value(fmt.Sprintf("%s[%d]", path, len(list)), depth+1)
		if err != nil {
			return nil, err
		}
		list = append(list, value)
	}
	_, err := d.json.Token()
	return list, err
}

func (d *decoder) number(path string, number json.Number) (any, error) {
	text := number.String()
	if whole, err := strconv.ParseInt(text, 10, 64); err == nil {
		return whole, nil
	}
	float, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, fmt.Errorf("%s: the number is out of range", path)
	}
	if float == math.Trunc(float) && math.Abs(float) < 1<<63 {
		return int64(float), nil
	}
	if !strings.ContainsAny(text, ".eE") {
		d.warnings = append(d.warnings, fmt.Sprintf("%s: the number has more than 64 bits and is rounded: send it as a text", path))
	}
	return float, nil
}

// notJSON says where the JSON ends that is none.
func notJSON(err error) error {
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("not JSON: cut off in the middle")
	case errors.As(err, &syntax):
		return fmt.Errorf("not JSON: %s (at byte %d)", syntax.Error(), syntax.Offset)
	}
	return err
}

func kind(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case int64, float64:
		return "a number"
	case string:
		return "a text"
	case []any:
		return "an array"
	}
	return "an object"
}
