// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"resourceset.example/renderer/pkg/api"
)

// DecodeInputs reads a list of input sets, as YAML or JSON, with the rules that
// hold for spec.inputs.
func DecodeInputs(data []byte) ([]api.Input, error) {
	if inputs, ok := decodeJSONInputs(data); ok {
		return inputs, nil
	}
	if inputs, ok := decodeYAMLChunks(data); ok {
		return inputs, nil
	}
	docs, err := decodeDocuments(data)
	if err != nil {
		return nil, err
	}
	docs = slices.DeleteFunc(docs, func(doc any) bool { return doc == nil })
	if len(docs) == 0 {
		return nil, nil
	}
	list, ok := docs[0].([]any)
	if !ok || len(docs) > 1 {
		return nil, fmt.Errorf("holds %s, not one list of input sets", describe(docs[0]))
	}
	return inputsOf(list)
}

func inputsOf(list []any) ([]api.Input, error) {
	inputs := make([]api.Input, len(list))
	for i := range list {
		in, ok := list[i].(map[string]any)
		if !ok {
			return nil, fmt.Errorf("inputs[%d] is %s, not a map", i, describe(list[i]))
		}
		inputs[i] = in
	}
	return inputs, nil
}

// decodeJSONInputs reads a list in JSON, which is YAML too but faster to read as what
// it is. Anything unusual is left to the YAML reader and its messages.
func decodeJSONInputs(data []byte) ([]api.Input, bool) {
	if trimmed := bytes.TrimLeft(data, " \t\r\n"); len(trimmed) == 0 || trimmed[0] != '[' {
		return nil, false
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var list []map[string]any
	if decoder.Decode(&list) != nil {
		return nil, false
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, false
	}
	for _, in := range list {
		if in == nil || !jsonNumbers(in) {
			return nil, false
		}
	}
	return list, true
}

// jsonNumbers puts numbers in the place of their texts.
func jsonNumbers(fields map[string]any) bool {
	for key, value := range fields {
		converted, ok := jsonNumberOf(value)
		if !ok {
			return false
		}
		fields[key] = converted
	}
	return true
}

func jsonNumberOf(value any) (any, bool) {
	switch v := value.(type) {
	case json.Number:
		if i, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return i, true
		}
		f, err := strconv.ParseFloat(v.String(), 64)
		if err != nil || math.IsInf(f, 0) {
			return nil, false
		}
		number, err := jsonNumber(f)
		return number, err == nil
	case map[string]any:
		return v, jsonNumbers(v)
	case []any:
		for i := range v {
			var ok bool
			if v[i], ok = jsonNumberOf(v[i]); !ok {
				return nil, false
			}
		}
	case string:
		// YAML refuses control characters, also in JSON.
		return v, !strings.ContainsFunc(v, func(r rune) bool { return r == 0xFEFF || 0x7f <= r && r < 0xa0 })
	}
	return value, true
}

// yamlChunk is about how many bytes of a list one goroutine reads at a time.
const yamlChunk = 64 << 10

// decodeYAMLChunks reads a long list in block style in pieces, on all processors. It
// can be cut before any line that starts with "- " unless such a line is inside of a
// quoted text, which leaves the piece before without an end; or a piece refers to an
// anchor of another. Then, and on any other fault, the whole is left to be read as one.
func decodeYAMLChunks(data []byte) ([]api.Input, bool) {
	if len(data) < 2*yamlChunk || !bytes.HasPrefix(data, []byte("- ")) {
		return nil, false
	}
	var chunks [][]byte
	for len(data) > 0 {
		end := len(data)
		if end > yamlChunk {
			if next := bytes.Index(data[yamlChunk:], []byte("\n- ")); next >= 0 {
				end = yamlChunk + next + 1
			}
		}
		chunks = append(chunks, data[:end])
		data = data[end:]
	}
	lists := make([][]api.Input, len(chunks))
	var wg sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for n, chunk := range chunks {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			docs, err := decodeDocuments(chunk)
			if err != nil || len(docs) != 1 {
				return
			}
			if list, ok := docs[0].([]any); ok {
				if inputs, err := inputsOf(list); err == nil {
					lists[n] = inputs
				}
			}
		})
	}
	wg.Wait()
	for _, list := range lists {
		if list == nil {
			return nil, false
		}
	}
	return slices.Concat(lists...), true
}
