// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"text/template"
)

// Limits of one input set. They are far above what a cluster could take, and keep
// a template or an input from taking the process down.
const (
	maxOutput = 16 << 20 // bytes of text that the templates of a set may write
	maxSteps  = 1 << 18  // passes of loops and calls of templates
	maxValue  = 16 << 20 // weight of a value that a function takes or gives, about its bytes
	maxDepth  = 100      // lists and maps within each other in such a value
	maxWidth  = 1000     // of one verb of printf

	nodeWeight = 16 // of a number, or of a list or map without its items
)

var errTooLarge = fmt.Errorf("a value is larger than %d MiB, or nested more than %d deep", maxValue>>20, maxDepth)

// weigh takes the weight of value from what is left of budget. It says false when
// there is nothing left, which also ends it for a value that contains itself.
func weigh(value reflect.Value, budget *int, depth int) bool {
	if value.Kind() == reflect.Interface {
		value = value.Elem()
	}
	*budget -= nodeWeight
	if depth > maxDepth || *budget < 0 {
		return false
	}
	switch value.Kind() {
	case reflect.String:
		*budget -= value.Len()
	case reflect.Slice, reflect.Array:
		if value.Type().Elem().Kind() == reflect.Uint8 {
			*budget -= value.Len()
			break
		}
		for i := range value.Len() {
			if !weigh(value.Index(i), budget, depth+1) {
				return false
			}
		}
	case reflect.Map:
		for items := value.MapRange(); items.Next(); {
			if !weigh(items.Key(), budget, depth+1) || !weigh(items.Value(), budget, depth+1) {
				return false
			}
		}
	}
	return *budget >= 0
}

// weight is the weight of values together, or an error when it is over the limit.
func weight(values ...any) (int, error) {
	budget := maxValue
	for _, value := range values {
		if !weigh(reflect.ValueOf(value), &budget, 0) {
			return 0, errTooLarge
		}
	}
	return maxValue - budget, nil
}

// bounded is function with a limit on the weight of its arguments together and of
// its result. Everything that builds values goes through it, so that none can
// double with every step of a loop.
func bounded(function any) any {
	fn := reflect.ValueOf(function)
	typ := fn.Type()
	var in []reflect.Type
	for i := range typ.NumIn() {
		in = append(in, typ.In(i))
	}
	errorType := reflect.TypeFor[error]()
	out := []reflect.Type{typ.Out(0), errorType}
	fail := func(err error) []reflect.Value {
		return []reflect.Value{reflect.Zero(typ.Out(0)), reflect.ValueOf(&err).Elem()}
	}
	return reflect.MakeFunc(reflect.FuncOf(in, out, typ.IsVariadic()), func(args []reflect.Value) []reflect.Value {
		budget := maxValue
		for _, arg := range args {
			if !weigh(arg, &budget, 0) {
				return fail(errTooLarge)
			}
		}
		call := fn.Call
		if typ.IsVariadic() {
			call = fn.CallSlice
		}
		results := call(args)
		if len(results) == 2 && !results[1].IsNil() {
			return results
		}
		budget = maxValue
		if !weigh(results[0], &budget, 0) {
			return fail(errTooLarge)
		}
		return []reflect.Value{results[0], reflect.Zero(errorType)}
	}).Interface()
}

