"""A name for each chat in the prefix cache of a server: the same at every turn, and guessed by nobody else."""

import hmac
import secrets
from contextlib import suppress

from localrun.base.files import write_whole
from localrun.base.lock import locked
from localrun.base.paths import writable_folder
from localrun.base.settings import LOCK

FILE_NAME = "chat-salt"
_BYTES = 32


def home_secret() -> bytes:
    """The secret of this home, made at first use; one for this process only where nothing can be written."""
    home = writable_folder("config")
    if home is not None:
        with suppress(OSError), locked(home / LOCK):
            path = home / FILE_NAME
            if not path.exists():
                write_whole(path, secrets.token_bytes(_BYTES))  # readable by its owner
            if len(found := path.read_bytes()) == _BYTES:
                return found
    return secrets.token_bytes(_BYTES)


def chat_salt(secret: bytes, chat_id: str) -> str:
    """The name of a chat; requests that belong to none have one of their own."""
    return hmac.digest(secret, chat_id.encode(errors="replace"), "sha256").hex()
