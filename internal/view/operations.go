package view

import (
	"context"
	_ "embed" // of the document
	"encoding/json"
	"net/http"
	"path"
	"reflect"
	"strings"
	"sync"
)

// OpenAPI describes the operations. Their tests compare it with the table.
//
//go:embed openapi.json
var OpenAPI []byte

// An Operation is what a program asks of an agent by the HTTP API, or a model by MCP.
type Operation struct {
	Method  string // in the API; GET only reads
	Path    string
	Tool    string       // its name in MCP; "" if MCP does not have it
	In, Out reflect.Type // Out is [Nothing] without a result
	Faults  []string     // the sorts that it may end in, in addition to what all operations may
	needs   string       // the part that the agent or the server must have
	do      func(context.Context, *Caller, any) (any, error)
}

// Nothing is the result of an operation without a result.
type Nothing struct{}

// A Caller is who calls an operation, and what comes with the call in addition to its input.
type Caller struct {
	Person string // "" if it is not known
	// Pieces is called with the parts of an answer while they arrive. nil: they are not wanted.
	Pieces func(ctx context.Context, text string, restart bool)
	// Model reports that a model calls, for the person. It can't name another one, nor set how much
	// something counts. Names returns what heed calls an event and a session of the client's.
	Model bool
	Names func(event, session string) (string, string)

	View *Source // what the operation reads and changes
}

// user returns who an input is about.
func (c *Caller) user(named string) string {
	if c.Model {
		return c.Person
	}
	return named
}

func operation[In, Out any](
	at, needs string, do func(*Caller, context.Context, *In) (Out, error), faults ...string,
) Operation {
	method, at, _ := strings.Cut(at, " ")
	if needs != "" {
		faults = append(faults, MissingPart)
	}
	return Operation{
		Method: method, Path: at, Faults: faults, needs: needs,
		In: reflect.TypeFor[In](), Out: reflect.TypeFor[Out](),
		do: func(ctx context.Context, c *Caller, in any) (any, error) { return do(c, ctx, in.(*In)) },
	}
}

// tool has MCP offer an operation, too.
func tool(name string, o Operation) Operation {
	o.Tool = name
	return o
}

// listing is an operation that lists what a query selects. The query has a [Page].
func listing[P Paged[Query], Query, T any](
	path, needs string, read func(*Source, context.Context, Query) (List[T], error),
) Operation {
	do := func(c *Caller, ctx context.Context, q *Query) (List[T], error) {
		if err := P(q).bound(); err != nil {
			return List[T]{}, err
		}
		return read(c.View, ctx, *q)
	}
	return operation("GET "+path, needs, do)
}

// Operations are all that programs and models can ask for.
func Operations() []Operation {
	ofAnswers := []string{Unknown, Forgotten}
	return []Operation{
		operation("POST /v1/select", arms, (*Caller).choose),
		operation("POST /v1/observe", arms, (*Caller).observe, Unknown),
		operation("POST "+AnswerPath, agent, (*Caller).answer, ModelFailed),
		tool("prepare", operation("POST /v1/prepare", agent, (*Caller).prepare)),
		tool("answered", operation("POST /v1/answered", agent, (*Caller).answered, Unknown)),
		tool("tool_result", operation("POST /v1/tool_result", agent, (*Caller).toolResult)),
		tool("outcome", operation("POST /v1/outcome", agent, (*Caller).outcome, ofAnswers...)),
		tool("react", operation("POST /v1/react", agent, (*Caller).react, ofAnswers...)),
		tool("undo", operation("POST /v1/undo", agent, (*Caller).undo, ofAnswers...)),
		operation("POST /v1/hear", agent, (*Caller).hear, Forgotten),
		tool("correct", operation("POST /v1/correct", agent, (*Caller).correct, Unknown)),
		tool("propose", operation("POST /v1/propose", rules, (*Caller).propose)),
		tool("explain", operation("GET /v1/explanation", "", (*Caller).explain, Unknown)),
		listing("/v1/answers", "", (*Source).Answers),
		listing("/v1/changes", "", (*Source).Changes),
		operation("GET /v1/gain", "", (*Caller).gain),
		operation("GET /v1/find", agent, (*Caller).find, Unknown),
		listing("/v1/segments", arms, (*Source).Segments),
		listing("/v1/heuristics", heuristics, (*Source).Heuristics),
		listing("/v1/rules", rules, (*Source).RulesOrProposals),
		listing("/v1/warnings", ways, (*Source).Warnings)}
}

// AnswerPath is the operation that may take as long as a model.
const AnswerPath = "/v1/answer"

// Do carries an operation out. given is its input in JSON.
func (o *Operation) Do(ctx context.Context, c *Caller, given []byte) (any, error) {
	in := reflect.New(o.In).Interface()
	if err := decode(given, in, c.Model); err != nil {
		return nil, err
	}
	if !c.View.Has(o.needs) {
		return nil, Lacks(o.needs)
	}
	return o.do(ctx, c, in)
}

// Query carries an operation out with the parameters of a URL.
func (o *Operation) Query(ctx context.Context, c *Caller, query string) (any, error) {
	given, err := fromQuery(query, o.In)
	if err != nil {
		return nil, err
	}
	return o.Do(ctx, c, given)
}

// document is what tools need of the document of the API. It is parsed once, because it is long and
// a server is made for each connection.
var document = sync.OnceValue(func() (doc struct {
	Paths map[string]map[string]struct {
		Summary    string
		Tool       string `json:"x-tool"` // when a model calls it
		Parameters []struct{ Name, Description string }
		Body       struct {
			Content map[string]struct {
				Schema struct {
					Ref string `json:"$ref"`
				}
			}
		} `json:"requestBody"`
	}
	Components struct {
		Schemas map[string]struct{ Properties map[string]map[string]any }
	}
}) {
	_ = json.Unmarshal(OpenAPI, &doc) // it is embedded, and tests read it
	return doc
})

// Describe returns the title of a tool, when a model is to call it, and the schema of its input,
// with the words of the document. The schemas of fields are shared: do not change them.
func (o *Operation) Describe() (title, when string, schema map[string]any) {
	doc := document()
	d := doc.Paths[o.Path][strings.ToLower(o.Method)]
	of := doc.Components.Schemas[path.Base(d.Body.Content["application/json"].Schema.Ref)].Properties
	if o.Method == http.MethodGet {
		of = make(map[string]map[string]any)
		for _, p := range d.Parameters {
			of[p.Name] = map[string]any{"type": "string", "description": p.Description}
		}
	}
	properties, required := map[string]any{}, []string{}
	for _, f := range FieldsOf(o.In) {
		if f.Hidden {
			continue
		}
		properties[f.Name] = of[f.Name]
		if f.Required {
			required = append(required, f.Name)
		}
	}
	return d.Summary, d.Tool, map[string]any{
		"type": "object", "properties": properties, "required": required, "additionalProperties": false,
	}
}
