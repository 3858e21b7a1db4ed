"""Ask an engine what it is and can do, by pages that compute nothing."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from localrun.base.request import Json
from localrun.base.sanitize import clean
from localrun.client.remote.endpoint import Endpoint
from localrun.client.remote.engines import LLAMA_CPP, LOCALRUN, OLLAMA, SGLANG, VLLM
from localrun.client.remote.event_stream import count_of
from localrun.client.remote.models import OfferedModel
from localrun.client.remote.pages import root_json
from localrun.client.remote.profile import Ability, EngineProfile

ONE_BY_ONE = (OLLAMA, LOCALRUN)  # their models differ, so that each is asked for
MOST_ASKED = 16  # of these, as each is a request
_LONGEST = 80  # characters of a name
_TEXT: Json = {"type": "text", "text": "Hi"}
_WHITE = (  # a PNG of 64 by 64 pixels
    "iVBORw0KGgoAAAANSUhEUgAAAEAAAABACAIAAAAlC+aJAAAAS0lEQVR42u3PMQ0AAAwDoPo33UrYvQQckD4XAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB"
    "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAYHLAMpT0sIcNbcEAAAAAElFTkSuQmCC"
)
_IMAGE: Json = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{_WHITE}"}}
# As llama.cpp numbers its kinds of vocabularies.
_VOCABULARIES = {1: "SentencePiece", 2: "BPE", 3: "WordPiece", 4: "Unigram", 5: "RWKV", 6: "PLaMo 2"}


def probe(endpoint: Endpoint, model: OfferedModel) -> EngineProfile:
    """The profile of one model. Pages that are missing or guarded leave gaps in it, and are no error."""
    if model.engine == VLLM:
        found = _vllm(endpoint, model)
    elif model.engine == LLAMA_CPP:
        found = _llama_cpp(endpoint, model)
    elif model.engine == SGLANG:
        found = _sglang(endpoint)
    else:
        found = _ollama(endpoint, model)
    return replace(found, ctx=found.ctx or model.ctx)


def probe_all(endpoint: Endpoint, models: Sequence[OfferedModel]) -> list[EngineProfile]:
    """The profile of each model of a server. Where they differ, only the first ones are asked for."""
    profiles: list[EngineProfile] = []
    for model in models:
        first = profiles[0] if profiles else probe(endpoint, model)
        if not profiles:
            profiles.append(first)
        elif first.engine not in ONE_BY_ONE:
            profiles.append(replace(first, ctx=model.ctx))
        elif len(profiles) < MOST_ASKED:
            profiles.append(probe(endpoint, model))
        else:
            profiles.append(EngineProfile(first.engine, first.version, model.ctx))
    return profiles


def _vllm(endpoint: Endpoint, model: OfferedModel) -> EngineProfile:
    """vLLM shows its tokenizer with --enable-tokenizer-info-endpoint only, and the policy of its queue in its mode for
    developers; an adapter is a model with a parent. A model that sees is one for which it counts an image's tokens."""
    version = root_json(endpoint, "/version").get("version")
    tokenizer = root_json(endpoint, "/tokenizer_info").get("tokenizer_class")
    options = _inner(root_json(endpoint, "/server_info?config_format=json"), "vllm_config")
    policy = _inner(options, "scheduler_config").get("policy")
    abilities = _said(
        images=_counts(endpoint, model, _IMAGE) or (False if _counts(endpoint, model, _TEXT) else None),
        LoRA=bool(model.said.get("parent")) or None,
        priorities=policy == "priority" if isinstance(policy, str) else None,
    )
    return EngineProfile(VLLM, _word(version), 0, _word(tokenizer), abilities)


def _counts(endpoint: Endpoint, model: OfferedModel, part: Json) -> bool:
    """Whether vLLM counts the tokens of a message of this part."""
    asked = {"model": model.id, "messages": [{"role": "user", "content": [part]}]}
    return count_of(root_json(endpoint, "/tokenize", asked), "count") > 0


def _llama_cpp(endpoint: Endpoint, model: OfferedModel) -> EngineProfile:
    props = root_json(endpoint, "/props")
    meta = model.said.get("meta")
    abilities = _said(
        tools=_inner(props, "chat_template_caps").get("supports_tools"),
        images=_inner(props, "modalities").get("vision"),
    )
    # A list of models of an older version has the context of its training only.
    ctx = count_of(_inner(props, "default_generation_settings"), "n_ctx")
    tokenizer = _VOCABULARIES.get(count_of(meta, "vocab_type"), "")
    return EngineProfile(LLAMA_CPP, _word(props.get("build_info")), ctx, tokenizer, abilities)


def _sglang(endpoint: Endpoint) -> EngineProfile:
    """SGLang shows all its options, keys among them: only these are read."""
    options = root_json(endpoint, "/server_info") or root_json(endpoint, "/get_server_info")
    about = root_json(endpoint, "/model_info") or root_json(endpoint, "/get_model_info")
    if not options:
        return EngineProfile(SGLANG)
    abilities = _said(
        tools=_is_set(options, "tool_call_parser"),
        schemas=_is_set(options, "grammar_backend"),
        images=about.get("has_image_understanding"),
        reasoning=_is_set(options, "reasoning_parser") or None,  # without one, thoughts come within the answer
        LoRA=options.get("enable_lora"),
        embeddings=options.get("is_embedding"),
    )
    tokenizer = _word(options.get("tokenizer_path"))
    return EngineProfile(
        SGLANG, _word(options.get("version")), count_of(options, "context_length"), tokenizer, abilities
    )


def _ollama(endpoint: Endpoint, model: OfferedModel) -> EngineProfile:
    """Ollama, and localrun's own server, which shows the same pages; an unknown engine where there are none."""
    versions = root_json(endpoint, "/api/version")
    ours, theirs = _word(versions.get("localrun")), _word(versions.get("version"))
    if not theirs:
        return EngineProfile(model.engine)
    engine = LOCALRUN if ours else OLLAMA
    about = root_json(endpoint, "/api/show", {"model": model.id})
    listed = about.get("capabilities")
    known = listed if isinstance(listed, list) else None
    abilities = (
        {}
        if known is None
        else _said(
            tools="tools" in known,
            images="vision" in known,
            reasoning="thinking" in known,
            embeddings="embedding" in known,
        )
    )
    if ours:
        abilities |= {"priorities": True, "logprobs": True}
    tokenizer = _word(_inner(about, "model_info").get("tokenizer.ggml.model"))
    return EngineProfile(engine, ours or theirs, 0, tokenizer, abilities)


def _said(**answers: object) -> dict[Ability, bool]:
    """The abilities with a plain yes or no."""
    return {name: can for name, can in answers.items() if isinstance(can, bool)}  # type: ignore[misc]


def _is_set(options: Json, name: str) -> bool | None:
    """Whether an option has a value; None where it is not shown."""
    return options[name] not in (None, "", "none") if name in options else None


def _inner(values: Json, name: str) -> Json:
    inner = values.get(name)
    return inner if isinstance(inner, dict) else {}


def _word(value: Any) -> str:
    """A short text, cleaned; empty for any other value."""
    return clean(value, keep_newlines=False).strip()[:_LONGEST] if isinstance(value, str) else ""
