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
	"regexp"
	"slices"
	"strings"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/store"
)

// Tree returns everything that is stored, without erased feedback and the audit log, as files of
// indented JSON by their paths, for example for a repository of Git:
// feedback/decisions/<gate>/<id>.json, a copy of edge cases in feedback/edge_cases/<id>.json, and
// feedback/rules/<status>/<id>.json, with the status of the rule or of the proposal in lower case,
// and "proposed" for a pending one. An id of other characters than lower-case letters, digits,
// dots, dashes and underscores, or of a device on Windows, gets a file name with a hash, so that no
// id leads out of the directory and no two ids get one file. Two trees of the same state are the
// same to the byte.
func (s *Service) Tree(ctx context.Context) (map[string][]byte, error) {
	tx := s.reading(ctx)
	decisions, noDecisions := feedbackKind.union(tx, everything, (*Feedback).kept)
	proposals, noProposals := proposalKind.union(tx, everything, func(*Proposal) bool { return true })
	rules, noRules := ruleKind.union(tx, everything, func(*Rule) bool { return true })
	files, err := treeOf(decisions, proposals, rules)
	return files, wrap("tree", errors.Join(noDecisions, noProposals, noRules, err))
}

// treeOf lays values out as files: see [Service.Tree]. A proposal that was approved and its rule
// are two files, because both show what people decided.
func treeOf(decisions []Feedback, proposals []Proposal, rules []Rule) (map[string][]byte, error) {
	var failures []error
	files := make(map[string][]byte)
	put := func(value any, elements ...string) {
		text, err := json.MarshalIndent(value, "", "  ")
		files[path.Join(elements...)+".json"] = append(text, '\n')
		failures = append(failures, err)
	}
	for _, f := range decisions {
		put(f, "feedback/decisions", fileName(f.Gate), fileName(f.ID))
		if f.Class == EdgeCase {
			put(f, "feedback/edge_cases", fileName(f.ID))
		}
	}
	for _, r := range rules {
		put(r, "feedback/rules", strings.ToLower(string(r.Status)), fileName(r.ID))
	}
	for _, p := range proposals {
		dir := strings.ToLower(string(p.Status))
		if p.Status == StatePending {
			dir = "proposed"
		}
		put(p, "feedback/rules", dir, fileName(p.ID))
	}
	return files, errors.Join(failures...)
}

// everything selects all values of a kind.
var everything = [][]string{nil}

// plainName matches ids that are file names as they are, except for the devices of Windows.
var (
	plainName = regexp.MustCompile(`^[a-z0-9_-]([a-z0-9._-]{0,78}[a-z0-9_-])?$`)
	device    = regexp.MustCompile(`^(con|prn|aux|nul|(com|lpt)[0-9])(\.|$)`)
)

// fileName makes a name of an id that is safe in every file system. Different ids have different
// names. Some file systems do not distinguish capitals, so an id with capitals gets a hash.
func fileName(id string) string {
	if plainName.MatchString(id) && !device.MatchString(id) {
		return id
	}
	safe := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return '-'
	}, strings.ToLower(id))
	sum := sha256.Sum256([]byte(id))
	return safe[:min(len(safe), 80)] + "~" + hex.EncodeToString(sum[:16])
}

// Import proposes the active rules and pending proposals of a tree ([Service.Tree]) that the store
// lacks, under their ids. Other records of the tree are left out, because a file can claim any
// evidence and any approval. A rule that was pinned is proposed with "PIN". The people whom a file
// names as authors and writers keep these roles. The person who imports becomes a writer, and
// writers cannot approve.
//
// The tree has the directory "feedback", for example [os.DirFS] of a working copy of Git. Import
// returns the proposals that it opened. It goes on after a file that cannot be read or is refused
// ([*RefusedError]), for example because as many proposals of the person wait as may ([Gate]), and
// returns the errors, joined, each with the name of its file. An id that has other words in the
// store is a [heed.ErrConflict].
func (s *Service) Import(
	ctx context.Context, tree fs.FS, actor, reason string,
) (opened []Proposal, err error) {
	var failures []error
	err = fs.WalkDir(tree, "feedback", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || !slices.Contains(imported, path.Dir(name)) || path.Ext(name) != ".json" {
			return err
		}
		p, err := s.importFile(ctx, tree, name, actor, reason)
		switch {
		case err == nil:
			opened = append(opened, p)
		case !errors.Is(err, errKnown):
			failures = append(failures, fmt.Errorf("%s: %w", name, err))
		}
		return ctx.Err()
	})
	return opened, wrap("import", errors.Join(append(failures, err)...))
}

