package card

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"time"
)

// Head is the heading of the lines that [Outcome.Text] returns.
var Head = row("name", "value", "bar", "state", "seed", "work", "control")

func row(cells ...string) string {
	return strings.TrimRight(fmt.Sprintf("%-16s  %-52s  %-12s  %-7s  %-6s  %-24s  %s", cells[0],
		cells[1], cells[2], cells[3], cells[4], cells[5],
		strings.Join(cells[6:], "  ")), " ")
}

// Text is one line for people, and one more for each reason.
func (o Outcome) Text() string {
	text := row(o.Line.Name, o.values(), o.bars(), string(o.State), fmt.Sprint(o.Seed), o.work(),
		o.controls(), o.Took.Round(100*time.Millisecond).String())
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
	for _, bar := range o.Line.Bars {
		if value, measured := o.Result.Values[bar.Name]; measured {
			all = append(all, number(value)+" "+bar.Name)
		}
	}
	return strings.Join(all, ", ")
}

func (o Outcome) bars() string {
	var all []string
	for _, bar := range o.Line.Bars {
		all = append(all, bar.String())
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
	Machine  Machine
	Outcomes []Outcome
	Long     bool   // it is one of the long form
	Lines    []Line // all there are, in order
}

// Markdown is the report as text: a table of what was measured, and for the short form one of what
// each line does. It keeps the rows of the report before it that are of other lines, if they were
// measured on the same machine, so that lines can be run one by one.
func (r Report) Markdown(before string) string {
	machine := fmt.Sprintf("%s, %d cores, %s, %s.\n\n", r.Machine.CPU, r.Machine.Cores, r.Machine.Go,
		strings.Join(r.Machine.Engines, ", "))
	rows := make(map[string]string) // by line
	if strings.Contains(before, machine) {
		before, _, _ = strings.Cut(before, promises)
		for row := range strings.Lines(before) {
			if name, _, found := strings.Cut(strings.TrimPrefix(row, "| "), " | "); found {
				rows[name] = row
			}
		}
	}
	for _, o := range r.Outcomes {
		run := fmt.Sprintf("%s, seed %d, %s", r.Machine.Commit, o.Seed,
			r.At.UTC().Format("2 January 2006, 15:04 MST"))
		rows[o.Line.Name] = cells(append(o.measured(), run)...)
	}
	var b, table strings.Builder
	var missing []string
	for _, line := range r.Lines {
		if rows[line.Name] == "" {
			missing = append(missing, line.Name)
		}
		b.WriteString(rows[line.Name])
		var controls []string
		for _, c := range line.Controls {
			controls = append(controls, c.Name)
		}
		table.WriteString(cells(line.Name, line.Promise, line.Attack, strings.Join(controls, "; ")))
	}
	text := "Each row is the last run of a line, with the commit, the seed and the time.\n\n" +
		machine
	if len(missing) > 0 {
		text += "Not run here: " + strings.Join(missing, "; ") + ".\n\n"
	}
	text += "| line | measured | bar | | work | how the controls were caught | time | run " +
		"|\n|---|---|---|---|---|---|---|---|\n" + b.String()
	if !r.Long {
		text += promises + table.String()
	}
	return text
}

const promises = "\n| line | promise | attack | controls, which have to fail |\n|---|---|---|---|\n"

// measured returns the result of a line in a row of a table.
func (o Outcome) measured() []string {
	var controls []string
	for _, c := range o.Controls {
		controls = append(controls, cmp.Or(c.Missed, "PASSED"))
	}
	state := string(o.State)
	if o.State != Pass {
		state = "**" + state + "**: " + strings.Join(o.Reasons, "; ")
	}
	return []string{
		o.Line.Name, o.values(), o.bars(), state, o.work(), strings.Join(controls, "; "),
		o.Took.Round(100 * time.Millisecond).String(),
	}
}

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

// Write puts a report into a page, between the two markers of its form.
func Write(file string, r Report) error {
	page, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	form := "scorecard"
	if r.Long {
		form += ", long form"
	}
	opening, closing := "<!-- "+form+" -->\n", "<!-- end of "+form+" -->"
	before, rest, opened := strings.Cut(string(page), opening)
	old, after, closed := strings.Cut(rest, closing)
	if !opened || !closed {
		return fmt.Errorf("%s has no %q and %q", file, strings.TrimSpace(opening), closing)
	}
	return os.WriteFile(file, []byte(before+opening+"\n"+r.Markdown(old)+"\n"+closing+after), 0o644)
}
