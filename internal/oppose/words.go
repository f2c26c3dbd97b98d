package oppose

import "strings"

// setOf returns the words of a text.
func setOf(texts ...string) map[string]bool {
	set := make(map[string]bool)
	for _, text := range texts {
		for _, word := range strings.Fields(text) {
			set[word] = true
		}
	}
	return set
}

// negations are the words that deny, language by language.
var negations = setOf(
	"not no never without nor neither none nothing nobody nowhere hardly non except unless instead rather",
	"avoid avoids avoiding avoided forbid forbids forbidden prohibit prohibits prohibited disallow disallows disallowed ban bans banned",
	"lack lacks lacking missing absent omit omits omitted omitting leave leaves leaving dont cant wont refrain",
	"nicht kein keine keinen keiner keines keinem nie niemals ohne weder nichts verboten",
	"ne n pas jamais aucun aucune sans ni interdit interdite interdits",
	"nunca sin ningún ninguna ninguno tampoco prohibido prohibida",
	"mai senza nessun nessuno nessuna vietato vietata",
	"não sem nenhum nenhuma proibido proibida",
	"niet geen nooit zonder verboden",
	"inte ej aldrig utan ingen inget inga ikke aldri uten",
	"не ни нет никогда без нельзя запрещено запрещён запрещена",
	"nie bez nigdy żaden żadna nikdy değil yok",
	"لا لم لن ليس بدون ممنوع לא אין בלי אסור नहीं मत न बिना",
	"δεν μην χωρίς ποτέ không đừng tidak jangan tanpa bukan",
)

// deniedAllow are the negations that say by themselves what is denied: that it is allowed.
var deniedAllow = setOf("forbid forbids forbidden prohibit prohibits prohibited disallow disallows disallowed ban bans banned")

// wholeClause are the negations that deny their whole clause wherever they stand in it.
var wholeClause = setOf("forbidden prohibited disallowed banned missing absent omitted verboten interdit interdite prohibido vietato proibido запрещено",
	"never nie niemals nunca mai jamais nooit aldrig никогда pas")

// denseNegations are those of scripts that are written without blanks, longer ones first.
var denseNegations = []string{
	"ません", "마세요", "마십시오", "ない", "なく", "ずに", "禁止", "금지", "말고", "ไม่", "ห้าม",
	"不", "没", "別", "别", "勿", "无", "無", "未", "非", "莫", "않", "안", "못", "없", "禁",
}

var denseNegation = setOf(denseNegations...)

func isDenseNegation(word string) bool { return denseNegation[word] }

// auxiliaries are the verbs behind which a negation denies the whole clause.
var auxiliaries = setOf(
	"do does did must shall should may might can could will would need is are was were be been being has have had to",
	"darf dürfen soll sollen muss müssen kann können ist sind wird werden debe deben puede pueden deve devono",
)

var modals = setOf("must shall should may might can could will would need needs")

// plainBounds words a bound without a negation, and has one kind of apostrophe.
var plainBounds = strings.NewReplacer("’", "'", "no more than", "at most", "not more than", "at most", "No more than", "at most",
	"no less than", "at least", "no fewer than", "at least", "not less than", "at least", "up to", "at most")

var copulas = setOf("is are was were be been being ist sind wird werden werde est sont être es son ser é são essere sono")

// clauseStarts are the words with which a clause of its own begins.
var clauseStarts = setOf("but while whereas although though if when whenever because since so which who that before after until then else otherwise",
	"aber wenn weil dass sondern mais si quand pero cuando porque ma se quando но если когда")

// joins begin a clause where a negation follows.
var joins = setOf("and or und oder et ou y o e и или")

// relations are the words that say something else when their sides are exchanged.
var relations = setOf("before after over than instead to into from by unless if until against inside outside without with of not",
	"vor nach avant après antes después до после")

// turningWords have to be in both texts or in neither.
var turningWords = strings.Fields("out outside off against beyond despite only but other others otherwise else even")

// placing are the prepositions that tell one place or time from another.
var placing = setOf("within after before during until over under between with")

// emptyWords say nothing by themselves.
var emptyWords = setOf(
	"a an the this that these those it its they them their we us our you your he she i me my",
	"and or but so as at in on of to into from for with by per via about over under through between within",
	"be is are was were been being am do does did done has have had having",
	"must shall should may might can could will would need needs ought always ever please just also too only very really",
	"if then else when where which who whom whose what why how while whereas because since although though until than",
	"before after there here all any each every some other such own same",
	"der die das den dem des ein eine einen einem einer und oder ist sind wird werden soll sollen darf muss zu im in am auf für mit",
	"le la les un une des du de et ou est sont il faut que qui dans pour avec",
	"el los las una unos y es son se en para con lo il gli i e è di da per che",
)

// numberWords are the numbers that are written in letters.
var numberWords = map[string]string{
	"zero": "", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8",
	"nine": "9", "ten": "10", "eleven": "11", "twelve": "12", "twenty": "20", "thirty": "30", "fifty": "50",
	"hundred": "100", "thousand": "1000", "million": "1000000", "once": "1x", "twice": "2x", "thrice": "3x", "half": "0.5",
	"zwei": "2", "drei": "3", "vier": "4", "fünf": "5", "sechs": "6", "zehn": "10",
	"deux": "2", "trois": "3", "quatre": "4", "cinq": "5", "dos": "2", "tres": "3", "cuatro": "4", "cinco": "5",
	"два": "2", "три": "3", "четыре": "4", "пять": "5", "десять": "10",
}

