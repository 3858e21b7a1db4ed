"""Tokens that only the files beside a tokenizer.json know: ids, kinds and stops as transformers has them."""

import json
from pathlib import Path
from typing import Any

import pytest
from localrun_testing.vocabularies import small_bpe, tokenizer_json

from localrun.base.errors import ModelFileError
from localrun.text.specials import TokenType
from localrun.text.tokenizer import tokenizer_from_folder


def token(text: str, **flags: bool) -> dict[str, Any]:
    return {"content": text, "lstrip": False, "rstrip": False, "normalized": False, "single_word": False, **flags}


WORDS = {"a": 0, "b": 1, "▁": 2}
OWN = {
    "added_tokens": [{"id": 3, **token("<x>", special=True)}],
    "model": {"type": "BPE", "vocab": WORDS, "merges": []},
}
FILES = {
    "bytes": small_bpe(**OWN),
    "sentencepiece": small_bpe(normalizer={"type": "Prepend", "prepend": "▁"}, **OWN),
}
IM = {"4": token("<|im_start|>", special=True), "5": token("<|im_end|>", special=True)}
CASES: dict[str, dict[str, Any]] = {
    "added_tokens_decoder": {"config": {"added_tokens_decoder": IM, "eos_token": "<|im_end|>"}},
    "not special": {"config": {"added_tokens_decoder": {"6": token("<think>", special=False)}}},
    "ids with a gap, not in order": {"config": {"added_tokens_decoder": {"90": token("<y>"), "80": token("<z>")}}},
    "a known one with other flags": {
        "config": {"added_tokens_decoder": {"3": token("<x>", special=False, lstrip=True), **IM}}
    },
    "a known one with another id": {"config": {"added_tokens_decoder": {"7": token("<x>", special=True)}}},
    "two with one text": {"config": {"added_tokens_decoder": {"6": token("<y>"), "7": token("<y>", special=True)}}},
    "a word of the vocabulary": {"config": {"added_tokens_decoder": {"1": token("b", special=True)}}},
    "roles only": {"config": {"eos_token": "<end>", "pad_token": "<pad>", "bos_token": "<s>"}},
    "a role that is not special": {
        "config": {"added_tokens_decoder": {"9": token("<e>", special=False)}, "eos_token": "<e>"}
    },
    "a role of this model": {"config": {"image_token": "<image>", "eos_token": "<x>"}},
    "more special ones": {"config": {"additional_special_tokens": ["<p>", "<q>"], "eos_token": "<p>"}},
    "more special ones with names": {"config": {"extra_special_tokens": {"boi_token": "<boi>"}}},
    "added_tokens.json": {"config": {"eos_token": "<e>"}, "added": {"<e>": 8, "<f>": 7}},
    "added_tokens.json beside a list": {"config": {"added_tokens_decoder": IM}, "added": {"<f>": 7}},
    "special_tokens_map.json": {"map": {"eos_token": token("<e>"), "bos_token": "<s>"}},
    "special_tokens_map.json goes first": {"config": {"eos_token": "<c>"}, "map": {"eos_token": "<e>"}},
    "special_tokens_map.json beside a list": {
        "config": {"added_tokens_decoder": IM, "eos_token": "<|im_end|>"},
        "map": {"eos_token": "<e>"},
    },
    "more special ones in the map": {"map": {"additional_special_tokens": ["<p>"]}},
    "all three": {
        "config": {"eos_token": "<e>", "additional_special_tokens": ["<p>"]},
        "map": {"eos_token": "<f>", "pad_token": "<p>"},
        "added": {"<f>": 4, "<g>": 5, "<p>": 6},
    },
}


