// Package thoughts takes what a reasoning model writes to itself out of its answers.
//
// Thoughts are in tags: think, thinking, thought, reasoning, reflection, scratchpad or seed:think,
// in any case, and nested; [THINK] in upper case; and ◁think▷. A tag that is not closed runs to the
// end of the text. A closing tag without an opening one ends thoughts that began with the text,
// because some servers drop the opening tag. Tags in code stay: in a fenced block, and in a span of
// backticks within a line.
//
// In the raw harmony format, messages on every channel except the final one are thoughts:
//
//	<|channel|>analysis<|message|>thoughts<|end|>
//	<|start|>assistant<|channel|>final<|message|>answer<|return|>
package thoughts

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// A form is a way to write tags. Models differ in the signs that they use.
type form struct {
	opening, closing string // the signs around a name
	// names are the tags', without signs.
	names []string
	exact bool // names are in upper case alone
}

// Their order is the one in which step looks at them.
var forms = [...]form{
	{opening: "<", closing: ">", names: []string{
		"think", "thinking", "thought", "reasoning", "reflection", "scratchpad", "seed:think",
	}},
	{opening: "[", closing: "]", names: []string{"THINK"}, exact: true},
	{opening: "◁", closing: "▷", names: []string{"think"}},
}

const (
	// These bound what is held back while text streams. longestTag is in bytes, for example
	// "</scratchpad  >".
	longestTag    = 16
	longestSpan   = 1024 // bytes of a code span
	longestHeader = 256  // bytes before a message in the harmony format
)

// The tokens of the harmony format.
const (
	startToken   = "<|start|>"
	channelToken = "<|channel|>"
	messageToken = "<|message|>"
)

// endTokens end a message. A message that calls a tool ends with the last of them.
var endTokens = [...]string{"<|end|>", "<|return|>", "<|call|>"}

// message names a message of thoughts in the harmony format, among the tags that are open.
const message = "<|"

// Split returns an answer without its thoughts, and the thoughts. An answer without thoughts stays
// as it is.
func Split(text string) (answer, thoughts string) {
	if !strings.ContainsAny(text, "<[◁") {
		return text, ""
	}
	var r Reader
	shown, _ := r.Write(text)
	rest, restart := r.Close()
	if restart {
		shown = ""
	}
	return shown + rest, r.Thoughts()
}

var visible = regexp.MustCompile(`[\pL\pN\pP\pS]`)

// Answer is [Split] for what a model returned. The answer is valid UTF-8, and empty if no character
// of it is visible.
func Answer(text string) (answer, thoughts string) {
	answer, thoughts = Split(strings.ToValidUTF8(text, "\uFFFD"))
	if !visible.MatchString(answer) {
		answer = ""
	}
	return answer, thoughts
}

// A Reader takes the thoughts out of an answer that comes in chunks. The chunks' boundaries do not
// matter. The zero value is ready. It must not be used concurrently.
//
// The caller may show text as it comes, so the Reader holds back only what may still turn out to be
// a tag. That is at most longestTag bytes, longestHeader in the harmony format, and longestSpan for
// a code span.
type Reader struct {
	// held is what is not decided yet. Every call decides as much of it as it can.
	held string
	// shown is the answer's text so far, and thoughts the thoughts.
	shown    strings.Builder
	thoughts strings.Builder
	open     []string // the names of the tags that are open, the outermost first

	fence string // the characters that opened the code block, or ""
	// inLine reports that the line contains more than blanks until here, so that a fence can't begin.
	inLine  bool
	harmony bool // a message of the harmony format began
}

// Write takes a chunk and returns what is an answer's text for sure. It may hold some back. If
// restart is true, all that was returned by earlier calls was thought, and the text begins again.
func (r *Reader) Write(chunk string) (text string, restart bool) {
	r.held += chunk
	return r.read(false)
}

// Close returns the rest of the text. What was held back is read as text if it is no whole tag. The
// Reader must not be written to any more.
func (r *Reader) Close() (text string, restart bool) { return r.read(true) }

// Thoughts returns the thoughts so far, without blanks around them.
func (r *Reader) Thoughts() string { return strings.TrimSpace(r.thoughts.String()) }

// read reads what is held back, if it can be decided. With final there is no more text to wait for.
// If all before was thought, the text begins again, and what was shown in this call is left out as
// well.
func (r *Reader) read(final bool) (text string, restart bool) {
	begin, part := r.shown.Len(), ""
	if !final {
		whole := len(r.held) - unfinished(r.held)
		r.held, part = r.held[:whole], r.held[whole:]
	}
	for r.held != "" {
		n, thought := r.step(final)
		if n == 0 {
			break
		}
		if thought {
			restart, begin = true, 0
		}
		r.held = r.held[n:]
	}
	r.held += part
	return r.shown.String()[begin:], restart
}

