package main

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// A listing is a table of texts. A title that begins with > is of numbers. No text is ever cut.
type listing struct {
	titles []string
	rows   [][]string
}

func (l *listing) add(cells ...any) { l.rows = append(l.rows, texts(cells, cell)) }

// String writes the listing.
func (l *listing) String() string {
	head := texts(l.titles, func(title string) string {
		return strings.ToUpper(strings.TrimPrefix(title, ">"))
	})
	all, widths := append([][]string{head}, l.rows...), make([]int, len(head))
	for i := range head {
		for _, row := range all {
			widths[i] = max(widths[i], ansi.StringWidth(row[i]))
		}
	}
	var b strings.Builder
	for _, row := range all {
		line := ""
		for i, cell := range row {
			fill := strings.Repeat(" ", widths[i]-ansi.StringWidth(cell))
			if strings.HasPrefix(l.titles[i], ">") {
				cell, fill = fill+cell, ""
			}
			line += cell + fill + "  "
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}
