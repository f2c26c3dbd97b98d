package partition

import (
	"context"
	"math"
	"strings"
	"unicode"
)

// The places of a vector that Form makes.
const (
	lengths = 6   // of the text
	lines   = 3   // few or many
	shares  = 2   // a little or much, of each sort of character
	sorts   = 6   // of characters
	scripts = 5   // of letters
	traits  = 4   // that a text has or not
	grams   = 256 // hashed
	formed  = lengths + lines + shares*sorts + scripts + traits
	// maxRunes bounds the work for a long text: its kind shows at its beginning.
	maxRunes = 8192
)

// gramsWeight is what the n-grams weigh next to the form, whose weight is 1. With more, texts of
// one topic would make cells, whatever their form; docs/choosing.md has figures.
const gramsWeight = 0.25

// Form is an embedder without a model. A vector has the form of the text, which is its length, its
// lines, its scripts, and how much of it is digits, capitals, code and the like; and the text's
// n-grams of three to five characters within words, hashed (Weinberger and others 2009). It
// distinguishes kinds of texts by their words and their form, and not by their meaning. It takes
// the first 8,192 characters, and returns no error but the context's. Each vector has 286 numbers.
// The same text has the same vector in every process and version of this layout.
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

// A reading counts what Form looks at. It goes through a text once, rune by rune, and keeps only
// the word that it is in.
type reading struct {
	// The first six are counts of the whole text. sorts are by the sort of character: digits,
	// capitals, signs of code, signs of formulas, punctuation, others. scripts are the letters by
	// script.
	runes, lines, questions, lists, links, negations int

	sorts   [sorts]int
	scripts [scripts]int
	// grams has the hashed n-grams, with their signs.
	grams [grams]float32

	word   [maxWord]rune // in lower case
	length int           // of the word
}

// maxWord is how many characters of a word are looked at. The rest of a longer word, such as a
// link, is counted but has no n-grams.
const maxWord = 24

// form returns the vector of one text. Links are counted by searching, because a rune shows too
// little.
func form(text string) []float32 {
	var r reading
	r.lines = 1
	// start reports that the line has had only blanks until here, so a dash or a star begins an item
	// of a list.
	start := true
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

// take counts a rune, and adds it to the word or ends the word. The most frequent runes come first.
// A capital counts as a letter and as a capital. The word keeps it in lower case, so that "Error"
// and "error" have the same n-grams.
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

// mark counts an ASCII character that is in no word. Signs of no sort, such as blanks, only count
// towards the length.
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

// script returns the group of scripts of a letter, by rough ranges of Unicode. The last is Hangul.
func script(c rune) int {
	switch {
	case c < 0x0250:
		return 0 // Latin
	case c < 0x0530:
		return 1 // Greek and Cyrillic
	case c < 0x0E00:
		return 2 // of the Near East and India
	case !unicode.Is(unicode.Hangul, c):
		return 3 // of East Asia
	default:
		return 4
	}
}

// negations are English words that turn a meaning. "t" is what "don't" ends with, because an
// apostrophe ends a word.
var negations = map[string]bool{"no": true, "not": true, "never": true, "except": true,
	"without": true, "cannot": true, "t": true}

// endWord counts the n-grams of the word. An n-gram is hashed to one of the places, and the same
// hash decides its sign, so that collisions cancel out on average. The hash goes on from n
// characters to n+1, which is why lengths are in the inner loop.
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
// times their weight. Lengths and lines are on a logarithmic scale. A share of a sort is full at 2
// % and, in its second place, at 20 %, so that a little code differs from a text that is code.
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

// between appends n places. The two next to the position share it. So lengths that are near have
// vectors that are near, which a single place for each range would not give.
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
