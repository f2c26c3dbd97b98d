package patterns

import (
	"slices"
	"strings"
)

// synonyms are other words for the same thing. A phrase of [Approaches] names one of these lists in
// braces.
var synonyms = strings.NewReplacer(
	"{split}", "split*|divid*|division|break*|broke*|decompos*|partition*|group*|organi*|structur*|slic*|carv*|cut|cutting|chunk*|arrang*|subtask*|task|tasks|work|separat*",
	"{by}", "by|per|along|into|around",
	"{piece}", "subtask|subtasks|task|tasks|agent|agents|worker|workers|step|steps|phase|ticket|tickets|commit|pass|job|jobs|pieces|pr|prs|branch",
	"{workers}", "subtask|subtasks|task|tasks|agent|agents|worker|workers|steps|jobs|pieces|parts|branches|tracks|everything|all",
	"{each}", "each|every|per",
	"{one}", "one|single|1",
	"{own}", "own|separate|dedicated|individual",
	"{other}", "separate|own|dedicated|another|different|later|extra|second|subsequent",
	"{tests}", "test|tests|testing",
	"{code}", "code|implementation*|feature*|function*|logic|production",
	"{types}", "type|types|interface|interfaces|struct|structs|signature|signatures|enum|enums|dtos|contracts|schemas",
	"{early}", "first|upfront|before|beforehand|ahead|initially",
	"{begin}", "first|start*|begin*|began|begun|initially",
	"{write}", "defin*|handle|handling|write|writing|wrote|written|extract*|create*|creating|settl*|declar*|agree*|model*|fix*|pin*|specif*",
	"{component}", "component|components|module|modules|subsystem*|package|packages|librar*",
	"{layer}", "layer|layers|tier|tiers",
	"{feature}", "feature|features|functionality|capability|capabilities|story|stories",
	"{front}", "ui|frontend|front|interface|presentation|client|view|views|web|screens|http",
	"{middle}", "logic|backend|back|api|business|service|services|server|domain|controller*",
	"{data}", "data|tables|migration*|sql|database|db|storage|persistence|schema|repositor*",
	"{route}", "endpoint|endpoints|route|routes|handler|handlers",
	"{together}", "parallel|simultaneously|concurrently",
)

// Approaches returns the twelve strategies of decomposition that the learning-systems design
// detects. Append your own.
func Approaches() []Approach {
	all := slices.Clone(strategies)
	for i := range all {
		all[i].Phrases = slices.Clone(all[i].Phrases)
		for j, phrase := range all[i].Phrases {
			all[i].Phrases[j] = synonyms.Replace(phrase)
		}
	}
	return all
}

