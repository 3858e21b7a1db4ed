"""Tokens that the files beside a tokenizer.json add, in the order and with the flags of transformers 5.

tokenizer_config.json lists them by id in added_tokens_decoder; without that list added_tokens.json has the ids, and
special_tokens_map.json overrides tokenizer_config.json. A token that a file names as `bos_token`, `image_token` and the
like is special, too. An id in a file is a wish: tokens get the next free ids.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from tokenizers import AddedToken

from localrun.base.errors import ModelFileError
from localrun.formats.files import bad_file
from localrun.formats.json_files import left_out
from localrun.text.folder_files import FolderFiles
from localrun.text.vocabulary import MAX_TOKEN_LENGTH

T = TypeVar("T")
_ROLES = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
_FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")
Tokens = dict[int, AddedToken]  # by the id that a file wishes for them
Special = tuple[dict[str, AddedToken], list[AddedToken]]  # by what they are for, and others


def side_tokens(files: FolderFiles, own: Tokens, notes: list[str]) -> tuple[list[AddedToken], dict[str, int]]:
    """Tokens to add after `own`, the added tokens of tokenizer.json, and the ids that files wish for by text.

    Raises ModelFileError BAD_CONFIG for a malformed tokenizer_config.json; other malformed files become notes.
    """
    config, config_path = files.tokenizer_config, files.folder / "tokenizer_config.json"
    named, extra = _special(config, config_path)
    if "added_tokens_decoder" in config:
        wished = _by_id(config["added_tokens_decoder"], config_path)
    else:
        map_path = files.folder / "special_tokens_map.json"
        nothing: Special = ({}, [])
        in_map = _optional(_special, files.special_tokens_map, map_path, notes, nothing)
        named, extra = named | in_map[0], extra or in_map[1]
        none: dict[str, int] = {}
        ids = _optional(_ids, files.added_tokens, files.folder / "added_tokens.json", notes, none)
        special = {token.content for token in named.values()}
        wished = {
            i: AddedToken(text, normalized=text not in special, special=text in special) for text, i in ids.items()
        }
        wished |= own
    roles = {token.content for token in named.values()}
    known = {repr(token) for token in own.values()}
    more = [_as_special(token, roles) for _, token in sorted(wished.items()) if repr(token) not in known]
    there = {token.content for token in (*own.values(), *more)}
    for token in (*(named[role] for role in sorted(named, key=_rank)), *extra):
        if token.content not in there:
            there.add(token.content)
            more.append(token)
    return more, {token.content: i for i, token in wished.items()}


def _rank(role: str) -> int:
    return _ROLES.index(role) if role in _ROLES else len(_ROLES)


def _special(values: Mapping[str, Any], path: Path) -> Special:
    return _named(values, path), _extra(values, path)


def _named(values: Mapping[str, Any], path: Path) -> dict[str, AddedToken]:
    """The special tokens by purpose: the usual roles, and others that are a plain text."""
    found = {}
    for key, value in values.items():
        is_role = key in _ROLES and isinstance(value, str | Mapping)
        if (is_role or (key.endswith("_token") and isinstance(value, str))) and value:
            found[key] = _token(value, path)
    return found


def _extra(config: Mapping[str, Any], path: Path) -> list[AddedToken]:
    values = config.get("extra_special_tokens") or config.get("additional_special_tokens") or []
    values = values.values() if isinstance(values, Mapping) else values
    if not isinstance(values, Iterable) or isinstance(values, str):
        raise bad_file("BAD_CONFIG", "the additional special tokens are not a list", path)
    return [_token(value, path) for value in values if value]


def _by_id(values: Any, path: Path) -> Tokens:
    if not isinstance(values, Mapping) or not all(_is_id(key) for key in values):
        raise bad_file("BAD_CONFIG", "added_tokens_decoder is not a map of token ids", path)
    return {int(key): _token(value, path, special=None) for key, value in values.items()}


def _is_id(key: str) -> bool:
    return key.isascii() and key.isdigit() and len(key) < 10


def _ids(values: Mapping[str, Any], path: Path) -> dict[str, int]:
    if not all(type(i) is int and i >= 0 and 0 < len(text) <= MAX_TOKEN_LENGTH for text, i in values.items()):
        raise bad_file("BAD_CONFIG", "this is not a map of tokens to their ids", path)
    return dict(values)


def _token(value: Any, path: Path, special: bool | None = True) -> AddedToken:
    """A token from its text, or from its text and flags; without `special` the flags say whether it is special."""
    content = value.get("content") if isinstance(value, Mapping) else value
    if not isinstance(content, str) or not 0 < len(content) <= MAX_TOKEN_LENGTH:
        raise bad_file("BAD_CONFIG", "an added token lacks its text, or that is too long", path)
    flags = {name: bool(value[name]) for name in _FLAGS if name in value} if isinstance(value, Mapping) else {}
    return AddedToken(content, **flags | ({} if special is None else {"special": special}))


def _as_special(token: AddedToken, roles: set[str]) -> AddedToken:
    if token.content in roles:
        token.special = True
    return token


def _optional(
    read: Callable[[Mapping[str, Any], Path], T], values: Mapping[str, Any], path: Path, notes: list[str], without: T
) -> T:
    """Apply `read` to an optional file; where it is malformed, return `without` and add a note."""
    try:
        return read(values, path)
    except ModelFileError as error:
        notes.append(left_out(error.message))
        return without
