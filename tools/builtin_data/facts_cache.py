# ruff: noqa: E501 - patterns and sentences stand on one line each
"""What localrun's model can explain about the KV cache: what it holds, what it costs, how it is shared and made smaller."""

from __future__ import annotations

from tools.builtin_data.topic import Topic

KV_NUMBERS = "Llama 3.1 8B in f16: 2 × 32 layers × 8 KV heads × 128 × 2 bytes = 128 KiB a token, so 1 GiB for 8,192 tokens and 4 GiB for 32,768. A 70B model at 128k tokens keeps 40 GiB."

TOPICS = (
    Topic(
        key="kv_cache",
        names=(
            "[the|a] KV cache",
            "the KV cache",
            "KV cache",
            "kv caching",
            "the kv-cache",
            "the key-value cache",
            "[a|the] key[ |-|/]value cache",
            "kvcache",
            "KV",
            "kv$",
            "the cache of keys and values",
            "the cache",
        ),
        bare=("the cache", "the kv cache"),
        patterns=(
            "what is [stored|kept|saved|inside|held] in the [kv|key value|key-value] cache?",
            "what [exactly |]gets [stored|kept|saved|cached] in the [kv|key-value] cache?",
            "what does [the|a] kv cache [do|store|hold|keep|save|contain|remember]?",
            "why does a model need a [kv|key value] cache?",
            "why [do|does] [transformers|llms|an llm|models|localrun] [cache|store|keep] [keys and values|the keys and values|k and v]?",
            "what would happen without [a|the] kv cache?",
            "how does the kv cache [make|help] [it faster|decoding faster|generation faster|speed]?",
            "what are [keys and values|the keys and values|k and v]?",
            "what is [kv|the kv] cache in [an llm|llms|a language model|transformers|localrun|this app]?",
            "how does the kv cache help?",
            "why not [just |simply |][recompute|compute|process|read] [everything|the whole text|all tokens|the prompt] [again |anew |][for|with|at] [every|each] [new |]token?",
            "what [role|part] do [keys and values|the keys and values] play?",
            "what [information|data] [does|is in] the [kv |]cache[ hold| keep|]?",
            "what does the model [keep|remember|store] [of|about] [earlier tokens|what it has read|the text so far]?",
            "how does [a model|the model|an llm] [remember|avoid computing] [earlier tokens|the earlier text|what it has read]?",
            "do [i|we|you|models] [really |]need a kv cache[ at all|]?",
            "is the kv cache [like|similar to|a kind of] [a notebook|notes|memory|a buffer|a scratchpad|short-term memory]?",
            "this kv cache [everyone|everybody] talks about",
            "why [cache|store|keep] keys and values[ at all|]?",
            "what if there [was|were] no kv cache?",
        ),
        answer=(
            "The KV cache is the model's working memory for one conversation. For every token it has read, each attention layer produces a key and a value; the cache keeps them, so that the next token can attend to everything before it without computing it again.\n\n"
            "Without it, each new token would cost as much as the whole text so far. The price is memory: the cache grows with every token of context.",
        ),
        short=(
            "The KV cache keeps the attention keys and values of all earlier tokens, so that each new token does not have to compute them again.",
        ),
        more=(
            "Its size is easy to compute: 2 (keys and values) × layers × KV heads × head size × bytes per number, for every token. localrun can shrink it with `--kv q8` or `--kv q4`, and `localrun fit` shows how much context your memory can hold.",
        ),
        simple=(
            "It is like taking notes while you read. When the model writes the next word, it looks at its notes instead of reading the whole text again. More text means more notes, so the cache takes more memory.",
        ),
        example=(KV_NUMBERS,),
        weight=2.8,
    ),
    Topic(
        key="kv_memory",
        names=(
            "the size of the [kv |]cache",
            "the memory of the kv cache",
            "the memory [use|usage|footprint|cost] of the kv cache",
            "kv cache [size|memory|usage|formula]",
            "the formula for the [size of the |]kv cache",
            "kv cache bytes per token",
        ),
        tasks=(
            "[compute|calculate|estimate|work out] [the size of the kv cache|the kv cache size|kv cache memory|how big the cache gets|the memory of the cache]",
        ),
        patterns=(
            "how much [memory|ram|vram|space|room] does [the|a] [kv |key-value |][cache|caching] [take|need|use|cost|occupy|eat|require]?",
            "how much [memory|ram|vram|space|room] [is needed|do i need|goes|is used|is there] for the [kv |]cache?",
            "how [big|large] [is|does|can|will] [the|a] [kv |key-value |kv-]cache [get|be|become|grow|]?",
            "how [big|large|much] is the [kv |]cache [of|for|with] [a|an] [7b|8b|13b|70b|4b|3b|14b|30b] [model|] [at|with|and] [4k|8k|16k|32k|128k|2k|64k] [tokens|context|of context|ctx|]?",
            "how many [bytes|kilobytes|kib|megabytes|mb|gigabytes|gb|gib] [per token |a token |]does the [kv |]cache [take|need|use|cost]?",
            "how many [bytes|gigabytes|gb|gib|megabytes] [will|would|does] the cache [eat|take|need|cost] [with|at|for] [4k|8k|32k|128k|100000|32000|8192] [tokens |][of context|context|]?",
            "[kv |]cache [memory|size] [for|of] [a|an|] [7b|8b|13b|70b|4b] [model|] [at|with] [4k|8k|16k|32k|128k] [context|tokens|ctx|]",
            "[what is|what's|give me|tell me] the [formula|equation] [for|of] [the |][kv cache size|size of the kv cache|memory of the kv cache|kv cache memory|kv cache]?",
            "how much [memory|ram] does [one|a|each|every|1] token [take|need|cost|use] [in the cache|in the kv cache|of cache|]?",
            "how much [memory|ram|vram] does [context|a long context|8k context|32k context|the context|a context of 8192 tokens|128k of context] [need|take|cost|use]?",
            "[does|is it true that] a [13b|13b model] [takes|needs|need|take|uses] [1 mb|one megabyte|a megabyte|1mb|800 kb] [per|a|for each|for every] token?",
            "[is the kv cache|is the cache] [big|large|expensive]?",
            "why does the [kv |]cache [need|take|use] so much [memory|ram|space|vram]?",
            "does the [kv |]cache grow with [the chat|the context|every token|each token]?",
            "memory per token?",
            "how fast does the [kv |]cache grow?",
            "[what|how much] [do|does|would] [4096|8192|1000|2000|32k|10000] tokens [of context |of text |][cost|take|need][ in memory| in megabytes| in gigabytes| of ram|]?",
            "[memory|ram|bytes|space] [needed|taken|used|required] [by|for] [the |][keys and values|kv cache|cache|kv]",
            "how many [kb|kib|mb|bytes] [per token|a token|for each token] [for|in|with] [llama|llama 8b|an 8b model|qwen3|a 70b|a 13b]?",
            "how [heavy|expensive|huge|costly] is the [kv |]cache?",
            "[kv cache|cache] [equation|calculation|math|maths|arithmetic|numbers|calculator]",
            "does [every|each] token [cost|take|need] memory?",
            "[does|will] the [kv |]cache [fit|fill my memory|eat my ram|need gigabytes]?",
            "how much [memory|ram|vram] for [the kv cache|kv|the cache|a long chat|128k context|a chat of 10000 tokens]?",
            "how [big|large] does the [kv |]cache get [for|with|at] [a|an] [7b|8b|13b|70b] model [at|with] [2k|4k|8k|16k|32k]?",
            "[a|one] [token|thousand tokens] of kv cache in [bytes|kib|mb]?",
            "how [do|can] i [calculate|compute|work out|estimate] [kv cache memory|the kv cache|kv memory|the size of the cache|memory for the cache]?",
            "[size|memory] of [the |][kv |]cache [for|of] [a |]70b[ model|] at [32k|64k|128k]",
            "[roughly |about |]how [heavy|big|large|much] is the [kv |]cache[ roughly|]?",
            "[what is|whats|give me] the kv cache [equation|formula|size in bytes|memory formula]",
            "how many [mb|megabytes|gib|gigabytes] [does|will] the [kv |]cache [be|take|have]?",
        ),
        answer=(
            "Every token takes 2 (key and value) × layers × KV heads × head size × bytes per number. In f16, an 8B model with GQA takes 128 KiB a token, so 1 GiB at 8k context; a 13B model without GQA takes 800 KiB a token. `--kv q8` about halves that, `--kv q4` quarters it.",
        ),
        more=(
            "`localrun show MODEL` prints the bytes a token for each codec, and `localrun fit MODEL` the sum for your machine. A sliding window stops the growth; GQA and MQA make each token smaller.",
        ),
        simple=(
            "Each word the model has seen leaves a note, and each note takes the same room: about an eighth of a megabyte in an 8B model. Twice the text, twice the memory.",
        ),
        example=(KV_NUMBERS,),
        weight=2.5,
    ),
    Topic(
        key="paged",
        names=(
            "paged attention",
            "paged attention",
            "PagedAttention",
            "paged-attention",
            "[page|paging] attention",
            "[vllm|vllm's|vllms] [paged attention|paging|pages]",
            "[the |a ]paged [kv |]cache",
            "paging [of the cache|the kv cache|in vllm|in llms|]",
            "[kv |cache ]pages",
            "[cache |kv |the ]blocks [of the cache|of 64 tokens|in the kv cache]",
            "a block table",
            "[a|the] page table [in attention|of the cache]",
            "attention with pages",
        ),
        facts=(
            "the [kv |]cache is [cut|split|divided] into [blocks|pages]",
            "the kv cache is [paged|stored in pages|stored in blocks]",
        ),
        patterns=(
            "why [is|would one|do they|does vllm|does localrun|would anyone] [cut|split|store|divide|keep|put] the [kv |]cache [in|into|cut into] [pages|blocks]?",
            "how [is|does localrun store|is it that] the kv cache [is |][stored in blocks|organised|organized|laid out|split into blocks|paged]?",
            "does localrun [use|have|support|do] [paged attention|paging|pages|a paged cache]?",
            "[what|which] [block|page] size does localrun use?",
            "what problem does paged attention solve?",
            "what did vllm [invent|introduce|come up with]?",
            "how does [vllm|localrun] [manage|organise|organize|handle|store|lay out] [kv memory|the kv cache|cache memory|memory for the cache]?",
            "what [are|is] [kv blocks|cache blocks|a kv block|a cache block|the block size]?",
            "why [store|keep|put] the cache in [pages|blocks|small pieces]?",
            "how are [pages|blocks] used [in attention|for the cache|]?",
            "why [would anyone|do people|do you] cut the [kv |]cache into [pages|blocks]?",
            "[what did vllm|what has vllm] [invent|introduce|bring], [again|the paging thing|something with pages]?",
        ),
        pairs=(("paged attention", "[normal|ordinary|plain] attention"), ("paged attention", "virtual memory")),
        answer=(
            "Paged attention keeps the KV cache in small blocks instead of one long stretch of memory, as an operating system does with pages; a table says which blocks belong to a chat. So no memory is reserved in vain, and chats that begin alike share blocks. localrun uses blocks of 64 tokens.",
        ),
        more=(
            "It changes where keys and values lie, not what attention computes: the answer is the same. vLLM made it known; without it, each chat needs room for its longest possible context in advance.",
        ),
        simple=(
            "Instead of one long scroll, the notes are on loose pages: you take a new page only when you need one, and two chats can share the pages that are the same.",
        ),
        example=(
            "A chat of 130 tokens takes three blocks of 64. A second chat with the same first 64 tokens shares the first block.",
        ),
        weight=2.2,
    ),
    Topic(
        key="paged_or_gqa",
        pairs=(
            ("paged attention", "[gqa|grouped-query attention|grouped query attention]"),
            ("paged attention", "[a |]sliding window[ attention|]"),
            ("paged attention", "flash attention"),
            ("[gqa|grouped-query attention]", "[a |]sliding window[ attention|]"),
            ("flash attention", "[gqa|sliding window]"),
        ),
        answer=(
            "They do different things and can be combined. Paged attention stores the KV cache in blocks; GQA lets query heads share keys and values, so each token takes less; a sliding window lets a layer see only the last tokens; flash attention computes the same result with less memory traffic.",
        ),
    ),
)
