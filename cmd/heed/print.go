package main

import (
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/term"
)

// A printer writes text: with lines, bars and colours that fit its width to a terminal, and plainly
// to anything else. Every value that it prints goes through [text], so that no text of the store
// can control the terminal. It must not be used concurrently.
type printer struct {
	w        io.Writer
	terminal bool
	width    int // of the terminal, in columns
	err      error
}

// newPrinter returns a printer to a file. The colours are those that the terminal has and the
// environment allows: none with NO_COLOR.
func newPrinter(file *os.File, environ []string) *printer {
	p := &printer{w: file, terminal: term.IsTerminal(file.Fd())}
	if p.terminal {
		p.w, p.width = colorprofile.NewWriter(file, environ), terminalWidth(file)
	}
	return p
}

// terminalWidth returns how wide a terminal is, or 80 if it is not known.
func terminalWidth(file *os.File) int {
	if width, _, err := term.GetSize(file.Fd()); err == nil && width > 0 {
		return width
	}
	return 80
}

// write writes a text as it is. The first error stays.
func (p *printer) write(text string) {
	if _, err := io.WriteString(p.w, text); p.err == nil {
		p.err = err
	}
}

func (p *printer) blank() { p.write("\n") }

// line writes a line of text, broken at the terminal's width.
func (p *printer) line(format string, args ...any) { p.block("", "", say(format, args...)) }

// block writes a text. Its first line begins with one text, and the others with another.
func (p *printer) block(first, rest string, words plain) {
	text := string(words)
	if p.terminal {
		text = wrap(text, p.width-max(ansi.StringWidth(first), ansi.StringWidth(rest)))
	}
	for i, line := range strings.Split(text, "\n") {
		if i > 0 {
			first = rest
		}
		p.write(first + line + "\n")
	}
}

// each prints a number of things, with an empty line between them.
func (p *printer) each(n int, print func(i int)) {
	for i := range n {
		if i > 0 {
			p.blank()
		}
		print(i)
	}
}

// note writes a line below others, unless it is empty.
func (p *printer) note(words plain) {
	if words != "" {
		p.blank()
		p.line("%v", words)
	}
}

// heading writes what the lines below it are about.
func (p *printer) heading(format string, args ...any) {
	words := string(say(format, args...))
	if p.terminal {
		lines := strings.Split(wrap(words, p.width), "\n")
		for i, line := range lines {
			lines[i] = title.Render(line)
		}
		words = strings.Join(lines, "\n")
	}
	p.write(words + "\n")
}

// The styles of text.
var (
	faint  = lipgloss.NewStyle().Faint(true)
	title  = lipgloss.NewStyle().Bold(true)
	chosen = lipgloss.NewStyle().Foreground(lipgloss.Green)
	bars   = lipgloss.NewStyle().Foreground(lipgloss.Cyan)
)

// A plain is a text that the command has made itself, so that it may be printed as it is.
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
	case map[string]string:
		var pairs []string
		for _, name := range slices.Sorted(maps.Keys(v)) {
			pairs = append(pairs, name+"="+v[name])
		}
		if pairs == nil {
			return "-"
		}
		return show(strings.Join(pairs, " "))
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
func segmentName(category, context string) plain { return say("%v / %v", category, context) }

// atLeast rounds a confidence down, so that it never seems to reach a threshold that it is below.
func atLeast(x float64) plain { return say("%v", math.Floor(x*1000+1e-9)/1000) }

func percent(x float64) plain { return plain(fmt.Sprintf("%.0f %%", 100*x)) }

// amount writes a number of any size.
func amount(x float64) plain { return plain(fmt.Sprintf("%.4g", x)) }

// list writes texts one after the other, or another text if there are none.
func list(texts []string, none plain) plain {
	if len(texts) == 0 {
		return none
	}
	return say("%v", texts)
}

// or returns a text to print, or another if it is empty.
func or(name string, none plain) plain {
	if name == "" {
		return none
	}
	return say("%v", name)
}

// plural writes a number of things.
func plural[T int | uint64](n T, one, many string) plain {
	if n == 1 {
		return plain("1 " + one)
	}
	return plain(fmt.Sprintf("%d %s", n, many))
}
