package partition

import (
	"context"
	"math"
	"strings"
	"unicode"
)

// The places of a vector that Form makes.
const (
	lengths  = 6   // of the text
	lines    = 3   // few or many
	shares   = 2   // a little or much, of each sort of character
	sorts    = 6   // of characters
	scripts  = 5   // of letters
	traits   = 4   // that a text has or not
	grams    = 256 // hashed
	formed   = lengths + lines + shares*sorts + scripts + traits
	maxRunes = 8192
)

// gramsWeight is what the characters weigh next to the form, whose weight is 1.
const gramsWeight = 0.25

// Form is an embedder without a model. A vector has the form of the text, which is its length, its
// lines, its scripts, and how much of it is digits, capitals, code and the like; and the text's
// n-grams of three to five characters within words, hashed (Weinberger and others 2009). It
// distinguishes kinds of texts by their words and their form, and not by their meaning. It takes
// the first 8,192 characters, and returns no error but the context's.
func Form(ctx context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		vectors[i] = form(text)
	}
	return vectors, nil
}

// A reading counts what Form looks at.
type reading struct {
	runes, lines, questions, lists, links, negations int

	sorts   [sorts]int
	scripts [scripts]int
	grams   [grams]float32

	word   [maxWord]rune // in lower case
	length int           // of the word
}

const maxWord = 24 // characters of a word that are looked at

func form(text string) []float32 {
	var r reading
	r.lines = 1
	start := true // of a line
	for _, c := range text {
		if r.runes++; r.runes > maxRunes {
			break
		}
		if c == '\n' {
			r.lines++
		}
		if start && (c == '-' || c == '*' || c == '#' || c == '>') {
			r.lists++
		}
		start = c == '\n' || start && c == ' '
		r.take(c)
	}
	r.endWord()
	r.links = strings.Count(text[:min(len(text), maxRunes)], "://")
	return r.vector()
}

func (r *reading) take(c rune) {
	switch {
	case c >= 'a' && c <= 'z':
		r.scripts[0]++
	case c >= 'A' && c <= 'Z':
		r.scripts[0]++
		r.sorts[1]++
		c += 'a' - 'A'
	case c >= '0' && c <= '9':
		r.sorts[0]++
	case c < unicode.MaxASCII:
		r.mark(c)
		r.endWord()
		return
	case unicode.IsLetter(c) || unicode.IsMark(c):
		if unicode.IsUpper(c) {
			r.sorts[1]++
		}
		r.scripts[script(c)]++
		c = unicode.ToLower(c)
	case unicode.IsDigit(c):
		r.sorts[0]++
	default:
		r.sorts[5]++
		r.endWord()
		return
	}
	if r.length < maxWord {
		r.word[r.length] = c
		r.length++
	}
}

// mark counts an ASCII character that is in no word.
func (r *reading) mark(c rune) {
	switch c {
	case '?':
		r.questions++
	case '{', '}', '(', ')', '[', ']', ';', '_', '`', '<', '>', '\\', '|', '$', '&', '@':
		r.sorts[2]++ // code
	case '=', '+', '*', '/', '^', '%':
		r.sorts[3]++ // formulas
	case '.', ',', ':', '!', '-', '"', '\'':
		r.sorts[4]++
	}
}

func script(c rune) int {
	switch {
	case c < 0x0250:
		return 0 // Latin
	case c < 0x0530:
		return 1 // Greek and Cyrillic
	case c < 0x0E00:
		return 2 // of the Near East and India
	default:
		return 3 + btoi(unicode.Is(unicode.Hangul, c))
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

var negations = map[string]bool{"no": true, "not": true, "never": true, "except": true,
	"without": true, "cannot": true, "t": true}

// endWord counts the n-grams of the word.
func (r *reading) endWord() {
	n := r.length
	if r.length = 0; n == 0 {
		return
	}
	if n <= 7 && negations[string(r.word[:n])] {
		r.negations++
	}
	if n <= 3 && r.word[0] < 0x0250 { // short words show the least of what a text is about
		return
	}
	const from, to = 3, 5
	for i := -1; i+from <= n+1; i++ { // the word has a blank on both sides
		hash := uint64(14695981039346656037) // FNV-1a
		for j := i; j < min(i+to, n+1); j++ {
			c := ' '
			if j >= 0 && j < n {
				c = r.word[j]
			}
			if hash = (hash ^ uint64(c)) * 1099511628211; j-i+1 >= from { //nolint:gosec // a character is not negative
				h := hash ^ hash>>29
				r.grams[h%grams] += 1 - 2*float32(h>>40&1)
			}
		}
	}
	if unicode.In(r.word[0], unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai) {
		for i := range n { // a script without blanks between words
			h := uint64(r.word[i]) * 0x9E3779B97F4A7C15 //nolint:gosec // the same
			h ^= h >> 29
			r.grams[h%grams] += 1 - 2*float32(h>>40&1)
		}
	}
}

// vector returns the counts as a vector. The form has the length 1 about, and so have the n-grams
// times their weight.
func (r *reading) vector() []float32 {
	v := make([]float32, 0, formed+grams)
	v = between(v, lengths, math.Log2(1+float64(r.runes))/2-1.5) // 8 characters, 32, 128, ...
	v = between(v, lines, math.Log2(float64(r.lines))/2)
	for _, n := range r.sorts {
		share := float64(n) / float64(max(r.runes, 1))
		v = append(v, float32(min(share/0.02, 1))/2, float32(min(share/0.2, 1))/2)
	}
	for _, n := range r.scripts {
		v = append(v, float32(n)/float32(max(r.runes, 1)))
	}
	for _, n := range [...]int{r.questions, r.lists, r.links, r.negations} {
		v = append(v, float32(min(n, 2))/4)
	}
	scale(v, 1)
	v = append(v, r.grams[:]...)
	for i, x := range v[formed:] { // frequent n-grams count little more than rare ones
		v[formed+i] = float32(math.Copysign(math.Sqrt(math.Abs(float64(x))), float64(x)))
	}
	scale(v[formed:], gramsWeight)
	return v
}

// between appends n places. The two next to the position share it.
func between(v []float32, n int, position float64) []float32 {
	position = min(max(position, 0), float64(n-1))
	for i := range n {
		v = append(v, float32(max(1-math.Abs(position-float64(i)), 0)))
	}
	return v
}

// scale gives a vector a length, if it is not zero.
func scale(v []float32, length float64) {
	var squares float64
	for _, x := range v {
		squares += float64(x) * float64(x)
	}
	if squares == 0 {
		return
	}
	times := float32(length / math.Sqrt(squares))
	for i := range v {
		v[i] *= times
	}
}
