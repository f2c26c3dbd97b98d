package web_test

import (
	"context"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
	"github.com/heedhq/heed/web"
)

var start = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

// A house is a service with the pages over it.
type house struct {
	*testing.T
	store store.Store
	f     *feedback.Service
	h     *web.Handler
	now   time.Time
	made  int
	// failures are those that the observer has seen.
	failures int
}

func newHouse(t *testing.T, change ...func(*view.Source)) *house {
	t.Helper()
	hs := &house{T: t, store: &memstore.Store{}, now: start}
	clock := func() time.Time { return hs.now }
	f, err := feedback.New(t.Context(), feedback.Config{Store: hs.store, Now: clock,
		NewID: func() string { hs.made++; return fmt.Sprint("made-", hs.made) }})
	require.NoError(t, err)
	hs.f = f
	of := &view.Source{Store: hs.store, Feedback: f}
	for _, do := range change {
		do(of)
	}
	hs.h, err = web.Over(of, web.Config{Identify: byHeader, Now: clock,
		Observer: func(_ context.Context, n heed.Notice) {
			if _, failed := n.(heed.Failed); failed {
				hs.failures++
			}
		}})
	require.NoError(t, err)
	return hs
}

// corrects records and evaluates a correction.
func (hs *house) corrects(id, person, text string) feedback.Feedback {
	hs.Helper()
	_, err := hs.f.Record(hs.Context(), feedback.Feedback{
		ID: id, Gate: "review", Agent: "writer", Decision: feedback.ApprovedWithChanges,
		Reviewer: person, At: hs.now, Summary: text, OutputSHA: id, ApprovedSHA: id + "x",
	})
	require.NoError(hs, err)
	c, err := hs.f.Evaluate(hs.Context(), id)
	require.NoError(hs, err)
	return c
}

// proposed has a proposal that ann and bob gave the evidence for.
func (hs *house) proposed() feedback.Proposal {
	hs.Helper()
	hs.corrects("c1", "ann", "Give every time with its time zone")
	hs.corrects("c2", "bob", "Give every time with its time zone")
	_, _, err := hs.f.Flush(hs.Context())
	require.NoError(hs, err)
	all, _, err := hs.f.Rules().Proposals(hs.Context(),
		feedback.ProposalQuery{Status: feedback.StatePending}, 0)
	require.NoError(hs, err)
	require.Len(hs, all, 1)
	return all[0]
}

func (hs *house) get(person, path string, query ...string) string {
	hs.Helper()
	w := ask{method: "GET", path: address(path, query...), person: person}.of(hs.h)
	require.Equal(hs, http.StatusOK, w.Code, path)
	return w.Body.String()
}

func address(path string, query ...string) string {
	if len(query) == 0 {
		return path
	}
	values := make(url.Values)
	for i := 0; i+1 < len(query); i += 2 {
		values.Add(query[i], query[i+1])
	}
	return path + "?" + values.Encode()
}

// post sends a form, and returns what came, with the page that it leads to.
func (hs *house) post(person, path string, fields ...string) (*httptest.ResponseRecorder, string) {
	hs.Helper()
	form := make(url.Values)
	for i := 0; i+1 < len(fields); i += 2 {
		form.Add(fields[i], fields[i+1])
	}
	w := ask{method: "POST", path: path, person: person, form: form,
		header: map[string]string{"Sec-Fetch-Site": "same-origin"}}.of(hs.h)
	if w.Code != http.StatusSeeOther {
		return w, w.Body.String()
	}
	to := w.Header().Get("Location")
	require.True(hs, strings.HasPrefix(to, "/"), to)
	cookie, _, _ := strings.Cut(w.Header().Get("Set-Cookie"), ";")
	return w, ask{method: "GET", path: to, person: person,
		header: map[string]string{"Cookie": cookie}}.of(hs.h).Body.String()
}

// No link can claim that something was done, and an action is told of on the page that it leads to
// alone.
func TestNotices(t *testing.T) {
	hs := newHouse(t)
	p := hs.proposed()
	w, page := hs.post("kim", "/proposal/reject", "id", p.ID, "hash", p.Hash(), "reason", "No")
	assert.Contains(t, page, "Rejected.")
	assert.NotContains(t, page, "It would have applied to", "it is closed")
	cookie, _, _ := strings.Cut(w.Header().Get("Set-Cookie"), ";")
	for _, one := range []ask{
		{path: w.Header().Get("Location"), person: "kim"},
		{path: w.Header().Get("Location"), person: "lee", header: map[string]string{"Cookie": cookie}},
		{path: "/inbox?done=rejected", person: "kim", header: map[string]string{"Cookie": cookie}},
	} {
		one.method = http.MethodGet
		assert.NotContains(t, one.of(hs.h).Body.String(), "Rejected.", "%v", one)
	}
}

