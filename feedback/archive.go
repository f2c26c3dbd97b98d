package feedback

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
)

// An Archive is what a service knows, but for the audit log: each list sorted by id. It marshals to JSON, and
// [Archive.Tree] lays it out as files. Two exports of the same state are the same to the byte.
type Archive struct {
	Feedback  []Record   `json:"feedback"`
	Proposals []Proposal `json:"proposals"`
	Rules     []Rule     `json:"rules"`
}

// Export returns everything that is stored, erased feedback left out.
func (s *Service) Export(ctx context.Context) (Archive, error) {
	var a Archive
	for r, err := range s.cfg.Store.Records(ctx, Query{}) {
		if err != nil {
			return Archive{}, wrap("export", err)
		}
		a.Feedback = append(a.Feedback, r)
	}
	for p, err := range s.cfg.Store.Proposals(ctx, ProposalQuery{}) {
		if err != nil {
			return Archive{}, wrap("export", err)
		}
		a.Proposals = append(a.Proposals, p)
	}
	for r, err := range s.cfg.Store.Rules(ctx, RuleQuery{}) {
		if err != nil {
			return Archive{}, wrap("export", err)
		}
		a.Rules = append(a.Rules, r)
	}
	a.sort()
	return a, nil
}

func (a *Archive) sort() {
	slices.SortFunc(a.Feedback, func(x, y Record) int { return cmp.Compare(x.ID, y.ID) })
	slices.SortFunc(a.Proposals, func(x, y Proposal) int { return cmp.Compare(x.ID, y.ID) })
	slices.SortFunc(a.Rules, func(x, y Rule) int { return cmp.Compare(x.ID, y.ID) })
}

// Tree returns the archive as files of indented JSON, by their paths: feedback/decisions/<gate>/<id>.json,
// feedback/edge_cases/<id>.json (which repeat what is in decisions, for people to find), and feedback/rules/<status>/<id>.json,
// where the status is that of the rule, in lower case, or of a proposal that is none (pending ones are "proposed"). Where an
// id is not made of lower-case letters, digits, dots, dashes and underscores, its file has what is left of it and a hash,
// so that no id leads elsewhere and no two meet.
func (a Archive) Tree() (map[string][]byte, error) {
	files := make(map[string][]byte)
	put := func(value any, elements ...string) error {
		text, err := json.MarshalIndent(value, "", "  ")
		files[path.Join(elements...)+".json"] = append(text, '\n')
		return err
	}
	var failures []error
	for _, r := range a.Feedback {
		failures = append(failures, put(r, "feedback/decisions", fileName(r.Gate), fileName(r.ID)))
		if r.Class == EdgeCase {
			failures = append(failures, put(r, "feedback/edge_cases", fileName(r.ID)))
		}
	}
	approved := map[string]bool{}
	for _, r := range a.Rules {
		approved[r.ID] = true
		failures = append(failures, put(r, "feedback/rules", strings.ToLower(string(r.Status)), fileName(r.ID)))
	}
	for _, p := range a.Proposals {
		if !approved[p.ID] {
			dir := strings.ToLower(string(p.Status))
			if p.Status == StatusPending {
				dir = "proposed"
			}
			failures = append(failures, put(p, "feedback/rules", dir, fileName(p.ID)))
		}
	}
	return files, wrap("tree", errors.Join(failures...))
}

// fileName makes a name of an id that is safe in every file system, and of different ids different names.
func fileName(id string) string {
	safe := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.' {
			return r
		}
		return '-'
	}, strings.ToLower(id))
	safe = strings.Trim(safe[:min(len(safe), 80)], ".")
	if safe == id && safe != "" {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return strings.Trim(safe+"~"+hex.EncodeToString(sum[:6]), ".")
}

// ReadTree reads what [Archive.Tree] has written, from a directory that has "feedback" in it. Files that can't be read are
// left out, and named in the error; the archive has the others.
func ReadTree(root fs.FS) (Archive, error) {
	var a Archive
	var failures []error
	rules := map[string]bool{}
	for _, s := range []RuleStatus{RuleActive, RuleRetired, RuleRevoked, RuleSuperseded} {
		rules[strings.ToLower(string(s))] = true
	}
	err := fs.WalkDir(root, "feedback", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".json" {
			return err
		}
		parts := strings.Split(name, "/")
		switch dir := path.Base(path.Dir(name)); {
		case parts[1] == "decisions":
			failures = append(failures, readFile(root, name, &a.Feedback))
		case parts[1] == "rules" && rules[dir] && !isProposal(root, name):
			failures = append(failures, readFile(root, name, &a.Rules))
		case parts[1] == "rules":
			failures = append(failures, readFile(root, name, &a.Proposals))
		}
		return nil
	})
	a.sort()
	return a, wrap("read tree", errors.Join(append(failures, err)...))
}

