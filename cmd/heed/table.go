package main

import (
	"fmt"
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
	joint bool // is left out with the column before it
}

// A listing is a table of texts. A row may have an interval, which is drawn beside it.
//
// On a terminal it is a table if one fits: columns that are extra are left out, the last first, and then prose is broken into lines. A line
// below says what was left out. If no table fits, each row has lines of its own, with all columns. No text is ever cut. Extra columns without a
// value are not shown, and neither are such values on lines of their own.
type listing struct {
	columns   []column
	rows      [][]string
	intervals []interval
	leading   int // the row that stands out, counted from 1; 0: none
}

// newTable returns an empty listing. A column is its title with marks in front of it: > is right, ~ is prose, ? is extra, & is joint.
func newTable(columns ...string) *listing {
	l := &listing{}
	for _, text := range columns {
		title := strings.TrimLeft(text, ">~?&")
		has := func(mark string) bool { return strings.Contains(text[:len(text)-len(title)], mark) }
		l.columns = append(l.columns, column{title, has(">"), has("~"), has("?"), has("&")})
	}
	return l
}

func (l *listing) add(cells ...string) { l.rows = append(l.rows, cells) }

func (l *listing) draw(i interval) { l.intervals = append(l.intervals, i) }

// leaveOut takes a column out.
func (l *listing) leaveOut(column int) {
	l.columns = slices.Delete(l.columns, column, column+1)
	for i, row := range l.rows {
		l.rows[i] = slices.Delete(row, column, column+1)
	}
}

// print writes a listing: on a terminal with lines, and with bars where they have room.
func (l *listing) print(p *printer) {
	if !p.terminal {
		p.printf("%s", l.plain())
		return
	}
	l.dropEmpty()
	p.printf("%s", l.text(p.width))
}

// valueless reports whether a cell has no value.
func valueless(cell string) bool { return cell == "-" || cell == `""` }

// dropEmpty takes out the extra columns that have no value in any row, with those that are joint with them.
func (l *listing) dropEmpty() {
	for i := len(l.columns) - 1; i > 0; i-- {
		end := i + 1
		for end < len(l.columns) && l.columns[end].joint {
			end++
		}
		value := func(row []string) bool {
			return slices.ContainsFunc(row[i:end], func(cell string) bool { return !valueless(cell) })
		}
		if l.columns[i].extra && !slices.ContainsFunc(l.rows, value) {
			for range end - i {
				l.leaveOut(i)
			}
		}
	}
}

// text returns what a terminal of a width shows.
func (l *listing) text(width int) string {
	shown, widths := l.layout(width)
	if shown == nil {
		return l.upright(width)
	}
	barWidth := min(width-lineWidth(widths)-3, maxBar)
	if len(l.intervals) == 0 || barWidth < minBar {
		barWidth = 0
	}
	text := l.lined(shown, widths, barWidth) + "\n"
	var out []string
	for i, c := range l.columns {
		if !slices.Contains(shown, i) {
			out = append(out, c.title)
		}
	}
	if len(out) > 0 {
		text += wrap(fmt.Sprintf("Left out: %s. A wider terminal or --json shows all.", strings.Join(out, ", ")), width) + "\n"
	}
	return text
}

// lineWidth is how wide columns are together, with what lines and padding take.
func lineWidth(widths []int) int {
	used := len(widths) + 1
	for _, w := range widths {
		used += w + 2
	}
	return used
}

// widths returns how wide each column is if nothing is broken.
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

// The bounds of a bar's width. Prose gets narrow before a row gets lines of its own. Columns are left out for prose that is not roomy.
const minBar, maxBar, narrow, roomy, mostLines = 11, 41, 14, 24, 6