var strategies = []Approach{
	{"Split by file type", []string{
		"{split} ... {by} file|files type*|extension*|kind*|format*",
		"{split} ... {by} type|types|kind|kinds|extension of file|files",
		"file type|extension ... own|separate {piece}",
		"file type|extension|kind by file? type|extension|kind", "by|per file type|extension",
	}},
	{"Split by component", []string{
		"{split} ... {by} {component}", "component|module by component|module",
		"one component|module|package {each}|at {piece}|time",
		"{each} component|module|package ... own|separate|one {piece}",
		"component|components|module|modules|packages ... are|were|got one {piece} each|apiece",
		"component|module wise", "by|per component|module",
		"one|a component|module|package each|apiece",
	}},
	{"Split by layer (UI/logic/data)", []string{
		"{split} ... {by} {layer}", "layer|tier by|after layer|tier", "by|per layer|tier",
		"horizontal* slice*|slicing", "in|with layers|tiers", "layer|tier each|apiece",
		"one layer|tier {each}|at|after {piece}|time|other|another",
		"{each} layer|tier ... own|separate|one {piece}", "{front} ... {middle} ... {data}",
		"{data} ... {middle} ... {front}", "{middle} ... {data} ... {front}",
		"{front}|{middle}|{data} ... {front}|{middle}|{data} ... separate|different|own {piece}",
		"{front}|{middle}|{data} ... {front}|{middle}|{data} ... one {piece} {each}",
		"{front}|{middle}|{data} ... one {piece} ... {front}|{middle}|{data} another|second|other",
		"{split}|line|seam between|along|at front|frontend|client|ui ... back|backend|server|api",
		"{front}|{middle}|{data} layer|tier ... {front}|{middle}|{data} layer|tier",
		"for|did|on {front}|{middle}|{data} ... one|another|second|other for|did|on " +
			"{front}|{middle}|{data}",
	}},
	{"Split by feature", []string{
		"{split} ... {by} user? {feature}", "feature|story by|after feature|story",
		"vertical* slice*|slicing|cut*", "end to end slice*",
		"slice*|cut|cuts through|across ... layers|stack",
		"feature slice*|slicing|wise", "by|per feature|story|capability", "feature|story each|apiece",
		"one user? feature|story {each}|at|after {piece}|time|other|another",
		"{each} user? feature|story ... own|separate|one {piece}",
		"{each} {piece} ... whole|complete|entire|one user? feature|story",
		"{one} {piece} per|for user? feature|story|capability",
		"own {piece} ... so did|had|has",
		"feature|features|story|stories ... separate|different|own|individual {piece}",
		"are|were|was|got|made|became one {piece} each|apiece",
	}},
	{"One file per subtask", []string{
		"{one} file {each}|for|in|to task*|subtask*|agent|worker|step",
		"{each}|one subtask|task|agent|worker ... {one}|own file", "{one}|a file apiece|each",
		"{one} subtask|task|agent|worker {each}|for file", "{each} file ... {own}|{one} {piece}",
		"file|files ... are|were|got one {piece} each|apiece", "file per subtask|task",
		"file by file",
		"single file subtask|subtasks|task|tasks",
		"no|never subtask*|task*|agent ... more than one file",
	}},
	{"Handle shared types first", []string{
		"shared type|types|interface*|definition*|model*|contract*|schema* ... {early}",
		"common type|types|interface*|contract* ... {early}",
		"{types} {early}", "{types} ... {early}", "type definition* ... {early}",
		"{types} ... up front", "data structure*|typing*|contract ... {early}",
		"{begin} with|from|by|on|went ... {types}",
		"{begin} {write} ... {types}", "{begin} {types}",
		"{begin} ... shared|common type|types|interfaces", "{begin} ... model* data|domain",
		"data|domain model ... {early}",
	}},
	{"Separate API routes", []string{
		"api route|routes? separate*",
		"api|apis|{route} ... separate|separately|apart|isolated|dedicated|individually|themselves",
		"separate*|dedicated|isolat* api|endpoint*|route|routes",
		"{own} subtask|task for|with ... api|endpoint*|route|routes",
		"one subtask|task per|for {route}", "{each}|api {route} ... own {piece}",
		"endpoint|route by endpoint|route", "one {route} {each} {piece}",
	}},
	{"Tests alongside implementation", []string{
		"{tests} with|alongside|beside|together|next|near|along ... {code}|change*|it|them",
		"{tests} ... alongside|inline|side by? side?", "{tests} ... together|along with|in",
		"tests included", "{piece}|change|requests|feature|module ... had|has|with|contained|brought " +
			"... tests in", "alongside|beside|accompan* ... {tests}",
		"{tests} ... same {piece}|commit|change|breath|time",
		"{tests} ... beside|alongside it|them|code",
		"each|every {piece}|change|feature|module|commit ... " +
			"own|its|their|with|includes|brings|brought|writes|carr*|ships|shipped|came|got test|tests",
		"{code} and|with|plus|beside test|tests together|in|alongside",
		"{code} and? test|tests ... together|hand|tandem|lockstep|parallel",
		"{tests} ... as we|you|they|i|it|code go|went|grew|along|progress*",
		"{tests} ... part of subtask|task|implementation|change", "{tests} ... hand in hand",
		"{tests} ... go|went|moved along", "test* as we|you|they|i|it go|went",
	}},
	{"Tests in separate subtask", []string{
		"{tests} in? separate task*|subtask*", "{tests} ... {other} {piece}",
		"{tests} ... subtask|task|ticket of own", "{tests} ... by|on|for themselves|own|itself",
		"{other}|final|last {piece} ... for|to|of|with|writes|wrote|did|only|was|took ... {tests}",
		"{tests} are|were|was|written|go|went|handled|kept? separately|apart",
		"{tests} ... split|apart|separated|away from code|implementation*",
		"{tests} ... left|put off|postponed|moved|deferred to|until|till|for|into ... " +
			"end|later|last|{piece}", "{code} ... {piece} ... {tests} ... {other}|in {piece}",
		"{other}|follow {piece} ... {tests}", "{other} test|testing|qa {piece}",
		"{piece} ... only|pure|purely|nothing test|tests|testing",
		"{piece} ... one more|another for|only {tests}",
		"{tests} came|come|followed|added last|later|afterwards|end",
	}},
	{"Maximize parallelization", []string{
		"parallel|parallelize|parallelise|parallelizing|parallelising|parallelized|parallelised " +
			"all|everything|every|possible|much|many|{workers}", "maximize|maximise|maximum|maximal|most parallel*|concurrency",
		"in parallel", "all|everything|every|each|many|much ... {together}",
		"subtasks|tasks|agents|workers|steps|jobs|branches|tracks ... at once",
		"run|running|ran|launch*|start* ... at once",
		"while one agent|worker|task|of ... other|another|second", "same moment",
		"{workers} ... same time", "side by side", "fan|fans|fanned|fanning out",
		"parallel as possible", "parallelis*|paralleliz*", "simultaneously", "same time",
		"fully parallel", "run*|ran|{workers} ... {together}",
		"parallel run*|execution|streams|lanes|{workers}", "concurrent {workers}|run*|execution",
	}},
	{"Sequential execution order", []string{
		"sequential order*|execution*|step*|subtask*|task*|run*|fashion|manner|plan",
		"sequentially|serially|consecutively|successively",
		"in sequence|series|succession|turn|chain",
		"nobody|none|no started|start|began|begin before|until",
		"{each} picking|picked|taking|took|continuing ... where|when|once ... " +
			"previous|last|other|stopped|left",
		"{piece} two|three|2|3|second|third|next waited|waits for",
		"feature|story|layer|tier|module|component after feature|story|layer|tier|module|component",
		"one after another|other|next",
		"one at time", "one by one", "step by step", "fixed|strict*|linear|given order|sequence",
		"{each} subtask|step|task ... waits|waited|starts|started|begins|began|after ... " +
			"previous|last|one|before",
		"finish*|complet* one|each ... before ... next|start*|begin*", "back to back",
		"one following|followed next|other|another", "following|followed next|one another|other?",
		"{workers} ... in order", "never|not two|several|more at once|same|time",
		"one subtask|task|step|agent ... then ... next|other|another",
		"{each} one? start*|began|begun|begins|ran when|once|after|as", "chained", "single file",
		"took|take|taking turns", "sequential", "serial order|execution|run*",
		"task|subtask|step by|after task|subtask|step",
		"{each} subtask|step|task ... before ... next|following",
		"only after|once|when previous|last|one|predecessor",
	}},
	{"Respect dependency chain", []string{
		"dependenc* chain*|order*|graph*|tree*|first",
		"respect*|follow*|honor*|honour*|observe*|obey* ... dependenc*",
		"order*|sort* ... by|of|on|along|to ... dependenc*|prerequisite*",
		"dependenc* ... before|first", "topological*",
		"depend|depends|depended|relies|rely|relied on ... before|first|after|done|ready|finished",
		"that|what|whatever depends|depend|depended|needed|others|rest ... " +
			"after|before|first|done|ready",
		"prerequisite* first|before", "bottom up", "upstream|leaf|leaves|foundation* ... first|before",
	}},
}
