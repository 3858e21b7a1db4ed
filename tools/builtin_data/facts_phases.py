# ruff: noqa: E501 - patterns and sentences stand on one line each
"""What localrun's model can explain about speed: prefill, decode, the KV cache and what follows from them."""

from __future__ import annotations

from tools.builtin_data.topic import Topic

TOPICS = (
    Topic(
        key="second_token",
        patterns=(
            "why [does|do] the [initial|very first|first|1st|opening] [token|word] [need|take|require|cost] [more|so much|extra|that much|longer|so much more] [time|]?",
            "why is the [initial|very first|first|opening] [token|word|one|output] [later|slower|so late|so slow|the slowest|delayed|expensive]?",
            "what is the reason [that |][the first token is slow|the second token is faster|the first token takes longer|later tokens are faster]?",
            "[after|once] the first [token|word] [is there|it is fast|everything is fast|it gets faster|it goes faster|has appeared, it is fast][, why|, how come|. why|]?",
            "how come [it takes|i wait] [so long|forever|ages|a while|long] [until|before|for] the first [token|word] [appears|arrives|comes|shows up|]?",
            "[the first token|token one|token 1|the first word] [takes ages|takes long|is slow|takes forever|is so slow] [but|and|while] [the second|the next ones|token two|token 2|the rest|the others] [is|are|come] [fast|instant|quick|quickly|immediate][. why|, why|. explain|, explain why|]?",
            "is the [second|next] token [faster|quicker] than the first[, and why|? why|]?",
            "why [the second|second|2nd] token [is |]faster",
            "why [must|do|should] [i|we|people|users] wait [so long |longer |]before the [first token|first word|answer] [appears|comes|starts|arrives]?",
            "why is there [such |]a [long |big |]pause before [you begin|you start|the answer begins|the first token comes|anything appears]?",
            "tell me why [the first token is slow|the second token is faster|tokens come faster after the first|the tokens after the first come faster]",
            "why is the [second|2nd|next] token [so much |much ||a lot |way ][faster|quicker] than the [first|first one|1st|first token]?",
            "why [is|are] the [second token|later tokens|next tokens|following tokens|other tokens|rest] [faster|quicker|so fast]?",
            "why is the first [token|word|one] [so |much |||the ][slow|slower|slowest]?",
            "why is the [first token|first word|1st token] slower than the [second|second token|second one|others|rest|next]?",
            "why does the first [token|word|letter] take [so long|longer|longest|so much time|so much longer|a while|ages|forever]?",
            "why [do i have to|do i|must i|should i] wait [for|so long for|longer for|longest for] the first [token|word]?",
            "why is there a [pause|delay|wait|lag|gap] before [the first token|the first word|the answer|it starts|the reply|the text starts|you start|you answer|the output]?",
            "what makes the [second|next|following] [token|tokens|word|words] [faster|quicker|so fast|so quick] [than the first|]?",
            "what makes the first [token|word] [slow|so slow|slower]?",
            "how come the [second|next|2nd] token [is|comes|arrives|appears] [faster|quicker|sooner|so quickly] [than the first|]?",
            "how come the first [token|word] [is|takes] so [slow|long]?",
            "explain why the [second|next] token is [faster|quicker] [than the first|]",
            "explain why the first token is [slow|slower|so slow]",
            "why do [models|llms|chatbots|language models|you] [pause|wait|think|hesitate] before [answering|the first word|they start|starting|the first token]?",
            "why is [generating|making|producing|writing] the first token [slower|slow|expensive|so slow]?",
            "why does it [get|go] faster after the first [token|word]?",
            "why does it take [a while|so long|time|a moment|a bit] [to start|to begin|before it starts|before the answer starts|to start answering|to get going]?",
            "why does it [start|begin] [slow|slowly] and [then |][go|get|become|speed up] [fast|faster|quickly|]?",
            "why are the tokens after the first [one |][faster|quicker|so fast]?",
            "first token slow, [second|next|others] fast, why?",
            "[first token|first word] is slow, why?",
            "why is time to first token [so long|long|high|longer than itl|so high|bigger]?",
            "why [is|was] your first [token|word] so slow?",
            "why is token [two|2] faster than token [one|1]?",
            "what is the difference between the first and the second token?",
            "what happens [before|during|while computing] the first token?",
        ),
        answer=(
            "Because the first token pays for reading your prompt. Before it can appear, the model runs every prompt token through all of its layers (the prefill) and stores their keys and values in the KV cache. "
            "The second token reuses that cache, so only one new token has to be computed.\n\n"
            "Prefill does a lot of arithmetic at once, so it is limited by compute: that wait is the time to first token (TTFT). "
            "Decode does little arithmetic but reads all the weights once per token, so it is limited by memory bandwidth: that pace is the inter-token latency (ITL).",
            "The first token has to wait for your whole prompt. In the prefill, every prompt token goes through every layer, and the keys and values that come out are kept in the KV cache. "
            "After that, each new token computes only itself and looks up the rest in the cache.\n\n"
            "So the two phases have different limits. Prefill is compute-bound: a longer prompt means a longer time to first token (TTFT). "
            "Decode is memory-bound: each token reads all the weights once, which sets the inter-token latency (ITL).",
        ),
        short=(
            "The first token waits until the whole prompt has been computed (prefill); the second reuses those results from the KV cache and computes only one new token.",
            "Prefill must process your entire prompt before the first token; after that the KV cache leaves only one token to compute per step.",
        ),
        more=(
            'You can see both phases on your own machine: `localrun run --stats "Hello"` prints the time to first token and the time between tokens, and `localrun explain` measures them live. '
            "A longer prompt makes the first number grow, while the second stays almost the same. And when a new prompt begins like an earlier one, localrun reuses the cached prefix, so even the first token comes quickly.",
            "In numbers: a prompt of 1000 tokens means work for 1000 tokens before the first word, but they share each read of the weights, so the processor is kept busy with arithmetic. "
            "Every later token needs the work of one token, yet the weights must be read again, so memory bandwidth sets the speed. Try it: `localrun explain` measures both on your machine.",
        ),
        simple=(
            "Think of an exam: before you write the first word, you have to read the whole question. That is the prefill. Then you write on from your notes, word after word, without reading it all again. The notes are the KV cache.",
        ),
    ),
    Topic(
        key="kv_cache",
        names=(
            "the KV cache",
            "a KV cache",
            "KV cache",
            "kv caching",
            "the kv-cache",
            "the key-value cache",
            "a key value cache",
            "the key/value cache",
            "kvcache",
            "KV",
        ),
        patterns=(
            "what is [stored|kept|saved|inside|held] in the [kv|key value|key-value] cache?",
            "what does the kv cache [do|store|hold|keep|save|contain]?",
            "why does a model need a [kv|key value] cache?",
            "what would happen without [a|the] kv cache?",
            "how does the kv cache [make|help] [it faster|decoding faster|generation faster|speed]?",
            "what are [keys and values|the keys and values]?",
            "what is [kv|the kv] cache in [an llm|llms|a language model|transformers|localrun|this app]?",
        ),
        answer=(
            "The KV cache is the model's working memory for one conversation. For every token it has read, each attention layer produces a key and a value; the cache keeps them, so that the next token can attend to everything before it without computing it again.\n\n"
            "Without it, each new token would cost as much as the whole text so far. The price is memory: the cache grows with every token of context.",
            "A KV cache stores the keys and values that the attention layers computed for every token so far. When the model writes the next token, it reads them from the cache instead of running the whole text through the network again.\n\n"
            "That is what makes decoding fast. It costs memory, and the amount grows with the length of the chat.",
        ),
        short=(
            "The KV cache keeps the attention keys and values of all earlier tokens, so that each new token does not have to compute them again.",
        ),
        more=(
            "Its size is easy to compute: 2 (keys and values) × layers × KV heads × head size × bytes per value, for every token. localrun can shrink it with `--kv q8` or `--kv q4`, and `localrun fit` shows how much context your memory can hold. "
            "When two prompts begin with the same text, localrun reuses that part of the cache instead of computing it twice.",
        ),
        simple=(
            "It is like taking notes while you read. When the model writes the next word, it looks at its notes instead of reading the whole text again. More text means more notes, so the cache takes more memory.",
        ),
    ),
    Topic(
        key="prefill",
        names=("prefill", "the prefill", "prefill phase", "the prefill phase", "prefilling", "prompt processing"),
        patterns=("what happens during prefill?", "why is prefill compute[-| ]bound?", "what [limits|bounds] prefill?"),
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
    ),
    Topic(
        key="decode",
        names=("decode", "decoding", "the decode phase", "decode phase", "the decoding phase", "token generation"),
        patterns=(
            "what happens during decod[e|ing]?",
            "why is decod[e|ing] memory[-| ]bound?",
            "what [limits|bounds] decod[e|ing]?",
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
    ),
    Topic(
        key="phases",
        patterns=(
            "[what is|what's|explain] the difference between prefill and decod[e|ing]?",
            "prefill [vs|versus|or|and] decod[e|ing]?",
            "how [is|does] prefill differ[ent|] from decod[e|ing]?",
            "what are the [two |]phases of [inference|an answer|generation|a prompt]?",
            "[compare|explain] prefill and decod[e|ing]",
            "how [do|does] [you|a model|an llm|a language model|it] [answer|work|generate text|produce an answer|write an answer|make text]?",
            "how does [inference|generation|text generation|llm inference] work?",
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
    ),
    Topic(
        key="ttft",
        names=("TTFT", "time to first token", "the time to first token", "ttft in localrun", "first token latency"),
        patterns=("what does ttft stand for?", "how [can|do] i [reduce|lower|improve] [ttft|the time to first token]?"),
        answer=(
            "TTFT is the time to first token: how long you wait from sending the prompt until the first token appears. It is mostly prefill, so it grows with the length of the prompt. A shorter prompt, or one that begins like an earlier one, makes it smaller.",
        ),
        short=("TTFT, the time to first token, is how long you wait before the answer starts.",),
        more=(
            '`localrun run --stats "Hello"` prints it. In a chat it stays small, because only your new message has to be prefilled: the rest is already in the KV cache.',
        ),
    ),
    Topic(
        key="itl",
        names=(
            "ITL",
            "inter-token latency",
            "the inter token latency",
            "inter token latency",
            "time between tokens",
            "time per output token",
        ),
        patterns=("what does itl stand for?",),
        answer=(
            "ITL is the inter-token latency: the time between one token and the next while the model writes. It is set by decode, which reads all the weights once per token, so memory bandwidth and the size of the model decide it.",
        ),
        short=("ITL, the inter-token latency, is the time between two tokens of the answer.",),
        more=(
            'Turn it around and you get the speed: 50 ms between tokens are 20 tokens per second. `localrun run --stats "Hello"` shows it.',
        ),
    ),
    Topic(
        key="tps",
        names=("tokens per second", "tps", "tok/s", "t/s", "generation speed"),
        patterns=(
            "how fast are you?",
            "what is your speed?",
            "how many tokens per second [do you make|can you do|is good|do i get]?",
        ),
        answer=(
            'Tokens per second is how fast a model reads (prefill) or writes (decode). It depends on your machine and on the size of the model. `localrun run --stats "Hello"` shows both rates, and `localrun bench` compares them with the limits of your machine.',
        ),
        short=("It is how many tokens a model reads or writes in one second; `localrun bench` measures it.",),
        more=(
            "As a rule of thumb, people read at about 5 to 10 tokens per second, so anything above that feels fluent.",
        ),
    ),
    Topic(
        key="bound",
        names=(
            "memory-bound",
            "compute-bound",
            "memory bound",
            "compute bound",
            "memory bandwidth",
            "the roofline",
            "a roofline",
            "roofline model",
            "bandwidth bound",
        ),
        patterns=(
            "what is the difference between compute[-| ]bound and memory[-| ]bound?",
            "compute bound [or|vs] memory bound?",
        ),
        answer=(
            "A step is compute-bound when arithmetic is its limit, and memory-bound when moving bytes is. Prefill does much arithmetic per byte read, so it is compute-bound. Decode reads all the weights for a single token, so it is memory-bound.",
        ),
        short=(
            "Compute-bound means limited by arithmetic (prefill); memory-bound means limited by moving bytes (decode).",
        ),
        more=("`localrun bench` prints both limits of your machine and how close the model comes to them.",),
    ),
    Topic(
        key="prefix",
        names=("prefix reuse", "the prefix cache", "prefix caching", "a prefix cache", "prompt caching"),
        patterns=(
            "why is the second [message|question|turn|answer|prompt] [in a chat |]faster [than the first|]?",
            "why [are|is] [follow-ups|later messages|the next message|a follow up] [faster|quick|so fast]?",
            "what happens when i send the same prompt [twice|again]?",
        ),
        answer=(
            "Prefix reuse means that text which was computed once is not computed again. When a prompt begins like an earlier one, such as the next message of the same chat, localrun finds its keys and values in the KV cache and prefills only what is new. So the first token comes sooner.",
        ),
        short=(
            "When a prompt begins like an earlier one, localrun reuses that part of the KV cache and computes only the rest.",
        ),
        more=(
            "The text must be the same from its very first token; one early change, and everything after it has to be computed again. `--no-prefix-cache` switches it off, if you want to compare.",
        ),
    ),
    Topic(
        key="slow",
        patterns=(
            "why [is|are] [localrun|it|my model|the model|my llm|this|the answers] [so |]slow?",
            "how [can|do] i make [it|localrun|the model|my model|answers] [faster|run faster]?",
            "how [can|do] i speed [it|localrun|my model|things] up?",
            "[it|the model|my model] is [too |very |so |]slow",
        ),
        answer=(
            'Find out which phase is slow first: `localrun run --stats "Hello"` shows both. If the first token is late, prefill is the limit: use a shorter prompt. If the tokens come slowly, memory bandwidth is: use a smaller model or a lower precision such as int4. `localrun doctor` tells whether a fast backend is missing.',
        ),
        short=("Use a smaller model or a lower precision, and look at `localrun doctor` for a missing backend.",),
        more=(
            "`localrun bench` shows how close you are to the limits of your machine, and `localrun fit` shows which precision fits into memory.",
        ),
    ),
)
