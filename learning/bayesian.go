package learning

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/learning/internal/undo"
)

// BayesianConfig configures the strategy of [NewBayesian]. The zero value means the defaults.
type BayesianConfig struct {
	// UndoWindow is how long a message can take an answer back. 0 means 10 minutes. Raise it if
	// people notice later that an answer was wrong.
	UndoWindow time.Duration
	// SilenceWindow is the time after which silence is approval. 0 means 30 s. An answer can be
	// ignored until either window ends. Raise it to the time within which your users would complain.
	SilenceWindow time.Duration
	// IgnoreThreshold is the number of ignores in a row that is a negative signal. 0 means 3. Raise
	// it if users often continue without looking at an answer.
	IgnoreThreshold int
	// IsUndo reports whether a text is a command to take the last answer back. nil means heed's
	// reader, which recognises such commands in eight languages and distinguishes them from
	// questions, quotations and tasks about undoing. [Keywords] makes one of words. It may be asked
	// several times about one message. Set it for other languages.
	IsUndo func(text string) bool
	// UndoAll makes a text take back all open answers of its session. By default it takes back those
	// to the newest event. Set it if the answers of a session are one piece of work.
	UndoAll bool
	// IsThanks reports whether a text is thanks or praise for an answer. nil means a short text with
	// such a word, in eight languages. Set it for other languages.
	IsThanks func(text string) bool
	// Explicit is the magnitude of a value of 1 or -1, in [0, 1e6]. 0 means 0.8. Implicit is the
	// magnitude of an undo and of an outcome; 0 means 1: by default, what a user does is worth more
	// than what a user states. Silence is weak evidence, because the user may not have looked; 0
	// means 0.4, half a click. So is an ignore; 0 means 0.4. Raise Explicit if your users' judgements
	// are well considered. Set Silence lower if few users look at answers.
	Explicit, Implicit, Silence, Ignore float64
	// Weights are magnitudes by channel, where one differs. 0 switches the channel off: set
	// [ChannelTimeout] to 0 if silence is no approval.
	Weights map[string]float64
	// UserScores and DevScores are what scores are worth, the lowest score first. A positive score
	// raises the confidence, a negative one lowers it, and 0 is neutral. The zero values mean -0.4,
	// 0.05, 0.4 and -0.4, -0.2, 0.05, 0.2, 0.4. Set them if your scale has another neutral point.
	UserScores [3]float64
	DevScores  [5]float64
	// Domains are the windows of some domains. nil: no domain differs. Set one if the effects of its
	// answers show much later, for example in an hour.
	Domains map[string]Domain
}

// A Domain holds the windows of one domain. 0 means the window of [BayesianConfig].
type Domain struct{ UndoWindow, SilenceWindow time.Duration }

func (c BayesianConfig) withDefaults() BayesianConfig {
	c.UndoWindow, c.SilenceWindow = cmp.Or(c.UndoWindow, 10*time.Minute),
		cmp.Or(c.SilenceWindow, specWindow)
	c.IgnoreThreshold = cmp.Or(c.IgnoreThreshold, 3)
	if c.IsUndo == nil {
		c.IsUndo = undo.Command
	}
	if c.IsThanks == nil {
		c.IsThanks = isThanks
	}
	c.Implicit, c.Explicit = cmp.Or(c.Implicit, 1), cmp.Or(c.Explicit, 0.8)
	c.Silence, c.Ignore = cmp.Or(c.Silence, defaultSilence), cmp.Or(c.Ignore, defaultIgnore)
	c.Weights = maps.Clone(c.Weights)
	c.UserScores = cmp.Or(c.UserScores, [3]float64{-0.4, 0.05, 0.4})
	c.DevScores = cmp.Or(c.DevScores, [5]float64{-0.4, -0.2, 0.05, 0.2, 0.4})
	c.Domains = maps.Clone(c.Domains)
	return c
}

