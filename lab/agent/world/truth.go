package world

import (
	"strings"
	"time"

	"github.com/heedhq/heed/lab/agent/assistant"
)

// This file is the whole truth of the simulated world. It was written down before the assistant was
// tuned, and the assistant can't see it: package assistant can't import this package, which imports
// it.
//
//	what                            numbers
//	what comes in                   Kind.Share: alerts 72, requests 15, questions 15, tasks 7 of 109
//	which answers work how often    Answer.Works; Answer.Later: one stops half-way
//	what the model says by itself   Kind.Own: it finds what works; adopts: it takes what is shown
//	mistakes, and what stops them   slips, slipsWarned, and Mistake.Fix
//	ways of using a note            ways: how often the model then finds what works
//	decompositions of a task        decompositions; what warnings and praise do to the model
//	what users do then              contented, discontented
//	what reviewers correct          reviewed, nagged, Mistake.Said; leads want Mistake.Wanted
const (
	pace        = 12 * time.Minute // between two events
	users       = 40
	reviewers   = 6
	adopts      = 0.50 // the model takes a shown response that fits
	slips       = 0.60 // the model makes a mistake that its prompt does not mention
	slipsWarned = 0.06 // … and one that a rule in its prompt is about
	heeds       = 0.92 // a warning of a decomposition keeps the model from it
	follows     = 4.0  // … and praise makes it so many times likelier
	reviewed    = 0.50 // of the answers to requests
	nagged      = 0.15 // of the reviewed ones, the matter of taste is brought up
	nonsense    = 0.10 // any other answer works so often
	confident   = 0.85 // the model's prediction for any answer
)

// moods are what users do after an answer; what is left to 1 is silence.
type moods struct{ undo, again, down, up float64 }

var (
	contented    = moods{undo: 0.02, again: 0.03, up: 0.12}
	discontented = moods{undo: 0.45, again: 0.25, down: 0.10}
)

// A Kind is a kind of events.
type Kind struct {
	Name   string
	Domain string
	Share  float64
	Cue    string   // is in all texts of the kind, and in no other
	Texts  []string // with {host} and {n}
	// Answers are the possible answers. The first one is the best, which the model gives if it has
	// learned what to do; the last one is the model's answer otherwise.
	Answers  []Answer
	Own      float64
	Mistakes []*Mistake
	Note     *Note
}

// An Answer is known by a few words that are in its text.
type Answer struct {
	Key, Text string
	Works     float64
	Later     float64 // how often it works in the second half; 0: as before
}

// A Mistake is something that an answer lacks.
type Mistake struct {
	Name   string
	Fix    string // what an answer without the mistake has
	Word   string // what a rule against it has
	Said   []string
	Wanted bool // the leads want it to be put right
}

// A Note is something that was learned once, of a sort that decides how it is best used.
type Note struct {
	ID, Sort, Topic, Key, Text string
}

// A Runbook entry is a heuristic as somebody wrote it down.
type Runbook struct{ ID, Condition, Action string }

// ways is how often the model finds what works when it has a note in this way; "deferred" is
// without it.
var ways = map[string]map[string]float64{
	// a short fact
	"correction": {"main_context": 0.92, "subagent": 0.75, "background_subagent": 0.50,
		"deferred": 0.35},
	// a manual: it drowns
	"harness_knowledge": {"main_context": 0.50, "subagent": 0.92, "background_subagent": 0.60,
		"deferred": 0.35},
	// outdated: it misleads
	"preference": {"main_context": 0.40, "subagent": 0.45, "background_subagent": 0.60,
		"deferred": 0.88},
}

// A decomposition is a way to cut a task into parts.
type decomposition struct {
	name, text string
	own        float64 // how often the model takes it by itself
	works      float64
	errors     int // on the way, where it fails
}

var decompositions = []decomposition{
	{"Split by layer", "Split by layer: first all of the storage, then all of the logic, then all " +
		"of the interfaces.", 0.55, 0.12, 5},
	{"Split by feature", "Split by feature, each feature moved from end to end.", 0.25, 0.55, 2},
	{"Split by component", "Split by component, each component moved and checked for itself.", 0.20,
		0.92, 1},
}

