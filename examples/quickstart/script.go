package main

import (
	"context"
	"strings"

	"github.com/heedhq/heed/decision"
)

// The kinds of questions. The agent learns apart for each what helps.
const (
	fire  = "on fire"
	learn = "to learn"
)

// A question has the answers that the scripted model gives, by arm.
type question struct {
	text, kind string
	// the arm that answers as Ann wants it, which the agent does not see
	wants   string
	answers map[string]string // by arm
}

var questions = []question{
	{"The disk of db-1 is full!", fire, "command", map[string]string{
		"explain": "A disk fills up when more is written than is deleted. On database servers the " +
			"cause is often the log.",
		"steps":   "1. Find what is large.\n2. Rotate the logs.\n3. Check again.",
		"command": "logrotate -f /etc/logrotate.conf && df -h /",
	}},
	{"The web server is down!", fire, "command", map[string]string{
		"explain": "Web servers stop for several reasons, among them a lack of memory or a faulty " +
			"configuration.",
		"steps":   "1. Look at its log.\n2. Test the configuration.\n3. Start it again.",
		"command": "nginx -t && systemctl restart nginx",
	}},
	{"The queue is stuck again!", fire, "command", map[string]string{
		"explain": "A queue stands still when its consumers have died or wait for one another.",
		"steps":   "1. Count the consumers.\n2. Find the oldest message.\n3. Restart the consumers.",
		"command": "systemctl restart worker@{1..4}",
	}},
	{"How do I set up a backup?", learn, "steps", map[string]string{
		"explain": "Backups protect from loss. There are full, incremental and differential ones.",
		"steps":   "1. Choose what to keep.\n2. Copy it every night.\n3. Try to restore it.",
		"command": "pg_dump app | gzip > app.sql.gz",
	}},
	{"How do I renew a certificate?", learn, "steps", map[string]string{
		"explain": "Certificates bind a name to a key, and end so that lost keys do not count " +
			"for ever.",
		"steps": "1. Ask the authority for a new one.\n2. Put it beside the old one.\n3. Reload " +
			"the server.",
		"command": "certbot renew",
	}},
	{"How do I add a user?", learn, "steps", map[string]string{
		"explain": "Users belong to groups, and groups have rights. This goes back to the first " +
			"multi-user systems.",
		"steps":   "1. Create the account.\n2. Add it to its groups.\n3. Let them set a password.",
		"command": "useradd -m -G dev kim",
	}},
}

// script is a model that answers the questions by heart, in the way that the system prompt asks
// for.
func script(_ context.Context, r decision.LLMRequest) (decision.LLMResponse, error) {
	reply := decision.LLMResponse{Text: "I don't know.", Model: "script"}
	for _, arm := range arms {
		if !strings.Contains(r.System, arm.System) {
			continue
		}
		for _, q := range questions {
			if strings.Contains(r.Prompt, strings.TrimRight(q.text, "!?")) {
				reply.Text = q.answers[arm.ID]
			}
		}
	}
	return reply, nil
}

// kind returns what sort of question a person asks.
func kind(text string) string {
	if strings.HasPrefix(strings.ToLower(text), "how") {
		return learn
	}
	return fire
}