// validate reports all faults of a configuration with its defaults.
func (c *BayesianConfig) validate() error {
	var found valid.Faults
	windows := func(prefix string, undo, silence time.Duration) {
		found.Check(undo >= 0, prefix+"UndoWindow", undo, "must not be negative")
		found.Check(silence >= 0, prefix+"SilenceWindow", silence, "must not be negative")
	}
	windows("", c.UndoWindow, c.SilenceWindow)
	found.Check(c.IgnoreThreshold >= 0, "IgnoreThreshold", c.IgnoreThreshold, "must not be negative")
	for _, channel := range slices.Sorted(maps.Keys(c.Weights)) {
		weight := c.Weights[channel]
		found.Check(isMagnitude(weight), "Weights["+channel+"]", weight, notMagnitude)
	}
	found.Check(isMagnitude(c.Implicit), "Implicit", c.Implicit, notMagnitude)
	found.Check(isMagnitude(c.Explicit), "Explicit", c.Explicit, notMagnitude)
	found.Check(isMagnitude(c.Silence), "Silence", c.Silence, notMagnitude)
	found.Check(isMagnitude(c.Ignore), "Ignore", c.Ignore, notMagnitude)
	found.Check(areScores(c.UserScores[:]), "UserScores", c.UserScores, notScores)
	found.Check(areScores(c.DevScores[:]), "DevScores", c.DevScores, notScores)
	for _, name := range slices.Sorted(maps.Keys(c.Domains)) {
		d := c.Domains[name]
		windows("Domains["+name+"].", d.UndoWindow, d.SilenceWindow)
	}
	return found.Err()
}

const (
	notMagnitude = "must be in [0, 1e6]"
	notScores    = "must be in [-1e6, 1e6], and must not fall"
)

func isMagnitude(x float64) bool { return x >= 0 && x <= evidence.MaxWeight }

func areScores(scores []float64) bool {
	return slices.IsSorted(scores) && !slices.ContainsFunc(scores,
		func(x float64) bool { return !isMagnitude(max(x, -x)) })
}

// bayesian is immutable.
type bayesian struct{ cfg BayesianConfig }

// NewBayesian returns the strategy of the Learning Strategy Interface design: silence is weak
// approval, an undo is rejection, and so are, weakly, three ignores in a row. A configuration that
// is not valid is all its faults, joined, each a [*heed.ConfigError].
//
// The metadata of its signals have "original_source", the channel of the judgement; "scale" and
// "score"; "elapsed_seconds"; "undo_text", at most 100 characters; or "consecutive_count".
func NewBayesian(cfg BayesianConfig) (Strategy, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("learning: bayesian: %w", err)
	}
	return &bayesian{cfg}, nil
}

func (b *bayesian) InterpretJudgement(j Judgement) (Signal, error) {
	if err := j.Validate(); err != nil {
		return Signal{}, err
	}
	channel, most := ChannelExplicit, b.cfg.Explicit
	switch j.Channel {
	case ChannelDev:
		channel = ChannelDev
	case ChannelReported: // worth what a user's word is, unless it has a weight
		channel, most = ChannelReported, b.weight(ChannelExplicit, most)
	}
	s := NewSignal(Neutral, j.HeuristicID, j.EventID, channel)
	s.Target, s.Metadata = j.Target, map[string]string{"original_source": j.Channel}
	var worth float64
	switch j.Scale {
	case UserScale:
		worth = b.cfg.UserScores[j.Score-1]
	case DevScale:
		worth = b.cfg.DevScores[j.Score-1]
	default:
		worth = j.Value * b.weight(channel, most)
	}
	if j.Scale != "" {
		s.Metadata["scale"], s.Metadata["score"] = string(j.Scale), strconv.Itoa(j.Score)
	}
	switch s.Magnitude = max(worth, -worth); {
	case worth > 0:
		s.Type = Positive
	case worth < 0:
		s.Type = Negative
	}
	return s, nil
}

