// Package openaicompat asks a language model through a chat-completions endpoint, the HTTP interface that OpenAI began and
// that most providers and local servers offer. It needs nothing but the standard library.
//
// A [Client] is a [decision.LLM]: give it to decision.Config.LLM. A call is one POST to BaseURL + "/chat/completions", with
// the system prompt, if there is one, and the prompt; it waits for the whole answer, as a decision has no use for a part of
// it.
//
// # Endpoints
//
// What to configure, beside Model, and APIKey where the endpoint wants one:
//
//	                BaseURL
//	OpenAI          https://api.openai.com/v1
//	Azure OpenAI    https://RESOURCE.openai.azure.com/openai/v1 or, where an API version has to be named,
//	                https://RESOURCE.openai.azure.com/openai/deployments/DEPLOYMENT?api-version=2024-10-21
//	Ollama          http://localhost:11434/v1
//	vLLM            http://localhost:8000/v1
//	llama.cpp       http://localhost:8080/v1
//	LM Studio       http://localhost:1234/v1
//	OpenRouter      https://openrouter.ai/api/v1
//
// Azure takes its keys in a header of its own: set KeyHeader to "api-key". (Tokens of Entra ID go into Authorization, which
// is the default; a host that has to renew them puts them in by the Transport of its HTTPClient.) LM Studio refuses the usual
// request for JSON: set JSON to [JSONSchema]. OpenAI's reasoning models refuse max_tokens: set MaxCompletionTokens; and
// leave the temperature to them. OpenAI and Azure take a request for JSON only if the prompt has the word JSON in it, as the
// prompts of package decision have.
//
// # What is tried again
//
// A call asks again, up to MaxAttempts times in all, where the status is 408, 429, 500, 502, 503 or 504, and where the
// connection fails before the answer has come whole, which may cost its tokens twice. It waits for Backoff, twice that, and
// so on, each shortened by up to a half at random, and at least for what Retry-After says. Where the wait would not end
// before the call has to, the error is returned at once. Everything else is final: another attempt would be answered alike.
//
// # What is kept secret
//
// The key is sent to the host of BaseURL only. Redirects are not followed, not even on that host, as they would send the
// prompt elsewhere too: they are a [StatusError]. Errors have no prompt in their text, and no key, also where the endpoint
// repeats it. A [Config] and a [Client] can be printed without showing it. Nothing is logged.
package openaicompat
