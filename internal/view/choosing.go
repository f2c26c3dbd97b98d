package view

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"maps"
	"time"

	"github.com/heedhq/heed/strategy"
)

// A selection asks for an arm.
type selection struct {
	strategy.Query `not:"key vector shares frozen"`
}

// A Selected is an arm, with the choice that outcomes refer to.
type Selected struct {
	Choice     string            `json:"choice"`
	Arm        string            `json:"arm"`
	Parameters map[string]string `json:"parameters"`
	At         time.Time         `json:"at"`
}

func (by *Caller) choose(ctx context.Context, in *selection) (none Selected, _ error) {
	c, err := by.View.Strategy.Select(ctx, in.Query)
	if err != nil { // there may be a choice all the same, which looks like a good one
		return none, err
	}
	text, err := json.Marshal(c)
	return Selected{
		base64.RawURLEncoding.EncodeToString(text), string(c.Arm), maps.Collect(c.Parameters()), c.At,
	}, err
}

// An Observation reports how a choice turned out.
type Observation struct {
	Choice           string `json:"choice"`
	strategy.Outcome `need:"value confidence"`
}

// An Observed reports what was made of an observation.
type Observed struct {
	Disposition string `json:"disposition"`
}

func (c *Caller) observe(ctx context.Context, in *Observation) (none Observed, _ error) {
	o := in.Outcome
	text, err := base64.RawURLEncoding.DecodeString(in.Choice)
	if err != nil || json.Unmarshal(text, &o.Choice) != nil {
		return none, badField("choice", "must be what /v1/select has given")
	}
	did, err := c.View.Strategy.Observe(ctx, o)
	return Observed{string(did)}, err
}

// A Search asks for the newest answer of a session.
type Search struct {
	Session string `json:"session"`
}

// A Found is the id of an answer.
type Found struct {
	ID string `json:"id"`
}

func (c *Caller) find(ctx context.Context, in *Search) (Found, error) {
	id, err := c.View.Agent.Find(ctx, in.Session)
	return Found{id}, err
}

// A Named names an answer.
type Named struct {
	Answer string `json:"answer" heed:"id"`
}

func (c *Caller) explain(ctx context.Context, in *Named) (Explanation, error) {
	return c.View.Explain(ctx, in.Answer)
}
