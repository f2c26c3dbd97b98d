package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"io"
	"math"
	"os"
	"reflect"
	"strconv"
	"strings"
	"text/template"
	"time"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	"github.com/heedhq/heed/cmd/heed/internal/past"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
)

// A printer writes text. Every value that it prints goes through [text], so that no text of the
// store can control the terminal. It must not be used concurrently.
type printer struct {
	w     io.Writer
	width int // of the terminal, at which texts continue on another line; 0: never
	err   error
	rows  *listing // that was begun, and not printed yet
}

// write writes a text as it is. The first error stays.
func (p *printer) write(text string) {
	if _, err := io.WriteString(p.w, text); p.err == nil {
		p.err = err
	}
}

// line writes a line of text.
func (p *printer) line(format string, args ...any) { p.block("", "", say(format, args...)) }

// block writes a text. Its first line begins with one text, and the others with another.
func (p *printer) block(first, rest string, words plain) {
	text := string(words)
	if p.width > 0 {
		text = ansi.Wrap(text, max(p.width-ansi.StringWidth(rest), 20), " ")
	}
	p.write(first + strings.ReplaceAll(text, "\n", "\n"+rest) + "\n")
}

// A plain is a text that the command made itself, so that it may be printed as it is.
type plain string

// say formats a text like [fmt.Sprintf], with [text] of each argument. The only verb is %v.
func say(format string, args ...any) plain {
	texts := make([]any, len(args))
	for i, arg := range args {
		texts[i] = text(arg)
	}
	return plain(fmt.Sprintf(format, texts...))
}

// text returns how a value is printed.
func text(value any) string {
	switch v := value.(type) {
	case plain:
		return string(v)
	case string:
		return show(v)
	case float64:
		return strconv.FormatFloat(v, 'f', 3, 64)
	case time.Time:
		if v.IsZero() {
			return "-"
		}
		return v.UTC().Format(time.DateTime)
	case []string:
		return show(strings.Join(v, ", "))
	}
	if v := reflect.ValueOf(value); v.Kind() == reflect.String {
		return show(v.String())
	}
	return fmt.Sprint(value)
}

// maxText is how much is shown of a text that comes from the store, in characters.
const maxText = 500

