package main

import (
	"math"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// A column is one of a table's. The first names the row.
type column struct {
	title string
	right bool // numbers
	prose bool // may be broken into lines
	extra bool // may be left out if there is no room: the last goes first
}

// A listing is a table of texts. A row may have an interval, which is drawn next to it.
//
// On a terminal, prose is broken into lines so that the table fits, and extra columns without a
// value or without room are left out. No text is ever cut. Elsewhere the table has all columns, as
// wide as they are.
type listing struct {
	columns   []column
	rows      [][]string
	intervals []interval
	leading   int // the row to highlight, counted from 1; 0: no row
}

// newTable returns an empty listing. A column is its title behind marks: > numbers, ~ prose, ?
// extra.
func newTable(columns ...string) *listing {
	l := &listing{}
	for _, text := range columns {
		title := strings.TrimLeft(text, ">~?")
		has := func(mark string) bool { return strings.Contains(text[:len(text)-len(title)], mark) }
		l.columns = append(l.columns, column{title, has(">"), has("~"), has("?")})
	}
	return l
}

func (l *listing) add(cells ...any) { l.rows = append(l.rows, texts(cells, text)) }

// valueless reports whether a cell has no value.
func valueless(cell string) bool { return cell == "-" || cell == `""` }

// widths returns the columns that are shown in a width, and how wide each column is. 0 is no limit.
func (l *listing) widths(most int) (shown, widths []int) {
	need := -len(between)
	for i, c := range l.columns {
		wide, empty := ansi.StringWidth(c.title), c.extra && most > 0
		for _, row := range l.rows {
			wide, empty = max(wide, ansi.StringWidth(row[i])), empty && valueless(row[i])
		}
		if widths = append(widths, wide); !empty {
			shown, need = append(shown, i), need+wide+len(between)
		}
	}
	for n := len(shown) - 1; n > 0 && most > 0; n-- { // prose gets narrow before a column goes
		for _, i := range shown {
			if c := l.columns[i]; c.prose && need > most {
				narrow := max(widths[i]-(need-most), min(widths[i], roomy), ansi.StringWidth(c.title))
				need, widths[i] = need-widths[i]+narrow, narrow
			}
		}
		if i := shown[n]; l.columns[i].extra && need > most {
			shown, need = slices.Delete(shown, n, n+1), need-widths[i]-len(between)
		}
	}
	return shown, widths
}

// The bounds of a bar's width, and how wide prose is at least.
const minBar, maxBar, roomy = 11, 41, 24

const between = "  " // columns

// print writes a listing.
func (l *listing) print(p *printer) {
	shown, widths := l.widths(p.width)
	bar := p.width
	for _, i := range shown {
		bar -= widths[i] + len(between)
	}
	if bar = min(bar, maxBar); len(l.intervals) == 0 || bar < minBar {
		bar = 0
	}
	row := func(style string, cells []string, bar string) {
		parts, height := make([][]string, len(l.columns)), 1
		for _, i := range shown {
			parts[i] = strings.Split(wrap(cells[i], widths[i]), "\n")
			height = max(height, len(parts[i]))
		}
		for n := range height {
			line := ""
			for _, i := range shown {
				cell := ""
				if n < len(parts[i]) {
					cell = parts[i][n]
				}
				fill := strings.Repeat(" ", widths[i]-ansi.StringWidth(cell))
				if l.columns[i].right {
					cell = fill + cell
				} else {
					cell += fill
				}
				line += cell + between
			}
			if n > 0 {
				bar = ""
			}
			p.write(p.paint(style, strings.TrimRight(line+bar, " ")) + "\n")
		}
	}
	row(bold, texts(l.columns, func(c column) string {
		if p.terminal {
			return c.title
		}
		return strings.ToUpper(c.title)
	}), scale(bar))
	for n, cells := range l.rows {
		style, drawn := "", ""
		if n == l.leading-1 {
			style = green
		}
		if bar > 0 {
			drawn = l.intervals[n].bar(bar)
		}
		row(style, cells, drawn)
	}
}

// wrap breaks a text into lines of a width, at blanks. Only a word that is wider than a line is
// broken itself.
func wrap(text string, width int) string {
	width = max(width, 1)
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		lines = append(lines, "")
		for i, word := range strings.Split(line, " ") {
			last := &lines[len(lines)-1]
			if i > 0 && ansi.StringWidth(*last+" "+word) <= width {
				*last += " " + word
				continue
			}
			pieces := strings.Split(ansi.Hardwrap(word, width, true), "\n")
			if i == 0 {
				*last, pieces = pieces[0], pieces[1:]
			}
			lines = append(lines, pieces...)
		}
	}
	return strings.Join(lines, "\n")
}

// An interval is where a rate is believed to lie.
type interval struct{ Low, Mean, High float64 }

// bar draws the interval on the scale from 0 to 1, which all bars share.
func (i interval) bar(width int) string {
	at := func(x float64) int { return int(math.Round(min(max(x, 0), 1) * float64(width-1))) }
	cells := []rune(strings.Repeat("·", width))
	for n := at(i.Low); n <= at(i.High); n++ {
		cells[n] = '─'
	}
	cells[at(i.Low)], cells[at(i.High)], cells[at(i.Mean)] = '├', '┤', '●'
	return string(cells)
}

// scale is the header of bars.
func scale(width int) string {
	if width < minBar {
		return ""
	}
	middle := (width - 1) / 2
	return "0" + strings.Repeat(" ", middle-2) + "0.5" + strings.Repeat(" ", width-middle-3) + "1"
}
