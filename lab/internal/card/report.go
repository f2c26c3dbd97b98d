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
	Long     bool     // it is one of the long form
	Names    []string // of all lines there are, in order
}

// Markdown is the report of a short run as text: what came of it, and then what each line does.
func (r Report) Markdown() string {
	var b strings.Builder
	count := make(map[State]int)
	seed := uint64(0)
	for _, o := range r.Outcomes {
		count[o.State]++
		seed = o.Seed
	}
	fmt.Fprintf(&b, "%d lines passed, %d failed, %d skipped, in %s. Run with `%s` and seed %d at commit %s, on %s.\n\n", count[Pass],
		count[Fail], count[Skipped], r.Took.Round(time.Second), r.Command, seed, r.Machine.Commit, r.At.Format("2 January 2006, 15:04 MST"))
	b.WriteString(r.machine() + "| line | measured | bar | | work | how the controls were caught | time |\n|---|---|---|---|---|---|---|\n")
	for _, o := range r.Outcomes {
		b.WriteString(cells(o.measured()...))
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

func (r Report) machine() string {
	return fmt.Sprintf("%s, %d cores, %s, %s.\n\n", r.Machine.CPU, r.Machine.Cores, r.Machine.Go, strings.Join(r.Machine.Engines, ", "))
}

// measured is what came of a line, as a row of a table.
func (o Outcome) measured() []string {
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
	return []string{o.Line.Name, o.values(), o.bars(), state, o.work(), strings.Join(controls, "; "), o.Took.Round(100 * time.Millisecond).String()}
}

// LongForm is the report of a long run as text. It keeps the rows of the report before it that are of other lines, if they were measured on
// the same machine: so the lines can be run one by one.
func (r Report) LongForm(before string) string {
	rows := make(map[string]string) // by line
	if strings.Contains(before, r.machine()) {
		for row := range strings.Lines(before) {
			if parts := strings.Split(row, " | "); len(parts) > 1 && strings.HasPrefix(row, "| ") {
				rows[strings.TrimPrefix(parts[0], "| ")] = row
			}
		}
	}
	for _, o := range r.Outcomes {
		run := fmt.Sprintf("%s, seed %d, %s", r.Machine.Commit, o.Seed, r.At.UTC().Format("2 January 2006, 15:04 MST"))
		rows[o.Line.Name] = cells(append(o.measured(), run)...)
	}
	var b strings.Builder
	var missing []string
	for _, name := range r.Names {
		if rows[name] == "" {
			missing = append(missing, name)
		}
		b.WriteString(rows[name])
	}
	text := "Each row is the last run of a line in its long form, with the commit, the seed and the time.\n\n" + r.machine()
	if len(missing) > 0 {
		text += "Not run here: " + strings.Join(missing, "; ") + ".\n\n"
	}
	return text + "| line | measured | bar | | work | how the controls were caught | time | run |\n|---|---|---|---|---|---|---|---|\n" + b.String()
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

// marks are what a report stands between in a page that has more to say.
func (r Report) marks() (opening, closing string) {
	if r.Long {
		return "<!-- scorecard, long form -->\n", "<!-- end of scorecard, long form -->"
	}
	return "<!-- scorecard -->\n", "<!-- end of scorecard -->"
}

// Write puts a report into a file: between its two markers if the file has them, else as the whole file.
func Write(file string, r Report) error {
	page, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	opening, closing := r.marks()
	before, rest, opened := strings.Cut(string(page), opening)
	old, after, closed := strings.Cut(rest, closing)
	if !opened || !closed {
		if len(page) > 0 && !strings.HasPrefix(string(page), title) {
			return fmt.Errorf("%s is no report, and has no %q and %q", file, strings.TrimSpace(opening), closing)
		}
		before, old, after = title+"\n\n", string(page), "\n"
	}
	text := r.Markdown()
	if r.Long {
		text = r.LongForm(old)
	}
	if opened && closed {
		text = opening + "\n" + text + "\n" + closing
	}
	return os.WriteFile(file, []byte(before+text+after), 0o644)
}

const title = "# Scorecard"
