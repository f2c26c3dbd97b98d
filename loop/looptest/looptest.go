// Package looptest is for tests. [New] gives a host's own test an agent with a fixed clock, a seed
// and a scripted model.
//
// [Run] is the contract of an adapter in executable form. An adapter lets the agent of a framework
// run over a [loop.Agent]. Run the suite from a test of your adapter:
//
//	func TestAdapter(t *testing.T) {
//		made := func(agent *loop.Agent, s looptest.Script) (looptest.Driver, error) {
//			bot := framework.New(s.System, modelOf(s.Model), toolsOf(s.Tools), myadapter.Hooks(agent))
//			turn := func(ctx context.Context, t looptest.Turn) (looptest.Said, error) {
//				answer, err := bot.Run(ctx, t.Session, t.Person, t.ID, t.Text, t.Stream)
//				return looptest.Said{ID: myadapter.AnswerID(answer), Text: answer.Text}, err
//			}
//			return looptest.Driver{Turn: turn}, nil
//		}
//		looptest.Run(t, looptest.Subject{New: made})
//	}
//
// The suite plays the model, the tools and the people. It looks at what the people saw, at what the
// model was sent, and at what the agent learned. It does not look into the adapter. It needs the
// standard library only.
//
// It checks that an adapter has an arm's model answer, lets it call the arm's tools alone, and
// makes no call that breaks a rule, only if [Subject] sets these. Later versions may test more.
package looptest

import (
	"context"
	"testing"
	"time"

	"github.com/heedhq/heed/internal/conformance"
	"github.com/heedhq/heed/llm"
	"github.com/heedhq/heed/loop"
)

// A Subject makes the drivers that the suite judges. Each rule has an agent and a driver of its
// own, or several.
type Subject struct {
	// New makes an agent of the framework, with the adapter over agent.
	New func(agent *loop.Agent, s Script) (Driver, error)
	// Configure changes the configuration of the [loop.Agent] before it is made. nil leaves it
	// unchanged. Leave the store, the clock, the arms and the lessons as they are.
	Configure func(c *loop.Config, s Script)
	// Patience is how long the suite waits for the end of a turn. 0 means 10 seconds.
	Patience time.Duration
	// Models reports that the adapter asks the model that the plan's Arm.ModelName names: see
	// [Script].Models. Tools reports that a model can call only the tools of the plan's Arm.Tools, if
	// it lists any. The suite checks what is set.
	Models, Tools bool
	// Enforce reports that a call of a tool that breaks a rule is not made. The suite checks that, if
	// it is set.
	Enforce bool

	arms []loop.Arm // of a rule, in place of the suite's
}

// A Script is what the framework's agent is made of.
type Script struct {
	System string // the host's own system prompt
	Model  *Model
	Models map[string]*Model // what arms may name in place of Model
	Tools  []Tool
}

// A Tool is a function that the model may call. Its input is a JSON object with the string "host".
type Tool struct {
	Name, Description string
	Run               func(ctx context.Context, input string) (string, error)
}

// A Driver runs the framework's agent.
type Driver struct {
	// Turn runs one turn and returns when it ended. It is called by several goroutines at once. A
	// panic in the framework, in the model, in a tool or in Turn.Stream must come out as an error.
	Turn func(context.Context, Turn) (Said, error)
	// Close ends what the driver began. It may be nil.
	Close func()
}

// A Turn is a person's message.
type Turn struct {
	ID              string // of the message. One that is delivered again has the same id
	Session, Person string
	Text            string
	// Stream takes each piece of the answer that a person would see. nil means that the framework is
	// not to stream.
	Stream func(piece string)
}

// Said is the agent's reply to the person.
type Said struct {
	// of the answer, in the form that the host gets from the adapter: for [loop.Agent.React] and the
	// others
	ID   string
	Text string // the whole answer
}

// Run runs the suite, a subtest a rule.
func Run(t *testing.T, s Subject) { conformance.Run(t, rules, s) }

const thought = "The user must never read this."

