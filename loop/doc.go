// Package loop closes the loop of an agent that learns, with the packages of heed in one value.
//
//	agent, err := loop.New(ctx, loop.Config{DB: db, Model: model})
//	event := loop.Event{Text: "The disk of db-1 is full.", Session: "s1", Person: "ann"}
//	answer, err := agent.Answer(ctx, event)
//	err = agent.React(ctx, answer.ID, loop.Reaction{Person: "ann", Value: 1})
//	go agent.Run(ctx)
//
// An event is answered by a heuristic that is trusted, or else by the model. The model's prompt
// then contains the rules that people approved, the ways of working that went well or badly, and
// the notes that fit. Where there are several [Arm]s, the loop learns which of them works.
//
//	what becomes of an answer         what it changes
//	[Agent.React]: a thumb, a score   trust in the heuristic, the arm; praise makes new heuristics
//	[Agent.Undo]: it is taken back    trust in the heuristic, the arm
//	[Agent.Hear]: a later message     the same, if its text takes the answer back or passes it over
//	silence, seen by [Agent.Sweep]    the same, a little
//	[Agent.Outcome]: a result         the same, and which ways of working are shown or warned of
//	[Agent.Correct]: a reviewer       as by a thumb of -1; rules, once other people approve them
//
// # What to read
//
//	to                                               see
//	answer, react, and sweep                         the example of [Agent.Answer]
//	stream an answer, piece by piece                 [Event].OnChunk, [Streamer], [Spoken]
//	have a framework call the model                  [Agent.Prepare], [Agent.Answered]
//	answer although a model fails                    [Config].Fallbacks, [ErrNoModel]
//	answer although the store can't be reached       [Degraded]
//	learn which model or prompt works                [Config].Arms, [Choosing]
//	teach heuristics, notes and arms from a file     [ReadLessons], [Config].Lessons
//	commit records of yours with a reaction          [Agent.ReactIn], [Agent.OutcomeIn]
//	count what a stream or a tool reports            [Agent.Attribute], [Agent.Tool]
//	find out why an answer was given                 [Agent.Explain]
//	find out what learning gains                     [Config].Control, [Agent.Gain]
//	begin with past answers                          [Agent.Import]
//	keep organisations apart                         [Agent.Tenant]
//	stop learning for a while                        [Agent.Freeze]
//
// # A framework that calls the model
//
// [Agent.Prepare] returns what to ask which model. It may also have the answer already.
// [Agent.Answered] records what the model answered. [Agent.Answer] does both, and calls
// [Config].Model in between.
//
// # What is stored
//
// All of an agent's state is in its store. So a reaction may come in another process than the
// answer, or after a crash. Each answer is one record of the kind "loop.answer", an answer.Answer:
// how the event was answered, what was chosen and shown, and every statement about it since. The
// agent keeps only copies in memory of what is stored.
//
// A call that changes an answer is one commit. [Agent.ReactIn] and [Agent.OutcomeIn] let a host
// commit its own records with it: see store.Do.
package loop
