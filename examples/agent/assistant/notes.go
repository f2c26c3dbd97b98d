package assistant

import (
	"context"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/prompt"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/attribution"
	"github.com/heedhq/heed/strategy/injection"
)

// A Note is something that was learned once. Its category is the sort of thing it is.
type Note struct{ ID, Category, Topic, Text string }

// The headings under which notes stand in a prompt, and what a subagent is told.
const (
	NotesHeading   = "## Notes"
	AdviceHeading  = "## Advice of a subagent"
	EarlierHeading = "## Advice from the last time"
	SubagentPrompt = "You are a subagent. Say in a sentence or two what the note means for the event."
	NoteMark       = "Note: "
)

// relevant is from which similarity of its topic and an event on a note is about the event.
const relevant = 0.15

// arms are the four ways of using a note, without variants.
func arms() []strategy.Arm {
	return injection.Arms(injection.Config{
		Positions: []string{injection.Suffix}, Formats: []string{injection.Plain},
		AgentTypes: []string{injection.General}, Blocking: []bool{true}, Callbacks: []string{injection.Notify},
	})
}

// A notebook has the notes, and the advice that subagents have given in the background.
type notebook struct {
	notes   []Note
	earlier map[string]string
}

func newNotebook(notes []Note) *notebook {
	return &notebook{notes: notes, earlier: make(map[string]string)}
}

// about returns the note that is most about a text, or nil.
func (n *notebook) about(ctx context.Context, text string) (*Note, error) {
	topics := make([]string, len(n.notes))
	for i, note := range n.notes {
		topics[i] = note.Topic
	}
	similarities, err := heed.Trigrams{}.Similar(ctx, text, topics)
	if err != nil {
		return nil, err
	}
	var best *Note
	most := relevant
	for i, s := range similarities {
		if s > most {
			best, most = &n.notes[i], s
		}
	}
	return best, nil
}

// Used is a note with the way in which it was used.
type Used struct {
	Note   Note
	Choice strategy.Choice

	text string // in the prompt
}

// use chooses a way for the note that an event is about, and goes it.
func (a *Assistant) use(ctx context.Context, e Event) (*Used, error) {
	note, err := a.notes.about(ctx, e.Text)
	if note == nil || err != nil {
		return nil, err
	}
	choice, err := a.Strategy.Select(ctx, strategy.Query{
		Session: e.ID, Item: note.ID, Category: note.Category, Context: injection.Interactive,
	})
	if err != nil {
		return nil, err
	}
	used := &Used{Note: *note, Choice: choice}
	switch choice.Arm {
	case injection.MainContext:
		used.text = NotesHeading + "\n\n- " + prompt.Line(note.Text, 0)
	case injection.Subagent:
		advice, err := a.ask(ctx, e, note)
		if err != nil {
			return nil, err
		}
		used.text = AdviceHeading + "\n\n- " + prompt.Line(advice, 0)
	case injection.BackgroundSubagent: // what it says now is for the next time
		if earlier := a.notes.earlier[note.ID]; earlier != "" {
			used.text = EarlierHeading + "\n\n- " + prompt.Line(earlier, 0)
		}
		if a.notes.earlier[note.ID], err = a.ask(ctx, e, note); err != nil {
			return nil, err
		}
	case injection.Deferred: // nobody has asked for it
	}
	return used, nil
}

// ask has a subagent read a note.
func (a *Assistant) ask(ctx context.Context, e Event, note *Note) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	reply, err := a.cfg.Model.Generate(ctx, decision.LLMRequest{
		System: SubagentPrompt, MaxTokens: 256,
		Prompt: "Event: " + prompt.Line(e.Text, 0) + "\n\n" + NoteMark + prompt.Line(note.Text, 0),
	})
	return reply.Text, err
}

// attribute tells what a note was worth in a conversation that is over.
func (a *Assistant) attribute(ctx context.Context, account *Account, at time.Time) error {
	used := account.Briefing.Used
	if used == nil || account.Worth == 0 {
		return nil
	}
	event, err := attribution.Report{
		Session: account.Event.ID, Source: account.Event.Person, Ended: true,
		// To hold a note back is a way of using it too: what came of that counts.
		Items: []attribution.Worth{{Item: used.Note.ID, Activated: true, Value: account.Worth}},
	}.Event("closed:"+account.Event.ID, at)
	if err != nil {
		return err
	}
	return a.outcomes.Handle(ctx, event)
}
