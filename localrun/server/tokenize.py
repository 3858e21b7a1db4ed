"""POST /tokenize and /detokenize, GET /tokenizer_info: the tokenizer of the model, by vLLM's names."""

import asyncio
from dataclasses import replace

from localrun.base.request import Json, Request
from localrun.base.views import PromptView
from localrun.server.openai.chat import continues, read_messages
from localrun.server.openai.completions import is_ids
from localrun.server.openai.fields import think
from localrun.server.refusal import Refusal
from localrun.server.request.images import with_images
from localrun.server.request.json_body import Body
from localrun.server.service import Service


async def tokenize(service: Service, body: Body) -> Json:
    """The ids of a text (`prompt`, or llama.cpp's `content`), or of a chat as its template renders it; of any length.

    Raises Refusal.
    """
    if "messages" in body:
        tools = tuple(tool.values for tool in body.objects("tools"))
        messages = read_messages(body)
        begun = continues(body, messages)
        request = with_images(Request(messages=messages, tools=tools, think=think(body), continues=begun))
    elif "prompt" in body:
        request = Request(prompt=body.text("prompt"), add_bos=body.flag("add_special_tokens", True))
    elif "content" in body:
        request = Request(prompt=body.text("content"), add_bos=body.flag("add_special"))
    else:
        raise body.wrong("prompt", "a text is needed, or messages")
    view, ctx = await _read(service, body, replace(request, overflow="roll"))
    texts = {"token_strs": list(view.pieces)} if body.flag("return_token_strs") else {}
    return {"count": len(view.ids), "max_model_len": ctx, "tokens": list(view.ids), **texts}


async def detokenize(service: Service, body: Body) -> Json:
    """The text of `tokens`, control tokens included. Raises Refusal."""
    tokens = body.values.get("tokens")
    if tokens == []:
        return {"prompt": "", "content": ""}
    if not isinstance(tokens, list) or not is_ids(tokens):
        raise body.wrong("tokens", "a list of token ids is needed")
    view, _ = await _read(service, body, Request(prompt_ids=tuple(tokens)))
    return {"prompt": view.text, "content": view.text}


async def tokenizer_info(service: Service) -> Json:
    """Special tokens of the loaded model. Raises Refusal."""
    async with service.models.use("") as client:
        info = client.info
    return {
        "tokenizer_class": "localrun",
        "bos_token": info.bos_token or None,
        "eos_token": info.eos_token or None,
        "model_max_length": info.ctx,
    }


async def _read(service: Service, body: Body, request: Request) -> tuple[PromptView, int]:
    """Tokenize a request; gives the context of the model, too."""
    async with service.models.use(body.text("model")) as client:
        view = await asyncio.to_thread(client.preview, request, True)
        if view is None:
            raise Refusal(503, "the engine was just restarted and cannot tokenize yet", "engine_busy", retry_after=1)
        return view, client.info.ctx
