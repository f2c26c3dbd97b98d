package agent

import (
	"fmt"
	"strings"
)

// perPoint is how many events a point of the picture averages.
const perPoint = 200

// frame is the picture without its lines. The colors can be read on light and dark pages.
const frame = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 300" role="img"
  aria-labelledby="title" font-family="sans-serif" font-size="14" fill="#7d8590">
  <title id="title">Good answers, in percent of each %d events, of %d in all: %s</title>
  <path fill="none" stroke="#7d8590" stroke-width="1" d="M50 20V260H600"/>
  <text x="8" y="30">100 %%</text><text x="16" y="146">50 %%</text><text x="24" y="264">0 %%</text>
  <text x="500" y="284">%d events</text>
`

// picture returns an SVG of how often the answers of each life were good, over time.
func picture(lives []*life) string {
	var body, title strings.Builder
	for i, l := range lives {
		color := []string{"#7d8590", "#2da44e"}[i%2]
		points, last := "", 0.0
		for from := 0; from+perPoint <= len(l.answers); from += perPoint {
			last = scoreOf(l.answers[from : from+perPoint]).success
			x := 50 + 550*float64(from+perPoint)/float64(len(l.answers))
			points += fmt.Sprintf("%.0f,%.0f ", x, 260-240*last)
			fmt.Fprintf(&title, "%.0f ", 100*last)
		}
		fmt.Fprintf(&title, "%s; ", l.way)
		fmt.Fprintf(&body, "  <polyline fill=\"none\" stroke=%q stroke-width=\"3\" points=%q/>\n",
			color, points)
		fmt.Fprintf(&body, "  <text x=\"608\" y=\"%.0f\" fill=%q>%.0f %% %s</text>\n",
			265-240*last, color, 100*last, l.way)
	}
	events := len(lives[0].answers)
	head := fmt.Sprintf(frame, perPoint, events, strings.TrimSuffix(title.String(), "; "), events)
	return head + body.String() + "</svg>\n"
}