// rules is the suite.
var rules = []conformance.Rule[Subject]{
	both("an answer of the model is kept once, as it was said", saying(
		"Look at the logs:\n\n- `db-1`\n- é\nin this order.",
		says("Look at ", "the logs:\n\n", "- `db-1`\n- é", "\nin this order."))),
	both("an answer earns nothing by itself", earnsNothing),
	both("a trusted heuristic answers and no model is called", shortCircuit),
	both("an answer has an id that takes a reaction, which counts once", creditOnce),
	both("a turn that is delivered again has the same answer", deliveredAgain),
	both("a turn that is delivered twice at once has one answer", deliveredTwice),
	both("each message has an answer of its own, for its person and session", whoAsks),
	both("a person's words take an answer back", takesBack),
	both("what heed and the host add reaches the model once, and is on record", addedOnce),
	both("the user's text reaches the model once and unchanged", userText),
	both("only rules in force reach the model", onlyApproved),
	both("an echo of what heed added is no evidence", echo),
	both("what a tool gives is neither words nor evidence", toolWorks),
	both("each error of a tool counts once", toolFails),
	both("a model that fails or breaks off gives no answer", failing(), failing("Look at")),
	both("a model that says nothing gives no answer", saysNothing),
	both("a model that is unavailable is no evidence about the arm", unavailable(llm.Unreachable),
		unavailable(llm.RateLimited), unavailable(llm.ServerError), unavailable(llm.TimedOut)),
	both("an answer that cannot be used counts against the arm", unusable),
	both("an answer that a person stops is no evidence", stopped),
	both("a context that ends leaves no answer behind",
		endedBefore, endsInModel, endsInTool, endsWithAnswer),
	both("a panic is an error and leaves no answer behind",
		modelPanics, toolPanics, receiverPanics(plainText), receiverPanics(trustedText)),
	both("an answer that can't be kept is given all the same", storeAway(false), storeAway(true)),
	both("turns at once are kept apart", atOnce("s2", bob), atOnce("s2", ann), atOnce("s1", bob)),
	both("tools of turns at once are kept apart", toolsAtOnce),
	both("thoughts reach neither the user nor heed",
		saying("Look at the logs.", emits(Piece{Thought: thought}, Piece{Text: "Look at "},
			Piece{Thought: thought}, Piece{Text: "the logs."})),
		saying("Look at the logs.",
			says("<thi", "nk>"+thought[:9], thought[9:]+"</thi", "nk>Look at ", "the logs."))),
	both("the end of an answer reaches who follows the stream", // also if it could begin a tag
		saying("The sign for less is <", says("The sign for less is ", "<")),
		saying("It is written <th", says("It is written ", "<th"))),
	armed("the model of an arm answers", func(s Subject) bool { return s.Models }, armModels,
		loop.Arm{ID: "short", System: armPrompt}, loop.Arm{ID: second, ModelName: second}),
	armed("a model can call no tools but those of its arm", func(s Subject) bool { return s.Tools },
		armTools, loop.Arm{ID: "careful", Tools: []string{lookUp}}),
	armed("a call of a tool that breaks a rule is not made",
		func(s Subject) bool { return s.Enforce }, enforced, loop.Arm{ID: "short", System: armPrompt}),
}

// both makes a rule of checks. Each has its own fixture, once of a framework that gives answers as
// a whole, and once of one that streams.
func both(name string, checks ...func(*fixture)) conformance.Rule[Subject] {
	return conformance.Rule[Subject]{Name: name, Check: func(t testing.TB, s Subject) {
		for _, check := range checks {
			judge(t, s, "", check)
			judge(t, s, "streaming: ", check)
		}
	}}
}

// armed makes a rule with its own arms, for subjects that have what the rule is about.
func armed(name string, has func(Subject) bool, check func(*fixture),
	arms ...loop.Arm) conformance.Rule[Subject] {
	rule := both(name, check)
	checked := rule.Check
	rule.Check = func(t testing.TB, s Subject) {
		if s.arms = arms; has(s) {
			checked(t, s)
		}
	}
	return rule
}

func judge(t testing.TB, s Subject, mode string, check func(*fixture)) {
	f := newFixture(t, s, mode)
	defer f.driver.Close()
	check(f)
}
