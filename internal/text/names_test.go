package text_test

import (
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/heedhq/heed/internal/text"
)

// Each row has spellings of one name, the first as it is compared.
func TestSpellings(t *testing.T) {
	for _, spellings := range [][]string{
		{"ann", "Ann", "ANN"},
		{"ann.o'neil+1@example.org", "Ann.O'Neil+1@Example.org"},
		{"josé", "JOSÉ", "jose\u0301", "JOSE\u0301"},
		{"nguyễn thị lệ", "NGUYỄN THỊ LỆ", "nguye\u0302\u0303n thi\u0323 le\u0323\u0302",
			"nguye\u0302\u0303n thi\u0323 le\u0302\u0323"},
		{"strauss", "strauß", "STRAUSS", "STRAUẞ"},
		{"isik", "Isik", "ISIK", "\u0131sik"},
		{"γιώργος", "ΓΙΏΡΓΟΣ", "γιω\u0301ργοσ"},
		{"ας α", "ΑΣ Α", "ασ α"}, {"ασα", "ΑΣΑ", "αςα"}, {"α σ", "Α Σ", "α ς"}, {"ας1", "ΑΣ1"},
		{"иван@example.org", "Иван@example.org"},
		{"а. петров", "А. Петров"},
		{"сергей", "сергеи\u0306"},
		{"դավիթ", "ԴԱՎԻԹ"},
		{"דוד"}, {"أحمد", "ا\u0654حمد"}, {"გიორგი"}, {"ሰላም"}, {"김민수"}, {"王小明"},
		{"佐々木ゆうか"}, {"エリカ"}, {"ガク", "カ\u3099ク"},
		{"सिंह"}, {"\u0915\u093f\u0958", "\u0915\u093f\u0915\u093c"},
		{"\u0958\u094d", "\u0915\u094d\u093c", "\u0915\u093c\u094d"},
		{"র\u09cb", "র\u09c7\u09be"}, {"தமிழ்"}, {"สมชาย"}, {"ส\u0e38\u0e48", "ส\u0e48\u0e38"},
		{"ក\u17d2ក"}, {"ह\u093c"}, {"1.2-3"}, {"ann (ана)"}, {"б7", "Б7"},
	} {
		for _, spelling := range spellings {
			got, err := text.CanonicalName(spelling)
			require.NoError(t, err, "%q", spelling)
			assert.Equal(t, spellings[0], got, "%+q", spelling)
		}
	}
}

func TestWhatIsNoName(t *testing.T) {
	for why, name := range map[string]string{
		"control": "a\nb", "NUL": "a\x00", "not UTF-8": "\xff", "a blank of another kind": "a\u00a0b",
		"a blank in front": " ann", "a blank behind": "ann ", "two blanks": "ann  lee",
		"zero width": "a\u200bnn",
		"a joiner":   "क\u200dक", "right to left": "ann\u202e", "a tag": "ann\U000e0041",
		"a variation": "ann\ufe00", "a filler": "ann\u3164",
		"a soft hyphen": "a\u00adnn", "full width": "ａｎｎ", "a ligature": "o\ufb03ce",
		"a letterlike sign": "\u212aann", "mathematical": "𝐚𝐧𝐧",
		"phonetic": "ɑnn", "a small capital": "ᴀnn", "a click": "ann\u01c3", "a superscript": "annª",
		"an emoji":              "ann🙂",
		"two scripts in a word": "аnn", "Greek and Latin": "αnn", "all of it looks Latin": "сосо",
		"a word looks Latin":        "аnn@example.org",
		"Cyrillic that looks Latin": "сара@example.org", "a mark alone": "\u0301a",
		"a mark that fits nothing": "q\u0301", "three marks": "e\u0301\u0301",
		"a mark on another script": "a\u093c", "Cherokee": "ᎪᎡ", "a digit of another script": "ann٤",
		"a part of a syllable":    "\u1112\u1161\u11ab",
		"a digit between scripts": "ann0б", "the last letter": "zб",
		"a mark behind a digit": "क1\u093f", "a mark behind a blank": "क \u093f",
		"a digit in the range of a script": "क१", "a letter above the line": "annʰ",
		"a twin among ideographs": "\uf900", "a dot behind a vowel": "\u0930\u093f\u093c",
	} {
		got, err := text.CanonicalName(name)
		assert.Error(t, err, "%s: %+q became %+q", why, name, got)
	}
}

// Each character of a name is a letter of its script, if it is not ASCII.
func TestCharactersOfNames(t *testing.T) {
	for r := rune(0x7f); r < 0x33000; r++ {
		_, err := text.CanonicalName(string(r))
		letter := unicode.IsLetter(r) && (!unicode.Is(unicode.Lm, r) || strings.ContainsRune("ー々ๆໆ", r))
		if err == nil && (!letter || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point)) {
			t.Errorf("%U", r)
		}
	}
}

// Letters that everyday words need are in a name, though they modify others.
func TestModifierLettersOfNames(t *testing.T) {
	for _, name := range []string{"เด็กๆ", "ເດັກໆ", "コーヒー", "佐々木"} {
		_, err := text.CanonicalName(name)
		assert.NoError(t, err, name)
	}
}

// The form of a form is itself, and it has nothing that can't be seen.
func TestAFormIsItsOwn(t *testing.T) {
	letter := rapid.RuneFrom(nil, unicode.Latin, unicode.Greek, unicode.Cyrillic, unicode.Devanagari,
		unicode.Thai, unicode.Han, unicode.Mn)
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringOfN(letter, 1, 4, -1).Draw(t, "name")
		once, err := text.CanonicalName(name)
		if err != nil {
			return
		}
		again, err := text.CanonicalName(once)
		require.NoError(t, err)
		require.Equal(t, once, again)
		for _, r := range once {
			require.False(t, unicode.In(r, unicode.C, unicode.Z) && r != ' ')
		}
	})
}
