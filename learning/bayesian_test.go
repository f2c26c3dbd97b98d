package learning_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/learning"
)

func newBayesian(t testing.TB, cfg learning.BayesianConfig) learning.Strategy {
	t.Helper()
	b, err := learning.NewBayesian(cfg)
	require.NoError(t, err)
	return b
}

func said(value float64, channel string) learning.Judgement {
	return learning.Judgement{Value: value, Channel: channel}
}

func TestShareOfAJudgement(t *testing.T) {
	for share, j := range map[float64]learning.Judgement{
		1:    {Scale: learning.DevScale, Score: 5},
		0.5:  {Scale: learning.DevScale, Score: 2},
		0:    {Scale: learning.UserScale, Score: 2},
		0.25: {Value: -0.5, Weight: 0.5},
	} {
		assert.InDelta(t, share, learning.ShareOf(j), 1e-12)
	}
}

func TestInterpretJudgement(t *testing.T) {
	b := newBayesian(t, learning.BayesianConfig{})
	for _, test := range []struct {
		feedback learning.Judgement
		worth    float64
		source   string
	}{
		{said(1, ""), 0.8, learning.ChannelExplicit},
		{said(-0.5, ""), -0.4, learning.ChannelExplicit},
		{said(0.25, learning.ChannelDev), 0.2, learning.ChannelDev},
		{said(0, ""), 0, learning.ChannelExplicit},
		{said(-1, ""), -0.8, learning.ChannelExplicit},
		{said(1, "user"), 0.8, learning.ChannelExplicit},
		{said(1, "user_implicit"), 0.8, learning.ChannelExplicit},
		{said(-1, learning.ChannelDev), -0.8, learning.ChannelDev},
		{learning.Judgement{Scale: learning.UserScale, Score: 1}, -0.4,
			learning.ChannelExplicit},
		{learning.Judgement{Scale: learning.UserScale, Score: 2}, 0.05,
			learning.ChannelExplicit},
		{learning.Judgement{Scale: learning.UserScale, Score: 3}, 0.4,
			learning.ChannelExplicit},
		{learning.Judgement{Channel: "dev",
			Scale: learning.DevScale, Score: 1}, -0.4, learning.ChannelDev},
		{learning.Judgement{Channel: "dev",
			Scale: learning.DevScale, Score: 2}, -0.2, learning.ChannelDev},
		{learning.Judgement{Channel: "dev",
			Scale: learning.DevScale, Score: 3}, 0.05, learning.ChannelDev},
		{learning.Judgement{Channel: "dev",
			Scale: learning.DevScale, Score: 4}, 0.2, learning.ChannelDev},
		{learning.Judgement{Channel: "dev",
			Scale: learning.DevScale, Score: 5}, 0.4, learning.ChannelDev},
	} {
		for _, target := range []answer.Target{"", answer.TargetRule, answer.TargetResponse} {
			f := test.feedback
			f.HeuristicID, f.EventID, f.Target = "h1", "e1", target
			s, err := b.InterpretJudgement(f)
			require.NoError(t, err)
			metadata := map[string]string{"original_source": f.Channel}
			if f.Scale != "" {
				metadata["scale"], metadata["score"] = f.Scale, fmt.Sprint(f.Score)
			}
			assert.Equal(t, learning.Signal{
				HeuristicID: "h1", EventID: "e1", Channel: test.source, Worth: test.worth,
				Target: target, Metadata: metadata,
			}, s)
		}
	}
}

func TestInterpretTimeout(t *testing.T) {
	request := learning.Answer{HeuristicID: "h1", EventID: "e1", Age: 31500 * time.Millisecond}
	s, err := newBayesian(t, learning.BayesianConfig{}).InterpretTimeout(request)
	require.NoError(t, err)
	assert.Equal(t, learning.Signal{
		HeuristicID: "h1", EventID: "e1", Channel: learning.ChannelTimeout, Worth: 0.4,
		Metadata: map[string]string{"elapsed_seconds": "31.5"},
	}, s, "half a click")

	quiet := learning.BayesianConfig{Weights: map[string]float64{learning.ChannelTimeout: 0}}
	s, err = newBayesian(t, quiet).InterpretTimeout(request)
	require.NoError(t, err)
	assert.Zero(t, s.Worth)
}