func (b *bayesian) InterpretTimeout(a Answer) (Signal, error) {
	s := b.implicit(Positive, a, ChannelTimeout, b.cfg.Silence)
	s.Metadata = map[string]string{"elapsed_seconds": number(a.Age.Seconds())}
	return s, nil
}

func (b *bayesian) InterpretUndo(text string, answers []Answer) ([]Signal, error) {
	if len(answers) == 0 || text != "" && !b.IsUndo(text) {
		return nil, nil
	}
	kept, newest := cut(text, 100), answers[len(answers)-1].EventID
	var signals []Signal
	for _, a := range answers {
		if a.EventID != newest && !b.cfg.UndoAll {
			continue
		}
		s := b.implicit(Negative, a, ChannelUndo, b.cfg.Implicit)
		s.Metadata = map[string]string{"undo_text": kept}
		signals = append(signals, s)
	}
	return signals, nil
}

// InterpretIgnore returns a signal about no event in particular.
func (b *bayesian) InterpretIgnore(a Answer) (Signal, error) {
	a.EventID = ""
	s := b.implicit(Negative, a, ChannelIgnored, b.cfg.Ignore)
	if a.Consecutive < b.cfg.IgnoreThreshold {
		s.Type, s.Magnitude = Neutral, 0
	}
	s.Metadata = map[string]string{"consecutive_count": strconv.Itoa(a.Consecutive)}
	return s, nil
}

func (b *bayesian) InterpretOutcome(a Answer) (Signal, error) {
	if a.Success {
		return b.implicit(Positive, a, ChannelOutcome, b.cfg.Implicit), nil
	}
	return b.implicit(Negative, a, ChannelOutcome, b.cfg.Implicit), nil
}

func (b *bayesian) Windows(domain string) Windows {
	d := b.cfg.Domains[domain]
	undo, silence := cmp.Or(d.UndoWindow, b.cfg.UndoWindow),
		cmp.Or(d.SilenceWindow, b.cfg.SilenceWindow)
	return Windows{Undo: undo, Ignore: min(undo, silence), Silence: silence}
}

func (b *bayesian) Config() map[string]string {
	c := b.cfg
	return map[string]string{
		"strategy":             "bayesian",
		"undo_window_sec":      number(c.UndoWindow.Seconds()),
		"silence_window_sec":   number(c.SilenceWindow.Seconds()),
		"undo_all":             strconv.FormatBool(c.UndoAll),
		"ignored_threshold":    strconv.Itoa(c.IgnoreThreshold),
		"silence_magnitude":    number(c.Silence),
		"ignore_magnitude":     number(c.Ignore),
		"implicit_magnitude":   number(c.Implicit),
		"explicit_magnitude":   number(c.Explicit),
		"weights":              fmt.Sprint(c.Weights), // fmt sorts the keys of maps
		"user_scores":          fmt.Sprint(c.UserScores),
		"dev_scores":           fmt.Sprint(c.DevScores),
		"domains_with_changes": strings.Join(slices.Sorted(maps.Keys(c.Domains)), ","),
	}
}

func number(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

func (b *bayesian) implicit(t SignalType, a Answer, channel string, magnitude float64) Signal {
	s := NewSignal(t, a.HeuristicID, a.EventID, channel)
	s.Magnitude = b.weight(channel, magnitude)
	return s
}

// weight returns what a channel is worth.
func (b *bayesian) weight(channel string, otherwise float64) float64 {
	if weight, ok := b.cfg.Weights[channel]; ok {
		return weight
	}
	return otherwise
}

func (b *bayesian) IsUndo(text string) bool { return b.cfg.IsUndo(text) }

func (b *bayesian) IsThanks(text string) bool { return b.cfg.IsThanks(text) }

// cut returns the first characters of a text.
func cut(text string, most int) string {
	for i := range text {
		if most == 0 {
			return text[:i]
		}
		most--
	}
	return text
}
