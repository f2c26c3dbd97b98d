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
// On a terminal it is a table if one fits, without extra columns that have no value or no room. A
// line below names those without room. If no table fits, each cell has its own line. No text is
// ever cut. Elsewhere the table has all columns, as wide as they are.
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

// print writes a listing.
func (l *listing) print(p *printer) {
	all, widths := l.widths()
	if !p.terminal {
		every := make([]int, len(l.columns))
		for i := range every {
			every[i] = i
		}
		l.grid(p, every, widths, false)
		return
	}
	shown, prose := l.layout(p.width)
	if shown == nil {
		l.upright(p)
		return
	}
	for i, c := range l.columns {
		if c.prose {
			widths[i] = min(widths[i], max(prose, ansi.StringWidth(c.title)))
		}
	}
	room := p.width - l.need(shown, widths, prose) - len(between)
	l.grid(p, shown, widths, len(l.intervals) > 0 && room >= minBar)
	if out := slices.DeleteFunc(all, func(i int) bool { return slices.Contains(shown, i) }); len(
		out) > 0 {
		p.line("Left out: %v. A wider terminal or --json shows all.",
			texts(out, func(i int) string { return l.columns[i].title }))
	}
}

// valueless reports whether a cell has no value.
func valueless(cell string) bool { return cell == "-" || cell == `""` }

// widths returns the columns that have a value, and how wide each column is without line breaks.
func (l *listing) widths() (all, widths []int) {
	for i, c := range l.columns {
		wide, empty := ansi.StringWidth(c.title), c.extra
		for _, row := range l.rows {
			wide, empty = max(wide, ansi.StringWidth(row[i])), empty && valueless(row[i])
		}
		if widths = append(widths, wide); !empty {
			all = append(all, i)
		}
	}
	return all, widths
}

// The bounds of a bar's width. Prose gets narrow before a row gets its own lines. Columns are
// left out for prose that is not roomy.
const minBar, maxBar, narrow, roomy, mostLines = 11, 41, 14, 24, 6

const between = "  " // columns

// need returns how wide columns are together, with prose of a width.
func (l *listing) need(shown, widths []int, prose int) int {
	sum := -len(between)
	for _, i := range shown {
		if sum += widths[i] + len(between); l.columns[i].prose {
			sum -= max(0, widths[i]-max(prose, ansi.StringWidth(l.columns[i].title)))
		}
	}
	return sum
}

// layout returns the columns that a table has room for, and how wide prose may be. It returns nil
// if no table fits.
func (l *listing) layout(width int) (shown []int, prose int) {
	shown, widths := l.widths()
	for last := len(l.columns) - 1; last > 0 && l.need(shown, widths, roomy) > width; last-- {
		if l.columns[last].extra {
			shown = slices.DeleteFunc(shown, func(i int) bool { return i == last })
		}
	}
	for prose = width; prose >= narrow && l.need(shown, widths, prose) > width; {
		prose--
	}
	if prose < narrow {
		return nil, 0
	}
	for _, row := range l.rows {
		for _, i := range shown {
			if l.columns[i].prose && strings.Count(wrap(row[i], prose), "\n") >= mostLines {
				return nil, 0
			}
		}
	}
	return shown, prose
}

// grid writes the columns below their titles, and bars if they are drawn.
func (l *listing) grid(p *printer, shown, widths []int, drawn bool) {
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
	bar := 0
	if drawn {
		bar = min(p.width-l.need(shown, widths, p.width)-len(between), maxBar)
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

// upright writes each cell on a line, for terminals that are too narrow for a table.
func (l *listing) upright(p *printer) {
	for n, row := range l.rows {
		if n > 0 {
			p.write("\n")
		}
		for i, cell := range row {
			if i > 0 && valueless(cell) {
				continue
			}
			line := l.columns[i].title + ": " + cell
			if !l.columns[i].prose && ansi.StringWidth(line) > p.width {
				line = l.columns[i].title + ":\n" + cell // in one piece, if it fits alone
			}
			p.block("", "", plain(line))
		}
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