// TestUndoTexts says which texts are an undo by the document's letters, and by its words.
func TestUndoTexts(t *testing.T) {
	keywords := []string{"undo", "revert", "cancel", "rollback", "nevermind", "never mind"}
	letters, words := learning.SpecConfig().Strategy,
		newBayesian(t, learning.BayesianConfig{IsUndo: learning.Keywords(keywords...)})
	for _, test := range []struct {
		text           string
		letters, words bool
	}{
		{"Please undo that", true, true},
		{"undo", true, true},
		{"revert", true, true},
		{"CANCEL!", true, true},
		{"rollback", true, true},
		{"never mind", true, true},
		{"nevermind", true, true},
		{"undoubtedly", true, false},
		{"reverted", true, false},
		{"the subscription was cancelled", true, false},
		{"never  mind", false, true},
		{"(undo)", true, true},
		{"roll back", false, false},
		{"mind", false, false},
		{"hello", false, false},
	} {
		for strategy, want := range map[learning.Strategy]bool{letters: test.letters,
			words: test.words} {
			signals, err := strategy.InterpretUndo(test.text,
				[]learning.Answer{{HeuristicID: "h", EventID: "e"}})
			require.NoError(t, err)
			assert.Equal(t, want, len(signals) == 1, test.text)
			assert.Equal(t, want, strategy.IsUndo(test.text), test.text)
		}
	}
	assert.False(t, words.IsUndo(""))
	assert.False(t, letters.IsUndo(""))
}

func TestInterpretUndo(t *testing.T) {
	b := learning.UndoAll(learning.BayesianConfig{})
	fires := []learning.Answer{{HeuristicID: "h1", EventID: "e1"}, {HeuristicID: "h2", EventID: "e2"}}
	signals, err := b.InterpretUndo("Please undo that", fires)
	require.NoError(t, err)
	var want []learning.Signal
	for _, f := range fires {
		want = append(want, learning.Signal{
			HeuristicID: f.HeuristicID, EventID: f.EventID, Channel: learning.ChannelUndo, Worth: -1,
			Metadata: map[string]string{"undo_text": "Please undo that"},
		})
	}
	assert.Equal(t, want, signals)
	signals, err = newBayesian(t, learning.BayesianConfig{}).InterpretUndo("Please undo that", fires)
	require.NoError(t, err)
	assert.Equal(t, want[1:], signals, "the newest")

	signals, err = b.InterpretUndo("undo", nil)
	require.NoError(t, err)
	assert.Empty(t, signals, "there is no answer to take back")

	long := "undo that. " + strings.Repeat("é", 200)
	signals, err = b.InterpretUndo(long, fires[:1])
	require.NoError(t, err)
	assert.Equal(t, string([]rune(long)[:100]), signals[0].Metadata["undo_text"])
}

// A command takes an answer back, and a text about undoing does not.
func TestUndoByDefault(t *testing.T) {
	b := newBayesian(t, learning.BayesianConfig{})
	for text, want := range map[string]bool{
		"undo that": true, "Can you undo that?": true, "never mind": true,
		"How do I cancel my subscription?": false, "please explain git revert": false,
		"undoubtedly good": false, "don't undo it": false, "": false,
	} {
		assert.Equal(t, want, b.IsUndo(text), text)
	}
}

func TestKeywords(t *testing.T) {
	for _, test := range []struct {
		keywords []string
		text     string
		want     bool
	}{
		{[]string{"", " ", "undo", " Stop "}, "hello", false},
		{[]string{"", " ", "undo", " Stop "}, "please STOP", true},
		{[]string{"", "\t"}, "undo", false},
		{nil, "undo", false},
		{[]string{"!!"}, "hello !! there", false}, // a keyword without words is in no text
		{[]string{"取消"}, "请取消这个", true},
		{[]string{"取消"}, "取出消息", false},
		{[]string{"やめて"}, "今のはやめて", true},
	} {
		assert.Equal(t, test.want, learning.Keywords(test.keywords...)(test.text), "%q in %q",
			test.keywords, test.text)
	}
}

