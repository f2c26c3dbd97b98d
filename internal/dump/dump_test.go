package dump_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/dump"
	"github.com/heedhq/heed/internal/text"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/store"
)

func rows() []dump.Row {
	cell := text.HashOf("kind", "scope", "item", "")
	id := text.HashOf("id")
	return []dump.Row{
		{Kind: &store.Kind{Name: "note", Limits: store.Limits{For: time.Hour, Most: 3, Refuse: true},
			Caused: []string{"a.*"}, Whole: true}},
		{Cell: &dump.Cell{Hash: cell, Kind: "kind", Scope: "scope", Item: "item", HalfLife: 3.6e9,
			ByOrigin: true, Restart: 7}},
		{Tally: &dump.Tally{
			Cell: cell, Channel: "c", Source: "s\n<é>", Landmark: 256 * 3.6e9, Mass: 0.1,
			Squares: math.SmallestNonzeroFloat64,
			Reward:  1e300, RewardSquares: 1. / 3, Positive: dump.Count{N: 2, Last: 256 * 3.6e9, Lost: 7},
			LostSource: true,
		}},
		{Observation: &dump.Observation{Cell: cell, ID: "id", Channel: "c", Source: "s\n<é>", Reward: 1,
			Weight: 0.5, At: 12, Recorded: 13}},
		{Lost: &dump.Lost{ID: id, Cell: cell, Recorded: 13}},
		{ID: &dump.ID{ID: id, Recorded: 13, Retracted: true}},
		{Record: &dump.Record{Kind: "note", ID: "é", Revision: 4, At: 5, Keys: []string{"a=b"}, Body: []byte(`{"a":["<>"]}`)}},
	}
}

func write(t *testing.T, rows ...dump.Row) []byte {
	var out bytes.Buffer
	w, err := dump.NewWriter(&out, 9)
	require.NoError(t, err)
	for _, row := range rows {
		require.NoError(t, w.Write(row))
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

func read(from io.Reader) (all []dump.Row, err error) {
	r, err := dump.NewLoader(from)
	if err != nil {
		return nil, err
	}
	for {
		row, err := r.Next()
		if errors.Is(err, io.EOF) {
			_, again := r.Next()
			return all, errors.Join(asError(r.Revision != 9), asError(!errors.Is(again, io.EOF)))
		}
		if err != nil {
			return nil, err
		}
		all = append(all, row)
	}
}

func asError(wrong bool) error {
	if wrong {
		return errors.New("wrong")
	}
	return nil
}

func TestRoundTrip(t *testing.T) {
	all, err := read(bytes.NewReader(write(t, rows()...)))
	require.NoError(t, err)
	assert.Equal(t, rows(), all)
}

// TestChanged cuts a dump off everywhere and flips each of its bits: all of that is refused.
func TestChanged(t *testing.T) {
	whole := write(t, rows()...)
	for i := range whole {
		_, err := read(bytes.NewReader(whole[:i]))
		require.ErrorAs(t, err, new(*heed.InputError), "cut off at %d", i)
		for bit := range 8 {
			changed := bytes.Clone(whole)
			changed[i] ^= 1 << bit
			_, err := read(bytes.NewReader(changed))
			require.ErrorAs(t, err, new(*heed.InputError), "bit %d of byte %d: %s", bit, i, whole[i:i+1])
		}
	}
	_, err := read(bytes.NewReader(append(bytes.Clone(whole), '\n')))
	assert.ErrorContains(t, err, "after the end")
	lines := bytes.SplitAfter(whole, []byte("\n"))
	lines[5], lines[6] = lines[6], lines[5]
	_, err = read(bytes.NewReader(bytes.Join(lines, nil)))
	assert.ErrorContains(t, err, "was changed")
}

func TestRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                                       "cut off",
		"\n":                                     "not the first line",
		`{"heed":{"version":0,"revision":0}}`:    "version 0",
		`{"heed":{"version":4,"news":true}}`:     "version 4",
		`{"heed":{"version":3,"news":true}}`:     "not the first line",
		`{"heed":{"version":3,"revision":1e19}}`: "not the first line",
		`{"heed":{"version":3}} {"heed":{}}`:     "not the first line",
		`{"kind":{"Name":"x"}}`:                  "not the first line",
		`{"heed":{"version":3,"revision":9223372036854775807}}`: "revision",
	} {
		_, err := read(strings.NewReader(text + strings.Repeat("\n", min(len(text), 1))))
		require.ErrorAs(t, err, new(*heed.InputError), text)
		assert.ErrorContains(t, err, want, text)
	}
	nan := dump.Row{Tally: &dump.Tally{Mass: math.NaN()}}
	w, err := dump.NewWriter(io.Discard, 1)
	require.NoError(t, err)
	require.Error(t, w.Write(nan))
	require.ErrorContains(t, w.Write(dump.Row{Record: &dump.Record{Kind: strings.Repeat("x",
		dump.MaxLine)}}), "may have")
}

