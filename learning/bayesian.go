package learning

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/faults"
)

// BayesianConfig configures a [Bayesian]. The zero value means the defaults of the Learning Strategy Interface design.
type BayesianConfig struct {
	UndoWindow      time.Duration // how long an answer can be taken back or ignored. 0 means 30 s
	SilenceWindow   time.Duration // after how long silence is approval. 0 means 30 s
	IgnoreThreshold int           // how many ignores in a row are a negative signal. 0 means 3
	// SilenceIsNeutral makes nothing of silence.
	SilenceIsNeutral bool
	// Keywords are what makes the text of an event an undo. They are lower-cased, and blank ones dropped. nil means undo,
	// revert, cancel, rollback, nevermind and never mind; an empty slice, that no text is one.
	Keywords []string
	// WholeWords looks for the words of a keyword and not for its letters: "undo" is then in "Undo that!" but not in
	// "undoubtedly".
	WholeWords bool
	// Magnitudes are what implicit signals and thumbs are worth. The zero value means 1.0 and 0.8.
	Magnitudes Magnitudes
	// Weights are magnitudes by the source of a signal, where a source is to have one of its own. They are read
	// literally: 0 makes nothing of the source. Scores are worth what Scores says, whatever their source.
	Weights map[string]float64
	// Scores are what the scores of both scales are worth. The zero value of each means its default.
	Scores Scores
	// Domains are what is different in some domains.
	Domains map[string]Domain
}

// Magnitudes are in [0, 1e6], and not both 0. What worked is worth more than an opinion, by default.
type Magnitudes struct{ Implicit, Explicit float64 }

// Scores are what scores are worth, the lowest first: the sign is the type of the signal, and the size its magnitude. A
// score worth 0 is neutral.
type Scores struct {
	User [3]float64 // bad, meh, good. The zero value means -0.4, 0.05, 0.4
	Dev  [5]float64 // The zero value means -0.4, -0.2, 0.05, 0.2, 0.4
}

// A Domain is what differs in one domain. A zero field, and a source that is not in the map, is as everywhere else.
type Domain struct {
	UndoWindow      time.Duration
	SilenceWindow   time.Duration
	IgnoreThreshold int
	Weights         map[string]float64
}

func (c BayesianConfig) withDefaults() BayesianConfig {
	c.UndoWindow = cmp.Or(c.UndoWindow, 30*time.Second)
	c.SilenceWindow = cmp.Or(c.SilenceWindow, 30*time.Second)
	c.IgnoreThreshold = cmp.Or(c.IgnoreThreshold, 3)
	if c.Keywords == nil {
		c.Keywords = []string{"undo", "revert", "cancel", "rollback", "nevermind", "never mind"}
	}
	keywords := make([]string, 0, len(c.Keywords))
	for _, k := range c.Keywords {
		if k = strings.ToLower(strings.TrimSpace(k)); k != "" {
			keywords = append(keywords, k)
		}
	}
	c.Keywords = keywords
	c.Magnitudes = cmp.Or(c.Magnitudes, Magnitudes{Implicit: 1, Explicit: 0.8})
	c.Weights = maps.Clone(c.Weights)
	c.Scores.User = cmp.Or(c.Scores.User, [3]float64{-0.4, 0.05, 0.4})
	c.Scores.Dev = cmp.Or(c.Scores.Dev, [5]float64{-0.4, -0.2, 0.05, 0.2, 0.4})
	c.Domains = maps.Clone(c.Domains)
	for name, d := range c.Domains {
		d.Weights = maps.Clone(d.Weights)
		c.Domains[name] = d
	}
	return c
}

// Validate reports all faults, joined, each a [*heed.ConfigError].
func (c BayesianConfig) Validate() error {
	c = c.withDefaults()
	var found faults.List
	found.Check(c.UndoWindow > 0, "UndoWindow", c.UndoWindow, "must not be negative")
	found.Check(c.SilenceWindow > 0, "SilenceWindow", c.SilenceWindow, "must not be negative")
	found.Check(c.IgnoreThreshold > 0, "IgnoreThreshold", c.IgnoreThreshold, "must not be negative")
	checkMagnitude(&found, "Magnitudes.Implicit", c.Magnitudes.Implicit)
	checkMagnitude(&found, "Magnitudes.Explicit", c.Magnitudes.Explicit)
	checkWeights(&found, "Weights", c.Weights)
	checkScores(&found, "Scores.User", c.Scores.User[:])
	checkScores(&found, "Scores.Dev", c.Scores.Dev[:])
	for _, name := range slices.Sorted(maps.Keys(c.Domains)) {
		d, field := c.Domains[name], "Domains["+name+"]"
		found.Check(d.UndoWindow >= 0, field+".UndoWindow", d.UndoWindow, "must not be negative")
		found.Check(d.SilenceWindow >= 0, field+".SilenceWindow", d.SilenceWindow, "must not be negative")
		found.Check(d.IgnoreThreshold >= 0, field+".IgnoreThreshold", d.IgnoreThreshold, "must not be negative")
		checkWeights(&found, field+".Weights", d.Weights)
	}
	return found.Err()
}

