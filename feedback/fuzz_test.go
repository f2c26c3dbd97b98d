package feedback_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"github.com/heedhq/heed/feedback"
)

func FuzzDecodeEvent(f *testing.F) {
	f.Add([]byte(document))
	f.Add([]byte(`{"timestamp":"2026-05-04T03:02:01Z","review_duration_seconds":1e9,"tags":[null]}`))
	w := newWorld(f, feedback.Config{})
	f.Fuzz(func(t *testing.T, payload []byte) {
		event, err := feedback.DecodeEvent(payload)
		if err != nil {
			return
		}
		if event.Duration < 0 {
			t.Fatalf("a duration of %v", event.Duration)
		}
		if _, err := w.Record(ctx, event); err != nil {
			return
		}
		if again, err := w.Record(ctx, event); err != nil || !again {
			t.Fatalf("the same again: %+v, %v", again, err)
		}
		if _, err := w.Evaluate(ctx, event.ID); err != nil {
			t.Fatal(err)
		}
	})
}

// For any base and any rule, the section has the lines that it should have, and taking it out gives
// back the base.
func FuzzInject(f *testing.F) {
	f.Add("base", "Be brief")
	f.Add("a\n\n"+feedback.Heading+"\n", "x\n"+feedback.Ending+"\n# y")
	f.Fuzz(func(t *testing.T, base, text string) {
		if !utf8.ValidString(base) || len(base) > 10_000 ||
			strings.Contains(base, "Reviewers asked for") {
			return
		}
		w := stocked(t, 1, feedback.Config{}, func(_ int, r *feedback.Rule) { r.Text = text })
		in := w.inject("prd", base)
		if lines := strings.Count(in.Section, "\n"); lines != 5 {
			t.Fatalf("%d lines: %q", lines, in.Section)
		}
		if again := w.inject("prd", in.Prompt); again.Prompt != in.Prompt {
			t.Fatalf("%q, then %q", in.Prompt, again.Prompt)
		}
		if bare := w.inject("nobody", in.Prompt); bare.Prompt != base {
			t.Fatalf("%q, without its rules %q", base, bare.Prompt)
		}
	})
}

func FuzzImport(f *testing.F) {
	w := newWorld(f, feedback.Config{})
	w.says("ann", long)
	w.activate(rule("Be brief"))
	w.propose("paul", rule("Say why"))
	a, err := feedback.Export(ctx, w.Service)
	if err != nil {
		f.Fatal(err)
	}
	for _, part := range []any{a.Feedback[0], a.Rules[0], a.Proposals[0]} {
		text, err := json.Marshal(part)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		files := fstest.MapFS{}
		for _, dir := range []string{"active", "proposed"} {
			files["feedback/rules/"+dir+"/a.json"] = &fstest.MapFile{Data: text}
		}
		into := newWorld(t, feedback.Config{})
		opened, _ := into.Import(ctx, files, "igor", "x")
		for _, p := range opened {
			if p.Status == feedback.StateApproved || len(p.Approvals) > 0 {
				t.Fatalf("%s with %d approvals", p.Status, len(p.Approvals))
			}
		}
		if len(into.inject("prd", "").Rules) > 0 {
			t.Fatal("a rule that nobody approved")
		}
		if _, err := feedback.Export(ctx, into.Service); err != nil {
			t.Fatal(err)
		}
	})
}