// pseudonyms makes a record one of the kind of the key of pseudonyms.
func pseudonyms(id, body string) func(*dump.Record) {
	return func(r *dump.Record) {
		r.Kind, r.ID, r.Body = store.Pseudonyms.Name, id, []byte(body)
	}
}

// TestInvalidRows writes rows that no store has: each is refused with its line.
func TestInvalidRows(t *testing.T) {
	tally := func(change func(*dump.Tally)) dump.Row {
		t := dump.Tally{Positive: dump.Count{N: 1, Last: 5}}
		change(&t)
		return dump.Row{Tally: &t}
	}
	cell := func(change func(*dump.Cell)) dump.Row {
		c := dump.Cell{Kind: "k", Item: "i"}
		change(&c)
		c.Hash = dump.HashOfCell(c.EvidenceCell())
		return dump.Row{Cell: &c}
	}
	record := func(change func(*dump.Record)) dump.Row {
		r := dump.Record{Kind: "k", ID: "i", Revision: 1, At: 1, Body: []byte("{}")}
		change(&r)
		return dump.Row{Record: &r}
	}
	for name, row := range map[string]dump.Row{
		"nothing":        {},
		"two":            {ID: &dump.ID{}, Lost: &dump.Lost{}},
		"no name":        {Kind: &store.Kind{}},
		"empty tally":    tally(func(t *dump.Tally) { t.Positive = dump.Count{} }),
		"n without last": tally(func(t *dump.Tally) { t.Negative.N = 1 }),
		"last without n": tally(func(t *dump.Tally) { t.Negative.Last = 1 }),
		"lost too late":  tally(func(t *dump.Tally) { t.Positive.Lost = 6 }),
		"negative":       tally(func(t *dump.Tally) { t.Landmark = -1 }),
		"too many":       tally(func(t *dump.Tally) { t.Positive.N = 1 << 32 }),
		"channel":        tally(func(t *dump.Tally) { t.Channel = "\x00" }),
		"another hash":   {Cell: &dump.Cell{Kind: "k", Item: "i"}},
		"no item":        cell(func(c *dump.Cell) { c.Item = "" }),
		"half-life":      cell(func(c *dump.Cell) { c.HalfLife = 5 }),
		"no half-life":   cell(func(c *dump.Cell) { c.HalfLife = -1 }),
		"huge half-life": cell(func(c *dump.Cell) { c.HalfLife = math.MaxInt64 }),
		"restart":        cell(func(c *dump.Cell) { c.Restart = math.MaxInt64 }),
		"recorded":       {ID: &dump.ID{Recorded: -1}},
		"lost":           {Lost: &dump.Lost{Recorded: -1}},
		"lost of one":    {Lost: &dump.Lost{Recorded: -1, Origin: &dump.Origin{Source: "s"}}},
		"lost channel":   {Lost: &dump.Lost{Origin: &dump.Origin{Channel: "\x00"}}},
		"lost source":    {Lost: &dump.Lost{Origin: &dump.Origin{Source: "\x00"}}},
		"no id":          {Observation: &dump.Observation{At: 1}},
		"no moment":      {Observation: &dump.Observation{ID: "x"}},
		"weight":         {Observation: &dump.Observation{ID: "x", At: 1, Weight: -1}},
		"no revision":    record(func(r *dump.Record) { r.Revision = 0 }),
		"once":           record(func(r *dump.Record) { r.Revision = store.Once }),
		"no record id":   record(func(r *dump.Record) { r.ID = "" }),
		"no at":          record(func(r *dump.Record) { r.At = 0 }),
		"negative at":    record(func(r *dump.Record) { r.At = -1 }),
		"a late at":      record(func(r *dump.Record) { r.At = math.MaxInt64 }),
		"key":            record(func(r *dump.Record) { r.Keys = []string{""} }),
		"negative seq":   record(func(r *dump.Record) { r.Seq = -1 }),
		"huge seq":       record(func(r *dump.Record) { r.Seq = math.MaxInt64 / 2 }),
		"short secret":   record(pseudonyms("key", `{"secret":"AAAA"}`)),
		"15 bytes":       record(pseudonyms("key", `{"secret":"AAAAAAAAAAAAAAAAAAAA"}`)),
		"no key":         record(pseudonyms("key", `{"secret":1}`)),
		"another key":    record(pseudonyms("keys", `{"secret":"AAAAAAAAAAAAAAAAAAAAAA=="}`)),
	} {
		_, err := read(bytes.NewReader(write(t, dump.Row{Kind: &store.Kind{Name: "k"}},
			dump.Row{Kind: &store.Kind{Name: store.Pseudonyms.Name}}, row)))
		fault := (*heed.InputError)(nil)
		require.ErrorAs(t, err, &fault, name)
		assert.Equal(t, "line 4", fault.Field, name)
		assert.NotContains(t, fault.Reason, "did not come before", name)
	}
	whole := write(t, tally(func(t *dump.Tally) { t.Mass = 0.125 }),
		record(func(r *dump.Record) { r.Body = []byte("[8]") }))
	for part, other := range map[string]string{"0.125": "1e999", `,"body":[8]`: ""} {
		changed := bytes.Replace(whole, []byte(part), []byte(other), 1)
		require.NotEqual(t, whole, changed)
		in, err := dump.NewReader(bytes.NewReader(changed))
		require.NoError(t, err)
		_, err = in.Next()
		if err == nil {
			_, err = in.Next()
		}
		require.ErrorContains(t, err, map[bool]string{true: "body", false: "1e999"}[other == ""])
	}
}