var spaces = regexp.MustCompile(`\s+`)

// plain takes the tags out of a page.
func plain(page string) string {
	page = regexp.MustCompile(`</(td|th|dt|dd|p|li|h\d)>`).ReplaceAllString(page, " ")
	return spaces.ReplaceAllString(html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(page, "")), " ")
}

func TestApproval(t *testing.T) {
	hs := newHouse(t)
	p := hs.proposed()
	assert.Contains(t, hs.get("kim", "/"), "<b>1</b> rule waits")
	inbox := plain(hs.get("kim", "/inbox"))
	assert.Contains(t, inbox, "Give every time with its time zone")
	assert.Contains(t, inbox,
		"0 of 2; 2 more people must approve, and at least 1 other than ann or bob (gave evidence)")
	page := hs.get("kim", "/proposal", "id", p.ID)
	assert.Contains(t, page, p.Hash())
	assert.Contains(t, plain(page), "ann, approved with changes, 2 Mar 2026, 09:00 UTC")
	assert.Contains(t, page, "It would have applied to")
	facts, _, _ := strings.Cut(page, "</dl>")
	assert.Regexp(t, `<dl class="facts">\s*<dt>State</dt><dd>pending</dd>\s*<dt>agents</dt>`+
		`<dd class="text" dir="auto">writer</dd>\s*<dt>Evidence</dt>`, facts, "defaults are left out")

	w, _ := hs.post("kim", "/proposal/approve", "id", p.ID, "hash", p.Hash(), "reason", "  ")
	assert.Equal(t, http.StatusUnprocessableEntity, w.Code)
	_, page = hs.post("kim", "/proposal/approve", "id", p.ID, "hash", p.Hash(), "reason",
		"Seen it too")
	assert.Contains(t, plain(page), "1 of 2; one more person must approve, other than kim")
	assert.Contains(t, page, "You have approved this.")
	assert.NotContains(t, page, "/proposal/approve")
	w, page = hs.post("ann", "/proposal/approve", "id", p.ID, "hash", p.Hash(), "reason", "Mine")
	assert.Equal(t, http.StatusSeeOther, w.Code)
	assert.Contains(t, page, "It is a rule now")
	rule, err := hs.f.Rules().Rule(t.Context(), p.ID)
	require.NoError(t, err)
	assert.Equal(t, feedback.StateActive, rule.Status)
	assert.Equal(t, "kim", rule.Approvals[0].Actor)

	_, page = hs.post("zoe", "/rule/pin", "id", rule.ID, "hash", rule.Hash(), "reason",
		"It matters most")
	assert.Contains(t, plain(page), "Change pin the rule")
	assert.NotContains(t, page, "It would have applied to", "it has no words of it")
	_, page = hs.post("zoe", "/rule/retire", "id", rule.ID, "hash", rule.Hash(), "reason",
		"It was about the old site")
	assert.Contains(t, page, "Retired. It is in no prompt")
	_, page = hs.post("zoe", "/rule/restore", "id", rule.ID, "hash", rule.Hash(), "reason",
		"It came back")
	assert.Contains(t, page, "Proposed. Others have to approve it.")
	_, page = hs.post("zoe", "/rule/revoke", "id", rule.ID, "hash", rule.Hash(), "reason", "Enough")
	assert.Contains(t, page, "Revoked.")
	audit := plain(hs.get("kim", "/changes", "name", rule.ID))
	for _, want := range []string{"kim approve", "zoe retire", "zoe revoke", "Seen it too"} {
		assert.Contains(t, audit, want)
	}
}

func TestEdit(t *testing.T) {
	hs := newHouse(t)
	p := hs.proposed()
	w, page := hs.post("kim", "/proposal/edit", "id", p.ID, "hash", p.Hash(), "text",
		"Give every time with its zone", "type", "GUIDELINE", "agents", "writer\n\n", "reason",
		"Shorter")
	require.Equal(t, http.StatusSeeOther, w.Code)
	assert.Contains(t, page, "<del>Give every time with its time zone</del> "+
		"<ins>Give every time with its zone</ins>")
	_, edited, _ := strings.Cut(page, `<h2 id="edited">`)
	edited, _, _ = strings.Cut(edited, "</section>")
	assert.Equal(t, 1, strings.Count(edited, "<dt>"), "only the text was edited: %s", edited)
	assert.Contains(t, page, "You proposed or edited this")

	// The first version was on lee's screen.
	for _, what := range []string{"approve", "reject"} {
		w, page = hs.post("lee", "/proposal/"+what, "id", p.ID, "hash", p.Hash(), "reason",
			"It is right")
		assert.Equal(t, http.StatusConflict, w.Code)
		assert.Contains(t, page, "The inbox has the newer version")
	}
	all, _, err := hs.f.Rules().Proposals(t.Context(),
		feedback.ProposalQuery{Status: feedback.StatePending}, 0)
	require.NoError(t, err)
	require.Len(t, all, 1)
	for _, what := range []string{"approve", "reject", "edit", "take-out"} {
		w, page = hs.post("lee", "/proposal/"+what, "id", all[0].ID, "hash", p.Hash(), "reason",
			"It is right <b>")
		assert.Equal(t, http.StatusConflict, w.Code, what)
		if what == "reject" {
			assert.Contains(t, page, "It is right &lt;b&gt;", "what was typed is lost")
		}
	}
	assert.Empty(t, all[0].Approvals)
	_, page = hs.post("lee", "/proposal/reject", "id", all[0].ID, "hash", all[0].Hash(), "reason",
		"No")
	assert.Contains(t, page, "Rejected.")
}

