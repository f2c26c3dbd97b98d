package web

import (
	"context"
	"encoding/json"

	"github.com/heedhq/heed"
	records "github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/store"
)

// An asked is an answer with the question behind it, as far as the store has them.
type asked struct {
	answerRow
	Question string // "" if no trace of it is kept, or only its hash
}

// askedOf reads an answer. It returns [heed.ErrNotFound] if the answer is not kept.
func (h *Handler) askedOf(ctx context.Context, id string) (one asked, err error) {
	view := records.View(h.cfg.Name + ".answer")
	kept, err := view.Get(ctx, h.cfg.Store, records.ID(id))
	if err == nil && kept.Value.Reply == nil {
		err = heed.ErrNotFound
	}
	if err != nil {
		return one, err
	}
	one.answerRow = answerRowOf(&kept.Value)
	all := []asked{one}
	err = h.questions(ctx, all)
	return all[0], err
}

// questions reads what was asked, in one round trip.
func (h *Handler) questions(ctx context.Context, all []asked) error {
	var refs []store.Ref
	for i := range all {
		refs = append(refs, store.Ref{Kind: "decision.trace", ID: all[i].Response})
	}
	var s store.Snapshot
	if err := h.cfg.Store.Read(ctx, &s, nil, refs); err != nil {
		return err
	}
	for i, r := range s.Records {
		if r.Revision == 0 {
			continue
		}
		var trace struct{ Text string }
		if err := decoded(r, &trace); err != nil {
			return err
		}
		all[i].Question = trace.Text
	}
	return nil
}

func decoded(r store.Record, into any) error {
	body, err := r.Body.JSON()
	if err != nil {
		return err
	}
	return json.Unmarshal(body, into)
}
