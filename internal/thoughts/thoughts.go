// Package thoughts takes what a reasoning model says to itself out of its answers.
//
// Thoughts stand in tags: think, thinking, thought, reasoning, reflection or scratchpad, in any case, and nested. A tag that is
// not closed runs to the end of the text. A closing tag without an opening one ends thoughts that began with the text, as some
// servers drop the opening tag. Tags in code stay: in a fenced block, and in a span of backticks within a line.
package thoughts

import (
	"slices"
	"strings"
)

// names are the names of the tags.
var names = [...]string{"think", "thinking", "thought", "reasoning", "reflection", "scratchpad"}

const (
	longestTag  = 16   // bytes, as "</scratchpad  >"
	longestSpan = 1024 // bytes of a code span
)

// Split returns an answer without its thoughts, and the thoughts. An answer without thoughts stays as it is.
func Split(text string) (answer, thoughts string) {
	if !strings.Contains(text, "<") {
		return text, ""
	}
	var r Reader
	said, _ := r.Write(text)
	rest, restart := r.Close()
	if restart {
		said = ""
	}
	return said + rest, r.Thoughts()
}

// A Reader takes the thoughts out of an answer that comes in chunks. The chunks' boundaries do not matter. The zero value is
// ready. It must not be used concurrently.
type Reader struct {
	held     string // what is not decided yet
	said     strings.Builder
	thoughts strings.Builder
	open     []string // the names of the tags that are open, the outermost first

	fence  string // the characters that opened the code block, or ""
	inLine bool   // something but blanks stands before on the line
}

// Write takes a chunk and returns what is an answer's text for sure. It may hold some back. If restart is true, all that was
// returned by earlier calls was thought, and the text begins anew.
func (r *Reader) Write(chunk string) (text string, restart bool) {
	r.held += chunk
	return r.read(false)
}

// Close returns the rest of the text.
func (r *Reader) Close() (text string, restart bool) { return r.read(true) }

// Thoughts returns the thoughts so far, without blanks around them.
func (r *Reader) Thoughts() string { return strings.TrimSpace(r.thoughts.String()) }

// read reads what is held back, as far as it can be decided.
func (r *Reader) read(final bool) (text string, restart bool) {
	begin := r.said.Len()
	for r.held != "" {
		n, anew := r.step(final)
		if n == 0 {
			break
		}
		if anew {
			restart, begin = true, 0
		}
		r.held = r.held[n:]
	}
	return r.said.String()[begin:], restart
}

// step reads the next piece and returns its length, or 0 where more text is needed. It reports whether all before was thought.
func (r *Reader) step(final bool) (n int, anew bool) {
	switch c := r.held[0]; {
	case c == '\n':
		r.inLine = false
		return r.take(1), false
	case c == '<':
		return r.tag(final)
	case r.fence == "" && c == '`', !r.inLine && (c == '`' || c == '~'):
		return r.code(final), false
	case c == ' ' || c == '\t' || c == '>' && !r.inLine: // what may stand before a fence
		return r.take(1), false
	default:
		r.inLine = true
		if n = strings.IndexAny(r.held[1:], "\n<`") + 1; n == 0 {
			n = len(r.held)
		}
		return r.take(n), false
	}
}

// take moves n bytes to the text, or to the thoughts.
func (r *Reader) take(n int) int {
	if len(r.open) > 0 {
		r.thoughts.WriteString(r.held[:n])
	} else {
		r.said.WriteString(r.held[:n])
	}
	return n
}

// tag reads a tag of thoughts, or a "<". Code hides a tag from the answer, and an opening tag from the thoughts.
func (r *Reader) tag(final bool) (n int, anew bool) {
	window := r.held[:min(len(r.held), longestTag)]
	end := strings.IndexByte(window, '>')
	if end < 0 && !final && len(window) < longestTag && begins(window) {
		return 0, false
	}
	name, closes := "", false
	if end > 0 {
		name, closes = strings.CutPrefix(strings.ToLower(strings.TrimRight(window[1:end], " ")), "/")
	}
	thinking := len(r.open) > 0
	if !slices.Contains(names[:], name) || r.fence != "" && !(closes && thinking) {
		r.inLine = true
		return r.take(1), false
	}
	r.inLine = false
	switch {
	case !closes:
		if !thinking && r.thoughts.Len() > 0 {
			r.thoughts.WriteString("\n\n")
		}
		r.open = append(r.open, name)
	case thinking:
		last := len(r.open) - 1 // a tag of another name closes the innermost
		for i := last; i >= 0; i-- {
			if r.open[i] == name {
				last = i
				break
			}
		}
		if r.open = r.open[:last]; last == 0 {
			r.fence = ""
		}
	default:
		if r.thoughts.Len() > 0 {
			r.thoughts.WriteString("\n\n")
		}
		r.thoughts.WriteString(r.said.String())
		r.said.Reset()
		anew = true
	}
	return end + 1, anew
}

// begins reports whether a text may be the beginning of a tag.
func begins(text string) bool {
	name := strings.TrimPrefix(strings.ToLower(text[1:]), "/")
	whole := strings.TrimRight(name, " ")
	return slices.ContainsFunc(names[:], func(n string) bool { return n == whole || whole == name && strings.HasPrefix(n, name) })
}

// code reads the line of a fence, a code span, or backticks that are neither.
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
			if len(r.open) > 0 && strings.Contains(line[:at], "</") { // it may end the thoughts
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
