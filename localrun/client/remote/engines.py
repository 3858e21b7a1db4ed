"""Engines behind the OpenAI protocol, and the fields of their own that they take."""

from dataclasses import field

from localrun.base.dataclass import dataclass
from localrun.base.request import Json

_CONTINUES: Json = {"continue_final_message": True, "add_generation_prompt": False}


@dataclass(frozen=True, slots=True)
class RemoteEngine:
    """`streaming` are fields for a streamed answer; `continues` those that ask for the end of the last message. By the
    field `chat` its cache tells chats apart. `ranks`: it takes `priority`, of which the least goes first."""

    name: str = ""
    streaming: Json = field(default_factory=dict)
    continues: Json | None = None
    chat: str = ""
    efforts: bool = False
    ranks: bool = False
    counts_by: str = ""


UNKNOWN = RemoteEngine()
# vLLM counts the tokens of an answer while it streams, so that one which is stopped is counted, too; llama.cpp tells
# how far it has read the prompt.
VLLM = RemoteEngine(
    "vLLM",
    {"stream_options": {"include_usage": True, "continuous_usage_stats": True}},
    _CONTINUES,
    "cache_salt",
    efforts=True,
    ranks=True,
    counts_by="--enable-prompt-tokens-details",
)
LLAMA_CPP = RemoteEngine("llama.cpp", {"return_progress": True}, _CONTINUES)
SGLANG = RemoteEngine("SGLang", chat="cache_salt", efforts=True, counts_by="--enable-cache-report")
OLLAMA = RemoteEngine("Ollama")
LOCALRUN = RemoteEngine("localrun", continues=_CONTINUES, chat="prompt_cache_key", ranks=True)

_BY_OWNER = {"vllm": VLLM, "llamacpp": LLAMA_CPP, "sglang": SGLANG}


def engine_of(owner: object) -> RemoteEngine:
    """The engine that `owned_by` of a model names; UNKNOWN for any other value."""
    return _BY_OWNER.get(owner, UNKNOWN) if isinstance(owner, str) else UNKNOWN
