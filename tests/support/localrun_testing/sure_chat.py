"""Chats of questions that the built-in model is sure of: no rounding changes an answer."""

from localrun.base.request import RequestMessage

SURE_CHAT: tuple[RequestMessage, ...] = tuple(
    {"role": role, "content": text}
    for role, text in (
        ("user", "What is a KV cache?"),
        ("assistant", "The KV cache keeps the attention keys and values of all earlier tokens. " * 4),
        ("user", "Why is the second token faster than the first?"),
        ("assistant", "Because the first token pays for reading your prompt."),
        ("user", "How do I download a model?"),
    )
)
# Ends a few tokens before a block does: an answer goes on in the next one.
NEAR_A_BLOCK_END: tuple[RequestMessage, ...] = (
    SURE_CHAT[0],
    {"role": "assistant", "content": "The KV cache keeps the attention keys and values of all earlier tokens. " * 2},
    SURE_CHAT[2],
)
