"""Engines that say their name in their list of models, and the fields of their own that they take."""

from dataclasses import dataclass, field

from localrun.base.request import Json

_CONTINUES: Json = {"continue_final_message": True, "add_generation_prompt": False}


@dataclass(frozen=True, slots=True)
class RemoteEngine:
    """`streaming` are fields for a streamed answer; `continues` those that ask for the end of the last message."""

    name: str = ""
    streaming: Json = field(default_factory=dict)
    continues: Json | None = None


UNKNOWN = RemoteEngine()

# By `owned_by` of its models. vLLM counts the tokens of an answer while it streams, so that one which is stopped is
# counted, too; llama.cpp tells how far it has read the prompt.
_ENGINES = {
    "vllm": RemoteEngine(
        "vLLM", {"stream_options": {"include_usage": True, "continuous_usage_stats": True}}, _CONTINUES
    ),
    "llamacpp": RemoteEngine("llama.cpp", {"return_progress": True}, _CONTINUES),
}


def engine_of(owner: object) -> RemoteEngine:
    """The engine that `owned_by` of a model names; UNKNOWN for any other value."""
    return _ENGINES.get(owner, UNKNOWN) if isinstance(owner, str) else UNKNOWN
