package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

type completion struct {
	Shell string `arg:"" enum:"bash,zsh,fish"`
}

// scripts have each shell complete the words that all commands have.
var scripts = map[string]string{
	"bash": "complete -o default -W '%s' heed\n",
	"zsh":  "autoload -U +X bashcompinit && bashcompinit\ncomplete -o default -W '%s' heed\n",
	"fish": "complete -c heed -a '%s'\n",
}

// Run prints a script.
func (c *completion) Run(s *session, parser *kong.Kong) error {
	var words []string
	_ = kong.Visit(parser.Model, func(node kong.Visitable, next kong.Next) error {
		switch n := node.(type) {
		case *kong.Node:
			words = append(words, n.Name)
		case *kong.Flag:
			words = append(words, "--"+n.Name)
		}
		return next(nil)
	})
	slices.Sort(words)
	s.out.write(fmt.Sprintf(scripts[c.Shell], strings.Join(slices.Compact(words), " ")))
	return s.out.err
}
