package learning

import (
	"context"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/settings"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/store"
)

// kept are the settings that the store keeps, so that a tool that opens the store computes the same
// confidences as the host. HalfLife is fixed, because stored sums depend on it.
func kept(c *Config, host Config) []settings.Field {
	return []settings.Field{
		{Name: "HalfLife", Value: &c.HalfLife, Set: host.HalfLife != 0, Fixed: true},
		{Name: "Answers", Value: &c.Answers},
		{Name: "Initial", Value: &c.Initial},
		{Name: "Strength", Value: &c.tuning.Strength},
		{Name: "Bounds", Value: &c.tuning.Bounds},
		{Name: "Packs", Value: &c.Packs},
		{Name: "Diminish", Value: &c.Diminish},
		{Name: "Trust", Value: &c.Trust},
	}
}

// component returns the name under which the store keeps the settings of a module.
func component(name string) string { return "learning/" + name }

// New returns a module, or all faults of its configuration, joined: each is a [*heed.ConfigError].
//
// It keeps the module's settings in the store. If evidence is stored there with another half-life,
// New returns a [*heed.SettingsError]. Leave the field out, call [Rebuild], or reset what was
// learned. Other settings apply when evidence is read. The audit records when they changed.
func New(ctx context.Context, cfg Config) (_ *Module, err error) {
	defer doing("new", &err)
	m, err := open(ctx, cfg)
	if err == nil {
		err = settings.Open(ctx, m.cfg.Store, m.cfg.Now(),
			settings.Component{Name: component(m.cfg.Name), Fields: kept(&m.cfg, cfg)})
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}

// Open returns the module of cfg.Name with the settings that its host left in the store, for a tool
// that runs next to the host. It does not write to the store. Of cfg, only Store, Name, Strategy
// and Now count. Without such a module Open returns [heed.ErrNotFound].
func Open(ctx context.Context, cfg Config) (_ *Module, err error) {
	defer doing("open", &err)
	m, err := build(Config{Store: cfg.Store, Name: cfg.Name, Strategy: cfg.Strategy, Now: cfg.Now})
	if err == nil {
		err = settings.Adopt(ctx, m.cfg.Store, settings.Component{Name: component(m.cfg.Name),
			Fields: kept(&m.cfg, Config{})})
	}
	if err == nil {
		m.kinds = kindsOf(m.cfg.Name, m.cfg.Answers)
		err = m.cfg.Store.Declare(ctx, m.kinds.all()...)
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}

// Rebuild opens a module like [New], and first computes its evidence again with the half-life of
// this configuration. Under the settings that are stored already, it makes those cells again that
// have another half-life. Evidence and settings change in one commit. If the store forgot some of
// the history, Rebuild returns [evidence.ErrForgotten] and leaves the store unchanged. Actor and
// reason are for the audit, and may be empty.
//
// Modules of this name that are open elsewhere keep the old settings. Their signals are a
// [*heed.SettingsError] until they are opened again.
func Rebuild(ctx context.Context, cfg Config, actor, reason string) (_ *Module, err error) {
	defer doing("rebuild", &err)
	m, err := open(ctx, cfg)
	if err == nil {
		err = valid.Texts(evidence.MaxText, "Actor", actor, "Reason", reason)
	}
	if err == nil {
		c := settings.Component{Name: component(m.cfg.Name), Fields: kept(&m.cfg, cfg)}
		err = c.Rebuild(ctx, m.cfg.Store, store.AuditEntry{
			At: m.orNow(time.Time{}), Actor: actor, Action: m.cfg.Name + ".rebuild", Subject: c.Name,
			Reason: reason, Details: map[string]string{"HalfLife": m.cfg.HalfLife.String()},
		}, m.policies())
	}
	if err != nil {
		return nil, err
	}
	return New(ctx, cfg)
}