func TestTakeOut(t *testing.T) {
	hs := newHouse(t)
	p := hs.proposed()
	w, _ := hs.post("kim", "/proposal/take-out", "id", p.ID, "hash", p.Hash(), "source", "c2",
		"reason", " ")
	assert.Equal(t, http.StatusUnprocessableEntity, w.Code)
	_, page := hs.post("kim", "/proposal/take-out", "id", p.ID, "hash", p.Hash(), "source", "c2",
		"reason", "It is about dates")
	assert.Contains(t, page, "Taken out.")
	sources, err := hs.f.Rules().Sources(t.Context(), p.ID)
	require.NoError(t, err)
	assert.Len(t, sources, 1)
	assert.NotContains(t, page, "/proposal/take-out")
	left, err := hs.f.Rules().Proposal(t.Context(), p.ID)
	require.NoError(t, err)
	w, page = hs.post("kim", "/proposal/take-out", "id", p.ID, "hash", left.Hash(), "source", "c2",
		"reason", "It is not behind this proposal any more")
	assert.Equal(t, http.StatusNotFound, w.Code)
	assert.Contains(t, page, "/proposal/reject", "the proposal is there")
}

// TestContradiction needs a tick for the rule that a proposal contradicts.
func TestContradiction(t *testing.T) {
	hs := newHouse(t)
	make := func(text string) feedback.Proposal {
		p, err := hs.f.Rules().Propose(t.Context(),
			feedback.Submission{Draft: feedback.Draft{Text: text, Agents: []string{"writer"}},
				Actor: "eve", Reason: "why not"})
		require.NoError(t, err)
		return p
	}
	first := make("Always show the price in the summary")
	for _, person := range []string{"kim", "lee"} {
		hs.post(person, "/proposal/approve", "id", first.ID, "hash", first.Hash(), "reason", "Yes")
	}
	second := make("Never show the price in the summary")
	page := hs.get("kim", "/proposal", "id", second.ID)
	assert.Contains(t, page, `name="override" value="`+first.ID+`"`)
	assert.Contains(t, plain(page), "May contradict Always show the price in the summary")
	assert.Contains(t, page, `<b>May contradict</b> <a href="/rule?id=`+first.ID+`"`, "the other side is a link")
	w, page := hs.post("kim", "/proposal/approve", "id", second.ID, "hash", second.Hash(), "reason",
		"Yes")
	assert.Equal(t, http.StatusForbidden, w.Code)
	assert.Contains(t, page, "Tick each rule")
	w, _ = hs.post("kim", "/proposal/approve", "id", second.ID, "hash", second.Hash(), "reason",
		"Yes", "override", first.ID)
	assert.Equal(t, http.StatusSeeOther, w.Code)
}

// TestContradictingCorrection has a correction against a proposal: the page leads to it, and no box
// overrides it.
func TestContradictingCorrection(t *testing.T) {
	hs := newHouse(t)
	hs.corrects("c1", "ann", "Never show the price in the summary")
	for i, person := range []string{"bob", "cat", "dan"} {
		hs.corrects(fmt.Sprint("d", i), person, "Always show the price in the summary")
	}
	_, _, err := hs.f.Flush(t.Context())
	require.NoError(t, err)
	all, _, err := hs.f.Rules().Proposals(t.Context(),
		feedback.ProposalQuery{Status: feedback.StatePending}, 0)
	require.NoError(t, err)
	require.Len(t, all, 1)
	p := all[0]
	page := hs.get("kim", "/proposal", "id", p.ID)
	assert.Contains(t, page, `<b>May contradict</b> <a href="/correction?id=c1"`)
	assert.Contains(t, plain(page), "May contradict Never show the price in the summary")
	assert.Contains(t, plain(page), "It would have applied to 4 of the 4 latest corrections, and "+
		"1 of them may contradict it")
	assert.NotContains(t, page, `name="override"`)
	w, _ := hs.post("kim", "/proposal/approve", "id", p.ID, "hash", p.Hash(), "reason", "Yes")
	assert.Equal(t, http.StatusSeeOther, w.Code)
}