// limit replaces the functions of funcs that could make large values out of small
// ones by functions that refuse to.
func limit(funcs template.FuncMap) {
	maps.Copy(funcs, template.FuncMap{ // built into text/template
		"html": template.HTMLEscaper, "js": template.JSEscaper, "urlquery": template.URLQueryEscaper,
		"print": fmt.Sprint, "println": fmt.Sprintln,
	})
	toStrings := funcs["toStrings"].(func(any) []string)
	wrapWith := funcs["wrapWith"].(func(int, string, string) string)
	maps.Copy(funcs, template.FuncMap{
		"quote":     quote,
		"printf":    printf,
		"repeat":    repeat,
		"indent":    indent,
		"nindent":   nindent,
		"replace":   replace,
		"until":     func(count int) ([]int, error) { return numbers(0, count, sign(count)) },
		"untilStep": numbers,
		"seq":       seq,
		"set":       set,
		"join": func(separator string, list any) (string, error) {
			return join(separator, toStrings(list))
		},
		"wrapWith": func(width int, separator, text string) (string, error) {
			if product(len(separator)+1, len(text)) > maxValue {
				return "", errTooLarge
			}
			return wrapWith(width, separator, text), nil
		},
	})
	for _, name := range []string{
		"cat", "squote", "toString", "toStrings", "html", "js", "urlquery", "print", "println",
		"list", "tuple", "dict", "append", "push", "mustAppend", "mustPush", "prepend", "mustPrepend", "concat",
		"merge", "mustMerge", "mergeOverwrite", "mustMergeOverwrite", "deepCopy", "mustDeepCopy",
		"toJson", "mustToJson", "toPrettyJson", "mustToPrettyJson", "toRawJson", "mustToRawJson", "toYaml", "mustToYaml",
		"fromJson", "mustFromJson", "splitList", "split", "splitn", "regexFindAll", "mustRegexFindAll",
		"regexSplit", "mustRegexSplit", "b64enc", "b32enc", "chunk", "mustChunk", "camelcase", "snakecase", "kebabcase",
		"slugify", "keys", "values", "pick", "omit", "pluck", "reverse", "mustReverse",
	} {
		funcs[name] = bounded(funcs[name])
	}
	for _, name := range []string{"regexReplaceAll", "mustRegexReplaceAll", "regexReplaceAllLiteral", "mustRegexReplaceAllLiteral"} {
		funcs[name] = boundedReplace(funcs[name])
	}
}

// boundedReplace limits a function of the arguments pattern, text and replacement.
func boundedReplace(function any) func(pattern, text, replacement string) (string, error) {
	call := func(pattern, text, replacement string) (string, error) { return "", nil }
	switch fn := function.(type) {
	case func(string, string, string) string:
		call = func(pattern, text, replacement string) (string, error) { return fn(pattern, text, replacement), nil }
	case func(string, string, string) (string, error):
		call = fn
	}
	return func(pattern, text, replacement string) (string, error) {
		if product(len(text)+1, len(replacement)+1) > 4*maxValue {
			return "", errTooLarge
		}
		return call(pattern, text, replacement)
	}
}

// product is a*b, or the largest int when that is no int.
func product(a, b int) int {
	if a > 0 && b > math.MaxInt/a {
		return math.MaxInt
	}
	return a * b
}

// quote writes every argument but nil as a string in double quotes, with Go's escapes.
func quote(values ...any) (string, error) {
	if len(values) == 1 {
		if text, ok := values[0].(string); ok { // nearly always
			return strconv.Quote(text), nil
		}
	}
	if _, err := weight(values...); err != nil {
		return "", err
	}
	var quoted []string
	for _, value := range values {
		if value != nil {
			quoted = append(quoted, strconv.Quote(plainText(value)))
		}
	}
	return strings.Join(quoted, " "), nil
}

// plainText is a value as sprig writes it.
func plainText(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case []byte:
		return string(v)
	case error:
		return v.Error()
	case fmt.Stringer:
		return v.String()
	}
	return fmt.Sprintf("%v", value)
}

var verbNumbers = regexp.MustCompile(`[0-9]+|\*`)

// printf is fmt.Sprintf without what could make a text large or, as %p does, not
// the same in every run.
func printf(format string, args ...any) (string, error) {
	total, err := weight(args...)
	if err != nil {
		return "", err
	}
	verbs := 0
	for rest := format; ; verbs++ {
		_, after, found := strings.Cut(rest, "%")
		if !found {
			break
		}
		end := strings.IndexFunc(after, func(r rune) bool { return !strings.ContainsRune("+-# 0123456789.*[]", r) })
		if end < 0 {
			break
		}
		for _, number := range verbNumbers.FindAllString(after[:end], -1) {
			if n, err := strconv.Atoi(number); err != nil || n > maxWidth {
				return "", fmt.Errorf("a width over %d, or given by *", maxWidth)
			}
		}
		if after[end] == 'p' {
			return "", errors.New("the verb %p prints an address, which is another one in every run")
		}
		rest = after[end+1:]
	}
	if product(verbs, total+2*maxWidth) > 4*maxValue {
		return "", errTooLarge
	}
	return fmt.Sprintf(format, printable(args)...), nil
}

