# ruff: noqa: E501 - patterns and sentences stand on one line each
"""What localrun's model can explain about attention: its heads, its windows, and the context it looks back on."""

from __future__ import annotations

from tools.builtin_data.facts_cache import KV_NUMBERS
from tools.builtin_data.topic import Topic

TOPICS = (
    Topic(
        key="gqa",
        names=(
            "GQA",
            "GQA",
            "grouped-query attention",
            "grouped query attention",
            "[grouped|group] [query|queries] attention",
            "gqa in [llama|qwen|llama 3|mistral]",
            "grouped [heads|kv heads|key heads]",
            "shared [kv|key] heads",
            "[kv|key-value] heads",
        ),
        facts=(
            "[llama 3|my model|qwen3|it|the model] has [fewer kv heads than heads|32 heads but 8 kv heads|only 8 kv heads|more query heads than kv heads]",
            "[several|many] query heads share [one key head|a kv head|keys and values]",
        ),
        patterns=(
            "what are [kv heads|key-value heads|query heads]?",
            "why [are there|does a model have|does it have] fewer [kv|key] heads than [query heads|heads]?",
            "what does it mean that [query heads|heads] share [keys|keys and values|kv heads|one kv head]?",
            "[how much|does] [does |][gqa|grouped query attention] [save|shrink the cache|save memory|make the cache smaller]?",
            "why does [llama 3|llama|qwen|a model] have [32|64|40] heads but [only |][8|4] kv heads?",
            "[n_kv_heads|kv heads] [is|=|are] 8 [but|and] [n_heads|heads|query heads] [is|=|are] 32, why?",
            "why do [modern|new|most|all] models use [gqa|grouped query attention]?",
        ),
        answer=(
            "Grouped-query attention (GQA) lets several query heads share one key and value head. Fewer KV heads mean a smaller KV cache and less to read per token: with 32 query heads and 8 KV heads the cache is a quarter of the full size, at hardly any loss.",
        ),
        short=("With grouped-query attention several query heads share one KV head, so the KV cache is smaller.",),
        more=(
            "A smaller cache leaves memory for a longer context, and fewer bytes are read for every token. Most models of today do so, such as Llama 3, Qwen3 and Mistral; `localrun show MODEL` prints both numbers of heads.",
        ),
        simple=("Four readers share one set of notes instead of each writing their own.",),
        example=(
            "Llama 3.1 8B has 32 query heads and 8 KV heads: 128 KiB a token in f16. Without GQA it would be 512 KiB.",
        ),
        weight=2.2,
    ),
    Topic(
        key="mha_mqa",
        names=(
            "MHA",
            "MQA",
            "multi-head attention",
            "multi head attention",
            "multi-query attention",
            "multi query attention",
            "multihead attention",
        ),
        bare=("mqa", "mha"),
        pairs=(
            ("MHA", "GQA"),
            ("GQA", "MQA"),
            ("MHA", "MQA"),
            ("multi-head attention", "grouped-query attention"),
            ("grouped-query attention", "multi-query attention"),
            ("multi-head", "multi-query attention"),
            ("mha", "gqa and mqa"),
            ("mqa, gqa", "mha"),
        ),
        patterns=(
            "[mqa|mha|gqa] vs [gqa|mqa] vs [mha|mqa]",
            "[mha|gqa|mqa], [gqa|mqa] and [mqa|mha]: what [sets them apart|is the difference|is what]?",
            "how many kv heads [has|does] [mqa|mha|multi-query attention] [have|]?",
        ),
        answer=(
            "They differ in the number of key and value heads. In MHA (multi-head attention) every query head has its own; in GQA a group of query heads shares one; in MQA (multi-query attention) all of them share one. Fewer KV heads make the KV cache smaller in proportion.",
        ),
        example=(
            "With 32 query heads of 128 numbers and 32 layers in f16: MHA takes 512 KiB a token, GQA with 8 KV heads 128 KiB, MQA 16 KiB.",
        ),
        weight=2.2,
    ),
    Topic(
        key="window",
        names=(
            "[a|the] sliding window",
            "sliding windows",
            "sliding window attention",
            "sliding-window attention",
            "SWA",
            "SWA",
            "swa",
            "[swa|SWA|sliding windows|sliding window attention] [in|of|with] [gemma|gemma 3|mistral|mistral 7b|phi|phi-3|gpt-oss|a model|llms]",
            "[a|the] sliding attention window",
            "windowed [attention|layers]",
            "[a|the] window layer",
            "local attention",
        ),
        facts=(
            "[gemma|mistral|phi-3|some layers|some models] [only |][look|looks|sees|see] [only |][back |]at the last [1024|512|4096] tokens",
            "the cache of [gemma|a windowed layer] stops growing",
        ),
        patterns=(
            "[does|do] [a sliding window|sliding windows|swa] [save|need less|reduce] memory?",
            "what is the [window|sliding window] [of|in] [gemma|mistral|phi-3|gpt-oss]?",
            "which models [have|use] [sliding windows|a sliding window|swa]?",
            "some layers [only |]see [only |]the last [tokens|1024 tokens|few tokens], [what is that called|why]?",
            "[some|the|most] layers [of|in] [gemma|mistral|gpt-oss|phi-3|a model] [only |][look|see] [only |][at |]the last [512|1024|2048|4096] tokens, [how is this called|what is that|why|what is this called]?",
            "[swa|sliding window] in [mistral|gemma|phi|gpt-oss][, explain|, what is it|]?",
        ),
        answer=(
            "With a sliding window, a layer sees only the last tokens, for example 1,024, instead of the whole text. Older keys and values are dropped, so the KV cache of that layer stops growing. Gemma, Mistral and gpt-oss have such layers, often mixed with layers that see everything.",
        ),
        short=("With a sliding window a layer sees only the last tokens, so its KV cache stops growing.",),
        more=(
            "Gemma 3 27B at 128k tokens takes 10.4 GiB instead of 62 that way. Far text still gets through, since layers pass on what they saw.",
        ),
        simple=("The layer keeps only its last few pages of notes and throws the older ones away.",),
        weight=2.2,
    ),
    Topic(
        key="window_option",
        names=("--window", "the --window [option|flag]", "the window option [of localrun|]", "localrun run --window"),
        tasks=(
            "[let|make] the model [see only|forget all but] the last tokens",
            "use a window with any model",
            "keep a chat going without end",
            "chat without end [in bounded memory|]",
        ),
        pairs=(("--window", "[a |]sliding window"), ("--window", "--ctx")),
        patterns=(
            "can i make the model [only |]see [only |]the last [2000|1000|4096] tokens?",
            "what does [localrun |]--window [do|mean]?",
        ),
        answer=(
            "`--window N` lets any model see only the first 64 tokens and the last N. Memory and time stop growing, but the middle of the chat is lost to the model.",
        ),
    ),
    Topic(
        key="context",
        names=(
            "context",
            "the context",
            "[a|the] context window",
            "[the |]context [length|size|limit]",
            "[a|the] ctx",
            "ctx",
            "ctx",
            "[the |my |]ctx [window|length|size|limit]",
            "[a|the] context of a model",
            "max context",
            "num_ctx",
            "n_ctx",
            "context size",
            "context length",
        ),
        bare=("the context",),
        patterns=(
            "how long can a chat be?",
            "why is the context limited?",
            "how many tokens [can a model see|fit in the context]?",
            "what does [8k|32k|128k|4k] context mean?",
            "how many [words|tokens|messages] can a model [keep in mind|remember|see|hold|handle]?",
        ),
        answer=(
            "The context is the text a model can see at once: system prompt, your messages and its own answers, measured in tokens. Mine is 2,048 tokens. A longer context needs a larger KV cache.",
        ),
        more=(
            "`--ctx auto`, the default, takes the longest context that fits your memory; `--ctx 8192` sets it. 1,000 tokens are about 750 English words.",
        ),
        simple=("It is the model's desk: only what lies on it can be seen.",),
        example=("A context of 8,192 tokens is about 6,000 English words, a dozen pages.",),
        weight=2.3,
    ),
    Topic(
        key="set_context",
        names=("--ctx", "the --ctx [option|flag]", "--ctx auto"),
        tasks=(
            "[change|set|increase|extend|reduce|enlarge|raise] the [context|context length|context size|context window|ctx]",
            "[get|have|use] a [longer|bigger|larger|shorter] context",
            "use [8k|32k|16k|128k] of context",
            "make the context [longer|bigger|shorter|larger]",
            "give [the model|it|a model] [more|less] context",
            "[increase|set|raise] ctx[ to 16k| to 8192|]",
            "make it [remember|see] more of the chat",
        ),
        answer=(
            "`--ctx 8192` sets the context length in tokens, and `--ctx auto`, the default, takes the longest that fits. `localrun config ctx 8192` keeps it; `localrun fit` shows what each length costs in memory.",
        ),
        weight=1.2,
    ),
    Topic(
        key="context_full",
        names=("/policy", "the policy when the context is full", "context overflow", "context shift"),
        facts=(
            "the context is full",
            "[the|my|a] chat [gets|is|became|grew] [too long|longer than the context|too big for the context]",
            "[the model|it] [forgets|forgot] [the beginning|what i said|earlier messages]",
            "the prompt is [too long|longer than the context]",
            "the model [cannot|can't] see [the beginning|old messages] [any more|anymore]",
        ),
        patterns=(
            "what happens [when|if|once] the context [is full|runs out|overflows|ends]?",
            "what happens at the end of the context?",
            "what [if|happens if|do i do if|can i do if] [the|my] chat [gets|is|becomes] [too long|longer than the context]?",
            "running out of context",
            "context full",
            "what [if|happens if|when] i [exceed|overrun|fill] the context[ window| length|]?",
            "what [happens|if] [my prompt|the text|the conversation] is longer than the context?",
            "[chat|conversation|text|prompt] too long, what [happens|now|can i do]?",
            "why does [it|the model|my model] forget [what i said|the beginning|the first messages|everything]?",
            "what if i [exceed|go over|use up] the [context|context window|limit]?",
        ),
        answer=(
            "When the context is full, you choose with `/policy`: stop, drop the oldest turns, or roll, which keeps the first 64 tokens and the newest ones. Nothing is cut silently: a line shows what the model no longer sees. A larger `--ctx` helps where memory allows.",
        ),
        weight=1.3,
    ),
    Topic(
        key="context_or_cache",
        pairs=(
            ("[the |]context[ window| length|]", "[the |]kv cache"),
            ("context", "memory"),
            ("[the |]context", "[the |]cache"),
            ("ctx", "kv cache"),
        ),
        answer=(
            "The context is the text that the model sees, in tokens; the KV cache is the memory that holds the keys and values of that text, in bytes. A longer context needs a larger cache, in proportion.",
        ),
        example=(KV_NUMBERS,),
        weight=1.2,
    ),
)