func TestResolve(t *testing.T) {
	hs := newHouse(t)
	hs.corrects("c1", "ann", "Always show the price in the summary")
	c := hs.corrects("c2", "bob", "Never show the price in the summary")
	require.Equal(t, feedback.Ambiguous, c.Class)
	assert.Regexp(t, "Does it contradict .*(price|summary)", plain(hs.get("kim", "/inbox")))
	assert.Contains(t, hs.get("kim", "/inbox"), "Never show the price")
	page := hs.get("kim", "/correction", "id", "c2")
	assert.Contains(t, plain(page),
		"Compared word by word: one demands it, the other denies it")
	const resolve = `action="/correction/resolve"`
	assert.Contains(t, page, resolve)
	assert.NotContains(t, hs.get("kim", "/correction", "id", "c1"), resolve, "it contradicts none")
	hash := regexp.MustCompile(`name="hash" value="([0-9a-f]+)"`).FindStringSubmatch(page)[1]
	w, _ := hs.post("kim", "/correction/resolve", "id", "c2", "hash", "00", "as", "edge_case",
		"reason", "One customer")
	assert.Equal(t, http.StatusConflict, w.Code)
	w, _ = hs.post("kim", "/correction/resolve", "id", "c2", "hash", hash, "as", "edge_case",
		"reason", " ")
	assert.Equal(t, http.StatusUnprocessableEntity, w.Code)
	_, page = hs.post("kim", "/correction/resolve", "id", "c2", "hash", hash, "as", "edge_case",
		"reason", "One customer")
	assert.Contains(t, page, "Resolved.")
	after, err := hs.f.Feedback(t.Context(), "c2")
	require.NoError(t, err)
	assert.Equal(t, []any{feedback.EdgeCase, "kim"}, []any{after.Class, after.Resolver})
}

// What makes a proposal leads to it.
func TestAResolvedCorrectionLeadsToItsProposal(t *testing.T) {
	hs := newHouse(t)
	hs.corrects("c1", "ann", "Always show the price in the summary")
	hs.corrects("c2", "bob", "Never show the price in the summary")
	page := hs.get("kim", "/correction", "id", "c2")
	hash := regexp.MustCompile(`name="hash" value="([0-9a-f]+)"`).FindStringSubmatch(page)[1]
	w, _ := hs.post("kim", "/correction/resolve", "id", "c2", "hash", hash,
		"as", "generalizable_high", "reason", "All customers")
	assert.Regexp(t, `^/proposal\?done=resolved&id=`, w.Header().Get("Location"))
}

// TestActor has forms that name another person. They are refused, and nothing is decided.
func TestActor(t *testing.T) {
	hs := newHouse(t)
	p := hs.proposed()
	for _, field := range []string{"actor", "Actor", "person", "user", "X-Person", "reviewer"} {
		w, _ := hs.post("kim", "/proposal/approve", "id", p.ID, "hash", p.Hash(), "reason", "Yes",
			field, "lee")
		assert.Equal(t, http.StatusUnprocessableEntity, w.Code, field)
	}
	w, _ := hs.post("kim", "/proposal/approve", "id", p.ID, "hash", p.Hash(), "reason", "Yes",
		"reason", "No")
	assert.Equal(t, http.StatusUnprocessableEntity, w.Code)
	hs.post("kim", "/proposal/approve?actor=lee", "id", p.ID, "hash", p.Hash(), "reason", "Yes")
	after, err := hs.f.Rules().Proposal(t.Context(), p.ID)
	require.NoError(t, err)
	require.Len(t, after.Approvals, 1)
	assert.Equal(t, "kim", after.Approvals[0].Actor)
	for method, want := range map[string]int{"GET": 404, "PUT": 404} {
		assert.Equal(t, want, ask{method: method, path: "/proposal/approve",
			person: "kim"}.of(hs.h).Code)
	}
	r := httptest.NewRequestWithContext(context.Background(), "POST", "/proposal/approve", strings.NewReader(`{"id":"x"}`))
	r.Header.Set("X-Person", "kim")
	r.Header.Set("Content-Type", "application/json")
	answer := httptest.NewRecorder()
	hs.h.ServeHTTP(answer, r)
	assert.Equal(t, http.StatusUnprocessableEntity, answer.Code)
}

