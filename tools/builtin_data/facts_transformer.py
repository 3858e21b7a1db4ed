# ruff: noqa: E501 - patterns and sentences stand on one line each
"""What localrun's model can explain about the parts of a transformer."""

from __future__ import annotations

from tools.builtin_data.topic import Topic

TOPICS = (
    Topic(
        key="attention",
        names=(
            "attention",
            "self-attention",
            "an attention layer",
            "the attention mechanism",
            "attention in transformers",
            "attention in an llm",
            "[a query|queries] and [a key|keys]",
            "[queries|query], [keys|key] and [values|value]",
            "q, k and v",
            "scaled dot-product attention",
        ),
        patterns=(
            "what are [queries|query], [keys|key] and [values|value]?",
            "how does attention work?",
        ),
        answer=(
            "Attention is how a transformer looks back: for each new token, a query is compared with the keys of all earlier tokens, and their values are mixed by how well they match. Those keys and values are what the KV cache keeps.",
        ),
        short=("Attention lets each token look at all earlier tokens and take what it needs from them.",),
        simple=("It is like looking back over your notes and picking the lines that matter for the next word.",),
        weight=1.6,
    ),
    Topic(
        key="flash",
        names=(
            "flash attention",
            "flash attention",
            "FlashAttention",
            "flash-attention",
            "flash attn",
            "fa2",
            "flash attention 2",
            "a fused attention kernel",
        ),
        patterns=(
            "does localrun [use|have|support] flash attention?",
            "[is|why is] flash attention [faster|exact|better]?",
        ),
        pairs=(("flash attention", "[normal|standard|plain|ordinary] attention"),),
        answer=(
            "Flash attention computes attention piece by piece, so that the large table of scores never has to be stored. The result is the same, with less memory and fewer bytes moved; it helps most with long prompts. localrun's kernels do it.",
        ),
        short=("Flash attention computes exact attention piece by piece, without storing the large table of scores.",),
        weight=1.2,
    ),
    Topic(
        key="rope",
        names=(
            "RoPE",
            "rope",
            "RoPE",
            "a rope in an llm",
            "rope embeddings",
            "the rope base",
            "rope theta",
            "rope[ in a transformer| in attention|]",
            "rotary position embeddings",
            "rotary embeddings",
            "[position|positional] [encoding|embedding|embeddings|encodings]",
            "rope scaling",
            "yarn",
            "rope in llms",
            "rotary embeddings",
            "rotary position embedding",
            "rotary encoding",
        ),
        patterns=(
            "how does a model know the [order|position] of [the |][words|tokens]?",
            "how [are|does a model know] positions [encoded|]?",
        ),
        answer=(
            "RoPE (rotary position embedding) tells the model where a token stands: queries and keys are turned by an angle that grows with the position. So attention sees the distance between two tokens. RoPE scaling stretches the angles for longer contexts.",
        ),
        short=(
            "RoPE turns queries and keys by an angle that depends on the position, so the model knows the order of tokens.",
        ),
        weight=1.5,
    ),
    Topic(
        key="softmax",
        names=(
            "softmax",
            "the softmax",
            "softmax",
            "a softmax function",
            "softmax in attention",
            "the softmax function",
        ),
        answer=(
            "Softmax turns a list of scores into probabilities: all are positive and add up to 1, and larger scores get larger shares. Attention uses it to weigh earlier tokens, and sampling uses it to pick the next one.",
        ),
        weight=1.4,
    ),
    Topic(
        key="embedding",
        names=(
            "an embedding",
            "embeddings",
            "embedding",
            "embedding vectors",
            "token embeddings",
            "the embedding layer",
            "word vectors",
            "a vector of a token",
        ),
        bare=("an embedding", "embeddings"),
        answer=(
            "An embedding is a list of numbers, a vector, that stands for a token. Tokens of similar meaning have similar vectors. It is the first thing a model does with your text: look up the vector of each token and send it through the layers.",
        ),
        weight=1.6,
    ),
    Topic(
        key="transformer",
        names=(
            "a transformer",
            "transformers",
            "the transformer architecture",
            "a layer",
            "layers",
            "a transformer layer",
            "a layer of a [transformer|model]",
            "[the |]layers of a model",
            "a transformer block",
            "the feed-forward network",
            "hidden size",
        ),
        patterns=("how many layers [does a model have|has a model|do you have]?", "what happens in a layer?"),
        answer=(
            "A transformer is a stack of layers, often 28 to 80. Each layer first looks back at earlier tokens (attention) and then works on each token by itself (a feed-forward network). Every token passes through all layers before the next one can be chosen.",
        ),
        weight=1.4,
    ),
    Topic(
        key="logits",
        names=("logits", "a logit", "the logits", "logprobs", "[the |]scores of the next token", "logit bias"),
        answer=(
            "Logits are the scores that a model gives to every token of its vocabulary before it picks the next one. Softmax turns them into probabilities, and sampling chooses from those.",
        ),
        weight=1.2,
    ),
)
