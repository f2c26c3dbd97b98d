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
	"github.com/heedhq/heed/internal/text"
	"github.com/heedhq/heed/store"
)

// An Archive holds everything that a service knows except the audit log. Each list is sorted by id. It marshals to JSON, and
// [Archive.Tree] lays it out as files. Two exports of the same state are the same to the byte.
type Archive struct {
	Feedback  []Feedback `json:"feedback"`
	Proposals []Proposal `json:"proposals"`
	Rules     []Rule     `json:"rules"`
}

// Export returns everything that is stored, without erased feedback.
func (s *Service) Export(ctx context.Context) (Archive, error) {
	var a Archive
	for r, err := range s.records(ctx, Listing{}) {
		if err != nil {
			return Archive{}, wrap("export", err)
		}
		r.Revision = 0
		a.Feedback = append(a.Feedback, r)
	}
	var err error
	if a.Proposals, err = s.proposals(s.reading(ctx), ProposalQuery{}); err != nil {
		return Archive{}, wrap("export", err)
	}
	if a.Rules, err = s.Rules().List(ctx, RuleQuery{}); err != nil {
		return Archive{}, wrap("export", err)
	}
	for i := range a.Proposals {
		a.Proposals[i].Revision = 0
	}
	for i := range a.Rules {
		a.Rules[i].Revision = 0
	}
	a.sort()
	return a, nil
}

func (a *Archive) sort() {
	slices.SortFunc(a.Feedback, func(x, y Feedback) int { return cmp.Compare(x.ID, y.ID) })
	slices.SortFunc(a.Proposals, func(x, y Proposal) int { return cmp.Compare(x.ID, y.ID) })
	slices.SortFunc(a.Rules, func(x, y Rule) int { return cmp.Compare(x.ID, y.ID) })
}

// Tree returns the archive as files of indented JSON, by their paths: feedback/decisions/<gate>/<id>.json, a copy of edge cases in
// feedback/edge_cases/<id>.json, and feedback/rules/<status>/<id>.json, with the status of the rule or of the proposal in lower
// case, and "proposed" for a pending one. An id of other characters than lower-case letters, digits, dots, dashes and
// underscores, or of a device on Windows, gets a file name with a hash, so that no id leads out of the directory and no two ids get one file.
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
	for _, r := range a.Rules {
		failures = append(failures, put(r, "feedback/rules", strings.ToLower(string(r.Status)), fileName(r.ID)))
	}
	for _, p := range a.Proposals {
		dir := strings.ToLower(string(p.Status))
		if p.Status == StatePending {
			dir = "proposed"
		}
		failures = append(failures, put(p, "feedback/rules", dir, fileName(p.ID)))
	}
	return files, wrap("tree", errors.Join(failures...))
}

// devices are names that are no files on Windows, with any extension.
var devices = strings.Fields("con prn aux nul com0 com1 com2 com3 com4 com5 com6 com7 com8 com9 lpt0 lpt1 lpt2 lpt3 lpt4 lpt5 lpt6 lpt7 lpt8 lpt9")

// fileName makes a name of an id that is safe in every file system. Different ids have different names.
func fileName(id string) string {
	safe := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.' {
			return r
		}
		return '-'
	}, strings.ToLower(id))
	safe = strings.Trim(safe[:min(len(safe), 80)], ".")
	if stem, _, _ := strings.Cut(safe, "."); slices.Contains(devices, stem) {
		safe = stem
	} else if safe == id && safe != "" {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return strings.Trim(safe+"~"+hex.EncodeToString(sum[:16]), ".")
}

// ReadTree reads what [Archive.Tree] has written, from a directory that has "feedback" in it. The archive has all files that
// can be read, and the error names the others.
func ReadTree(root fs.FS) (Archive, error) {
	var a Archive
	var failures []error
	err := fs.WalkDir(root, "feedback", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".json" {
			return err
		}
		failures = append(failures, a.readFile(root, name))
		return nil
	})
	a.sort()
	return a, wrap("read tree", errors.Join(append(failures, err)...))
}

