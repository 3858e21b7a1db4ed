# ruff: noqa: E501 - patterns and sentences stand on one line each
"""What localrun's model can explain about sharing: prefixes that are reused, what is kept on disk, and batches."""

from __future__ import annotations

from tools.builtin_data.topic import Topic

TOPICS = (
    Topic(
        key="prefix",
        names=(
            "prefix reuse",
            "[the|a] prefix cache",
            "prefix caching",
            "[prompt|automatic prefix|context] caching",
            "prefix sharing",
            "[the|a] prefix tree",
            "radix attention",
            "cached tokens",
            "--no-prefix-cache",
            "reuse of [prefixes|the prompt|the cache]",
        ),
        facts=(
            "the second [message|question|turn|prompt] is [much |]faster than the first",
            "[follow-ups|later messages|my next messages] are [answered |][fast|faster|quick|quicker]",
            "it says [that |][tokens|most tokens|812 tokens] were [cached|reused]",
        ),
        patterns=(
            "why is [the|my] second [message|question|turn|answer|prompt] [in a chat |]faster [than the first|]?",
            "why is [the|my] [second|next|third] [message|question|prompt] answered [so much |much |][faster|quicker|sooner]?",
            "why [are|is] [follow-ups|later messages|the next message|a follow up|follow-up questions] [faster|quick|so fast]?",
            "what happens when i [send|ask] the same [prompt|question|thing] [twice|again]?",
            "[is|does] [everything|the whole chat|the chat|my whole conversation|the history] [computed|read|processed|prefilled] [again|anew|from scratch] [with|for|after] [every|each|a new] message?",
            "[do|can] [two|several|my] chats share [the cache|anything|a system prompt|their beginning|blocks]?",
            "do [two|three|several|all|my] [chats|conversations|sessions|requests] with [the same|one|a common|an equal|the very same] [system prompt|beginning|prompt|start|first message] [share|reuse|save] [something|the cache|memory|blocks|work|time]?",
            "[two|several|many] chats [have|use|begin with] the same system prompt[, |. ][is it computed twice|is anything shared|do they share the cache|is it read again|what is shared]?",
            "is [a|the|my] [system prompt|long prompt|shared prompt|first part] [computed|read|processed|prefilled] [again|twice|only once|once] for [each|every|a new|another] chat?",
            "what happens [when|if] i edit [my|an old|an earlier] [question|message|prompt]?",
            "if i [edit|change] [my question|a message|the system prompt], is [everything|all] computed [again|anew|from scratch]?",
            "[how|when] does localrun reuse [the cache|earlier work|what it computed|prompts]?",
            "what does [cached|reused] mean [in the stats|in --stats|here|]?",
            "how does localrun avoid [computing|reading|processing] [the prompt|the same text|everything|old messages] [again|twice]?",
            "[does|will] [changing|editing] [the system prompt|an early message|the beginning] [throw away|lose|invalidate|reset] the cache?",
            "[do|does|can] [two chats|chats|my chats] with [the same|an identical|one] [system prompt|beginning|prefix] share [anything|the cache|memory|their cache]?",
            "why was [only a part|so little|so much] [reused|cached]?",
            "if i edit [my|a] [question|message], is [everything|it all] [computed|processed|read] [from scratch|again]?",
            "why [is|are] [the|a|my] follow[-| ]up [question|questions|message] [so much |much |][faster|quicker]?",
            "what does reused [812|500|64|2000] of [830|512|2100] tokens mean?",
            "[reused|cached] [812|500|64] of [830|512|900] tokens",
            "is prompt caching [built in|there|supported|included|automatic]?",
            "does changing [the|my] system prompt [clear|lose|throw away|reset] the cache?",
            "how [is|does localrun avoid] [computing|reading] the prompt [again|twice|a second time]?",
            "why [is|was] the follow[-| ]up question [so |much |][fast|faster|quick|quicker]?",
            "will changing the system prompt [throw away|clear|cost me] the cache?",
        ),
        answer=(
            "Prefix reuse means that text which was computed once is not computed again. When a prompt begins like an earlier one, as the next message of a chat does, localrun takes those keys and values from the KV cache and prefills only what is new. So the first token comes sooner, and the answer stays the same.",
        ),
        short=(
            "Prefix reuse: when a prompt begins like an earlier one, localrun takes that part from the KV cache and computes only the rest.",
        ),
        more=(
            "The text must be the same from its very first token; one early change, and everything after it has to be computed again. `--no-prefix-cache` switches it off, if you want to compare.",
        ),
        example=(
            "A chat of 2,000 tokens and a new message of 20: with reuse 20 tokens are prefilled, without it 2,020.",
        ),
        weight=2.1,
    ),
    Topic(
        key="disk_cache",
        names=(
            "localrun cache",
            "localrun cache list",
            "localrun cache clear",
            "the cache command",
            "the disk cache",
            "[the |]disk_cache",
            "the cache [folder|directory] [on disk|]",
        ),
        tasks=(
            "[clear|empty|delete|clean|remove|flush|wipe|purge] the cache[ folder| on disk|]",
            "[limit|set|change] the size of the disk cache",
            "see what is [cached|kept] on disk",
            "[turn off|disable] the disk cache",
        ),
        bare=("cache clear", "localrun cache"),
        patterns=(
            "is the [kv |]cache [saved|stored|kept|written] [on|to] [my |the |]disk?",
            "does the [kv |]cache survive [a restart|when i close the app|closing localrun]?",
            "where is the [kv |]cache [stored|kept|saved] [on disk|]?",
            "how much disk [space |]does the cache [take|use]?",
            "is [a|my] [saved|old] chat [computed again|read again] when i reopen it?",
            "does [it|localrun] [save|keep|store] the [kv |]cache when i [quit|close the app|exit|stop]?",
            "how do i [delete|remove|clear] the cached [stuff|data|files|chats]?",
            "what happens to the [kv |]cache [when i quit|after a restart|when i close the app]?",
            "does [it|localrun|the app] [save|keep] the kv cache [when i quit|after i quit|on exit]?",
            "[does it|will it|do you] [save|keep|write] the [kv |]cache [when i quit|when i leave|at exit|after a restart]?",
        ),
        answer=(
            "localrun also keeps the KV cache of saved chats on disk, so that reopening one is quick. `localrun cache list` shows what is there, `localrun cache clear` removes it, and `localrun config disk_cache 8` sets the limit in GiB (0 keeps none).",
        ),
    ),
    Topic(
        key="batching",
        names=(
            "continuous batching",
            "continuous batching",
            "batching",
            "a batch",
            "batch size",
            "the batch size",
            "dynamic batching",
            "static batching",
            "in-flight batching",
            "batch inference",
            "batched decoding",
            "bench -b",
        ),
        pairs=(("continuous batching", "static batching"), ("batch size 1", "batch size 8")),
        facts=("[two|several|many] [people|users|requests|chats] ask at the same time",),
        patterns=(
            "what happens [when|if] [two|several|many] [people|users|requests|chats] [ask|come|run] at [the same time|once]?",
            "why is [batching|a batch|a larger batch] [faster|more efficient|cheaper]?",
            "how can [a server|one gpu|a model] [answer|serve] [many|several] [users|people|requests] at once?",
            "can localrun [answer|run|do] [several|two|many] [prompts|questions|chats|requests] [at once|in parallel|at the same time]?",
            "what [if|happens if] [2|3|8|10] [people|users] ask [the server|the model|] at the same time?",
            "batching in [two|a few] sentences",
            "how do servers [handle|answer|serve] many users[ at once|]?",
            "[many|several|ten] users at once, how does that work?",
        ),
        answer=(
            "Batching computes the next token of several answers in one step. The weights are read once for all of them, so the total speed rises. Continuous batching lets requests join and leave at every token instead of waiting for the whole batch to end; localrun's engine does that.",
        ),
        more=(
            "`localrun bench -b 1 -b 8` measures it here. Each answer still needs a KV cache of its own, so memory limits the size of the batch.",
        ),
        simple=(
            "One bus takes eight people almost as fast as one, and with continuous batching they get on and off at every stop.",
        ),
        weight=1.8,
    ),
)
