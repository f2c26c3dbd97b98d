package feedback

import (
	"slices"
	"strings"
	"unicode"
)

// Opposition names a way in which two texts may contradict each other.
type Opposition string

// The oppositions that [Oppose] knows.
const (
	OpposedPolarity Opposition = "polarity" // one denies what the other says
	OpposedNumbers  Opposition = "number"   // they name other numbers, or other units
	OpposedMeaning  Opposition = "antonym"  // one has a word, and the other its opposite
	OpposedOrder    Opposition = "order"    // they say the same of each other's things: "A before B", "B before A"
	OpposedNames    Opposition = "name"     // they name other things: "PostgreSQL", "MySQL"
	OpposedWords    Opposition = "word"     // they are one sentence with other words in some places: it may be anything
)

// Contradicts reports whether both can't hold at once. Other numbers, names and words make other statements, which may.
func (o Opposition) Contradicts() bool {
	return o == OpposedPolarity || o == OpposedMeaning || o == OpposedOrder
}

// Oppose says how two texts may contradict each other, and "" where nothing hints at it. It stands before everything that
// takes two texts for one, as texts that contradict each other are more alike, to every measure of similarity, than texts
// that say the same.
//
// It is a list of rules and words, and it is cautious: it sees contradictions where there are none, as between "do not log
// passwords" and "log everything but passwords", rather than miss one. It knows the negations of some twenty languages, and
// antonyms mainly of English; what contradicts in meaning alone it does not see. It is symmetric, and no text opposes
// itself.
func Oppose(a, b string) Opposition {
	x, y := read(a), read(b)
	switch {
	case !slices.Equal(x.numbers, y.numbers):
		return OpposedNumbers
	case x.deniesOf(y) || y.deniesOf(x) || x.negations != y.negations:
		return OpposedPolarity
	case antonymous(x, y) || antonymous(y, x):
		return OpposedMeaning
	case swapped(x, y):
		return OpposedOrder
	case otherNames(x.names, y.names):
		return OpposedNames
	case reworded(x, y):
		return OpposedWords
	}
	return ""
}

// reading is a text as Oppose sees it.
type reading struct {
	tokens    []token
	affirmed  map[string]bool // stems of words in clauses that are not negated
	denied    map[string]bool // those in clauses that are
	negations int
	numbers   []string // with their units, sorted
	names     []string // words that are written like names, sorted
	words     map[string]bool
	passive   bool
	modal     bool
	counting  bool // the last thing was a number
}

// A token is a word, a character of a script without blanks, or the end of a clause.
type token struct {
	word string // in lower case; "" ends a clause
	stem string // "" of words that say nothing by themselves
}

func read(text string) reading {
	r := reading{affirmed: map[string]bool{}, denied: map[string]bool{}, words: map[string]bool{}}
	r.tokenize(plainBounds.Replace(text))
	r.readClauses()
	slices.Sort(r.numbers)
	for i, name := range r.names {
		r.names[i] = stem(name)
	}
	r.names = distinct(r.names)
	return r
}

func (r *reading) tokenize(text string) {
	runes := []rune(text)
	for i := 0; i < len(runes); {
		switch c := runes[i]; {
		case dense(c):
			i += r.addDense(runes[i:])
		case unicode.Is(unicode.Nd, c):
			i += r.addNumber(runes[i:])
		case unicode.IsLetter(c):
			i += r.addWord(runes[i:])
		default:
			if unicode.IsPunct(c) && !strings.ContainsRune("'\"-_/`", c) || c == '\n' {
				r.tokens = append(r.tokens, token{})
			}
			i++
		}
	}
}

// addDense adds one character, or a negation of several.
func (r *reading) addDense(runes []rune) int {
	for _, negation := range denseNegations {
		if strings.HasPrefix(string(runes[:min(len(runes), 4)]), negation) {
			r.tokens = append(r.tokens, token{word: negation})
			return len([]rune(negation))
		}
	}
	if number, ok := denseNumbers[runes[0]]; ok {
		r.numbers = append(r.numbers, number)
	}
	char := string(runes[0])
	r.tokens = append(r.tokens, token{char, char})
	r.words[char] = true
	return 1
}

// addNumber adds a number as what it is worth, together with its unit where it has one.
func (r *reading) addNumber(runes []rune) int {
	var digits strings.Builder
	i := 0
	for ; i < len(runes); i++ {
		c := runes[i]
		inside := i+1 < len(runes) && unicode.Is(unicode.Nd, runes[i+1])
		switch {
		case unicode.Is(unicode.Nd, c):
			digits.WriteByte(byte('0' + digit(c)))
		case c == '.' && inside:
			digits.WriteByte('.')
		case (c == ',' || c == '_') && inside:
		default:
			goto done
		}
	}
done:
	r.counting = true
	r.numbers = append(r.numbers, strings.TrimLeft(digits.String(), "0")+unitOf(runes[i:]))
	return i
}

