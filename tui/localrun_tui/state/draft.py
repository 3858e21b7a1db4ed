"""The draft on disk: what is in the editor survives the end of the app, of whatever kind."""

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from localrun.base.content import Content, ImagePart, TextPart, attachments_in, text_of, typed_text
from localrun.base.dataclass import dataclass
from localrun.base.files import write_whole
from localrun.base.paths import folder, writable_folder
from localrun.base.small_file import read_small
from localrun.chat.record_parts import content_without_parts, pack_parts, unpack_parts
from localrun_tui.state.process_mark import own_mark, runs_elsewhere

if TYPE_CHECKING:
    from localrun.chat.images import ImageShelf

_PREFIX, _SUFFIX = "draft-", ".json"  # around the mark of the process that writes it
_MAX_BYTES = 64 << 20


def keep_draft(content: Content) -> bool:
    """Keep a message that was not sent, files included, in the place of the one before; gives whether it is kept. An
    empty one removes it."""
    text = text_of(content)
    place = writable_folder("chats") if text.strip() else folder("chats")
    if place is None:
        return not text.strip()
    if not text.strip():
        _drop(_own_path(place))
        return True
    try:
        write_whole(_own_path(place), json.dumps({"text": text, "parts": pack_parts(content, text, "user")}))
    except OSError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class LeftDraft:
    """The messages that apps which have ended did not send, as one; no parts where there are none. `at` is when the
    last of them was written, in seconds since 1970; `gone` says what cannot be brought back."""

    content: Content = ()
    at: float = 0.0
    gone: tuple[str, ...] = ()


def take_draft(images: "Callable[[], ImageShelf]") -> LeftDraft:
    """The draft that was left, which is this app's from now on. Those of its images that `images` have not any more are
    left out."""
    place = folder("chats")
    if place is None or not place.is_dir():
        return LeftDraft()
    names = sorted(place.glob(f"{_PREFIX}*{_SUFFIX}"), key=_changed)
    left = [one for one in names if not runs_elsewhere(one.name.removeprefix(_PREFIX).removesuffix(_SUFFIX))]
    whole: Content = ()
    gone: list[str] = []
    for one in left:
        if content := _read(one):
            whole = together(whole, content) if whole else content
        else:
            gone.append("a draft that was damaged on the disk")
    lost = [part for part in whole if isinstance(part, ImagePart) and images().find(part) is None]
    gone += [f"{part.name}, whose copy was removed: attach it again" for part in lost]
    whole, at = tuple(part for part in whole if part not in lost), max(map(_changed, left), default=0.0)
    if not whole or keep_draft(whole):
        for one in left:
            if not whole or one != _own_path(place):
                _drop(one)
    return LeftDraft(whole, at, tuple(gone))


def together(first: Content, second: Content) -> Content:
    """Two messages as one, its files and images first."""
    typed = filter(None, map(typed_text, (first, second)))
    return (*attachments_in(first), *attachments_in(second), TextPart("\n\n".join(typed)))


def _own_path(place: Path) -> Path:
    return place / f"{_PREFIX}{own_mark()}{_SUFFIX}"


def _read(path: Path) -> Content:
    try:
        kept = json.loads(read_small(path, _MAX_BYTES))
        text = str(kept["text"])
        return unpack_parts(text, kept.get("parts")) or content_without_parts(text, "user")
    except (OSError, ValueError, RecursionError, LookupError, AttributeError, TypeError):
        return ()


def _changed(path: Path) -> float:
    with suppress(OSError):
        return path.stat().st_mtime
    return 0.0


def _drop(path: Path) -> None:
    with suppress(OSError):
        path.unlink(missing_ok=True)
