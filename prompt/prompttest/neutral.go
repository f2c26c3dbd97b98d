// Package prompttest tests that a prompt keeps its form whatever its fields contain. Run it from a
// test of your prompt:
//
//	err := prompttest.Neutral(2, func(field int, value string) string {
//		fields := []string{"a benign event", "a benign goal"}
//		fields[field] = value
//		return myPrompt(fields[0], fields[1])
//	})
//
// It needs the standard library only. Later versions may try more.
package prompttest

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// marker is the value whose rendering shows where a field is.
const marker = "benignvalue"

// maxFailures is how many failures are reported.
const maxFailures = 10

// Neutral renders a prompt with each hostile text in each of its fields, which are numbered from 0,
// and reports the first few for which the prompt has another form than with a benign word in the
// field. The form is all but the field's text: every line, and the rest of the field's line before
// and behind it. A rendered field may hold no line break, no invisible character, and no tag, fence
// or chat marker. A field in quotes must be a JSON string. If text follows a field, the field may
// not hold the first sign of that text. A field at the start of a line may not look like a heading,
// a list item or a quotation. A field may be in several places.
func Neutral(fields int, render func(field int, value string) string) error {
	var failures []error
	for field := range fields {
		benign := strings.Split(render(field, marker), "\n")
		if !strings.Contains(strings.Join(benign, ""), marker) {
			failures = append(failures, fmt.Errorf("field %d: a benign word does not show in the prompt",
				field))
			continue
		}
		for value := range Hostile() {
			if err := compare(benign, render(field, value)); err != nil {
				failures = append(failures, fmt.Errorf("field %d, value %+q: %w", field, value, err))
			}
			if len(failures) >= maxFailures {
				return errors.Join(failures...)
			}
		}
	}
	return errors.Join(failures...)
}

func compare(benign []string, prompt string) error {
	if !utf8.ValidString(prompt) {
		return errors.New("the prompt is no valid UTF-8")
	}
	lines := strings.Split(prompt, "\n")
	if len(lines) != len(benign) {
		return fmt.Errorf("%d lines instead of %d", len(lines), len(benign))
	}
	for i, line := range lines {
		if err := compareLine(benign[i], line); err != nil {
			return fmt.Errorf("line %d: %w: %+q", i+1, err, line)
		}
	}
	return nil
}

func compareLine(benign, line string) error {
	before, behind, has := strings.Cut(benign, marker)
	switch {
	case !has && line != benign:
		return fmt.Errorf("is not %+q", benign)
	case !has:
		return nil
	case strings.Contains(behind, marker):
		return errors.New("has the field twice, which can't be checked")
	}
	quoted := strings.HasSuffix(before, `"`) && strings.HasPrefix(behind, `"`)
	text, ok := strings.CutPrefix(line, before)
	if ok {
		text, ok = strings.CutSuffix(text, behind)
	}
	if !ok {
		return fmt.Errorf("does not have the field between %+q and %+q", before, behind)
	}
	return checkText(text, strings.TrimSpace(before) == "", quoted, behind)
}

var (
	markup = regexp.MustCompile("<([\\pL/|｜!?<]|0x)|```|\\[\\|(system|user|assistant|tool|endofturn)\\|\\]|\\[/?(INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_[A-Z]+|THINK|ARGS|CALL_ID|IMG(_BREAK|_END)?|PREFIX|MIDDLE|SUFFIX|[gs]?MASK|CLS|SEP)\\]")
	block  = regexp.MustCompile(`^(#+( |$)|>|~~~|\||[-+*]( |$)|[0-9]+[.)]( |$)|[-*_= ]+$)`)
)

func checkText(text string, begins, quoted bool, behind string) error {
	for _, r := range text {
		if !unicode.IsGraphic(r) && r != '\u200d' && r != '\u200c' ||
			unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) ||
			unicode.Is(unicode.Variation_Selector, r) && r != '\ufe0e' && r != '\ufe0f' {
			return fmt.Errorf("has %U", r)
		}
	}
	if quoted {
		var s string
		if err := json.Unmarshal([]byte(`"`+text+`"`), &s); err != nil {
			return errors.New("is no JSON string")
		}
	}
	if found := markup.FindString(text); found != "" {
		return fmt.Errorf("has %q", found)
	}
	if begins && block.MatchString(text) {
		return errors.New("begins a block")
	}
	if sign, _ := utf8.DecodeRuneInString(behind); !quoted && unicode.IsPunct(sign) &&
		strings.ContainsRune(text, sign) {
		return fmt.Errorf("has the %q that ends the field", sign)
	}
	return nil
}
