package patterns

import (
	"slices"
	"strings"
)

// synonyms are other words for the same thing. A phrase of [Approaches] names one of these lists in
// braces.
var synonyms = strings.NewReplacer(
	"{split}", "split*|divid*|break*|broke*|decompos*|partition*|group*|organi*|structur*|"+
		"slic*|carv*|cut|cutting|chunk*|arrang*|subtask*|task|tasks|work|separat*",
	"{by}", "by|per|along|into|around",
	"{piece}", "subtask|subtasks|task|tasks|agent|agents|worker|workers|step|steps|phase|"+
		"ticket|tickets|commit|pass|job|jobs|pieces|pr|prs|branch",
	"{each}", "each|every|per",
	"{own}", "own|separate|dedicated|individual|different|another|second|later|follow",
	"{tests}", "test|tests|testing",
	"{code}", "code|implementation*|feature*|function*|logic|production",
	"{types}", "type|types|interface|interfaces|struct|structs|contracts|schemas",
	"{early}", "first|upfront|before|beforehand|ahead",
	"{component}", "component|components|module|modules|subsystem*|package|packages",
	"{layer}", "layer|layers|tier|tiers",
	"{feature}", "feature|features|functionality|capability|story|stories",
	"{front}", "ui|frontend|front|view|views|web|screens|http|client|pages",
	"{middle}", "logic|backend|back|api|business|service|services|server|domain",
	"{data}", "data|tables|sql|database|db|storage|persistence|schema|repositor*",
	"{together}", "parallel|simultaneously|concurrently",
	"{workers}", "subtask|subtasks|task|tasks|agent|agents|worker|workers|steps|jobs|pieces|"+
		"everything|all|they",
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

// strategies are the approaches before the synonyms are filled in. Most have a phrase for each way
// in which people say it: with a verb, with "one … per …", and with "each … its own …".
var strategies = []Approach{
	{"Split by file type", []string{
		"{split} ... {by} file|files type*|extension*|kind*", "one {piece} {by} file type|extension",
		"{split} ... {by} type|kind|extension of file|files",
	}},
	{"Split by component", []string{
		"{split} ... {by} {component}", "component|module by component|module",
		"{each} {component} ... own|separate|one {piece}", "one {component} {each}|at {piece}|time",
	}},
	{"Split by layer (UI/logic/data)", []string{
		"{split} ... {by} {layer}", "{layer} by|after {layer}", "horizontal* slice*|slicing|split*",
		"{each} {layer} ... own|separate|one {piece}", "one {layer} {each}|at|after {piece}|time|other",
		"one {piece} per {layer}", "{front} ... {middle} ... {data}", "{data} ... {middle} ... {front}",
	}},
	{"Split by feature", []string{
		"{split} ... {by} {feature}", "{split} ... {by} user {feature}", "{feature} by|after {feature}",
		"vertical* slice*|slicing|split*|cut*|slices", "{each} {feature} ... own|separate|one {piece}",
		"one {piece} {each}|for {feature}", "{each} {piece} ... whole|complete|one {feature}|user",
	}},
	{"One file per subtask", []string{
		"one|single file {each}|for subtask|task|agent|worker|step", "file per subtask|task|agent",
		"{each}|one subtask|task|agent ... own|one file", "one {piece} {each}|for file",
		"{each} file ... own|one {piece}", "file by file",
	}},
	{"Handle shared types first", []string{
		"shared|common type|types|interface*|model*|contract*|definition* ... {early}",
		"{types} ... {early}|initially", "first {types}", "{types} ... up front",
		"begin*|began|start* with|by ... {types}", "data|domain model ... {early}",
		"first ... defin*|write|wrote|settl*|agree*|fix* ... {types}",
	}},
	{"Separate API routes", []string{
		"api route|routes separate*", "separate*|isolat* api|endpoint*|route|routes",
		"api|route|routes|endpoint|endpoints ... separately|apart|separate|own {piece}|file|files",
		"api separate", "one {piece} {each}|for route|endpoint", "endpoint|route by endpoint|route",
	}},
	{"Tests alongside implementation", []string{
		"{tests} with|alongside|beside|together|along ... {code}|change*|it|them",
		"{tests} ... alongside|inline", "{tests} ... same {piece}|commit|change|breath|time",
		"{code} and|with|plus|beside test|tests", "{tests} ... as we|you|they|i|it|code go|went|grew",
		"{each} {piece}|change|feature|module ... own|its|with|came|had test|tests",
		"{tests} ... hand in hand", "test* as we|you|they|i|it go|went",
	}},
	{"Tests in separate subtask", []string{
		"{tests} ... {own} {piece}", "{own} {piece} ... {tests}", "{tests} ... {piece} of own",
		"last|final {piece} ... for|wrote|writes|did|with|has|had|was|the {tests}",
		"{tests} separate {piece}", "{tests} are|were|was|written|go|went separately|apart|afterwards",
	}},
	{"Maximize parallelization", []string{
		"paralleli*|parallel all|everything|every|much|{workers}|rest|work", "in parallel",
		"maximi*|maximum parallel*|concurrency", "{workers} ... {together}|at once|side",
		"run|running|ran|launch*|start* ... {together}|at once", "{workers} ... same time",
		"parallel {workers}|run*|execution", "fan|fans|fanned|fanning out", "side by side",
	}},
	{"Sequential execution order", []string{
		"sequential order*|execution*|step*|subtask*|task*|run*", "one after another|other|next",
		"{workers} ... sequentially|serially|consecutively", "{workers} ... in sequence|turn|order",
		"one {piece} at time", "one by one", "step by step", "strict*|fixed order|sequence",
		"{each} ... waits|waited|after|before|when|once ... previous|last|predecessor",
	}},
	{"Respect dependency chain", []string{
		"dependenc* chain*|order*|graph*", "respect*|follow* ... dependenc*", "topological*",
		"order*|sort* ... by|of|on|along|to ... dependenc*|prerequisite*", "prerequisite* first|before",
		"what|whatever|that ... depend|depends|needed ... first|before|after",
	}},
}
