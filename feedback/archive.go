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
)

// An Archive is everything that a service knows, without the audit log, each list sorted by id. It marshals to JSON, and
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
	if a.Proposals, err = s.proposals(ctx, ProposalQuery{}); err != nil {
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
// underscores, or of a device on Windows, gets a file name with a hash, so that no id leads elsewhere and no two meet.
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
