"""`localrun cache`: list and clear the KV cache, packed weights and stored responses on disk."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from localrun.base.dataclass import dataclass
from localrun.base.errors import LocalrunError, NotFoundError, UsageError
from localrun.base.paths import folder
from localrun.base.settings import read_settings
from localrun.base.units import gib
from localrun.chat.export import iso_date
from localrun.chat.journal import ChatStore, find_chat
from localrun.cli.chats import when
from localrun.cli.completion import complete_chat, complete_model
from localrun.cli.console import agreed, can_ask, note, write, write_json, write_table
from localrun.cli.groups import JsonSwitch, command, switch
from localrun.server.responses.stored import FOLDER as RESPONSES
from localrun.server.responses.stored import DiskShelf, ShelfFigures
from localrun.storage.block_files import DISK_FOLDER
from localrun.storage.erase import erasable_bytes, erase_all, erase_chats, erase_fingerprints
from localrun.storage.inventory import KeptChat, KeptModel, inventory
from localrun.storage.label import Label
from localrun.storage.programs import API_CHATS, programs
from localrun.storage.weight_store import PackedModel, WeightStore, erase_packed, total_bytes

cache = typer.Typer(name="cache", help="KV cache, packed weights and stored responses on disk: list, clear.")

_OLD = "(of an earlier version)"


def list_cache(json: JsonSwitch = False) -> int:
    """List the disk cache by model and chat, with sizes and dates of last use."""
    models, packed, responses = inventory(_root()), _packed().models(), _responses().figures()
    titles, names = _titles(), programs()
    if json:
        stored = [_responses_row(responses)] if responses.n_responses else []
        write_json([*(_as_row(model, titles, names) for model in models), *map(_packed_row, packed), *stored])
        return 0
    for model in models:
        write(f"{_name(model)}  {gib(model.nbytes)}, used {when(model.last_used)}\n")
        if model.chats:
            write_table([_columns(chat, titles, names, model.nbytes) for chat in model.chats])
    for one in packed:
        name = "  ".join(part for part in (one.label.model or _OLD, one.label.precision) if part)
        write(f"{name}  {gib(one.nbytes)} of packed weights, used {when(one.last_used)}\n")
    if responses.n_responses:
        used = f"{gib(responses.nbytes)}, used {when(responses.last_used)}"
        write(f"{responses.n_responses:,} stored responses  {used}\n")
        note("`localrun cache clear --api` removes stored responses")
    total, budget = sum(model.nbytes for model in models), read_settings().disk_cache_bytes
    note(f"{gib(total)} of {gib(budget)} of chats (`localrun config disk_cache N` changes how many GiB)")
    if packed:
        most = _packed().limit(read_settings().packed_weights_bytes)
        note(f"{gib(total_bytes(packed))} of {gib(most)} of packed weights (`localrun config packed_weights N`)")
    return 0


def clear_cache(
    chat: Annotated[
        str | None,
        typer.Option(
            "--chat",
            metavar="CHAT",
            help="only the part of this chat that no other chat shares",
            autocompletion=complete_chat,
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "-m", "--model", metavar="MODEL", help="only the cache of this model", autocompletion=complete_model
        ),
    ] = None,
    api: Annotated[
        bool, switch("--api", "only the cache of programs that use the server, with stored responses")
    ] = False,
    yes: Annotated[bool, switch("--yes", "do not ask")] = False,
    json: JsonSwitch = False,
) -> int:
    """Remove the cache on disk: all of it, or that of one chat, one model, or programs.

    Chats stay; they are computed again when they are reopened. Packed weights go with all or with their model; the next
    load packs them again and starts more slowly.
    """
    if (chat is not None) + (model is not None) + api > 1:
        raise UsageError("--chat, --model and --api exclude each other", "run the command twice")
    root = _root()
    removal = _removal(root, inventory(root), chat, model, api)
    question = f"the cache {removal.what}: {gib(removal.nbytes)}"
    if not yes and removal.nbytes:
        if not can_ask():
            raise UsageError(f"cannot ask without a terminal: {question}", "add --yes")
        if not agreed(f"Remove {question}?"):
            note("nothing was removed")
            return 0
    try:
        removed = removal.work()
    except OSError as error:
        raise LocalrunError(f"{error.filename} cannot be removed: {error.strerror}", "check its permissions") from None
    if json:
        write_json({"freed": removed})
    note(f"removed {gib(removed)} of the cache {removal.what}")
    return 0


@dataclass(frozen=True, slots=True)
class CacheRemoval:
    """A planned removal.

    `what` names it ("of all models and chats"); `work` removes it and returns the bytes.
    """

    what: str
    nbytes: int
    work: Callable[[], int]


def _removal(root: Path, models: list[KeptModel], chat: str | None, model: str | None, api: bool) -> CacheRemoval:
    """Plan the removal of one chat, one model, the chats of programs, or everything."""
    if api:
        names = {one.chat for kept in models for one in kept.chats if one.chat.startswith(API_CHATS)}
        shelf, erase = _responses(), partial(erase_chats, root, sorted(names), for_good=False)
        stored = shelf.figures()
        what = f"for programs, with {stored.n_responses:,} stored responses" if stored.n_responses else "for programs"
        return CacheRemoval(what, erasable_bytes(root, names) + stored.nbytes, lambda: erase() + shelf.clear())
    if chat is not None:
        name = _find_chat(models, chat)
        work = partial(erase_chats, root, [name], for_good=False)
        return CacheRemoval(f"of the chat {_titles().get(name) or name}", erasable_bytes(root, {name}), work)
    if model is not None:
        packed = [one for one in _packed().models() if _is_named(one.label, model)]
        found = _find_model(models, model, packed)
        nbytes = sum(one.nbytes for one in found) + total_bytes(packed)
        prints = [one.fingerprint for one in found]
        return CacheRemoval(f"of {model}", nbytes, lambda: erase_fingerprints(root, prints) + erase_packed(packed))
    packed = _packed().models()
    nbytes = sum(one.nbytes for one in models) + total_bytes(packed)
    return CacheRemoval("of all models and chats", nbytes, lambda: erase_all(root) + erase_packed(packed))


def _root() -> Path:
    home = folder("cache")
    if home is None:
        raise NotFoundError("there is no cache: localrun has no home folder", "set HOME or LOCALRUN_HOME")
    return home / DISK_FOLDER


def _packed() -> WeightStore:
    return WeightStore(_root().parent)


def _responses() -> DiskShelf:
    return DiskShelf(_root().parent / RESPONSES)


def _titles() -> dict[str, str]:
    return {chat.id: chat.title for chat in ChatStore(folder("chats")).summaries()}


def _find_chat(models: list[KeptModel], wanted: str) -> str:
    """Id of a chat in the cache (its file may be gone), or of a chat that `history` finds."""
    if any(chat.chat == wanted for model in models for chat in model.chats):
        return wanted
    return find_chat(ChatStore(folder("chats")), wanted).id


def _is_named(label: Label, wanted: str) -> bool:
    return wanted.lower() in (label.model.lower(), label.path.lower())


def _find_model(models: list[KeptModel], wanted: str, packed: list[PackedModel]) -> list[KeptModel]:
    """Everything in the cache of one model, in any KV codec."""
    found = [one for one in models if _is_named(one.label, wanted)]
    if not found and not packed:
        names = ", ".join(sorted({one.label.model for one in models if one.label.model}))
        raise NotFoundError(f"the cache has nothing of {wanted}", f"the cache has {names}" if names else "")
    return found


def _name(model: KeptModel) -> str:
    label = model.label
    return "  ".join(part for part in (label.model or _OLD, label.precision, label.codec) if part)


def _columns(chat: KeptChat, titles: dict[str, str], names: dict[str, str], largest: int) -> tuple[str, ...]:
    """The cells of a chat, sizes in the unit of its model's."""
    shared = f"{gib(chat.shared_bytes, largest)} shared" if chat.shared_bytes else ""
    title = titles.get(chat.chat) or names.get(chat.chat) or ""
    return "", gib(chat.nbytes, largest), shared, when(chat.last_used), title, chat.chat


