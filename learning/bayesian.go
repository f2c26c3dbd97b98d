package learning

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/learning/internal/undo"
)

// BayesianConfig configures the strategy of [NewBayesian]. The zero value means the defaults. For
// another rule than a number here, for example windows by domain, embed the strategy and override
// its method.
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
	// Weights are magnitudes by channel, where one differs, each in [0, 1e6]. By default a judgement
	// of 1 or -1 is 0.8 ([ChannelExplicit], [ChannelDev]). An undo ([ChannelUndo]) and an expectation
	// that came true or not ([ChannelOutcome]) are 1, because what a user does is worth more than
	// what a user states. What a host reports of itself ([ChannelReported]) is 0.8. Silence
	// ([ChannelTimeout]) and being ignored ([ChannelIgnored]) are 0.4, half a click, because the user
	// may not have looked. 0 switches a channel off: set ChannelTimeout to 0 if silence is no
	// approval. Lower ChannelUndo if your users often undo right answers, for example to try another
	// one. nil means the defaults.
	Weights map[string]float64
}

func (c BayesianConfig) withDefaults() BayesianConfig {
	c.UndoWindow = cmp.Or(c.UndoWindow, 10*time.Minute)
	c.SilenceWindow = cmp.Or(c.SilenceWindow, specWindow)
	c.IgnoreThreshold = cmp.Or(c.IgnoreThreshold, 3)
	if c.IsUndo == nil {
		c.IsUndo = undo.Command
	}
	c.Weights = maps.Clone(c.Weights)
	return c
}

// validate reports all faults of a configuration with its defaults.
func (c *BayesianConfig) validate() error {
	var found valid.Faults
	found.Check(c.UndoWindow >= 0, "UndoWindow", c.UndoWindow, "must not be negative")
	found.Check(c.SilenceWindow >= 0, "SilenceWindow", c.SilenceWindow, "must not be negative")
	found.Check(c.IgnoreThreshold >= 0, "IgnoreThreshold", c.IgnoreThreshold, "must not be negative")
	for _, channel := range slices.Sorted(maps.Keys(c.Weights)) {
		weight := c.Weights[channel]
		found.Check(isMagnitude(weight), "Weights["+channel+"]", weight, notMagnitude)
	}
	return found.Err()
}

const notMagnitude = "must be in [0, 1e6]"

func isMagnitude(x float64) bool { return x >= 0 && x <= evidence.MaxWeight }

// The worth of scores, the lowest score first: negative ones lower the confidence. The middle one
// is weak approval, because a user who is not content rarely takes the trouble to score.
var (
	userScores = [...]float64{-0.4, 0.05, 0.4}
	devScores  = [...]float64{-0.4, -0.2, 0.05, 0.2, 0.4}
)

// bayesian is immutable.
type bayesian struct {
	cfg BayesianConfig
	// spec makes a text take back all open answers of its session, and no text thanks, as in the
	// design. By default a text takes back the answers to the newest event.
	spec bool
}

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
	return &bayesian{cfg: cfg}, nil
}

// InterpretJudgement returns a signal of the sign of the judgement. It is worth the value
// times what the channel is worth, or else what the score is worth.
func (b *bayesian) InterpretJudgement(j Judgement) (Signal, error) {
	if err := j.Validate(); err != nil {
		return Signal{}, err
	}
	channel, most := ChannelExplicit, float64(defaultJudgement)
	switch j.Channel {
	case ChannelDev:
		channel = ChannelDev
	case ChannelReported: // worth what a user's word is, unless it has a weight
		channel, most = ChannelReported, b.weight(ChannelExplicit, most)
	}
	s := Signal{
		HeuristicID: j.HeuristicID, EventID: j.EventID, Channel: channel, Target: j.Target,
		Metadata: map[string]string{"original_source": j.Channel},
	}
	switch j.Scale {
	case UserScale:
		s.Worth = userScores[j.Score-1]
	case DevScale:
		s.Worth = devScores[j.Score-1]
	default:
		s.Worth = j.Value * b.weight(channel, most)
	}
	if j.Scale != "" {
		s.Metadata["scale"], s.Metadata["score"] = j.Scale, strconv.Itoa(j.Score)
	}
	return s, nil
}

// InterpretTimeout returns weak approval, because silence may mean that the user did not look.
func (b *bayesian) InterpretTimeout(a Answer) (Signal, error) {
	s := b.implicit(a, ChannelTimeout, defaultSilence, 1)
	s.Metadata = map[string]string{"elapsed_seconds": number(a.Age.Seconds())}
	return s, nil
}

// InterpretUndo returns a rejection of each answer to the newest event, because "undo that" means
// what happened last.
func (b *bayesian) InterpretUndo(text string, answers []Answer) ([]Signal, error) {
	if len(answers) == 0 || text != "" && !b.IsUndo(text) {
		return nil, nil
	}
	kept, newest := fmt.Sprintf("%.100s", text), answers[len(answers)-1].EventID
	var signals []Signal
	for _, a := range answers {
		if a.EventID != newest && !b.spec {
			continue
		}
		s := b.implicit(a, ChannelUndo, defaultDeed, -1)
		s.Metadata = map[string]string{"undo_text": kept}
		signals = append(signals, s)
	}
	return signals, nil
}

// InterpretIgnore returns a rejection from the IgnoreThreshold-th ignore in a row on, and a neutral
// signal before. It is about no event in particular.
func (b *bayesian) InterpretIgnore(a Answer) (Signal, error) {
	a.EventID = ""
	s := b.implicit(a, ChannelIgnored, defaultIgnore, -1)
	if a.Consecutive < b.cfg.IgnoreThreshold {
		s.Worth = 0
	}
	s.Metadata = map[string]string{"consecutive_count": strconv.Itoa(a.Consecutive)}
	return s, nil
}

// InterpretOutcome returns approval or rejection, with the magnitude of what a user does.
func (b *bayesian) InterpretOutcome(a Answer) (Signal, error) {
	sign := -1.
	if a.Success {
		sign = 1
	}
	return b.implicit(a, ChannelOutcome, defaultDeed, sign), nil
}

// Windows returns the same windows for every domain. An answer can't be ignored after its silence
// was counted.
func (b *bayesian) Windows(string) Windows {
	undo, silence := b.cfg.UndoWindow, b.cfg.SilenceWindow
	return Windows{Undo: undo, Ignore: min(undo, silence), Silence: silence}
}

// Config returns the settings for logs. Durations are in seconds.
func (b *bayesian) Config() map[string]string {
	c := b.cfg
	return map[string]string{
		"strategy":           "bayesian",
		"undo_window_sec":    number(c.UndoWindow.Seconds()),
		"silence_window_sec": number(c.SilenceWindow.Seconds()),
		"ignored_threshold":  strconv.Itoa(c.IgnoreThreshold),
		"implicit_magnitude": number(b.weight(ChannelUndo, defaultDeed)),
		"explicit_magnitude": number(b.weight(ChannelExplicit, defaultJudgement)),
		"weights":            fmt.Sprint(c.Weights), // fmt sorts the keys of maps
	}
}

func number(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

func (b *bayesian) implicit(a Answer, channel string, magnitude, sign float64) Signal {
	return Signal{HeuristicID: a.HeuristicID, EventID: a.EventID, Channel: channel,
		Worth: sign * b.weight(channel, magnitude)}
}

// weight returns what a channel is worth.
func (b *bayesian) weight(channel string, otherwise float64) float64 {
	if weight, ok := b.cfg.Weights[channel]; ok {
		return weight
	}
	return otherwise
}

func (b *bayesian) IsUndo(text string) bool { return b.cfg.IsUndo(text) }
