package text

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A span is a range of characters of a script. The script's name is for people, in the error about
// a mixed word.
type span struct {
	script      string
	first, last rune
}

// scriptFile has the scripts in everyday use, and explains which characters they leave out.
//
//go:embed scripts.txt
var scriptFile string

// spans are the characters of scriptFile.
var spans = func() (all []span) {
	for line := range strings.Lines(scriptFile) {
		name, ranges, _ := strings.Cut(line, ": ")
		if line[0] == '#' {
			continue
		}
		for _, text := range strings.Fields(ranges) {
			s := span{script: name}
			_, _ = fmt.Sscanf(text, "%x-%x", &s.first, &s.last)
			all = append(all, s)
		}
	}
	return all
}()

// swappable are marks below or above the character before them, whose order has no meaning: the
// sign for no vowel, dots, tones and vowels.
var swappable = []rune{
	0x93c, 0x94d, 0x9bc, 0x9cd, 0xa3c, 0xa4d, 0xabc, 0xacd, 0xb3c, 0xb4d, 0xbcd, 0xc3c, 0xc4d, 0xc56,
	0xcbc, 0xccd, 0xd4d, 0xdca,
	0xe38, 0xe39, 0xe3a, 0xe48, 0xe49, 0xe4a, 0xe4b, 0xeb8, 0xeb9, 0xeba, 0xec8, 0xec9, 0xeca, 0xecb,
	0x1037, 0x1039, 0x103a, 0x17d2,
}

// CanonicalName returns the form of a name in which it is compared. It folds the case, and puts
// letters and their accents together. Names that Unicode takes for the same have one form, or some
// of their spellings are refused.
//
// A name has printable ASCII, and letters of the scripts in everyday use. A word has letters of one
// script, except for Chinese, Japanese and Korean. A name that could be taken for one in ASCII is
// refused. Look-alikes within a script are different names.
//
// The reason is safety: two people approve a rule only if their names are different ones, so a
// person must not have two spellings of one name, and no name may pass for another person's at a
// glance. The steps are in this order because each needs the one before: case, order of marks,
// whole letters, the last sigma.
func CanonicalName(name string) (string, error) {
	switch {
	case !utf8.ValidString(name):
		return "", errors.New("must be valid UTF-8")
	case strings.Join(strings.Fields(name), " ") != name: // a page shows two blanks as one
		return "", errors.New("must not begin or end with a blank, or have two in a row")
	}
	name, err := fold(name)
	if err != nil {
		return "", err
	}
	letters := Compose(ordered([]rune(name)))
	for i, r := range letters { // a sigma that ends a word has its own form
		if r == 'σ' && i > 0 && unicode.IsLetter(letters[i-1]) &&
			(i+1 == len(letters) || !unicode.IsLetter(letters[i+1])) {
			letters[i] = 'ς'
		}
	}
	if err := check(letters); err != nil {
		return "", err
	}
	return string(letters), nil
}

// fold folds the case. It goes through capitals first, because some small letters share a capital,
// for example ς and σ.
func fold(name string) (string, error) {
	letters := []rune(name)
	for i, r := range letters {
		if !unicode.IsLetter(r) {
			continue
		}
		letters[i] = unicode.ToLower(unicode.ToUpper(r))
		// signs such as the sign of Kelvin
		if r > '~' && letters[i] <= '~' && r != 'ſ' && r != 'ı' && r != 'İ' {
			return "", refused(r)
		}
	}
	return strings.ReplaceAll(string(letters), "ß", "ss"), nil
}

// ordered sorts marks whose order has no meaning. Unicode treats sequences that differ in this
// order as the same text.
func ordered(letters []rune) []rune {
	for i := 0; i < len(letters); {
		end := i
		for end < len(letters) && slices.Contains(swappable, letters[end]) {
			end++
		}
		slices.Sort(letters[i:end])
		i = end + 1
	}
	return letters
}

// check reports a name that may not be. Digits may be in any word. A mark must follow a letter,
// because by itself it would be drawn on whatever comes before it. A name whose letters all look
// like Latin ones, and are not, is refused as a whole. A word ends at any ASCII sign but a digit or
// a letter. Letters of several scripts in one name are allowed, for example "ana (アナ)".
func check(letters []rune) error {
	foreign, posing, now := false, true, ""
	for i, r := range letters {
		if r >= ' ' && r <= '~' && (r < 'a' || r > 'z') {
			if r < '0' || r > '9' {
				now = "" // a word ends
			}
			continue
		}
		name := scriptOf(r)
		switch {
		case name == "":
			return refused(r)
		case unicode.IsMark(r) && (i == 0 || !unicode.In(letters[i-1], unicode.L, unicode.M)):
			return fmt.Errorf("has the mark %U, which follows no letter", r)
		case slices.Contains(dots, r) && !unicode.IsLetter(letters[i-1]):
			return fmt.Errorf("has the mark %U, which belongs behind a letter", r)
		case now != "" && name != now:
			return fmt.Errorf("mixes %s and %s in a word", now, name)
		}
		now = name
		foreign, posing = foreign || r > '~', posing && (r <= '~' || Latin(r) != 0)
	}
	if foreign && posing {
		return errors.New("looks like a name in ASCII")
	}
	return nil
}

// dots are marks that change a consonant. They belong directly behind the consonant, so a sign
// between them would be another spelling of the same name.
var dots = []rune{0x93c, 0x9bc, 0xa3c, 0xabc, 0xb3c, 0xc3c, 0xcbc}

// scriptOf returns the script of a letter or mark, or "". Modifier letters are refused, except for
// a few that everyday words need, and so are invisible characters. A loop over all ranges is fast
// enough: names are short.
func scriptOf(r rune) string {
	letter := unicode.IsLetter(r) && (!unicode.Is(unicode.Lm, r) || r == 'ー' || r == '々' ||
		r == 'ๆ' || r == 'ໆ')
	if !letter && !unicode.IsMark(r) || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point,
		unicode.Deprecated) {
		return ""
	}
	for _, s := range spans {
		if r >= s.first && r <= s.last {
			return s.script
		}
	}
	return ""
}

// refused names the character twice, because some can't be seen.
func refused(r rune) error { return fmt.Errorf("must not have %q (%U)", r, r) }
