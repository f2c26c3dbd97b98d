package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/heedhq/heed/internal/view"
)

type completion struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// scripts have each shell ask heed itself what the word under the cursor could be.
//
//go:embed complete
var scripts embed.FS

// Run prints a script.
func (c *completion) Run(s *session) error {
	script, err := scripts.ReadFile("complete/" + c.Shell)
	s.out.write(string(script))
	return errors.Join(err, s.out.err)
}

type completeCommand struct {
	Words []string `arg:"" optional:""`
}

// Run prints what the last word could be, a line each. Where nothing is known it prints nothing,
// and never an error.
func (c *completeCommand) Run(s *session) error {
	words := c.Words
	if len(words) == 0 {
		words = []string{""}
	}
	p := &completer{session: s, node: s.parser.Model.Node, given: make(map[string]string)}
	for _, word := range words[:len(words)-1] {
		p.read(word)
	}
	last := words[len(words)-1]
	for _, candidate := range p.candidates(last) {
		if strings.HasPrefix(candidate, last) {
			fmt.Fprintln(s.out.w, candidate)
		}
	}
	return nil
}

// A completer follows the words of a command line through the grammar. It must not be used
// concurrently.
type completer struct {
	*session
	node  *kong.Node
	value *kong.Flag // whose value comes next
	args  int        // that were given
	given map[string]string
}

func (p *completer) read(word string) {
	switch {
	case p.value != nil:
		p.given[p.value.Name] = word
		p.value = nil
	case strings.HasPrefix(word, "--") && strings.Contains(word, "="):
		name, value, _ := strings.Cut(word, "=")
		if p.read(name); p.value != nil {
			p.read(value)
		}
	case strings.HasPrefix(word, "-"):
		for _, flag := range p.flags() {
			if word == "--"+flag.Name && !flag.IsBool() {
				p.value = flag
			}
		}
	default:
		for _, child := range p.node.Children {
			if child.Name == word || slices.Contains(child.Aliases, word) {
				p.node = child
				return
			}
		}
		p.node = p.target()
		p.args++
	}
}

// target is the command that takes flags and arguments here: this one, or what it does by itself
// with arguments.
func (p *completer) target() *kong.Node {
	if p.node.DefaultCmd != nil && p.node.DefaultCmd.Tag.Default == "withargs" {
		return p.node.DefaultCmd
	}
	return p.node
}

func (p *completer) flags() (all []*kong.Flag) {
	for _, group := range p.target().AllFlags(true) {
		all = append(all, group...)
	}
	return all
}

// candidates returns what the last word could be.
func (p *completer) candidates(last string) (names []string) {
	switch {
	case p.value != nil:
		return p.valuesOf(p.value.Value)
	case strings.HasPrefix(last, "--") && strings.Contains(last, "="):
		name, _, _ := strings.Cut(last, "=")
		if p.read(name); p.value != nil {
			names = texts(p.valuesOf(p.value.Value),
				func(value string) string { return name + "=" + value })
		}
		return names
	case strings.HasPrefix(last, "-"):
		for _, flag := range p.flags() {
			names = append(names, "--"+flag.Name)
		}
		slices.Sort(names)
		return names
	}
	if target := p.target(); p.args < len(target.Positional) {
		names = p.valuesOf(target.Positional[p.args])
	}
	for _, child := range p.node.Children {
		if !child.Hidden {
			names = append(names, child.Name)
		}
	}
	return names
}

// valuesOf returns the values that a flag or an argument may have.
func (p *completer) valuesOf(v *kong.Value) (names []string) {
	if v.Enum != "" {
		return slices.DeleteFunc(v.EnumSlice(), func(s string) bool { return s == "" })
	}
	what := v.Tag.Get("complete")
	switch what {
	case "":
		return nil
	case "status":
		return statuses
	}
	if db, ok := p.given["db"]; ok {
		p.DB = db
	}
	err := p.with(func() (err error) {
		names, err = p.stored(what)
		return err
	})
	if err != nil {
		return nil
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool {
		return name == "" || strings.ContainsFunc(name, unprintable)
	})
}

// stored returns the names that the store has for something. A part that is not there has none.
func (p *completer) stored(what string) (names []string, err error) {
	v := p.source()
	parts := []part{learners, modules, recorders, services}
	for _, t := range parts {
		if what == t.what {
			return t.names(p.ctx, v.Store)
		}
		_, _ = t.one(p.session, v, p.given[t.what])
	}
	rules := func(read func(context.Context, view.RuleQuery, view.Page) (view.List[view.Rule], error),
		status string) {
		if v.Feedback != nil && err == nil {
			var all view.List[view.Rule]
			all, err = read(p.ctx, view.RuleQuery{Status: status}, view.Page{})
			names = append(names, texts(all.Items, func(r view.Rule) string { return r.ID })...)
		}
	}
	switch what {
	case "heuristic":
		all, err := v.Heuristics(p.ctx, "", view.Page{})
		return texts(all.Items, func(h view.Heuristic) string { return h.ID }), err
	case "pattern":
		all, err := v.Ways(p.ctx, view.WayQuery{}, view.Page{})
		return texts(all.Items, func(w view.Way) string { return string(w.ID) }), err
	case "proposal":
		rules(v.Proposals, "pending")
	case "rule":
		rules(v.Rules, "")
	case "proposal or rule":
		rules(v.Proposals, "")
		rules(v.Rules, "")
	default:
		if v.Strategy == nil {
			return nil, nil
		}
		segments, failure := v.SegmentNames(p.ctx)
		for _, n := range segments {
			d, err := v.Distribution(p.ctx, n.Query())
			if err != nil {
				return nil, err
			}
			names = append(names, map[string][]string{
				"category": {n.Category}, "context": {n.Context}, "item": texts(d.Standings, itemOf),
			}[what]...)
		}
		err = failure
	}
	return names, err
}
