"""The tokenizer.json of a safetensors folder, checked and built part by part.

Padding, truncation, dropout and the post-processor are left out: a chat uses none of them.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer

from localrun.formats.files import read_small, shown
from localrun.formats.json_files import parse_json
from localrun.text.folder_files import FolderFiles, added_around
from localrun.text.side_tokens import side_tokens
from localrun.text.specials import TokenType, find_specials
from localrun.text.tokenizer_errors import tokenizer_errors
from localrun.text.tokenizer_model import KINDS, bad_tokenizer, build_model, check_entries, model_kind, token_ids
from localrun.text.tokenizer_parts import check_parts, part_types
from localrun.text.vocabulary import Spelling, Vocabulary, is_byte_token

_MAX_BYTES = 64 << 20
_MAX_ITEMS = 4 << 20


def read_folder_tokenizer(folder: Path) -> tuple[Vocabulary, Tokenizer]:
    """Read the tokenizer of a folder.

    Raises ModelFileError UNSUPPORTED, BAD_TOKENIZER or BAD_CONFIG; NotFoundError without a tokenizer.json.
    """
    path = folder / "tokenizer.json"
    raw = read_small(path, _MAX_BYTES)
    check_entries(raw, path)
    data = parse_json(raw, path, "BAD_TOKENIZER", strict=True, max_items=_MAX_ITEMS)
    kind = model_kind(data.get("model"), path)
    index = token_ids(kind, data["model"], path)
    added = _added_tokens(data, path)
    check_parts(data.get("normalizer"), data.get("pre_tokenizer"), path)
    encoder = _encoder(kind, data, path)
    encoder.add_tokens([token for _, token in added])
    for i, token in added:
        if (place := encoder.token_to_id(token.content)) != i:
            raise bad_tokenizer(
                f"the added token {shown(token.content)} says it is number {i}, but is number {place}", path
            )
    files = FolderFiles(folder)
    more, wished = side_tokens(files, dict(added), files.notes)
    with tokenizer_errors(lambda reason: bad_tokenizer(f"tokens of other files cannot be added: {reason}", path)):
        more = _add(encoder, more, files)
    every = dict(sorted(encoder.get_added_tokens_decoder().items()))
    index |= {token.content: i for i, token in every.items()}
    moved = [(text, i) for text, i in wished.items() if index.get(text, i) != i]
    for text, i in moved[:1]:
        others = f", and so {len(moved) - 1:,} others" if len(moved) > 1 else ""
        files.notes.append(f"the token {shown(text)} has the id {index[text]:,}, not {i:,} as its file says{others}")
    sha256 = hashlib.sha256(raw + repr(more).encode() if more else raw).hexdigest()
    return _vocabulary(kind, index, every, data, files, sha256), encoder


def _add(encoder: Tokenizer, tokens: list[AddedToken], files: FolderFiles) -> list[AddedToken]:
    """Add the tokens that the weights have rows for, and return them; the others, often padding, become a note."""
    ids = encoder.get_added_tokens_decoder()
    free = max(encoder.get_vocab_size(with_added_tokens=False), max(ids, default=-1) + 1)
    room = len(tokens) if files.vocab_size is None else files.vocab_size - free
    added: list[AddedToken] = []
    beyond: list[AddedToken] = []
    for token in tokens:
        is_new = encoder.token_to_id(token.content) is None
        (beyond if is_new and room <= 0 else added).append(token)
        room -= is_new
    encoder.add_tokens(added)
    if beyond:
        texts = ", ".join(shown(token.content) for token in beyond[:3]) + (" …" if len(beyond) > 3 else "")
        files.notes.append(f"the weights have no rows for {texts}, which stays text")
    return added


def _added_tokens(data: Mapping[str, Any], path: Path) -> list[tuple[int, AddedToken]]:
    entries = data.get("added_tokens") or []
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise bad_tokenizer("the added tokens are not a list of objects", path)
    added = []
    for entry in entries:
        i, content = entry.get("id"), entry.get("content")
        if type(i) is not int or type(content) is not str or not content:
            raise bad_tokenizer("an added token lacks its number or its text", path)
        names = ("single_word", "lstrip", "rstrip", "normalized", "special")
        added.append((i, AddedToken(content, **{name: bool(entry.get(name, False)) for name in names})))
    if len({i for i, _ in added}) < len(added) or len({token.content for _, token in added}) < len(added):
        raise bad_tokenizer("two added tokens have the same number or text", path)
    return sorted(added, key=lambda item: item[0])


def _encoder(kind: str, data: Mapping[str, Any], path: Path) -> Tokenizer:
    empty = {"type": "BPE", "vocab": {}, "merges": []}
    parts = {name: data.get(name) for name in ("normalizer", "pre_tokenizer")}
    rest = dict.fromkeys(("truncation", "padding", "post_processor", "decoder"))
    with tokenizer_errors(lambda reason: bad_tokenizer(f"it cannot be built: {reason}", path)):
        encoder = Tokenizer.from_str(json.dumps({"version": "1.0", "added_tokens": [], "model": empty} | parts | rest))
        encoder.model = build_model(kind, data["model"], path)
        encoder.encode("a b\n1", add_special_tokens=False)
    return encoder


def _vocabulary(
    kind: str,
    index: dict[str, int],
    added: Mapping[int, AddedToken],
    data: Mapping[str, Any],
    files: FolderFiles,
    sha256: str,
) -> Vocabulary:
    tokens = [""] * (max(index.values()) + 1)
    types: list[int] = [TokenType.UNUSED] * len(tokens)
    falls_back = bool(data["model"].get("byte_fallback"))
    for text, i in index.items():
        tokens[i] = text
        types[i] = TokenType.BYTE if falls_back and is_byte_token(text) else TokenType.NORMAL
    for i, token in added.items():
        if types[i] != TokenType.BYTE:
            types[i] = TokenType.CONTROL if token.special else TokenType.USER_DEFINED

    first, last = added_around(data.get("post_processor"))
    starts, ends = ([i for i in files.ids(f"{role}_token_id") if 0 <= i < len(tokens)] for role in ("bos", "eos"))
    bos_id = index.get(files.token("bos_token") or first or "", next(iter(starts), None))
    eos_id = index.get(files.token("eos_token") or last or "", next(iter(ends), None))
    known = {text: i for text, i in index.items() if types[i] == TokenType.CONTROL}
    eog = find_specials(known, types, {} if eos_id is None else {"eos": eos_id}).eog_ids | set(ends)

    parts = part_types(data.get("decoder")) | part_types(data.get("pre_tokenizer"))
    spelling: Spelling = "byte_level" if "ByteLevel" in parts else "wordpiece" if kind == "WordPiece" else "metaspace"
    add_bos, add_eos = files.flag("add_bos_token"), files.flag("add_eos_token")
    return Vocabulary(
        kind=KINDS[kind],
        name=f"tokenizer.json/{kind}",
        tokens=tokens,
        types=types,
        spelling=spelling,
        bos_id=bos_id,
        eos_id=eos_id,
        eog_ids=frozenset(eog),
        add_bos=bos_id is not None and (first is not None if add_bos is None else add_bos),
        add_eos=eos_id is not None and (last is not None if add_eos is None else add_eos),
        space_prefix=_prefixes_space(data),
        sha256=sha256,
        notes=tuple(files.notes),
    )


def _prefixes_space(data: Mapping[str, Any]) -> bool:
    """Whether encoding puts a space before the text, which decoding removes."""
    text = json.dumps([data.get("normalizer"), data.get("pre_tokenizer")], ensure_ascii=False)
    legacy = '"add_prefix_space": true' in text and "prepend_scheme" not in text
    return '"prepend": "▁"' in text or legacy or any(f'"prepend_scheme": "{s}"' in text for s in ("always", "first"))
