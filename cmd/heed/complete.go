package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

type completion struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

func (completion) Help() string {
	return `Examples:

    source <(heed completion bash)
    heed completion zsh > "${fpath[1]}/_heed"
    heed completion fish > ~/.config/fish/completions/heed.fish

Categories and items are completed from the store that HEED_DB or --db names.`
}

// scripts have each shell ask heed itself what the word under the cursor could be.
var scripts = map[string]string{
	"bash": `_heed() {
	local IFS=$'\n'
	COMPREPLY=($(heed __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _heed heed
`,
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
		p.args++
	}
}

func (p *completer) set(name, value string) {
	if p.given == nil {
		p.given = make(map[string]string)
	}
	p.given[name] = value
}

func (p *completer) flags() (all []*kong.Flag) {
	for _, group := range p.node.AllFlags(true) {
		all = append(all, group...)
	}
	return all
}

// candidates returns what the last word could be.
func (p *completer) candidates(last string) (names []string) {
	switch {
	case p.value != nil:
		return p.valuesOf(p.value.Value)
	case strings.HasPrefix(last, "-"):
		for _, flag := range p.flags() {
			names = append(names, "--"+flag.Name)
		}
		slices.Sort(names)
		return names
	case p.args < len(p.node.Positional):
		return p.valuesOf(p.node.Positional[p.args])
	}
	for _, child := range p.node.Children {
		if !child.Hidden {
			names = append(names, child.Name)
		}
	}
	return names
}

// valuesOf returns the values that a flag or an argument may have.
func (p *completer) valuesOf(v *kong.Value) []string {
	if v.Enum != "" {
		return slices.DeleteFunc(v.EnumSlice(), func(s string) bool { return s == "" })
	}
	what := v.Tag.Get("complete")
	if what == "" {
		return nil
	}
	if db, ok := p.given["db"]; ok {
		p.DB = db
	}
	names, err := (&strategyCommands{Learner: p.given["learner"]}).names(p.session, what)
	if err != nil {
		return nil
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return slices.DeleteFunc(names, func(name string) bool { return name == "" || strings.ContainsAny(name, "\n\r\x1b") })
}

// names returns the learners, categories, contexts or items of a store.
func (c *strategyCommands) names(s *session, what string) (names []string, err error) {
	if what == "learner" {
		st, err := s.open()
		if err != nil {
			return nil, err
		}
		defer st.close()
		return s.learners(st)
	}
	v, err := c.view(s)
	if err != nil {
		return nil, err
	}
	defer v.close()
	all, err := v.distributions(s)
	for _, d := range all {
		switch what {
		case "category":
			names = append(names, d.Category)
		case "context":
			names = append(names, d.Context)
		case "item":
			standings, err := v.Standings(s.ctx, d.Category, d.Context)
			if err != nil {
				return nil, err
			}
			for _, standing := range standings {
				names = append(names, standing.Item)
			}
		}
	}
	return names, err
}
