package oppose

import (
	"slices"
	"strings"
	"unicode"

	"github.com/heedhq/heed/internal/text"
)

// A Reading is a text as [Find] sees it. It is immutable.
//
// All that comparing needs more than once is worked out when the text is read, because a new text
// is compared with each of many rules.
type Reading struct {
	// tokens are the words in their order, with the ends of clauses.
	tokens   []token
	affirmed map[string]bool // stems of words in clauses without a negation
	denied   map[string]bool // stems of words in negated clauses
	// negations is how many negations the text has. Clauses with two negations affirm, and both count
	// here.
	negations int
	// numbers are in digits, without leading zeros and separators, sorted; a number in letters is
	// among them. names are words that are written like names, sorted.
	numbers []string
	names   []string
	// words are all words in lower case.
	words map[string]bool
	// roots are the stems of all words, also of words without a meaning of their own.
	roots map[string]bool
	// prefixed has the words with a negative prefix, by what is behind it: "unsafe" by "safe". less
	// has what is before "less": "care".
	prefixed map[string][]string
	less     map[string]bool
	// passive and modal report a form of "be" and a modal verb, which change the order of words.
	passive bool
	modal   bool
	// stems are the stems of words with a meaning, in the order of the text.
	stems []string
	// sorted are the stems in alphabetical order, for texts with the same words in another order.
	sorted []string
	// turning has the words that turn a statement round, and opposable the stems that have an
	// antonym, so that most pairs need no look at antonyms.
	turning   string
	opposable []string // the stems of words that have an antonym
	// related are the places of words like "before", whose sides may be exchanged: "a before b" is
	// not "b before a".
	related []int
}

// A token is a word, a character of a script without blanks, or the end of a clause.
type token struct {
	word string // in lower case; "" ends a clause
	stem string // "" of words without a meaning of their own
}

// Read reads a text. It does not fail: a text without words has an empty reading, which opposes no
// other.
func Read(written string) Reading {
	r := Reading{affirmed: map[string]bool{}, denied: map[string]bool{}, words: map[string]bool{},
		roots: map[string]bool{}, prefixed: map[string][]string{}, less: map[string]bool{}}
	// The order matters: clauses need tokens, and affixes need the words that tokens brought.
	r.tokenize(plainBounds.Replace(written))
	r.readClauses()
	r.readAffixes()
	slices.Sort(r.numbers)
	for i, name := range r.names {
		r.names[i] = stem(name)
	}
	r.names = text.Distinct(r.names)
	r.stems = stems(r.tokens)
	r.sorted = slices.Sorted(slices.Values(r.stems))
	r.turning = r.marks()
	for root := range r.roots {
		if len(antonyms[root]) > 0 {
			r.opposable = append(r.opposable, root)
		}
	}
	for i, t := range r.tokens {
		if relations.has(t.word) {
			r.related = append(r.related, i)
		}
	}
	return r
}

// readAffixes finds words with a negative prefix, for example "unsafe", and with "less", for
// example "careless", so that they can be compared with the words without it.
func (r *Reading) readAffixes() {
	for word := range r.words {
		for _, prefix := range negativePrefixes {
			if rest, ok := strings.CutPrefix(word, prefix); ok {
				r.prefixed[rest] = append(r.prefixed[rest], word)
			}
		}
		if root, ok := strings.CutSuffix(word, "less"); ok {
			r.less[root] = true
		}
	}
}

// tokenize divides a text into words, numbers, single characters of dense scripts and ends of
// clauses. Each step takes at least one character, so the time is linear in the text.
func (r *Reading) tokenize(written string) {
	runes := []rune(written)
	for i := 0; i < len(runes); {
		switch c := runes[i]; {
		case text.Dense(c):
			// Dense scripts have no blanks, so each character is a word. They are asked for first,
			// because they are letters as well.
			i += r.addDense(runes[i:])
		case unicode.Is(unicode.Nd, c):
			i += r.addNumber(runes[i:])
		case unicode.IsLetter(c):
			i += r.addWord(runes[i:])
		default:
			// Marks that stand inside words or names do not end a clause: "user-id", "a/b".
			if unicode.IsPunct(c) && !strings.ContainsRune("'\"-_/`", c) || c == '\n' {
				r.tokens = append(r.tokens, token{})
			}
			i++
		}
	}
}

// addDense adds one character, or a negation of several.
func (r *Reading) addDense(runes []rune) int {
	for _, negation := range denseNegations {
		// The list has the longest first, and none is longer than four characters.
		if strings.HasPrefix(string(runes[:min(len(runes), 4)]), negation) {
			r.tokens = append(r.tokens, token{word: negation})
			return len([]rune(negation))
		}
	}
	char := string(runes[0])
	r.tokens = append(r.tokens, token{char, char})
	r.words[char], r.roots[char] = true, true
	return 1
}

// addNumber adds the value of a number. Leading zeros and separators are dropped, so that "1,000",
// "1000" and "01000" are the same number. It returns how many characters the number has.
func (r *Reading) addNumber(runes []rune) int {
	var digits strings.Builder
	i := 0
	for ; i < len(runes); i++ {
		c := runes[i]
		inside := i+1 < len(runes) && unicode.Is(unicode.Nd, runes[i+1])
		if unicode.Is(unicode.Nd, c) {
			digits.WriteByte(byte('0' + digit(c)))
			continue
		}
		// "1,000" and "1_000" are 1000. A comma at the end of a number is punctuation.
		if !inside || !strings.ContainsRune(".,_", c) {
			break
		}
		if c == '.' {
			digits.WriteByte('.')
		}
	}
	r.numbers = append(r.numbers, strings.TrimLeft(digits.String(), "0"))
	return i
}

