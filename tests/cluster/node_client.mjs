// The official Node client through a router: node node_client.mjs BASE_URL MODULES, prints what it saw as JSON.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [baseURL, modules] = process.argv.slice(2);
const resolved = createRequire(modules + "/").resolve("openai");
const { default: OpenAI, NotFoundError } = await import(pathToFileURL(resolved));
const client = new OpenAI({ baseURL: baseURL + "/v1", apiKey: "none", maxRetries: 0, timeout: 60_000 });
const messages = [{ role: "user", content: "hello from node" }];
const seen = {};

const answer = await client.chat.completions.create({ model: "m-large", messages, max_tokens: 12 });
seen.text = answer.choices[0].message.content;
seen.tokens = answer.usage.completion_tokens;

const stream = await client.chat.completions.create({
  model: "m-small", messages, max_tokens: 20, stream: true, stream_options: { include_usage: true },
});
seen.deltas = 0;
for await (const chunk of stream) {
  if (chunk.choices[0]?.delta?.content) seen.deltas += 1;
  if (chunk.usage) seen.streamedTokens = chunk.usage.completion_tokens;
}

const aborted = await client.chat.completions.create({ model: "m-small", messages, max_tokens: 500, stream: true });
seen.beforeAbort = 0;
for await (const chunk of aborted) {
  if ((seen.beforeAbort += 1) === 5) break;  // ends the request
}

const { data, response } = await client.chat.completions.create({ model: "m-small", messages, max_tokens: 2 }).withResponse();
seen.requestId = data._request_id ?? response.headers.get("x-request-id");
seen.decision = response.headers.get("x-signalbox-decision");

seen.models = [];
for await (const model of client.models.list()) seen.models.push(model.id);
seen.model = (await client.models.retrieve("m-large")).id;
seen.embedding = (await client.embeddings.create({ model: "m-small", input: "the train" })).data[0].embedding.length;
seen.completion = (await client.completions.create({ model: "m-small", prompt: "the train", max_tokens: 5 })).choices[0].text;

try {
  await client.chat.completions.create({ model: "m-huge", messages });
} catch (error) {
  seen.error = { notFound: error instanceof NotFoundError, code: error.code, status: error.status };
}
console.log(JSON.stringify(seen));