def write(folder: Path, kind: str, case: dict[str, Any]) -> Path:
    config = {"tokenizer_class": "PreTrainedTokenizerFast", **case.get("config", {})}
    names = {"map": "special_tokens_map", "added": "added_tokens"}
    more = {names[name]: value for name, value in case.items() if name in names}
    return tokenizer_json(folder, json.loads(json.dumps(FILES[kind])), tokenizer_config=config, **more)


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("case", CASES)
def test_they_are_those_of_transformers(case: str, kind: str, tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    folder = write(tmp_path, kind, CASES[case])
    ours = tokenizer_from_folder(folder)
    theirs = AutoTokenizer.from_pretrained(folder)
    added = theirs.added_tokens_decoder
    kinds = {True: TokenType.CONTROL, False: TokenType.USER_DEFINED}
    assert {i: (ours.token_text(i), ours.vocabulary.types[i]) for i in added} == {
        i: (token.content, kinds[token.special]) for i, token in added.items()
    }
    assert ours.vocab_size == max(theirs.get_vocab().values()) + 1
    assert (ours.bos_id, ours.eos_id) == (theirs.bos_token_id, theirs.eos_token_id)
    assert ours.eos_id is None or ours.eos_id in ours.eog_ids
    text = "a" + " b ".join([token.content for token in added.values()]) + "b"
    assert ours.encode(text, special=True) == theirs.encode(text, add_special_tokens=False)


def test_an_unassigned_id_is_noted(tmp_path: Path) -> None:
    tokens = {str(90 + n): token(f"<{n}>") for n in range(3)}
    notes = tokenizer_from_folder(
        write(tmp_path, "bytes", {"config": {"added_tokens_decoder": tokens}})
    ).vocabulary.notes
    assert notes == ("the token '<0>' has the id 4, not 90 as its file says, and so 2 others",)


@pytest.mark.parametrize("sizes", [{"vocab_size": 5}, {"text_config": {"vocab_size": 5}}])
def test_a_token_without_a_row_in_the_weights_stays_text(sizes: dict[str, Any], tmp_path: Path) -> None:
    folder = write(tmp_path, "bytes", {"config": {"eos_token": "<e>", "pad_token": "<pad>"}})
    (folder / "config.json").write_text(json.dumps(sizes))
    ours = tokenizer_from_folder(folder)
    assert (ours.vocab_size, ours.eos_id, ours.vocabulary.notes) == (
        5,
        4,
        ("the weights have no rows for '<pad>', which stays text",),
    )


BROKEN = {
    "cut": b'{"<e>": 4',
    "a list": b"[1]",
    "empty": b"",
    "not UTF-8": b'{"\xff": 4}',
    "wrong types": b'{"<e>": "four", "eos_token": {"content": 7}}',
}


@pytest.mark.parametrize("how", BROKEN)
@pytest.mark.parametrize("name", ["special_tokens_map", "added_tokens"])
def test_a_file_that_can_be_done_without_costs_a_note(name: str, how: str, tmp_path: Path) -> None:
    whole = tokenizer_from_folder(write(tmp_path, "bytes", {}))
    (tmp_path / f"{name}.json").write_bytes(BROKEN[how])
    ours = tokenizer_from_folder(tmp_path)
    assert (ours.vocabulary.tokens, ours.eog_ids) == (whole.vocabulary.tokens, whole.eog_ids)
    assert [f"{name}.json" in note for note in ours.vocabulary.notes] == [True]


def test_a_byte_order_mark_is_no_damage(tmp_path: Path) -> None:
    folder = write(tmp_path, "bytes", {})
    (folder / "added_tokens.json").write_text('{"<e>": 4}', encoding="utf-8-sig")
    ours = tokenizer_from_folder(folder)
    assert (ours.encode("<e>"), ours.vocabulary.notes) == ([4], ())


@pytest.mark.parametrize(
    "config",
    [
        {"added_tokens_decoder": []},
        {"added_tokens_decoder": {"x": token("<e>")}},
        {"added_tokens_decoder": {"4": {}}},
        {"added_tokens_decoder": {"4": token("x" * 5000)}},
        {"eos_token": {"content": 7}},
        {"additional_special_tokens": "<e>"},
        {"additional_special_tokens": [7]},
    ],
)
def test_a_tokenizer_config_that_is_wrong_is_refused(config: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"tokenizer_config\.json"):
        tokenizer_from_folder(write(tmp_path, "bytes", {"config": config}))
