// Package cells names the cells in which package strategy keeps evidence, for packages that are built on it.
package cells

import (
	"strconv"
	"strings"

	"github.com/heedhq/heed/evidence"
)

// Arm returns the cell of an item's arm.
func Arm(learner, scope, item, arm string) evidence.Cell {
	return evidence.Cell{Kind: ArmKind(learner), Scope: scope, Item: item, Name: arm}
}

// ArmKind returns the kind of a learner's cells of arms.
func ArmKind(learner string) string { return learner + ".arm" }

// Scope writes category and context as one text from which both can be told.
func Scope(category, context string) string {
	if strings.ContainsAny(category, `/"`) || category == "" && context == "" {
		category = strconv.Quote(category)
	}
	return category + "/" + context
}