// show quotes a text of the store that is empty or has characters that do not print, because a
// terminal may obey these.
func show(text string) string {
	if runes := []rune(text); len(runes) > maxText {
		text = string(runes[:maxText]) + "…"
	}
	if text == "" || strings.ContainsFunc(text, unprintable) {
		return strconv.Quote(text)
	}
	return text
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// segmentName names a category and a context.
func segmentName(category, context string) plain {
	if category == "" && context == "" {
		return "all requests"
	}
	return say("%v / %v", category, context)
}

// atLeast rounds a confidence down, so that it never seems to reach a threshold that it is below.
func atLeast(x float64) plain { return say("%v", math.Floor(x*1000+1e-9)/1000) }

func percent(x float64) plain { return plain(fmt.Sprintf("%.0f %%", 100*x)) }

// list writes texts one after the other, or another text for an empty list.
func list(texts []string, none plain) plain { return plain(view.Join(texts, string(none), show)) }

// alt returns a text to print. If it is empty, that is a dash or another text.
func alt(value any, none ...plain) plain {
	if name := fmt.Sprint(value); name != "" {
		return say("%v", name)
	}
	return append(none, "-")[0]
}

func plural(n any, one, many string) plain { return plain(view.Plural(n, one, many)) }

func lower(state any) string { return strings.ToLower(fmt.Sprint(state)) }

// textFile has templates of what commands print. What a template writes by itself is not printed,
// but what it hands to a function is, and that goes through [text].
//
//go:embed text.tmpl
var textFile string

var forms = template.Must(template.New("").Funcs((&printer{}).funcs()).Parse(textFile))

// render prints a value by the template of a name.
func (p *printer) render(name string, value any) error {
	form, err := forms.Clone()
	if err == nil {
		err = form.Funcs(p.funcs()).ExecuteTemplate(io.Discard, name, value)
	}
	p.table()
	return cmp.Or(err, p.err)
}

// table prints the rows that were begun, and begins others if it has columns.
func (p *printer) table(columns ...string) string {
	if p.rows != nil {
		p.write(p.rows.String())
	}
	p.rows = nil
	if len(columns) > 0 {
		p.rows = &listing{titles: columns}
	}
	return ""
}

// measured writes the success of answers, and of how many it is known.
func measured(m loop.Measured) [2]plain {
	if m.Outcomes < 0.5 {
		return [2]plain{"-", "-"}
	}
	return [2]plain{percent(m.Success), plain(fmt.Sprintf("%.0f", m.Outcomes))}
}

// counts writes how much counts of what a source has said.
func counts(s learning.Share) plain {
	all, counted := s.For+s.Against, s.CountsFor+s.CountsAgainst
	if all <= counted*(1+1e-9) {
		return "in full"
	}
	return plain(fmt.Sprintf("%.2f of %.2f", counted, all))
}

// known describes how a share of the evidence is known, with its source.
func known(s learning.Share) plain {
	words := view.KnownBy(s)
	if s.Source != "" && !strings.Contains(words, s.Source) {
		words += " to " + s.Source
	}
	return say("%v", words)
}

// cell writes a value into a table. A time has no seconds there.
func cell(value any) string {
	if at, is := value.(time.Time); is && !at.IsZero() {
		return at.UTC().Format("2006-01-02 15:04")
	}
	return text(value)
}

// funcs are what templates call.
func (p *printer) funcs() template.FuncMap {
	return template.FuncMap{
		"line": func(format string, args ...any) string { return p.indented(0, say(format, args...)) },
		"in": func(by int, format string, args ...any) string {
			return p.indented(by, say(format, args...))
		},
		"blank": func() string { return p.indented(0, "") },
		"prose": p.prose,
		"tree":  func(b loop.Branch) string { return p.branch(b, "", "") },
		"table": p.table,
		"row": func(cells ...any) string {
			p.rows.add(cells...)
			return ""
		},
		"none": func() plain { return "-" }, "ready": func(s string) plain { return plain(s) },
		"say": say, "alt": alt, "list": list, "plural": plural, "percent": percent, "lower": lower,
		"signed": func(x float64) plain { return plain(fmt.Sprintf("%+.2f", x)) },
		"counts": counts, "measured": measured,
		"of":  func(right, wrong uint64) plain { return plain(fmt.Sprint(right, "/", right+wrong)) },
		"sum": func(x, y float64) float64 { return x + y }, "atleast": atLeast, "env": os.Getenv,
		"segment": segmentName, "known": known,
		"yes": func(is bool) plain { return map[bool]plain{true: "yes", false: "no"}[is] },
		"ninety": func(b evidence.Beta) [2]float64 {
			low, high := b.Interval(0.9)
			return [2]float64{low, high}
		},
		"said":  func(c feedback.Feedback) string { return view.Said(&c) },
		"parts": func(d feedback.Draft) []view.Part { return view.Parts(&d, show) },
		"edits": func(was *feedback.Draft, is feedback.Draft) []view.Edit {
			return view.Edits(was, &is, show)
		},
		"check": func(d feedback.Draft) plain { return plain(view.CheckWords(d.Check, show)) },
		"deed":  view.Deed, "fields": func() []past.Field { return past.Fields },
	}
}

// indented prints a text whose lines begin with a number of blanks.
func (p *printer) indented(by int, words plain) string {
	p.table()
	p.block(strings.Repeat(" ", by), strings.Repeat(" ", by), words)
	return ""
}

// prose prints a text of several lines.
func (p *printer) prose(text string) string { return p.indented(0, plain(escaped(text))) }

// branch prints a tree. Texts of users, models and reviewers are in it.
func (p *printer) branch(b loop.Branch, first, rest string) string {
	p.line("%v%v", plain(first), b.Text)
	for i, on := range b.On {
		if i == len(b.On)-1 {
			p.branch(on, rest+"└─ ", rest+"   ")
		} else {
			p.branch(on, rest+"├─ ", rest+"│  ")
		}
	}
	return ""
}

// A listing is a table of texts. A title that begins with > is of numbers. No text is ever cut.
type listing struct {
	titles []string
	rows   [][]string
}

func (l *listing) add(cells ...any) { l.rows = append(l.rows, texts(cells, cell)) }

// String writes the listing.
func (l *listing) String() string {
	head := texts(l.titles, func(title string) string {
		return strings.ToUpper(strings.TrimPrefix(title, ">"))
	})
	all, widths := append([][]string{head}, l.rows...), make([]int, len(head))
	for i := range head {
		for _, row := range all {
			widths[i] = max(widths[i], ansi.StringWidth(row[i]))
		}
	}
	var b strings.Builder
	for _, row := range all {
		line := ""
		for i, cell := range row {
			fill := strings.Repeat(" ", widths[i]-ansi.StringWidth(cell))
			if strings.HasPrefix(l.titles[i], ">") {
				cell, fill = fill+cell, ""
			}
			line += cell + fill + "  "
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}
