package memstore_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/strategy"
)

// exported is when testdata/export.jsonl was written, by the clock of its stores. TestExportFile of sqlstore/enginetest writes
// it.
var exported = time.Date(2026, 5, 4, 3, 10, 0, 0, time.UTC)

func atExport() time.Time { return exported }

func exportFile(t testing.TB) string {
	text, err := os.ReadFile("testdata/export.jsonl")
	require.NoError(t, err)
	return string(text)
}

// emptyStores are one of each sort, at the moment of the export.
func emptyStores(t testing.TB) memstore.Stores {
	return memstore.Stores{
		Evidence: newEvidence(t, memstore.EvidenceConfig{Now: atExport}), Choices: newChoices(t, memstore.ChoicesConfig{Now: atExport}),
		Heuristics: &memstore.Heuristics{}, Patterns: &memstore.Patterns{},
		Errors: &memstore.Errors{}, Streams: map[string]*memstore.Stream{"inbox": {}},
	}
}

func importText(text string, into memstore.Stores) error {
	return memstore.Import(ctx, strings.NewReader(text), &into)
}

// exportOf makes an export of rows.
func exportOf(rows ...string) string {
	return fmt.Sprintf("{\"heed\":3}\n%s\n{\"rows\":%d}\n", strings.Join(rows, "\n"), len(rows))
}

func documentRow(sort, id string, revision int, body any) string {
	text, _ := json.Marshal(body)
	row, _ := json.Marshal(map[string]any{
		"table": "documents", "row": map[string]any{
			"doc": sort + id, "sort": sort, "id": id, "class": "", "moment": exported.UnixNano(), "revision": revision, "body": string(text),
		},
	})
	return string(row)
}

var armCells = []evidence.Cell{
	{Kind: "models.arm", Scope: "law/", Item: "contracts", Name: "large-model"},
	{Kind: "models.arm", Scope: "law/", Item: "contracts", Name: "small-model"},
}

// TestImport reads an export of everything. That it says what the database said is shown by the tests of sqlstore/enginetest.
func TestImport(t *testing.T) {
	into := emptyStores(t)
	require.NoError(t, importText(exportFile(t), into))

	large, small := read(t, into.Evidence, armCells[0]), read(t, into.Evidence, armCells[1])
	assert.Equal(t, [2]float64{3, 2.75}, [2]float64{large.Mass, large.Reward})
	assert.Equal(t, [2]float64{2, 0.5}, [2]float64{small.Mass, small.Reward})
	assert.Len(t, history(t, into.Evidence, armCells[0]), 2)
	assert.Equal(t, []int{6, 5, 4, 3, 2, 1, 0}, numbers(t, into.Choices, strategy.ChoiceFilter{}))
	record, err := into.Choices.Get(ctx, choiceOf(1, start).ID)
	require.NoError(t, err)
	assert.Equal(t, "ann", record.Result.Source)
	_, err = into.Heuristics.Get(ctx, "h")
	require.NoError(t, err)
	_, err = into.Patterns.Pattern(ctx, "0")
	require.NoError(t, err)
	for _, id := range []string{"1", "2"} {
		d, err := into.Streams["inbox"].Receive(ctx)
		require.NoError(t, err)
		assert.Equal(t, evidence.Event{ID: id, Topic: "t", At: start.Truncate(time.Hour), Payload: []byte{0, 255}}, d.Event())
	}
}

