// Reads an export of traces in the JSON encoding of OTLP with the decoder of the OpenTelemetry collector, and prints what it holds.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
)

func main() {
	input, err := io.ReadAll(os.Stdin)
	if err != nil {
		fail(err)
	}
	request := ptraceotlp.NewExportRequest()
	if err := request.UnmarshalJSON(input); err != nil {
		fail(err)
	}
	resource := request.Traces().ResourceSpans().At(0)
	scope := resource.ScopeSpans().At(0)
	spans := []map[string]any{}
	for _, span := range scope.Spans().All() {
		spans = append(spans, map[string]any{
			"name":       span.Name(),
			"kind":       span.Kind().String(),
			"traceId":    span.TraceID().String(),
			"spanId":     span.SpanID().String(),
			"parent":     span.ParentSpanID().String(),
			"state":      span.TraceState().AsRaw(),
			"start":      span.StartTimestamp().AsTime(),
			"end":        span.EndTimestamp().AsTime(),
			"attributes": span.Attributes().AsRaw(),
			"dropped":    span.DroppedAttributesCount(),
			"events":     span.Events().Len(),
			"links":      span.Links().Len(),
			"status":     span.Status().Code().String(),
			"message":    span.Status().Message(),
		})
	}
	out := map[string]any{
		"resource": resource.Resource().Attributes().AsRaw(),
		"scope":    scope.Scope().Name() + " " + scope.Scope().Version(),
		"spans":    spans,
	}
	if err := json.NewEncoder(os.Stdout).Encode(out); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
