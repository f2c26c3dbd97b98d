package strategy

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/settings"
	"github.com/heedhq/heed/store"
)

// component begins the names of learners among all that has settings in a store.
const component = "strategy/"

// settings returns the learner's settings, to be kept in the store. They point into its
// configuration. HalfLife is Fixed, because the stored sums were faded by it: another value needs a
// Rebuild. All others may change with the next New. What a field leaves out, such as Cache,
// concerns one process only.
func (l *Learner) settings(pooling *storedPooling) settings.Component {
	c := &l.cfg
	return settings.Component{Name: component + c.Name, Fields: []settings.Field{
		{Name: "HalfLife", Value: &c.HalfLife, Set: c.HalfLife != 0, Fixed: true},
		{Name: "Answers", Value: &c.Answers},
		{Name: "Arms", Value: &c.Arms},
		{Name: "Default", Value: &c.Default},
		{Name: "Prior", Value: &c.Prior},
		{Name: "Pooling", Value: pooling},
		{Name: "Exploration", Value: &c.Exploration},
		{Name: "Trust", Value: &c.Trust},
		{Name: "MinConfidence", Value: &c.MinConfidence},
		{Name: "Disabled", Value: &c.Disabled},
		{Name: "Unrecorded", Value: &c.Unrecorded},
		{Name: "Shared", Value: &c.Shared},
	}}
}

// storedPooling is a pooling as it is stored. For one of the host's own, only the type is stored. A
// tool that opens the learner can then make the poolings of this package again, and needs the
// host's own from its caller.
type storedPooling struct {
	Type  string          `json:"type"`
	Value json.RawMessage `json:"value,omitempty"`
}

func storePooling(p Pooling) *storedPooling {
	stored := &storedPooling{Type: fmt.Sprintf("%T", p)}
	switch p.(type) {
	case TwoLevel, Copy, Alone:
		stored.Value, _ = json.Marshal(p) // it has no other fields than finite numbers
	}
	return stored
}

// pooling returns the pooling that was stored, and nil for one of the host's own.
func (s *storedPooling) pooling() (Pooling, error) {
	var copied Copy
	switch s.Type {
	case fmt.Sprintf("%T", TwoLevel{}):
		return TwoLevel{}, nil
	case fmt.Sprintf("%T", Alone{}):
		return Alone{}, nil
	case fmt.Sprintf("%T", copied):
		err := json.Unmarshal(s.Value, &copied)
		return copied, err
	}
	return nil, nil
}

// history is how many outcomes of a cell a store keeps by default. An outcome can be taken back as
// long as it is among them.
const history = 10_000

// declare declares how the records of a learner are kept. A kind must be declared before records of
// it are written. Declaring it again has no effect.
func (l *Learner) declare(ctx context.Context) error {
	kinds := []store.Kind{store.Audit, {Name: l.kinds.arm, History: history},
		{Name: l.kinds.parameter, History: history}}
	if !l.cfg.Unrecorded {
		kinds = append(kinds, l.answers.Kind, sessions.Kind)
	}
	if l.cfg.Topic != "" {
		kinds = append(kinds, outbox)
	}
	if l.shared != nil {
		kinds = append(kinds, l.shared.rows.Kind)
	}
	return l.cfg.Store.Declare(ctx, kinds...)
}

// open reconciles the learner's settings with the stored ones. The half-life may come from the
// store, and the policies follow it, and so does Config.Refresh with refresh.
func (l *Learner) open(ctx context.Context, refresh bool) error {
	if err := l.declare(ctx); err != nil {
		return err
	}
	err := settings.Open(ctx, l.cfg.Store, l.cfg.Now(), l.settings(storePooling(l.cfg.Pooling)))
	if refresh {
		l.cfg.Refresh = l.cfg.refresh()
	}
	l.policies = l.cfg.kept(l.kinds)
	if l.shared != nil {
		l.shared.writes = true
	}
	return err
}

// Rebuild makes all sums of the learner of this name again from their history, under another
// half-life. It stores the settings of this configuration, writes an entry in the audit, and
// returns the learner. Call it after a [*heed.SettingsError] of [New]. If the store no longer has
// the whole history, the error is [evidence.ErrForgotten] and the store is unchanged. Then
// [Learner.Reset] the segments under the stored settings, and call Rebuild again. Other processes
// that use the old settings get a [*heed.SettingsError] from then on.
func Rebuild(ctx context.Context, cfg Config, actor, reason string) (_ *Learner, err error) {
	defer because(&err, "rebuild")
	l, err := build(cfg)
	if err == nil {
		err = l.declare(ctx)
	}
	if err != nil {
		return nil, err
	}
	own := l.settings(storePooling(l.cfg.Pooling))
	err = own.Rebuild(ctx, l.cfg.Store, store.AuditEntry{
		At: l.cfg.Now(), Actor: actor, Action: l.cfg.Name + ".rebuild", Subject: l.cfg.Name,
		Reason: reason, Details: map[string]string{"half_life": l.cfg.HalfLife.String()},
	}, l.cfg.kept(l.kinds))
	if err == nil {
		err = l.open(ctx, false) // the half-life is the one that build knew
	}
	if err != nil {
		return nil, err
	}
	return l, nil
}

// Open returns the learner of cfg.Name with the settings that its host left in the store, for a
// tool other than the host. It does not write, and the stored settings override those in cfg. A
// pooling that the host made is not in the store, so cfg.Pooling is used. Without such a learner
// Open returns [heed.ErrNotFound].
func Open(ctx context.Context, cfg Config) (_ *Learner, err error) {
	defer because(&err, "open")
	if cfg.Store == nil {
		return nil, &heed.ConfigError{Field: "Store", Reason: "must be set"}
	}
	cfg.Name = cmp.Or(cfg.Name, defaultName)
	l, stored := &Learner{cfg: cfg}, &storedPooling{}
	if err := settings.Adopt(ctx, cfg.Store, l.settings(stored)); err != nil {
		return nil, err
	}
	if p, err := stored.pooling(); err != nil {
		return nil, fmt.Errorf("Pooling: %w", err)
	} else if p != nil {
		l.cfg.Pooling = p
	}
	if l, err = build(l.cfg); err != nil {
		return nil, err
	}
	if err := l.declare(ctx); err != nil {
		return nil, err
	}
	return l, nil
}

var _ heed.Sweeper = (*Learner)(nil)
