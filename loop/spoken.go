package loop

import "github.com/heedhq/heed/internal/thoughts"

// Spoken returns two functions for an answer that a framework streams. write takes each piece of it, and gives to what is not a thought
// of the model in tags, such as <think>. It may hold text back. Call end after the last piece. Thoughts that lack their opening
// tag are known too late. [Agent.Answered] takes all thoughts out.
//
// Both must not be used concurrently.
func Spoken(to func(text string)) (write func(piece string), end func()) {
	var r thoughts.Reader
	give := func(text string, _ bool) {
		if text != "" {
			to(text)
		}
	}
	return func(piece string) { give(r.Write(piece)) }, func() { give(r.Close()) }
}
