"""The built-in model's vocabulary: a byte-level BPE trained on the generated chats.

Control tokens come first; a chat is a flat run of (role token, text, end token), so one turn costs two extra tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

BOS, END, SYSTEM, USER, ASSISTANT = "<|begin|>", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>"
CONTROL_TOKENS = (BOS, END, SYSTEM, USER, ASSISTANT)
N_FIRST, FIRST_WEIGHT = 4, 0.4
DECISIVE_WEIGHT = 0.6
WORD = re.compile(r"[^\W_]+")
ROUGH_SHARE = 0.1  # of what users say in training
ROLE_TOKENS = {"system": SYSTEM, "user": USER, "assistant": ASSISTANT}

# The split that GGUF names "qwen2": every digit is a token of its own, so sums are spelt digit by digit.
PRE = "qwen2"
SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

CHAT_TEMPLATE = (
    "{{ bos_token }}"
    "{%- for message in messages -%}"
    "{%- if message['role'] not in ['system', 'user', 'assistant'] -%}"
    "{{ raise_exception('The roles are system, user and assistant.') }}"
    "{%- endif -%}"
    "{{ '<|' + message['role'] + '|>' + (message['content'] | trim) + '<|end|>' }}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{ '<|assistant|>' }}{%- endif -%}"
)


@dataclass(frozen=True)
class Message:
    role: str
    content: str


Chat = tuple[Message, ...]


def train_tokenizer(texts: Iterable[str], vocab_size: int) -> Tokenizer:
    """Learn a byte-level BPE of exactly `vocab_size` ids (fewer only if the text is too poor to fill it)."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLIT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[AddedToken(token, special=True) for token in CONTROL_TOKENS],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def load_tokenizer(path: Path) -> Tokenizer:
    return Tokenizer.from_file(str(path))


def control_id(tokenizer: Tokenizer, token: str) -> int:
    """The id of a control token, which every vocabulary made here has."""
    found = tokenizer.token_to_id(token)
    assert found is not None, token
    return found


def render(chat: Sequence[Message], add_generation_prompt: bool = False) -> str:
    """The text CHAT_TEMPLATE gives for this chat (a test holds the two equal)."""
    turns = "".join(f"{ROLE_TOKENS[m.role]}{m.content.strip()}{END}" for m in chat)
    return BOS + turns + (ASSISTANT if add_generation_prompt else "")


def encode(tokenizer: Tokenizer, text: str) -> list[int]:
    ids: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
    return ids


def encode_roughly(tokenizer: Tokenizer, text: str, rng: Random) -> list[int]:
    """The same text in other tokens: cut at a few places, so that a word is also known by its parts."""
    places = range(1, len(text))
    cuts = sorted(rng.sample(places, min(len(places), 1 + len(text) // 12)))
    return [
        token
        for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)
        for token in encode(tokenizer, text[start:end])
    ]


def answer_weights(text: str, spans: Sequence[tuple[int, int]], told: Set[str]) -> list[float]:
    """How much each token of an answer counts, given the span of each in `text`; one more, for the end token.

    A token counts less in a long answer, so that a story does not drown a name. But the first tokens count in full
    measure everywhere, for they choose which answer it is. So do digits, and the words that the user has `told` (in
    lower case), for they are what an answer gets right or wrong; common words, which are one token, are left out.
    """
    weights = [(len(spans) + 1) ** -0.5] * (len(spans) + 1)
    words = (word for word in WORD.finditer(text) if word[0].isdecimal() or word[0].lower() in told)
    taken = {i for word in words for i in range(*word.span())}
    for i, (start, stop) in enumerate(spans):
        piece = text[start:stop].strip()
        common = piece.islower() and piece in told
        if not common and not taken.isdisjoint(range(start, stop)):
            weights[i] = max(weights[i], DECISIVE_WEIGHT)
        elif i < N_FIRST:
            weights[i] = max(weights[i], FIRST_WEIGHT)
    return weights


def encode_chat(
    tokenizer: Tokenizer, chat: Sequence[Message], rng: Random | None = None
) -> tuple[list[int], list[float]]:
    """Token ids of a chat, and how much each counts in the loss; with `rng`, some messages of the user cut roughly.

    Only what the model itself must say counts.
    """
    ids, weights = [control_id(tokenizer, BOS)], [0.0]
    end = control_id(tokenizer, END)
    told: set[str] = set()
    for message in chat:
        text = message.content.strip()
        ids.append(control_id(tokenizer, ROLE_TOKENS[message.role]))
        if message.role == "assistant":
            encoding = tokenizer.encode(text, add_special_tokens=False)
            tokens: list[int] = encoding.ids
            counts = answer_weights(text, encoding.offsets, told)
        else:
            told.update(WORD.findall(text.lower()))
            tokens = (
                encode_roughly(tokenizer, text, rng) if rng and rng.random() < ROUGH_SHARE else encode(tokenizer, text)
            )
            counts = [0.0] * (len(tokens) + 1)
        ids += [*tokens, end]
        weights += [0.0, *counts]
    return ids, weights
