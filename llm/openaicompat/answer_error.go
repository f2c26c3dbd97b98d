package openaicompat

import "fmt"

// An AnswerError says that the endpoint's response is no answer. Its text may go into a log.
type AnswerError struct {
	// Fault is [CutOff], [Refused], "no JSON object", "too large" (more than Config.MaxResponse), "no choice" (the list of
	// choices is missing, empty or malformed) or "no text" (the text is missing, null, blank or of another type).
	Fault string
	// ContentType is what the endpoint says that it sent, if that is no JSON object: "text/html" hints at a proxy.
	ContentType string
}

// The faults that a host may want to act on.
const (
	Refused = "refused" // by the model, or by a filter of the provider
	CutOff  = "cut off" // at the request's MaxTokens, or at the limit of the model
)

func (e *AnswerError) Error() string {
	text := "unusable answer: " + e.Fault
	if e.ContentType != "" {
		text += fmt.Sprintf(" (%s)", e.ContentType)
	}
	return text
}