// unfinished returns how many bytes at the end of a text are the beginning of a character.
func unfinished(text string) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if end := text[len(text)-n:]; utf8.RuneStart(end[0]) {
			if utf8.FullRuneInString(end) {
				return 0
			}
			return n
		}
	}
	return 0
}

// step reads the next piece and returns its length, or 0 where more text is needed. It reports
// whether all before was thought. Each case either consumes at least one byte or needs more text,
// so read ends. The sign of a tag is looked at before the sign of code, because a tag may end
// thoughts within code that is not closed.
func (r *Reader) step(final bool) (n int, thought bool) {
	switch c := r.held[0]; {
	case c == '\n':
		r.inLine = false
		return r.take(1), false
	case strings.HasPrefix(r.held, "<|"):
		return r.token(final), false
	case c == '<':
		return r.tag(&forms[0], final)
	case c == '[':
		return r.tag(&forms[1], final)
	case mayBegin(forms[2].opening, r.held):
		return r.tag(&forms[2], final)
	case r.fence == "" && c == '`', !r.inLine && (c == '`' || c == '~'):
		return r.code(final), false
	case c == ' ' || c == '\t' || c == '>' && !r.inLine: // what may precede a fence
		return r.take(1), false
	default:
		r.inLine = true
		return r.take(plain(r.held)), false
	}
}

