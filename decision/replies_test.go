package decision_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A reply is what a model may send that is asked for a prediction, and means success 0.9 and
// confidence 0.3: see [replies].
type reply struct {
	Name string
	Text string
	// Success and Confidence report whether each number must be read or refused.
	Success, Confidence bool
}

// wrappers are what models put around their JSON.
var wrappers = map[string]string{
	"bare":   "%s",
	"spaces": "\n\n  %s  \n",
	"fence":  "```json\n%s\n```",
	"loud fence": "" +
		"Here is the JSON you asked for:\n\n```JSON\n%s\n```\n\nLet me know if you need more!",
	"prose": "" +
		"The response {which is short} is fine, so I'd say %s. That is my estimate; see {above}.",
	"thoughts": "" +
		"<think>Maybe {\"success\": 0.1, \"confidence\": 0.1}? No, {that's} too low.</think>\n%s",
	"the example": "The format is {\"success\": <number>, \"confidence\": <number>}. Mine:\n%s",
	"wrapped":     "[{\"prediction\": %s, \"note\": \"a {brace} and a \\\" quote\"}]",
	"byte order":  "\ufeff%s",
	"heading":     "## Prediction\n\n**Answer:** %s\n\n---",
}

// readable are objects that can be read.
var readable = map[string]string{
	"plain":             `{"success": 0.9, "confidence": 0.3}`,
	"tight":             `{"success":0.9,"confidence":0.3}`,
	"in lines":          "{\n\t\"success\": 0.9,\n\t\"confidence\": 0.3\n}",
	"the other order":   `{"confidence": 0.3, "success": 0.9}`,
	"exponents":         `{"success": 9e-1, "confidence": 3.0E-1}`,
	"more digits":       `{"success": 0.90000, "confidence": 0.3000}`,
	"numbers in quotes": `{"success": "0.9", "confidence": " 0.3 "}`,
	"capitals":          `{"Success": 0.9, "CONFIDENCE": 0.3}`,
	"other fields": "" +
		`{"reason": "it is {fine} \"so far\", 85%", "success": 0.9, "risks": ["a", {"b": null}, ` +
		`[1]], "confidence": 0.3, "ok": true}`,
	"nested": `{"result": {"scores": {"success": 0.9, "confidence": 0.3}}}`,
	"in an array": "" +
		`{"predictions": [1, {"note": [[]]}, [{"success": 0.9, "confidence": 0.3}]]}`,
	"escapes": `{"succ\u0065ss": 0.9, "confidence": 0.3, "note": "\ud83d\ude00 \\ \/"}`,
}

// ambiguous are objects that may mean one thing or another, or are no JSON.
var ambiguous = map[string]string{
	"a field twice":          `{"success": 0.1, "success": 0.9, "confidence": 0.3}`,
	"twice but for capitals": `{"success": 0.9, "confidence": 0.3, "Confidence": 0.3}`,
	"twice by an escape":     `{"success": 0.9, "succ\u0065ss": 0.1, "confidence": 0.3}`,
	"two predictions": "" +
		`{"success": 0.9, "confidence": 0.3} or {"success": 0.2, "confidence": 0.3}`,
	"two parts":         `{"success": 0.9} and {"confidence": 0.3}`,
	"commas in numbers": `{"success": 0,9, "confidence": 0,3}`,
	"no comma":          `{"success": 0.9 "confidence": 0.3}`,
	"two commas":        `{"success": 0.9,, "confidence": 0.3}`,
	"no colon":          `{"success" 0.9, "confidence" 0.3}`,
	"no JSON":           `success: 0.9, confidence: 0.3`,
	"numbers alone":     `0.9, 0.3`,
	"an array":          `[0.9, 0.3]`,
	"a range":           `{"success": 0.8-0.9, "confidence": 0.2-0.3}`,
	"nothing":           ``,
	"an empty object":   `{}`,
	"other names":       `{"probability": 0.9, "certainty": 0.3}`,
	"single quotes":     `{'success': 0.9, 'confidence': 0.3, 'reason': 'it\'s "fine"'}`,
	"no quotes":         `{success: 0.9, confidence: 0.3}`,
	"a comma too many":  `{"success": 0.9, "confidence": 0.3,}`,
	"comments": "" +
		"{\n  // how likely\n  \"success\": 0.9, // high\n  /* how sure */ \"confidence\": 0.3 // " +
		"low, \"success\": 1\n}",
	"line breaks in a text":      "{\"reason\": \"one\ntwo\", \"success\": 0.9, \"confidence\": 0.3}",
	"names around a good object": `{"success": {"a": 0.9, "confidence": 0.3}}`,
}

