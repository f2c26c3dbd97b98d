package card

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"
)

// Head is the heading of the lines that [Outcome.Text] returns.
var Head = row("name", "value", "bar", "state", "seed", "work", "control")

func row(cells ...string) string {
	return strings.TrimRight(fmt.Sprintf("%-16s  %-52s  %-12s  %-7s  %-6s  %-24s  %s", cells[0], cells[1], cells[2], cells[3], cells[4], cells[5],
		strings.Join(cells[6:], "  ")), " ")
}

// Text is one line for people, and one more for each reason.
func (o Outcome) Text() string {
	text := row(o.Line.Name, o.values(), o.bars(), string(o.State), fmt.Sprint(o.Seed), o.work(), o.controls(), o.Took.Round(100*time.Millisecond).String())
	for _, reason := range o.Reasons {
		text += "\n    " + strings.ReplaceAll(reason, "\n", "\n    ")
	}
	if o.State == Fail {
		for _, note := range o.Result.Notes {
			text += "\n    | " + strings.ReplaceAll(note, "\n", "\n    | ")
		}
	}
	return text
}

func (o Outcome) values() string {
	var all []string
	for _, bar := range o.Form.Bars {
		if value, measured := o.Result.Values[bar.Name]; measured {
			all = append(all, number(value)+" "+bar.Name)
		}
	}
	return strings.Join(all, ", ")
}

func (o Outcome) bars() string {
	var all []string
	for _, bar := range o.Form.Bars {
		all = append(all, strings.TrimSuffix(bar.String(), " "+bar.Name))
	}
	return strings.Join(all, ", ")
}

func (o Outcome) work() string {
	text := fmt.Sprint(o.Result.Work)
	if o.Result.Faults > 0 {
		text += fmt.Sprintf(" (%d faults)", o.Result.Faults)
	}
	return text
}

func (o Outcome) controls() string {
	caught := 0
	for _, c := range o.Controls {
		if c.Missed != "" {
			caught++
		}
	}
	return fmt.Sprintf("%d of %d caught", caught, len(o.Line.Controls))
}

// Failed counts the lines that failed.
func Failed(outcomes []Outcome) (n int) {
	for _, o := range outcomes {
		if o.State == Fail {
			n++
		}
	}
	return n
}

// A Report is a run, for a page.
type Report struct {
	At       time.Time
	Command  string
	Machine  Machine
	Outcomes []Outcome
	Took     time.Duration
}

// Markdown is the report as text: what came of it, and then what each line does.
func (r Report) Markdown() string {
	var b strings.Builder
	count := make(map[State]int)
	seed := uint64(0)
	for _, o := range r.Outcomes {
		count[o.State]++
		seed = o.Seed
	}
	fmt.Fprintf(&b, "%d lines passed, %d failed and %d were skipped, in %s. Run with `%s` and seed %d at commit %s, on %s.\n\n", count[Pass],
		count[Fail], count[Skipped], r.Took.Round(time.Second), r.Command, seed, r.Machine.Commit, r.At.Format("2 January 2006, 15:04 MST"))
	fmt.Fprintf(&b, "%s, %d cores, %s, %s.\n\n", r.Machine.CPU, r.Machine.Cores, r.Machine.Go, strings.Join(r.Machine.Engines, ", "))
	b.WriteString("| line | measured | bar | | work | how the controls were caught | time |\n|---|---|---|---|---|---|---|\n")
	for _, o := range r.Outcomes {
		var controls []string
		for _, c := range o.Controls {
			if c.Missed == "" {
				c.Missed = "PASSED"
			}
			controls = append(controls, c.Missed)
		}
		state := string(o.State)
		if o.State != Pass {
			state = "**" + state + "**: " + strings.Join(o.Reasons, "; ")
		}
		b.WriteString(cells(o.Line.Name, o.values(), o.bars(), state, o.work(), strings.Join(controls, "; "), o.Took.Round(100*time.Millisecond).String()))
	}
	b.WriteString("\n| line | promise | attack | controls, which have to fail |\n|---|---|---|---|\n")
	for _, o := range r.Outcomes {
		var controls []string
		for _, c := range o.Line.Controls {
			controls = append(controls, c.Name)
		}
		b.WriteString(cells(o.Line.Name, o.Line.Promise, o.Line.Attack, strings.Join(controls, "; ")))
	}
	return b.String()
}

// cells is a row of a table.
func cells(texts ...string) string {
	for i := range texts {
		texts[i] = cell(texts[i])
	}
	return "| " + strings.Join(texts, " | ") + " |\n"
}

// cell makes text one cell of a table: one line, without bars, and not too long.
func cell(text string) string {
	text = strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", "/")
	if letters := []rune(text); len(letters) > 300 {
		text = string(letters[:300]) + "…"
	}
	return text
}

// The report stands between these in a page that has more to say.
const (
	opening = "<!-- scorecard -->\n"
	closing = "<!-- end of scorecard -->"
)

// Write puts a report into a file: between the two markers if it has them, else as the whole file.
func Write(file, report string) error {
	page, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	before, rest, opened := strings.Cut(string(page), opening)
	_, after, closed := strings.Cut(rest, closing)
	switch {
	case opened && closed:
		report = before + opening + "\n" + report + "\n" + closing + after
	case len(page) > 0 && !strings.HasPrefix(string(page), title):
		return fmt.Errorf("%s is no report, and has no %q and %q", file, strings.TrimSpace(opening), closing)
	default:
		report = title + "\n\n" + report
	}
	return os.WriteFile(file, []byte(report), 0o644)
}

const title = "# Scorecard"
