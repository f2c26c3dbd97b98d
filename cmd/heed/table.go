package main

import (
	"math"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// A listing is a table of texts. A title that begins with > is of numbers. On a terminal that is
// wide enough, a row may have an interval, which is drawn next to it. No text is ever cut.
type listing struct {
	titles    []string
	rows      [][]string
	intervals []interval
}

func (l *listing) add(cells ...any) { l.rows = append(l.rows, texts(cells, text)) }

// The width of a bar, and what is between two columns.
const barWidth, between = 21, "  "

// print writes a listing.
func (l *listing) print(p *printer) {
	head := texts(l.titles, func(title string) string {
		if title = strings.TrimPrefix(title, ">"); p.terminal {
			return title
		}
		return strings.ToUpper(title)
	})
	all, widths, bar := append([][]string{head}, l.rows...), make([]int, len(head)), p.width
	for i := range head {
		for _, row := range all {
			widths[i] = max(widths[i], ansi.StringWidth(row[i]))
		}
		bar -= widths[i] + len(between)
	}
	for n, row := range all {
		line := ""
		for i, cell := range row {
			fill := strings.Repeat(" ", widths[i]-ansi.StringWidth(cell))
			if strings.HasPrefix(l.titles[i], ">") {
				cell, fill = fill+cell, ""
			}
			line += cell + fill + between
		}
		switch {
		case len(l.intervals) == 0 || bar < barWidth:
		case n == 0:
			line += scale(barWidth)
		default:
			line += l.intervals[n-1].bar(barWidth)
		}
		p.write(strings.TrimRight(line, " ") + "\n")
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
	middle := (width - 1) / 2
	return "0" + strings.Repeat(" ", middle-2) + "0.5" + strings.Repeat(" ", width-middle-3) + "1"
}