def _packed_row(model: PackedModel) -> dict[str, Any]:
    """The fields of `cache list --json` for packed weights: one block is one matrix."""
    return {
        "model": model.label.model,
        "path": model.label.path,
        "precision": model.label.precision,
        "kv_codec": "",
        "bytes": model.nbytes,
        "blocks": model.n_files,
        "used": iso_date(model.last_used),
        "chats": [],
    }


def _responses_row(stored: ShelfFigures) -> dict[str, Any]:
    """The fields of `cache list --json` for stored responses: one block is one response."""
    return {
        "model": "",
        "path": str(_root().parent / RESPONSES),
        "precision": "",
        "kv_codec": "",
        "bytes": stored.nbytes,
        "blocks": stored.n_responses,
        "used": iso_date(stored.last_used),
        "chats": [],
    }


def _as_row(model: KeptModel, titles: dict[str, str], names: dict[str, str]) -> dict[str, Any]:
    """The fields of `cache list --json`."""
    return {
        "model": model.label.model,
        "path": model.label.path,
        "precision": model.label.precision,
        "kv_codec": model.label.codec,
        "bytes": model.nbytes,
        "blocks": model.n_blocks,
        "used": iso_date(model.last_used),
        "chats": [
            {
                "chat": chat.chat,
                "title": titles.get(chat.chat, ""),
                "program": names.get(chat.chat, ""),
                "bytes": chat.nbytes,
                "shared_bytes": chat.shared_bytes,
                "used": iso_date(chat.last_used),
            }
            for chat in model.chats
        ],
    }


for name, function in (("list", list_cache), ("clear", clear_cache)):
    cache.command(name)(command(function))
