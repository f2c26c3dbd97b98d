// Wraps a model and a tool of a program, and reads an answer in pieces. Before you compile it:
//   npm install openapi-fetch openapi-typescript@7 typescript@5 @types/node
//   npx openapi-typescript openapi.json -o heed.d.ts   # of GET /v1/openapi.json
import createClient from "openapi-fetch";
import type { components, paths } from "./heed.js";

const heed = createClient<paths>({
  baseUrl: process.env.HEED_URL,
  headers: { Authorization: `Bearer ${process.env.HEED_TOKEN}` },
});
async function must<T>(call: Promise<{ data?: T; error?: { detail?: string } }>) {
  const { data, error } = await call;
  if (error) throw new Error(error.detail);
  return data as T;
}
const yourTool = async (input: string) => "4 GB freed";
const yourModel = async (system: string, prompt: string) => "Rotate its logs."; // the call of your framework

const event = { id: "ticket-8", text: "The disk of db-2 is full.", session: "s8", person: "ann" };
const plan = await must(heed.POST("/v1/prepare", { body: event }));
if (!plan.ready) {
  for (const input of ["rotate db-2", "rm -r /var/log"]) {
    const tool = { answer: plan.id, name: "shell", input };
    const { violations } = await must(heed.POST("/v1/tool_result", { body: { ...tool, before: true } }));
    if (violations.length > 0) {
      console.log(`${input} is not run: ${violations[0].text}`);
      continue; // give this to your model as the tool's result
    }
    const result = { ...tool, text: await yourTool(input) };
    await must(heed.POST("/v1/tool_result", { body: result }));
  }
  const text = await yourModel(plan.system ?? "", plan.prompt ?? "");
  await must(heed.POST("/v1/answered", { body: { id: plan.id, text } }));
}
const message = { text: "Undo that.", session: "s8", person: "ann" }; // needs no answer
const { changes } = await must(heed.POST("/v1/hear", { body: message }));
console.log(changes.map((change) => `${change.answer} ${change.channel}`));

// An answer that comes in pieces.
const headers = { Accept: "text/event-stream" };
const body = { text: "The disk of db-3 is full." };
const pieces = await must(heed.POST("/v1/answer", { headers, body, parseAs: "stream" }));
let rest = "";
for await (const part of pieces!.pipeThrough(new TextDecoderStream())) {
  const events = (rest + part).split("\n\n");
  rest = events.pop()!;
  for (const lines of events) {
    const [event, data] = lines.split("\n").map((line) => line.replace(/^\w+: /, ""));
    const got = { event, data: JSON.parse(data) } as components["schemas"]["AnswerEvent"];
    if (got.event === "problem") throw new Error(got.data.detail);
    console.log(got.event, got.data.text);
  }
}

// Output:
// rm -r /var/log is not run: Delete nothing.
// [ 'ticket-8 implicit_undo' ]
// piece Rotate i
// piece ts logs.
// answer Rotate its logs.
