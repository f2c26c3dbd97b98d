package loop

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

// How an agent is taught. Heuristics and notes are stored, arms are not, because they hold models.
// Teach compares the lessons with what is stored and writes only what is new or changed. A record
// for each taught heuristic distinguishes it from heuristics that were learned, so that a lesson
// that was removed from the file can be missed.

// A Note is a text that is added to the prompt if it fits an event.
type Note struct {
	ID string `json:"id"`
	// Domain limits the note to events of a domain. "" means every domain.
	Domain string `json:"domain,omitempty"`
	// Category is what sort of thing the note is about. Arms that are chosen for a note learn from
	// all notes of its category.
	Category string `json:"category,omitempty"`
	// Topic is what an event must be about. "" means the text.
	Topic string `json:"topic,omitempty"`
	// Text is what the prompt has.
	Text string `json:"text"`
}

// Lessons are what an agent is taught: heuristics, notes and arms. A host may keep them in Git: see
// [ReadLessons]. Lessons in JSON from elsewhere can be decoded by package json.
type Lessons struct {
	Heuristics []learning.Heuristic
	Notes      []Note
	Arms       []Arm
	// Only means that these are all lessons: heuristics and notes that were taught before and are not
	// among them are taken out. Heuristics that were learned from praise, or that the host put into
	// [Agent.Learning], stay.
	Only bool
}

// maxLessons is how many bytes a file of lessons may have.
const maxLessons = 16 << 20

