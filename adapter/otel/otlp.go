package otel

import (
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/heedhq/heed"
)

const (
	maxBody  = 4 << 20 // bytes of a request, after decompression
	minToken = 16      // bytes

	asJSON, asProto = "application/json", "application/x-protobuf"
)

// Handler returns a handler for "/v1/logs" of OTLP over HTTP, in protobuf or JSON, with gzip or
// without. It takes the results of evaluations before it answers, and ignores all other records. A
// result at fault is rejected in the answer's partial success, which names the field. If the
// agent's store fails, the answer is 503, and exporters send the records again.
//
// A request needs the header "Authorization: Bearer <token>". The token has at least 16 bytes.
// Requests have at most 4 MiB, before compression.
func (r *Results) Handler(token string) (http.Handler, error) {
	if len(token) < minToken {
		return nil, &heed.ConfigError{Field: "token",
			Reason: fmt.Sprintf("must have at least %d bytes", minToken)}
	}
	want := sha256.Sum256([]byte(token))
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		bearer, _ := strings.CutPrefix(q.Header.Get("Authorization"), "Bearer ")
		got := sha256.Sum256([]byte(bearer))
		form, _, _ := mime.ParseMediaType(q.Header.Get("Content-Type"))
		switch {
		case subtle.ConstantTimeCompare(got[:], want[:]) != 1:
			http.Error(w, "the token is missing or wrong", http.StatusUnauthorized)
		case q.Method != http.MethodPost:
			w.Header().Set("Allow", http.MethodPost)
			http.Error(w, "must be a POST", http.StatusMethodNotAllowed)
		case form != asJSON && form != asProto:
			http.Error(w, "Content-Type: must be "+asProto+" or "+asJSON, http.StatusUnsupportedMediaType)
		default:
			r.serve(w, q, form)
		}
	}), nil
}

// errTooLong reports that a body is too long.
var errTooLong = fmt.Errorf("the body has more than %d bytes", maxBody)

func (r *Results) serve(w http.ResponseWriter, q *http.Request, form string) {
	logs, err := decode(w, q, form)
	switch {
	case errors.Is(err, errTooLong), errors.As(err, new(*http.MaxBytesError)):
		http.Error(w, errTooLong.Error(), http.StatusRequestEntityTooLarge)
		return
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	rejected, why, err := r.takeAll(q.Context(), logs, form == asJSON)
	if err != nil {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "the results could not be kept: send them again", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", form)
	_, _ = w.Write(response(rejected, why, form))
}

// decode reads the records of a request. The message of a request for logs is LogsData on the wire.
func decode(w http.ResponseWriter, q *http.Request, form string) (*logspb.LogsData, error) {
	var body io.Reader = http.MaxBytesReader(w, q.Body, maxBody)
	switch q.Header.Get("Content-Encoding") {
	case "", "identity":
	case "gzip":
		unzipped, err := gzip.NewReader(body)
		if err != nil {
			return nil, fmt.Errorf("body: %w", err)
		}
		body = unzipped
	default:
		return nil, errors.New("Content-Encoding: must be gzip, or none")
	}
	text, err := io.ReadAll(io.LimitReader(body, maxBody+1))
	if err != nil {
		return nil, fmt.Errorf("body: %w", err)
	}
	if len(text) > maxBody {
		return nil, errTooLong
	}
	logs := &logspb.LogsData{}
	if form == asJSON {
		err = protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(text, logs)
	} else {
		err = proto.Unmarshal(text, logs)
	}
	if err != nil {
		return nil, fmt.Errorf("body: %w", err)
	}
	return logs, nil
}

// takeAll takes the results among records. It returns how many were at fault, and why the first one
// was.
func (r *Results) takeAll(ctx context.Context, logs *logspb.LogsData, json bool) (rejected int64,
	why string, err error) {
	for i, resource := range logs.GetResourceLogs() {
		for j, scoped := range resource.GetScopeLogs() {
			for k, record := range scoped.GetLogRecords() {
				found, is := r.result(read(record, scoped.GetScope().GetName(), json))
				if !is {
					continue
				}
				err := r.take(ctx, found)
				var input *heed.InputError
				switch {
				case errors.As(err, &input):
					if rejected++; rejected == 1 {
						why = fmt.Sprintf("resourceLogs[%d].scopeLogs[%d].logRecords[%d]: %s: %s", i, j, k,
							attributeOf(input.Field), input.Reason)
					}
				case err != nil:
					return 0, "", err
				}
			}
		}
	}
	return rejected, why, nil
}

// attributeOf names the attribute behind a field of a grade.
func attributeOf(field string) string {
	switch field {
	case "Value":
		return "gen_ai.evaluation.score.value"
	case "Label":
		return "gen_ai.evaluation.score.label"
	case "Answer":
		return "the answer's id"
	}
	return field
}

// read reads a record. asJSON reports that it came as JSON, in which ids are hexadecimal, whereas
// package protojson reads base64.
func read(record *logspb.LogRecord, scope string, asJSON bool) *reading {
	of := &reading{name: record.GetEventName(), scope: scope,
		trace: hex.EncodeToString(record.GetTraceId())}
	if asJSON {
		of.trace = strings.ToLower(base64.StdEncoding.EncodeToString(record.GetTraceId()))
	}
	at := record.GetTimeUnixNano()
	if at == 0 {
		at = record.GetObservedTimeUnixNano()
	}
	if at > 0 && at < 1<<63 {
		of.at = time.Unix(0, int64(at)).UTC()
	}
	for _, a := range record.GetAttributes() {
		switch v := a.GetValue().GetValue().(type) {
		case *commonpb.AnyValue_StringValue:
			of.read(a.GetKey(), v.StringValue, nil)
		case *commonpb.AnyValue_DoubleValue:
			of.read(a.GetKey(), "", &v.DoubleValue)
		case *commonpb.AnyValue_IntValue:
			value := float64(v.IntValue)
			of.read(a.GetKey(), "", &value)
		}
	}
	return of
}

// response returns an ExportLogsServiceResponse: empty, or with its partial_success (field 1),
// which has rejected_log_records (1) and error_message (2).
func response(rejected int64, why, form string) []byte {
	if form == asJSON {
		answer := map[string]any{}
		if rejected > 0 {
			answer["partialSuccess"] = map[string]string{"rejectedLogRecords": strconv.FormatInt(rejected,
				10), "errorMessage": why}
		}
		text, _ := json.Marshal(answer) // strings can't fail
		return text
	}
	if rejected == 0 {
		return nil
	}
	var partial []byte
	partial = protowire.AppendTag(partial, 1, protowire.VarintType)
	partial = protowire.AppendVarint(partial, uint64(rejected))
	partial = protowire.AppendTag(partial, 2, protowire.BytesType)
	partial = protowire.AppendString(partial, strings.ToValidUTF8(why, "?"))
	return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), partial)
}