// plain returns how many bytes, at least one, come before the next sign that may matter. So text
// without signs is taken in large pieces, and not byte by byte.
func plain(text string) int {
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\n', c == '<', c == '`', c == '[', mayBegin(forms[2].opening, text[i:]):
			return i
		}
	}
	return len(text)
}

// mayBegin reports whether a text begins with a sign, or with a part of it that ends with the text.
func mayBegin(sign, text string) bool {
	return text != "" && (strings.HasPrefix(text, sign) || strings.HasPrefix(sign, text))
}

// take moves n bytes to the text, or to the thoughts.
func (r *Reader) take(n int) int {
	if len(r.open) > 0 {
		r.thoughts.WriteString(r.held[:n])
	} else {
		r.shown.WriteString(r.held[:n])
	}
	return n
}

// tag reads a tag of thoughts, or the sign with which one would begin. Code hides a tag from the
// answer, and an opening tag from the thoughts.
//
// A closing tag without an opening one turns all that was shown into thoughts, and the caller must
// start again: see [Reader.Write]. A tag that is longer than longestTag is text.
func (r *Reader) tag(f *form, final bool) (n int, thought bool) {
	window := r.held[:min(len(r.held), longestTag)]
	end := strings.Index(window, f.closing)
	if end < 0 && !final && len(window) < longestTag && f.begins(window) {
		return 0, false
	}
	name, closes := "", false
	if end >= len(f.opening) {
		name, closes = f.name(window[len(f.opening):end])
	}
	thinking := len(r.open) > 0
	hidden := r.fence != "" && !(closes && thinking)
	if closes && thinking && r.open[len(r.open)-1] == message { // only its own tokens end it
		hidden = true
	}
	if name == "" || hidden {
		r.inLine = true
		return r.take(min(len(f.opening), len(r.held))), false
	}
	r.inLine = false
	switch {
	case !closes:
		r.begin(name)
	case thinking:
		last := len(r.open) - 1 // a tag of another name closes the innermost
		for i := last; i >= 0 && r.open[i] != message; i-- {
			if r.open[i] == name {
				last = i
				break
			}
		}
		r.end(last)
	default:
		if r.thoughts.Len() > 0 {
			r.thoughts.WriteString("\n\n")
		}
		r.thoughts.WriteString(r.shown.String())
		r.shown.Reset()
		thought = true
	}
	return end + len(f.closing), thought
}

// begin opens a tag. Separate thoughts are separated by an empty line.
func (r *Reader) begin(name string) {
	if len(r.open) == 0 && r.thoughts.Len() > 0 {
		r.thoughts.WriteString("\n\n")
	}
	r.open = append(r.open, name)
}

// end closes the open tags from a place on. When the last one closes, a code block that the
// thoughts left open ends with it.
func (r *Reader) end(from int) {
	if r.open = r.open[:from]; from == 0 {
		r.fence = ""
	}
}

// name returns the name of thoughts in a tag, with the sign of its form, and whether the tag closes
// them. It returns "" for any other tag.
func (f *form) name(inside string) (name string, closes bool) {
	name, closes = strings.CutPrefix(strings.TrimRight(inside, " "), "/")
	if !f.exact {
		name = strings.ToLower(name)
	}
	if !slices.Contains(f.names, name) {
		return "", closes
	}
	return f.opening + name, closes
}

// begins reports whether a text may be the beginning of a tag. The text may end within the name,
// after the name, or within the closing sign. It is asked only while more text may come, to decide
// whether to wait.
func (f *form) begins(text string) bool {
	if len(text) <= len(f.opening) {
		return true
	}
	name := strings.TrimPrefix(text[len(f.opening):], "/")
	for i := len(f.closing) - 1; i > 0; i-- { // a part of the closing sign
		name = strings.TrimSuffix(name, f.closing[:i])
	}
	if !f.exact {
		name = strings.ToLower(name)
	}
	whole := strings.TrimRight(name, " ")
	return slices.ContainsFunc(f.names, func(n string) bool {
		return n == whole || whole == name && strings.HasPrefix(n, name)
	})
}

// token reads what begins or ends a message of the harmony format, or else a "<". In code only the
// tokens that end thoughts count. Tokens are read as such only where they have a meaning: an end
// token counts only after a message began, because an answer may be about the format.
func (r *Reader) token(final bool) int {
	thinking := slices.Index(r.open, message)
	if r.fence != "" && thinking < 0 {
		return r.take(1)
	}
	n, channel := header(r.held, final)
	if n == 0 {
		return 0
	}
	if n > 0 {
		r.harmony = true
		r.end(max(thinking, 0))
		if channel != "final" && channel != "" {
			r.begin(message)
		}
		r.inLine = false
		return n
	}
	for _, end := range endTokens {
		switch {
		case !r.harmony:
		case strings.HasPrefix(r.held, end):
			r.end(max(thinking, 0))
			r.inLine = false
			return len(end)
		case !final && strings.HasPrefix(end, r.held):
			return 0
		}
	}
	r.inLine = true
	return r.take(1)
}

// header returns the length of what precedes a message, and the channel of the message. The length
// is 0 if more text is needed, and negative if the text begins with something else. A header is in
// one line. The channel is the first word behind its token. A text within the limit that may still
// become a header is waited for.
func header(text string, final bool) (n int, channel string) {
	text = text[:min(len(text), longestHeader)]
	if !mayBegin(startToken, text) && !mayBegin(channelToken, text) {
		return -1, ""
	}
	head, _, found := strings.Cut(text, messageToken)
	line := !strings.Contains(head, "\n")
	switch {
	case found && line:
		_, channel, _ = strings.Cut(head, channelToken)
		channel, _, _ = strings.Cut(strings.TrimSpace(channel), " ")
		channel, _, _ = strings.Cut(channel, "<")
		return len(head) + len(messageToken), channel
	case !found && line && !final && len(text) < longestHeader:
		return 0, ""
	default:
		return -1, ""
	}
}

// code reads the line of a fence, a code span, or backticks that are neither. A fence is at least
// three characters at the beginning of a line. It is closed by as many of the same character or
// more. A span ends with as many backticks as it began with, in the same line; without such an end
// the backticks are text. Within thoughts, a span is not taken as a whole if it holds what may
// close them. A line is waited for as a whole up to longestSpan, because only its end shows whether
// a run of backticks is closed.
func (r *Reader) code(final bool) int {
	window := r.held[:min(len(r.held), longestSpan)]
	line, _, whole := strings.Cut(window, "\n")
	whole = whole || final && len(r.held) < longestSpan || len(window) == longestSpan
	run := len(line) - len(strings.TrimLeft(line, line[:1]))
	if run == len(line) && !whole {
		return 0
	}
	info := line[run:]
	switch {
	case r.inLine || run < 3:
	case r.fence != "":
		if run >= len(r.fence) && line[0] == r.fence[0] && strings.TrimSpace(info) == "" {
			if !whole {
				return 0
			}
			r.fence = ""
		}
		r.inLine = true
		return r.take(run)
	case !whole && (line[0] == '~' || !strings.Contains(info, "`")):
		return 0
	case line[0] == '~' || !strings.Contains(info, "`"):
		r.fence, r.inLine = line[:run], true
		return r.take(run)
	}
	r.inLine = true
	if line[0] == '~' || r.fence != "" {
		return r.take(run)
	}
	for at := run; at < len(line); {
		begin := strings.IndexByte(line[at:], '`')
		if begin < 0 {
			break
		}
		begin += at
		for at = begin; at < len(line) && line[at] == '`'; {
			at++
		}
		if at-begin == run && (at < len(line) || whole) {
			// It may end the thoughts.
			if len(r.open) > 0 && containsAny(line[:at], "</", "[/", "◁/", "<|") {
				return r.take(run)
			}
			return r.take(at)
		}
	}
	if !whole {
		return 0
	}
	return r.take(run)
}

// containsAny reports whether a text has one of the parts.
func containsAny(text string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}
