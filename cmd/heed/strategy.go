package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

// strategyCommands look at what learners of package strategy believe.
type strategyCommands struct {
	Learner string `complete:"learner" placeholder:"NAME" help:"The name of the learner. Needed if the store has more than one."`

	Status        strategyStatus        `cmd:"" default:"1" help:"Sum up each learner. heed strategy does the same."`
	Distributions strategyDistributions `cmd:"" help:"List the segments: categories and contexts that have outcomes."`
	Show          strategyShow          `cmd:"" help:"Show a category: its arms, parameters and items."`
	Item          strategyItem          `cmd:"" aliases:"learning" help:"Show an item beside its segment."`
	History       strategyHistory       `cmd:"" help:"List the choices for an item, with their results."`
	Winners       strategyWinners       `cmd:"" help:"List the races for the best arm that have ended."`
	Saved         strategySaved         `cmd:"" help:"Show what the choices saved, beside always choosing one arm."`
	Reset         strategyReset         `cmd:"" help:"Forget what was learned in a category."`
	ResetItem     strategyResetItem     `cmd:"" name:"reset-item" aliases:"reset-learning" help:"Forget what was learned of an item."`
}

// ownPooling says that a learner pools evidence by the application's own code, if that is so: what is shown is then not what the application
// believes.
func ownPooling(s *session, st *opened, l *strategy.Learner) (string, error) {
	for r, err := range st.store.Find(s.ctx, store.Query{Kind: settingsKind}) {
		if err != nil {
			return "", err
		}
		if r.ID != "strategy/"+l.Config().Name {
			continue
		}
		var kept struct {
			Fields struct {
				Pooling struct {
					Value struct{ Type string }
				}
			}
		}
		body, err := r.Body.JSON()
		if err == nil {
			err = json.Unmarshal(body, &kept)
		}
		if err != nil {
			return "", err
		}
		switch of := kept.Fields.Pooling.Value.Type; of {
		case "", fmt.Sprintf("%T", strategy.TwoLevel{}), fmt.Sprintf("%T", strategy.Copy{}), fmt.Sprintf("%T", strategy.Alone{}):
			return "", nil
		default:
			return fmt.Sprintf("The application pools evidence with %s, which heed does not have. Here it is pooled by default: the application may choose another arm.", show(of)), nil
		}
	}
	return "", nil
}

const settingsKind = "heed.settings"

// A segment is a category in a context.
type segment struct{ category, context string }

// segments returns the segments of a category, in one context or in all.
func segments(s *session, l *strategy.Learner, category string, context *string) (found []strategy.Distribution, err error) {
	var categories, contexts []string
	isItem := false
	for d, err := range l.Distributions(s.ctx) {
		if err != nil {
			return nil, err
		}
		categories = append(categories, d.Category)
		isItem = isItem || slices.ContainsFunc(d.Standings, func(st strategy.Standing) bool { return st.Item == category })
		if d.Category != category {
			continue
		}
		contexts = append(contexts, d.Context)
		if context == nil || d.Context == *context {
			found = append(found, d)
		}
	}
	switch {
	case len(found) > 0:
		return found, nil
	case len(contexts) > 0:
		return nil, unknown("context", *context, contexts, fmt.Sprintf("category %q has %s", category, strings.Join(quoted(contexts), ", ")))
	case isItem:
		return nil, fmt.Errorf("there is no category %q, but an item of that name: see heed strategy item %s", category, show(category))
	}
	return nil, unknown("category", category, categories, "heed strategy distributions lists them")
}

// An itemFilter says where an item is looked for.
type itemFilter struct {
	Category *string `complete:"category" placeholder:"NAME" help:"In this category only."`
	Context  *string `complete:"context" placeholder:"NAME" help:"In this context only."`
}

// find returns the segments in which an item has outcomes.
func (f *itemFilter) find(s *session, l *strategy.Learner, item string) (found []segment, err error) {
	var names []string
	for d, err := range l.Distributions(s.ctx) {
		if err != nil {
			return nil, err
		}
		if f.Category != nil && d.Category != *f.Category || f.Context != nil && d.Context != *f.Context {
			continue
		}
		for _, standing := range d.Standings {
			names = append(names, standing.Item)
			if standing.Item == item {
				found = append(found, segment{d.Category, d.Context})
			}
		}
	}
	if len(found) == 0 {
		return nil, unknown("item", item, names, "no item of that name has outcomes; heed strategy show lists the items of a category")
	}
	return found, nil
}

// reports returns how an item stands in each segment in which it has outcomes.
func (f *itemFilter) reports(s *session, l *strategy.Learner, item string) (all []strategy.ItemReport, err error) {
	found, err := f.find(s, l, item)
	if err != nil {
		return nil, err
	}
	for _, at := range found {
		r, err := l.Item(s.ctx, strategy.Query{Item: item, Category: at.category, Context: at.context})
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}
