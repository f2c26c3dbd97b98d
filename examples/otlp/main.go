// Command otlp shows an evaluator in another process teaching an agent: OpenTelemetry's exporter
// sends the result of an evaluation over HTTP. Here both are in one program:
//
//	cd examples/otlp; GOWORK=off go run .
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	otellog "go.opentelemetry.io/otel/log"
	sdklog "go.opentelemetry.io/otel/sdk/log"

	"github.com/heedhq/heed/adapter/otel"
	"github.com/heedhq/heed/adapter/scores"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
)

const token = "a-token-of-yours" // from your secrets

func main() {
	if err := run(context.Background(), os.Stdout,
		func(h http.Handler) http.Handler { return h }); err != nil {
		log.Fatal(err)
	}
}

// run answers an event, has an evaluator send what it makes of the answer, and prints what that was
// worth. The handler is put behind wrap, and the exporter gets the options.
func run(ctx context.Context, out io.Writer, wrap func(http.Handler) http.Handler,
	options ...otlploghttp.Option) error {
	st := &memstore.Store{}
	model := func(context.Context, decision.LLMRequest) (decision.LLMResponse, error) {
		return decision.LLMResponse{Text: "Rotate its logs."}, nil
	}
	agent, err := loop.New(ctx, loop.Config{Store: st, Model: decision.LLMFunc(model)})
	if err != nil {
		return err
	}
	if _, err := agent.Answer(ctx, loop.Event{ID: "chatcmpl-123",
		Text: "The disk of db-1 is full."}); err != nil {
		return err
	}
	taker, err := scores.New(ctx, scores.Config{Agent: agent,
		Meanings: map[string]scores.Meaning{"Relevance": {Worst: 1, Best: 5}}})
	if err != nil {
		return err
	}
	results, err := otel.NewResults(otel.ResultsConfig{Taker: taker})
	if err != nil {
		return err
	}
	handler, err := results.Handler(token)
	if err != nil {
		return err
	}
	server := httptest.NewServer(
		wrap(handler)) // http.Handle("/v1/logs", handler), in a program of yours
	defer server.Close()
	if err := evaluate(ctx, server.URL, options...); err != nil {
		return err
	}
	account, err := agent.Explain(ctx, "chatcmpl-123")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, "worth", account.Worth)
	return err
}

// evaluate is the evaluator.
func evaluate(ctx context.Context, address string, options ...otlploghttp.Option) error {
	exporter, err := otlploghttp.New(ctx,
		append(options, otlploghttp.WithEndpointURL(address+"/v1/logs"),
			otlploghttp.WithHeaders(map[string]string{"Authorization": "Bearer " + token}),
			otlploghttp.WithCompression(otlploghttp.GzipCompression))...)
	if err != nil {
		return err
	}
	logs := sdklog.NewLoggerProvider(sdklog.WithProcessor(sdklog.NewBatchProcessor(exporter)))
	var r otellog.Record
	r.SetEventName("gen_ai.evaluation.result")
	r.AddAttributes(attribute.String("gen_ai.response.id", "chatcmpl-123"),
		attribute.String("gen_ai.evaluation.name", "Relevance"),
		attribute.Float64("gen_ai.evaluation.score.value", 4))
	logs.Logger("evaluator").Emit(ctx, r)
	return logs.Shutdown(ctx)
}
