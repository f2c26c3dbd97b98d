package undo

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// everyLanguage is how a text is read without the filter.
var everyLanguage = []int{0, 1, 2, 3, 4, 5, 6, 7}

// texts returns those of all corpora.
func texts(t testing.TB) (all []string) {
	files, err := filepath.Glob("testdata/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		written, err := os.ReadFile(file)
		require.NoError(t, err)
		var examples []struct{ Text string }
		require.NoError(t, json.Unmarshal(written, &examples))
		for _, e := range examples {
			all = append(all, e.Text)
		}
	}
	return all
}

// TestFilterOfCorpora reads each twentieth text with and without the filter, and all with
// HEED_LONG.
func TestFilterOfCorpora(t *testing.T) {
	_, fast := tables()
	for i, text := range texts(t) {
		if i%20 != 0 && os.Getenv("HEED_LONG") == "" {
			continue
		}
		normal := normalise(text)
		assert.Equal(t, command(normal, everyLanguage), command(normal, fast.languages(normal)), "%q",
			text)
	}
}

// write draws a clause that follows a rule.
func write(t *rapid.T, g *grammar, number, depth int) string {
	switch number {
	case anything, oneWord:
		return rapid.SampledFrom([]string{"blue", "a", "das", "\u9ad8"}).Draw(t, "any")
	}
	var words []string
	for _, it := range rapid.SampledFrom(g.rules[number].phrases).Draw(t, g.name) {
		if it.optional && (depth > 12 || rapid.Bool().Draw(t, "leave out")) {
			continue
		}
		if it.words == nil {
			words = append(words, write(t, g, it.rule, depth+1))
			continue
		}
		for _, w := range rapid.SampledFrom(it.words).Draw(t, "words") {
			words = append(words, rapid.SampledFrom([]string{w.exact, w.plain}).Draw(t, "spelling"))
		}
	}
	return strings.Join(words, " ")
}

// rootsOf returns the numbers of the roots that a language has.
func rootsOf(g *grammar) (all []int) {
	for _, name := range roots {
		if number := g.names[name]; number != 0 {
			all = append(all, number)
		}
	}
	return all
}

// The filter lets each text with a root pass, and the text is read the same with and without the
// filter.
func TestFilterOfClauses(t *testing.T) {
	languages, fast := tables()
	others := rapid.SampledFrom(texts(t))
	between := rapid.SampledFrom([]string{" ", ", ", ". ", "\n", " \"", "! ", "? ", " - ", "'",
		"\u3002", "(", " \u00ab", ":"})
	rapid.Check(t, func(t *rapid.T) {
		i := rapid.IntRange(0, len(languages)-1).Draw(t, "language")
		g := languages[i]
		clause := write(t, g, rapid.SampledFrom(rootsOf(g)).Draw(t, "root"), 0)
		if normal := normalise(clause); len(clause) <= longest {
			assert.Contains(t, fast.languages(normal), i, "%q", clause)
		}
		text := clause
		for range rapid.IntRange(0, 2).Draw(t, "others") {
			text = others.Draw(t, "before") + between.Draw(t, "between") + text
			text += between.Draw(t, "between") + others.Draw(t, "behind")
		}
		normal := normalise(text)
		assert.Equal(t, command(normal, everyLanguage), command(normal, fast.languages(normal)), "%q",
			text)
	})
}

func FuzzFilter(f *testing.F) {
	_, fast := tables()
	for _, text := range append(plainTexts, "undo that", "mach das bitte r\u00fcckg\u00e4ngig",
		"\u5143\u306b\u623b\u3057\u3066") {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if normal := normalise(text); len(text) <= longest &&
			command(normal, everyLanguage) != command(normal, fast.languages(normal)) {
			t.Errorf("%q is read in %v alone", text, fast.languages(normal))
		}
	})
}

// Most plain texts are left out in most languages, which is what the filter is for.
func TestPlainTextsAreFilteredOut(t *testing.T) {
	_, fast := tables()
	read := 0
	for _, text := range plainTexts {
		read += len(fast.languages(normalise(text)))
	}
	assert.LessOrEqual(t, 4*read, len(plainTexts)*len(everyLanguage), "%d are read", read)
}

