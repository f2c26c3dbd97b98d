package past

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
)

// sampled is how many records [Propose] looks at.
const sampled = 1000

// A column is what a sample shows of a column or path.
type column struct {
	path   string
	values []any // up to 1,000 that are not empty
	nested bool  // it has a list or an object
}

// Propose makes a mapping by looking at the beginning of a log.
func Propose(r io.Reader) (Mapping, error) {
	in := bufio.NewReaderSize(r, 64<<10)
	head, _ := in.Peek(4096)
	m := Mapping{Fields: make(map[string]string)}
	if comma := commaOf(head); comma != ',' {
		m.Comma = string(comma)
	}
	var all []*column
	n := 0
	for rec, err := range records(in, &m) {
		if fault := (*Fault)(nil); errors.As(err, &fault) {
			continue
		} else if err != nil {
			return m, err
		}
		all = observe(all, &rec)
		if n++; n == sampled {
			break
		}
	}
	if n == 0 {
		return m, errors.New("the log has no row that can be read")
	}
	m.choose(all)
	if m.Fields["arm"] == "" {
		m.armsOf(all, n)
	}
	m.scale(all)
	m.Unused = m.without(all)
	if len(m.Arms) == 0 && m.Fields["text"]+m.Fields["answer"]+m.Fields["arm"]+m.Fields["value"]+
		m.Fields["outcome"] == "" {
		return m, errors.New("no column looks like a question, an answer, an arm, a thumb or an " +
			"outcome: write a mapping, and name it with --map")
	}
	return m, nil
}

// commaOf returns what separates the columns in the first line of CSV.
func commaOf(head []byte) rune {
	head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte(byteOrder)), " \t\r\n")
	if len(head) > 0 && (head[0] == '{' || head[0] == '[') {
		return ','
	}
	line, _, _ := bytes.Cut(head, []byte("\n"))
	best, most := ',', 0
	for _, comma := range ",;\t|" {
		r := csv.NewReader(bytes.NewReader(line))
		r.Comma = comma
		if cells, err := r.Read(); err == nil && len(cells) > most {
			best, most = comma, len(cells)
		}
	}
	return best
}

// observe adds the values of a record to the columns.
func observe(all []*column, rec *record) []*column {
	add := func(path string, v any) {
		i := slices.IndexFunc(all, func(c *column) bool { return c.path == path })
		if i < 0 {
			if len(all) == 500 {
				return
			}
			i, all = len(all), append(all, &column{path: path})
		}
		if v != nil && v != "" {
			all[i].values = append(all[i].values, v)
		}
		switch v.(type) {
		case map[string]any, []any:
			all[i].nested = true
		}
	}
	if rec.tree == nil {
		for name, i := range rec.names {
			add(name, strings.Clone(rec.cells[i]))
		}
		slices.SortFunc(all, func(a, b *column) int { // as the columns stand in the log
			return cmp.Compare(rec.names[a.path], rec.names[b.path])
		})
		return all
	}
	var descend func(prefix string, v any)
	descend = func(prefix string, v any) {
		switch t := v.(type) {
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(t)) {
				add(prefix+name, t[name])
				descend(prefix+name+".", t[name])
			}
		case []any:
			if len(t) > 0 {
				descend(prefix+"0.", t[0])
			}
		}
	}
	descend("", rec.tree)
	return all
}

// choose finds the columns of the fields.
func (m *Mapping) choose(all []*column) {
	taken := make(map[string]bool)
	take := func(field string, c *column) {
		if m.Fields[field] == "" && !taken[c.path] && len(c.values) > 0 {
			m.Fields[field], taken[c.path] = c.path, true
		}
	}
	for _, deep := range []bool{true, false} {
		for _, f := range Fields {
			for _, name := range f.names {
				end, is := strings.CutPrefix(name, ".")
				for _, c := range all {
					path := normal(c.path)
					switch {
					case is != deep:
					case deep && strings.Contains(c.path, ".") && strings.HasSuffix(path, end),
						!deep && path == name && m.fits(f.Name, c):
						take(f.Name, c)
					}
				}
			}
		}
	}
	if unit := normal(m.Fields["latency"]); strings.HasSuffix(unit, "ms") {
		m.Seconds = 0.001
	}
	m.rows(all)
}

