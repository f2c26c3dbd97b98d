package text

import (
	"cmp"
	_ "embed"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Fold returns a text as it looks and not as it is spelled: in small letters without accents, of
// one width, without invisible characters, and with one letter for those that look alike, such as a
// Cyrillic and a Latin one. Folding it again has no effect. The result is for comparisons only, and
// is found in time linear in the text.
//
// It keeps people from passing a forbidden word or another one's name by spelling it in another
// way. It also folds texts that differ in meaning, for example "l" and "1", so it must not be
// shown.
func Fold(written string) string {
	var b strings.Builder
	b.Grow(len(written))
	for _, r := range written {
		switch r = folded(r); {
		case r == 'ß':
			b.WriteString("ss")
		case r != 0:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// folded returns what a character is folded to: 0 to drop it. The order is: width and style first,
// then case, then marks, then look-alikes. Each step may make a character that the next one knows.
// Small letters are made by way of capitals, because some letters have one capital and two small
// forms, for example σ and ς.
func folded(r rune) rune {
	if r < utf8.RuneSelf {
		return alike(unicode.ToLower(r))
	}
	if unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) {
		return 0
	}
	r = unicode.ToLower(unicode.ToUpper(styled(Width(r))))
	for base := bases[r]; base != 0; base = bases[r] {
		r = base
	}
	if unicode.Is(unicode.M, r) {
		return 0
	}
	return alike(r)
}

// alike returns one letter for those that look alike. It is called again with what it found,
// because that letter may itself have look-alikes. "l", "1" and "|" are alike to "i", because a
// capital I looks like all of them.
func alike(r rune) rune {
	switch r {
	case 'l', '1', '|':
		return 'i'
	case '0':
		return 'o'
	}
	if r < utf8.RuneSelf {
		return r
	}
	if latin := cmp.Or(Latin(r), largeAlike[r]); latin != 0 {
		return alike(latin)
	}
	return r
}

// Latin returns the small Latin letter that a small letter of another script looks like, or 0.
func Latin(r rune) rune { return smallAlike[r] }

// smallAlike has the letters that look like small Latin ones: Cyrillic, Greek, Armenian and others,
// each followed by the Latin letter. largeAlike has those whose capitals look alike.
var (
	smallAlike = pairs("аaеeоoрpсcуyхxіiјjѕsһhԁdԛqԝwӏl" + "οoνvρpιiυuαaγyχxκk" + "օoսuհhցgզqյjոn" +
		"ɑaɡgϲcⅰiⅴvⅹxⅼlⅽcⅾdⅿm")
	largeAlike = pairs("вbкkмmнhтt" + "βbεeζzμmτt")
)

// pairs reads letters, each with what it looks like.
func pairs(written string) map[rune]rune {
	letters, all := []rune(written), make(map[rune]rune)
	for i := 0; i+1 < len(letters); i += 2 {
		all[letters[i]] = letters[i+1]
	}
	return all
}

// Width returns a character of full or half width as one of the usual width.
func Width(r rune) rune {
	switch {
	case r >= '！' && r <= '～':
		return r - '！' + '!'
	case r == '\u3000':
		return ' '
	case r >= '･' && r <= 'ﾟ':
		return halfWidth[r-'･']
	}
	return r
}

// halfWidth contains the letters that correspond to the half-width ones, from U+FF65 on.
var halfWidth = []rune("・ヲァィゥェォャュョッーアイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワン\u3099\u309A")

// styled returns the plain letter or digit of one in a circle, or of one in bold, italics, script
// and the like. Mathematical alphabets are in blocks of 52 letters, capitals first. Letters in a
// circle count from A to Z twice: capitals, then small ones.
func styled(r rune) rune {
	switch {
	case r >= 0x1d400 && r <= 0x1d6a3:
		n := (r - 0x1d400) % 52
		if n < 26 {
			return 'A' + n
		}
		return 'a' + n - 26
	case r >= 0x1d7ce && r <= 0x1d7ff:
		return '0' + (r-0x1d7ce)%10
	case r >= 'Ⓐ' && r <= 'ⓩ':
		return 'a' + (r-'Ⓐ')%26
	}
	return r
}

// composedFile has the letters with marks, and explains its lines.
//
//go:embed composed.txt
var composedFile string

// composed has for a letter and a mark the letter with the mark. bases has for each letter with a
// mark one with a mark less. A letter with two marks loses one with each look-up.
var composed, bases = func() (map[[2]rune]rune, map[rune]rune) {
	whole, less := make(map[[2]rune]rune), make(map[rune]rune)
	for line := range strings.Lines(composedFile) {
		text, _ := strconv.Unquote(`"` + strings.TrimSpace(line) + `"`)
		letters := []rune(text) // the mark, a blank, and pairs of letters
		for i := 2; line[0] != '#' && i+1 < len(letters); i += 2 {
			whole[[2]rune{letters[i], letters[0]}] = letters[i+1]
			less[letters[i+1]] = letters[i]
		}
	}
	return whole, less
}()

// Base returns a letter with a mark less, or the letter itself.
func Base(r rune) rune { return cmp.Or(bases[r], r) }

// Compose puts letters and marks together where there is a letter for both. A letter may take
// several marks, one after the other. A mark without a letter for it stays. It is not the Unicode
// form NFC, whose order of marks it does not need: a letter with two marks has an entry for each
// order.
func Compose(letters []rune) []rune {
	var whole []rune
	for _, r := range letters {
		if last := len(whole) - 1; last >= 0 {
			if one := composed[[2]rune{whole[last], r}]; one != 0 {
				whole[last] = one
				continue
			}
		}
		whole = append(whole, r)
	}
	return whole
}