// isProposal tells a superseded proposal from a superseded rule.
func isProposal(root fs.FS, name string) bool {
	var p struct {
		ID string `json:"proposal_id"`
	}
	text, err := fs.ReadFile(root, name)
	return err == nil && json.Unmarshal(text, &p) == nil && p.ID != ""
}

// maxFile is how many bytes a file of a tree may have.
const maxFile = 1 << 20

func readFile[T any](root fs.FS, name string, into *[]T) error {
	info, err := fs.Stat(root, name)
	if err != nil {
		return err
	}
	if info.Size() > maxFile {
		return fmt.Errorf("%s: is %d bytes long, may be %d", name, info.Size(), maxFile)
	}
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return err
	}
	var value T
	if err := json.Unmarshal(text, &value); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	*into = append(*into, value)
	return nil
}

// An ImportResult says what became of one element of an archive.
type ImportResult struct {
	Kind string // "feedback", "proposal" or "rule"
	ID   string
	Done bool  // it was taken over; otherwise it was there already, or Err says what is wrong
	Err  error // a [heed.ErrConflict] where something else has its id
}

// Import takes over what an archive has and the store has not, and returns a result for each element, in the archive's
// order; one that is refused stops none of the others. Feedback comes with its evaluation. Closed proposals come as they
// are, and pending ones without approvals, as if they were proposed now by the person who imports. Rules come as they are
// if their approvals fulfil this service's gate for their very words, and active ones if they contradict none that is active.
//
// An archive is as trustworthy as the place it comes from: it says itself who approved. The authorizer is asked once, for
// [ActImport].
func (s *Service) Import(ctx context.Context, a Archive, actor, reason string) ([]ImportResult, error) {
	who := ""
	err := s.act(ctx, ActImport, "", actor, reason, nil, func(_ time.Time, canonical string) (Change, error) {
		who = canonical
		e := s.entry(s.now(), who, string(ActImport), "", reason)
		e.Details = map[string]string{"elements": fmt.Sprint(len(a.Feedback) + len(a.Proposals) + len(a.Rules))}
		return Change{Audit: []evidence.AuditEntry{e}}, nil
	})
	if err != nil {
		return nil, wrap("import", err)
	}
	var results []ImportResult
	add := func(kind, id string, err error) {
		result := ImportResult{Kind: kind, ID: id, Done: err == nil}
		if !errors.Is(err, errKnown) {
			result.Err = err
		}
		results = append(results, result)
	}
	for i := range a.Feedback {
		add("feedback", a.Feedback[i].ID, s.importRecord(ctx, a.Feedback[i].Clone()))
	}
	for i := range a.Rules {
		add("rule", a.Rules[i].ID, s.importRule(ctx, a.Rules[i].Clone(), who, reason))
	}
	for i := range a.Proposals {
		add("proposal", a.Proposals[i].ID, s.importProposal(ctx, a.Proposals[i].Clone(), who, reason))
	}
	return results, nil
}

// errKnown says that there was nothing to take over.
var errKnown = errors.New("known")

func (s *Service) importRecord(ctx context.Context, r Record) error {
	now := s.now()
	if err := s.prepare(&r.Feedback, now); err != nil {
		return err
	}
	if err := r.Evaluation.validate(); err != nil {
		return err
	}
	if !r.Erased.IsZero() {
		return invalid("Erased", "must not be set")
	}
	if r.Recorded.IsZero() || r.Recorded.After(now) {
		r.Recorded = now
	}
	r.Revision = 0
	err := s.apply(ctx, Change{Records: []Record{r}})
	if !errors.Is(err, heed.ErrConflict) {
		return err
	}
	known, err := s.cfg.Store.Record(ctx, r.ID)
	if err != nil {
		return err
	}
	known.normalize()
	if !known.Erased.IsZero() || known.same(&r.Feedback) {
		return errKnown
	}
	return fmt.Errorf("another decision has this id: %w", heed.ErrConflict)
}

func (e *Evaluation) validate() error {
	switch {
	case e.Class != "" && !e.Class.Valid():
		return invalid("Class", "is none of the classifications")
	case e.Action != "" && !e.Action.Valid():
		return invalid("Action", "is none of the actions")
	case !(e.Confidence >= 0 && e.Confidence <= 1):
		return invalid("Confidence", "must be in [0, 1]")
	case !(e.Link >= 0 && e.Link <= 1):
		return invalid("Link", "must be in [0, 1]")
	}
	if err := checkProse("Rationale", e.Rationale, MaxComment); err != nil {
		return err
	}
	if err := evidence.CheckText("Cluster", e.Cluster); err != nil {
		return err
	}
	return checkNames(list{"Similar", e.Similar})
}

