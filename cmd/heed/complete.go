package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/strategy"
)

type completion struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// bashScript puts together again what bash has taken apart at = and :, as in --db=postgres://…, and takes quotes from it. Of an
// answer bash wants what comes after the last of these, quoted as the line needs it.
const bashScript = `_heed() {
	local rest=${COMP_LINE:0:COMP_POINT} words=() word i n=-1 quote= before= breaks=${COMP_WORDBREAKS//[!=:]/}
	for ((i = 0; i <= COMP_CWORD; i++)); do
		if [[ $n == -1 || $rest == [[:blank:]]* ]]; then
			rest=${rest#"${rest%%[![:blank:]]*}"}
			words[++n]=
		fi
		word=${COMP_WORDS[i]}
		[[ $i == "$COMP_CWORD" ]] && word=$rest
		words[n]+=$word
		rest=${rest#"$word"}
	done
	[[ ${words[n]} == [\"\']* ]] && quote=1
	for ((i = 1; i <= n; i++)); do
		word=${words[i]//\\/}
		word=${word#[\"\']}
		words[i]=${word%[\"\']}
	done
	[[ $breaks && ! $quote ]] && before=${words[n]%"${words[n]##*[$breaks]}"}
	COMPREPLY=()
	while IFS= read -r word; do
		word=${word#"$before"}
		[[ $quote ]] || printf -v word %q "$word"
		COMPREPLY+=("$word")
	done < <(heed __complete "${words[@]:1}" 2>/dev/null)
}
complete -o default -F _heed heed
`

// scripts have each shell ask heed itself what the word under the cursor could be.
var scripts = map[string]string{
	"bash": bashScript,
	"zsh": `#compdef heed
_heed() {
	local -a found
	found=("${(@f)$(heed __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
	if [[ -n $found ]]; then compadd -- $found; else _files; fi
}
if [[ $funcstack[1] == _heed ]]; then _heed; else compdef _heed heed; fi
`,
	"fish": `complete -c heed -f -a '(heed __complete (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
`,
}

// Run prints a script.
func (c *completion) Run(s *session) error {
	s.out.printf("%s", scripts[c.Shell])
	return s.out.err
}

type completeCommand struct {
	Words []string `arg:"" optional:""`
}

// Run prints what the last word could be, a line each. Where nothing is known it prints nothing, and never an error.
func (c *completeCommand) Run(s *session) error {
	words := c.Words
	if len(words) == 0 {
		words = []string{""}
	}
	p := &completer{session: s, node: s.parser.Model.Node}
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

// A completer follows the words of a command line through the grammar. It must not be used concurrently.
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
		p.set(p.value.Name, word)
		p.value = nil
	case strings.HasPrefix(word, "--") && strings.Contains(word, "="):
		name, value, _ := strings.Cut(word[2:], "=")
		p.set(name, value)
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

func (p *completer) set(name, value string) {
	if p.given == nil {
		p.given = make(map[string]string)
	}
	p.given[name] = value
}

// target is the command that takes flags and arguments here: this one, or what it does by itself.
func (p *completer) target() *kong.Node {
	if p.node.DefaultCmd != nil {
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
		return p.assigned(last)
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

// assigned returns what the flag of a word like --flag=value could be.
func (p *completer) assigned(word string) (words []string) {
	name, _, _ := strings.Cut(word, "=")
	for _, flag := range p.flags() {
		if "--"+flag.Name == name {
			for _, value := range p.valuesOf(flag.Value) {
				words = append(words, name+"="+value)
			}
		}
	}
	return words
}

// valuesOf returns the values that a flag or an argument may have.
func (p *completer) valuesOf(v *kong.Value) []string {
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
	names, err := p.stored(what)
	if err != nil {
		return nil
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return slices.DeleteFunc(names, func(name string) bool { return name == "" || strings.ContainsAny(name, "\n\r\x1b") })
}

// stored returns the names that the store has for something.
func (p *completer) stored(what string) (names []string, err error) {
	st, err := p.open()
	if err != nil {
		return nil, err
	}
	defer st.close()
	switch what {
	case "learner":
		return strategy.Names(p.ctx, st.store)
	case "module":
		return learning.Names(p.ctx, st.store)
	case "recorder":
		return patterns.Names(p.ctx, st.store)
	case "heuristic", "pinned heuristic":
		return p.heuristics(st, what == "pinned heuristic")
	case "pattern":
		return p.patterns(st)
	case "proposal", "rule", "proposal or rule":
		return p.rules(st, what)
	}
	l, err := learners.one(p.session, st, p.given["learner"])
	if err != nil {
		return nil, err
	}
	return p.ofLearner(l, what)
}

// patterns returns the ids of the patterns of the recorder that is given.
func (p *completer) patterns(st *opened) (ids []string, err error) {
	recorder, err := recorders.one(p.session, st, p.given["recorder"])
	if err != nil {
		return nil, err
	}
	standings, err := recorder.Standings(p.ctx, patterns.PatternQuery{})
	for i := range standings {
		ids = append(ids, string(standings[i].Pattern.ID))
	}
	return ids, err
}

// rules returns the ids of pending proposals, of rules, or of all proposals and rules.
func (p *completer) rules(st *opened, what string) (ids []string, err error) {
	f, err := services.one(p.session, st, "")
	if err != nil {
		return nil, err
	}
	if what != "rule" {
		var q feedback.ProposalQuery
		if what == "proposal" {
			q.Status = feedback.StatePending
		}
		proposals, _, err := f.Rules().Proposals(p.ctx, q, 0)
		if err != nil {
			return nil, err
		}
		for _, one := range proposals {
			ids = append(ids, one.ID)
		}
	}
	if what != "proposal" {
		rules, err := f.Rules().List(p.ctx, feedback.RuleQuery{})
		if err != nil {
			return nil, err
		}
		for _, one := range rules {
			ids = append(ids, one.ID)
		}
	}
	return ids, nil
}

// ofLearner returns the categories, contexts or items of a learner.
func (p *completer) ofLearner(l *strategy.Learner, what string) (names []string, err error) {
	for d, err := range l.Distributions(p.ctx) {
		if err != nil {
			return nil, err
		}
		switch what {
		case "category":
			names = append(names, d.Category)
		case "context":
			names = append(names, d.Context)
		case "item":
			for _, standing := range d.Standings {
				names = append(names, standing.Item)
			}
		}
	}
	return names, nil
}

// heuristics returns those of the module that is given, all of them or the pinned ones.
func (p *completer) heuristics(st *opened, pinned bool) (ids []string, err error) {
	module, err := modules.one(p.session, st, p.given["module"])
	if err != nil {
		return nil, err
	}
	for h, err := range module.Heuristics(p.ctx) {
		if err != nil {
			return nil, err
		}
		standing, err := module.Standing(p.ctx, h.ID)
		if !pinned || err == nil && standing.Pin != (learning.Pin{}) {
			ids = append(ids, h.ID)
		}
	}
	return ids, nil
}
