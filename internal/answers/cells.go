package answers

import (
	"strconv"
	"strings"

	"github.com/heedhq/heed/evidence"
)

// ArmCell returns the cell of an item's arm.
func ArmCell(learner, scope, item, arm string) evidence.Cell {
	return evidence.Cell{Kind: ArmKind(learner), Scope: scope, Item: item, Name: arm}
}

// ArmKind returns the kind of a learner's cells of arms.
func ArmKind(learner string) string { return learner + ".arm" }

// ResetsCell returns the cell that counts how often an item was reset, or its segment where item is
// "".
func ResetsCell(learner, scope, item string) evidence.Cell {
	return evidence.Cell{Kind: ResetsKind(learner), Scope: scope, Item: item, Name: "resets"}
}

// ResetsKind returns the kind of the cells of [ResetsCell].
func ResetsKind(learner string) string { return learner + ".resets" }

// Scope writes category and context as one text from which both can be read back. A category with a
// slash or a quote is quoted, and so are two empty ones, because a scope must not be empty in a way
// that reads like another.
func Scope(category, context string) string {
	if strings.ContainsAny(category, `/"`) || category == "" && context == "" {
		category = strconv.Quote(category)
	}
	return category + "/" + context
}

// ParseScope returns the category and the context that [Scope] wrote.
func ParseScope(scope string) (category, context string, ok bool) {
	if !strings.HasPrefix(scope, `"`) {
		return strings.Cut(scope, "/")
	}
	quoted, _ := strconv.QuotedPrefix(scope) // "" can't be unquoted
	category, err := strconv.Unquote(quoted)
	context, ok = strings.CutPrefix(scope[len(quoted):], "/")
	return category, context, ok && err == nil
}