// TestImportedEvidenceGoesOn: what was known is known, and what could be taken back can be.
func TestImportedEvidenceGoesOn(t *testing.T) {
	into := emptyStores(t)
	require.NoError(t, importText(exportFile(t), into))
	store := into.Evidence
	plain := evidence.Cell{Kind: "plain", Scope: "s", Item: "i", Name: "é"}
	for _, id := range []string{"1", "5", "7", "batch 3"} { // one forgotten, one retracted, one without a history, and a batch
		o := observe(id, exported)
		assert.Equal(t, []string{id}, add(t, store, o).Duplicates)
	}
	assert.True(t, commit(t, store, evidence.Batch{ID: "batch 7"}).Duplicate)
	// What the history no longer holds of the large model is of the first minute.
	commit(t, store, evidence.Batch{Restart: []evidence.Restart{{Cell: armCells[0], At: start.Truncate(time.Hour).Add(2 * time.Minute)}}})
	assert.Equal(t, 2., read(t, store, armCells[0]).Mass)
	for _, retracted := range []struct {
		id   string
		want error
	}{
		{"1", evidence.ErrForgotten}, {"7", evidence.ErrForgotten}, {"none", heed.ErrNotFound}, {"a", heed.ErrNotFound}, {"3", nil}, {"5", nil},
	} {
		_, err := store.Commit(ctx, evidence.Batch{Retract: []string{retracted.id}})
		require.ErrorIs(t, err, retracted.want, retracted.id)
	}
	assert.Equal(t, 8., read(t, store, plain).Mass)
	_, err := store.Commit(ctx, evidence.Batch{Rebuild: []evidence.Cell{plain}})
	require.ErrorIs(t, err, evidence.ErrForgotten)
	_, err = store.Commit(ctx, evidence.Batch{Expunge: []string{"ann"}})
	require.ErrorIs(t, err, evidence.ErrForgotten)
	_, err = store.Commit(ctx, evidence.Batch{Restart: []evidence.Restart{{Cell: plain, At: start.Truncate(time.Hour)}}})
	require.ErrorIs(t, err, evidence.ErrForgotten)
	commit(t, store, evidence.Batch{Restart: []evidence.Restart{{Cell: plain, At: start.Truncate(time.Hour).Add(time.Second)}}})
	assert.Zero(t, read(t, store, plain))
	other := observe("8", start.Truncate(time.Hour).Add(-time.Second))
	other.Cell = evidence.Cell{Kind: "plain", Name: "other"}
	add(t, store, other)
	assert.Zero(t, read(t, store, other.Cell), "it was restarted later than that")
	entry := evidence.AuditEntry{ID: "a", Action: "again", At: exported}
	event := evidence.Event{ID: "observed:models:00000000-0000-0000-0000-000000000000:", Topic: "t", At: exported}
	commit(t, store, evidence.Batch{Audit: []evidence.AuditEntry{entry}, Events: []evidence.Event{event}, Sent: []string{event.ID}})
	commit(t, store, evidence.Batch{Events: []evidence.Event{event}})
	assert.Len(t, outboxOf(t, store), 4)
}

func outboxOf(t testing.TB, store evidence.Store) (ids []string) {
	for e, err := range store.Outbox(ctx) {
		require.NoError(t, err)
		ids = append(ids, e.ID)
	}
	return ids
}