// TestLists has more rules than a page shows.
func TestLists(t *testing.T) {
	hs := newHouse(t)
	for i := range 30 {
		_, err := hs.f.Rules().Propose(t.Context(), feedback.Submission{
			Draft: feedback.Draft{Text: fmt.Sprintf("Rule %d about subject%d", i, i),
				Agents: []string{"writer"}}, Actor: fmt.Sprint("p", i/10), Reason: "why",
		})
		if i < 20 {
			require.NoError(t, err)
		}
		hs.now = hs.now.Add(time.Second)
	}
	w := hs.get("kim", "/changes")
	older := regexp.MustCompile(`href="\?(after=[^"]*)"`).FindStringSubmatch(w)
	require.Len(t, older, 2, w)
	assert.Contains(t, hs.get("kim", "/changes?"+older[1]), "To the beginning")
	for path, want := range map[string]int{
		"/changes?since=2020-01-01&until=2020-01-02": 200, "/changes?since=x": 422,
		"/changes?kind=x": 422, "/changes?kind=arm&domain=mail": 200, "/changes?after=x": 422,
		"/rules?after=x": 422, "/inbox?after=%00": 422, "/rules?status=no": 422,
		"/proposal?id=none": 404, "/rule?id=": 404, "/correction?id=a%2Fb": 404,
		"/proposal?id=%00": 404, "/inbox?q=%ff": 200, "/proposal": 404, "/correction": 404,
	} {
		w := ask{method: "GET", path: path, person: "kim"}.of(hs.h)
		assert.Equal(t, want, w.Code, path+plain(w.Body.String()))
	}
	today := hs.now.UTC().Format(time.DateOnly)
	assert.Contains(t, hs.get("kim", "/changes", "since", today, "until", today), "<tbody>")
	assert.NotContains(t, hs.get("kim", "/changes", "until", "2020-01-02"), "<tbody>")
	found := hs.get("kim", "/inbox", "q", "SUBJECT7 rule")
	assert.Equal(t, 1, strings.Count(found, "<h3>"))
	mine := hs.get("p1", "/inbox") // p1 proposed the newest ten, and decides about the others
	require.Contains(t, mine, "Rule 0 ")
	assert.Less(t, strings.Index(mine, "Rule 0 "), strings.Index(mine, "Rule 19 "))
}

// A refused edit changes nothing, and keeps all that was typed. One without a field is refused, and
// so is one without agents that does not say that it is for all.
func TestRefusedEdits(t *testing.T) {
	hs := newHouse(t)
	p, err := hs.f.Rules().Propose(t.Context(), feedback.Submission{
		Draft: feedback.Draft{Text: "Delete no table", Type: "CONSTRAINT",
			Agents: []string{"dba"}}, Actor: "eve", Reason: "x",
	})
	require.NoError(t, err)
	typed := []string{"text", "Delete no tables", "type", "GUIDELINE", "agents", "dba\nwriter"}
	edit := func(fields ...string) (int, string) {
		w, page := hs.post("kim", "/proposal/edit",
			append([]string{"id", p.ID, "hash", p.Hash()}, fields...)...)
		return w.Code, page
	}
	status, page := edit(append(typed, "reason", "")...)
	assert.Equal(t, http.StatusUnprocessableEntity, status)
	for _, kept := range []string{">Delete no tables</textarea>", `value="GUIDELINE" selected`, ">dba\nwriter</textarea>"} {
		assert.Contains(t, page, kept)
	}
	for i := 0; i < len(typed); i += 2 {
		status, _ = edit(append(slices.Delete(slices.Clone(typed), i, i+2), "reason", "plural")...)
		assert.Equal(t, http.StatusUnprocessableEntity, status, "without %s", typed[i])
	}
	emptied := []string{"text", "Delete no tables", "type", "GUIDELINE", "agents", " \n", "reason",
		"x"}
	status, page = edit(emptied...)
	assert.Equal(t, http.StatusUnprocessableEntity, status,
		"an emptied field does not mean all agents")
	assert.NotContains(t, page, " checked>")
	status, page = edit(append(typed, "reason", "x", "all", "yes")...)
	assert.Equal(t, http.StatusUnprocessableEntity, status, "some agents and all")
	assert.Contains(t, page, " checked>")
	all, _, err := hs.f.Rules().Proposals(t.Context(), feedback.ProposalQuery{}, 0)
	require.NoError(t, err)
	assert.Len(t, all, 1)
}