func (a *Archive) readFile(root fs.FS, name string) error {
	const most = 1 << 20 // bytes
	info, err := fs.Stat(root, name)
	if err != nil {
		return err
	}
	if info.Size() > most {
		return fmt.Errorf("%s: is %d bytes long, may be %d", name, info.Size(), most)
	}
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return err
	}
	var is struct {
		Rule string `json:"rule_id"`
	}
	switch dir := strings.Split(name, "/")[1]; {
	case dir == "decisions":
		err = appendFrom(text, &a.Feedback)
	case dir != "rules": // it has copies, or something else
	case json.Unmarshal(text, &is) == nil && is.Rule != "":
		err = appendFrom(text, &a.Rules)
	default:
		err = appendFrom(text, &a.Proposals)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func appendFrom[T any](text []byte, to *[]T) error {
	var value T
	err := json.Unmarshal(text, &value)
	if err == nil {
		*to = append(*to, value)
	}
	return err
}

// An ImportResult is the result of importing one element of an archive.
type ImportResult struct {
	Kind string // "feedback", "proposal" or "rule"
	ID   string
	Done bool // it was taken over; otherwise it was there already, or Err says what is wrong
	// Pending says that a rule came as a pending proposal of the same id.
	Pending bool
	Err     error // a [heed.ErrConflict] if something else has its id
}

// Import takes over the elements of an archive that the store lacks. It returns a result for each element, in the archive's order,
// and goes on after a refused one ([*RefusedError]). Closed proposals come as they are. A pending proposal loses its approvals, as
// if the person who imports proposed it now, and is refused if its cluster has one.
//
// An archive says by itself who approved. So an active rule comes as a pending proposal, by the person who imports it. Rules that
// are not active come without approvals, and feedback is evaluated anew.
//
// That is otherwise in two cases: with [Config].TrustArchive, and into a store without any feedback, proposals and rules, which
// is how a backup comes back. If such an import was cut short, repeat it with the same archive. Feedback then comes with its
// evaluation. A rule comes as it is; an active one only if its approvals fulfil this service's gate for its very words, and
// it contradicts no active rule. Config.Authorize is asked once.
func (s *Service) Import(ctx context.Context, a Archive, actor, reason string) ([]ImportResult, error) {
	by := importer{reason: reason}
	digest, err := a.digest()
	if err != nil {
		return nil, wrap("import", err)
	}
	_, err = s.act(ctx, "import", "", actor, reason, nil,
		func(c *change, now time.Time, canonical string) (err error) {
			by.who = canonical
			if by.trusted, err = s.trusts(c, digest, now); err != nil {
				return err
			}
			e := s.entry(now, by.who, "import", "", reason)
			e.Details = map[string]string{"elements": fmt.Sprint(len(a.Feedback) +
				len(a.Proposals) + len(a.Rules)), "trusted": fmt.Sprint(by.trusted)}
			c.tell(e)
			return nil
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
		add("feedback", a.Feedback[i].ID, s.importFeedback(ctx, a.Feedback[i].at(0), by))
	}
	for i := range a.Rules {
		r := a.Rules[i].at(0)
		if r.Status == StateActive && !by.trusted {
			add("rule", r.ID, s.importProposal(ctx, a.pending(&r), by))
			results[len(results)-1].Pending = results[len(results)-1].Done
			continue
		}
		add("rule", r.ID, s.importRule(ctx, r, by))
	}
	for i := range a.Proposals {
		add("proposal", a.Proposals[i].ID, s.importProposal(ctx, a.Proposals[i].at(0), by))
	}
	return results, nil
}

// An importer is a person who imports, why, and whether what the archive claims is believed.
type importer struct {
	who, reason string
	trusted     bool
}

// digest identifies an archive by all that it holds.
func (a Archive) digest() (string, error) {
	content, err := json.Marshal(a)
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]), err
}

// trusts reports whether an archive's claims are believed. The change marks the archive that comes into an empty store.
func (s *Service) trusts(c *change, digest string, now time.Time) (trusted bool, err error) {
	if s.cfg.TrustArchive {
		return true, nil
	}
	first := store.Query{Kind: feedbackKind.Name, Limit: 1}
	restored := restoredMark + digest
	c.Want(store.Wants{Refs: marks(), Queries: []store.Query{first}})
	if known, err := markKind.In(c.Tx, restored); err != nil || known.Revision > 0 {
		return err == nil, err
	}
	var read store.Snapshot
	if err := c.Read(&read, nil, marks(), first); err != nil {
		return false, err
	}
	if read.Records[0].Revision+read.Records[1].Revision > 0 || len(read.Found[0]) > 0 {
		return false, nil
	}
	c.write(markKind.Record(mark{restored, now}, 0))
	return true, c.opens(now)
}

// pending is the proposal of what an active rule says. It has the evidence that the archive names.
func (a *Archive) pending(r *Rule) Proposal {
	p := Proposal{ID: r.ID, Draft: r.Draft, Authors: r.Authors, Writers: r.Writers, Status: StatePending}
	if at := slices.IndexFunc(a.Proposals, func(p Proposal) bool { return p.ID == r.ID }); at >= 0 {
		of := a.Proposals[at].at(0)
		p.Evidence, p.Summary, p.Cluster = of.Evidence, of.Summary, of.Cluster
	}
	p.Change, p.Of, p.Supersedes = "", "", nil // these have happened already
	if r.Pinned {
		p.Change = Pin
	}
	return p
}

