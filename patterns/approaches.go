package patterns

// Words that many phrases share.
const (
	splits = "split*|divid*|division|break*|broke*|decompos*|partition*|group*|organi*|structur*|slic*|carv*|cut|cutting|subtask*|task|tasks|work|separat* ... by|per|along|into "
	piece  = "subtask|subtasks|task|tasks|agent|worker|step|phase"
	tests  = "test|tests|testing"
)

// Approaches returns the twelve strategies of decomposition that the learning-systems design detects. Append your own.
func Approaches() []Approach {
	return []Approach{
		{"Split by file type", []string{
			splits + "file|files type*|extension*|kind*|format*", splits + "type|types|kind|kinds|extension of file|files",
			"file type|extension ... own|separate " + piece,
		}},
		{"Split by component", []string{
			splits + "component|components|module|modules|subsystem*|package|packages", "component|module by component|module",
			"one component|module per " + piece, "each|every|per component|module ... own|separate|one " + piece,
		}},
		{"Split by layer (UI/logic/data)", []string{
			splits + "layer|layers|tier|tiers", "layer|tier by layer|tier", "one layer|tier per " + piece, "each|every|per layer|tier ... own|separate|one " + piece,
			"ui|frontend|interface|presentation ... logic|backend|api|business ... data|database|storage|persistence",
			"data|database|storage|persistence ... logic|backend|api|business ... ui|frontend|interface|presentation",
		}},
		{"Split by feature", []string{
			splits + "feature|features|functionality|capability|capabilities|story|stories", "feature|story by feature|story", "vertical* slice*|slicing",
			"one feature|story per " + piece, "each|every|per feature|story ... own|separate|one " + piece,
		}},
		{"One file per subtask", []string{
			"one|single|1 file per|for|in|to task*|subtask*|agent|worker|step", "each|every|per|one subtask|task|agent|worker ... one|single|1|own file",
			"one|single|1 subtask|task|agent|worker per|for file", "each|every|per file ... own|separate|one|single " + piece, "file per subtask|task",
			"no subtask*|task*|agent ... more than one file"}},
		{"Handle shared types first", []string{
			"shared type|types|interface*|definition*|model*|contract*|schema* ... first|before|upfront", "common type|types|interface*|contract* ... first|before|upfront",
			"type|types first|upfront|before", "type definition* ... first|before|upfront", "type|types|interfaces ... up front",
			"start*|begin* with|from|by ... type|types|interfaces|contracts", "first define|defining|handle|write|extract|create|settle|declare types|interfaces",
			"first ... shared|common type|types|interfaces",
		}},
		{"Separate API routes", []string{
			"api route|routes? separate*", "api|apis|endpoint|endpoints|route|routes ... separate|separately|apart|isolated|dedicated|individually",
			"separate*|dedicated|isolat* api|endpoint*|route|routes", "separate|dedicated|own subtask|task for|with ... api|endpoint*|route|routes",
			"one subtask|task per|for endpoint|route", "each|every|per|api endpoint|route|routes ... own " + piece,
		}},
		{"Tests alongside implementation", []string{
			tests + " with|alongside|beside|together|next|near|along ... code|implementation*|change*|feature*|it|them", tests + " ... alongside|side by? side?",
			tests + " ... same " + piece + "|commit|change", "each|every subtask|task|agent|change|step|feature ... own|its|with|includes|brings|writes test|tests",
			"code|implementation and|with|plus test|tests together|in", tests + " ... as we|you|they|i go", tests + " ... part of subtask|task|implementation|change",
		}},
		{"Tests in separate subtask", []string{
			tests + " in? separate task*|subtask*", tests + " ... separate|own|dedicated|another|different|later|extra " + piece, tests + " ... subtask|task of own",
			"separate|own|dedicated|extra|another|final|last " + piece + " ... for|to|of|with|writes ... test|tests", tests + " are|written|go|handled|kept? separately|apart",
		}},
		{"Maximize parallelization", []string{
			"parallel|parallelize|parallelise|parallelizing|parallelising all|everything|every|possible|much|many", "maximize|maximise|maximum|maximal|most parallel*|concurrency",
			"in parallel", "all|everything|every|each|many|much ... parallel|simultaneously|concurrently", "all|everything ... at once", "all|everything ... same time",
			"parallel as possible", "fully parallel", "run*|subtask*|task|tasks|agents ... concurrently|simultaneously",
		}},
		{"Sequential execution order", []string{
			"sequential order*|execution*|step*|subtask*|task*|run*|fashion|manner|plan", "sequentially|serially|consecutively", "in sequence", "one after another|other",
			"one at time", "one by one", "step by step", "fixed|strict*|linear|given order|sequence", "each|every subtask|step|task ... waits|starts|begins|after ... previous|last|one",
			"finish* one|each ... before ... next|start*|begin*",
		}},
		{"Respect dependency chain", []string{
			"dependenc* chain*|order*|graph*|tree*|first", "respect*|follow*|honor*|honour*|observe*|obey* ... dependenc*", "order*|sort* ... by|of|on|along|to ... dependenc*|prerequisite*",
			"dependenc* ... before|first", "topological*", "depend|depends on ... before|first|after|done|ready|finished", "that|what|whatever depends|depend|depended ... after|before|first|done|ready",
			"prerequisite* first|before"}},
	}
}
