package main

import (
	"slices"
	"strings"

	"charm.land/lipgloss/v2"
	"charm.land/lipgloss/v2/table"
	"github.com/charmbracelet/x/ansi"
)

// A column is one of a table's.
type column struct {
	title string
	right bool // numbers
	soft  bool // may be cut if there is no room
	extra bool // may be left out if there is no room: the last goes first
}

// A listing is a table of texts. A row may have an interval, which is drawn beside it.
type listing struct {
	columns   []column
	rows      [][]string
	intervals []interval
	leading   int // the row that stands out, counted from 1; 0: none
}

// newTable returns an empty listing. A column is its title with marks in front of it: > is right, ~ is soft, ? is extra.
func newTable(columns ...string) *listing {
	l := &listing{}
	for _, text := range columns {
		title := strings.TrimLeft(text, ">~?")
		has := func(mark string) bool { return strings.Contains(text[:len(text)-len(title)], mark) }
		l.columns = append(l.columns, column{title, has(">"), has("~"), has("?")})
	}
	return l
}

func (l *listing) add(cells ...string) { l.rows = append(l.rows, cells) }

func (l *listing) draw(i interval) { l.intervals = append(l.intervals, i) }

// print writes a listing: on a terminal with lines, and with bars where they have room.
func (l *listing) print(p *printer) {
	widths := l.widths()
	if !p.terminal {
		p.printf("%s", l.plain(widths))
		return
	}
	for last := len(l.columns) - 1; last > 0 && lineWidth(widths) > p.width; last-- {
		if l.columns[last].extra {
			l.leaveOut(last)
			widths = slices.Delete(widths, last, last+1)
		}
	}
	barWidth := l.fit(widths, p.width)
	if barWidth < 0 {
		p.printf("%s", l.upright(p.width))
		return
	}
	p.printf("%s\n", l.lined(widths, barWidth))
}

// leaveOut takes a column out.
func (l *listing) leaveOut(column int) {
	l.columns = slices.Delete(l.columns, column, column+1)
	for i, row := range l.rows {
		l.rows[i] = slices.Delete(row, column, column+1)
	}
}

// lineWidth is how wide columns are together, with what lines and padding take.
func lineWidth(widths []int) int {
	used := len(widths) + 1
	for _, w := range widths {
		used += w + 2
	}
	return used
}

// widths returns how wide each column would like to be.
func (l *listing) widths() []int {
	widths := make([]int, len(l.columns))
	for i, c := range l.columns {
		widths[i] = ansi.StringWidth(c.title)
		for _, row := range l.rows {
			widths[i] = max(widths[i], ansi.StringWidth(row[i]))
		}
	}
	return widths
}

// The bounds of a bar's width, and the least of a column that is cut.
const minBar, maxBar, minSoft = 11, 41, 6

// fit makes the columns fit a width and returns how much of it is left for a bar: 0 where
// that is too little, and -1 where the columns don't fit at all.
func (l *listing) fit(widths []int, width int) int {
	used := lineWidth(widths)
	for used > width {
		widest := -1
		for i, c := range l.columns {
			if c.soft && widths[i] > minSoft && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return -1
		}
		widths[widest]--
		used--
	}
	left := width - used - 3
	if len(l.intervals) == 0 || left < minBar {
		return 0
	}
	return min(left, maxBar)
}

func (l *listing) plain(widths []int) string {
	var b strings.Builder
	line := func(cell func(i int) string) {
		var text strings.Builder
		for i, c := range l.columns {
			if i > 0 {
				text.WriteString("  ")
			}
			fill := strings.Repeat(" ", widths[i]-ansi.StringWidth(cell(i)))
			if c.right {
				text.WriteString(fill + cell(i))
			} else {
				text.WriteString(cell(i) + fill)
			}
		}
		b.WriteString(strings.TrimRight(text.String(), " ") + "\n")
	}
	line(func(i int) string { return strings.ToUpper(l.columns[i].title) })
	for _, row := range l.rows {
		line(func(i int) string { return row[i] })
	}
	return b.String()
}

func (l *listing) lined(widths []int, barWidth int) string {
	cut := func(i int, text string) string { return ansi.Truncate(text, widths[i], "…") }
	var headers []string
	for i, c := range l.columns {
		headers = append(headers, cut(i, c.title))
	}
	if barWidth > 0 {
		headers = append(headers, scale(barWidth))
	}
	t := table.New().Border(lipgloss.RoundedBorder()).BorderStyle(faint).Headers(headers...).
		StyleFunc(func(row, col int) lipgloss.Style {
			style := lipgloss.NewStyle()
			switch {
			case row == table.HeaderRow:
				style = title
			case col == len(l.columns):
				style = bar
			case row == l.leading-1:
				style = chosen
			}
			if col < len(l.columns) && l.columns[col].right {
				style = style.Align(lipgloss.Right)
			}
			return style.Padding(0, 1)
		})
	for n, row := range l.rows {
		var cells []string
		for i, cell := range row {
			cells = append(cells, cut(i, cell))
		}
		if barWidth > 0 {
			cells = append(cells, l.intervals[n].bar(barWidth))
		}
		t.Row(cells...)
	}
	return t.String()
}

// upright writes each row as lines of its own, for terminals that are too narrow.
func (l *listing) upright(width int) string {
	var b strings.Builder
	for n, row := range l.rows {
		if n > 0 {
			b.WriteString("\n")
		}
		for i, cell := range row {
			b.WriteString(ansi.Truncate(l.columns[i].title+": "+cell, max(width, 1), "…") + "\n")
		}
		if len(l.intervals) > 0 && width >= minBar {
			b.WriteString(bar.Render(l.intervals[n].bar(min(width, maxBar))) + "\n")
		}
	}
	return b.String()
}
