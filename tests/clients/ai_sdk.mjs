// Each protocol of a server as Vercel's AI SDK speaks it: node ai_sdk.mjs URL MODEL. A line of JSON for each answer.
import { createRequire } from "node:module";

const require = createRequire(`${process.env.LOCALRUN_CLIENTS}/`);
const { generateText, jsonSchema, Output, streamText } = require("ai");
const { createOpenAI } = require("@ai-sdk/openai");
const { createOpenAICompatible } = require("@ai-sdk/openai-compatible");
const { createAnthropic } = require("@ai-sdk/anthropic");

const [url, name] = process.argv.slice(2);
const to = { baseURL: `${url}/v1`, apiKey: "any" };
const openai = createOpenAI(to);
const models = {
  chat: openai.chat(name),
  responses: openai.responses(name),
  compatible: createOpenAICompatible({ ...to, name: "localrun", includeUsage: true })(name),
  messages: createAnthropic(to)(name),
};
const messages = [
  { role: "user", content: "What is the capital of France?" },
  { role: "assistant", content: "Paris." },
  { role: "user", content: "And of Italy?" },
];
const asked = { system: "Answer in a few words.", messages, temperature: 0, maxOutputTokens: 12, maxRetries: 0 };

for (const [protocol, model] of Object.entries(models)) {
  const whole = await generateText({ ...asked, model });
  const stream = streamText({ ...asked, model });
  const pieces = [];
  for await (const piece of stream.textStream) pieces.push(piece);
  const usage = await stream.usage;
  console.log(
    JSON.stringify({
      protocol,
      whole: whole.text,
      pieces,
      reasons: [whole.finishReason, await stream.finishReason],
      tokens: [whole.usage.inputTokens, usage.inputTokens, whole.usage.outputTokens, usage.outputTokens],
      cached: usage.cachedInputTokens ?? usage.inputTokenDetails?.cacheReadTokens,
    }),
  );
}

const schema = jsonSchema({
  type: "object",
  properties: { city: { type: "string", maxLength: 20 }, people: { type: "integer", minimum: 1, maximum: 9999 } },
  required: ["city", "people"],
  additionalProperties: false,
});
const held = await generateText({ ...asked, model: models.chat, maxOutputTokens: 80, output: Output.object({ schema }) });
console.log(JSON.stringify({ protocol: "schema", object: held.output }));