// replies returns what models may send where they are asked for a prediction: what must be read,
// and what must be refused. It has each shape of a reply in all wrappers, and replies that break
// off.
func replies() []reply { return append(shapes(), truncated...) }

func shapes() (all []reply) {
	add := func(name, text string, success, confidence bool) {
		for _, wrapper := range slices.Sorted(maps.Keys(wrappers)) {
			around := fmt.Sprintf(wrappers[wrapper], text)
			all = append(all, reply{name + " / " + wrapper, around, success, confidence})
		}
	}
	const both, none = true, false

	for _, name := range slices.Sorted(maps.Keys(readable)) {
		add(name, readable[name], both, both)
	}

	// malformed numbers, on either side of a good one, which is read if the whole is JSON
	for _, bad := range []string{
		`NaN`, `"NaN"`, `Infinity`, `-Infinity`, `"inf"`, `null`, `true`, `false`, `""`, `"high"`,
		`"85%"`, `85%`, `85`, `8.5`, `1.0001`, `-0.2`, `-1e-9`, `1e999`, `-1e999`, `"0.9/1"`, `0.9/1`,
		`.9`, `+0.9`, `1.`, `0x1`, `09`, `[0.9]`, `{"value": 0.9}`, `"0,9"`, `"0.9 or so"`, `"٠.٩"`,
		`½`, `<number>`,
	} {
		valid := json.Valid([]byte(bad))
		add("success is "+bad, `{"success": `+bad+`, "confidence": 0.3}`, none, valid)
		add("confidence is "+bad, `{"success": 0.9, "confidence": `+bad+`}`, valid, none)
	}
	add("success is missing", `{"confidence": 0.3}`, none, both)
	add("confidence is missing", `{"success": 0.9}`, both, none)

	for _, name := range slices.Sorted(maps.Keys(ambiguous)) {
		add(name, ambiguous[name], none, none)
	}
	return all
}

// truncated are replies that break off. Objects in them that are whole are read.
var truncated = []reply{
	{
		"twice the same",
		`{"success": 0.9, "confidence": 0.3} so {"confidence": 0.30, "success": 0.9}`,
		true, true,
	},
	{"in the first number", `{"success": 0.`, false, false},
	{"behind what may be a part of it", `{"success": 0.9`, false, false},
	{"behind the first", `{"success": 0.9,`, false, false},
	{
		"behind what may be a part of the second",
		`{"success": 0.9, "confidence": 0.3`,
		false, false,
	},
	{"without the brace", "{\"success\": 0.9, \"confidence\": 0.3\n", false, false},
	{
		"in a fence without the brace",
		"```json\n{\"success\": 0.9, \"confidence\": 0.3\n```",
		false, false,
	},
	{"in a text", `{"success": 0.9, "confidence": 0.3, "reason": "it is`, false, false},
	{"in a name", `{"success": 0.9, "conf`, false, false},
	{"in a number in quotes", `{"success": 0.9, "confidence": "0.3`, false, false},
	{"within an object", `{"result": {"success": 0.9, "confidence": 0.3, "x`, false, false},
	{
		"behind loud thoughts that are no UTF-8",
		"<THINK>\xff\xfe\xff{\"success\": 0.1}</THINK>{\"success\": 0.9, \"confidence\": 0.3}",
		true, true,
	},
	{"within an array", `{"results": [{"success": 0.9, "confidence": 0.3}, {"x`, true, true},
	{
		"two in an array",
		`{"results": [{"success": 0.9, "confidence": 0.3}, {"success": 0.8, "confidence": 0.3}]}`,
		false, false,
	},
	{
		"in an array that closes as an object",
		`{"predictions": [{"success": 0.9, "confidence": 0.3}]m}, [}`,
		true, true,
	},
	{"arrays that close as objects", `{"a": [m}` + strings.Repeat(`[[}`, 99), false, false},
	{"in thoughts", `<think>{"success": 0.9, "confidence": 0.3}`, false, false},
	{
		"behind thoughts",
		"<thinking>so</thinking>{\"success\": 0.9, \"confidence\": 0.3}",
		true, true,
	},
	{
		"too long",
		strings.Repeat(" ", 64<<10) + `{"success": 0.9, "confidence": 0.3}`,
		false, false,
	},
	{
		"too deep",
		strings.Repeat(`{"a":`, 40) + `{"success": 0.9, "confidence": 0.3}` + strings.Repeat("}", 40),
		true, true,
	},
	{"braces only", strings.Repeat("{", 50_000), false, false},
	{"in a JSON string", `"{\"success\": 0.9, \"confidence\": 0.3}"`, true, true},
}
