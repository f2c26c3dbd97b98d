package memstore

import (
	"maps"
	"slices"
	"sync"

	"github.com/heedhq/heed/evidence"
)

// evidenceRecords holds what a store keeps beside cells: the audit log and the outbox.
type evidenceRecords struct {
	mu     sync.Mutex
	audit  []evidence.AuditEntry // the first recorded first
	outbox []evidence.Event      // likewise
}

// add appends copies, and drops the oldest audit entries over the limit.
func (r *evidenceRecords) add(audit []evidence.AuditEntry, events []evidence.Event, sent []string, maxAudit int) {
	for _, a := range audit {
		a.Details = maps.Clone(a.Details)
		r.audit = append(r.audit, a)
	}
	if over := len(r.audit) - maxAudit; over > 0 {
		clear(r.audit[:over])
		r.audit = r.audit[over:]
	}
	for _, e := range events {
		e.Payload = slices.Clone(e.Payload)
		r.outbox = append(r.outbox, e)
	}
	if len(sent) > 0 {
		gone := make(map[string]bool, len(sent))
		for _, id := range sent {
			gone[id] = true
		}
		r.outbox = slices.DeleteFunc(r.outbox, func(e evidence.Event) bool { return gone[e.ID] })
	}
}

func (r *evidenceRecords) auditEntries() []evidence.AuditEntry {
	r.mu.Lock()
	defer r.mu.Unlock()
	entries := slices.Clone(r.audit)
	slices.Reverse(entries)
	for i := range entries {
		entries[i].Details = maps.Clone(entries[i].Details)
	}
	return entries
}

func (r *evidenceRecords) unsent() []evidence.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	events := slices.Clone(r.outbox)
	for i := range events {
		events[i].Payload = slices.Clone(events[i].Payload)
	}
	return events
}
