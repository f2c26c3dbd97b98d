// Agent is an operations assistant that learns: all packages of heed in one loop.
//
// It lives in a simulated world of alerts, requests and tasks, with a scripted model that makes mistakes, users who mostly say
// nothing, reviewers and two leads. The truth of that world is in world/truth.go, and the assistant can't know it. Package assistant has all
// that learns, and package world all that is true. This package brings them together and keeps the score. Beside it are the scores
// for the same events without learning, with the truth about each heuristic, and with the best answer to everything.
//
// Usage:
//
//	go run ./lab agent [-seed S] [-events N] [-db DATABASE] [-model NAME]
//
// With -db it keeps what it learns in a file of SQLite, or in PostgreSQL where that begins with postgres://, and a further run
// goes on where the last one stopped. Without, all is gone at the end.
//
// With -model a real model takes the place of the script, at the chat-completions endpoint of OPENAI_BASE_URL, with the key of
// OPENAI_API_KEY if there is one. It costs about two calls an event at first; the world judges its answers by key words.
package agent
