// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
)

// Handler returns a slog handler that hides known values in messages and
// attributes and passes on to next.
func (r *Redactor) Handler(next slog.Handler) slog.Handler {
	return &handler{redactor: r, next: next}
}

type handler struct {
	redactor *Redactor
	next     slog.Handler
}

func (h *handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

func (h *handler) Handle(ctx context.Context, record slog.Record) error {
	clean := slog.NewRecord(record.Time, record.Level, h.redactor.Scrub(record.Message), record.PC)
	record.Attrs(func(attr slog.Attr) bool {
		clean.AddAttrs(h.scrub(attr))
		return true
	})
	return h.next.Handle(ctx, clean)
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	clean := make([]slog.Attr, len(attrs))
	for i, attr := range attrs {
		clean[i] = h.scrub(attr)
	}
	return &handler{redactor: h.redactor, next: h.next.WithAttrs(clean)}
}

func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{redactor: h.redactor, next: h.next.WithGroup(name)}
}

func (h *handler) scrub(attr slog.Attr) slog.Attr {
	value := attr.Value.Resolve()
	switch value.Kind() {
	case slog.KindString:
		value = slog.StringValue(h.redactor.Scrub(value.String()))
	case slog.KindGroup:
		group := value.Group()
		clean := make([]slog.Attr, len(group))
		for i, inner := range group {
			clean[i] = h.scrub(inner)
		}
		value = slog.GroupValue(clean...)
	case slog.KindAny:
		value = h.scrubAny(value)
	}
	return slog.Attr{Key: h.redactor.Scrub(attr.Key), Value: value}
}

// scrubAny keeps a value as it is, for the next handler to format, unless one of
// the ways to do so would show something to hide.
func (h *handler) scrubAny(value slog.Value) slog.Value {
	var texts []string
	switch v := value.Any().(type) {
	case error:
		texts = append(texts, v.Error())
	case fmt.Stringer:
		texts = append(texts, v.String())
	case []byte:
		texts = append(texts, string(v))
	}
	texts = append(texts, fmt.Sprintf("%+v", value.Any()))
	if asJSON, err := json.Marshal(value.Any()); err == nil {
		texts = append(texts, string(asJSON))
	}
	for _, text := range texts {
		if h.redactor.Scrub(text) != text {
			return slog.StringValue(h.redactor.Scrub(texts[0]))
		}
	}
	return value
}