// Two corrections in other words stand side by side in the inbox. One click joins them, and a
// person splits them again.
func TestJoinAndSplit(t *testing.T) {
	hs := newHouse(t)
	hs.corrects("c1", "ann", "Keep the answers short, nobody reads past the second paragraph.")
	hs.now = hs.now.Add(time.Second)
	c := hs.corrects("c2", "bob", "Be brief please, people stop reading after two paragraphs.")
	require.Equal(t, []string{"c1"}, c.Near)
	inbox := hs.get("kim", "/inbox")
	assert.Contains(t, plain(inbox), "Corrections that may mean the same")
	assert.Contains(t, inbox, `action="/correction/join"`)
	page := hs.get("kim", "/correction", "id", "c2")
	assert.Contains(t, page, `name="with" value="c1"`)
	hash := regexp.MustCompile(`name="hash" value="(\w+)"`).FindStringSubmatch(page)[1]
	assert.Contains(t, inbox, hash)

	for name, fields := range map[string][]string{
		"of other words": {"id", "c2", "hash", "x", "with", "c1"},
		"with itself":    {"id", "c2", "hash", hash, "with", "c2"},
		"by another":     {"id", "c2", "hash", hash, "with", "c1", "actor", "zoe"},
	} {
		w, _ := hs.post("kim", "/correction/join", fields...)
		assert.GreaterOrEqual(t, w.Code, 400, name)
	}
	outside := ask{method: "POST", path: "/correction/join", person: "kim",
		form:   url.Values{"id": {"c2"}, "hash": {hash}, "with": {"c1"}},
		header: map[string]string{"Sec-Fetch-Site": "cross-site"}}.of(hs.h)
	assert.Equal(t, http.StatusForbidden, outside.Code)

	_, page = hs.post("kim", "/correction/join", "id", "c2", "hash", hash, "with", "c1")
	assert.Contains(t, plain(page), "Joined.")
	assert.Contains(t, plain(page), "Joined by kim")
	assert.NotContains(t, page, "/correction/join")
	c, err := hs.f.Feedback(t.Context(), "c2")
	require.NoError(t, err)
	assert.Equal(t, []string{"c1", "kim"}, []string{c.Cluster, c.Joiner})
	assert.NotContains(t, hs.get("kim", "/inbox"), "/correction/join")

	_, page = hs.post("zoe", "/correction/split", "id", "c2", "hash", hash, "reason", " ")
	assert.Contains(t, page, "must not be empty")
	_, page = hs.post("zoe", "/correction/split", "id", "c2", "hash", hash, "reason", "of mails")
	assert.Contains(t, plain(page), "Split. It is in its own cluster now.")
	assert.NotContains(t, page, "/correction/split")
	assert.Contains(t, plain(page), "a person took it out of its cluster")
	assert.NotContains(t, hs.get("kim", "/inbox"), "/correction/join", "nobody is asked again")
	assert.Contains(t, page, `name="with" value="c1"`, "they can be joined again")

	for i := range 11 {
		hs.now = hs.now.Add(time.Second)
		hs.corrects(fmt.Sprint("d", i), "bob",
			fmt.Sprintf("Be brief please, people stop reading after %d0 paragraphs.", i+1))
	}
	assert.Equal(t, 10, strings.Count(plain(hs.get("kim", "/inbox")), "bob about writer"),
		"of twelve")
}

// What the evaluator gave no usable answer to is in the inbox, with the reason.
func TestUnanswered(t *testing.T) {
	hs := newHouse(t)
	f, err := feedback.New(t.Context(), feedback.Config{Store: hs.store,
		Now: func() time.Time { return hs.now },
		Evaluator: func(context.Context, feedback.Case) (feedback.Evaluation, error) {
			return feedback.Evaluation{}, errors.New("<b>out of order</b>")
		}})
	require.NoError(t, err)
	refused := func(id string) {
		_, err = f.Record(t.Context(), feedback.Feedback{
			ID: id, Gate: "review", Agent: "writer", Decision: feedback.Rejected, Reviewer: "ann",
			At: hs.now, Summary: "Keep it short",
		})
		require.NoError(t, err)
		_, err = f.Evaluate(t.Context(), id)
		require.Error(t, err)
	}
	refused("c1")
	hs.corrects("judged", "bob", "Name the owner of every table")
	for _, page := range []string{hs.get("kim", "/inbox"),
		hs.get("kim", "/correction", "id", "c1")} {
		assert.Contains(t, page, "‹b&gt;out of order‹/b&gt;")
		assert.Contains(t, plain(page), "1 time")
	}
	mute := func() string {
		_, after, _ := strings.Cut(plain(hs.get("kim", "/inbox")), "the evaluator could not judge ")
		number, _, _ := strings.Cut(after, " ")
		return number
	}
	assert.Equal(t, "1", mute())
	for i := range 50 {
		refused(fmt.Sprint("d", i))
	}
	assert.Equal(t, "50", mute(), "a page shows no more")
}

