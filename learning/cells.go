package learning

import (
	"strconv"
	"strings"

	"github.com/heedhq/heed/evidence"
)

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

func (m *Module) lastSeen(ids []string) []seen {
	all := make([]seen, len(ids))
	for i, id := range ids {
		all[i] = m.seen(id)
	}
	return all
}