// imported are the directories that [Service.Import] reads.
var imported = []string{"feedback/rules/active", "feedback/rules/proposed"}

// importFile proposes what a file of a tree has. What the store has already is errKnown. It is one
// step: if the store gets the rule in the meantime, the file has no effect.
func (s *Service) importFile(
	ctx context.Context, tree fs.FS, name, actor, reason string,
) (p Proposal, err error) {
	form, err := readProposal(tree, name)
	if err != nil {
		return Proposal{}, err
	}
	if err := errors.Join(s.validateDraft(&form.Draft), people("Authors", form.Authors),
		people("Writers", form.Writers)); err != nil {
		return Proposal{}, err
	}
	a := Act{ID: form.ID, Actor: actor, Reason: reason, Kind: "import", Draft: &form.Draft}
	return act(ctx, s, a, func(c *change) (Proposal, error) {
		c.Want(form.wants(), waitingWants,
			store.Wants{Refs: []store.Ref{proposalKind.Ref(form.ID), ruleKind.Ref(form.ID)}})
		p := form.at(0)
		if err := cmp.Or(checkNew(c.Tx, &proposalKind, &p), checkNew(c.Tx, &ruleKind, &p)); err != nil {
			return p, err
		}
		key := c.people()
		p.Writers = joined(p.Writers, key, c.who)
		p.Proposer = c.who
		s.fill(&p, nil, key)
		err = s.opened(c, &p)
		return p, err
	})
}

// readProposal reads the file of a rule or a proposal as a proposal without evidence and approvals.
// The JSON is read as a rule and as a proposal, because both contain a draft and their ids have
// different names.
func readProposal(tree fs.FS, name string) (Proposal, error) {
	const most = 1 << 20 // bytes
	info, err := fs.Stat(tree, name)
	if err == nil && info.Size() > most {
		err = valid.Input("file", "is %d bytes long, may be %d", info.Size(), most)
	}
	if err != nil {
		return Proposal{}, err
	}
	content, err := fs.ReadFile(tree, name)
	if err != nil {
		return Proposal{}, err
	}
	var rule Rule
	var p Proposal
	err = cmp.Or(json.Unmarshal(content, &rule), json.Unmarshal(content, &p))
	p = Proposal{ID: p.ID, Draft: p.Draft.normal(), Authors: p.Authors, Writers: p.Writers}
	p.Withdrawn = 0
	if rule.ID != "" { // what made it or restored it happened already
		p.ID, p.Change, p.Of, p.Supersedes = rule.ID, "", "", nil
	}
	if rule.Pinned {
		p.Change = pin
	}
	return p, err
}

// errKnown reports that the store already has all that could be imported.
var errKnown = errors.New("known")

// checkNew reports a proposal whose id a kind has already: as errKnown if it has these words, and
// else as a [heed.ErrConflict].
func checkNew[T interface {
	kept[T]
	words() string
}](tx *store.Tx, kind *kindOf[T], p *Proposal) error {
	switch known, err := kind.in(tx, p.ID); {
	case errors.Is(err, heed.ErrNotFound):
		return nil
	case err != nil:
		return err
	case known.words() != p.words():
		return store.Final(fmt.Errorf("other words have this id: %w", heed.ErrConflict))
	}
	return errKnown
}

// people brings ids into their canonical form.
func people(field string, ids []string) (err error) {
	for i := range ids {
		if ids[i], err = person(fmt.Sprintf("%s[%d]", field, i), ids[i]); err != nil {
			return err
		}
	}
	return nil
}