// TestThanks holds which texts do not ignore an answer, and which of them doubt it.
func TestThanks(t *testing.T) {
	b := newBayesian(t, learning.BayesianConfig{})
	for _, text := range []string{
		"thanks, perfect!", "Great", "super, danke", "merci beaucoup", "ありがとう", "谢谢！",
		"Muchas gracias", "👍", "❤️", "спасибо", "תודה", "شكرا", "감사합니다", "dank je", "tack!",
		"not bad, thanks!", "Not too bad. Thanks!", "不错，谢谢", "没问题，谢谢",
		"nicht schlecht, danke!", "no problem, thanks!", "no problem, not bad, thanks",
		"pas mal, merci !", "kein Problem, danke",
		"de nada, gracias", "問題ない、ありがとう", "no notes, perfect", "Perfekt, nichts zu meckern",
		"thanks, not a problem", "great breakfast tip, thanks", "Thank you", "Tack, perfekt",
		"Hej! Tack", "stort tack", "tack så mycket", "thanks, couldn't be better",
	} {
		thanks, doubt := b.IsThanks(text)
		assert.True(t, thanks && !doubt, text)
	}
	for _, text := range []string{
		"thanks, wrong again", "Oh toll. Wieder falsch.", "super, klappt wieder nich",
		"thanks I hate it", "great, another broken answer", "Great job breaking it",
		"thanks but wrong", "No, wrong. Thanks", "no thanks", "thanks for nothing",
		"nicht perfekt", "不，谢谢", "不，错了，谢谢", "спасибо, не то", "👍 but wrong",
		"Thanks 👎", "👍👎", "thanks 🙄", "thanks, still 404", "thanks, that crashed",
		"thanks, it broke", "thanks, could be better", "Nice, but it needs work",
		"danke, könnte besser sein", "merci, peut mieux faire", "gracias, podría ser mejor",
	} {
		thanks, doubt := b.IsThanks(text)
		assert.True(t, thanks && doubt, text)
	}
	for _, text := range []string{
		"Thanksgiving dinner plan", "Tack a closing line on", "Try another tack", "thank them for it",
		"is that perfect?", "", "and now the next one", "wrong again", "not bad",
		"thanks, now write me a poem about the sea and the stars above it, please",
	} {
		thanks, _ := b.IsThanks(text)
		assert.False(t, thanks, text)
	}
	for size, short := range map[int]bool{60: true, 61: false} {
		thanks, _ := b.IsThanks("thanks" + strings.Repeat("!", size-len("thanks")))
		assert.Equal(t, short, thanks, size)
	}
	thanks, _ := learning.SpecConfig().Strategy.IsThanks("thanks")
	assert.False(t, thanks)
}

func TestInterpretIgnore(t *testing.T) {
	b := newBayesian(t, learning.BayesianConfig{})
	for n, want := range map[int]float64{0: 0, 1: 0, 2: 0, 3: -0.4, 4: -0.4} {
		s, err := b.InterpretIgnore(learning.Answer{HeuristicID: "h1", EventID: "e1", Consecutive: n})
		require.NoError(t, err)
		assert.Equal(t, want, s.Worth, n)
		assert.Equal(t, learning.ChannelIgnored, s.Channel)
		assert.Equal(t, map[string]string{"consecutive_count": fmt.Sprint(n)}, s.Metadata)
		assert.Empty(t, s.EventID)
	}
}

