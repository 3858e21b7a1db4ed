# ruff: noqa: E501 - patterns and sentences stand on one line each
"""What localrun's model can explain about a model's weights: their bits, their files, their number, and what fits."""

from __future__ import annotations

from tools.builtin_data.topic import Topic

TOPICS = (
    Topic(
        key="quantization",
        names=(
            "quanti[z|s]ation",
            "quantization",
            "a quanti[z|s]ed model",
            "quantized models",
            "quanti[z|s]ing",
            "[a |]quant",
            "quants",
            "quantized",
            "[weight|model] quanti[z|s]ation",
            "quantization of [the |]weights",
            "[4-bit|8-bit|int4|int8] quantization",
            "quantized weights",
        ),
        bare=("quantization", "the weights"),
        tasks=("[quantize|compress|shrink] [a model|the weights]", "make a model smaller"),
        patterns=(
            "why [quantize|quantise|are models quantized|do people quantize models|should i quantize]?",
            "does [quantization|quantizing|quantising] [hurt|lower|reduce|cost] quality?",
            "does [quantization|quantizing|quantising] [also |][make it|make a model] [faster|quicker|smaller]?",
            "how [much|many] quality [do i lose|is lost|does one lose] [by|with] [quantization|quantizing]?",
            "how does quantization [save memory|make it faster|work]?",
        ),
        answer=(
            "Quantization stores a model's weights with fewer bits: 8 or 4 instead of 16. The file shrinks, and decode gets faster because fewer bytes are read per token. The price is a small loss of quality: hardly visible at 8 bits, small at 4, noticeable below.",
        ),
        short=(
            "Quantization stores the weights with fewer bits, so a model is smaller and faster at a small cost in quality.",
        ),
        more=(
            "In practice, weights are grouped into blocks, and each block keeps a scale and small integers. Q8_0, for example, uses blocks of 32 weights with one 16-bit scale: 8.5 bits per weight. `localrun fit` shows what each precision costs in memory.",
        ),
        simple=(
            "It is like rounding prices to whole numbers: you lose a little detail, and the list becomes much shorter.",
        ),
        example=("A model of 8 billion weights takes 16 GB in 16 bits, 8.5 GB as Q8_0 and about 4.9 GB as Q4_K_M.",),
        weight=2.2,
    ),
    Topic(
        key="precision",
        names=(
            "--precision",
            "the precision[ of a model|]",
            "precision",
            "[int8|int4|q4|q8|q8_0|8-bit|4-bit|8 bit|4 bit]",
            "int4",
            "int8",
            "q8_0",
            "q4",
            "q8",
            "8-bit weights",
            "4-bit weights",
        ),
        tasks=("[choose|set|change|pick] the precision", "[load|run|use|pull] a model in [4 bits|8 bits|int4|int8]"),
        pairs=(
            ("int4", "int8"),
            ("q4", "q8"),
            ("[4|four] bit[s|]", "[8|eight] bit[s|]"),
            ("q4_0", "q8_0"),
            ("Q4_K_M", "Q8_0"),
            ("4-bit weights", "8-bit weights"),
            ("int8", "fp16"),
        ),
        patterns=(
            "which [precision|quant|quantization|quantisation] should i [use|choose|pick|download|take]?",
            "[what|which] [precision|quant] is best?",
            "how [much worse|bad|good] is [4 bit|int4|q4|8 bit]?",
            "[q4|int4|4 bit] [model|weights|]: [good enough|ok|any good]?",
        ),
        answer=(
            "Precision is how many bits each weight has. 8 bits (int8, Q8_0) are as good as the original and take 1 GB per billion weights; 4 bits (int4, Q4_K_M) take about half of that at a small loss of quality. Take the largest that fits: `localrun fit` shows it, `--precision` sets it.",
        ),
        example=("A 4B model: 8 GB in 16 bits, 4.3 GB at 8 bits, 2.5 GB at 4 bits.",),
        weight=2.0,
    ),
    Topic(
        key="q4_k_m",
        names=(
            "Q4_K_M",
            "q4_k_m",
            "q4km",
            "Q5_K_M",
            "Q6_K",
            "Q4_K_S",
            "k-quants",
            "the K in Q4_K_M",
            "the M in Q4_K_M",
            "names like Q4_K_M",
            "q4_k",
            "gguf [quant names|quantization types|types]",
        ),
        pairs=(
            ("q4_k_m", "q4_0"),
            ("Q4_K_M", "Q4_K_S"),
            ("Q4_K_M", "Q5_K_M"),
            ("k-quants", "q4_0"),
            ("q4_k_m", "int4"),
        ),
        patterns=(
            "what do the letters in [q4_k_m|q5_k_s|the quant names] mean?",
            "what does the [k|m|4|0] in [q4_k_m|q4_0|q8_0] [mean|stand for]?",
            "how do i read [names like|] q4_k_m?",
        ),
        answer=(
            "Q4_K_M names a mix of weight types in a GGUF file: 4 stands for 4 bits, K for blocks of 256 weights with finer scales, M for medium, which keeps some tensors at 6 bits. It needs about 4.9 bits a weight and is better than the older Q4_0 at nearly the same size.",
        ),
        short=("Q4_K_M is a 4-bit type of GGUF files with finer scales (K), in its medium mix (M).",),
        weight=1.6,
    ),
    Topic(
        key="two_bits",
        names=(
            "int2",
            "2[-| ]bit quantization",
            "2 bits",
            "Q2_K",
            "2-bit weights",
            "IQ2",
            "two bits per weight",
            "iq1_s",
            "1-bit models",
        ),
        patterns=(
            "is [2 bit|2 bits|int2|q2_k] [any good|good|ok|enough|worth it|usable]?",
            "how [bad|good] is [2 bit|int2|q2|q2_k]?",
        ),
        answer=(
            "At 2 bits (int2, Q2_K) the loss of quality is large: small models break, and big ones get clearly worse. A smaller model at 4 bits is nearly always better. It is an extreme for when nothing else fits.",
        ),
        weight=1.1,
    ),
    Topic(
        key="bf16",
        names=("bf16", "bfloat16", "fp16", "float16", "f16", "fp32", "half precision", "16-bit floats"),
        pairs=(("bf16", "fp16"), ("fp16", "fp32"), ("bfloat16", "float16"), ("f16", "bf16"), ("fp32", "bf16")),
        answer=(
            "fp16 and bf16 both store a number in 16 bits. bf16 has the range of fp32 with fewer digits; fp16 has more digits and a smaller range. Most models are trained in bf16, which takes 2 GB per billion weights; fp32 takes 4.",
        ),
        weight=1.1,
    ),
    Topic(
        key="moe",
        names=(
            "MoE",
            "mixture of experts",
            "a mixture of experts",
            "a mixture-of-experts model",
            "an moe model",
            "[the |]experts",
            "A3B",
            "the A3B in 30B-A3B",
            "active parameters",
            "sparse models",
        ),
        pairs=(("[an |]moe", "[a |]dense model"), ("30b-a3b", "[a |]30b"), ("mixture of experts", "dense")),
        patterns=(
            "is [a|an] [moe|mixture of experts] faster[ than a dense model| than a dense one|]?",
            "what does a3b mean[ in 30b-a3b|]?",
            "how many experts [are active|does a token use]?",
        ),
        answer=(
            "In a mixture of experts (MoE), each token passes through only a few of many feed-forward networks. Such a model needs memory for all its weights but reads only the active ones per token, so it decodes fast: 30B-A3B holds 30 billion weights and uses 3 billion per token.",
        ),
        short=("A mixture of experts uses only a few of its many sub-networks for each token.",),
        simple=("It is like a hospital with many doctors: you see only the two that you need.",),
        more=(
            "Which experts a token goes to is decided by a small router in every layer. The KV cache is that of the attention layers and has nothing to do with the experts.",
        ),
        weight=1.4,
    ),
    Topic(
        key="perplexity",
        names=("perplexity", "perplexity", "ppl", "the perplexity of a model", "[a |]low perplexity", "KL divergence"),
        patterns=("is a [lower|low|higher|high] perplexity [better|good|bad]?", "what is a good perplexity?"),
        tasks=(
            "[measure|compute|see|test] [the |][perplexity|quality of a quantization|loss of quality]",
            "[measure|compute] perplexity myself",
        ),
        answer=(
            "Perplexity measures how surprised a model is by a text: the lower, the better it predicts it. `localrun perplexity -m MODEL file.txt` computes it, for example to see what a quantization costs.",
        ),
        bare=("localrun perplexity",),
        short=("Perplexity says how surprised a model is by a text; lower is better.",),
        example=(
            "A perplexity of 8 means the model is as unsure as if it chose among 8 equally likely tokens each time.",
        ),
        weight=1.4,
    ),
)