// TestImportRefuses: an export that can't be right changes nothing, and the error names the line.
func TestImportRefuses(t *testing.T) {
	good := exportFile(t)
	lines := strings.SplitAfter(strings.TrimSuffix(good, "\n"), "\n")
	into := emptyStores(t)
	refused := func(t *testing.T, text string, want ...string) {
		t.Helper()
		err := importText(text, into)
		var fault *heed.InputError
		require.ErrorAs(t, err, &fault)
		for _, part := range want {
			assert.ErrorContains(t, err, part)
		}
	}

	for name, tt := range map[string]struct{ text, line, want string }{
		"nothing":                {"", "line 1:", "JSON"},
		"another JSON":           {"{}\n", "line 1:", "version 0"},
		"a newer version":        {strings.Replace(good, `{"heed":3}`, `{"heed":4}`, 1), "line 1:", "version 4"},
		"no first line":          {strings.Join(lines[1:], ""), "line 1:", "version 0"},
		"its last line":          {strings.Join(lines[:len(lines)-1], ""), "line 80", "cut off"},
		"half of its last line":  {good[:len(good)-3], "line 81:", "JSON"},
		"half of it":             {good[:len(good)/2], "line ", "JSON"},
		"a line is missing":      {strings.Join(append(lines[:3:3], lines[4:]...), ""), "line ", ""},
		"the last row":           {strings.Join(append(lines[:79:79], lines[80]), ""), "line 80:", "there were 78, and not 79"},
		"something after it":     {good + lines[1], "line 82:", "after the end"},
		"two in one":             {good + good, "line 82:", "after the end"},
		"a version in between":   {strings.Replace(good, "\n", "\n{\"heed\":3}\n", 1), "line 2:", "table"},
		"an unknown table":       {strings.Replace(good, `"table":"ids"`, `"table":"users"`, 1), "line 13:", "users"},
		"an unknown document":    {strings.Replace(good, `"sort":"heuristic"`, `"sort":"cells"`, 1), "line ", `"cells"`},
		"rows that are none":     {exportOf(`[]`), "line 2:", "JSON"},
		"another file":           {"PK\x03\x04", "line 1:", "JSON"},
		"fewer than its history": {strings.Replace(good, `"n_positive":3`, `"n_positive":1`, 1), "line 45:", "in the sums"},
		"history after the last": {strings.Replace(good, `"last_positive":1777863780000000`, `"last_positive":1777863700000000`, 1), "line 44:", "in the sums"},
		"a line that never ends": {`{"heed":3}` + "\n" + strings.Repeat(" ", 1<<20) + `{`, "line 2:", "JSON"},
	} {
		t.Run(name, func(t *testing.T) { refused(t, tt.text, tt.line, tt.want) })
	}

	// Each of these changes a line, the first that has the old text. A fault that shows in the line behind it wants "next".
	const next = "next"
	for name, tt := range map[string]struct{ old, changed, want string }{
		"a missing column":              {`"scope":"law/"`, `"scop":"law/"`, "scope of cells"},
		"a text for a number":           {`"restart":0`, `"restart":"0"`, "restart"},
		"a fraction for an integer":     {`"restart":0`, `"restart":0.5`, "restart"},
		"a number for a text":           {`"scope":"law/"`, `"scope":1`, "scope"},
		"null for a text":               {`"scope":"law/"`, `"scope":null`, "scope"},
		"an infinite sum":               {`"mass":3`, `"mass":1e999`, "mass"},
		"a sum of nonsense":             {`"mass":3`, `"mass":1e200`, "mass"},
		"no base64":                     {`"payload":"AP8="`, `"payload":"*"`, "payload"},
		"a cell without a kind":         {`"kind":"models.arm"`, `"kind":""`, "Kind"},
		"a text that is too long":       {`"kind":"models.arm"`, `"kind":"` + strings.Repeat("k", 1025) + `"`, "Kind"},
		"a text with a NUL":             {`"scope":"s"`, `"scope":"\u0000"`, "NUL"},
		"a half-life that is too short": {`"half_life":3600000000`, `"half_life":1`, "half_life"},
		"a half-life that is too long":  {`"half_life":3600000000`, `"half_life":9223372036854775807`, "half_life"},
		"a flag of 2":                   {`"by_origin":1`, `"by_origin":2`, "by_origin"},
		"a restart before 1970":         {`"restart":1777863600000000`, `"restart":-1`, "restart"},
		"a restart after 9999":          {`"restart":1777863600000000`, `"restart":253402300800000000`, "restart"},
		"a cell twice":                  {`"item":"contracts","kind":"models.arm","name":"small-model"`, `"item":"contracts","kind":"models.arm","name":"large-model"`, "twice"},
		"a key twice":                   {`"cell":"9fB-oODHVmKESXjbYVlFpiI1dzjPJ-gRZLcWZsnOUPg","half_life"`, `"cell":"5H7Y6lfir_QVmPAZVo7R16kEduv9sZN-VbI6W6nKZ1g","half_life"`, "twice"},
		"a tally of no cell":            {`"cell":"5H7Y6lfir_QVmPAZVo7R16kEduv9sZN-VbI6W6nKZ1g","channel"`, `"cell":"x","channel"`, "not known"},
		"a tally twice":                 {`"cell":"9fB-oODHVmKESXjbYVlFpiI1dzjPJ-gRZLcWZsnOUPg","channel"`, `"cell":"5H7Y6lfir_QVmPAZVo7R16kEduv9sZN-VbI6W6nKZ1g","channel"`, "twice"},
		"an origin where none is kept":  {`"channel":"","landmark"`, `"channel":"x","landmark"`, "origins together"},
		"a landmark of no half-life":    {`"channel":"","landmark":0`, `"channel":"","landmark":1`, "landmark"},
		"a landmark of ever after":      {`"landmark":1929`, `"landmark":9223372036854775807`, "landmark"},
		"a landmark long before":        {`"landmark":1929`, `"landmark":1927`, "landmark"},
		"a count below 0":               {`"n_positive":3`, `"n_positive":-3`, "n_positive"},
		"a count over 32 bits":          {`"n_positive":3`, `"n_positive":4294967296`, "n_positive"},
		"a tally of nothing":            {`"n_positive":3`, `"n_positive":0`, "n_positive"},
		"a loss before 1970":            {`"lost_positive":1777863660000000`, `"lost_positive":-1`, "lost_positive"},
		"a loss of 2 sources":           {`"lost_source":1`, `"lost_source":2`, "lost_source"},
		"an id without text":            {`"id":"1","recorded"`, `"id":"","recorded"`, "must not be empty"},
		"an id twice":                   {`"id":"1","recorded"`, `"id":"2","recorded"`, next},
		"an id of no space":             {`"space":1`, `"space":3`, "space"},
		"an id half retracted":          {`"retracted":1`, `"retracted":-1`, "retracted"},
		"an id of the future":           {`"recorded":1777864020000000`, `"recorded":253402300800000000`, "recorded"},
		"history that is no JSON":       {`"observation":"{`, `"observation":"`, "observation"},
		"history out of range":          {`\"reward\":0.5,\"weight\":1`, `\"reward\":1.5,\"weight\":1`, "Reward"},
		"history of another id":         {`\"id\":\"3\",\"cell\"`, `\"id\":\"4\",\"cell\"`, "of its row"},
		"history of another cell":       {`\"kind\":\"plain\"`, `\"kind\":\"fancy\"`, "of its row"},
		"history of another moment":     {`"happened":1777863600000000,"id":"3"`, `"happened":1777863600000001,"id":"3"`, "of its row"},
		"history that no sum has":       {`\"source\":\"ann\",\"session\":\"monday\",\"reward\":1`, `\"source\":\"ann\",\"session\":\"monday\",\"reward\":0`, "in the sums"},
		"history of no origin":          {`\"channel\":\"spoken\",\"source\":\"ann\"`, `\"channel\":\"other\",\"source\":\"ann\"`, "in the sums"},
		"forgotten without an id":       {`"id":"1","recorded":1777864027000000`, `"id":"","recorded":1777864027000000`, "must not be empty"},
		"an entry without an action":    {`\"action\":\"looked\"`, `\"action\":\"\"`, "Action"},
		"an entry that is no JSON":      {`"entry":"{`, `"entry":"`, "entry"},
		"an event at no time":           {`"outbox","row":{"happened":"2026-05-04T03:00:00Z"`, `"outbox","row":{"happened":"yesterday"`, "happened"},
		"an event without a topic":      {`"topic":"groove.strategy"`, `"topic":""`, "Topic"},
		"an event of a stream twice":    {`"id":"1","payload"`, `"id":"2","payload"`, next},
		"an event of no stream":         {`"stream":"inbox"`, `"stream":""`, "must not be empty"},
		"a choice that is no JSON":      {`"choice":"{`, `"choice":"`, "choice"},
		"a choice of another id":        {`"choice":"{\"id\":\"00000000-0000-0000-0000-000000000001\"`, `"choice":"{\"id\":\"00000000-0000-0000-0000-000000000009\"`, "that of the choice"},
		"a stage of its own":            {`"stage":"observed"`, `"stage":"seen"`, "stage"},
		"a result of a pending choice":  {`"stage":"observed"`, `"stage":"pending"`, "result"},
		"a result that is no JSON":      {`"result":"{`, `"result":"`, "result"},
		"no result":                     {`"stage":"expired"`, `"stage":"observed"`, "result"},
		"an ended choice of 2":          {`"ended":1`, `"ended":2`, "ended"},
		"a document that is no JSON":    {`"body":"{\"ID\":\"h\"`, `"body":"\"ID\":\"h\"`, "body"},
		"a heuristic out of range":      {`\"Initial\":0.25`, `\"Initial\":25`, "Initial"},
		"a heuristic of another id":     {`\"ID\":\"h\"`, `\"ID\":\"g\"`, "that of the body"},
		"another revision":              {`\"CreatedAt\":\"2026-05-04T03:07:07Z\",\"Revision\":1`, `\"CreatedAt\":\"2026-05-04T03:07:07Z\",\"Revision\":2`, "revision"},
		"a pattern of no kind":          {`\"kind\":\"pattern\"`, `\"kind\":\"\"`, "Kind"},
		"a transition of another id":    {`\"id\":\"t\"`, `\"id\":\"u\"`, "that of the body"},
		"an entry of no task":           {`\"task\":\"task\"`, `\"task\":\"\"`, "Task"},
		"an error of no type":           {`\"type\":\"timeout\"`, `\"type\":\"\"`, "Type"},
		"an error twice":                {`"body":"{\"id\":\"2\"`, `"body":"{\"id\":\"1\"`, "that of the body"},
	} {
		t.Run(name, func(t *testing.T) {
			before, after, found := strings.Cut(good, tt.old)
			require.True(t, found, "the file has no such text")
			line := strings.Count(before, "\n") + 1
			if tt.want == next {
				line, tt.want = line+1, "twice"
			}
			refused(t, before+tt.changed+after, fmt.Sprintf("line %d: ", line), tt.want)
		})
	}
	require.NoError(t, importText(good, into), "nothing of all that has changed the stores")
}
