package openaicompat

import "fmt"

// An AnswerError says why what an endpoint answered is no answer. Its text may go into a log.
type AnswerError struct {
	Fault AnswerFault
	// ContentType is, with [NotJSON], what the endpoint says that it sent: "text/html" hints at a proxy.
	ContentType string
}

func (e *AnswerError) Error() string {
	text := "unusable answer: " + string(e.Fault)
	if e.ContentType != "" {
		text += fmt.Sprintf(" (%s)", e.ContentType)
	}
	return text
}

// An AnswerFault is what is wrong with an answer.
type AnswerFault string

// The faults.
const (
	NotJSON  AnswerFault = "no JSON object"
	TooLarge AnswerFault = "too large" // more than Config.MaxResponse
	NoChoice AnswerFault = "no choice" // the list of choices is missing, empty, or malformed
	NoText   AnswerFault = "no text"   // it is missing, null, blank, or of another type
	Refused  AnswerFault = "refused"   // by the model, or by a filter of the provider
	CutOff   AnswerFault = "cut off"   // at the request's MaxTokens, or where the model can't hold more
)