// A loader refuses rows that are valid by themselves and do not fit to those before them.
func TestRowsThatDoNotFit(t *testing.T) {
	c := dump.Cell{Kind: "k", Item: "i"}
	c.Hash = dump.HashOfCell(c.EvidenceCell())
	apart := dump.Cell{Kind: "k", Item: "j", ByOrigin: true, Restart: 5}
	apart.Hash = dump.HashOfCell(apart.EvidenceCell())
	cell, other := dump.Row{Cell: &c}, dump.Row{Cell: &apart}
	sums := func(of text.Hash, source string, lost evidence.Instant) dump.Row {
		return dump.Row{Tally: &dump.Tally{Cell: of, Source: source, Mass: 1, Squares: 1, Reward: 1,
			RewardSquares: 1, Positive: dump.Count{N: 1, Last: 9, Lost: lost}}}
	}
	seen := func(of text.Hash, id, source string, reward float64, at evidence.Instant) dump.Row {
		return dump.Row{Observation: &dump.Observation{Cell: of, ID: id, Source: source,
			Reward: reward, Weight: 1, At: at}}
	}
	unweighed := seen(c.Hash, "w", "", 0, 10)
	unweighed.Observation.Weight = 0
	all, one := sums(c.Hash, "", 0), seen(c.Hash, "1", "s", 1, 9)
	kind := dump.Row{Kind: &store.Kind{Name: "note"}}
	record := func(kind string) dump.Row {
		return dump.Row{Record: &dump.Record{Kind: kind, ID: "1", Revision: 1, At: 1,
			Body: []byte("{}")}}
	}
	for name, rows := range map[string][]dump.Row{
		"a cell twice":          {cell, cell},
		"sums of no cell":       {all},
		"sums twice":            {cell, all, all},
		"an origin":             {cell, sums(c.Hash, "s", 0)},
		"an origin twice":       {other, sums(apart.Hash, "s", 0), sums(apart.Hash, "s", 0)},
		"no sums":               {cell, one},
		"no sums of the origin": {other, sums(apart.Hash, "s", 0), seen(apart.Hash, "1", "t", 1, 9)},
		"no sums of the sign":   {cell, all, seen(c.Hash, "1", "", 0, 9)},
		"after the last":        {cell, all, seen(c.Hash, "1", "", 1, 10)},
		"more than the sums":    {cell, all, one, seen(c.Hash, "2", "", 1, 9)},
		"more than is not lost": {cell, sums(c.Hash, "", 9), one},
		"lost of no cell":       {{Lost: &dump.Lost{Cell: c.Hash}}},
		"history of no cell":    {one},
		"no kind":               {record("note")},
		"a cell behind an id":   {{ID: &dump.ID{}}, cell},
	} {
		_, err := read(bytes.NewReader(write(t, rows...)))
		fault := (*heed.InputError)(nil)
		if assert.ErrorAs(t, err, &fault, name) {
			assert.Equal(t, fmt.Sprintf("line %d", 1+len(rows)), fault.Field, name)
		}
	}
	for name, rows := range map[string][]dump.Row{
		"in the sums":         {cell, all, one},
		"of its origin":       {other, sums(apart.Hash, "s", 0), seen(apart.Hash, "1", "s", 1, 9)},
		"two origins":         {other, sums(apart.Hash, "s", 0), sums(apart.Hash, "t", 0)},
		"before the restart":  {other, seen(apart.Hash, "1", "s", 1, 4)},
		"without weight":      {cell, unweighed},
		"a kind of a tenant":  {kind, record("note@acme")},
		"a kind behind an id": {{ID: &dump.ID{}}, kind, record("note")},
	} {
		_, err := read(bytes.NewReader(write(t, rows...)))
		assert.NoError(t, err, name)
	}
}

