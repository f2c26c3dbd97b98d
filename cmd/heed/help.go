package main

import (
	_ "embed"
	"strings"

	"github.com/alecthomas/kong"
)

// helpText has what --help says of each command below its first line: sections that begin with "# " and the command's name.
//
//go:embed help.txt
var helpText string

// describe gives each command its section of the help.
func describe(root *kong.Node) {
	sections := make(map[string]string)
	for section := range strings.SplitSeq("\n"+helpText, "\n# ") {
		name, text, _ := strings.Cut(section, "\n")
		sections[name] = strings.TrimSpace(text)
	}
	_ = kong.Visit(root, func(node kong.Visitable, next kong.Next) error {
		if n, ok := node.(*kong.Node); ok {
			n.Detail = sections[strings.Join(append([]string{"heed"}, wordsOf(n)...), " ")]
		}
		return next(nil)
	})
}

// wordsOf returns the words that name a command, from the first on.
func wordsOf(n *kong.Node) []string {
	if n == nil || n.Type == kong.ApplicationNode {
		return nil
	}
	return append(wordsOf(n.Parent), n.Name)
}
