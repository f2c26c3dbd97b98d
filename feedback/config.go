package feedback

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/settings"
	"github.com/heedhq/heed/internal/text"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/store"
)

// Config configures a [Service]. Store must be set; every other field has a default.
type Config struct {
	// Store keeps everything. Services of several processes may share one: they share feedback,
	// rules, and the settings that are numbers. If those differ from the stored ones, New stores its
	// own numbers, and the audit log contains an entry: also when the quorum is lowered. Use the
	// store of the rest of heed, because then a correction and what it says about an answer are one
	// commit.
	Store store.Store
	// Similarity measures how alike corrections are. nil means [heed.Trigrams]. If it is a
	// [heed.Embedder], the latest 10,000 vectors are remembered, and it is called for at most 100
	// texts at once. Set an embedder if reviewers say the same in their own words, because trigrams
	// only find repetitions. What it brings together waits for [Service.Flush] and carries a warning,
	// because embedders rank opposites high as well.
	Similarity heed.Similarity
	// Threshold is the similarity from which on texts are alike, in (0, 1]. 0 means 0.4 for
	// [heed.Trigrams] and 0.8 for others. It belongs to Similarity, so the store does not keep it.
	// Raise it if corrections with different meanings are joined, lower it if repetitions are missed.
	Threshold float64
	// Evaluator classifies a feedback, for example by asking a model: see package modeleval. It is
	// asked about corrections whose text can be compared. It is not asked about approvals, which are
	// "positive", nor about the correction of an output that was approved unchanged, which is
	// [Ambiguous]. It decides whether the feedback contradicts what its words seem to contradict: see
	// [Case].Opposing. One goroutine of each [Service] calls it at a time, without a lock that others
	// wait for. It must return when the context is done. Its error, an answer that is not valid and a
	// panic leave the feedback unclassified, with the reason, to be evaluated again after a growing
	// pause: see [Unanswered]. nil counts corrections and reviewers: enough of either make
	// [GeneralizableHigh], two corrections [GeneralizableLow], one an [EdgeCase]. Set it, for example
	// to modeleval.New, if reviewers use their own words: it finds paraphrases and opposites that
	// words don't show.
	Evaluator func(ctx context.Context, c Case) (Evaluation, error)
	// Drafter words the rule of a cluster, the oldest of its feedback first. Agents and Action of the
	// draft may be left empty: they are then taken from the evidence. Many goroutines call it at the
	// same time, without a lock that others wait for. It must return when the context is done. Its
	// error, an answer that is not valid, and a panic leave the cluster without a proposal until the
	// next [Service.Flush]. nil takes the text that is most like the others, word for word. Set it if
	// reviewers' own words are not fit for a prompt, because they are long or about one case.
	Drafter func(ctx context.Context, cluster []Feedback) (Draft, error)

	// Agents are all agents that there are. Empty: any name is an agent. Set it to refuse misspelt
	// names.
	Agents []string

	// Gate sets who must approve a rule. The zero value needs two people, one of whom gave no
	// evidence for it.
	Gate Gate

	// Authorize returns nil if a person may do something, and otherwise an error with the reason. It
	// is called outside of locks, by many goroutines at the same time, and must return when the
	// context is done. A panic is a refusal. nil permits everything. Set it if not everybody may
	// decide.
	Authorize func(ctx context.Context, act Act) error
	// Redact gets each summary, comment and tag first, and returns what may be kept. nil keeps all.
	// Set it if comments may have what must not be stored.
	Redact func(text string) string
	// Observer is called for what happens: proposals that wait, rules that begin or end,
	// contradictions, failures of a sweep. nil switches it off. Set it to tell approvers that
	// something waits.
	Observer heed.Observer
	// Now is the clock. It sets when proposals expire and what is measured. nil means time.Now. Set
	// it in tests.
	Now func() time.Time
	// NewID makes the ids of proposals and audit entries. nil means random UUIDs. Many goroutines
	// call it at the same time. Set it in tests that compare ids.
	NewID func() string

	// window is how many of an agent's latest decisions a new one is compared with: 1,000. Tests of
	// the package have a smaller one.
	window int
}

// SpecConfig returns the defaults of the Adaptive Feedback Learning design where heed's differ:
// texts are alike from 0.8 on, whatever measures them. Set Store before use, and Similarity to a
// [heed.Embedder], which the design asks for.
func SpecConfig() Config { return Config{Threshold: 0.8} }

// component is the name of the settings in a store, and in the audit log where they change.
const component = "feedback"

// setting fills in a default and returns the setting for the store.
func setting(name string, value *int, standard int) settings.Field {
	*value = cmp.Or(*value, standard)
	return settings.Field{Name: name, Value: value}
}

// complete sets everything that is not set, and returns the settings that the store keeps.
func (c *Config) complete() settings.Component {
	if c.Similarity == nil {
		c.Similarity = heed.Trigrams{}
	}
	threshold := 0.8
	if wording(c.Similarity) {
		threshold = 0.4
	}
	c.Threshold = cmp.Or(c.Threshold, threshold)
	c.Agents, c.window = slices.Clone(c.Agents), cmp.Or(c.window, 1000)
	if c.Drafter == nil {
		c.Drafter = representative
	}
	if c.Now == nil {
		c.Now = time.Now //nolint:forbidigo // the default clock of a host that sets no clock
	}
	if c.NewID == nil {
		c.NewID = uuid.NewString
	}
	g := &c.Gate
	return settings.Component{Name: component, Fields: []settings.Field{
		setting("gate.quorum", &g.Quorum, 2), setting("gate.outsiders", &g.Outsiders, 1),
		setting("gate.pending", &g.Pending, 200),
	}}
}

// validate reports all faults of a complete configuration.
func (c *Config) validate() error {
	var found valid.Faults
	found.Check(c.Store != nil, "Store", nil, "must be set")
	for i, agent := range c.Agents {
		found.Check(agent != "" && evidence.CheckText("", agent) == nil, fmt.Sprintf("Agents[%d]", i),
			agent, "must be text that a store can keep, not empty")
	}
	g := c.Gate
	const share = "must be in (0, 1], or 0 for the default"
	found.Check(c.Threshold > 0 && c.Threshold <= 1, "Threshold", c.Threshold, share)
	found.Check(g.Pending > 0, "Gate.Pending", g.Pending, "must not be negative")
	found.Check(g.Quorum >= 1 && g.Quorum <= 10, "Gate.Quorum", g.Quorum,
		"must be from 1 to 10, or 0 for the default")
	found.Check(g.Outsiders >= 1 && g.Outsiders <= g.Quorum, "Gate.Outsiders", g.Outsiders,
		"must be from 1 to Quorum, or 0 for the default")
	return found.Err()
}

// canonicalID brings a person's id into the one form in which it is compared, so that two spellings
// are not two people, or refuses it: see [Feedback].Reviewer.
func canonicalID(id string) (string, error) {
	switch {
	case id == "":
		return "", errors.New("must not be empty")
	case len(id) > evidence.MaxText:
		return "", fmt.Errorf("is %d bytes long, may be %d", len(id), evidence.MaxText)
	}
	return text.CanonicalName(id)
}

// person returns the canonical form of an id, or what speaks against it. Every id from outside
// passes through it before it is compared or stored.
func person(field, id string) (canonical string, err error) {
	if canonical, err = canonicalID(id); err != nil {
		return "", fmt.Errorf("%w: %s", valid.Input(field, "can't be the name of a person"),
			err.Error())
	}
	return canonical, valid.Names(evidence.MaxText, field, canonical)
}
