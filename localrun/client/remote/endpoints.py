"""Servers that answer instead of a model on this machine, in endpoints.toml, which only its owner can read.

A file of its own, since config.toml is what people show to others when they ask for help.
"""

import os
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from localrun.base.errors import NotFoundError, StorageError, UsageError
from localrun.base.files import write_whole
from localrun.base.lock import locked
from localrun.base.paths import folder, what_is_not_kept, writable_folder
from localrun.base.settings import LOCK
from localrun.base.toml_file import read_toml
from localrun.client.remote.endpoint import Endpoint, place_of
from localrun.client.remote.key_store import forget_key, store_key, stored_key

FILE_NAME = "endpoints.toml"
KEY_VARIABLE = "LOCALRUN_SERVER_KEY"  # of a server that was not added but named by its address


def read_endpoints() -> list[Endpoint]:
    """The servers that were added; UsageError for a file that cannot be read."""
    home = folder("config")
    path = home / FILE_NAME if home else None
    tables, _ = read_toml(path)
    return [_read(path, name, table) for name, table in tables.items()] if path else []


def write_endpoints(endpoints: Sequence[Endpoint]) -> Path:
    """Keep these instead of the ones before. StorageError where nothing can be written."""
    home = writable_folder("config")
    if home is None:
        raise StorageError(what_is_not_kept("config"), "set LOCALRUN_HOME to a folder you can write to")
    import tomlkit

    document = tomlkit.document()
    for endpoint in endpoints:
        table: dict[str, str | bool] = {
            name: getattr(endpoint, name) for name in ("url", "model", "key_env", "tokenizer")
        }
        if endpoint.in_keyring:
            table["keyring"] = True
        elif not endpoint.key_env:
            table["key"] = endpoint.key
        document[endpoint.name] = {key: value for key, value in table.items() if value}
    try:
        write_whole(home / FILE_NAME, tomlkit.dumps(document))  # readable by its owner
    except OSError as error:
        raise StorageError(f"the servers cannot be kept: {error.strerror}", "free some space") from None
    return home / FILE_NAME


def change_endpoint(before: Endpoint | None, after: Endpoint | None) -> None:
    """Replace one server by another; `before` None: add, `after` None: remove. Raises UsageError or StorageError."""
    home = writable_folder("config")
    if after is not None and after.in_keyring and after.key:
        store_key(after.name, after.key)
    try:
        with locked(home / LOCK) if home else nullcontext():
            others = [known for known in read_endpoints() if before is None or known.name != before.name]
            write_endpoints([*others, *([after] if after else [])])
        if before is not None and before.in_keyring and not (after and after.in_keyring and after.name == before.name):
            forget_key(before.name)
    except OSError as error:
        raise StorageError(f"the servers cannot be kept: {error.strerror}", "check its permissions") from None


def server_named(text: str) -> Endpoint:
    """An added server by its name, else the one at that address. Raises NotFoundError."""
    if "://" not in text:
        return added_server(text)
    known = next((endpoint for endpoint in read_endpoints() if endpoint.name == text), None)
    if known is not None:
        return known
    endpoint = Endpoint(text, text, os.environ.get(KEY_VARIABLE, ""))
    place_of(endpoint)
    return endpoint


def added_server(name: str) -> Endpoint:
    """A server that was added. Raises NotFoundError, which names those that there are."""
    known = {endpoint.name: endpoint for endpoint in read_endpoints()}
    if name in known:
        return known[name]
    hint = f"there {'are' if len(known) > 1 else 'is'} {', '.join(known)}; " if known else ""
    raise NotFoundError(f"there is no server {name}", f"{hint}an address looks like https://HOST:PORT/v1")


def check_endpoint(name: str, url: str, key: str, taken: Sequence[str] = (), model: str = "") -> Endpoint:
    """Parse an endpoint as typed. Raises ValueError with the reason."""
    name, url, key, model = name.strip(), url.strip().rstrip("/"), key.strip(), model.strip()
    if not name or not name.isprintable() or len(name) > 40:
        raise ValueError("a short name is needed")
    if name in taken:
        raise ValueError(f"there is a server called {name} already")
    if not model.isprintable():
        raise ValueError("the model's name has characters that no name has")
    endpoint = Endpoint(name, url, key, model)
    try:
        place_of(endpoint)
    except UsageError as error:
        raise ValueError(f"{error.message}: {error.hint}") from None
    return endpoint


def travels_in_the_clear(endpoint: Endpoint) -> bool:
    """Whether the network can read what is sent there, the key included."""
    place = place_of(endpoint)
    return place.origin[0] == "http" and not place.is_here


def masked(key: str) -> str:
    """A key masked for display: only its end is shown."""
    return f"••••{key[-4:]}" if len(key) >= 12 else "••••" if key else "none"


def _read(path: Path, name: str, table: object) -> Endpoint:
    values = table if isinstance(table, dict) else {}
    texts = [values.get(field, "") for field in ("url", "key", "model", "key_env", "tokenizer")]
    hint = 'it needs url = "https://host:8000/v1", and may have a key'
    if not all(isinstance(text, str) for text in texts):
        raise UsageError(f"{path}: [{name}] is no server", hint)
    url, key, model, key_env, tokenizer = texts
    in_keyring = values.get("keyring") is True
    if in_keyring:
        key = stored_key(name)
    elif key_env:
        key = os.environ.get(key_env, "")
    endpoint = Endpoint(name, url, key, model, key_env, in_keyring, tokenizer)
    try:
        place_of(endpoint)
    except UsageError as error:
        raise UsageError(f"{path}: [{name}]: {error.message}", error.hint) from None
    return endpoint