// unitOf returns the unit that a text begins with, in the one spelling in which it is compared.
func unitOf(runes []rune) string {
	text := strings.ToLower(strings.TrimLeft(string(runes[:min(len(runes), 20)]), " -"))
	if strings.HasPrefix(text, "%") {
		return units["%"]
	}
	return units[text[:len(text)-len(strings.TrimLeftFunc(text, unicode.IsLetter))]]
}

// digit is what a decimal digit of any script is worth: Unicode has them in tens, from nought on.
func digit(c rune) int {
	if c <= '9' {
		return int(c - '0')
	}
	n := 0
	for n < 9 && unicode.Is(unicode.Nd, c-rune(n)-1) {
		n++
	}
	return n
}

func (r *reading) addWord(runes []rune) int {
	n, capitals, other := 0, 0, false
	for n < len(runes) {
		c := runes[n]
		apostrophe := c == '\'' && n+1 < len(runes) && unicode.IsLetter(runes[n+1])
		if !apostrophe && (dense(c) || !unicode.In(c, unicode.L, unicode.M, unicode.Nd) && c != '_') {
			break
		}
		if n > 0 && unicode.IsUpper(c) {
			capitals++
		}
		other = other || c == '_' || unicode.Is(unicode.Nd, c)
		if unicode.Is(unicode.Nd, c) && !unicode.Is(unicode.Nd, runes[n-1]) {
			r.addNumber(runes[n:]) // of "v2"
		}
		n++
	}
	written := string(runes[:n])
	word := strings.ToLower(written)
	if capitals > 0 || other {
		r.names = append(r.names, word)
	}
	switch {
	case strings.HasSuffix(word, "n't"):
		r.tokens = append(r.tokens, token{word: "do"}, token{word: "not"})
		return n
	case word == "cannot":
		r.tokens = append(r.tokens, token{word: "can"}, token{word: "not"})
		return n
	}
	if elided, rest, ok := strings.Cut(word, "'"); ok && len(elided) <= 2 { // n'utilise, l'agent
		r.tokens = append(r.tokens, token{word: elided})
		word = rest
	}
	word, _, _ = strings.Cut(word, "'")
	if number, ok := numberWords[word]; ok {
		r.numbers = append(r.numbers, number+unitOf(runes[n:]))
	}
	r.words[word] = true
	r.passive = r.passive || copulas[word]
	r.modal = r.modal || modals[word]
	t := token{word: word}
	if unit := r.counting && units[word] != ""; !unit && !emptyWords[word] && !negations[word] {
		t.stem = stem(word)
	}
	_, r.counting = numberWords[word]
	r.tokens = append(r.tokens, t)
	return n
}

// readClauses finds out what is said and what is denied. A negation denies its clause: where it comes first, or behind an
// auxiliary verb ("must not"), all of it; elsewhere ("tabs, not spaces", "merge without review") what follows.
func (r *reading) readClauses() {
	var clause []string
	denied := false
	flush := func() {
		for _, stem := range clause {
			if denied {
				r.denied[stem] = true
			} else {
				r.affirmed[stem] = true
			}
		}
		clause, denied = nil, false
	}
	for i, t := range r.tokens {
		switch {
		case t.word == "":
			flush()
		case negations[t.word] || isDenseNegation(t.word):
			r.negations++
			if len(clause) > 0 && i > 0 && !auxiliaries[r.tokens[i-1].word] && !isDenseNegation(t.word) && !wholeClause[t.word] {
				flush()
			}
			denied = !denied
			if implied := deniedAllow[t.word]; implied {
				clause = append(clause, "allow")
			}
		case clauseStarts[t.word] || joins[t.word] && r.negatedSoon(i):
			flush()
		case t.stem != "":
			clause = append(clause, t.stem)
		}
	}
	flush()
}

// negatedSoon reports whether a negation follows within two words.
func (r *reading) negatedSoon(i int) bool {
	for _, t := range r.tokens[i+1 : min(i+3, len(r.tokens))] {
		if negations[t.word] {
			return true
		}
	}
	return false
}

// deniesOf reports whether r only denies something that o only affirms.
func (r *reading) deniesOf(o reading) bool {
	for stem := range r.denied {
		if !r.affirmed[stem] && o.affirmed[stem] && !o.denied[stem] {
			return true
		}
	}
	return false
}

// antonymous reports whether x has a word whose opposite y has, and neither has both; or whether, where both have both,
// they say them of other things.
func antonymous(x, y reading) bool {
	for word := range x.words {
		if y.words[word] {
			continue
		}
		for _, opposite := range antonyms[word] {
			if y.words[opposite] && !x.words[opposite] {
				return true
			}
		}
		for _, prefix := range negativePrefixes {
			if y.words[prefix+word] && !x.words[prefix+word] {
				return true
			}
		}
		if y.words[word+"less"] || y.words[strings.TrimSuffix(word, "ful")+"less"] {
			return true
		}
	}
	return bindsOther(x, y)
}

