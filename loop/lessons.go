package loop

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/store"
)

// How an agent is taught. Teach compares the lessons with what is stored and writes only what is
// new or changed. A record for each taught heuristic distinguishes it from heuristics that were
// learned, so that a lesson that was removed from the file can be missed. Arms are not stored,
// because they hold models: see openStrategy.

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
	err = d.Decode(&l)
	switch _, end := d.Token(); {
	case errors.Is(err, io.EOF):
		err = errors.New("is empty: {} has no lessons")
	case err == nil && !errors.Is(end, io.EOF):
		err = errors.New("has something after the lessons")
	case err == nil:
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

// Teach stores heuristics and notes. Teaching the same again has no effect. A heuristic with
// another condition or action begins without evidence, because its evidence is about the old text.
// If the old text comes back, its evidence counts again: see [learning.Module.Restart]. With
// another domain, pack or initial confidence, a heuristic keeps its evidence. See [Lessons].Only
// for what is no longer among the lessons. Faults are returned together, each a [*heed.InputError]
// that names the lesson, and no lesson is kept. If storing a lesson fails, the lessons before it
// are kept.
//
// Lessons with arms are a fault, because arms are not stored: set them in [Config].Lessons, which
// also holds for the agents of tenants.
func (a *Agent) Teach(ctx context.Context, l Lessons) (Taught, error) {
	faults := l.faults(nil)
	if len(l.Arms) > 0 {
		faults = append(faults, &heed.InputError{Field: "Arms", Reason: "must be in Config.Lessons, " +
			"because an agent keeps the arms that it was made with"})
	}
	if len(faults) > 0 {
		return Taught{}, wrap("teach", errors.Join(faults...))
	}
	taught, err := a.teach(ctx, &l)
	return taught, wrap("teach", err)
}

// teach stores valid lessons. It marks heuristics as taught before it stores them: if it fails
// between the two, teaching again completes it.
func (a *Agent) teach(ctx context.Context, l *Lessons) (taught Taught, err error) {
	// One read of all heuristics and notes shows what is new, so that teaching the same again writes
	// neither.
	known, gone, err := a.known(ctx, l)
	if err == nil {
		err = a.mark(ctx, l.Heuristics)
	}
	if err != nil {
		return taught, err
	}
	for i, h := range l.Heuristics {
		did, err := a.put(ctx, h, known)
		if err != nil {
			return taught, named(fmt.Sprintf("Heuristics[%d]", i), err)
		}
		taught.count(did, h.ID)
	}
	for i, n := range l.Notes {
		did, err := a.note(ctx, n)
		if err != nil {
			return taught, named(fmt.Sprintf("Notes[%d]", i), err)
		}
		taught.count(did, n.ID)
	}
	for _, m := range gone {
		if !l.Only {
			taught.Missing = append(taught.Missing, m.name)
			continue
		}
		if err := m.remove(); err != nil {
			return taught, err
		}
		taught.Removed = append(taught.Removed, m.name)
	}
	return taught, nil
}

// An effect is what storing a lesson did.
type effect string

const (
	unchanged effect = ""
	added     effect = "added"
	changed   effect = "changed"
	restarted effect = "restarted" // changed, and it begins without evidence
)

// count counts what storing a lesson did.
func (t *Taught) count(did effect, id string) {
	switch did {
	case added:
		t.New++
	case changed:
		t.Changed++
	case restarted:
		t.Changed++
		t.Restarted = append(t.Restarted, id)
	case unchanged:
	}
}

// named puts a lesson's name before the field of an input error.
func named(lesson string, err error) error {
	var input *heed.InputError
	if errors.As(err, &input) {
		return &heed.InputError{Field: lesson + "." + input.Field, Reason: input.Reason}
	}
	return fmt.Errorf("%s: %w", lesson, err)
}

// faults returns all faults. knows reports whether a model of this name is configured; nil accepts
// any name.
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
		if field, _, reason := arm.fault(knows); field != "" {
			faults = append(faults, valid.Input(fmt.Sprintf("Arms[%d].%s", i, field), "%s", reason))
		}
	}
	return faults
}