func (s *Service) importFeedback(ctx context.Context, r Feedback, by importer) error {
	now := s.now()
	if !by.trusted {
		r.Evaluation = Evaluation{}
	}
	if err := s.prepare(&r, now); err != nil {
		return err
	}
	if err := r.Evaluation.validate(); err != nil {
		return err
	}
	if err := s.named("Resolver", &r.Resolver); err != nil {
		return err
	}
	if !r.Erased.IsZero() {
		return invalid("Erased", "must not be set")
	}
	if r.Recorded.IsZero() || r.Recorded.After(now) {
		r.Recorded = now
	}
	truncate(&r.Recorded)
	r.Proposal = ""
	return s.addAlone(ctx, r)
}

// truncate brings moments into the form in which they are kept.
func truncate(moments ...*time.Time) {
	for _, at := range moments {
		*at = at.UTC().Truncate(time.Microsecond)
	}
}

func truncateApprovals(approvals []Approval) {
	for i := range approvals {
		truncate(&approvals[i].At)
	}
}

func (c Classification) valid() bool {
	return c.generalizable() || c == EdgeCase || c == Ambiguous || c == Positive || c == Archived
}

func (e *Evaluation) validate() error {
	switch {
	case e.Class != "" && !e.Class.valid():
		return invalid("Class", "is none of the classifications")
	case e.Action != "" && !e.Action.valid():
		return invalid("Action", "is none of the actions")
	case !(e.Confidence >= 0 && e.Confidence <= 1):
		return invalid("Confidence", "must be in [0, 1]")
	case !(e.Link >= 0 && e.Link <= 1):
		return invalid("Link", "must be in [0, 1]")
	}
	if err := checkProse("Rationale", e.Rationale, maxComment); err != nil {
		return err
	}
	for _, text := range [...]struct{ field, value string }{{"Cluster", e.Cluster}, {"Resolution", e.Resolution}} {
		if err := evidence.CheckText(text.field, text.value); err != nil {
			return err
		}
	}
	return checkNames(list{"Similar", e.Similar})
}

func (s *Service) importProposal(ctx context.Context, p Proposal, by importer) error {
	p.Draft = p.Draft.normal()
	if err := errors.Join(checkName("ID", p.ID), s.validateDraft(&p.Draft), s.people("Authors", p.Authors), s.people("Writers", p.Writers),
		s.approvers(p.Approvals), s.named("Decider", &p.Decider), s.named("Proposer", &p.Proposer)); err != nil {
		return err
	}
	if !(p.Confidence >= 0 && p.Confidence <= 1) {
		return invalid("Confidence", "must be in [0, 1]")
	}
	truncate(&p.Created, &p.Expires, &p.Decided)
	truncateApprovals(p.Approvals)
	_, err := s.step(ctx, s.governing, func(c *change) error {
		c.Want(p.wants(),
			store.Wants{Refs: []store.Ref{proposalKind.Ref(p.ID), ruleKind.Ref(p.ID)}})
		if p.Status == StatePending {
			if err := checkNew(c.Tx, p.ID, &p.Draft); err != nil {
				return err
			}
		}
		if _, err := proposalKind.in(c.Tx, p.ID); !errors.Is(err, heed.ErrNotFound) {
			return cmp.Or(err, errKnown)
		}
		now := s.now()
		c.tell(c.entry(s, now, by.who, "import", p.ID, by.reason))
		return s.imported(c, p.at(0), by, now)
	})
	return err
}

// imported takes over a proposal.
func (s *Service) imported(c *change, p Proposal, by importer, now time.Time) (err error) {
	switch p.Status {
	case StateApproved: // is worth what its rule is
		id := p.ID
		if !p.makes() {
			id = p.Of
		}
		_, err = ruleKind.in(c.Tx, id)
	case StateRejected, StateExpired, StateSuperseded, StateDocumented:
	case StatePending:
		if p.Action == DocumentOnly {
			return invalid("Action", "must pass the gate, as the proposal is pending")
		}
		p.Approvals, p.Created, p.Expires = nil, now, now.Add(s.cfg.Gate.TTL)
		p.Writers, p.Proposer = text.Distinct(append(p.Writers, by.who)), by.who
		if err = s.opened(c, &p); err != nil {
			return err
		}
		return s.vacate(c, p.Cluster, now)
	default:
		err = invalid("Status", "is none of the statuses")
	}
	if err == nil {
		err = errors.Join(checkTime("Created", p.Created, now), p.checkPeople())
	}
	if p.Decided.After(now) {
		p.Decided = now
	}
	if !by.trusted {
		p.Approvals = nil
	}
	c.write(proposalKind.record(p))
	return err
}

