package card

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// Text describes the outcome for people: the promise, what was measured and its aims, the controls,
// and why it failed or was skipped.
func (o Outcome) Text() string {
	text := fmt.Sprintf("%-7s  %s: %s", o.State, o.Line.Name, o.Line.Promise)
	add := func(format string, args ...any) {
		text += strings.ReplaceAll("\n"+fmt.Sprintf(format, args...), "\n", "\n         ")
	}
	for _, bar := range o.Line.Bars {
		if value, measured := o.Result.Values[bar.Name]; measured {
			add("%s %s; the aim is %s", number(value), bar.Name, bar)
		}
	}
	for _, c := range o.Controls {
		add("control (%s): %s", c.Name, cmp.Or(c.Missed, "PASSED"))
	}
	for _, reason := range o.Reasons {
		add("%s", reason)
	}
	if o.State == Fail {
		for _, note := range o.Result.Notes {
			add("| %s", strings.ReplaceAll(note, "\n", "\n| "))
		}
	}
	add("work %s, seed %d, %s", o.work(), o.Seed, o.Took.Round(100*time.Millisecond))
	return text
}

func (o Outcome) work() string {
	text := fmt.Sprint(o.Result.Work)
	if o.Result.Faults > 0 {
		text += fmt.Sprintf(" (%d faults)", o.Result.Faults)
	}
	return text
}

// A Report is a run, for a page.
type Report struct {
	Command  string
	At       time.Time
	Machine  Machine
	Outcomes []Outcome
	Lines    []Line // all there are, in order
}

// Markdown returns the page: what was measured with its aim, and how each line attacks.
func (r Report) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, head, r.Command, r.Machine.Commit, r.At.UTC().Format("2 January 2006, 15:04 MST"),
		r.Machine.CPU, r.Machine.Cores, r.Machine.Go, strings.Join(r.Machine.Engines, ", "))
	ran := make(map[string]bool)
	for _, o := range r.Outcomes {
		ran[o.Line.Name] = o.State != Skipped
		var values, aims, controls []string
		for _, bar := range o.Line.Bars {
			if value, measured := o.Result.Values[bar.Name]; measured {
				values = append(values, number(value)+" "+bar.Name)
			}
			aims = append(aims, bar.String())
		}
		for _, c := range o.Controls {
			controls = append(controls, cmp.Or(c.Missed, "PASSED"))
		}
		state := string(o.State)
		if o.State != Pass {
			state = "**" + state + "**: " + strings.Join(o.Reasons, "; ")
		}
		b.WriteString(cells(o.Line.Name, strings.Join(values, ", "), strings.Join(aims, ", "), state,
			strings.Join(controls, "; "), o.work(), fmt.Sprint(o.Seed),
			o.Took.Round(100*time.Millisecond).String()))
	}
	b.WriteString(promises)
	var missing []string
	for _, line := range r.Lines {
		var controls []string
		for _, c := range line.Controls {
			controls = append(controls, c.Name)
		}
		b.WriteString(cells(line.Name, line.Promise, line.Attack, strings.Join(controls, "; ")))
		if !ran[line.Name] {
			missing = append(missing, line.Name)
		}
	}
	if len(missing) > 0 {
		fmt.Fprintf(&b, "\nNot run: %s.\n", strings.Join(missing, "; "))
	}
	return b.String()
}

const head = `# The scorecard

` + "`%s`" + ` wrote this page, on commit %s, %s: %s, %d cores, %s, %s.

A line fails if a value misses its aim, if it did less work than it must, if it took longer than its
budget, or if a control passes. A control does the same in an unsafe way, so an attack that does not
notice it proves nothing.

| line | measured | aim | | the controls measured | work | seed | time |
|---|---|---|---|---|---|---|---|
`

const promises = `
| line | promise | attack | controls, which have to fail |
|---|---|---|---|
`

// cells is a row of a table: of texts in one line, without bars, and not too long.
func cells(texts ...string) string {
	for i, text := range texts {
		text = strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", "/")
		if letters := []rune(text); len(letters) > 300 {
			text = string(letters[:300]) + "…"
		}
		texts[i] = text
	}
	return "| " + strings.Join(texts, " | ") + " |\n"
}
