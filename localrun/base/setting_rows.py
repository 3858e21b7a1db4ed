"""The table of settings: what each may be, and what applies where it is not set."""

import os
from collections.abc import Callable
from typing import Any, get_args

from localrun.base.dataclass import dataclass
from localrun.base.parsers import context, folders, on_off, one_of, one_of_or_file, real, text, whole
from localrun.base.request import DRAFTERS, BackendName, KVCodecName

DISK_CACHE_GIB = 8


@dataclass(frozen=True, slots=True)
class Setting:
    """One row: `parse` takes a TOML value or a string and gives the value to use, or raises ValueError.

    `unset` says in words what applies where nothing is set.
    """

    help: str
    parse: Callable[[object], Any]
    unset: str = "as the model says"

    @property
    def choices(self) -> tuple[str, ...]:
        """The words it may be, where these are few."""
        return self.parse.names if isinstance(self.parse, one_of | on_off) else ()

    @property
    def placeholder(self) -> str:
        """The words for a synopsis; empty where any text will do."""
        return "|".join((*self.choices, *(("FILE",) if self.takes_file else ())))

    @property
    def takes_file(self) -> bool:
        return isinstance(self.parse, one_of_or_file)

    @property
    def range(self) -> str:
        """Accepted values in words; empty where any text will do."""
        if isinstance(self.parse, whole | real):
            return self.parse.range
        return ", ".join(self.choices) + (", or the path of a model" if self.takes_file else "")


SETTINGS: dict[str, Setting] = {
    "model": Setting("the model that answers when none is named", text, "builtin"),
    "folders": Setting(f"more folders with models, with {os.pathsep} between them", folders, "none"),
    "ctx": Setting("context length in tokens, or auto", context, "auto"),
    "kv": Setting("how the KV cache is stored", one_of(*get_args(KVCodecName)), "auto"),
    "window": Setting(
        "see only the first 64 tokens and the last N: the middle of a chat is lost", whole(64, 1 << 24), "off"
    ),
    "threads": Setting("CPU threads to compute with", whole(1, 1024), "one a core"),
    "backend": Setting("what to compute on", one_of(*get_args(BackendName)), "auto"),
    "device": Setting("which NVIDIA GPU, as `localrun doctor` numbers them", whole(0, 63), "0"),
    "isa": Setting("CPU instruction set of the native library", text, "the best this CPU has"),
    "draft": Setting(
        "guess tokens by lookup in the text, by a layer of the model (mtp) or by a FILE (a smaller model, an assistant,"
        " a drafter), and verify several in a step: answers stay the same",
        one_of_or_file(*DRAFTERS),
        "auto: lookup, and mtp where the model has it and there is room",
    ),
    "system": Setting("system message at the start of every chat", text, "none"),
    "max_tokens": Setting("longest answer in tokens", whole(1, 1 << 24), "to the end of the context"),
    "temperature": Setting("0 always takes the likeliest token", real(0, 2)),
    "top_k": Setting("choose among the k likeliest tokens; 0 is all", whole(0, 1 << 24)),
    "top_p": Setting("choose among the likeliest tokens of this mass", real(0, 1)),
    "min_p": Setting("drop tokens less likely than this share of the best", real(0, 1)),
    "repeat_penalty": Setting("divide the logits of tokens already seen; 1 is off", real(0.1, 10)),
    "presence_penalty": Setting("subtract once from tokens already used", real(-2, 2)),
    "frequency_penalty": Setting("subtract for every use of a token", real(-2, 2)),
    "seed": Setting("the same seed gives the same answer", whole(0, (1 << 64) - 1), "another one each time"),
    "stop_on_loop": Setting(
        "end an answer that only repeats itself", on_off(), "on in the app and on a terminal, off for scripts"
    ),
    "titles": Setting(
        "let the model name a chat once it has answered in it, while nothing else is to do; a server is asked once",
        on_off(),
        "on",
    ),
    "disk_cache": Setting(
        "GiB of disk for what was computed of chats, so that reopening one is quick; 0 keeps nothing",
        real(0, 1 << 20),
        str(DISK_CACHE_GIB),
    ),
    "packed_weights": Setting(
        "GiB of disk for weights as the kernels read them, so that a model starts sooner; 0 keeps only what memory does"
        " not hold",
        real(0, 1 << 20),
        "an eighth of what is free",
    ),
    "theme": Setting("colours of the app", text, "dark, or light where the terminal says so"),
    "notify": Setting(
        "tell the desktop when a long answer or download has ended", on_off(), "on, but not inside tmux or screen"
    ),
}