func TestWeights(t *testing.T) {
	b := newBayesian(t, learning.BayesianConfig{
		Weights: map[string]float64{learning.ChannelUndo: 0.8, learning.ChannelIgnored: 0.3,
			learning.ChannelDev: 0.6},
		SilenceWindow: 20 * time.Minute,
	})
	magnitude := func(s learning.Signal, err error) float64 {
		require.NoError(t, err)
		return math.Abs(s.Worth)
	}
	a := learning.Answer{HeuristicID: "h", EventID: "e", Consecutive: 4}
	j := learning.Judgement{HeuristicID: "h", EventID: "e", Value: -1}
	signals, err := b.InterpretUndo("undo", []learning.Answer{a})
	assert.Equal(t, 0.8, magnitude(signals[0], err))
	assert.Equal(t, 0.3, magnitude(b.InterpretIgnore(a)))
	assert.Equal(t, 0.8, magnitude(b.InterpretJudgement(j)))
	j.Channel = learning.ChannelDev
	assert.Equal(t, 0.6, magnitude(b.InterpretJudgement(j)))
	assert.EqualValues(t, 1, magnitude(b.InterpretOutcome(a)))
	assert.Equal(t, learning.Windows{Undo: 10 * time.Minute, Ignore: 10 * time.Minute,
		Silence: 20 * time.Minute}, b.Windows("any"))
}

func TestBayesianConfig(t *testing.T) {
	b := newBayesian(t, learning.BayesianConfig{})
	settings := learning.SettingsOf(b)
	assert.Equal(t, 10*time.Minute, settings.UndoWindow)
	assert.Equal(t, 3, settings.IgnoreThreshold)
	config := b.Config()
	assert.Equal(t, "bayesian", config["strategy"])
	assert.Equal(t, "600", config["undo_window_sec"])
	assert.Equal(t, "0.8", config["explicit_magnitude"])
	assert.Equal(t, "1", config["implicit_magnitude"])
	assert.Equal(t, 30*time.Second, newBayesian(t,
		learning.BayesianConfig{UndoWindow: 2 * time.Minute}).Windows("").Silence,
		"an undo later takes its place")

	_, err := learning.NewBayesian(learning.BayesianConfig{
		UndoWindow: -1, SilenceWindow: -1, IgnoreThreshold: -1,
		Weights: map[string]float64{"a": math.Inf(1), "b": -1,
			"c": math.NaN()},
	})
	assert.Equal(t, []string{"UndoWindow", "SilenceWindow", "IgnoreThreshold", "Weights[a]",
		"Weights[b]", "Weights[c]"}, fields(err))
}

// FuzzUndo holds that a keyword is found only where its letters are, once blanks and signs are
// alike, and that what is kept of a text is its beginning.
func FuzzUndo(f *testing.F) {
	for _, seed := range [][2]string{{"undo", "please undo"}, {"never mind", "never\tmind!"},
		{"İ", "i̇"}, {"", "x"}, {"\xff", "\xff"}, {",", ","}, {"取消", "请取消"}} {
		f.Add(seed[0], seed[1])
	}
	letters := func(s string) string {
		return strings.Map(func(r rune) rune {
			if unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r) {
				return unicode.ToLower(r)
			}
			return -1
		}, s)
	}
	f.Fuzz(func(t *testing.T, keyword, text string) {
		b := newBayesian(t, learning.BayesianConfig{IsUndo: learning.Keywords(keyword)})
		if b.IsUndo(text) {
			assert.NotEmpty(t, letters(keyword))
			assert.Contains(t, letters(text), letters(keyword))
		}
		assert.Equal(t, letters(keyword) != "", b.IsUndo(keyword))
		b.IsThanks(text)
		signals, err := b.InterpretUndo(text, []learning.Answer{{HeuristicID: "h", EventID: "e"}})
		require.NoError(t, err)
		assert.Equal(t, text == "" || b.IsUndo(text), len(signals) == 1)
		for _, s := range signals {
			kept := s.Metadata["undo_text"]
			assert.True(t, strings.HasPrefix(text, kept))
			assert.Equal(t, min(utf8.RuneCountInString(text), 100), utf8.RuneCountInString(kept))
		}
	})
}
