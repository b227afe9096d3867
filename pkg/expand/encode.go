// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"

	"sigs.k8s.io/yaml"
)

// Encode writes a JSON value as YAML, byte for byte as sigs.k8s.io/yaml does:
// keys sorted, lists not indented, long texts folded.
func Encode(value any) ([]byte, error) {
	if content, ok := value.(map[string]any); ok && len(content) > 0 {
		if text, ok := writeMap(make([]byte, 0, 1024), content, 0); ok {
			return text, nil
		}
	}
	return yaml.Marshal(value)
}

// encodeChunk is how many objects one goroutine encodes at a time.
const encodeChunk = 256

// EncodeStream writes objects as a stream of YAML documents, with a line
// "# step: NAME" before those of each step. When one of them cannot be encoded,
// nothing is written.
func EncodeStream(stream io.Writer, objects []Object) error {
	texts := make([][]byte, (len(objects)+encodeChunk-1)/encodeChunk)
	errs := make([]error, len(texts))
	var wg sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for n := range texts {
		slots <- struct{}{}
		wg.Go(func() {
			start := n * encodeChunk
			texts[n], errs[n] = encodeRange(objects, start, min(start+encodeChunk, len(objects)))
			<-slots
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, text := range texts {
		if _, err := stream.Write(text); err != nil {
			return err
		}
	}
	return nil
}

// encodeRange writes the objects from start to before end.
func encodeRange(objects []Object, start, end int) ([]byte, error) {
	text := make([]byte, 0, (end-start)*1024)
	step := ""
	if start > 0 {
		step = objects[start-1].Step
	}
	for i := start; i < end; i++ {
		object := &objects[i]
		if object.Step != step {
			step = object.Step
			text = fmt.Appendf(text, "# step: %s\n", step)
		}
		text = append(text, "---\n"...)
		before := len(text)
		var ok bool
		if text, ok = writeMap(text, object.Content, 0); ok {
			continue
		}
		slow, err := yaml.Marshal(object.Content)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", object.ID, err)
		}
		text = append(text[:before], slow...)
	}
	return text, nil
}
