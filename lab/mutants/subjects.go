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

var subjects = append(own("adapter/mcp", "adapter/openai", "adapter/otel", "cmd/heed",
	"cmd/heed/internal/past", "feedback/modeleval", "internal/fair", "internal/host",
	"internal/settings", "internal/stores", "internal/text", "internal/thoughts", "internal/winner",
	"loop", "patterns", "prompt", "strategy/attribution", "strategy/best", "strategy/injection",
	"strategy/money", "strategy/offpolicy", "strategy/partition", "web"), []subject{
	{"answer", []string{"internal/answers", "learning", "loop"}},
	{"decision", []string{"decision", "loop"}},
	{"evidence", []string{"evidence", "memstore", "learning", "strategy"}},
	{"feedback", []string{"feedback", "loop"}},
	{"feedback/internal/oppose", []string{"feedback/internal/oppose", "feedback"}},
	{"internal/answers", []string{"internal/answers", "strategy", "learning"}},
	{"internal/chance", []string{"internal/chance", "evidence", "strategy"}},
	{"internal/dump", []string{"internal/dump", "memstore", engines}},
	{"internal/valid", []string{"internal/valid", "memstore", "evidence", "learning", engines}},
	{"internal/view", []string{"internal/view", "web"}},
	{"learning", []string{"learning", "loop"}},
	{"learning/internal/undo", []string{"learning/internal/undo", "learning"}},
	{"memstore", []string{"memstore", "store/storetest", engines}},
	{"sqlstore", []string{"sqlstore", faults, engines}},
	{"store", []string{"store", "memstore", "loop", engines}},
	{"stream", []string{"stream", "stream/streamtest", "strategy/attribution"}},
	{"strategy", []string{"strategy", "strategy/attribution", "loop"}},
}...)

// own returns packages that only their own tests are run on.
func own(dirs ...string) (all []subject) {
	for _, dir := range dirs {
		all = append(all, subject{dir, []string{dir}})
	}
	return all
}

// patterns choose the tests of a package where not all of them are run.
var patterns = map[string]string{
	engines: "^Test(Store|StoresAgree|StoreClock|.*Undecodable|Check.*|PgBouncer.*|TwoVersions|" +
		".*Sweep.*|ForgottenInFiles|.*Sums.*|Dump|Load.*|OneOfMany.*|.*Together.*|Rights|.*History.*|" +
		"Files.*|SQLite.*|OneStatement.*|Older.*|.*ACall.*|.*Landmark|Quick.*|OtherDialect|Outcome.*|" +
		"Prepare.*|Isolation.*|Schema.*|.*Weak.*|Refused.*|Limit.*|Retracting.*|StorePlans|.*Cut.*)$",
	faults: "FailsAnywhere",
}