// put stores a heuristic, if it is new or changed. known are those that were read before. If
// another process is quicker, it looks again at what is stored. The first try uses what was read
// for all lessons; each further one reads this heuristic.
func (a *Agent) put(
	ctx context.Context, h learning.Heuristic, known map[string]learning.Heuristic,
) (did effect, err error) {
	err = store.Do(ctx, a.cfg.Store, func(*store.Tx) error {
		before, is := known[h.ID]
		if known == nil {
			standings, err := a.learning.Standings(ctx, h.ID)
			if err != nil {
				return err
			}
			before, is = standings[h.ID].Heuristic, len(standings) > 0
		}
		known = nil
		did, err = a.putOver(ctx, h, before, is)
		return err
	})
	return did, err
}

// putOver stores a heuristic in the place of the one before, if there is one. A heuristic that was
// taken out, and whose text comes back, counts as added.
func (a *Agent) putOver(
	ctx context.Context, h, before learning.Heuristic, is bool,
) (effect, error) {
	if !is {
		_, err := a.learning.Put(ctx, h)
		return added, err
	}
	h.CreatedAt, h.Since, h.Edition, h.Revision = before.CreatedAt, before.Since, before.Edition,
		before.Revision
	switch {
	case h == before:
		return unchanged, nil
	case h.Action == before.Action && h.Condition == before.Condition:
		_, err := a.learning.Put(ctx, h)
		return changed, err
	}
	h, err := a.learning.Restart(ctx, h, a.cfg.Name, "the lesson has changed")
	switch {
	case before.Action == "":
		return added, err
	case err == nil && h.Edition == before.Revision: // its text is new
		return restarted, nil
	default:
		return changed, err
	}
}

// note stores a note, if it is new or changed.
func (a *Agent) note(ctx context.Context, n Note) (did effect, err error) {
	err = store.Do(ctx, a.cfg.Store, func(tx *store.Tx) error {
		row, err := a.notes.In(tx, store.IDOf(n.ID))
		switch {
		case err != nil || row.Value.Note == n:
			did = unchanged
			return err
		case row.Revision > 0:
			did = changed
		default:
			did, row.Value.At = added, a.cfg.Testing.Now()
		}
		a.notes.Put(tx, noteRow{n, row.Value.At}, row.Revision)
		return nil
	})
	return did, err
}

// A missing lesson was taught before and is not among the lessons now.
type missing struct {
	name   string // as Taught lists it
	remove func() error
}

// known returns all heuristics, and what was taught and is not among the lessons. Without
// heuristics and notes among them, nothing is missing, unless they are all there are. Only
// heuristics with a mark can be missing, because others were learned or put by the host.
func (a *Agent) known(
	ctx context.Context, l *Lessons,
) (known map[string]learning.Heuristic, gone []missing, err error) {
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
		id := kept.Value.ID
		if name := "heuristic " + id; known[id].Action != "" && !has[name] {
			gone = append(gone, missing{name, func() error { return a.removeHeuristic(ctx, id) }})
		}
	}
	for kept, err := range a.notes.Find(ctx, a.cfg.Store, store.Query{Oldest: true}) {
		if err != nil {
			return nil, nil, err
		}
		id := kept.Value.ID
		if name := "note " + id; !has[name] {
			gone = append(gone, missing{name, func() error { return a.removeNote(ctx, id) }})
		}
	}
	return known, gone, nil
}

// mark notes that heuristics are taught ones.
func (a *Agent) mark(ctx context.Context, taught []learning.Heuristic) error {
	return store.Do(ctx, a.cfg.Store, func(tx *store.Tx) error {
		for _, h := range taught {
			a.lessons.Put(tx, lessonRow{h.ID, a.cfg.Testing.Now()}, store.Once)
		}
		return nil
	})
}

// removeHeuristic removes the text of a heuristic. The heuristic itself stays, for later statements
// about its answers. If another process is quicker, it looks again at what is stored.
func (a *Agent) removeHeuristic(ctx context.Context, id string) error {
	return store.Do(ctx, a.cfg.Store, func(*store.Tx) error {
		standing, err := a.learning.Standing(ctx, id)
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

// removeNote removes a note.
func (a *Agent) removeNote(ctx context.Context, id string) error {
	return store.Do(ctx, a.cfg.Store, func(tx *store.Tx) error {
		row, err := a.notes.In(tx, store.IDOf(id))
		if err == nil && row.Revision > 0 {
			tx.Put(a.notes.Removal(row.ID, row.Revision))
		}
		return err
	})
}
