package strategy

import (
	"fmt"
	"strings"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/valid"
)

// ArmID names an arm.
type ArmID = answer.ArmID

// An Arm is one of the ways that a [Learner] chooses among: a model, a prompt, a tool.
type Arm struct {
	// ID names the arm in the store. Evidence belongs to it, so an arm that means something else
	// needs another ID.
	ID ArmID
	// Weight is the arm's share of the choices before any evidence, relative to the other arms'
	// weights, from 1e-9 to 1e9. Either all arms have one, or all have 0 and equal shares. Set
	// weights if you know before the start which arm is better or cheaper.
	Weight float64
	// Parameters are settings of the arm that are learned along with it.
	Parameters []Parameter
}

// A Parameter is a setting of an arm with the values that it may have. Each value has evidence of
// its own in a segment, from the outcomes of the choices that had it. A single value is simply set.
type Parameter struct {
	// Name is the parameter's name, unique within its arm.
	Name string
	// Values are the values to learn about, each with the name at most 1,023 bytes: use a short name
	// for a longer text. Each value needs outcomes, so list few.
	Values []string
}

// maxArms bounds the draws of a choice, which a learner also reads from outside.
const maxArms = 1000

// validateArms reports all faults of the arms together, each with the path of its field, for
// example Arms[2].Parameters[0].Values. The mix of weighted and unweighted arms is looked for last,
// because it is a fault of the list and would only repeat the fault of a single weight.
func validateArms(arms []Arm) error {
	var found valid.Faults
	found.Check(len(arms) > 0, "Arms", len(arms), "must have at least one")
	found.Check(len(arms) <= maxArms, "Arms", len(arms), fmt.Sprintf("must be at most %d", maxArms))
	seen, positive := make(map[ArmID]bool), 0
	for i, arm := range arms {
		if arm.Weight > 0 {
			positive++
		}
		field := fmt.Sprintf("Arms[%d].", i)
		found.Check(arm.ID != "" && evidence.CheckText("", string(arm.ID)) == nil, field+"ID", arm.ID,
			"must be text that a store can keep, not empty")
		found.Check(!seen[arm.ID], field+"ID", arm.ID, "must be different from the others")
		seen[arm.ID] = true
		found.Check(arm.Weight == 0 || arm.Weight >= 1e-9 && arm.Weight <= 1e9, field+"Weight",
			arm.Weight, "must be in [1e-9, 1e9], or 0 for all")
		names := make(map[string]bool)
		for j, p := range arm.Parameters {
			field := fmt.Sprintf("%sParameters[%d].", field, j)
			found.Check(p.Name != "" && !names[p.Name] && !strings.Contains(p.Name, "="), field+"Name",
				p.Name, "must be different from the others, not empty, and without an equals sign")
			names[p.Name] = true
			found.Check(len(p.Values) > 0, field+"Values", p.Values, "must have at least one")
			values := make(map[string]bool)
			for _, v := range p.Values {
				found.Check(!values[v] && evidence.CheckText("", p.Name+"="+v) == nil, field+"Values",
					start(v), tooLong)
				values[v] = true
			}
		}
	}
	if err := found.Err(); err != nil {
		return err
	}
	if positive > 0 && positive < len(arms) {
		return &heed.ConfigError{Field: "Arms", Value: arms,
			Reason: "must all have a positive weight, or none"}
	}
	return nil
}

// tooLong is the fault of a parameter's value. The value shares a cell's name with the parameter's
// name and an equals sign, so both together must fit into MaxText bytes.
var tooLong = fmt.Sprintf(
	"must be valid UTF-8 without NUL, at most %d bytes with the parameter's name, and different "+
		"from the others", evidence.MaxText-1)

// start cuts a value that may be long.
func start(value string) string {
	if len(value) > 60 {
		return strings.ToValidUTF8(value[:60], "") + "…"
	}
	return value
}

// coldStart returns the beliefs about arms before any evidence. Of independent draws from
// Beta(c·w, 1) with the same c, the one with weight w is the greatest with probability w over the
// sum of weights: each is U^(1/(c·w)), and -log of it is exponential with rate c·w. So the shares
// of first choices are the weights if prior.Beta is 1. c makes equal weights give the prior itself.
func coldStart(arms []Arm, prior evidence.Beta) []evidence.Beta {
	var total float64
	for _, arm := range arms {
		total += arm.Weight
	}
	beliefs := make([]evidence.Beta, len(arms))
	for i, arm := range arms {
		beliefs[i] = prior
		if total > 0 {
			beliefs[i].Alpha *= arm.Weight / total * float64(len(arms))
		}
	}
	return beliefs
}
