package web

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/internal/view"
)

// An inboxData is what waits for people.
type inboxData struct {
	Proposals listing[feedback.Proposal]
	Yours     map[string]string // why your approval of a proposal would not count, or does already
	Ambiguous []view.Disputed
	Unsettled int // ambiguous corrections in all, counted to 1,000
	Unfit     []feedback.Rule
	Similar   []view.Similar      // corrections that may mean the same as others
	Mute      []feedback.Feedback // corrections that the evaluator gave no usable answer to
}

const mostUnsettled, mostWaiting = 50, 10

func inbox(r *http.Request, v *view.Source) (_ any, err error) {
	ctx, d := r.Context(), inboxData{Yours: make(map[string]string)}
	mine := func(p *feedback.Proposal) bool { return view.Yours(p, personOf(r)) == "" }
	read := func(ctx context.Context, p view.Page) (view.List[feedback.Proposal], error) {
		return v.Pending(ctx, p, mine)
	}
	if d.Proposals, err = list(r, read); err != nil {
		return nil, err
	}
	for _, p := range d.Proposals.Items {
		d.Yours[p.ID] = view.Yours(&p, personOf(r))
	}
	in, err := v.Inbox(ctx, mostUnsettled)
	d.Ambiguous, d.Unsettled, d.Unfit = in.Disputed, in.Unsettled, in.Unfit
	waiting, failure := v.Waiting(ctx)
	if d.Proposals.Damaged, err = view.DamagedIn(errors.Join(err, failure)); err != nil {
		return nil, err
	}
	for i := range waiting {
		if waiting[i].Class == "" && len(d.Mute) < mostUnsettled {
			d.Mute = append(d.Mute, waiting[i])
		}
	}
	d.Similar, err = v.Similar(ctx, waiting, mostWaiting)
	return d, err
}

// A proposalData is a proposal with all that a person needs to decide.
type proposalData struct {
	view.Report
	Yours   string
	Edited  []view.Edit      // since it was first proposed
	Applies int              // past corrections that it would have applied to
	Opposed []feedback.Match // the ones among them that may contradict it
	Looked  int
}

// further are the fields of a draft without its text that have no default value.
func further(d feedback.Draft) []view.Part {
	return slices.DeleteFunc(view.Parts(&d, say)[1:], func(p view.Part) bool { return p.Value == "" })
}

func proposal(r *http.Request, v *view.Source) (any, error) {
	report, err := byID(r, v.Report)
	if err == nil && report.Proposal == nil {
		err = heed.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	p := report.Proposal
	d := proposalData{Report: report, Yours: view.Yours(p, personOf(r))}
	if p.Was != nil {
		d.Edited = view.Edits(p.Was, &p.Draft, say)
	}
	if p.Status != feedback.StatePending || p.Change != "" {
		return d, nil
	}
	applied, looked, err := v.Feedback.Rules().DryRun(r.Context(), p.Draft)
	d.Applies, d.Looked = len(applied), looked
	d.Opposed = slices.DeleteFunc(applied, func(m feedback.Match) bool { return m.Opposed == "" })
	return d, err
}

// A correctionData is a correction with those that it is compared with.
type correctionData struct {
	feedback.Feedback
	Other *feedback.Feedback
	About view.Answer // the answer that it is about, if its agent is the one of the pages
	// Together mean the same, by heed or by a person. Near are others that may, or that a person took
	// this one away from.
	Together, Near []feedback.Feedback
}

func correction(r *http.Request, v *view.Source) (any, error) {
	ctx := r.Context()
	c, err := byID(r, v.Feedback.Feedback)
	if err != nil {
		return nil, err
	}
	d := correctionData{Feedback: c}
	if d.Other, err = v.Rival(ctx, &c); err != nil {
		return nil, err
	}
	if c.Task != "" && c.Agent == v.Name {
		if d.About, err = v.Answer(ctx, c.Task); err != nil && !errors.Is(err, heed.ErrNotFound) {
			return nil, err
		}
	}
	if d.Together, err = v.Together(ctx, &c); err == nil {
		c.Near = append(c.Near, c.Apart...)
		d.Near, err = v.Near(ctx, &c)
	}
	return d, err
}

func rule(r *http.Request, v *view.Source) (any, error) {
	report, err := byID(r, v.Report)
	if err == nil && report.Rule == nil {
		err = heed.ErrNotFound
	}
	return report, err
}