var (
	timeZone = &Mistake{Name: "no time zone", Fix: "UTC", Word: "time zone", Wanted: true,
		Said: []string{
			"Give every time with its time zone", "Please give every time with its time zone",
			"Every time must be given with its time zone",
		}}
	rollback = &Mistake{Name: "no rollback plan", Fix: "Rollback plan:", Word: "rollback plan",
		Wanted: true, Said: []string{
			"Mention the rollback plan", "The rollback plan should be mentioned",
			"Please mention the rollback plan",
		}}
	expiry = &Mistake{Name: "access without an end", Fix: "Access ends", Word: "access ends",
		Wanted: true, Said: []string{
			"Say on which day the access ends", "Please say on which day the access ends",
			"Always say on which day the access ends",
		}}
	taste = &Mistake{Name: "longer than five words", Word: "five words", Said: []string{
		"Answer in five words at most", "Please answer in five words at most",
		"Always answer in five words at most",
	}}
)

// Mistakes are all there are, the matter of taste last.
func Mistakes() []*Mistake { return []*Mistake{timeZone, rollback, expiry, taste} }

// Runbooks are the heuristics that the assistant begins with. Five are good, two are not, one turns
// bad half-way.
func Runbooks() []Runbook {
	return []Runbook{
		{"runbook-disk", "the disk of a host is nearly full, /var is filling up with logs",
			"Rotate and compress the logs below /var/log, then check that usage has fallen."},
		{"runbook-certificate", "the TLS certificate of a host expires within days",
			"Run the certificate renewal job and reload the load balancer."},
		{Turning, "queue mail-out has thousands of messages waiting, consumers lag",
			"Restart the stuck consumer group and watch the backlog shrink."},
		{"runbook-crash", "a checkout pod is in a crash loop, killed for want of memory",
			"Raise the memory limit of the deployment by half and roll it out again."},
		{"runbook-connections", "Postgres refuses connections, all connection slots are in use",
			"Terminate the sessions that are idle in transaction, then recycle the connection pool."},
		{"runbook-replica", "a replica lags seconds behind its primary",
			"Pause the batch jobs on the replica until it has caught up."},
		{"runbook-backup", "the nightly backup of a host failed",
			"Leave it alone: the run of the next night makes up for it."},
		{"runbook-login", "there are hundreds of failed logins on a host within minutes",
			"Block the whole subnet of the senders at the firewall."},
	}
}

// Turning is the heuristic that turns bad half-way.
const Turning = "runbook-queue"

// Notes are the learnings that the assistant begins with.
func Notes() []*Note {
	var notes []*Note
	for _, k := range kinds {
		if k.Note != nil {
			notes = append(notes, k.Note)
		}
	}
	return notes
}

