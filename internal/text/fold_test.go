package text

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

func TestFold(t *testing.T) {
	for text, want := range map[string]string{
		"Restart the disk": "restart the disk", "Ｒｅｓｔａｒｔ　ｔｈｅ　ｄｉｓｋ": "restart the disk",
		"Rеstаrt thе dіsk":             "restart the disk",
		"Re\u00adstart the\u200b disk": "restart the disk", "RESTART THE DISK": "restart the disk",
		"𝐑𝐞𝐬𝐭𝐚𝐫𝐭 𝘵𝘩𝘦 ⓓⓘⓢⓚ": "restart the disk", "Résta\u0301rt thé disk": "restart the disk",
		"СТОП": "ctoп", "стоп": "ctoп", "Straße 10": "strasse io", "STRASSE l0": "strasse io",
		"ΚΑΛΗ": "kaλη", "ｷｬﾝｾﾙ": "キャンセル", "ｶﾞ": "カ", "ガ": "カ",
		"Việt Nam": "viet nam", "Vie\u0323\u0302t Nam": "viet nam", "元に戻して。": "元に戻して。", "": "",
		"\u200b": "", "\xff": "\ufffd",
	} {
		assert.Equal(t, strings.ReplaceAll(want, "l", "i"), Fold(text), "%q", text)
	}
	for _, all := range []map[rune]rune{smallAlike, largeAlike} {
		for letter, latin := range all {
			assert.Greater(t, letter, rune(utf8.RuneSelf))
			assert.True(t, latin >= 'a' && latin <= 'z', "%c", letter)
		}
	}
}

func TestCompose(t *testing.T) {
	assert.Equal(t, "éa q\u0301", string(Compose([]rune("e\u0301a q\u0301"))))
}

// Folding is idempotent, does not tell capitals from small letters, and grows no text by more than
// its bytes.
func TestFoldOfEachCharacter(t *testing.T) {
	for r := range rune(0x20000) {
		if !utf8.ValidRune(r) || unicode.In(r, unicode.Han, unicode.Hangul, unicode.Co) ||
			!unicode.IsGraphic(r) && !unicode.Is(unicode.Cf, r) {
			continue
		}
		once := Fold(string(r))
		if again := Fold(once); again != once || len(once) > len(string(r))+1 {
			t.Errorf("%U: %q, %q", r, once, again)
		}
		if upper := unicode.ToUpper(r); unicode.ToLower(upper) == unicode.ToLower(r) &&
			Fold(string(upper)) != once {
			t.Errorf("%U: %q, in capitals %q", r, once, Fold(string(upper)))
		}
	}
}

// A text folds to what its parts fold to, so its cost grows with its length alone, and folding is
// idempotent.
func TestFoldOfParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.String().Draw(t, "a"), rapid.String().Draw(t, "b")
		both := Fold(a + b)
		if both != Fold(a)+Fold(b) || Fold(both) != both {
			t.Fatalf("%q", both)
		}
	})
}

// Letters and digits of other widths and styles are the plain ones, and their neighbours stay.
func TestWidthsAndStyles(t *testing.T) {
	for i := range rune('~' - ' ') {
		assert.Equal(t, '!'+i, Width('！'+i))
	}
	letters := "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	for i := range rune(13 * 52) {
		assert.Equal(t, rune(letters[i%52]), styled('𝐀'+i))
	}
	for i := range rune(50) {
		assert.Equal(t, rune("0123456789"[i%10]), styled('𝟎'+i))
	}
	for i := range rune(52) {
		assert.Equal(t, rune(letters[26+i%26]), styled('Ⓐ'+i))
	}
	for wide, usual := range map[rune]rune{'\u3000': ' ', '･': '・', 'ｱ': 'ア', 'ﾟ': '\u309a'} {
		assert.Equal(t, usual, Width(wide))
	}
	for _, r := range "\uff00｟､\uffa0\u2fff、\U0001d3ff\U0001d6a4\U0001d7cd\U0001d800⒵⓪a" {
		assert.Equal(t, r, styled(Width(r)), "%U", r)
	}
}