// The page of a proposal lists the heuristics that may break it, and an approver ticks those that
// do.
func TestApproversSeeWhatARuleReaches(t *testing.T) {
	module, err := learning.New(t.Context(), learning.Config{Store: &memstore.Store{}})
	require.NoError(t, err)
	for id, action := range map[string]string{
		"zones": "Give every time without its time zone", "logs": "Give every log with its time",
		"owner": "Name who owns it",
	} {
		_, err = module.Put(t.Context(), learning.Heuristic{ID: id, Condition: "always",
			Action: action})
		require.NoError(t, err)
	}
	hs := newHouse(t, func(v *view.Source) { v.Learning = module })
	p := hs.proposed()
	page := hs.get("kim", "/proposal", "id", p.ID)
	assert.Contains(t, plain(page), "Give every time without its time zone does not answer by itself")
	assert.Contains(t, page, `name="withhold" value="logs"`)
	assert.NotContains(t, page, `value="zones"`)
	assert.NotContains(t, page, "Name who owns it")
	hs.post("kim", "/proposal/approve", "id", p.ID, "hash", p.Hash(), "reason", "Seen it too",
		"withhold", "logs", "withhold", "owner")
	p, err = hs.f.Rules().Proposal(t.Context(), p.ID)
	require.NoError(t, err)
	require.Len(t, p.Approvals, 1)
	assert.Equal(t, []string{"logs", "owner"}, p.Approvals[0].Withhold)
}

// A list is turned part by part: each has the addresses of the next one and of the first. An
// element that is gone since does not move the parts behind it.
func TestAListIsTurned(t *testing.T) {
	module, err := learning.New(t.Context(), learning.Config{Store: &memstore.Store{}})
	require.NoError(t, err)
	for i := range 51 {
		_, err = module.Put(t.Context(), learning.Heuristic{ID: fmt.Sprint("h", i),
			Condition: "always", Action: fmt.Sprint("act ", i)})
		require.NoError(t, err)
	}
	hs := newHouse(t, func(v *view.Source) { v.Learning = module })
	links := regexp.MustCompile(`href="(\?[^"]*)" rel="(first|next)"`)
	shown := regexp.MustCompile(`<a href="/heuristic\?id=(h\d+)"`)
	query, seen := "q=act", make(map[string]int)
	for part, want := range [][]string{{"next"}, {"first", "next"}, {"first"}} {
		page := hs.get("kim", "/heuristics?"+query)
		var got []string
		for _, found := range links.FindAllStringSubmatch(page, -1) {
			got = append(got, found[2])
			to := html.UnescapeString(found[1])
			if query = to[1:]; found[2] == "first" {
				assert.Equal(t, "?q=act", to)
			}
		}
		assert.Equal(t, want, got, part)
		for _, found := range shown.FindAllStringSubmatch(page, -1) {
			seen[found[1]]++
		}
		if part == 0 {
			assert.Contains(t, page, "51 in all")
			require.NoError(t, module.Delete(t.Context(), "h0"))
		}
	}
	assert.Len(t, seen, 51)
	page := hs.get("kim", "/")
	assert.NotContains(t, page, `href="/ways"`)
	assert.Contains(t, page, `href="/heuristics"`)
	assert.Contains(t, hs.get("kim", "/changes"),
		`href="?since=2026-03-01&amp;until=2026-03-01"`, "yesterday")
}

// A form that names nothing, or what there is not, changes nothing.
func TestFormsNeedAnID(t *testing.T) {
	hs := newHouse(t)
	p := hs.proposed()
	for _, path := range []string{"/proposal/reject", "/proposal/edit", "/rule/pin", "/rule/retire",
		"/correction/split"} {
		for _, id := range []string{"", "none"} {
			w, _ := hs.post("kim", path, "id", id, "hash", p.Hash(), "reason", "No")
			assert.Equal(t, http.StatusNotFound, w.Code, "%s of %q", path, id)
		}
	}
	w := ask{method: "GET", path: address("/rule", "id", p.ID), person: "kim"}.of(hs.h)
	assert.Equal(t, http.StatusNotFound, w.Code, "it is only proposed")
}

// A change of a rule that is approved leads to the rule.
func TestAnApprovedChangeLeadsToItsRule(t *testing.T) {
	hs := newHouse(t)
	p := hs.proposed()
	for _, person := range []string{"kim", "lee"} {
		hs.post(person, "/proposal/approve", "id", p.ID, "hash", p.Hash(), "reason", "Yes")
	}
	hs.post("kim", "/rule/pin", "id", p.ID, "hash", p.Hash(), "reason", "It matters")
	all, _, err := hs.f.Rules().Proposals(t.Context(),
		feedback.ProposalQuery{Status: feedback.StatePending}, 0)
	require.NoError(t, err)
	require.Len(t, all, 1)
	var led []string
	for _, person := range []string{"lee", "zoe"} {
		w, _ := hs.post(person, "/proposal/approve", "id", all[0].ID, "hash", all[0].Hash(),
			"reason", "Yes")
		led = append(led, w.Header().Get("Location"))
	}
	assert.Equal(t, address("/rule", "done", "changed", "id", p.ID), led[1], led)
	rule, err := hs.f.Rules().Rule(t.Context(), p.ID)
	require.NoError(t, err)
	assert.True(t, rule.Pinned)

	pinned, err := hs.f.Rules().Propose(t.Context(), feedback.Submission{Draft: feedback.Draft{
		Text: "Ask before a restart", Agents: []string{"writer"}, Change: "PIN",
	}, Actor: "eve", Reason: "why not"})
	require.NoError(t, err)
	hs.post("kim", "/proposal/approve", "id", pinned.ID, "hash", pinned.Hash(), "reason", "Yes")
	w, _ := hs.post("lee", "/proposal/approve", "id", pinned.ID, "hash", pinned.Hash(), "reason",
		"Yes")
	assert.Equal(t, address("/rule", "done", "active", "id", pinned.ID), w.Header().Get("Location"),
		"a rule that is pinned from the beginning")
}

