package main

import (
	_ "embed"
	"strings"

	"github.com/alecthomas/kong"
)

// helpText has what --help prints of each command: sections that begin with "# " and the command's
// name. Its lines that begin with ": " are the command's summary, and the help of its arguments and
// flags behind their names. The others are the text below the summary.
//
//go:embed help.txt
var helpText string

// describe gives each command its section of the help.
func describe(root *kong.Node) {
	sections := make(map[string]string)
	for section := range strings.SplitSeq("\n"+helpText, "\n# ") {
		name, text, _ := strings.Cut(section, "\n")
		sections[name] = text
	}
	_ = kong.Visit(root, func(node kong.Visitable, next kong.Next) error {
		if n, ok := node.(*kong.Node); ok {
			words := append([]string{"heed"}, wordsOf(n)...)
			describeOne(n, sections[strings.Join(words, " ")])
		}
		return next(nil)
	})
}

func describeOne(n *kong.Node, section string) {
	values := make(map[string]*kong.Value)
	for _, flag := range n.Flags {
		values["--"+flag.Name] = flag.Value
	}
	for _, arg := range n.Positional {
		values[arg.Name] = arg
	}
	var text []string
	for line := range strings.SplitSeq(section, "\n") {
		help, is := strings.CutPrefix(line, ": ")
		name, about, _ := strings.Cut(help, " ")
		switch value := values[name]; {
		case !is:
			text = append(text, line)
		case value != nil:
			value.Help = about
		default:
			n.Help = help
		}
	}
	n.Detail = strings.TrimSpace(strings.Join(text, "\n"))
}

// wordsOf returns the words that name a command, from the first on.
func wordsOf(n *kong.Node) []string {
	if n == nil || n.Type == kong.ApplicationNode {
		return nil
	}
	return append(wordsOf(n.Parent), n.Name)
}