// vacate reports that a cluster has a pending proposal, and closes one whose time is over.
func (s *Service) vacate(c *change, cluster string, now time.Time) error {
	if cluster == "" {
		return nil
	}
	pending, err := s.proposals(c.Tx, ProposalQuery{Status: StatePending, Cluster: cluster})
	for _, p := range pending {
		if now.Before(p.Expires) {
			return notNow("cluster's proposal", p.Status)
		}
		s.expired(c, p, now)
	}
	return err
}

func (s *Service) importRule(ctx context.Context, r Rule, by importer) error {
	r.Draft = r.Draft.normal()
	if err := errors.Join(checkName("ID", r.ID), s.validateDraft(&r.Draft)); err != nil {
		return err
	}
	switch r.Status {
	case StateActive, StateRetired, StateRevoked, StateSuperseded:
	default:
		return invalid("Status", "is none of the statuses")
	}
	truncate(&r.Activated, &r.Left)
	truncateApprovals(r.Approvals)
	_, err := s.step(ctx, s.governing, func(c *change) error {
		c.Want(r.wants())
		r := r.at(0)
		if err := checkNew(c.Tx, r.ID, &r.Draft); err != nil {
			return err
		}
		if err := s.admit(c.Tx, &r, by); err != nil {
			return err
		}
		now := s.now()
		if r.Left.After(now) {
			r.Left = now
		}
		if r.Activated.IsZero() || r.Activated.After(now) {
			r.Activated = now
		}
		r.Since, r.Effect, r.RetireProposed = now, Effect{}, time.Time{}
		c.write(ruleKind.record(r))
		c.tell(c.entry(s, now, by.who, "import", r.ID, by.reason))
		if r.Status == StateActive {
			c.notice(heed.Activated{Component: component, At: now, Subject: r.ID})
		}
		return c.governs(now)
	})
	return err
}

// checkNew reports a rule of this id: as errKnown if it has these words, and else as a [heed.ErrConflict].
func checkNew(tx *store.Tx, id string, d *Draft) error {
	known, err := ruleKind.in(tx, id)
	switch {
	case errors.Is(err, heed.ErrNotFound):
		return nil
	case err != nil:
		return err
	case known.words() != d.words():
		return store.Final(fmt.Errorf("another rule has this id: %w", heed.ErrConflict))
	}
	return errKnown
}

// people brings ids into their canonical form.
func (s *Service) people(field string, ids []string) (err error) {
	for i := range ids {
		if ids[i], err = s.person(fmt.Sprintf("%s[%d]", field, i), ids[i]); err != nil {
			return err
		}
	}
	return nil
}

// approvers brings the ids of the approvers into their canonical form.
func (s *Service) approvers(approvals []Approval) (err error) {
	for i := range approvals {
		if approvals[i].Actor, err = s.person(fmt.Sprintf("Approvals[%d].Actor", i), approvals[i].Actor); err != nil {
			return err
		}
	}
	return nil
}

// named brings an id into its canonical form if there is one.
func (s *Service) named(field string, id *string) (err error) {
	if *id != "" {
		*id, err = s.person(field, *id)
	}
	return err
}

// admit reports why a rule must not come in: its approvals don't fulfil the gate, or it contradicts an active one.
func (s *Service) admit(tx *store.Tx, r *Rule, by importer) error {
	if err := errors.Join(s.people("Authors", r.Authors), s.people("Writers", r.Writers), s.approvers(r.Approvals)); err != nil {
		return err
	}
	if !by.trusted {
		r.Approvals, r.Pinned = nil, false
		r.Writers = text.Distinct(append(r.Writers, by.who)) // who brings words in does not approve them, whatever becomes of the rule
		return nil
	}
	if r.Status != StateActive {
		return nil
	}
	for _, a := range r.Approvals {
		if slices.Contains(r.Writers, a.Actor) {
			return ineligible(ownWords)
		}
	}
	against, err := s.against(tx, &r.Draft)
	if err != nil {
		return err
	}
	if !s.cfg.Gate.met(r.Approvals, &r.Draft, r.Authors, against) {
		if s.cfg.Gate.met(r.Approvals, &r.Draft, r.Authors, nil) {
			return contradicted(against)
		}
		return ineligible("its approvals do not fulfil the gate")
	}
	return nil
}
