package mcp

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/prompt"
)

const (
	ruling    = "ruling"  // the name of the form
	patience  = time.Hour // within which the form is to be sent
	mostShown = 10        // corrections in a form
	mostRunes = 300       // of a correction in a form
)

func (s *server) addReview(to *sdk.Server) {
	tool := annotated("review", "Decide about a proposed rule",
		"Asks the user, in a form, whether a proposed rule is to hold. Only the user decides: you "+
			"see the decision, and can't make it.")
	sdk.AddTool(to, tool, func(ctx context.Context, req *sdk.CallToolRequest,
		in reviewIn) (*sdk.CallToolResult, reviewOut, error) {
		result, out, err := s.review(ctx, req, &in)
		return result, out, told(err, reflect.TypeFor[reviewIn]())
	})
}

type reviewIn struct {
	Proposal string `json:"proposal" jsonschema:"the id of the proposal: see heed://proposals"`
}

type reviewOut struct {
	Proposal  string `json:"proposal"`
	Decision  string `json:"decision" jsonschema:"approve or reject, or none if the user closed the form"`
	Status    string `json:"status" jsonschema:"of the proposal. APPROVED: the rule holds"`
	Approvals int    `json:"approvals"`
}

// asked is what a form was about. The client carries it, signed.
type asked struct {
	Proposal string   `json:"proposal"`
	Person   string   `json:"person"`
	Hash     string   `json:"hash"`              // of the draft that the form showed
	Against  []string `json:"against,omitempty"` // the rules that the draft contradicts, by the form
	Until    int64    `json:"until"`             // in seconds since 1970
}

// review asks with its first call, and decides with the second, which has what the person answered.
func (s *server) review(ctx context.Context, req *sdk.CallToolRequest,
	in *reviewIn) (*sdk.CallToolResult, reviewOut, error) {
	who := s.speaker(req.Session, req.Extra)
	if who.person == "" {
		return nil, reviewOut{}, fault("person",
			"is not known: start the server with a person, or give each person a token")
	}
	rules, err := s.rules()
	if err != nil {
		return nil, reviewOut{}, err
	}
	answer, answered := req.Params.InputResponses[ruling]
	if !answered {
		result, err := s.ask(ctx, req, rules, in.Proposal, who.person)
		return result, reviewOut{}, err
	}
	form, _ := answer.(*sdk.ElicitResult)
	about, err := s.opened(req.Params.RequestState)
	if form == nil || err != nil || about.Proposal != in.Proposal || about.Person != who.person {
		return nil, reviewOut{}, errors.New(
			"the form was not asked here, or too long ago: call review again")
	}
	out, err := s.decide(ctx, rules, about, form)
	return nil, out, err
}

// ask returns the form about a proposal.
func (s *server) ask(ctx context.Context, req *sdk.CallToolRequest, rules *feedback.Rules, id,
	person string) (*sdk.CallToolResult, error) {
	if !hasForms(req.Session) {
		return nil, errors.New("this client can't ask the user (elicitation): decide with heed " +
			"rules approve")
	}
	p, err := rules.Proposal(ctx, id)
	if err != nil {
		return nil, fault("proposal", "nothing has this id")
	}
	if p.Status != feedback.StatePending {
		return nil, fault("proposal", "is "+string(p.Status)+", must be "+string(feedback.StatePending))
	}
	canonical, err := s.agent.Feedback().Config().Canonical(person)
	if err != nil {
		return nil, fault("person", err.Error())
	}
	if canonical == p.Proposer || slices.Contains(p.Writers, canonical) {
		return nil, errors.New("Refused: who proposed or edited a rule does not decide about it")
	}
	v := view.Of(s.agent, s.now)
	report, err := v.Report(ctx, id)
	if err != nil {
		return nil, err
	}
	about := asked{
		Proposal: id, Person: person, Hash: report.Hash,
		Until: s.now().Add(patience).Unix(),
	}
	for _, c := range report.Now {
		if c.Overridable() {
			about.Against = append(about.Against, c.ID)
		}
	}
	why, err := v.ProposedFor(ctx, report.Proposal)
	if err != nil {
		return nil, err
	}
	return &sdk.CallToolResult{
		InputRequests: sdk.InputRequestMap{ruling: &sdk.ElicitParams{
			Mode: "form", Message: describe(&report, why),
			RequestedSchema: schema(len(about.Against) > 0),
		}},
		RequestState: s.sealed(about),
	}, nil
}

// hasForms reports whether the client can show its user a form.
func hasForms(session *sdk.ServerSession) bool {
	params := session.InitializeParams()
	if params == nil || params.Capabilities == nil || params.Capabilities.Elicitation == nil {
		return false
	}
	can := params.Capabilities.Elicitation
	return can.Form != nil || can.URL == nil
}

