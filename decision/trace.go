package decision

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// A Trace says how an answer came about. It is a plain value.
type Trace struct {
	ResponseID string
	EventID    string
	Source     string // of the event
	Domain     string
	Path       Path // Heuristic or Model
	// Text is what happened and Response what was answered, as valid UTF-8 without NUL, cut where they are longer than
	// 16 KiB. Where Hashed is set, they are hashes in place of the texts.
	Text, Response string
	Hashed         bool
	MatchedID      string // the heuristic that matched best
	CreditID       string // the heuristic that answered
	Success        float64
	Confidence     float64
	Variant        string // of the experiment that the event was part of
	At             time.Time
}

// A TraceStore keeps traces for as long as feedback can come.
//
// An implementation must be safe for concurrent use by multiple goroutines. Every method honours its context: one that is
// done on entry gives its error and changes nothing. What goes in or comes out is copied, and times keep microseconds at
// least. A store may forget: traces have a time to live, after which they are [heed.ErrNotFound], and a store that is full
// drops the oldest. Package decisiontest has the suite that says whether an implementation keeps this contract.
type TraceStore interface {
	// Put keeps a trace. Where one of its ResponseID is kept, it is [heed.ErrConflict] and nothing changes. A trace without
	// a ResponseID is a [*heed.InputError].
	Put(ctx context.Context, t Trace) error

	// Get returns the trace of an answer, or [heed.ErrNotFound].
	Get(ctx context.Context, responseID string) (Trace, error)

	// Delete forgets a trace and the verdicts on it. One that is not there is [heed.ErrNotFound].
	Delete(ctx context.Context, responseID string) error

	// React records a verdict on an answer, and returns what holds then and the trace; or [heed.ErrNotFound]. The verdicts
	// of one (Person, Source, Target) replace each other, and the one with the latest At holds, whatever the order in which
	// they come; of two at the same time, the one that came later does. The same verdict again changes nothing and gets
	// the same answer, as long as no other came between. Concurrent calls have an effect as if one came after the other. A
	// store that has room for no more verdicts on an answer returns an error.
	React(ctx context.Context, responseID string, v Verdict) (Trace, Standing, error)
}

// A Verdict is what a person said of an answer.
type Verdict struct {
	Person, Source, Target string
	Value                  float64 // from -1, as bad as can be, to 1
	At                     time.Time
}

// A Standing is what holds of the verdicts of one person, source and target on an answer.
type Standing struct {
	Now    Verdict // the latest
	Before Verdict // the one that it replaced; the zero Verdict where there was none
}

// maxTraced is how many bytes of a text a trace has.
const maxTraced = 16 << 10

// traced returns a text as a trace has it: what every database can keep.
func traced(text string, hash bool) string {
	if hash {
		sum := sha256.Sum256([]byte(text))
		return fmt.Sprintf("sha256:%s (%d bytes)", hex.EncodeToString(sum[:]), len(text))
	}
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\x00", "")
	if len(text) > maxTraced {
		end := maxTraced
		for !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end]
	}
	return strings.Clone(text)
}
