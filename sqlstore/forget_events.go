package sqlstore

import (
	"encoding/json"
	"slices"
)

// A queue is a table of events: what waits in it, in order, and how one of them is changed or taken out.
type queue struct{ list, keep, drop *query }

var queues = []queue{
	{
		both(`SELECT seq, id, 0, payload FROM heed_outbox WHERE seq > $1 ORDER BY seq LIMIT 500`),
		both(`UPDATE heed_outbox SET payload = $1 WHERE seq = $2`),
		both(`DELETE FROM heed_outbox WHERE seq = $1`),
	},
	{
		both(`SELECT seq, id, 0, payload FROM heed_stream WHERE seq > $1 ORDER BY seq LIMIT 500`),
		both(`UPDATE heed_stream SET payload = $1 WHERE seq = $2`),
		acknowledge,
	},
}

// events takes the person out of what waits, as far as heed knows what it is.
func (f *forgetting) events(q queue) error {
	return f.each(q.list, func(r row) error {
		payload, err := object(r.text)
		if err != nil {
			return nil //nolint:nilerr // it is of the host's own making
		}
		switch {
		case isLearners(payload, r.id):
			if !f.learners(payload) {
				return nil
			}
		case isAttribution(payload) && f.isOf(payload):
			_, err := f.t.exec(q.drop, r.seq)
			return err
		case isReview(payload):
			if !f.rename(payload, "reviewer_id") {
				return nil
			}
		default:
			return nil
		}
		text, err := json.Marshal(payload)
		if err != nil {
			return err
		}
		_, err = f.t.exec(q.keep, text, r.seq)
		return err
	})
}

// values returns what is under a name in an object, in whatever letters: see at.
func values(object map[string]any, name string) (all []any) {
	at(object, []string{name}, func(value any) any {
		all = append(all, value)
		return value
	})
	return all
}

func has(object map[string]any, name string) bool { return len(values(object, name)) > 0 }

// isOf reports whether the person is the source of an object.
func (f *forgetting) isOf(object map[string]any) bool {
	return slices.ContainsFunc(values(object, "source"), f.caused)
}

// isLearners reports whether a payload is a [strategy.Event], which has the id of the event that it comes with.
func isLearners(payload map[string]any, id string) bool {
	return has(payload, "learner") && slices.Contains(values(payload, "id"), any(id))
}

// isAttribution reports whether a payload is a [strategy.AttributionEvent]: it attributes something, or has nothing else.
func isAttribution(payload map[string]any) bool {
	return has(payload, "attribution_records") || has(payload, "signals") || has(payload, "session_ended") ||
		len(values(payload, "session"))+len(values(payload, "source")) == len(payload)
}

// isReview reports whether a payload is what [feedback.DecodeEvent] reads.
func isReview(payload map[string]any) bool { return has(payload, "decision_id") }

// learners takes the person out of a learner's event, and reports whether they were in it.
func (f *forgetting) learners(payload map[string]any) (found bool) {
	at(payload, []string{"effect", "observations"}, func(value any) any {
		observations, _ := value.([]any)
		kept := slices.DeleteFunc(observations, func(o any) bool {
			observation, ok := o.(map[string]any)
			return ok && f.isOf(observation)
		})
		found = len(kept) < len(observations)
		return kept
	})
	result, actor := f.remove(payload, "result.source"), f.rename(payload, "actor")
	return found || result || actor
}
