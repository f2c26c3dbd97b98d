package web

import (
	"context"
	"encoding/json"
	"html"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/internal/text"
	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
)

func TestSay(t *testing.T) {
	for text, want := range map[string]string{
		"plain text, ä 日本 😀": "plain text, ä 日本 😀", "a\u202eb": "a[U+202E]b",
		"zero\u200bwidth": "zero[U+200B]width", "a\x00b": "a[U+0000]b",
		"\ufeffx": "[U+FEFF]x", "two\nlines\t": "two\nlines\t", "\u3164": "[U+3164]",
		"bad\xffbyte": "bad[U+FFFD]byte", "\u2066x": "[U+2066]x", "": "", "\U000e0041": "[U+E0041]",
	} {
		assert.Equal(t, want, say(text))
	}
}

// Disagreement has the channel of agreement, and other words all the same.
func TestSeenBy(t *testing.T) {
	o := evidence.Observation{Channel: learning.ChannelAgreement}
	assert.Equal(t, "the model said the same", known(view.ChannelOf(&o)))
	o.Cell.Name = "disagreed"
	assert.Equal(t, known(view.DisagreementChannel), known(view.ChannelOf(&o)))
	assert.Equal(t, "thumb", known("thumb"))
	assert.Equal(t, "no user reacted, thumb", text.ChannelsWords("implicit_timeout, thumb"))
}

// An arm leads where it is the best with a probability of a half or more.
func TestClear(t *testing.T) {
	assert.False(t, view.Segment{Best: 0.39}.Clear())
	assert.True(t, view.Segment{Best: 0.5}.Clear())
	for name, of := range map[string][2]string{"without a category": {}, "mail": {"mail"},
		"without a category, night": {"", "night"}, "mail, night": {"mail", "night"}} {
		assert.Equal(t, name, segmentName(of[0], of[1]))
	}
}

// TestRefusal has no constant in what a person reads.
func TestRefusal(t *testing.T) {
	_, text := refusal(&feedback.RefusedError{Reason: "the proposal is SUPERSEDED",
		State: "SUPERSEDED"})
	assert.Regexp(t, "^The proposal is superseded. It was edited", text)
	assert.NotContains(t, text, "Tick each rule", "it contradicts no rule")
	status, text := refusal(errStale)
	assert.Equal(t, http.StatusConflict, status)
	assert.Equal(t, "This is no longer as you saw it. Nothing was done. Look at it again.", text)
}

// The reason of heed's own proposals is an id, which says nothing to people.
func TestBecause(t *testing.T) {
	assert.Empty(t, because("", "cluster 7"))
	assert.Equal(t, "cluster 7", because("kim", "cluster 7"))
	assert.Equal(t, "too old", because("", "too old"))
}

// A value is drawn where it is on the scale from 0 to 1, and at the edge if it is not on it.
func TestPlace(t *testing.T) {
	for value, want := range map[float64]float64{-1: 0, 0: 0, 0.25: 250, 1: 1000, 2: 1000} {
		assert.InDelta(t, want, place(value), 0, value)
	}
	assert.Zero(t, place(math.NaN()))
}

// A text is cut if it has more characters than there is room for.
func TestShort(t *testing.T) {
	for text, want := range map[string]string{
		"": say(""), "né 1": say("né 1"), "né 12": say("né 12"), "né 123": say("né 12…"),
		" né\n12 ": say("né 12"),
	} {
		assert.Equal(t, want, short(5, text))
	}
}

// The names of arms that lead are cut at 80 characters.
func TestNews(t *testing.T) {
	name := strings.Repeat("a", 80)
	c := view.Changed{}
	c.Action, c.Details = "loop.leads", map[string]string{"arm": name, "before": name}
	assert.Equal(t, "found that "+name+" leads instead of "+name, news(c))
	c.Details = map[string]string{"arm": name + "b", "before": name + "b"}
	assert.Equal(t, "found that "+name+"… leads instead of "+name+"…", news(c))
}

// An interval that is a point can be seen, and its mark is on the scale.
func TestNewBar(t *testing.T) {
	for x, want := range map[float64]bar{
		0.5: {500, 4, 497}, 0: {0, 4, 0}, 1: {1000, 4, 994},
	} {
		assert.Equal(t, want, newBar(x, x, x))
	}
	assert.Equal(t, bar{250, 500, 597}, newBar(0.25, 0.6, 0.75))
}

func TestAlone(t *testing.T) {
	h := view.Heuristic{Needed: 0.9}
	for confidence, want := range map[float64]string{0.95: "yes", 0.9: "yes", 0.85: "no, from 0.9"} {
		h.Confidence = confidence
		var b strings.Builder
		require.NoError(t, templates()["heuristics"].ExecuteTemplate(&b, "alone", h))
		assert.Contains(t, b.String(), want, confidence)
	}
}

