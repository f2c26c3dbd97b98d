package main

import (
	"embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

type completion struct {
	Shell string `arg:"" enum:"bash,zsh,fish"`
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

// Run prints what the last word could be, a line each: a command, a flag or one of the values that
// a flag permits.
func (c *completeCommand) Run(s *session) error {
	words := c.Words
	if len(words) == 0 {
		words = []string{""}
	}
	node, value := s.parser.Model.Node, (*kong.Value)(nil)
	for _, word := range words[:len(words)-1] {
		if value != nil {
			value = nil
			continue
		}
		for _, child := range node.Children {
			if child.Name == word || slices.Contains(child.Aliases, word) {
				node = child
				break
			}
		}
		if flag := flagOf(node, word); flag != nil && !flag.IsBool() {
			value = flag.Value
		}
	}
	last := words[len(words)-1]
	for _, candidate := range candidates(node, value, last) {
		if strings.HasPrefix(candidate, last) {
			fmt.Fprintln(s.out.w, candidate)
		}
	}
	return nil
}

// flagsOf returns the flags that a command takes here, also by its default command.
func flagsOf(node *kong.Node) (all []*kong.Flag) {
	if node.DefaultCmd != nil && node.DefaultCmd.Tag.Default == "withargs" {
		node = node.DefaultCmd
	}
	return slices.Concat(node.AllFlags(true)...)
}

func flagOf(node *kong.Node, word string) *kong.Flag {
	for _, flag := range flagsOf(node) {
		if word == "--"+flag.Name {
			return flag
		}
	}
	return nil
}

// candidates returns what the last word could be, which follows a flag without its value or not.
func candidates(node *kong.Node, value *kong.Value, last string) (names []string) {
	name, _, is := strings.Cut(last, "=")
	switch flag := flagOf(node, name); {
	case value != nil:
		return permitted(value)
	case is && flag != nil:
		return texts(permitted(flag.Value), func(one string) string { return name + "=" + one })
	case strings.HasPrefix(last, "-"):
		names = texts(flagsOf(node), func(f *kong.Flag) string { return "--" + f.Name })
		slices.Sort(names)
		return names
	}
	for _, argument := range node.Positional {
		names = append(names, permitted(argument)...)
	}
	for _, child := range node.Children {
		if !child.Hidden {
			names = append(names, child.Name)
		}
	}
	return names
}

// permitted returns the values that a flag or an argument may have, if they are given.
func permitted(v *kong.Value) []string {
	return slices.DeleteFunc(v.EnumSlice(), func(s string) bool { return s == "" })
}