// printable are values without pointers, which some verbs would print as addresses.
func printable(values []any) []any {
	out := make([]any, len(values))
	for i, value := range values {
		switch v := value.(type) {
		case fmt.Stringer:
			out[i] = v.String()
		case []any:
			out[i] = printable(v)
		default:
			out[i] = value
		}
	}
	return out
}

func repeat(count int, text string) (string, error) {
	if count < 0 {
		return "", fmt.Errorf("a negative count %d", count)
	}
	if product(count, len(text)) > maxValue {
		return "", errTooLarge
	}
	return strings.Repeat(text, count), nil
}

// indent puts blanks before every line, empty ones included.
func indent(spaces int, text string) (string, error) {
	if spaces < 0 {
		return "", fmt.Errorf("a negative indent %d", spaces)
	}
	if product(spaces, strings.Count(text, "\n")+1)+len(text) > maxValue || spaces > maxValue {
		return "", errTooLarge
	}
	pad := strings.Repeat(" ", spaces)
	return pad + strings.ReplaceAll(text, "\n", "\n"+pad), nil
}

func nindent(spaces int, text string) (string, error) {
	text, err := indent(spaces, text)
	return "\n" + text, err
}

func join(separator string, texts []string) (string, error) {
	total := product(len(separator), len(texts))
	for _, text := range texts {
		total += len(text)
		if total > maxValue {
			return "", errTooLarge
		}
	}
	return strings.Join(texts, separator), nil
}

func replace(old, replacement, text string) (string, error) {
	if product(strings.Count(text, old), len(replacement))+len(text) > maxValue {
		return "", errTooLarge
	}
	return strings.ReplaceAll(text, old, replacement), nil
}

// numbers counts from start to before stop.
func numbers(start, stop, step int) ([]int, error) {
	list := []int{}
	if stop < start && step >= 0 || stop >= start && step <= 0 {
		return list, nil
	}
	if (float64(stop)-float64(start))/float64(step) > maxNumbers {
		return nil, fmt.Errorf("more than %d numbers", maxNumbers)
	}
	for i := start; step > 0 && i < stop || step < 0 && i > stop; {
		list = append(list, i)
		next := i + step
		if (next > i) != (step > 0) { // over the end of all numbers
			break
		}
		i = next
	}
	return list, nil
}

func sign(n int) int {
	if n < 0 {
		return -1
	}
	return 1
}

// seq is the numbers from the first to the last argument, both included, as text;
// a third one in the middle is the step.
func seq(params ...int) (string, error) {
	var start, step, end int
	switch len(params) {
	case 1:
		start, end = 1, params[0]
	case 2:
		start, end = params[0], params[1]
	case 3:
		start, step, end = params[0], params[1], params[2]
		if end < start && step > 0 {
			return "", nil
		}
	default:
		return "", nil
	}
	direction := 1
	if end < start {
		direction = -1
	}
	if step == 0 && len(params) < 3 {
		step = direction
	}
	list, err := numbers(start, end+direction, step)
	if err != nil {
		return "", err
	}
	return strings.Trim(fmt.Sprint(list), "[]"), nil
}

// set changes dict, unless it would become too large or contain itself.
func set(dict map[string]any, key string, value any) (map[string]any, error) {
	old, had := dict[key]
	dict[key] = value
	if _, err := weight(dict); err != nil {
		if delete(dict, key); had {
			dict[key] = old
		}
		return nil, err
	}
	return dict, nil
}
