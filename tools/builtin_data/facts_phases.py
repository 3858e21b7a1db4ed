# ruff: noqa: E501 - patterns and sentences stand on one line each
"""What localrun's model can explain about the two phases of an answer, and about the times by which they are measured."""

from __future__ import annotations

from tools.builtin_data.topic import Topic

TOPICS = (
    Topic(
        key="prefill",
        names=(
            "prefill",
            "the prefill",
            "[the |]prefill phase",
            "prefilling",
            "prompt processing",
            "prompt evaluation",
            "the prefill step",
            "pre-fill",
            "prompt ingestion",
            "the prefill [stage|part]",
            "reading the prompt",
        ),
        bare=("the first phase",),
        patterns=(
            "what [happens|goes on] [during|in] [the |]prefill?",
            "what does the [model|machine|computer|cpu] do [in the prefill phase|during prefill|while prefilling|while it reads the prompt]?",
            "why is prefill [compute[-| ]bound|limited by arithmetic|limited by compute]?",
            "what [limits|bounds] [the speed of |]prefill?",
            "[how|when] is the prompt [read|processed|computed]?",
            "what happens [to|with] my prompt [first|at first|before the answer|in the beginning]?",
            "what happens [right |]after i [press enter|send my prompt|hit enter]?",
            "what is the [reading|first] phase called?",
        ),
        answer=(
            "Prefill is the first phase of an answer: the model reads your whole prompt and fills the KV cache with its keys and values. All prompt tokens are computed together, so it is limited by arithmetic (compute-bound), and it decides the time to first token.",
        ),
        short=("Prefill is the phase in which the model reads the whole prompt at once and fills the KV cache.",),
        more=(
            "During prefill the weights are read once for a whole chunk of tokens, so the processor's arithmetic is the limit. A prompt of twice the length takes about twice as long. If the beginning of a prompt was seen before, localrun skips that part: this is prefix reuse.",
        ),
        simple=(
            "Prefill is the reading: the model goes through your question and takes notes before it writes the first word.",
        ),
        example=(
            "At 500 tokens per second, a prompt of 2,000 tokens takes 4 seconds of prefill before the first word.",
        ),
        weight=2.0,
    ),
    Topic(
        key="decode",
        names=(
            "decode",
            "decoding",
            "the decode phase",
            "decode phase",
            "the decoding phase",
            "token generation",
            "the decode step",
            "autoregressive decoding",
            "autoregressive generation",
            "the decod[e|ing] [stage|part]",
            "writing token by token",
        ),
        bare=("the second phase",),
        patterns=(
            "what [happens|goes on] [during|in] [the |]decod[e|ing]?",
            "why is decod[e|ing] memory[-| ]bound?",
            "why is decod[e|ing] limited by [memory bandwidth|bandwidth|memory][ and not by compute|]?",
            "what [limits|bounds] [the speed of |]decod[e|ing]?",
            "which [phase|of the two phases|of both phases] is [limited by bandwidth|memory-bound|memory bound]?",
            "why [does|must|can] a model [only |]write [only |]one token at a time?",
            "how is the answer written?",
            "[could you explain |]what decod[e|ing] means [here|in llms|for a model|]",
        ),
        answer=(
            "Decode is the second phase of an answer: the model writes one token at a time. Every step reads all the weights and the KV cache but does little arithmetic, so it is limited by memory bandwidth (memory-bound). Its pace is the inter-token latency.",
        ),
        short=(
            "Decode is the phase in which the model writes the answer, one token per step, limited by memory bandwidth.",
        ),
        more=(
            "A good estimate: tokens per second ≈ memory bandwidth divided by the size of the weights. That is why quantization speeds up decode: fewer bytes to read per token. `localrun bench` measures how close your machine comes to that limit.",
        ),
        simple=("Decode is the writing: one small piece of a word after another, each time with a look at the notes.",),
        example=("A 4 GB model on a machine that reads 40 GB a second writes at most 10 tokens per second.",),
        weight=2.0,
    ),
    Topic(
        key="phases",
        names=("the two phases[ of an answer|]", "[llm |text ]generation", "the phases of inference"),
        pairs=(
            ("[the |]prefill", "[the |]decode"),
            ("prefill", "decoding"),
            ("the prefill phase", "the decode phase"),
            ("[a |]prefill", "[a |]decode step"),
            ("prompt processing", "token generation"),
            ("reading the prompt", "writing the answer"),
        ),
        patterns=(
            "what are the [two |]phases of [inference|an answer|generation|a prompt]?",
            "[compare|explain] prefill and decod[e|ing]",
            "how [do|does] [you|a model|an llm|a language model|it] [answer|generate text|produce an answer|write an answer|make text]?",
            "how does [generation|text generation] work?",
            "[which|what] phases [are there|does an answer have]?",
        ),
        answer=(
            "An answer has two phases. Prefill reads the whole prompt at once and fills the KV cache; it is limited by compute and sets the time to first token. Decode then writes one token per step; it is limited by memory bandwidth and sets the time between tokens.",
        ),
        short=(
            "Prefill reads the prompt all at once (compute-bound); decode writes the answer token by token (memory-bound).",
        ),
        more=(
            "They also answer to different remedies. A shorter prompt or a reused prefix makes prefill faster; a smaller or more strongly quantized model makes decode faster. `localrun bench` shows both rates beside the limits of your machine.",
        ),
        simple=("First the model reads, then it writes. Reading is one big job; writing is many small ones.",),
        weight=1.6,
    ),
    Topic(
        key="ttft",
        names=(
            "TTFT",
            "time to first token",
            "the time to first token",
            "ttft in localrun",
            "first[ |-]token latency",
            "the ttft",
            "time-to-first-token",
            "first token time",
        ),
        bare=("ttft",),
        tasks=("[reduce|lower|improve|shorten] [ttft|the time to first token]",),
        patterns=(
            "what does ttft [stand for|measure]?",
            "[what is|is] a [good|normal|bad] [ttft|time to first token]?",
            "what [is|do you call] the [time|wait|delay] [before|until] the first [token|word] [called|]?",
        ),
        answer=(
            "TTFT is the time to first token: how long you wait from sending the prompt until the first token appears. It is mostly prefill, so it grows with the length of the prompt. A shorter prompt, or one that begins like an earlier one, makes it smaller.",
        ),
        short=("TTFT, the time to first token, is how long you wait before the answer starts.",),
        more=(
            '`localrun run --stats "Hello"` prints it. In a chat it stays small, because only your new message has to be prefilled: the rest is already in the KV cache.',
        ),
        simple=("It is the wait before the first word.",),
        example=("A prompt of 1,000 tokens at 500 tokens per second: TTFT is about 2 seconds.",),
        weight=1.5,
    ),
    Topic(
        key="itl",
        names=(
            "ITL",
            "inter-token latency",
            "the inter[ |-]token latency",
            "inter token latency",
            "[the |]time between [two |]tokens",
            "time per output token",
            "TPOT",
            "the itl",
            "the gap between [two |]tokens",
            "the pace [between|of] tokens",
        ),
        bare=("itl",),
        tasks=("[reduce|lower|improve] [itl|the inter-token latency|the time between tokens]",),
        patterns=(
            "what does itl [stand for|measure]?",
            "[what is|is] a [good|normal|bad] [itl|inter-token latency]?",
            "what [is|do you call] the [time|pace|gap|delay|pause] between [two|one and the next|the] [tokens|words|token] [called|]?",
            "what's the [pace|time|delay] between two [words|tokens] called?",
        ),
        answer=(
            "ITL is the inter-token latency: the time between one token and the next while the model writes. It is set by decode, which reads all the weights once per token, so memory bandwidth and the size of the model decide it.",
        ),
        short=("ITL, the inter-token latency, is the time between two tokens of the answer.",),
        more=(
            'Turn it around and you get the speed: 50 ms between tokens are 20 tokens per second. `localrun run --stats "Hello"` shows it.',
        ),
        simple=("It is the rhythm of the writing: how long each next piece of a word takes.",),
        example=("An ITL of 50 ms is 20 tokens per second, of 100 ms it is 10.",),
        weight=1.5,
    ),
    Topic(
        key="ttft_or_itl",
        pairs=(
            ("TTFT", "ITL"),
            ("[the |]time to first token", "[the |]inter-token latency"),
            ("time to first token", "time between tokens"),
            ("ttft", "itl"),
            ("ttft", "tpot"),
            ("first token latency", "inter token latency"),
        ),
        answer=(
            "TTFT is the wait until the first token, and ITL is the time between each token and the next. TTFT comes from prefill and grows with the prompt; ITL comes from decode and hangs on the size of the weights and the memory bandwidth.",
        ),
        weight=1.4,
    ),
    Topic(
        key="tps",
        names=(
            "tokens per second",
            "tps",
            "tok/s",
            "t/s",
            "tokens/s",
            "tokens/sec",
            "generation speed",
            "[a|the] token rate",
            "throughput",
        ),
        patterns=(
            "how fast are you?",
            "what is your speed?",
            "how many tokens per second [do you make|can you do|is good|do i get|is normal]?",
            "[is|are] [5|10|12|20|30|3|50|100] [tok/s|tokens per second|t/s|tokens a second] [good|any good|fast|slow|ok|normal|enough]?",
            "what is a good [speed|token rate|number of tokens per second]?",
            "how [do|should] i read tok/s?",
            "[is|are] [3|4|6|7|8|9|11|12|14|15|18|25|40|60|80] [tok/s|tokens per second|tokens a second|t/s|words per second] [good|any good|fast|slow|ok|normal|enough|a lot]?",
            "i get [3|6|8|12|15|25|40] [tok/s|tokens per second], is that [good|ok|slow|fast|normal]?",
            "what does [8|12|20|40] tok/s mean?",
        ),
        answer=(
            'Tokens per second is how fast a model reads (prefill) or writes (decode). People read at about 5 to 10 tokens per second, so anything above that feels fluent. `localrun run --stats "Hello"` shows both rates.',
        ),
        short=("It is how many tokens a model reads or writes in one second; `localrun bench` measures it.",),
        more=(
            "It depends on your machine and on the size of the model; `localrun bench` compares it with the limits of your machine.",
        ),
        weight=1.7,
    ),
)