// rows chooses which rows are answers, of logs that also have the steps of each answer.
func (m *Mapping) rows(all []*column) {
	has := func(path string, value any) bool { // nil: any
		return slices.ContainsFunc(all, func(c *column) bool {
			return c.path == path && (value == nil || slices.Contains(c.values, value))
		})
	}
	switch {
	case has("run_type", nil) && has("parent_run_id", nil): // LangSmith: the root of each trace
		m.Only = map[string]string{"parent_run_id": ""}
	case has("trace_id", nil) && has("type", "GENERATION"): // Langfuse
		m.Only = map[string]string{"type": "GENERATION"}
	}
}

// fits reports whether a column can be a field, by its values.
func (m *Mapping) fits(field string, c *column) bool {
	switch field {
	case "at", "end":
		return most(c.values, func(v any) bool { _, err := moment(v); return err == nil })
	case "propensity", "cost", "latency", "tokens":
		return most(c.values, func(v any) bool { _, err := number(v); return err == nil })
	case "value", "outcome":
		return most(c.values, worthy)
	case "text", "answer":
		return true
	default:
		return !c.nested
	}
}

// most reports whether more than half of the values are so: the others are rows at fault.
func most(values []any, is func(any) bool) bool {
	n := 0
	for _, v := range values {
		if is(v) {
			n++
		}
	}
	return 2*n > len(values)
}

// worthy reports whether a value can be how good something was.
func worthy(v any) bool {
	_, known := words[normal(text(v, ""))]
	_, err := number(v)
	return known || err == nil
}

// armsOf finds the columns of a log that has, in each row, what every arm was worth.
func (m *Mapping) armsOf(columns []*column, rows int) {
	found := make(map[string]string)
	for _, c := range columns {
		is := func(v any) bool {
			x, err := (&Mapping{}).value(v)
			return err == nil && (x == -1 || x == 0 || x == 1)
		}
		if !c.nested && len(c.values) == rows && most(c.values, is) {
			found[c.path] = c.path
		}
	}
	if m.Fields["value"] == "" && m.Fields["outcome"] == "" && len(found) > 1 {
		m.Arms = found
		for field, path := range m.Fields {
			if found[path] != "" {
				delete(m.Fields, field)
			}
		}
	}
}

// scale finds the scale of what answers were worth.
func (m *Mapping) scale(columns []*column) {
	low, high := math.Inf(1), math.Inf(-1)
	for _, c := range columns {
		is := c.path != "" &&
			(c.path == m.Fields["value"] || c.path == m.Fields["outcome"] || m.Arms[c.path] != "")
		for _, v := range c.values {
			if x, err := number(v); is && err == nil {
				low, high = min(low, x), max(high, x)
			}
		}
	}
	switch {
	case low > high || low < 0: // words alone, or between -1 and 1
	case high <= 1:
		m.Scale = [2]float64{0, 1}
	case high <= 5:
		m.Scale = [2]float64{min(1, math.Floor(low)), 5}
	case high <= 10:
		m.Scale = [2]float64{min(1, math.Floor(low)), 10}
	default:
		m.Scale = [2]float64{0, max(100, math.Ceil(high))}
	}
	if low < -1 {
		m.Scale = [2]float64{-max(-low, high), max(-low, high)}
	}
}

// mostUnused bounds the columns that people are shown, because a JSON log may have hundreds.
const mostUnused = 12

// without returns the columns that the mapping has no use for. A person who expected one of them to
// count has to name it.
func (m *Mapping) without(all []*column) (unused []string) {
	for _, c := range all {
		used := slices.Contains(slices.Collect(maps.Values(m.Fields)), c.path) ||
			slices.Contains(slices.Collect(maps.Values(m.Arms)), c.path) || m.Only[c.path] != ""
		if !used && len(unused) < mostUnused {
			unused = append(unused, c.path)
		}
	}
	return unused
}
