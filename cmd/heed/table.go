package main

import (
	"math"
	"slices"
	"strings"

	"charm.land/lipgloss/v2"
	"charm.land/lipgloss/v2/table"
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
// On a terminal it is a table if one fits, without extra columns that have no room, which a line
// below names. If no table fits, each row has its own lines. No text is ever cut. Extra columns
// without a value are not shown.
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

func (l *listing) draw(low, mean, high float64) {
	l.intervals = append(l.intervals, interval{low, mean, high})
}

// print writes a listing: to a terminal with lines, and with bars where they have room.
func (l *listing) print(p *printer) {
	if p.terminal {
		p.write(l.text(p.width))
	} else {
		p.write(l.plain())
	}
}

// valueless reports whether a cell has no value.
func valueless(cell string) bool { return cell == "-" || cell == `""` }

// text returns what a terminal of a width shows.
func (l *listing) text(width int) string {
	all, widths := l.widths()
	shown, prose := l.layout(width)
	if shown == nil {
		return l.upright(width)
	}
	bar := min(width-l.need(shown, widths, prose)-3, maxBar)
	if len(l.intervals) == 0 || bar < minBar {
		bar = 0
	}
	var out []string
	for _, i := range all {
		if !slices.Contains(shown, i) {
			out = append(out, l.columns[i].title)
		}
	}
	drawn := l.lined(shown, prose, bar) + "\n"
	if len(out) > 0 {
		drawn += wrap("Left out: "+strings.Join(out, ", ")+". A wider terminal or --json shows all.",
			width) + "\n"
	}
	return drawn
}

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

// need returns how wide columns are together with their lines, with prose of a width.
func (l *listing) need(shown, widths []int, prose int) int {
	sum := 1
	for _, i := range shown {
		if sum += widths[i] + 3; l.columns[i].prose {
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

// plain returns columns without lines, for files and programs.
func (l *listing) plain() string {
	_, widths := l.widths()
	var b strings.Builder
	titles := texts(l.columns, func(c column) string { return strings.ToUpper(c.title) })
	for _, row := range slices.Concat([][]string{titles}, l.rows) {
		line := ""
		for i, cell := range row {
			fill := strings.Repeat(" ", widths[i]-ansi.StringWidth(cell))
			if l.columns[i].right {
				cell = fill + cell
			} else {
				cell += fill
			}
			line += cell + "  "
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

func (l *listing) lined(shown []int, prose, barWidth int) string {
	row := func(cells []string) (out []string) {
		for _, i := range shown {
			if l.columns[i].prose {
				cells[i] = wrap(cells[i], max(prose, ansi.StringWidth(l.columns[i].title)))
			}
			out = append(out, cells[i])
		}
		return out
	}
	headers := row(texts(l.columns, func(c column) string { return c.title }))
	if barWidth > 0 {
		headers = append(headers, scale(barWidth))
	}
	t := table.New().Border(lipgloss.RoundedBorder()).BorderStyle(faint).Headers(headers...).
		StyleFunc(func(row, col int) lipgloss.Style {
			style := lipgloss.NewStyle()
			switch {
			case row == table.HeaderRow:
				style = title
			case col == len(shown):
				style = bars
			case row == l.leading-1:
				style = chosen
			}
			if col < len(shown) && l.columns[shown[col]].right {
				style = style.Align(lipgloss.Right)
			}
			return style.Padding(0, 1)
		})
	for n, cells := range l.rows {
		line := row(slices.Clone(cells))
		if barWidth > 0 {
			line = append(line, l.intervals[n].bar(barWidth))
		}
		t.Row(line...)
	}
	return t.String()
}

// upright writes each cell on a line, for terminals that are too narrow for a table.
func (l *listing) upright(width int) string {
	var b strings.Builder
	for n, row := range l.rows {
		if n > 0 {
			b.WriteString("\n")
		}
		for i, cell := range row {
			name := l.columns[i].title + ":"
			if i > 0 && valueless(cell) {
				continue
			}
			line := name + " " + cell
			if !l.columns[i].prose && ansi.StringWidth(line) > width {
				line = name + "\n" + cell // in one piece, if it fits alone
			}
			b.WriteString(wrap(line, width) + "\n")
		}
		if len(l.intervals) > 0 && width >= minBar {
			b.WriteString(bars.Render(l.intervals[n].bar(min(width, maxBar))) + "\n")
		}
	}
	return b.String()
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
	middle := (width - 1) / 2
	return "0" + strings.Repeat(" ", middle-2) + "0.5" + strings.Repeat(" ", width-middle-3) + "1"
}