// bindsOther reports whether both have the same two opposites, and say them of other things.
func bindsOther(x, y reading) bool {
	for i, t := range x.tokens {
		if len(antonyms[t.word]) == 0 || !y.words[t.word] {
			continue
		}
		if !slices.ContainsFunc(antonyms[t.word], func(o string) bool { return x.words[o] && y.words[o] }) {
			continue
		}
		object := x.next(i)
		if object != "" && !slices.ContainsFunc(y.positions(t.word), func(j int) bool { return y.next(j) == object }) {
			return true
		}
	}
	return false
}

// next is the first word behind a place that says something.
func (r *reading) next(i int) string {
	for _, t := range r.tokens[i+1:] {
		if t.stem != "" {
			return t.stem
		}
	}
	return ""
}

func (r *reading) positions(word string) (all []int) {
	for i, t := range r.tokens {
		if t.word == word {
			all = append(all, i)
		}
	}
	return all
}

// swapped reports whether two texts say the same words, in another order that changes what they say.
func swapped(x, y reading) bool {
	a, b := x.stems(), y.stems()
	if slices.Equal(a, b) {
		return false
	}
	for i, t := range x.tokens {
		if !relations[t.word] {
			continue
		}
		left, right := x.around(i)
		for _, j := range y.positions(t.word) {
			otherLeft, otherRight := y.around(j)
			if crosses(left, otherRight, otherLeft, right) && crosses(right, otherLeft, otherRight, left) {
				return true
			}
		}
	}
	if x.passive || y.passive || x.modal != y.modal { // "X must name Y" is "name Y in X"
		return false
	}
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

// crosses reports whether some word is in both of the first, and in none of the others.
func crosses(in, and, not, nor []string) bool {
	return slices.ContainsFunc(in, func(s string) bool {
		return slices.Contains(and, s) && !slices.Contains(not, s) && !slices.Contains(nor, s)
	})
}

// around returns the words before and behind a place. Of "before A, B" A stands behind and B before.
func (r *reading) around(i int) (left, right []string) {
	for _, t := range r.tokens[:i] {
		if t.stem != "" {
			left = append(left, t.stem)
		}
	}
	for j, t := range r.tokens[i+1:] {
		if t.word == "" && len(left) == 0 {
			for _, t := range r.tokens[i+1+j:] {
				if t.stem != "" {
					left = append(left, t.stem)
				}
			}
			break
		}
		if t.stem != "" {
			right = append(right, t.stem)
		}
	}
	return left, right
}

func (r *reading) stems() (all []string) {
	for _, t := range r.tokens {
		if t.stem != "" {
			all = append(all, t.stem)
		}
	}
	return all
}

// reworded reports whether two texts are the same sentence, in which words of the one stand in the place of others that it
// has nowhere. No list says whether "prices are rounded up" and "down" are opposites.
func reworded(x, y reading) bool {
	a, b := x.stems(), y.stems()
	if len(a) != len(b) {
		return false
	}
	replaced := 0
	for i := range a {
		switch {
		case kin(a[i], b[i]):
		case slices.Contains(b, a[i]) || slices.Contains(a, b[i]):
			return false
		default:
			replaced++
		}
	}
	return replaced > 0 && replaced < len(a)
}

// kin reports whether two stems look like forms of one word.
func kin(a, b string) bool {
	x, y := []rune(a), []rune(b)
	common := 0
	for common < min(len(x), len(y)) && x[common] == y[common] {
		common++
	}
	return a == b || common >= 4 && max(len(x), len(y))-common <= 3
}

// otherNames reports whether both have names, and each one that the other has not.
func otherNames(a, b []string) bool {
	return lacks(a, b) && lacks(b, a)
}

func lacks(a, b []string) bool {
	return slices.ContainsFunc(a, func(name string) bool { return !slices.Contains(b, name) })
}

// stem cuts the endings of English words, so that "logs", "logged" and "logging" are one.
func stem(word string) string {
	if len(word) < 4 {
		return word
	}
	for _, ending := range [...]string{"ation", "ing", "ies", "ied", "ed", "es", "s", "ly"} {
		if root, ok := strings.CutSuffix(word, ending); ok && len(root) >= 3 && !strings.HasSuffix(word, "ss") {
			if strings.HasPrefix(ending, "ie") {
				root += "y"
			}
			word = root
			break
		}
	}
	if n := len(word); n > 3 && word[n-1] == word[n-2] {
		word = word[:n-1]
	}
	if root, ok := strings.CutSuffix(word, "e"); ok && len(root) >= 3 {
		return root
	}
	if root, ok := strings.CutSuffix(word, "y"); ok && len(root) >= 3 {
		return root + "i"
	}
	return word
}

// topic is what a text speaks of, without what it says of it: no negations, no words that have an opposite.
func topic(text string) string {
	r := read(text)
	var words []string
	for _, t := range r.tokens {
		if t.stem != "" && len(antonyms[t.word]) == 0 {
			words = append(words, t.stem)
		}
	}
	return strings.Join(words, " ")
}