// digit returns the value of a decimal digit of any script. Unicode has them in tens, from zero on.
func digit(c rune) int {
	n := 0
	for n < 9 && unicode.Is(unicode.Nd, c-rune(n)-1) {
		n++
	}
	return n
}

// addWord adds a word, and returns how many characters it has. "don't" becomes "do not". Capitals
// inside a word, digits and underscores show a name, for example "PostgreSQL" or "user_id". A word
// in two parts by an apostrophe, as in French, is two words.
func (r *Reading) addWord(runes []rune) int {
	n, capitals, other := 0, 0, false
	for n < len(runes) {
		c := runes[n]
		apostrophe := c == '\'' && n+1 < len(runes) && unicode.IsLetter(runes[n+1])
		if !apostrophe && (text.Dense(c) || !unicode.In(c, unicode.L, unicode.M, unicode.Nd) &&
			c != '_') {
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
	// The elided part stays a word, because "n'" is a negation.
	if elided, rest, ok := strings.Cut(word, "'"); ok && len(elided) <= 2 { // n'utilise, l'agent
		r.tokens = append(r.tokens, token{word: elided})
		word = rest
	}
	word, _, _ = strings.Cut(word, "'")
	if number, ok := numberWords[word]; ok {
		r.numbers = append(r.numbers, number)
	}
	root := stem(word)
	r.words[word], r.roots[root] = true, true
	r.passive = r.passive || be.has(word)
	r.modal = r.modal || modals.has(word)
	t := token{word: word}
	// A negation has no stem. It changes what is said about other words, and must not count as one
	// of them when texts are compared.
	if !emptyWords.has(word) && !negations.has(word) {
		t.stem = root
	}
	r.tokens = append(r.tokens, t)
	return n
}

// readClauses finds the affirmed and the denied words. A negation that comes first, or behind an
// auxiliary verb ("must not") or at the end, denies its whole clause. Elsewhere ("tabs, not
// spaces", "merge without review") it denies the words that follow. A condition without a negation
// ("if it was deployed") neither affirms nor denies its words.
//
// A clause ends at punctuation, at a word that begins another one, such as "but", and at "and" if a
// negation follows at once: "use tabs and never spaces" has two clauses.
func (r *Reading) readClauses() {
	var clause []string
	denied, condition := false, false
	flush := func() {
		for _, stem := range clause {
			switch {
			case denied:
				r.denied[stem] = true
			case !condition:
				r.affirmed[stem] = true
			}
		}
		clause, denied, condition = nil, false, false
	}
	for i, t := range r.tokens {
		switch {
		case t.word == "":
			flush()
		case negations.has(t.word) || denseNegation.has(t.word):
			r.negations++
			// What came before the negation in this clause is not denied, so it is settled first.
			if len(clause) > 0 && !auxiliaries.has(r.tokens[i-1].word) &&
				!denseNegation.has(t.word) && !r.ends(i) {
				flush()
			}
			// Two negations in one clause affirm: "not without review".
			denied = !denied
			// "Forbid X" is "do not allow X", so it meets a text that allows X.
			if forbidding.has(t.word) {
				clause = append(clause, "allow")
			}
		case clauseStarts.has(t.word) || joins.has(t.word) && r.negatedSoon(i):
			flush()
			condition = conditions.has(t.word)
		case t.stem != "":
			clause = append(clause, t.stem)
		}
	}
	flush()
}

// ends reports whether a clause ends with the word at a place, or forbids with it.
func (r *Reading) ends(i int) bool {
	return i+1 == len(r.tokens) || r.tokens[i+1].word == "" || forbidding.has(r.tokens[i].word)
}

// negatedSoon reports whether a negation follows within two words. Two words leave room for a verb:
// "and do not".
func (r *Reading) negatedSoon(i int) bool {
	return slices.ContainsFunc(r.tokens[i+1:min(i+3, len(r.tokens))],
		func(t token) bool { return negations.has(t.word) })
}

// deniesOf reports whether r only denies something that o only affirms. A word that a text both
// affirms and denies shows no side.
func (r *Reading) deniesOf(o Reading) bool {
	for stem := range r.denied {
		if !r.affirmed[stem] && o.affirmed[stem] && !o.denied[stem] {
			return true
		}
	}
	return false
}

// stem cuts the endings of English words, so that "logs", "logged" and "logging" are one. It is
// rougher than Porter's algorithm (1980), and needs no table: a stem is only compared with stems.
// Doubled letters are made single, and a final e is cut, so that "stopped" and "stop" agree.
func stem(word string) string {
	word = cut(word, "ies", "es", "s")
	word = cut(word, "ation", "ing", "ied", "ed")
	word = cut(word, "ly") // after the others, so that "apply" and "applied" agree
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

// cut returns a word without the first of these endings that it has. What is left has three letters
// or more, or two and a "y": "tried", "try".
func cut(word string, endings ...string) string {
	for _, ending := range endings {
		root, ok := strings.CutSuffix(word, ending)
		if strings.HasPrefix(ending, "ie") && len(root) >= 2 {
			root += "y"
		}
		if ok && len(root) >= 3 && !strings.HasSuffix(word, "ss") {
			return root
		}
	}
	return word
}

// Topic returns the words that show what a text is about. It leaves out negations and words that
// have an opposite. Texts on the same topic can be found by it even if they demand opposite things.
func (r *Reading) Topic() string {
	var words []string
	for _, t := range r.tokens {
		if t.stem != "" && len(antonyms[t.stem]) == 0 {
			words = append(words, t.stem)
		}
	}
	return strings.Join(words, " ")
}
