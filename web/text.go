package web

import (
	"cmp"
	"fmt"
	"html/template"
	"maps"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/internal/fair"
	"github.com/heedhq/heed/internal/text"
	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/learning"
)

// funcs are what templates call.
var funcs = template.FuncMap{
	// a value in [-1, 1] on the scale of the pages, from 0 to 1
	"success": func(value float64) float64 { return (value + 1) / 2 },
	"points":  func(x float64) float64 { return 100 * x },
	"kinds":   func() []string { return view.Kinds },
	"say":     func(value any) string { return say(fmt.Sprint(value)) },
	"short":   short,
	"when":    func(t time.Time) string { return t.UTC().Format("2 Jan 2006, 15:04 UTC") },
	"day": func(t time.Time, later int) string {
		return t.UTC().AddDate(0, 0, later).Format(time.DateOnly)
	},
	"iso":     func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
	"percent": percent, "plural": view.Plural, "words": words, "deed": deed, "news": news,
	"about": about, "because": because,
	"join": func(all []string) string { return say(strings.Join(all, ", ")) },
	"field": func(id, name, label, value, hint string) fieldView {
		return fieldView{id, name, label, value, hint}
	},
	"three":  func(x float64) string { return fmt.Sprintf("%.3f", x) },
	"known":  known,
	"seenby": func(o evidence.Observation) string { return known(view.ChannelOf(&o)) },
	"limited": func(s learning.Share, people float64) string {
		return fair.Limited(s.For+s.Against, s.CountsFor, s.CountsAgainst, people)
	},
	"knownby": func(s learning.Share) string { return say(view.KnownBy(s)) }, "sentence": sentence,
	"channels": func(names string) string { return say(text.ChannelsWords(names)) },
	"segment":  segmentName, "bar": newBar, "place": place,
	"arms":    func(all []view.Arm) any { return view.Segment{Arms: all} },
	"further": further,
	"pair": func(prefix, id, hash, with string) any {
		return struct{ Prefix, ID, Hash, With string }{prefix, id, hash, with}
	},
	"hash": hashOf,
	"types": func() []string {
		return []string{"GUIDELINE", "CONSTRAINT", "POSITIVE_EXAMPLE", "NEGATIVE_EXAMPLE"}
	},
	"quorum": func(q *feedback.Quorum) string { return say(q.String()) },
}

// say makes characters visible that a page would hide, or that turn the text around them: what
// people decide about must be what they see.
func say(text string) string {
	if !strings.ContainsFunc(text, hidden) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if hidden(r) {
			fmt.Fprintf(&b, "[U+%04X]", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// hidden reports whether a character can't be seen, lines and tabs aside. A joiner within an emoji
// counts too.
func hidden(r rune) bool {
	switch r {
	case '\n', '\t', ' ':
		return false
	case unicode.ReplacementChar, '\u115f', '\u1160', '\u3164', '\uffa0', '\u2800':
		return true
	}
	return !unicode.IsPrint(r) && !unicode.Is(unicode.Zs, r) ||
		unicode.Is(unicode.Variation_Selector, r)
}

// short cuts a text.
func short(most int, value any) string {
	text := strings.Join(strings.Fields(fmt.Sprint(value)), " ")
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return say(text)
}

func percent(x float64) string { return fmt.Sprintf("%.0f %%", 100*x) }

// words writes a constant as words: "APPROVED_WITH_CHANGES" is "approved with changes".
func words(value any) string {
	return strings.ToLower(strings.NewReplacer("_", " ", "-", " ").Replace(say(fmt.Sprint(value))))
}

// deed is [view.Deed], to be shown.
func deed(action string) string { return say(view.Deed(action)) }

// learned are the actions that heed records by itself.
var learned = map[string]string{
	"answers": "it answers by itself", "stops": "it no longer answers by itself",
	"outage": "it can't be reached", "recovery": "it can be reached again",
}

// news writes what changed, to follow a name.
func news(c view.Changed) string {
	what := learned[verbOf(c.Action)]
	if verbOf(c.Action) == "leads" {
		if what = short(80, c.Details["arm"]) + " leads"; c.Details["before"] != "" {
			what += " instead of " + short(80, c.Details["before"])
		}
	}
	if c.Kind == "import" {
		for _, name := range slices.Sorted(maps.Keys(c.Details)) {
			what += ", " + c.Details[name] + " " + name
		}
		return "imported " + strings.TrimPrefix(what, ", ")
	}
	if what == "" {
		return deed(c.Action)
	}
	return "found that " + what
}

func verbOf(action string) string { return action[strings.LastIndexByte(action, '.')+1:] }

// about returns the page of what changed, and what it is called.
func about(c view.Changed) (to struct{ Path, Name string }) {
	id := url.Values{"id": {c.Subject}}.Encode()
	to.Name = c.Subject
	category, in, segment := c.Segment()
	switch {
	case segment:
		to.Name = segmentName(category, in)
		to.Path = "/segment?" + url.Values{"category": {category}, "context": {in}}.Encode()
	case c.Kind == "import":
		to.Path, to.Name = "/answers", "answers"
	case c.Kind == "heuristic":
		to.Path = "/heuristic?" + id
	case c.Kind == "way":
		to.Path = "/way?" + id
	case c.Action == "feedback.propose.refused": // so there is no such proposal
	case c.Kind == "rule":
		to.Path = cmp.Or(deciding[verbOf(strings.TrimSuffix(c.Action, ".refused"))], "/proposal?") + id
	case c.Subject != "":
		to.Path = "/changes?" + url.Values{"name": {c.Subject}}.Encode()
	}
	return to
}

// deciding are the pages of what is decided about, if that is no proposal.
var deciding = map[string]string{
	"retire": "/rule?", "revoke": "/rule?", "activate": "/rule?", "supersede": "/rule?",
	"propose-retirement": "/rule?", "evaluate": "/correction?", "resolve": "/correction?",
	"promote": "/correction?", "join": "/correction?", "split": "/correction?",
	"erase": "/correction?",
}

// known describes how something is known, by the name of its channel.
func known(name string) string { return say(view.Known(name)) }

// sentence begins with a capital letter.
func sentence(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}

// because returns the reason of an entry, if people can understand it: the reason of heed's own
// proposals is the id of a cluster.
func because(actor, reason string) string {
	if actor == "" && strings.HasPrefix(reason, "cluster ") {
		return ""
	}
	return reason
}

// A fieldView is a control of a form: its names are unique in the page.
type fieldView struct{ ID, Name, Label, Value, Hint string }

const scaleWidth, chartHeight = 1000, 200 // of a picture, in its own units

// place returns where a value from 0 to 1 is on the scale. Another value is at the edge.
func place(x float64) float64 {
	if math.IsNaN(x) {
		return 0
	}
	return math.Round(scaleWidth * min(max(x, 0), 1))
}

// A bar is an interval on the scale from 0 to 1, in units of the picture.
type bar struct{ X, Width, Tick float64 }

func newBar(low, mean, high float64) bar {
	return bar{place(low), max(place(high)-place(low), 4), min(max(place(mean)-3, 0), scaleWidth-6)}
}