var denseNumbers = map[rune]string{
	'两': "2", '二': "2", '三': "3", '四': "4", '五': "5", '六': "6", '七': "7", '八': "8", '九': "9", '十': "10", '百': "100", '千': "1000", '万': "10000",
}

// units are what numbers count, each with the name under which its spellings are compared.
var units = func() map[string]string {
	all := map[string]string{}
	for _, spellings := range []string{
		"ms millisecond milliseconds millis", "s sec secs second seconds", "m min mins minute minutes", "h hr hrs hour hours",
		"d day days", "week weeks", "month months", "year years", "b byte bytes", "kb kib kilobyte kilobytes",
		"mb mib megabyte megabytes", "gb gib gigabyte gigabytes", "% percent", "char chars character characters",
		"line lines", "word words", "token tokens", "px pixel pixels", "time times", "space spaces", "item items",
	} {
		names := strings.Fields(spellings)
		for _, name := range names {
			all[name] = " " + names[0]
		}
	}
	return all
}()

// negativePrefixes turn a word into its opposite.
var negativePrefixes = []string{"un", "in", "im", "ir", "il", "non", "dis", "de", "des", "dés", "anti", "mis"}

// antonyms lists for each word its opposites.
var antonyms = func() map[string][]string {
	all := map[string][]string{}
	for _, line := range strings.Split(strings.TrimSpace(antonymLines), "\n") {
		left, right, _ := strings.Cut(line, "|")
		for _, a := range strings.Fields(left) {
			for _, b := range strings.Fields(right) {
				all[a] = append(all[a], b)
				all[b] = append(all[b], a)
			}
		}
	}
	return all
}()

const antonymLines = `
enable enables enabled enabling activate activated on | disable disables disabled disabling deactivate deactivated off
allow allows allowed allowing permit permits permitted accept accepts accepted approve approved | deny denies denied denying reject rejects rejected rejecting refuse refuses refused block blocks blocked
include includes included including contain contains | exclude excludes excluded excluding
add adds added adding insert | remove removes removed removing delete deletes deleted deleting drop drops dropped
keep keeps kept keeping preserve preserves retain retains | remove removes removed delete deletes deleted drop drops dropped discard discards discarded
always | sometimes rarely seldom never
all every each everything | some few none nothing
everyone everybody | nobody someone
must shall required mandatory requires require | may optional optionally can
increase increases increased increasing raise raises raised more higher larger longer grow | decrease decreases decreased decreasing reduce reduces reduced lower lowers lowered less fewer smaller shorter shrink
before earlier first start starts begin prefix above preceding ahead | after later last end ends finish suffix below following behind
minimum min least minimal minimise minimize | maximum max most maximal maximise maximize
over above exceed exceeds | under below
high higher highest | low lower lowest
large big long wide deep larger bigger longer | small little short narrow shallow smaller shorter brief
many multiple several | few single one
sync synchronous synchronously | async asynchronous asynchronously
public external open exposed | private internal closed hidden
show shows shown display displays reveal expose exposes | hide hides hidden mask masks conceal
strict strictly exact exactly | lenient loose loosely approximate approximately
explicit explicitly | implicit implicitly
manual manually | automatic automatically automated
mutable | immutable constant const
static statically | dynamic dynamically
local locally | remote remotely global globally
success succeed succeeds successful succeeded pass passes passed | failure fail fails failed failing
verbose detailed long | terse concise brief short
fast quick quickly early eagerly eager | slow slowly late lazily lazy
ascending | descending
open opens opened | close closes closed
read reads reading reader readonly | write writes writing writer writable
import imports | export exports
input inputs request requests | output outputs response responses
push | pull
encrypt encrypts encrypted | decrypt decrypts decrypted plaintext
lock locks locked | unlock unlocks unlocked
parent | child children
client clients | server servers
left | right
up upward upwards | down downward downwards
top | bottom
upper uppercase | lower lowercase
true | false
valid good right correct | invalid bad wrong incorrect
safe secure | unsafe insecure dangerous
tabs tab | spaces space
inline | separate separately
together combined combine merge merges merged merging join | apart separate separately separated split splits splitting
same identical equal | different distinct other
old older legacy | new newer modern
temporary | permanent
cheap | expensive
strong | weak
singular | plural
abstract | concrete
horizontal | vertical
online | offline
ignore ignores ignored skip skips skipped | handle handles handled check checks checked report reports reported
fail crash abort stop stops halt | continue continues proceed resume
trust trusts trusted | distrust untrusted suspect
optimistic | pessimistic
formal | informal casual
mehr immer mindestens vor erlaubt groß klein aktivieren | weniger selten höchstens nach verboten deaktivieren
groß | klein
plus toujours avant activer | moins parfois après désactiver
más siempre antes activar incluir | menos raramente después desactivar excluir
больше включить включать до минимум всегда | меньше выключить отключать после максимум иногда
前 大 多 增 増 上 开 開 内 同 公 加 先 必 | 后 後 小 少 减 減 下 关 閉 外 异 私 删 可
이전 최대 전 | 이후 최소 후
`
