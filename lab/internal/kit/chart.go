// Package kit is what the examples share: how their commands run, and how they draw curves and
// bars.
package kit

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
)

// A Chart has lines that start at 0 on the left and grow to the right.
type Chart struct {
	Title string
	Label string // of the horizontal axis
	End   int    // of the horizontal axis, which starts at 0
	Lines []Line
}

// A Line has its values at equal distances, from the start of the axis to its end.
type Line struct {
	Name   string
	Values []float64
}

// colours are told apart by those who see red and green alike (Okabe and Ito 2008).
var colours = []string{"#0072b2", "#e69f00", "#009e73", "#999999", "#cc79a7", "#d55e00", "#56b4e9", "#f0e442"}

// The picture's measures, in pixels.
const width, height, left, right, top, bottom = 860., 480., 70., 190., 50., 50.

// WriteFile writes the chart to a file, as SVG.
func (c *Chart) WriteFile(name string) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(c.SVG(file), file.Close())
}

// SVG writes the chart.
func (c *Chart) SVG(w io.Writer) error {
	step, ceiling := c.scale()
	y := func(value float64) float64 { return height - bottom - (height-top-bottom)*value/ceiling }

	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%v" height="%v" viewBox="0 0 %v %v" font-family="sans-serif" font-size="13">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, `<rect width="%v" height="%v" fill="white"/>`+"\n", width, height)
	fmt.Fprintf(&b, `<text x="%v" y="28" font-size="16">%s</text>`+"\n", left, escape(c.Title))
	for value := 0.; value <= ceiling; value += step {
		fmt.Fprintf(&b, `<path d="M%.1f %.1fH%.1f" stroke="#ddd"/><text x="%.1f" y="%.1f" text-anchor="end">%v</text>`+"\n",
			left, y(value), width-right, left-8, y(value)+4, math.Round(value*1e6)/1e6)
	}
	for part := range 5 {
		x := left + (width-left-right)*float64(part)/4
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="middle">%d</text>`+"\n", x, height-bottom+20, c.End*part/4)
	}
	fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`+"\n", (left+width-right)/2, height-10, escape(c.Label))
	for i, line := range c.Lines {
		var path strings.Builder
		for j, value := range line.Values {
			x := left + (width-left-right)*float64(j)/float64(len(line.Values)-1)
			fmt.Fprintf(&path, "%c%.1f %.1f", "ML"[min(j, 1)], x, y(max(value, 0)))
		}
		colour, row := colours[i%len(colours)], top+10+22*float64(i)
		fmt.Fprintf(&b, `<path d="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", path.String(), colour)
		fmt.Fprintf(&b, `<path d="M%.1f %.1fh20" stroke="%s" stroke-width="3"/><text x="%.1f" y="%.1f">%s</text>`+"\n",
			width-right+12, row-4, colour, width-right+38, row, escape(line.Name))
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// scale returns the distance between the grid's lines and its upper end.
func (c *Chart) scale() (step, ceiling float64) {
	most := 0.
	for _, line := range c.Lines {
		for _, value := range line.Values {
			most = max(most, value)
		}
	}
	step = niceStep(most / 5)
	return step, max(math.Ceil(most/step), 1) * step
}

// niceStep rounds up to 1, 2 or 5 times a power of ten.
func niceStep(x float64) float64 {
	if x <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(x)))
	for _, factor := range []float64{1, 2, 5} {
		if x <= factor*power {
			return factor * power
		}
	}
	return 10 * power
}

func escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder never fails
	return b.String()
}
