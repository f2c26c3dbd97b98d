package web

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/loop"
)

// A gainData is what learning gains, with its course.
type gainData struct {
	view.Gain
	By     string // the span of a point
	Course []loop.GainPart
	Lines  []line
}

// A line is the course of one side, which has a colour in the style sheet. Last is the success at
// its end.
type line struct {
	Side         int
	Name, Points string
	Last         float64
}

const (
	mostSpans = 60
	smoothed  = 7 // days that a point by day is the mean of
)

func gain(r *http.Request, v *view.Source) (any, error) { return gainOf(r, v) }

// gainOf reads what learning gains, for the span that a request asks for.
func gainOf(r *http.Request, v *view.Source) (d gainData, err error) {
	if d.By = r.URL.Query().Get("by"); d.By != "" && d.By != view.ByDay && d.By != view.ByWeek {
		return d, &heed.InputError{Field: "by", Reason: "must be day or week"}
	}
	if d.Gain, err = v.Gain(r.Context()); err != nil {
		return d, err
	}
	if d.By == "" && len(d.Days) > mostSpans {
		d.By = view.ByWeek
	}
	d.By = cmp.Or(d.By, view.ByDay)
	d.Course = d.Gain.Course(d.By, mostSpans)
	for i, side := range [...]struct {
		name string
		of   func(*loop.GainPart) *loop.Measured
	}{
		{"with learning", func(p *loop.GainPart) *loop.Measured { return &p.Learned }},
		{"without", func(p *loop.GainPart) *loop.Measured { return &p.Control }},
		{"all answers", func(p *loop.GainPart) *loop.Measured { return &p.Alone }},
	} {
		l := line{Side: i, Name: side.name}
		if l.Points, l.Last = d.points(side.of); l.Points != "" {
			d.Lines = append(d.Lines, l)
		}
	}
	return d, nil
}

// points returns the points of the course of a side, and the success at the last one.
func (d *gainData) points(of func(*loop.GainPart) *loop.Measured) (points string, last float64) {
	var all []string
	width := scaleWidth / float64(max(len(d.Course)-1, 1))
	for i := range d.Course {
		if of(&d.Course[i]).Outcomes < 0.5 {
			continue
		}
		var n, success float64
		for k := i; k >= 0 && (k == i || d.By == view.ByDay && i-k < smoothed); k-- {
			m := of(&d.Course[k])
			n, success = n+m.Outcomes, success+m.Outcomes*m.Success
		}
		last = success / n
		all = append(all, fmt.Sprintf("%.0f,%.0f", width*float64(i), chartHeight*(1-last)))
	}
	if len(all) == 1 { // a line needs two ends
		_, y, _ := strings.Cut(all[0], ",")
		all = append(all, fmt.Sprintf("%d,%s", scaleWidth, y))
	}
	return strings.Join(all, " "), last
}