// A point of the course by day is the mean of seven days, weighed by their outcomes. Days without
// an outcome have no point.
func TestPoints(t *testing.T) {
	day := func(outcomes, success float64) (p loop.GainPart) {
		p.Learned = loop.Measured{Outcomes: outcomes, Success: success}
		return p
	}
	learned := func(p *loop.GainPart) *loop.Measured { return &p.Learned }
	for name, one := range map[string]struct {
		by   string
		days []loop.GainPart
		want string
		last float64
	}{
		"none":       {view.ByDay, []loop.GainPart{day(0.4, 1)}, "", 0},
		"half a day": {view.ByDay, []loop.GainPart{day(0.5, 1)}, "0,0 1000,0", 1},
		"by week":    {view.ByWeek, []loop.GainPart{day(3, 0), day(1, 1)}, "0,200 1000,0", 1},
		"by day":     {view.ByDay, []loop.GainPart{day(3, 0), day(1, 1)}, "0,200 1000,150", 0.25},
		"a day is empty": {view.ByDay, []loop.GainPart{day(1, 0), day(0, 0), day(1, 1)},
			"0,200 1000,100", 0.5},
	} {
		d := gainData{By: one.by, Course: one.days}
		points, last := d.points(learned)
		assert.Equal(t, one.want, points, name)
		assert.InDelta(t, one.last, last, 1e-9, name)
	}
	week := slices.Repeat([]loop.GainPart{day(0, 0)}, 6)
	for gap, want := range map[int]float64{5: 0.5, 6: 1} {
		d := gainData{By: view.ByDay,
			Course: slices.Concat([]loop.GainPart{day(1, 0)}, week[:gap], []loop.GainPart{day(1, 1)})}
		_, last := d.points(learned)
		assert.InDelta(t, want, last, 1e-9, "%d days between", gap)
	}
}

// A page that can't be made is a failure for the observer, and no half page.
func TestAPageThatCannotBeMade(t *testing.T) {
	var failed []string
	h, err := New(Config{Store: &memstore.Store{}, Observer: func(_ context.Context, n heed.Notice) {
		if n, ok := n.(heed.Failed); ok {
			failed = append(failed, n.What)
		}
	}, Identify: func(*http.Request) (string, error) { return "kim", nil }})
	require.NoError(t, err)
	w := httptest.NewRecorder()
	h.render(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil), http.StatusOK,
		"answers", frame{Data: 7})
	assert.Equal(t, http.StatusInternalServerError, w.Code)
	assert.NotContains(t, w.Body.String(), "<")
	assert.Equal(t, []string{"page"}, failed)
}

// A list names the damaged records that it lacks, and the remedy.
func TestAListNamesWhatIsDamaged(t *testing.T) {
	var page strings.Builder
	of := listing[view.Answer]{List: view.List[view.Answer]{Damaged: []string{"x of loop.answer"}}}
	require.NoError(t, templates()["answers"].ExecuteTemplate(&page, "turn", of))
	assert.Contains(t, page.String(), "1 damaged record is left out: x of loop.answer. Restore the "+
		"store from a copy.")

	of.Damaged = strings.Split("abcdefghijkl", "")
	page.Reset()
	require.NoError(t, templates()["answers"].ExecuteTemplate(&page, "turn", of))
	assert.Contains(t, page.String(), "12 damaged records are left out: a, b, c, d, e, f, g, h, i, "+
		"j, and 2 more. Restore")
	reply, err := json.Marshal(of.List)
	require.NoError(t, err)
	assert.Contains(t, string(reply), `"i","j","and 2 more"]`)
}

// The page of an answer shows that its question can't be read, and the first page what it lacks.
func TestPagesNameWhatIsDamaged(t *testing.T) {
	const name = "x of decision.trace"
	for page, of := range map[string]struct {
		data any
		says string
	}{
		"answer": {answerData{Explanation: view.Explanation{Damaged: view.Names{name}}},
			"What was asked can&#39;t be read: " + name + ". Restore the store from a copy."},
		"home": {homeData{Source: &view.Source{}, Damaged: view.Names{name}},
			"1 damaged record is left out: " + name},
		"rules": {listing[view.Rule]{Query: view.RuleQuery{},
			List: view.List[view.Rule]{Damaged: view.Names{name}}},
			"1 damaged record is left out: " + name},
		"ways": {listing[view.Way]{Query: view.WayQuery{},
			List: view.List[view.Way]{Damaged: view.Names{name}}},
			"1 damaged record is left out: " + name},
	} {
		var text strings.Builder
		err := templates()[page].ExecuteTemplate(&text, "content", frame{Data: of.data})
		require.NoError(t, err, page)
		assert.Contains(t, html.UnescapeString(text.String()), html.UnescapeString(of.says), page)
	}
}
