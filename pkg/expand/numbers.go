// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"text/template"
)

// maxNumbers is how many numbers one call of until, untilStep or seq may make.
const maxNumbers = 1 << 20

// numberFunctions convert as the operator does: a text is a decimal number or 0,
// so that "08" is 8, where sprig itself takes it for a broken octal number.
func numberFunctions() template.FuncMap {
	return template.FuncMap{
		"int":     func(v any) int { return int(toInt64(v)) },
		"int64":   toInt64,
		"float64": toFloat64,

		"add": func(values ...any) int64 {
			var sum int64
			for _, v := range values {
				sum += toInt64(v)
			}
			return sum
		},
		"add1": func(v any) int64 { return toInt64(v) + 1 },
		"sub":  func(a, b any) int64 { return toInt64(a) - toInt64(b) },
		"mul": func(a any, values ...any) int64 {
			product := toInt64(a)
			for _, v := range values {
				product *= toInt64(v)
			}
			return product
		},
		"div": func(a, b any) (int64, error) { return divide(a, b, func(x, y int64) int64 { return x / y }) },
		"mod": func(a, b any) (int64, error) { return divide(a, b, func(x, y int64) int64 { return x % y }) },

		"max": largest, "biggest": largest, "min": smallest,
		"maxf": func(a any, values ...any) float64 { return fold(a, values, math.Max) },
		"minf": func(a any, values ...any) float64 { return fold(a, values, math.Min) },

		"ceil":  func(v any) float64 { return math.Ceil(toFloat64(v)) },
		"floor": func(v any) float64 { return math.Floor(toFloat64(v)) },
	}
}

func divide(a, b any, op func(x, y int64) int64) (int64, error) {
	divisor := toInt64(b)
	if divisor == 0 {
		return 0, fmt.Errorf("division of %v by zero", a)
	}
	return op(toInt64(a), divisor), nil
}

func largest(a any, values ...any) int64 {
	best := toInt64(a)
	for _, v := range values {
		best = max(best, toInt64(v))
	}
	return best
}

func smallest(a any, values ...any) int64 {
	best := toInt64(a)
	for _, v := range values {
		best = min(best, toInt64(v))
	}
	return best
}

func fold(a any, values []any, op func(x, y float64) float64) float64 {
	result := toFloat64(a)
	for _, v := range values {
		result = op(result, toFloat64(v))
	}
	return result
}

// toInt64 is the whole part of a number, 1 or 0 of a boolean, and the number that
// a text spells in decimal digits. Anything else is 0.
func toInt64(v any) int64 {
	if text, ok := v.(string); ok {
		i, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return 0
		}
		return i
	}
	switch value := reflect.Indirect(reflect.ValueOf(v)); {
	case value.CanInt():
		return value.Int()
	case value.CanUint():
		return int64(min(value.Uint(), math.MaxInt64))
	case value.CanFloat():
		return wholePart(value.Float())
	case value.Kind() == reflect.Bool && value.Bool():
		return 1
	}
	return 0
}

// wholePart is the same on every processor also where the number fits no int64,
// which Go leaves open.
func wholePart(f float64) int64 {
	if f >= -(1<<63) && f < 1<<63 {
		return int64(f)
	}
	return math.MinInt64
}

// toFloat64 is like toInt64, with the fraction.
func toFloat64(v any) float64 {
	if text, ok := v.(string); ok {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return 0
		}
		return f
	}
	switch value := reflect.Indirect(reflect.ValueOf(v)); {
	case value.CanInt():
		return float64(value.Int())
	case value.CanUint():
		return float64(value.Uint())
	case value.CanFloat():
		return value.Float()
	case value.Kind() == reflect.Bool && value.Bool():
		return 1
	}
	return 0
}
