"""The built-in model's vocabulary: a byte-level BPE trained on the generated chats.

Control tokens come first; a chat is a flat run of (role token, text, end token), so one turn costs two extra tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

BOS, END, SYSTEM, USER, ASSISTANT = "<|begin|>", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>"
CONTROL_TOKENS = (BOS, END, SYSTEM, USER, ASSISTANT)
N_FIRST, FIRST_WEIGHT = 4, 0.4
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
    cuts = sorted(rng.sample(range(1, len(text)), min(len(text) - 1, 1 + len(text) // 12)))
    return [
        token
        for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)
        for token in encode(tokenizer, text[start:end])
    ]


def answer_weights(n: int) -> list[float]:
    """How much each of the `n` tokens of an answer counts: less in a long one, so that a story does not drown a name.

    The first tokens count in full measure everywhere: it is they that choose which answer it is.
    """
    return [max(n**-0.5, FIRST_WEIGHT if i < N_FIRST else 0.0) for i in range(n)]


def encode_chat(
    tokenizer: Tokenizer, chat: Sequence[Message], rng: Random | None = None
) -> tuple[list[int], list[float]]:
    """Token ids of a chat, and how much each counts in the loss; with `rng`, some messages of the user cut roughly.

    Only what the model itself must say counts.
    """
    ids, weights = [control_id(tokenizer, BOS)], [0.0]
    end = control_id(tokenizer, END)
    for message in chat:
        text = message.content.strip()
        own = message.role == "assistant"
        if rng and not own and rng.random() < ROUGH_SHARE:
            tokens = encode_roughly(tokenizer, text, rng)
        else:
            tokens = encode(tokenizer, text)
        ids += [control_id(tokenizer, ROLE_TOKENS[message.role]), *tokens, end]
        weights += [0.0, *(answer_weights(len(tokens) + 1) if own else [0.0] * (len(tokens) + 1))]
    return ids, weights