func checkMagnitude(found *faults.List, field string, x float64) {
	found.Check(x >= 0 && x <= evidence.MaxWeight, field, x, "must be in [0, 1e6]")
}

func checkWeights(found *faults.List, field string, weights map[string]float64) {
	for _, source := range slices.Sorted(maps.Keys(weights)) {
		checkMagnitude(found, field+"["+source+"]", weights[source])
	}
}

func checkScores(found *faults.List, field string, scores []float64) {
	ok := slices.IsSorted(scores)
	for _, x := range scores {
		ok = ok && x >= -evidence.MaxWeight && x <= evidence.MaxWeight
	}
	found.Check(ok, field, scores, "must be finite and must not fall")
}

// Bayesian is the strategy of the Learning Strategy Interface design: no news is good news, an undo is bad news, and so
// are three ignores in a row. It is immutable, and safe for concurrent use.
type Bayesian struct{ cfg BayesianConfig }

var (
	_ Strategy           = (*Bayesian)(nil)
	_ OutcomeInterpreter = (*Bayesian)(nil)
	_ UndoRecognizer     = (*Bayesian)(nil)
)

// NewBayesian returns the strategy, or all faults of its configuration, joined.
func NewBayesian(cfg BayesianConfig) (*Bayesian, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("learning: bayesian: %w", err)
	}
	return &Bayesian{cfg.withDefaults()}, nil
}

// Settings returns the configuration in force.
func (b *Bayesian) Settings() BayesianConfig { return b.cfg.withDefaults() }

// InterpretJudgement implements [Strategy]. The source of the signal is [ChannelDev] where the feedback's is, and else
// [ChannelExplicit], with the caller's as "original_source" in the metadata.
func (b *Bayesian) InterpretJudgement(f Judgement) (Signal, error) {
	if err := f.Validate(); err != nil {
		return Signal{}, err
	}
	source := ChannelExplicit
	if f.Channel == ChannelDev {
		source = ChannelDev
	}
	s := Signal{HeuristicID: f.HeuristicID, EventID: f.EventID, Channel: source, Target: f.Target}
	s.Metadata = map[string]string{"original_source": f.Channel}
	var worth float64
	switch f.Scale {
	case UserScale:
		worth = b.cfg.Scores.User[f.Score-1]
	case DevScale:
		worth = b.cfg.Scores.Dev[f.Score-1]
	default:
		s.Type, s.Magnitude = Negative, b.weight(f.Domain, source, b.cfg.Magnitudes.Explicit)
		if f.Positive {
			s.Type = Positive
		}
		return s, nil
	}
	s.Metadata["scale"], s.Metadata["score"] = string(f.Scale), strconv.Itoa(f.Score)
	switch {
	case worth > 0:
		s.Type, s.Magnitude = Positive, worth
	case worth < 0:
		s.Type, s.Magnitude = Negative, -worth
	default:
		s.Type = Neutral
	}
	return s, nil
}

// InterpretTimeout implements [Strategy].
func (b *Bayesian) InterpretTimeout(t Timeout) (Signal, error) {
	s := b.implicit(Positive, t.HeuristicID, t.EventID, t.Domain, ChannelTimeout)
	if b.cfg.SilenceIsNeutral {
		s.Type, s.Magnitude = Neutral, 0
	}
	s.Metadata = map[string]string{"elapsed_seconds": number(t.Elapsed.Seconds())}
	return s, nil
}

// maxUndoText is how many characters of an undo's text are kept in the metadata of its signals.
const maxUndoText = 100

