package main

import (
	"math"
	"strings"
)

// An interval is where a rate is believed to lie.
type interval struct{ low, mean, high float64 }

// bar draws the interval on the scale from 0 to 1, which all bars share.
func (i interval) bar(width int) string {
	at := func(x float64) int { return int(math.Round(min(max(x, 0), 1) * float64(width-1))) }
	cells := []rune(strings.Repeat("·", width))
	for n := at(i.low); n <= at(i.high); n++ {
		cells[n] = '─'
	}
	cells[at(i.low)], cells[at(i.high)] = '├', '┤'
	cells[at(i.mean)] = '●'
	return string(cells)
}

// scale is what stands above bars.
func scale(width int) string {
	middle := (width - 1) / 2
	return "0" + strings.Repeat(" ", middle-2) + "0.5" + strings.Repeat(" ", width-middle-3) + "1"
}
