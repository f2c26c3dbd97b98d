// Package openaicompat asks a language model through a chat-completions endpoint, the HTTP
// interface that OpenAI began and that most providers and local servers offer. It needs the
// standard library only.
//
// A [Client] is a [decision.LLM]: give it to decision.Config.LLM. A call is one POST to BaseURL +
// "/chat/completions". Generate waits for the whole answer. Stream gives it in pieces, so that a
// Client is a Streamer of package loop. Embed asks BaseURL + "/embeddings", and is a heed.Embedder.
// Besides Model and APIKey, configure:
//
//	                BaseURL
//	OpenAI          https://api.openai.com/v1
//	Azure OpenAI    https://RESOURCE.openai.azure.com/openai/v1 or, where an API version must be named,
//	                https://RESOURCE.openai.azure.com/openai/deployments/DEPLOYMENT?api-version=2024-10-21
//	Ollama          http://localhost:11434/v1
//	vLLM            http://localhost:8000/v1
//	llama.cpp       http://localhost:8080/v1
//	LM Studio       http://localhost:1234/v1
//	OpenRouter      https://openrouter.ai/api/v1
//
// A host that renews tokens of Entra ID, or whose endpoint wants the key in another header, adds
// the header in the Transport of its HTTPClient. LM Studio refuses the usual request for
// JSON: set JSON to "json_schema". OpenAI's reasoning models refuse max_tokens: set
// MaxCompletionTokens, and leave the temperature to them. OpenAI and Azure take a request for JSON
// only if the prompt contains the word JSON in it, which the prompts of package decision do.
//
// A call asks again, at most twice, after the status 408, 429, 500, 502, 503 or 504, and after a
// connection that failed before the whole answer came, which may cost its tokens twice. If the wait
// would not end before the call must, the error is returned at once. Any other answer is final.
//
// A reasoning model's thoughts are in LLMResponse.Thoughts and never in Text: those that the
// endpoint returns separately, in reasoning_content or reasoning, and those in tags such as <think>
// within the text.
//
// The key is sent to the host of BaseURL only. Redirects are not followed, not even on that host:
// they are a [StatusError]. Errors have neither the prompt nor the key in their text, even if the
// endpoint repeats them. A [Config] and a [Client] can be printed without showing the key. The
// package does not log.
package openaicompat
