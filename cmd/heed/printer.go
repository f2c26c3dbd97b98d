package main

import (
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/term"
)

// A printer writes text: with lines, bars and colours that fit its width to a terminal, and plainly to anything else. It
// must not be used concurrently.
type printer struct {
	w        io.Writer
	terminal bool
	width    int // of the terminal, in columns
	err      error
}

// newPrinter returns a printer to a file. The colours are those that the terminal has and the environment allows: none with
// NO_COLOR.
func newPrinter(file *os.File, environ []string) *printer {
	p := &printer{w: file, terminal: term.IsTerminal(file.Fd())}
	if !p.terminal {
		return p
	}
	p.w, p.width = colorprofile.NewWriter(file, environ), terminalWidth(file)
	return p
}

// terminalWidth returns how wide a terminal is, and 80 if it does not say.
func terminalWidth(file *os.File) int {
	if width, _, err := term.GetSize(file.Fd()); err == nil && width > 0 {
		return width
	}
	return 80
}

// printf writes. The first error stays.
func (p *printer) printf(format string, args ...any) {
	if _, err := fmt.Fprintf(p.w, format, args...); p.err == nil {
		p.err = err
	}
}

// line writes a line of text, broken at the terminal's width.
func (p *printer) line(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if p.terminal {
		text = wrap(text, p.width)
	}
	p.printf("%s\n", text)
}

// indented writes a text two columns further to the right than others. Blanks at its beginning indent its further lines, too.
func (p *printer) indented(text string) {
	words := strings.TrimLeft(text, " ")
	margin := "  " + text[:len(text)-len(words)]
	if p.terminal {
		if p.width < 4*len(margin) {
			margin = ""
		}
		words = wrap(words, p.width-len(margin))
	}
	for line := range strings.SplitSeq(words, "\n") {
		p.printf("%s%s\n", margin, line)
	}
}

// nothing says that there is nothing in a list, with the flags that left things out: each has a name and a value.
func (p *printer) nothing(what string, flags ...string) {
	given := ""
	for pair := range slices.Chunk(flags, 2) {
		if pair[1] != "" {
			given += " --" + pair[0] + " " + show(pair[1])
		}
	}
	if given != "" {
		given = " with" + given
	}
	p.line("There are no %s here%s.", what, given)
}

// each prints a number of things, with an empty line between them.
func (p *printer) each(n int, print func(i int)) {
	for i := range n {
		if i > 0 {
			p.printf("\n")
		}
		print(i)
	}
}

// note writes a line below others, if it says something.
func (p *printer) note(text string) {
	if text != "" {
		p.printf("\n")
		p.line("%s", text)
	}
}

// heading writes what the lines below it are about.
func (p *printer) heading(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if p.terminal {
		lines := strings.Split(wrap(text, p.width), "\n")
		for i, line := range lines {
			lines[i] = title.Render(line)
		}
		text = strings.Join(lines, "\n")
	}
	p.printf("%s\n", text)
}

// The styles of tables.
var (
	faint  = lipgloss.NewStyle().Faint(true)
	title  = lipgloss.NewStyle().Bold(true)
	chosen = lipgloss.NewStyle().Foreground(lipgloss.Green)
	bar    = lipgloss.NewStyle().Foreground(lipgloss.Cyan)
)

// maxText is how much is shown of a text that comes from the store, in characters.
const maxText = 500

// show writes a text of the store's so that it does nothing to a terminal but be read: quoted, where it is empty or has
// anything in it that does not print.
func show(text string) string {
	if runes := []rune(text); len(runes) > maxText {
		text = string(runes[:maxText]) + "…"
	}
	if text == "" || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return text
}

// segmentName names a category and a context.
func segmentName(category, context string) string { return show(category) + " / " + show(context) }

func share(x float64) string { return strconv.FormatFloat(x, 'f', 3, 64) }

// atLeast writes a confidence rounded down, so that it never seems to reach a threshold that it is below.
func atLeast(x float64) string { return share(math.Floor(x*1000+1e-9) / 1000) }

func signed(x float64) string { return fmt.Sprintf("%+.2f", x) }

func percent(x float64) string { return fmt.Sprintf("%.0f %%", 100*x) }

func count[T int | int64 | uint64](n T) string { return fmt.Sprint(n) }

// moment writes a time in UTC.
func moment(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04:05")
}

// span writes a duration, and nothing for 0.
func span(d time.Duration) string {
	text := d.String()
	for _, none := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, none) {
			text = text[:len(text)-2]
		}
	}
	if d == 0 {
		return ""
	}
	return text
}

// list writes texts one after the other, or none for those that there are not.
func list(texts []string, none string) string {
	if len(texts) == 0 {
		return none
	}
	return show(strings.Join(texts, ", "))
}

// settings writes names with their values, in order.
func settings(all map[string]string) string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		texts = append(texts, name+"="+all[name])
	}
	if texts == nil {
		return "-"
	}
	return show(strings.Join(texts, " "))
}

// plural writes a number of things.
func plural[T int | uint64](n T, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
