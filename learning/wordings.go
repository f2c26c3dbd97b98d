package learning

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// A wording is an earlier condition and action of a heuristic.
type wording struct {
	Hash    string `json:"hash"` // of its condition and action
	Edition uint64 `json:"edition,omitempty"`
}

// wordings is the record of the earlier wordings of a heuristic, the oldest first.
type wordings struct {
	HeuristicID string    `json:"heuristic"`
	At          time.Time `json:"at"` // when it was replaced
	Past        []wording `json:"past,omitempty"`
}

// maxWordings is how many earlier wordings keep their evidence.
const maxWordings = 8

func wordingOf(h *Heuristic) string { return store.IDOf(h.Condition, h.Action) }

// turn sets the version of a heuristic's new wording: the version that the same wording had before,
// or else the revision that it replaces, which no other version has. It returns the versions whose
// evidence is to go.
func (w *wordings) turn(before, now *Heuristic, replaced uint64) (gone []uint64) {
	old, wanted := wording{wordingOf(before), before.Edition}, wordingOf(now)
	past := slices.Clone(w.Past)
	now.Edition = replaced
	if i := slices.IndexFunc(past, func(p wording) bool { return p.Hash == wanted }); i >= 0 &&
		wanted != old.Hash {
		now.Edition = past[i].Edition
		past = slices.Delete(past, i, i+1)
	}
	// a heuristic that was deleted and put again is in its first version
	past = slices.DeleteFunc(past, func(p wording) bool {
		return p.Edition == old.Edition || p.Edition == now.Edition
	})
	if wanted == old.Hash {
		gone = append(gone, old.Edition)
	} else {
		past = append(past, old)
	}
	for ; len(past) > maxWordings; past = past[1:] {
		gone = append(gone, past[0].Edition)
	}
	w.HeuristicID, w.Past, w.At = now.ID, past, now.Since
	return gone
}

// versionMark separates the name of a cell from the version that the evidence is about.
const versionMark = "@"

// cell returns a cell of a heuristic's confidence.
func (m *Module) cell(heuristicID string, version uint64, name string) evidence.Cell {
	return evidence.Cell{Kind: m.kinds.heuristic, Item: heuristicID, Name: edited(name, version)}
}

// fireCell returns a cell of a heuristic's answers.
func (m *Module) fireCell(heuristicID string, version uint64, name string) evidence.Cell {
	return evidence.Cell{Kind: m.kinds.fire, Item: heuristicID, Name: edited(name, version)}
}

func edited(name string, version uint64) string {
	if version == 0 {
		return name
	}
	return name + versionMark + strconv.FormatUint(version, 10)
}

// plain returns a cell without its version, which is its form in the account of a heuristic.
func plain(c evidence.Cell) evidence.Cell {
	c.Name, _, _ = strings.Cut(c.Name, versionMark)
	return c
}

// versionCells returns the cells of an version.
func (m *Module) versionCells(heuristicID string, version uint64) []evidence.Cell {
	return m.answerCells(m.confidenceCells(nil, heuristicID, version), heuristicID, version)
}

// A seen heuristic is one as the module read it last, which the store may have changed since.
type seen struct {
	version uint64
	domain  string
}

func seenOf(h *Heuristic) seen { return seen{h.Edition, h.Domain} }

// seen returns what the module read last of a heuristic.
func (m *Module) seen(heuristicID string) seen {
	known, _ := m.heuristics.Load(heuristicID)
	last, _ := known.(seen)
	return last
}