// The part of a tenant has the kinds, its cells with all that belongs to them, its ids and records,
// and what the store itself has of it, such as a job.
func TestOnly(t *testing.T) {
	all := rows()
	cell := *all[1].Cell
	cell.Kind = "kind@b"
	cell.Hash = dump.HashOfCell(cell.EvidenceCell())
	seen := *all[3].Observation
	seen.Cell, seen.ID = cell.Hash, "of b"
	own := []dump.Row{all[0], {Cell: &cell}, {Observation: &seen},
		{Lost: &dump.Lost{ID: text.HashOf("lost"), Cell: cell.Hash, Recorded: 13}},
		{ID: &dump.ID{ID: text.HashOfID("of b"), Recorded: 13}},
		{Record: &dump.Record{Kind: "note@b", ID: "i", Revision: 4, At: 5, Body: []byte("{}")}},
		{Record: &dump.Record{Kind: "note", ID: "j", Revision: 4, At: 5, Keys: []string{"tenant=b"},
			Body: []byte("{}")}}}
	mixed := []dump.Row{all[0], all[1], own[1], all[2], all[3], own[2], all[4], own[3], all[5],
		own[4], all[6], own[5], own[6]}
	for tenant, want := range map[string][]dump.Row{"b": own, "c": {all[0]}} {
		var out bytes.Buffer
		require.NoError(t, dump.Only(&out, bytes.NewReader(write(t, mixed...)), tenant))
		assert.Equal(t, string(write(t, want...)), out.String(), tenant)
	}
	assert.Error(t, dump.Only(io.Discard, strings.NewReader("{}\n"), "b"))
	invalid := write(t, dump.Row{Tally: &dump.Tally{}}, all[0])
	assert.ErrorContains(t, dump.Only(io.Discard, bytes.NewReader(invalid), "b"), "line 2")
	assert.Error(t, dump.Only(full{}, bytes.NewReader(write(t, mixed...)), "b"))
}

// full is a disk without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

// A disk without room ends a dump before all rows were written.
func TestADiskWithoutRoomEndsADump(t *testing.T) {
	w, err := dump.NewWriter(full{}, 9)
	require.NoError(t, err)
	row := rows()[6]
	row.Record.Body = []byte(`"` + strings.Repeat("x", 1<<10) + `"`)
	for range 1000 {
		if err = w.Write(row); err != nil {
			break
		}
	}
	require.ErrorIs(t, err, io.ErrShortWrite)
	require.Error(t, w.Close())
}

// The error of a disk behind the last line is the reader's, because more may come after it.
func TestADiskThatFailsBehindTheEnd(t *testing.T) {
	broken := errors.New("broken")
	all := bytes.NewReader(write(t, rows()...))
	_, err := read(io.MultiReader(all, iotest.ErrReader(broken)))
	require.ErrorIs(t, err, broken)
}

func TestTallyFits(t *testing.T) {
	hour := dump.Cell{HalfLife: 3.6e9, ByOrigin: true}
	const step = valid.LandmarkStep * 3.6e9
	for _, c := range []struct {
		cell  dump.Cell
		tally dump.Tally
		fits  bool
	}{
		{hour, dump.Tally{Source: "s", Landmark: step, Positive: dump.Count{N: 1, Last: 2*step - 1}},
			true},
		{hour, dump.Tally{Landmark: step, Positive: dump.Count{N: 1, Last: 2 * step}}, false},
		{hour, dump.Tally{Landmark: 1}, false},
		{dump.Cell{}, dump.Tally{Source: "s"}, false},
		{dump.Cell{}, dump.Tally{Landmark: step}, false},
		{dump.Cell{}, dump.Tally{Positive: dump.Count{N: 1, Last: 5}}, true},
	} {
		assert.Equal(t, c.fits, c.tally.Fits(&c.cell) == nil, "%+v", c)
	}
}

// TestEndlessLine reads from a source that never ends a line: it is refused after 16 MiB, in little
// memory.
func TestEndlessLine(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	source := &endless{}
	_, err := read(source)
	runtime.ReadMemStats(&after)
	require.ErrorContains(t, err, "more than")
	assert.Less(t, source.read, dump.MaxLine+1<<20)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(6*dump.MaxLine))
	failure := errors.New("the disk has gone")
	_, err = read(io.MultiReader(bytes.NewReader(write(t)[:10]), &endless{failure: failure}))
	assert.ErrorIs(t, err, failure)
}

type endless struct {
	read    int
	failure error
}

func (e *endless) Read(p []byte) (int, error) {
	if e.failure != nil {
		return 0, e.failure
	}
	for i := range p {
		p[i] = 'x'
	}
	e.read += len(p)
	return len(p), nil
}
