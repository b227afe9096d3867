// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// sameAsLibrary checks that Encode writes what sigs.k8s.io/yaml writes, and says
// whether it did so without that library.
func sameAsLibrary(t *testing.T, value any) (fast bool) {
	t.Helper()
	got, err := Encode(value)
	want, wantErr := yaml.Marshal(value)
	if (err == nil) != (wantErr == nil) {
		if wantErr == nil || err != nil {
			t.Fatalf("%#v: error %v, the library's is %v", value, err, wantErr)
		}
		return true // the library cannot read its own JSON: control characters
	}
	if string(got) != string(want) {
		t.Fatalf("%#v:\n%s\nwant\n%s", value, got, want)
	}
	content, ok := value.(map[string]any)
	if !ok {
		return false
	}
	_, fast = writeMap(nil, content, 0)
	return fast
}

var oddTexts = []string{"", "a", "y", "Y", "yes", "yEs", "Yes", "tRUE", "True", "TRUE", "null", "Null", "nULL", "~", "~x", "<<", "<", "=", "==", "on", "off", "OFF", "oFF", "n",
	"0", "00", "08", "012", "0x1F", "0x", "0xg", "0o17", "0b101", "0b2", "1_000", "_1", "1_", "1e3", "1e", "e1", "1.5", "1.", ".5", ".", "..", "...", "---", "-", "--", "- a", "-a", "+", "+1", "-1",
	".inf", ".INF", "-.inf", "+.inf", ".nan", ".NaN", ".nano", "1.2.3", "2024-05-01", "2024-5-1", "2024-05-01T10:00:00Z", "2024-05-01 10:00:00", "2024-05", "12:30", "12:30:45", "12:75", "1:2", "190:20:30.15", "a:b", "a: b", "a:", ":", ":a", ": a",
	"a #b", "a#b", "#a", "?", "? a", "?a", "!", "!a", "&a", "*a", "|", ">", "'", "it's", "\"", "say \"hi\"", "%a", "@a", "`a", "{", "}", "[", "]", "{a}", "a{b", ",", "a,b", " a", "a ", "a  b", "6063e25", "6063f25", "0156133", "1234567e", "12e03", "deadbeef", "0xdeadbeef",
	"https://example.com/a?b=c#d", "ghcr.io/acme/app:1.2@sha256:ab", "a\\b", "line\nbreak", "line\n", "\n", "tab\there", "ü", "☕", "\U0001F370", "\u2028", "\x00", "\x7f", "\ufeff", "\u0085", "a\rb",
	strings.Repeat("word ", 12) + "end", strings.Repeat("word ", 15) + "end", strings.Repeat("word ", 40), strings.Repeat("x", 300), strings.Repeat("it's ", 14) + "#", "{{ .Values.x }}", "${HOME}", "<< inputs.x >>", "0_", "1__0", "+0x1", "-0b1", "1E+5", "9223372036854775808", "18446744073709551616", "1e400", "0.0", "-0", "1b", "0b", "0o", "0O7", "0B1", "1T", "1Z", "2001-1-1t1:1:1Z",
	"1 2", "1 ", "12 monkeys", "5x", "0x_1", "a=b", "=a", "&", "*",
}

func TestEncodeIsTheLibrarys(t *testing.T) {
	fast := 0
	for _, s := range oddTexts {
		for _, value := range []any{
			map[string]any{"key": s}, map[string]any{"a": map[string]any{"list": []any{s, []any{s, "x"}, map[string]any{"b": s, "c": nil}}}},
		} {
			if sameAsLibrary(t, value) {
				fast++
			}
		}
		sameAsLibrary(t, map[string]any{s: "value", "x": map[string]any{s: []any{}}})
		sameAsLibrary(t, s)
	}
	if fast < len(oddTexts) {
		t.Errorf("only %d values were written the fast way", fast)
	}
	for _, value := range []any{
		nil, map[string]any{}, []any{}, map[string]any(nil), true, int64(1), 1.5, map[string]any{"a": 1.0, "b": 1e21, "c": 1e20, "d": 1e-7, "e": 0.1, "f": -2.75, "g": 1e19, "h": math.Copysign(0, -1), "i": 123456789.125},
		map[string]any{"a": int64(-1), "b": int64(1) << 62, "c": true, "d": nil, "e": []any{nil, true, []any{}, map[string]any{}}},
		map[string]any{"a": 1, "b": uint64(1 << 63), "c": []string{"x"}},
	} {
		sameAsLibrary(t, value)
	}
}

func TestKeysAreInTheLibrarysOrder(t *testing.T) {
	for _, keys := range [][]string{
		{"9", "a", "B", "b1", "b12", "b2", "b", "_", "-", "a-b", "a.b", "ab", "é", "zz", "Z", "1a", "01", "10", "001", "10a", "100", "b0", "b00", "b02", "b10", "b1.5"},
		{"foo.example/a", "foo.example/b", "foo-example/a", "fluxcd.io/x", "app.kubernetes.io/name", "app"},
	} {
		content := map[string]any{}
		for _, key := range keys {
			content[key] = "v"
			if !strings.Contains(key, "0") && !strings.Contains(fmt.Sprint(content), "0") { // the library's order depends on the start there
				sameAsLibrary(t, content)
			}
		}
		for _, a := range keys {
			for _, b := range keys {
				sameAsLibrary(t, map[string]any{a: "v", b: "w"})
			}
		}
	}
}

func FuzzEncode(f *testing.F) {
	for i, s := range oddTexts {
		f.Add(s, oddTexts[(i*7+3)%len(oddTexts)], oddTexts[(i*13+5)%len(oddTexts)], float64(i)/3)
	}
	f.Fuzz(func(t *testing.T, a, b, c string, number float64) {
		sameAsLibrary(t, map[string]any{a: b, "z": map[string]any{b: []any{a, c, map[string]any{c: a, b: nil}, []any{b}}, "n": number}})
		var value map[string]any
		if json.Unmarshal([]byte(c), &value) == nil {
			sameAsLibrary(t, value)
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	p, err := Compile(previewResourceSet())
	if err != nil {
		b.Fatal(err)
	}
	sets, err := p.Sets([]Export{external("from", pullRequests(1)...)})
	if err != nil {
		b.Fatal(err)
	}
	content := p.Render(b.Context(), sets, Options{}).Objects[1].Content
	for _, bench := range []struct {
		name   string
		encode func(any) ([]byte, error)
	}{{"ours", Encode}, {"library", func(v any) ([]byte, error) { return yaml.Marshal(v) }}} {
		b.Run(fmt.Sprint(bench.name), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := bench.encode(content); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
