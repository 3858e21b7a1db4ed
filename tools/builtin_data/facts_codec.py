# ruff: noqa: E501 - patterns and sentences stand on one line each
"""What localrun's model can explain about a quantized KV cache, and how that differs from quantized weights."""

from __future__ import annotations

from tools.builtin_data.topic import Topic

TOPICS = (
    Topic(
        key="kv_codec",
        names=(
            "a [quantized|quantised] [kv cache|cache|key-value cache]",
            "[kv cache|cache|kv] quanti[z|s]ation",
            "quanti[z|s]ation of the [kv |]cache",
            "[a|the] [q8|q4|8-bit|4-bit|int8|int4|8 bit|4 bit|k8v4] [kv cache|cache|kv]",
            "[a|the] [q8|q4|8-bit|4-bit|k8v4] cache",
            "--kv",
            "--kv [q8|q4|k8v4|auto|f16]",
            "the [--kv|kv] [option|flag|setting]",
            "k8v4",
            "[a|the] kv codec",
            "kv cache [types|codecs|precision]",
            "[quantized|quantised|8-bit|4-bit|q8|q4] [kv|keys and values]",
            "[quantizing|quantising|compressing] [the kv cache|the cache|kv|keys and values]",
            "kv quanti[z|s]ation",
            "a quantised kv cache",
            "kv cache quantisation",
        ),
        bare=("the cache", "the kv cache", "a q8 cache", "quantizing the cache", "the cache in q4"),
        tasks=(
            "[quantize|quantise|compress|shrink|store] the [kv |]cache [in 8 bits|in 4 bits|to q8|to q4|]",
            "make the [kv |]cache smaller",
            "use a [q8|q4|smaller|quantized|8-bit|compressed] [kv |]cache",
            "[save|reduce] [the |][memory of the cache|cache memory|kv cache memory|memory in the kv cache]",
        ),
        pairs=(
            ("[a |]q8 [cache|kv cache|kv]", "[a |]q4 [cache|kv cache|kv]"),
            ("--kv q8", "--kv q4"),
            ("f16 [kv|cache|kv cache]", "q8 [kv|cache|kv cache]"),
            ("q8 for the cache", "q4 for the cache"),
            ("[an |]8-bit [kv |]cache", "[a |]4-bit [kv |]cache"),
            ("q8", "k8v4"),
        ),
        patterns=(
            "[should i|can i|may i] [use|take|choose|pick] [q8|q4|k8v4|8 bits|4 bits|int8] [for the cache|for the kv cache|for kv|as kv cache]?",
            "does [--kv q8|--kv q4|a q8 cache|a q4 cache|quantizing the cache|a quantized cache|an 8-bit cache|cache quantization] [hurt|make answers worse|lower quality|cost quality|reduce quality|change the answers|make it faster|save memory]?",
            "[is|was] [a |][q4 cache|q8 cache|4-bit cache|kv cache in q4|kv cache in q8|quantized cache] [good|bad|safe|worth it|a good idea|ok|lossless|any good]?",
            "[kv |]cache in [q8|q4|4 bits|8 bits], [good idea|is that good|is it worth it|any loss|how much do i save]?",
            "how much [quality|accuracy|memory] [do i lose|do i save|is lost|is saved] with a [q8|q4|quantized|4-bit|8-bit] [cache|kv cache]?",
            "[which|what] [codec|type|precision|quantization|format] [should i use|is best|do i take|to use] for the [kv |]cache?",
            "what does [quantizing|compressing] the [kv |]cache [bring|do|save|cost]?",
            "q4 [or|vs] q8 [cache|for kv|kv]?",
            "how can the [kv |]cache [be made smaller|be smaller|take less memory|be compressed]?",
            "[can|could|may] i [store|keep|hold|save] the [kv |]cache [with less precision|in fewer bits|in 8 bits|smaller|in less memory]?",
            "is [a |][quantized kv|quantized cache|kv quantization|8-bit kv|the q8 cache|kv in q8] [lossless|safe|exact|free|slower|faster|noticeable|worth it]?",
            "does [kv quantization|a quantized kv cache|quantizing the kv cache|quantized kv|a q8 cache] [speed things up|speed it up|make it faster|slow it down|save memory|change the answer|hurt]?",
            "what happens to [quality|the answers|accuracy] [if|when] the [kv |]cache [is only 4 bits|is 4 bit|is quantized|has 8 bits|is in q4]?",
            "[can|how can] i [compress|shrink|quantize] the [kv |]cache?",
            "my [kv |]cache is too [large|big][, can i compress it|, what now|]",
            "[q8|q4|f16] for [my|the] [kv|cache|kv cache]?",
            "[can|could] the [kv |]cache be [stored|kept|held] [with less precision|in less precision|with fewer bits|in 8 bit|compressed]?",
            "what happens to [quality|the answers] [with|if i use] [a 4 bit cache|a q4 cache|4 bits for the cache|--kv q4]?",
            "is [a quantized|an 8-bit|a q8] kv cache [lossless|as good|noticeable|exact]?",
            "[quantised|quantized] kv cache",
            "a [quantised|quantized] kv cache",
            "the [kv |]cache is too [large|big], can i [compress|shrink|quantize] it?",
            "does [kv quantization|quantizing the cache|a smaller cache] [speed|make] [things|it] [up|faster]?",
        ),
        answer=(
            "A quantized KV cache stores the keys and values of the chat in fewer bits; the weights stay as they are. `--kv q8` takes about half of f16 and costs nothing that you would notice; `--kv q4` takes about a quarter and is for large models when memory is short. `--kv k8v4` lies between.",
        ),
        more=(
            "It saves memory and also time in long chats, since every new token reads the whole cache. `--kv auto`, the default, takes f16 if the context fits and else q8. Keys are more sensitive than values, which is why k8v4 keeps keys at 8 bits.",
        ),
        simple=(
            "The model writes its notes in smaller letters: more of them fit on the page, at a little less precision.",
        ),
        example=(
            "8B model, 8k context: 1 GiB in f16, about 0.5 GiB with `--kv q8` and a little over 0.25 GiB with `--kv q4`.",
        ),
        weight=2.5,
    ),
    Topic(
        key="cache_or_weights",
        pairs=(
            ("[a |]q8 cache", "q8 weights"),
            ("[a |]quantized cache", "[a |]quantized model"),
            ("quantizing the [kv |]cache", "quantizing the [weights|model]"),
            ("[kv cache|cache] quantization", "[weight|model] quantization"),
            ("[a |]q4 kv cache", "[a |]q4 model"),
            ("--kv", "--precision"),
            ("q8_0", "--kv q8"),
            ("q4 weights", "[a |]q4 cache"),
            ("int8 weights", "[an |]int8 cache"),
        ),
        patterns=(
            "do --precision and --kv do the same[ thing|]?",
            "[my weights are|my model is|the model is] already [4 bit|quantized|q4], [why|should i|does it help to|what does it bring to] quantize the [kv |]cache[ too| as well| on top|]?",
            "[my model|the model|it] is [already |]quantized, [why|should i] [also |]quantize the cache?",
            "[with|having|given] [q4|4-bit|int4|Q4_K_M|quantized] weights, [is there a point in|do i gain from|what do i gain by|is it worth] [a q8 cache|a quantized cache|quantizing the cache|--kv q8]?",
            "[i use|i run|i have|i loaded] [a q4 model|Q4_K_M|an int4 model|a quantized model][. does that|, does that|, so does it] [shrink|quantize|compress|affect] the [kv |]cache[ too| as well|]?",
            "does [--precision|the precision|Q4_K_M|a quantized model|int4] [change|affect|shrink|quantize] the [kv |]cache?",
            "does [--kv|--kv q8|a q8 cache|the cache codec] [change|affect|touch|shrink|quantize] the [weights|model]?",
            "[can|may|should] i [combine|mix|use together|use both] [q4 weights and a q8 cache|--precision and --kv|a quantized model and a quantized cache]?",
            "[are|is] [the weights and the cache|weights and cache|model and cache] [quantized separately|quantized together|the same thing when quantizing|independent]?",
            "is the [kv |]cache quantized [too|as well|like the weights|] when the [model|weights] [is|are] [q4|quantized]?",
        ),
        answer=(
            "They are two things: weights are the model itself, on disk and in memory, and the cache is what it remembers of your chat. `--precision` (such as Q4_K_M) sets the bits of the weights; `--kv` (q8, q4) sets those of the cache. You can choose them separately.",
        ),
        short=(
            "`--precision` sets the bits of the weights and `--kv` those of the cache; they are chosen separately.",
        ),
        weight=2.0,
    ),
)
