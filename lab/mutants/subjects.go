package mutants

// A subject is code that is mutated, and the packages whose tests are run on it: its own first.
type subject struct {
	dir   string
	files []string // without ".go"; all if nil
	tests []string
}

const (
	engines = "sqlstore/enginetest"
	faults  = "lab/scorecard" // disks that fail
)

var subjects = []subject{
	{"evidence", nil, []string{"evidence", "memstore", "learning", "strategy"}},
	{
		"feedback",
		[]string{
			"refusal", "check_text", "check", "conflict", "evaluate", "gate", "move", "proposal",
			"rules", "similarity",
		},
		[]string{"feedback", "loop"},
	},
	{"answer", []string{"parts", "reception", "statement"}, []string{"answer", "learning", "loop"}},
	{
		"learning",
		[]string{
			"bayesian", "calibration", "confidence", "judge", "ledger", "pin", "settlement",
			"signal", "weigh",
		},
		[]string{"learning", "loop"},
	},
	{
		"strategy",
		[]string{
			"credit", "credit_in", "correct", "memo", "outcome", "pooling", "propensity", "record",
			"segment", "silence", "spread", "two_level",
		},
		[]string{"strategy", "strategy/strategytest", "strategy/attribution", "loop"},
	},
	{
		"patterns",
		[]string{
			"criterion", "decide", "maturity", "outcome", "plan", "recorder", "score", "standing",
		},
		[]string{"patterns"},
	},
	{
		"memstore",
		[]string{"cells", "commit", "records", "state", "take"},
		[]string{"memstore", "store/storetest", "internal/dump", engines},
	},
	{
		"sqlstore",
		[]string{
			"commit", "commit_evidence", "commit_limits", "commit_records", "commit_take", "rows",
			"tally",
		},
		[]string{faults, engines},
	},
	{"internal/curves", nil, []string{"internal/curves", "evidence", "strategy"}},
	{"internal/answers", []string{"cells"}, []string{"strategy"}},
	{"internal/valid", []string{"limits"}, []string{"memstore", "evidence", "learning", engines}},
	{"internal/stores", nil, []string{"internal/stores", "memstore", engines}},
	{"internal/settings", nil, []string{"internal/settings", "learning", "strategy", "feedback"}},
	{"feedback/internal/oppose", nil, []string{"feedback/internal/oppose", "feedback"}},
	{"internal/text", nil, []string{"internal/text", "feedback", "learning", "memstore"}},
	{"learning/internal/undo", nil, []string{"learning/internal/undo", "learning"}},
	{"internal/names", nil, []string{"internal/names", "feedback"}},
}

// patterns choose the tests of a package where not all of them are run.
var patterns = map[string]string{engines: "^Test(Store|" +
	"StoresAgree|StoreClock|.*Undecodable|Check.*|" +
	".*Sums.*|Dump|Load.*|OneOfMany.*|.*Together.*)$"}
