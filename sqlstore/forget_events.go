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
		case isAttribution(payload) && f.caused(payload["source"]):
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

// isLearners reports whether a payload is a [strategy.Event], which has the id of the event that it comes with.
func isLearners(payload map[string]any, id string) bool {
	_, named := payload["learner"].(string)
	return named && payload["id"] == id
}

// isAttribution reports whether a payload is a [strategy.AttributionEvent].
func isAttribution(payload map[string]any) bool {
	_, session := payload["session"]
	_, records := payload["attribution_records"]
	return session || records
}

// isReview reports whether a payload is what [feedback.DecodeEvent] reads.
func isReview(payload map[string]any) bool {
	_, is := payload["decision_id"]
	return is
}

// learners takes the person out of a learner's event, and reports whether they were in it.
func (f *forgetting) learners(payload map[string]any) (found bool) {
	at(payload, []string{"effect", "observations"}, func(value any) any {
		observations, _ := value.([]any)
		kept := slices.DeleteFunc(observations, func(o any) bool {
			observation, ok := o.(map[string]any)
			return ok && f.caused(observation["source"])
		})
		found = len(kept) < len(observations)
		return kept
	})
	result, actor := f.remove(payload, "result.source"), f.rename(payload, "actor")
	return found || result || actor
}
