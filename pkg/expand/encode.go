// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"bytes"
	"fmt"

	"sigs.k8s.io/yaml"
)

// Encode writes a JSON value as YAML, byte for byte as sigs.k8s.io/yaml does:
// keys sorted, lists not indented, long texts folded.
func Encode(value any) ([]byte, error) {
	return yaml.Marshal(value)
}

// EncodeStream writes objects as a stream of YAML documents, with a line
// "# step: NAME" before those of each step.
func EncodeStream(objects []Object) (*bytes.Buffer, error) {
	var stream bytes.Buffer
	step := ""
	for i := range objects {
		object := &objects[i]
		if object.Step != step {
			step = object.Step
			fmt.Fprintf(&stream, "# step: %s\n", step)
		}
		text, err := Encode(object.Content)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", object.ID, err)
		}
		stream.WriteString("---\n")
		stream.Write(text)
	}
	return &stream, nil
}
