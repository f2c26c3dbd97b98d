package lives

import "math/rand/v2"

// A crowd is the people who use an agent, and how they react to its answers.
type crowd struct {
	name string
	// wrong and right are how often a person complains about a wrong and about a right answer. praise
	// is how often a person praises a right one.
	wrong, right, praise float64
	careless             float64 // how often a person clicks at random instead
	people               int     // each event is of one of them
	// the first of them clicks on each answer that they get, against the truth
	spammer bool
}

// The crowds. Each of them has one person, except where it is a team.
var (
	quiet       = crowd{name: "quiet", wrong: 0.05, right: 0.01, people: 1}
	talkative   = crowd{name: "talkative", wrong: 0.3, right: 0.01, praise: 0.05, people: 1}
	complaining = crowd{name: "complaining", wrong: 0.9, right: 0.01, praise: 0.05, people: 1}
	careless    = crowd{name: "careless", wrong: 0.05, right: 0.01, careless: 0.1, people: 1}
)

// team is the crowd with ten people.
func (c crowd) team() crowd {
	c.name, c.people = c.name+" team", 10
	return c
}

// spammed is the team with one who always clicks against the truth. The others click on about one
// answer in ten, so this one clicks ten times as often.
func (c crowd) spammed() crowd {
	c = c.team()
	c.name, c.spammer = "spammed team", true
	return c
}

// A subject is a heuristic, and the model that answers in its place.
type subject struct {
	right float64 // how often the heuristic is right
	later float64 // how often it is right in the second half; 0: as before
	letIn bool    // it is always right until its first answer
	model float64 // how often the model is right; 0: drawn from 0.7 to 0.95 for each life
}

// The subjects.
var (
	good    = subject{right: 0.9}
	bad     = subject{right: 0.4}
	letIn   = subject{right: 0.4, letIn: true}
	turning = subject{right: 0.9, later: 0.4}
)

func (s *subject) rate(i, of int, began bool) float64 {
	switch {
	case s.letIn && !began:
		return 1
	case s.later > 0 && 2*i >= of:
		return s.later
	default:
		return s.right
	}
}

// coincidence is how often a wrong answer of the model is the heuristic's wrong one.
const coincidence = 0.1

// An event is one that a heuristic fits, with all that chance decides.
type event struct {
	heuristic, model bool // whose answer is right
	same             bool // if both are wrong: they are equal
	person           int
	hidden           float64 // below the probability of that, the prompt withholds the heuristic
	chance, mood     float64 // decide the person's reaction
}

// agrees reports whether the model's answer is the heuristic's.
func (e *event) agrees() bool { return e.heuristic == e.model && (e.model || e.same) }

func draw(c *crowd, heuristic, model float64, rng *rand.Rand) event {
	return event{
		heuristic: rng.Float64() < heuristic, model: rng.Float64() < model,
		same:   rng.Float64() < coincidence,
		person: rng.IntN(c.people), hidden: rng.Float64(), chance: rng.Float64(), mood: rng.Float64(),
	}
}

// says returns the reaction of an event's person to an answer: 1, -1, or 0 for silence.
func (c *crowd) says(e *event, right bool) float64 {
	switch {
	case c.spammer && e.person == 0 && right:
		return -1
	case c.spammer && e.person == 0:
		return 1
	case e.mood < c.careless/2:
		return 1
	case e.mood < c.careless:
		return -1
	case right && e.chance < c.right, !right && e.chance < c.wrong:
		return -1
	case right && e.chance < c.right+c.praise:
		return 1
	default:
		return 0
	}
}
