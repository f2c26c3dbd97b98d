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
// Azure reads keys from the header "api-key": set KeyHeader. Tokens of Entra ID go into Authorization, which is the default; the
// Transport of an HTTPClient can renew them. LM Studio refuses the usual request for JSON: set JSON to "json_schema". OpenAI's
// reasoning models refuse max_tokens and a temperature: set MaxCompletionTokens, and no temperature. OpenAI and Azure accept a
// request for JSON only if the prompt has the word JSON in it. The prompts of package decision have it.
//
// # Attempts
//
// A call asks again, up to MaxAttempts times in all, after the statuses 408, 429, 500, 502, 503 and 504. It also asks again if
// the connection fails before the whole answer has come, which may cost the tokens twice. It waits for Backoff, then for twice
// that, and so on, each shortened by up to a half at random, and at least as long as Retry-After says. If the call's time would
// be over before, it returns the error at once. Any other error is final.
//
// # Secrets
//
// The key is sent to the host of BaseURL only. Redirects are not followed, not even on that host: they are a [StatusError].
// The text of an error has no prompt and no key, even if the endpoint repeats them. A [Config] and a [Client] can be printed
// without showing the key. Nothing is logged.
package openaicompat