// describe describes to the person what to decide about. All texts of others are in quotes.
func describe(r *view.Report, why string) string {
	p, quoted := r.Proposal, func(text string) string { return prompt.Quote(text, mostRunes) }
	whole := func(text string) string { return prompt.Quote(text, 1100) }
	var b strings.Builder
	fmt.Fprintf(&b, "Is this rule to hold?\n\n%s\n\n", whole(p.Text))
	switch {
	case p.Proposer == "":
		b.WriteString("heed proposes it.\n")
	case why != "":
		fmt.Fprintf(&b, "Proposed by %s: %s\n", quoted(p.Proposer), quoted(why))
	default:
		fmt.Fprintf(&b, "Proposed by %s.\n", quoted(p.Proposer))
	}
	if p.Change != "" {
		fmt.Fprintf(&b, "Change of a rule: %s %s\n", strings.ToLower(string(p.Change)), quoted(p.Of))
	}
	for _, part := range view.Parts(&p.Draft, whole)[1:] {
		if part.Value != "" {
			fmt.Fprintf(&b, "%s: %s\n", part.Name, part.Value)
		}
	}
	for i := range r.Sources[:min(len(r.Sources), mostShown)] {
		source := &r.Sources[i]
		fmt.Fprintf(&b, "Correction by %s: %s\n", quoted(source.Reviewer), quoted(source.Summary))
	}
	if more := len(r.Sources) - mostShown; more > 0 {
		fmt.Fprintf(&b, "And %d more corrections.\n", more)
	}
	for _, c := range r.Now {
		of := "the rule"
		if c.Pending {
			of = "the proposal"
		}
		fmt.Fprintf(&b, "%s of %s %s: %s\n", c.Kind, of, quoted(c.ID), quoted(c.Explanation))
	}
	for _, a := range p.Approvals {
		fmt.Fprintf(&b, "Approved by %s: %s\n", quoted(a.Actor), quoted(a.Reason))
	}
	return b.String()
}

// schema is the form. Contradicted adds the field that approves a draft against active rules.
func schema(contradicted bool) map[string]any {
	fields := map[string]any{
		"decision": map[string]any{"type": "string", "title": "Decision", "enum": []string{"approve",
			"reject"}},
		"reason": map[string]any{"type": "string", "title": "Reason",
			"description": "Why. It is kept with the decision.", "minLength": 1},
	}
	if contradicted {
		fields["override"] = map[string]any{
			"type": "boolean", "title": "Override",
			"description": "The rule may hold although it contradicts active rules.", "default": false,
		}
	}
	return map[string]any{"type": "object", "properties": fields, "required": []string{"decision",
		"reason"}}
}

// decide records what a person answered.
func (s *server) decide(ctx context.Context, rules *feedback.Rules, about asked,
	form *sdk.ElicitResult) (reviewOut, error) {
	out := reviewOut{Proposal: about.Proposal, Decision: "none"}
	if form.Action != "accept" {
		p, err := rules.Proposal(ctx, about.Proposal)
		out.Status, out.Approvals = string(p.Status), len(p.Approvals)
		return out, err
	}
	decision, _ := form.Content["decision"].(string)
	if decision != "approve" && decision != "reject" {
		return reviewOut{}, fault("decision", "must be approve or reject")
	}
	reason, _ := form.Content["reason"].(string)
	review := feedback.Review{
		Proposal: about.Proposal, Decision: feedback.Approved, Actor: about.Person,
		Reason: strings.TrimSpace(reason), Hash: about.Hash,
	}
	if decision == "reject" {
		review.Decision = feedback.Rejected
	}
	if override, _ := form.Content["override"].(bool); override {
		review.Override = about.Against
	}
	p, err := rules.Review(ctx, review)
	if err != nil {
		return reviewOut{}, err
	}
	out.Decision, out.Status, out.Approvals = decision, string(p.Status), len(p.Approvals)
	return out, nil
}

// sealed signs what a form was about.
func (s *server) sealed(about asked) string {
	body, err := json.Marshal(about)
	if err != nil {
		return "" // it never fails for these fields, and no key opens an empty state
	}
	return base64.RawURLEncoding.EncodeToString(append(s.sign(body), body...))
}

// opened returns what a form was about, if this server asked it and it is not too old.
func (s *server) opened(state string) (about asked, err error) {
	text, err := base64.RawURLEncoding.DecodeString(state)
	if err != nil || len(text) < sha256.Size || !hmac.Equal(text[:sha256.Size],
		s.sign(text[sha256.Size:])) {
		return about, errors.New("the state is not this server's")
	}
	if err := json.Unmarshal(text[sha256.Size:], &about); err != nil {
		return about, err
	}
	if s.now().Unix() > about.Until {
		return about, errors.New("the form is too old")
	}
	return about, nil
}

func (s *server) sign(body []byte) []byte {
	mac := hmac.New(sha256.New, s.key)
	mac.Write(body)
	return mac.Sum(nil)
}
