"""The draft at an unexpected end of the app, for the next start."""

import json
from pathlib import Path

from localrun.base.content import Content, text_of
from localrun.base.files import write_whole
from localrun.base.paths import folder, writable_folder
from localrun.base.small_file import read_small
from localrun.chat.record_parts import content_without_parts, pack_parts, unpack_parts

_NAME = "draft.json"
_MAX_BYTES = 64 << 20


def keep_draft(content: Content) -> bool:
    """Keep a message that was not sent, files included; gives whether it is kept."""
    place, text = writable_folder("chats"), text_of(content)
    if place is None:
        return False
    try:
        write_whole(place / _NAME, json.dumps({"text": text, "parts": pack_parts(content, text, "user")}))
    except OSError:
        return False
    return True


def take_draft() -> Content:
    """The message that was kept, once; no parts where there is none."""
    path = (folder("chats") or Path()) / _NAME
    try:
        kept = json.loads(read_small(path, _MAX_BYTES))
        path.unlink()
        text = str(kept["text"])
        return unpack_parts(text, kept.get("parts")) or content_without_parts(text, "user")
    except (OSError, ValueError, RecursionError, LookupError, AttributeError, TypeError):
        return ()