// failing returns a house over a store that can fail.
func failing(t *testing.T) (*house, *storetest.Failing) {
	st := &storetest.Failing{Store: &memstore.Store{}}
	f, err := feedback.New(t.Context(), feedback.Config{Store: st})
	require.NoError(t, err)
	hs := newHouse(t, func(v *view.Source) { v.Store, v.Feedback = st, f })
	hs.f = f
	return hs, st
}

// While the store fails, no action has come about.
func TestActionsWithoutTheStore(t *testing.T) {
	hs, failing := failing(t)
	p := hs.proposed()
	for path, more := range map[string][]string{
		"approve": nil, "reject": nil, "take-out": {"source", "c1"},
		"edit": {"text", "Give the zone", "type", "GUIDELINE", "agents", "writer"},
	} {
		fields := append([]string{"id", p.ID, "hash", p.Hash(), "reason", "Yes"}, more...)
		failing.SetAway(true)
		w, _ := hs.post("kim", "/proposal/"+path, fields...)
		failing.SetAway(false)
		assert.GreaterOrEqual(t, w.Code, 500, path)
		after, err := hs.f.Rules().Proposal(t.Context(), p.ID)
		require.NoError(t, err)
		assert.Equal(t, p.Hash(), after.Hash(), path)
		assert.Equal(t, feedback.StatePending, after.Status, path)
		assert.Empty(t, after.Approvals, path)
	}
}

// Whichever call of the store fails, an action is a failure of the server, also if it would be
// refused: then its page can't be read.
func TestAnActionWhileACallFails(t *testing.T) {
	hs, failing := failing(t)
	p, seen := hs.proposed(), 0
	for reason, want := range map[string]int{"": http.StatusUnprocessableEntity,
		"Shorter": http.StatusSeeOther} {
		for at := 1; ; at++ {
			failing.Fail(at, false)
			w := ask{method: "POST", path: "/proposal/edit", person: "kim", form: url.Values{
				"id": {p.ID}, "hash": {p.Hash()}, "reason": {reason}, "text": {"Give the zone"},
				"type": {"GUIDELINE"}, "agents": {"writer"}}}.of(hs.h)
			if !failing.Failed() {
				assert.Equal(t, want, w.Code)
				assert.Greater(t, at, 1)
				break
			}
			assert.GreaterOrEqual(t, w.Code, 500, "call %d", at)
			seen++
			assert.Equal(t, seen, hs.failures, "call %d", at)
		}
	}
}

// Whichever call of the store fails, a change of a rule is proposed as a whole or not at all.
func TestAChangeIsProposedAsAWhole(t *testing.T) {
	hs, failing := failing(t)
	p := hs.proposed()
	for _, person := range []string{"kim", "lee"} {
		hs.post(person, "/proposal/approve", "id", p.ID, "hash", p.Hash(), "reason", "Yes")
	}
	for at := 1; ; at++ {
		failing.Fail(at, false)
		w, _ := hs.post("kim", "/rule/pin", "id", p.ID, "hash", p.Hash(), "reason", "It matters")
		if !failing.Failed() || w.Code == http.StatusSeeOther {
			break
		}
		assert.GreaterOrEqual(t, w.Code, 500, "call %d", at)
	}
	failing.Fail(0, false)
	all, _, err := hs.f.Rules().Proposals(t.Context(),
		feedback.ProposalQuery{Status: feedback.StatePending}, 0)
	require.NoError(t, err)
	require.Len(t, all, 1)
	assert.Equal(t, p.ID, all[0].Of)

	for at := 1; ; at++ {
		failing.Fail(at, false)
		w, _ := hs.post("kim", "/rule/retire", "id", p.ID, "hash", p.Hash(), "reason", "Enough")
		if !failing.Failed() || w.Code == http.StatusSeeOther {
			break
		}
		assert.GreaterOrEqual(t, w.Code, 500, "call %d", at)
	}
	rule, err := hs.f.Rules().Rule(t.Context(), p.ID)
	require.NoError(t, err)
	assert.Equal(t, feedback.StateRetired, rule.Status)
}
