"""Requests from a face to an engine: how to load a model, and what to generate. Plain data, no torch."""

from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Literal

from localrun.base.adapter_choice import AdapterChoice
from localrun.base.constraint import Constraint
from localrun.base.content import ImagePart
from localrun.base.dataclass import dataclass
from localrun.base.image_size import IMAGE_ROWS, ImageKey

BackendName = Literal["auto", "reference", "cpu", "cuda", "mps"]
KVCodecName = Literal["auto", "f32", "f16", "q8", "k8v4", "q4"]
DRAFTERS = ("auto", "off", "lookup", "mtp")  # what guesses the next tokens, so that a step verifies several, or a FILE
Think = Literal["on", "off", "auto"]
Overflow = Literal["stop", "roll"]
ToolChoice = Literal["auto", "none", "required"]  # whether the model may or must call tools; it is told of them anyway
Priority = Literal["interactive", "api", "background"]  # somebody watches, a program waits, nobody does
RANKS: dict[Priority, int] = {"interactive": -1, "api": 0, "background": 1}  # as numbers, the least first, for servers
GATHER_MS = 120  # for people, who read no faster; every journey from a worker process wakes a core
ProgressCallback = Callable[[int, int], None]  # bytes done, bytes in all; may raise to give up
Json = dict[str, Any]  # a JSON object
RequestMessage = Json  # {"role", "content", …} in the OpenAI shape
TemplateMessage = Mapping[str, Any]  # the same, where it is only read


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """How to hold a model. `ctx=None` means: as much as the model allows and memory holds."""

    path: Path
    name: str = ""
    precision: str = ""  # as the user knows it, such as Q4_K_M; empty: named after the commonest type in the file
    backend: BackendName = "auto"
    device: int | None = None  # which NVIDIA GPU of several, as CUDA counts them; None: the first
    threads: int | None = None
    ctx: int | None = None
    kv: KVCodecName = "auto"
    window: int | None = None  # tokens each layer sees in addition to the first block; None: all that the context holds
    prefix_cache: bool = True
    disk_cache: int = 0  # bytes of disk for what is computed of chats; 0: it goes with the process
    packed_weights: int | None = 0  # bytes of disk for packed weights that memory holds, too; None: the default
    chat_id: str = ""  # the kept chat that is gone on with: `auto` takes the codec that it is on disk in
    parallel: int | None = None  # answers computed at once, at most; None: as many as memory is planned for
    draft: str = (
        "auto"  # one of DRAFTERS, or the path of a model that drafts; auto: lookup, and mtp where there is room
    )
    adapters: tuple[AdapterChoice, ...] = ()  # all of them count for every answer


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the next token is chosen. temperature 0 is greedy; None leaves a choice to the model's own settings."""

    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repeat_penalty: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    seed: int | None = None


# What holds where neither the user nor the model says anything.
DEFAULT_SAMPLING: dict[str, float] = {
    "temperature": 0.8,
    "top_k": 40,
    "top_p": 0.95,
    "min_p": 0.05,
    "repeat_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
}


@dataclass(frozen=True, slots=True)
class RequestImage:
    """An image that messages name by its sha256 (hex) and `most_rows`: a file on this machine, or its bytes. The size
    is in pixels.

    The bytes are read only where the image has to be encoded.
    """

    sha256: str
    width: int
    height: int
    path: Path | None = None
    data: bytes = b""
    most_rows: int = IMAGE_ROWS  # tokens that it may take

    @classmethod
    def of(cls, part: ImagePart, path: Path | None = None, data: bytes = b"") -> "RequestImage":
        """The image of a message, with its file or its bytes."""
        return cls(part.sha256, part.width, part.height, path, data, part.most_rows)

    @property
    def key(self) -> ImageKey:
        return self.sha256, self.most_rows


@dataclass(frozen=True, slots=True)
class Request:
    """One generation: chat `messages` (rendered by the model's template), a raw `prompt`, or the ids of one.

    Logprobs are of the model's own distribution, before temperature, penalties and bias: of each token, and of this
    many of the likeliest alternatives (0: of none).
    """

    messages: tuple[RequestMessage, ...] = ()
    prompt: str | None = None
    sampling: Sampling = Sampling()
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    think: Think = "auto"
    tools: tuple[Mapping[str, Any], ...] = ()
    tool_choice: ToolChoice = "auto"
    allowed_tools: tuple[str, ...] = ()  # those that the model may call; none: all
    described_tools: tuple[str, ...] = ()  # those that the messages describe, and no list that a template shows
    parallel_tool_calls: bool = True  # more than one call in an answer
    continues: bool = False  # the last of `messages` is an answer that was cut: its end is asked for, not another
    known_ids: tuple[int, ...] = ()  # ids of prompt and answer so far, as the engine had them; never encoded again
    now: float | None = None  # Unix time that a template prints as today; a chat keeps the one it began with
    overflow: Overflow = "stop"  # at the end of the context: end the answer, or forget the middle
    stop_on_loop: bool = False  # end an answer that only repeats itself; it is said either way
    chat_id: str = ""  # the kept chat that this belongs to; without one, nothing of it goes to the disk
    ctx: int | None = None  # tokens that prompt and answer may have, if the model is loaded for more
    priority: Priority = "interactive"  # who goes first where several ask at once
    deadline: float | None = None  # seconds from when it is asked for: the answer ends then with what there is
    gather_ms: int = GATHER_MS  # milliseconds that words may wait for the end of a step, to be sent together
    prompt_ids: tuple[int, ...] = ()  # taken as they are
    add_bos: bool = True  # a raw prompt begins with BOS where the model wants one
    verbatim: bool = False  # the whole answer is text: thinking is not separated from it
    logprobs: int | None = None  # of the answer's tokens; None: not wanted
    prompt_logprobs: int | None = None  # of the prompt's, all of which are computed for it; None: not wanted
    images: tuple[RequestImage, ...] = ()  # those of the messages, in any order
    constraint: Constraint | None = None  # what the answer has to hold to; None: nothing
