"""Each protocol of a server as litellm speaks it: python with_litellm.py URL MODEL. One line of JSON."""

import json
import sys

import litellm

url, name = sys.argv[1:]
MESSAGES = [{"role": "user", "content": "What is the capital of Italy?"}]
OPENAI = {"model": f"openai/{name}", "api_base": f"{url}/v1", "api_key": "any"}
ANTHROPIC = {"model": f"anthropic/{name}", "api_base": url, "api_key": "any"}
OLLAMA = {"model": f"ollama_chat/{name}", "api_base": url}
SAMPLING = {"temperature": 0, "max_tokens": 12}

said = {}
for protocol, provider in {"openai": OPENAI, "anthropic": ANTHROPIC, "ollama": OLLAMA}.items():
    whole = litellm.completion(messages=MESSAGES, **provider, **SAMPLING)
    stream = litellm.completion(messages=MESSAGES, stream=True, **provider, **SAMPLING)
    pieces = [chunk.choices[0].delta.content or "" for chunk in stream]
    said[protocol] = [whole.choices[0].message.content, "".join(pieces), whole.usage.prompt_tokens]
answer = litellm.responses(input=MESSAGES, temperature=0, max_output_tokens=12, **OPENAI)
text = "".join(part.text for item in answer.output if item.type == "message" for part in item.content)
said["responses"] = [text, text, answer.usage.input_tokens]
print(json.dumps(said))