// ReadLessons reads a file of lessons in JSON, by the names of the fields of [Lessons] in any case.
// The path "" means no lessons. The model of an arm is a name in [Config].Models. For example:
//
//	{
//	  "only": true,
//	  "heuristics": [{
//	    "id": "rotate",
//	    "condition": "the disk of a server is full",
//	    "action": "Rotate its logs."
//	  }]
//	}
//
// A field that is not known is an error, because it may be misspelt. A file may have 16 MiB.
func ReadLessons(path string) (l Lessons, err error) {
	if path == "" {
		return l, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return l, wrap("lessons", err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	if l, err = readLessons(f); err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return l, wrap("lessons", err)
}

// readLessons decodes and validates a file. An error of JSON names the line, because a lesson is
// edited by hand.
func readLessons(r io.Reader) (l Lessons, err error) {
	text, err := io.ReadAll(io.LimitReader(r, maxLessons+1))
	if err == nil && len(text) > maxLessons {
		err = errors.New("has more than 16 MiB")
	}
	if err != nil {
		return l, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err = d.Decode(&l); errors.Is(err, io.EOF) {
		err = errors.New("is empty: {} has no lessons")
	}
	if err == nil {
		if _, end := d.Token(); !errors.Is(end, io.EOF) {
			err = errors.New("has something after the lessons")
		}
	}
	if err == nil {
		err = errors.Join(l.faults(nil)...)
	}
	if err == nil {
		return l, nil
	}
	if lines := linesOf(text, err); len(lines) > 0 {
		err = fmt.Errorf("line %s: %w", strings.Join(lines, " or "), err)
	}
	return Lessons{}, err
}

// linesOf returns the lines of a file that an error of package json may be about. The error of a
// field that is not known has its name alone, so these are the first lines that have such a field.
func linesOf(text []byte, err error) (lines []string) {
	var ends [][]int
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		ends = append(ends, []int{int(syntax.Offset)})
	} else if kind := (*json.UnmarshalTypeError)(nil); errors.As(err, &kind) {
		ends = append(ends, []int{int(kind.Offset)})
	} else if field, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		ends = regexp.MustCompile(regexp.QuoteMeta(field)+`\s*:`).FindAllIndex(text, 4)
	}
	for _, at := range ends {
		lines = append(lines, strconv.Itoa(1+bytes.Count(text[:at[0]], []byte("\n"))))
	}
	return slices.Compact(lines)
}

// Taught is what became of lessons.
type Taught struct {
	New, Changed int
	// Restarted are the ids of the changed heuristics that begin without evidence, because their
	// condition and action are new. A former wording that comes back has its own evidence again.
	Restarted []string
	// Missing names what was taught before and is not among the lessons, for example "heuristic
	// rotate" or "note db-1". It still counts. Removed names what [Lessons].Only took out.
	Missing, Removed []string
}

// Teach stores lessons. Teaching the same again has no effect. A heuristic with another condition
// or action begins without evidence, because its evidence is about the old text. If the old text
// comes back, it goes on with what was learned of it: see [learning.Module.Restart]. With another
// domain, pack or initial confidence, a heuristic keeps its evidence. See [Lessons].Only for what
// is no longer among the lessons. Faults are returned together, each a [*heed.InputError] that
// names the lesson, and no lesson is kept. If storing a lesson fails, the lessons before it are
// kept.
//
// Arms are not stored: teach them whenever the agent is made.
func (a *Agent) Teach(ctx context.Context, l Lessons) (Taught, error) {
	l.Arms = slices.Clone(l.Arms)
	for i := range l.Arms {
		l.Arms[i].taught = true
	}
	taught, err := a.teach(ctx, l)
	return taught, wrap("teach", err)
}

// teach validates all lessons before it stores the first one, and marks heuristics as taught before
// it stores them: if it fails between the two, teaching again completes it.
func (a *Agent) teach(ctx context.Context, l Lessons) (taught Taught, err error) {
	if faults := l.faults(a.cfg.knows); len(faults) > 0 {
		return taught, errors.Join(faults...)
	}
	count := func(isNew, changed bool) {
		if isNew {
			taught.New++
		} else if changed {
			taught.Changed++
		}
	}
	// One read of all heuristics and notes shows what is new, so that teaching the same again writes
	// neither.
	known, missing, err := a.known(ctx, &l)
	if err == nil {
		err = a.mark(ctx, l.Heuristics)
	}
	if err != nil {
		return taught, err
	}
	for i, h := range l.Heuristics {
		isNew, changed, restarted, err := a.put(ctx, h, known)
		if err != nil {
			return taught, named(fmt.Sprintf("Heuristics[%d]", i), err)
		}
		if restarted {
			taught.Restarted = append(taught.Restarted, h.ID)
		}
		count(isNew, changed)
	}
	for i, n := range l.Notes {
		isNew, changed, err := a.note(ctx, n)
		if err != nil {
			return taught, named(fmt.Sprintf("Notes[%d]", i), err)
		}
		count(isNew, changed)
	}
	if err := a.miss(ctx, &taught, missing, l.Only); err != nil {
		return taught, err
	}
	if len(l.Arms) > 0 {
		err = a.arm(ctx, a.mergedArms(l.Arms))
	}
	return taught, err
}

// named puts a lesson's name before the field of an input error.
func named(lesson string, err error) error {
	var input *heed.InputError
	if errors.As(err, &input) {
		return &heed.InputError{Field: lesson + "." + input.Field, Reason: input.Reason}
	}
	return fmt.Errorf("%s: %w", lesson, err)
}

// faults returns all faults, each a [*heed.InputError]. knows reports whether a model of this name
// is configured; nil accepts any name.
func (l *Lessons) faults(knows func(model string) bool) (faults []error) {
	seen := make(map[string]bool)
	check := func(list string, i int, id string, needs ...[2]string) {
		lesson, own := fmt.Sprintf("%s[%d]", list, i), list+"/"+id
		var err error
		switch {
		case id == "":
			err = valid.Input(lesson+".ID", "must not be empty")
		case seen[own]:
			err = valid.Input(lesson+".ID", "is that of an earlier lesson")
		default:
			err = evidence.CheckText(lesson+".ID", id)
		}
		seen[own] = true
		for _, need := range needs {
			switch {
			case err != nil:
			case need[1] == "":
				err = valid.Input(lesson+"."+need[0], "must not be empty")
			case !utf8.ValidString(need[1]) || strings.Contains(need[1], "\x00"):
				err = valid.Input(lesson+"."+need[0], "must be valid UTF-8 without NUL")
			}
		}
		if err != nil {
			faults = append(faults, err)
		}
	}
	for i, h := range l.Heuristics {
		check("Heuristics", i, h.ID, [2]string{"Action", h.Action}, [2]string{"Condition", h.Condition})
		if h.Initial != 0 && !(h.Initial > 0 && h.Initial < 1) {
			faults = append(faults, valid.Input(fmt.Sprintf("Heuristics[%d].Initial", i),
				"must be above 0 and below 1"))
		}
	}
	for i, n := range l.Notes {
		check("Notes", i, n.ID, [2]string{"Text", n.Text})
	}
	for i, arm := range l.Arms {
		check("Arms", i, arm.ID)
		if !(arm.Weight >= 0 && arm.Weight <= evidence.MaxWeight) {
			faults = append(faults, valid.Input(fmt.Sprintf("Arms[%d].Weight", i), "must be in [0, 1e6]"))
		}
		if arm.ModelName != "" && arm.Model == nil && knows != nil && !knows(arm.ModelName) {
			faults = append(faults, valid.Input(fmt.Sprintf("Arms[%d].ModelName", i),
				"must be in Config.Models"))
		}
	}
	return faults
}

// put stores a heuristic, if it is new or changed. known are those that were read before. If
// another process is quicker, it looks again at what is stored. The first try uses what was read
// for all lessons; each further one reads this heuristic.
func (a *Agent) put(ctx context.Context, h learning.Heuristic,
	known map[string]learning.Heuristic) (isNew, changed, restarted bool, err error) {
	err = store.Do(ctx, a.cfg.Store, func(*store.Tx) (err error) {
		if known == nil {
			standings, err := a.learning.Standings(ctx, h.ID)
			if err != nil {
				return err
			}
			if known = make(map[string]learning.Heuristic); len(standings) > 0 {
				known[h.ID] = standings[h.ID].Heuristic
			}
		}
		before, is := known[h.ID]
		known = nil
		isNew, changed, restarted, err = a.putOver(ctx, h, before, is)
		return err
	})
	return isNew, changed, restarted, err
}

// putOver stores a heuristic in the place of the one before, if there is one. restarted reports
// that it does not keep its evidence. A heuristic that was taken out, and whose text comes back,
// counts as new.
func (a *Agent) putOver(ctx context.Context, h, before learning.Heuristic, is bool) (isNew, changed,
	restarted bool, err error) {
	if is {
		h.CreatedAt, h.Since, h.Edition, h.Revision = before.CreatedAt, before.Since, before.Edition,
			before.Revision
		if h == before {
			return false, false, false, nil
		}
	}
	if is && (h.Action != before.Action || h.Condition != before.Condition) {
		h, err = a.learning.Restart(ctx, h, a.cfg.Name, "the lesson has changed")
		isNew = before.Action == "" // it was taken out
		return isNew, !isNew, !isNew && err == nil && h.Edition == before.Revision, err
	}
	_, err = a.learning.Put(ctx, h)
	return !is, is, false, err
}

// missing is what was taught and is not among the lessons: a heuristic or a note. One of both
// fields is set.
type missing struct {
	heuristic learning.Heuristic
	note      store.Row[noteRow]
}

// name returns the name by which Taught lists it.
func (m *missing) name() string {
	if m.note.Revision > 0 {
		return "note " + m.note.Value.ID
	}
	return "heuristic " + m.heuristic.ID
}

// known returns all heuristics, and what was taught and is not among the lessons. If only arms are
// given, the rest is left alone. Only heuristics with a mark can be missing, because others were
// learned or put by the host.
func (a *Agent) known(ctx context.Context, l *Lessons) (known map[string]learning.Heuristic,
	gone []missing, err error) {
	known = make(map[string]learning.Heuristic)
	if len(l.Heuristics)+len(l.Notes) == 0 && !l.Only {
		return known, nil, nil
	}
	has := make(map[string]bool, len(l.Heuristics)+len(l.Notes))
	for _, h := range l.Heuristics {
		has["heuristic "+h.ID] = true
	}
	for _, n := range l.Notes {
		has["note "+n.ID] = true
	}
	for h, err := range a.learning.Heuristics(ctx) {
		if err != nil {
			return nil, nil, err
		}
		known[h.ID] = h
	}
	for kept, err := range a.lessons.Find(ctx, a.cfg.Store, store.Query{Oldest: true}) {
		if err != nil {
			return nil, nil, err
		}
		if m := (missing{heuristic: known[kept.Value.ID]}); m.heuristic.Action != "" &&
			!has[m.name()] {
			gone = append(gone, m)
		}
	}
	for kept, err := range a.notes.Find(ctx, a.cfg.Store, store.Query{Oldest: true}) {
		if err != nil {
			return nil, nil, err
		}
		if m := (missing{note: kept}); !has[m.name()] {
			gone = append(gone, m)
		}
	}
	return known, gone, nil
}

// mark notes that heuristics are taught ones.
func (a *Agent) mark(ctx context.Context, taught []learning.Heuristic) error {
	if len(taught) == 0 {
		return nil
	}
	var b store.Batch
	for _, h := range taught {
		b.Records = append(b.Records, a.lessons.Record(lessonRow{h.ID, a.cfg.Testing.Now()},
			store.Once))
	}
	return store.Do(ctx, a.cfg.Store, func(tx *store.Tx) error {
		tx.Add(b)
		return nil
	})
}

// miss names what is missing, and takes it out if the lessons are all there are.
func (a *Agent) miss(ctx context.Context, taught *Taught, missing []missing, only bool) error {
	for _, m := range missing {
		if !only {
			taught.Missing = append(taught.Missing, m.name())
			continue
		}
		if err := a.takeOut(ctx, m); err != nil {
			return err
		}
		taught.Removed = append(taught.Removed, m.name())
	}
	return nil
}

// takeOut removes a note, or the text of a heuristic. The heuristic itself stays, for later
// statements about its answers. If another process is quicker, it looks again at what is stored.
func (a *Agent) takeOut(ctx context.Context, m missing) error {
	return store.Do(ctx, a.cfg.Store, func(tx *store.Tx) error {
		if m.note.Revision > 0 {
			row, err := a.notes.In(tx, store.IDOf(m.note.Value.ID))
			if err == nil && row.Revision > 0 {
				tx.Put(a.notes.Removal(row.ID, row.Revision))
			}
			return err
		}
		standing, err := a.learning.Standing(ctx, m.heuristic.ID)
		gone := standing.Heuristic
		if errors.Is(err, heed.ErrNotFound) || err == nil && gone.Action == "" {
			return nil
		} else if err != nil {
			return err
		}
		gone.Action = ""
		_, err = a.learning.Restart(ctx, gone, a.cfg.Name, "it is no lesson any more")
		return err
	})
}

// note stores a note, if it is new or changed.
func (a *Agent) note(ctx context.Context, n Note) (isNew, changed bool, err error) {
	err = store.Do(ctx, a.cfg.Store, func(tx *store.Tx) error {
		row, err := a.notes.In(tx, store.IDOf(n.ID))
		isNew, changed = row.Revision == 0, row.Revision > 0 && row.Value.Note != n
		if err != nil || !isNew && !changed {
			return err
		}
		at := row.Value.At
		if isNew {
			at = a.cfg.Testing.Now()
		}
		a.notes.Put(tx, noteRow{n, at}, row.Revision)
		return nil
	})
	return isNew, changed, err
}

// learned stores a heuristic that the model wrote from a praised answer.
func (a *Agent) learned(ctx context.Context, id string, x *decision.Extraction) error {
	_, _, _, err := a.put(ctx, learning.Heuristic{
		ID: id, Domain: x.Domain, Condition: x.Condition, Action: x.Message, Initial: x.Confidence,
	}, nil)
	return err
}

// mergedArms returns the agent's arms with the arms of lessons, which take the place of others of
// their ids.
func (a *Agent) mergedArms(taught []Arm) []Arm {
	a.strategy.RLock()
	defer a.strategy.RUnlock()
	arms := slices.Clone(a.strategy.arms)
	for _, arm := range taught {
		if i := slices.IndexFunc(arms, func(o Arm) bool { return o.ID == arm.ID }); i >= 0 {
			arms[i] = arm
		} else {
			arms = append(arms, arm)
		}
	}
	return arms
}

// arm makes the learner that chooses among arms. The learner is made before the lock is taken, and
// exchanged together with its chooser and arms, so that an event sees either the old ones or the
// new ones. Without arms only the models get their names.
func (a *Agent) arm(ctx context.Context, arms []Arm) error {
	cfg := &a.cfg
	if len(arms) == 0 {
		a.strategy.asked = a.nameModels(nil)
		return nil
	}
	arms = slices.Clone(arms)
	asked := a.nameModels(arms)
	s := cfg.Tuning.Strategy
	s.Name, s.Answers = cfg.part(s.Name, "strategy"), cfg.kind()
	s.Store, s.Now, s.Observer, s.Arms = cfg.Store, cfg.Testing.Now, cfg.Observer, nil
	s.Trust.Instruments = cfg.Instruments
	for _, arm := range arms {
		s.Arms = append(s.Arms, strategy.Arm{ID: strategy.ArmID(arm.ID), Weight: arm.Weight})
	}
	if s.Seed == nil && a.strategy.seed != [2]uint64{} {
		s.Seed = rand.NewPCG(a.strategy.seed[0], a.strategy.seed[1])
	}
	learner, err := strategy.New(ctx, s)
	if err != nil {
		return err
	}
	chooser, err := cfg.chooser(ctx, learner)
	if err != nil {
		return err
	}
	a.strategy.Lock()
	defer a.strategy.Unlock()
	a.strategy.learner, a.strategy.chooser = learner, chooser
	a.strategy.arms, a.strategy.asked = arms, asked
	return nil
}