// layout returns the columns that a table has room for, and how wide each is. It returns nil if no table fits.
func (l *listing) layout(width int) (shown, widths []int) {
	natural := l.widths()
	for i := range l.columns {
		shown = append(shown, i)
	}
	least := func(prose int) (widths []int) {
		for _, i := range shown {
			if l.columns[i].prose {
				widths = append(widths, min(natural[i], max(prose, ansi.StringWidth(l.columns[i].title))))
			} else {
				widths = append(widths, natural[i])
			}
		}
		return widths
	}
	for last := len(l.columns) - 1; last > 0 && lineWidth(least(roomy)) > width; last-- {
		if l.columns[last].extra && !l.columns[last].joint {
			shown = slices.DeleteFunc(shown, func(i int) bool { return i == last || l.joined(last, i) })
		}
	}
	if widths = least(roomy); lineWidth(widths) > width {
		widths = least(narrow)
	}
	if lineWidth(widths) > width {
		return nil, nil
	}
	for left := width - lineWidth(widths); left > 0; left-- {
		l.widen(shown, widths, natural)
	}
	for _, row := range l.rows {
		for n, i := range shown {
			if strings.Count(wrap(row[i], widths[n]), "\n") >= mostLines {
				return nil, nil
			}
		}
	}
	return shown, widths
}

// joined reports whether a column is left out with the one before it.
func (l *listing) joined(first, i int) bool {
	for n := first + 1; n < len(l.columns) && l.columns[n].joint; n++ {
		if n == i {
			return true
		}
	}
	return false
}

// widen gives a column more to the narrowest that has less than it would like.
func (l *listing) widen(shown, widths, natural []int) {
	narrowest := -1
	for n, i := range shown {
		if widths[n] < natural[i] && (narrowest < 0 || widths[n] < widths[narrowest]) {
			narrowest = n
		}
	}
	if narrowest >= 0 {
		widths[narrowest]++
	}
}

// plain writes a listing for programs and files: each row is a line.
func (l *listing) plain() string {
	widths := l.widths()
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

func (l *listing) lined(shown, widths []int, barWidth int) string {
	var headers []string
	for _, i := range shown {
		headers = append(headers, l.columns[i].title)
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
			case col == len(shown):
				style = bar
			case row == l.leading-1:
				style = chosen
			}
			if col < len(shown) && l.columns[shown[col]].right {
				style = style.Align(lipgloss.Right)
			}
			return style.Padding(0, 1)
		})
	for n, row := range l.rows {
		var cells []string
		for k, i := range shown {
			cells = append(cells, wrap(row[i], widths[k]))
		}
		if barWidth > 0 {
			cells = append(cells, l.intervals[n].bar(barWidth))
		}
		t.Row(cells...)
	}
	return t.String()
}

// nameOf returns the title of a column. If others have the same, that of the column to which it belongs comes before it.
func (l *listing) nameOf(i int) string {
	alike := func(i int) bool {
		n := 0
		for _, c := range l.columns {
			if c.title == l.columns[i].title {
				n++
			}
		}
		return n > 1
	}
	name := l.columns[i].title
	for of := i; alike(of) && of > 0; {
		if of--; !alike(of) {
			name = l.columns[of].title + " " + name
		}
	}
	return name
}

// upright writes each row as lines of its own, for terminals that are too narrow for a table.
func (l *listing) upright(width int) string {
	var b strings.Builder
	for n, row := range l.rows {
		if n > 0 {
			b.WriteString("\n")
		}
		for i, cell := range row {
			if i > 0 && valueless(cell) {
				continue
			}
			line := l.nameOf(i) + ": " + cell
			if !l.columns[i].prose && ansi.StringWidth(line) > width {
				line = wrap(l.nameOf(i)+":", width) + "\n" + cell // in one piece, if it fits alone
			}
			b.WriteString(wrap(line, width) + "\n")
		}
		if len(l.intervals) > 0 && width >= minBar {
			b.WriteString(bar.Render(l.intervals[n].bar(min(width, maxBar))) + "\n")
		}
	}
	return b.String()
}

// wrap breaks a text into lines of a width, at blanks. Only a word that is wider than a line is broken itself.
func wrap(text string, width int) string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		lines = append(lines, wrapLine(line, max(width, 1))...)
	}
	return strings.Join(lines, "\n")
}

func wrapLine(text string, width int) (lines []string) {
	if ansi.StringWidth(text) <= width {
		return []string{text}
	}
	line, begun := "", false
	for word := range strings.SplitSeq(text, " ") {
		if begun && ansi.StringWidth(line+" "+word) <= width {
			line += " " + word
			continue
		}
		if begun {
			lines = append(lines, line)
		}
		pieces := strings.Split(ansi.Hardwrap(word, width, true), "\n")
		lines = append(lines, pieces[:len(pieces)-1]...)
		line, begun = pieces[len(pieces)-1], true
	}
	return append(lines, line)
}