// InterpretUndo implements [Strategy]. All recent fires are taken back.
func (b *Bayesian) InterpretUndo(u Undo) ([]Signal, error) {
	if len(u.Fires) == 0 || !b.IsUndo(u.Text) {
		return nil, nil
	}
	kept := cut(u.Text, maxUndoText)
	signals := make([]Signal, len(u.Fires))
	for i, f := range u.Fires {
		signals[i] = b.implicit(Negative, f.HeuristicID, f.EventID, f.Domain, ChannelUndo)
		signals[i].Metadata = map[string]string{"undo_text": kept}
	}
	return signals, nil
}

// InterpretIgnore implements [Strategy]. The signal is of no event in particular.
func (b *Bayesian) InterpretIgnore(i Ignore) (Signal, error) {
	s := NewSignal(Neutral, i.HeuristicID, "", ChannelIgnored)
	s.Magnitude = 0
	if i.Consecutive >= cmp.Or(b.cfg.Domains[i.Domain].IgnoreThreshold, b.cfg.IgnoreThreshold) {
		s = b.implicit(Negative, i.HeuristicID, "", i.Domain, ChannelIgnored)
	}
	s.Metadata = map[string]string{"consecutive_count": strconv.Itoa(i.Consecutive)}
	return s, nil
}

// InterpretOutcome implements [OutcomeInterpreter].
func (b *Bayesian) InterpretOutcome(o Outcome) (Signal, error) {
	t := Negative
	if o.Success {
		t = Positive
	}
	return b.implicit(t, o.HeuristicID, o.EventID, o.Domain, ChannelOutcome), nil
}

// Windows implements [Strategy].
func (b *Bayesian) Windows(domain string) Windows {
	d := b.cfg.Domains[domain]
	return Windows{Undo: cmp.Or(d.UndoWindow, b.cfg.UndoWindow), Silence: cmp.Or(d.SilenceWindow, b.cfg.SilenceWindow)}
}

// Config implements [Strategy].
func (b *Bayesian) Config() map[string]string {
	c := b.cfg
	return map[string]string{
		"strategy":             StrategyBayesian,
		"undo_window_sec":      number(c.UndoWindow.Seconds()),
		"silence_window_sec":   number(c.SilenceWindow.Seconds()),
		"silence_is_neutral":   strconv.FormatBool(c.SilenceIsNeutral),
		"ignored_threshold":    strconv.Itoa(c.IgnoreThreshold),
		"undo_keywords":        strings.Join(c.Keywords, ","),
		"undo_whole_words":     strconv.FormatBool(c.WholeWords),
		"implicit_magnitude":   number(c.Magnitudes.Implicit),
		"explicit_magnitude":   number(c.Magnitudes.Explicit),
		"weights":              fmt.Sprint(c.Weights), // fmt sorts the keys of maps
		"user_scores":          fmt.Sprint(c.Scores.User),
		"dev_scores":           fmt.Sprint(c.Scores.Dev),
		"domains_with_changes": strings.Join(slices.Sorted(maps.Keys(c.Domains)), ","),
	}
}

func number(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

func (b *Bayesian) implicit(t SignalType, heuristicID, eventID, domain, source string) Signal {
	s := NewSignal(t, heuristicID, eventID, source)
	s.Magnitude = b.weight(domain, source, b.cfg.Magnitudes.Implicit)
	return s
}

// weight returns what a source is worth in a domain.
func (b *Bayesian) weight(domain, source string, otherwise float64) float64 {
	for _, weights := range [...]map[string]float64{b.cfg.Domains[domain].Weights, b.cfg.Weights} {
		if weight, ok := weights[source]; ok {
			return weight
		}
	}
	return otherwise
}

// IsUndo implements [UndoRecognizer]: it reports whether a keyword is in the text.
func (b *Bayesian) IsUndo(text string) bool {
	text = strings.ToLower(text)
	if b.cfg.WholeWords {
		text = words(text)
	}
	return slices.ContainsFunc(b.cfg.Keywords, func(keyword string) bool {
		if !b.cfg.WholeWords {
			return strings.Contains(text, keyword)
		}
		keyword = words(keyword)
		return keyword != " " && strings.Contains(text, keyword)
	})
}

// words returns the words of a text with one blank before, between and after them.
func words(text string) string {
	all := strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r) })
	if len(all) == 0 {
		return " "
	}
	return " " + strings.Join(all, " ") + " "
}

// cut returns the first so many characters of a text.
func cut(text string, most int) string {
	for i := range text {
		if most == 0 {
			return text[:i]
		}
		most--
	}
	return text
}
