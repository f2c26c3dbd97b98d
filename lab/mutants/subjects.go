package mutants

// A subject is a package that is mutated, and the packages whose tests are run on it: its own
// first.
type subject struct {
	dir   string
	tests []string
}

const (
	engines = "sqlstore/enginetest"
	faults  = "lab/scorecard" // disks that fail
)

var subjects = []subject{
	{"answer", []string{"answer", "learning", "loop"}},
	{"decision", []string{"decision", "loop"}},
	{"evidence", []string{"evidence", "memstore", "learning", "strategy"}},
	{"feedback", []string{"feedback", "loop"}},
	{"feedback/internal/oppose", []string{"feedback/internal/oppose", "feedback"}},
	{"internal/answers", []string{"strategy"}},
	{"internal/curves", []string{"internal/curves", "evidence", "strategy"}},
	{"internal/settings", []string{"internal/settings", "learning", "strategy", "feedback"}},
	{"internal/stores", []string{"internal/stores", "memstore", engines}},
	{"internal/text", []string{"internal/text", "feedback", "learning", "memstore"}},
	{"internal/valid", []string{"memstore", "evidence", "learning", engines}},
	{"learning", []string{"learning", "loop"}},
	{"learning/internal/undo", []string{"learning/internal/undo", "learning"}},
	{"llm/openaicompat", []string{"llm/openaicompat"}},
	{"loop", []string{"loop"}},
	{"memstore", []string{"memstore", "store/storetest", engines}},
	{"patterns", []string{"patterns"}},
	{"prompt", []string{"prompt"}},
	{"sqlstore", []string{faults, engines}},
	{"store", []string{"store", "memstore", "loop", engines}},
	{"strategy", []string{"strategy", "strategy/attribution", "loop"}},
	{"web", []string{"web"}},
}

// patterns choose the tests of a package where not all of them are run.
var patterns = map[string]string{
	engines: "^Test(Store|StoresAgree|StoreClock|.*Undecodable|Check.*|" +
		".*Sums.*|Dump|Load.*|OneOfMany.*|.*Together.*)$",
	faults: "FailsAnywhere",
}
