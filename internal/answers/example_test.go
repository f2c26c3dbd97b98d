package answers_test

import (
	"fmt"
	"time"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/internal/answers"
)

func ExampleSay() {
	shown := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	a := answer.Answer{ID: "event 7", At: shown, Person: "ann"}

	good := answer.Statement{By: "ann", Channel: "thumbs", Value: 1, At: shown.Add(time.Minute)}
	_, _, effect := answers.Say(&a, good)
	fmt.Println(effect)

	// A retry of the request changes nothing.
	_, _, effect = answers.Say(&a, good)
	fmt.Println(effect)

	// Ann changes her mind. The caller takes back what the thumb up had counted.
	bad := answer.Statement{By: "ann", Channel: "thumbs", Value: -1, At: shown.Add(time.Hour)}
	on, gone, effect := answers.Say(&a, bad)
	fmt.Println(effect, on.Value, "in place of", gone[0].Value)

	// A thumb of an earlier moment arrives late.
	late := answer.Statement{By: "ann", Channel: "thumbs", Value: 1, At: shown.Add(time.Second)}
	_, _, effect = answers.Say(&a, late)
	fmt.Println(effect)
	// Output:
	// holds
	// repeated
	// holds -1 in place of 1
	// outdated
}

func ExampleWorthOf() {
	shown := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	a := answer.Answer{ID: "event 7", At: shown, Person: "ann"}
	print := func() {
		worth, channel, known := answers.WorthOf(&a)
		fmt.Printf("%+.2f %q %t\n", worth, channel, known)
	}
	print()
	answers.Say(&a, answer.Statement{How: answers.Ignored, By: "ann", Channel: "ignored",
		At: shown.Add(time.Minute)})
	print()

	// Two people judge the answer. Each has a half of it, and the ignore is set aside.
	answers.Say(&a,
		answer.Statement{By: "ann", Channel: "thumbs", Value: 1, At: shown.Add(time.Hour)})
	answers.Say(&a,
		answer.Statement{By: "bob", Channel: "thumbs", Value: -0.5, At: shown.Add(time.Hour)})
	print()

	// What came of the answer has one half, and the judgements have the other.
	answers.Say(&a, answer.Statement{How: answers.Outcome, By: "ci", Channel: "tests", Value: 1,
		At: shown.Add(2 * time.Hour)})
	print()

	// The undo of the person who asked is a command, and sets everything else aside.
	answers.Say(&a, answer.Statement{How: answers.Undo, By: "ann", Channel: "undo",
		At: shown.Add(3 * time.Hour)})
	print()
	// Output:
	// +0.00 "" false
	// -0.50 "ignored" true
	// +0.25 "thumbs" true
	// +0.62 "tests, thumbs" true
	// -1.00 "undo" true
}