var kinds = []*Kind{
	{Name: "disk", Domain: assistant.Alerts, Share: 8, Cue: "/var", Own: 0.55, Texts: []string{
		"Disk of {host} is nearly full: /var at {n} %.",
		"{host}: /var is filling up with logs, {n} % used.",
		"The disk of {host} fills up, logs in /var, {n} % full.",
	}, Answers: []Answer{
		{Key: "compress the logs",
			Text:  "Rotate and compress the logs below /var/log, then check that usage has fallen.",
			Works: 0.94},
		{Key: "larger volume",
			Text: "Attach a larger volume and grow the file system over the weekend.", Works: 0.30},
	}},
	{Name: "certificate", Domain: assistant.Alerts, Share: 8, Cue: "certificate", Own: 0.60,
		Texts: []string{
			"The TLS certificate of {host} expires in {n} days.",
			"{host}: TLS certificate expires within {n} days.",
			"Certificate check: the certificate of {host} expires, {n} days left.",
		}, Answers: []Answer{
			{Key: "renewal job", Text: "Run the certificate renewal job and reload the load balancer.",
				Works: 0.95},
			{Key: "order a new one", Text: "Open a ticket with the authority and order a new one " +
				"by mail.",
				Works: 0.30},
		}},
	{Name: "queue", Domain: assistant.Alerts, Share: 8, Cue: "mail-out", Own: 0.60, Texts: []string{
		"Queue mail-out has {n} thousand messages waiting, consumers on {host} lag.",
		"{host}: consumers of queue mail-out lag, {n} thousand messages waiting.",
		"{n} thousand messages are waiting in queue mail-out, its consumers on {host} lag.",
	}, Answers: []Answer{ // the broker is upgraded half-way
		{Key: "stuck consumer group",
			Text: "Restart the stuck consumer group and watch the backlog shrink.", Works: 0.93,
			Later: 0.08},
		{Key: "scale out", Text: "Scale out the consumers to twice as many and leave the group " +
			"running.", Works: 0.45, Later: 0.92},
		{Key: "purge", Text: "Purge what is older than an hour and tell the senders.", Works: 0.20},
	}},
	{Name: "crash", Domain: assistant.Alerts, Share: 8, Cue: "checkout-", Own: 0.55, Texts: []string{
		"Pod checkout-{n} on {host} is in a crash loop, killed for want of memory.",
		"{host}: checkout-{n} was killed for want of memory again, crash loop.",
		"Crash loop of pod checkout-{n} on {host}: killed, memory.",
	}, Answers: []Answer{
		{Key: "memory limit",
			Text: "Raise the memory limit of the deployment by half and roll it out again.", Works: 0.93},
		{Key: "delete the pod", Text: "Delete the pod and let the scheduler find another node.",
			Works: 0.35},
	}},
	{Name: "connections", Domain: assistant.Alerts, Share: 8, Cue: "Postgres", Own: 0.55,
		Texts: []string{
			"Postgres on {host} refuses connections, {n} slots in use.",
			"{host}: Postgres refuses connections, all {n} connection slots are in use.",
			"All {n} connection slots of Postgres on {host} are in use.",
		}, Answers: []Answer{
			{Key: "idle in transaction",
				Text: "Terminate the sessions that are idle in transaction, then recycle the " +
					"connection pool.", Works: 0.93},
			{Key: "restart the database",
				Text: "Raise the limit in the configuration and restart the database.", Works: 0.35},
		}},
	{Name: "replica", Domain: assistant.Alerts, Share: 8, Cue: "lags", Own: 0.60, Texts: []string{
		"Replica {host} lags {n} seconds behind its primary.",
		"{host} lags behind its primary by {n} seconds.",
		"A replica lags: {host} is {n} seconds behind the primary.",
	}, Answers: []Answer{
		{Key: "batch jobs", Text: "Pause the batch jobs on the replica until it has caught up.",
			Works: 0.92},
		{Key: "from scratch", Text: "Drop the replica and build it from scratch out of a snapshot.",
			Works: 0.40},
	}},
	{Name: "backup", Domain: assistant.Alerts, Share: 8, Cue: "backup", Own: 0.65, Texts: []string{
		"The nightly backup of {host} failed after {n} minutes.",
		"{host}: nightly backup failed, {n} minutes in.",
		"Nightly backup failed on {host} ({n} minutes).",
	}, Answers: []Answer{
		{Key: "stale lock", Text: "Remove the stale lock of the last backup and start it by hand.",
			Works: 0.93},
		{Key: "leave it alone", Text: "Leave it alone: the run of the next night makes up for it.",
			Works: 0.15},
	}},
	{Name: "login", Domain: assistant.Alerts, Share: 8, Cue: "failed logins", Own: 0.65,
		Texts: []string{
			"There are {n} failed logins on {host} within minutes.",
			"{host}: hundreds of failed logins, {n} within five minutes.",
			"{n} failed logins on {host} in the last minutes.",
		}, Answers: []Answer{
			{Key: "password reset",
				Text: "Force a password reset for the accounts that were hit, and leave the network as " +
					"it is.", Works: 0.92},
			{Key: "whole subnet", Text: "Block the whole subnet of the senders at the firewall.",
				Works: 0.20},
		}},
	{Name: "latency", Domain: assistant.Alerts, Share: 8, Cue: "p99", Own: 0.65, Texts: []string{
		"The p99 latency of the API on {host} is {n} ms.",
		"{host}: API latency too high, p99 at {n} ms.", "API on {host} is slow, p99 latency {n} ms.",
	}, Answers: []Answer{
		{Key: "heap profile",
			Text: "Drain the host from the load balancer and take a heap profile before it is " +
				"restarted.",
			Works: 0.92},
		{Key: "wait for the evening", Text: "Wait for the evening, when the load goes down by itself.",
			Works: 0.25},
	}},

	{Name: "status note", Domain: assistant.Requests, Share: 5, Cue: "status note", Own: 0.97,
		Mistakes: []*Mistake{timeZone}, Texts: []string{
			"Please write a status note for the incident on {host} that began at {n}:00.",
			"We need a status note: {host}, incident since {n}:00.",
		}, Answers: []Answer{
			{Key: "next note", Text: "Status: the incident is being worked on by the team on call. The " +
				"next note follows within the hour, at the full hour.", Works: 0.95},
			{Key: "all is well", Text: "Status: all is well.", Works: 0.10},
		}},
	{Name: "maintenance", Domain: assistant.Requests, Share: 5, Cue: "maintenance", Own: 0.97,
		Mistakes: []*Mistake{timeZone, rollback}, Texts: []string{
			"Please announce the maintenance of {host} tonight at {n}:00.",
			"Announce maintenance: {host}, {n}:00, half an hour.",
		}, Answers: []Answer{
			{Key: "will be down",
				Text: "Announcement: the service will be down tonight for half an hour, from the time " +
					"that was agreed.", Works: 0.95},
			{Key: "soon", Text: "Announcement: there will be some maintenance soon.", Works: 0.15},
		}},
	{Name: "access", Domain: assistant.Requests, Share: 5, Cue: "access", Own: 0.97,
		Mistakes: []*Mistake{expiry}, Texts: []string{
			"A colleague needs access to {host} for {n} days.",
			"Please prepare access to {host}, {n} days, for a new colleague.",
		}, Answers: []Answer{
			{Key: "read-only role", Text: "Granted: the read-only role on this host, with two factors.",
				Works: 0.95},
			{Key: "root", Text: "Granted: the root account, as it is the quickest.", Works: 0.10},
		}},

	question("on call", "correction", "on call for payments", "#pay-oncall",
		"Payments is on call through #pay-oncall, and no longer by pager.",
		"Who is on call for payments on {host} (ticket {n})?",
		"Page whoever is in the pager's list for payments."),
	question("vpn", "correction", "VPN endpoint", "vpn-west-2",
		"The VPN endpoint for contractors is vpn-west-2 since the move.",
		"Which VPN endpoint is it for a contractor on {host} (ticket {n})?",
		"Use the endpoint in the handbook of last year."),
	question("failover", "harness_knowledge", "fail over", "fence the old primary",
		"Manual of the clusters, chapter on failing over: before anything is promoted, fence the old "+
			"primary "+
			"through its management board, wait for two lease periods, compare the log positions of "+
			"all followers, promote the one that is furthest, re-point the proxies by "+
			"region and not all at once, and keep the old primary off the network until it was rebuilt.",
		"How do I fail over the cluster of {host} (ticket {n})?",
		"Promote any follower and re-point everything."),
	question("restore", "harness_knowledge", "snapshot", "mount it read-only",
		"Manual of the storage, chapter on restoring: pick a snapshot from before the event by its "+
			"catalogue and not by its name, "+
			"mount it read-only beside the live volume, verify the checksums of the manifest, copy by "+
			"directory with the owner's consent, and never overwrite a live volume as a whole.",
		"How do I restore a file of {host} from a snapshot (ticket {n})?",
		"Roll the volume back to the snapshot."),
	question("report", "preference", "weekly report", "as a link",
		"The weekly report goes out as a PDF by mail to all of operations.",
		"How should the weekly report on {host} go out (ticket {n})?",
		"Send the PDF by mail to all of operations."),
	question("dashboard", "preference", "dashboard", "on the shared board",
		"Dashboards are made in the old tool, one for each host.",
		"Where do I put a dashboard for {host} (ticket {n})?",
		"Make one in the old tool, for this host alone."),

	{Name: "task", Domain: assistant.Changes, Share: 7, Cue: "migration", Texts: []string{
		"Plan the migration of the services on {host} to the new cluster, {n} modules.",
		"Make a plan for the migration of {host}, {n} modules in all.",
	}},
}

// question is a kind of events that a note is about.
func question(name, sort, cue, key, note, text, wrong string) *Kind {
	right := map[string]string{
		"#pay-oncall": "Ask in #pay-oncall, where payments is on call.",
		"vpn-west-2":  "It is vpn-west-2 for contractors.",
		"fence the old primary": "First fence the old primary, then promote the follower that is " +
			"furthest.",
		"mount it read-only": "Pick a snapshot from before, mount it read-only and copy the file " +
			"with its owner's consent.",
		"as a link":           "Send it as a link to the page of the week, to those who asked.",
		"on the shared board": "Add a panel on the shared board and link it.",
	}[key]
	topic, _, _ := strings.Cut(text, "{host}")
	return &Kind{
		Name: name, Domain: assistant.Requests, Share: 2.5, Cue: cue, Texts: []string{text},
		Answers: []Answer{{Key: key, Text: right, Works: 0.95}, {Key: wrong, Text: wrong, Works: 0.10}},
		Note:    &Note{ID: "note-" + name, Sort: sort, Topic: topic, Key: note[:20], Text: note},
	}
}