func (s *Service) importProposal(ctx context.Context, p Proposal, who, reason string) error {
	p.Draft = p.Draft.normal()
	if err := errors.Join(checkName("ID", p.ID), s.validateDraft(&p.Draft)); err != nil {
		return err
	}
	if !(p.Confidence >= 0 && p.Confidence <= 1) {
		return invalid("Confidence", "must be in [0, 1]")
	}
	p.Revision = 0
	return s.governing.take(ctx, func() error {
		return again(ctx, func() error {
			if _, err := s.cfg.Store.Proposal(ctx, p.ID); !errors.Is(err, heed.ErrNotFound) {
				return cmp.Or(err, errKnown)
			}
			now := s.now()
			entry := s.entry(now, who, string(ActImport), p.ID, reason)
			switch p.Status {
			case StatusRejected, StatusExpired, StatusSuperseded, StatusDocumented:
				return s.apply(ctx, Change{Proposals: []Proposal{p}, Audit: []evidence.AuditEntry{entry}})
			case StatusApproved: // is worth what its rule is
				if _, err := s.cfg.Store.Rule(ctx, p.ID); err != nil {
					return err
				}
				return s.apply(ctx, Change{Proposals: []Proposal{p}, Audit: []evidence.AuditEntry{entry}})
			case StatusPending:
			default:
				return invalid("Status", "is none of the statuses")
			}
			p.Approvals, p.Created, p.Expires = nil, now, now.Add(s.cfg.Gate.TTL)
			p.Writers = distinct(append(p.Writers, who))
			c, err := s.opened(ctx, &p)
			if err != nil {
				return err
			}
			c.Audit = append(c.Audit, entry)
			return s.apply(ctx, c)
		})
	})
}

func (s *Service) importRule(ctx context.Context, r Rule, who, reason string) error {
	r.Draft = r.Draft.normal()
	if err := errors.Join(checkName("ID", r.ID), s.validateDraft(&r.Draft)); err != nil {
		return err
	}
	switch r.Status {
	case RuleActive, RuleRetired, RuleRevoked, RuleSuperseded:
	default:
		return invalid("Status", "is none of the statuses")
	}
	return s.governing.take(ctx, func() error {
		return again(ctx, func() error {
			if known, err := s.cfg.Store.Rule(ctx, r.ID); err == nil {
				if known.Hash() != r.Hash() {
					return fmt.Errorf("another rule has this id: %w", heed.ErrConflict)
				}
				return errKnown
			} else if !errors.Is(err, heed.ErrNotFound) {
				return err
			}
			revisions, err := s.cfg.Store.Revisions(ctx, board)
			if err != nil {
				return err
			}
			if err := s.admit(ctx, &r); err != nil {
				return err
			}
			now := s.now()
			if r.Activated.IsZero() || r.Activated.After(now) {
				r.Activated = now
			}
			r.Since, r.Effect, r.RetireProposed, r.Revision = now, Effect{}, time.Time{}, 0
			return s.apply(ctx, Change{
				Expect: map[string]uint64{board: revisions[0]}, Rules: []Rule{r},
				Audit: []evidence.AuditEntry{s.entry(now, who, string(ActImport), r.ID, reason)},
			})
		})
	})
}

// admit reports why a rule must not come in: its approvals don't fulfil the gate, or it contradicts an active one.
func (s *Service) admit(ctx context.Context, r *Rule) error {
	for i := range r.Approvals {
		who, err := s.person(fmt.Sprintf("Approvals[%d].Actor", i), r.Approvals[i].Actor)
		if err != nil {
			return err
		}
		r.Approvals[i].Actor = who
		if slices.Contains(r.Writers, who) {
			return &IneligibleError{"nobody approves what they proposed or edited"}
		}
	}
	var against []Conflict
	if r.Status == RuleActive {
		conflicts, err := s.conflicts(ctx, &r.Draft, false, "")
		if err != nil {
			return err
		}
		against = contradictions(conflicts)
	}
	if !s.cfg.Gate.met(r.Approvals, &r.Draft, r.Authors, against) {
		if s.cfg.Gate.met(r.Approvals, &r.Draft, r.Authors, nil) {
			return &ConflictError{against}
		}
		return &IneligibleError{"its approvals do not fulfil the gate"}
	}
	return nil
}
