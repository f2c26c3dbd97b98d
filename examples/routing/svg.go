package main

import (
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strings"
)

// colours are told apart by those who see red and green alike (Okabe and Ito 2008).
var colours = []string{"#0072b2", "#e69f00", "#009e73", "#999999", "#cc79a7", "#d55e00", "#56b4e9", "#f0e442"}

// svg draws the regret of each policy over the tasks.
func (s *study) svg(w io.Writer) error {
	const width, height, left, right, top, bottom = 860., 480., 70., 190., 50., 50.
	most := 0.
	for _, r := range s.Policies {
		most = max(most, r.curve[points])
	}
	step := niceStep(most / 5)
	ceiling := math.Ceil(most/step) * step
	if ceiling == 0 {
		ceiling = 1
	}
	x := func(point int) float64 { return left + (width-left-right)*float64(point)/points }
	y := func(regret float64) float64 { return height - bottom - (height-top-bottom)*regret/ceiling }

	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%v" height="%v" viewBox="0 0 %v %v" font-family="sans-serif" font-size="13">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, `<rect width="%v" height="%v" fill="white"/>`+"\n", width, height)
	fmt.Fprintf(&b, `<text x="%v" y="28" font-size="16">Regret against each item's best arm, %d tasks, mean of %d runs</text>`+"\n", left, s.Tasks, s.Runs)
	for regret := 0.; regret <= ceiling; regret += step {
		fmt.Fprintf(&b, `<path d="M%.1f %.1fH%.1f" stroke="#ddd"/><text x="%.1f" y="%.1f" text-anchor="end">%v</text>`+"\n",
			left, y(regret), width-right, left-8, y(regret)+4, math.Round(regret*1e6)/1e6)
	}
	for part := 0; part <= 4; part++ {
		at := x(part * points / 4)
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="middle">%d</text>`+"\n", at, height-bottom+20, s.Tasks*part/4)
	}
	fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="middle">tasks</text>`+"\n", (left+width-right)/2, height-10)
	for i, r := range s.Policies {
		colour := colours[i%len(colours)]
		var path strings.Builder
		for point, regret := range r.curve {
			fmt.Fprintf(&path, "%s%.1f %.1f", map[bool]string{true: "M", false: "L"}[point == 0], x(point), y(max(regret, 0)))
		}
		fmt.Fprintf(&b, `<path d="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", path.String(), colour)
		row := top + 10 + 22*float64(i)
		fmt.Fprintf(&b, `<path d="M%.1f %.1fh20" stroke="%s" stroke-width="3"/><text x="%.1f" y="%.1f">`, width-right+12, row-4, colour, width-right+38, row)
		if err := xml.EscapeText(&b, []byte(r.Name)); err != nil {
			return err
		}
		b.WriteString("</text>\n")
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
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