var plainTexts = []string{
	"Write a mail to Ann. It says that we meet on Monday at ten, and that she should bring the " +
		"figures of the last year.",
	"What is the weather like in Oslo tomorrow?",
	"The disk of db-1 is full, what should I do first?",
	"Could you please make the second paragraph a bit shorter and put the numbers into a table?",
	"thanks, that works now",
	"i think we should ask the customer before we ship it, what do you say?",
	"Schreib bitte eine Mail an Anna, dass wir uns am Montag um zehn treffen und sie die Zahlen " +
		"vom letzten Jahr mitbringen soll.",
	"Wie wird das Wetter morgen in Oslo?",
	"Die Platte von db-1 ist voll, was soll ich zuerst machen?",
	"Kannst du den zweiten Absatz etwas kürzer machen und die Zahlen in eine Tabelle setzen?",
	"danke, jetzt geht es",
	"ich glaube, wir fragen lieber erst den Kunden, bevor wir liefern",
	"Écris un mail à Anne pour lui dire que nous nous voyons lundi à dix heures et qu'elle apporte " +
		"les chiffres de l'an dernier.",
	"Quel temps fera-t-il demain à Oslo ?",
	"Le disque de db-1 est plein, que dois-je faire d'abord ?",
	"Tu peux raccourcir un peu le deuxième paragraphe et mettre les chiffres dans un tableau ?",
	"merci, ça marche maintenant",
	"je pense qu'on devrait demander au client avant de livrer",
	"Escribe un correo a Ana: nos vemos el lunes a las diez y que traiga las cifras del año pasado.",
	"¿Qué tiempo hará mañana en Oslo?",
	"El disco de db-1 está lleno, ¿qué hago primero?",
	"¿Puedes acortar un poco el segundo párrafo y poner los números en una tabla?",
	"gracias, ahora funciona",
	"creo que deberíamos preguntar al cliente antes de enviarlo",
	"Scrivi una mail ad Anna: ci vediamo lunedì alle dieci e che porti i numeri dell'anno scorso.",
	"Che tempo farà domani a Oslo?",
	"Il disco di db-1 è pieno, cosa devo fare per prima cosa?",
	"Puoi accorciare un po' il secondo paragrafo e mettere i numeri in una tabella?",
	"grazie, adesso funziona",
	"penso che dovremmo chiedere al cliente prima di consegnare",
	"Escreva um e-mail para a Ana dizendo que nos vemos na segunda às dez e que ela traga os " +
		"números do ano passado.",
	"Como vai estar o tempo amanhã em Oslo?",
	"O disco do db-1 está cheio, o que faço primeiro?",
	"Você pode encurtar um pouco o segundo parágrafo e pôr os números numa tabela?",
	"obrigado, agora funciona",
	"acho que devíamos perguntar ao cliente antes de enviar",
	"アンさんにメールを書いてください。月曜の十時に会うことと、去年の数字を持ってきてほしいことを伝えて。",
	"明日のオスロの天気はどうですか？",
	"db-1のディスクがいっぱいです。まず何をすればいいですか？",
	"二段落目を少し短くして、数字を表にまとめてもらえますか？",
	"ありがとう、動きました",
	"出荷する前にお客様に聞いたほうがいいと思います",
	"给安写一封邮件，说我们周一十点见面，让她把去年的数字带来。",
	"明天奥斯陆的天气怎么样？",
	"db-1的磁盘满了，我应该先做什么？",
	"你能把第二段写短一点，然后把数字放到表格里吗？",
	"谢谢，现在可以了",
	"我觉得发货之前应该先问一下客户",
}

// BenchmarkPlainTexts compares plain texts with and without the filter.
func BenchmarkPlainTexts(b *testing.B) {
	for name, read := range map[string]func(string){
		"filter":    func(text string) { Command(text) },
		"no filter": func(text string) { command(normalise(text), everyLanguage) },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				for _, text := range plainTexts {
					read(text)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(plainTexts)), "ns/text")
		})
	}
}

// BenchmarkTables makes the grammars and their filter, once a process.
func BenchmarkTables(b *testing.B) {
	for b.Loop() {
		newFilter(load(grammarFile))
	}
}
