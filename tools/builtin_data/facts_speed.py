# ruff: noqa: E501 - patterns and sentences stand on one line each
"""What localrun's model can explain about speed: its limits, what to do about them, and tricks that get around them."""

from __future__ import annotations

from tools.builtin_data.topic import Topic

TOPICS = (
    Topic(
        key="bound",
        names=(
            "[memory|compute|bandwidth][-| ]bound",
            "[being |]memory-bound",
            "[being |]compute-bound",
            "memory bound",
            "compute bound",
            "decode-bound",
            "[the|a] [bottleneck|limit] of [inference|an llm]",
        ),
        pairs=(
            ("compute[-| ]bound", "memory[-| ]bound"),
            ("memory[-| ]bound", "compute[-| ]bound"),
            ("limited by compute", "limited by bandwidth"),
        ),
        patterns=("what [limits|bounds] [the speed of |][a model|an llm|inference|my model]?",),
        answer=(
            "A step is compute-bound when arithmetic is its limit, and memory-bound when moving bytes is. Prefill does much arithmetic per byte read, so it is compute-bound. Decode reads all the weights for a single token, so it is memory-bound.",
        ),
        short=(
            "Compute-bound means limited by arithmetic (prefill); memory-bound means limited by moving bytes (decode).",
        ),
        more=("`localrun bench` prints both limits of your machine and how close the model comes to them.",),
        simple=("Either the cook is too slow (compute-bound), or the ingredients arrive too slowly (memory-bound).",),
        weight=1.6,
    ),
    Topic(
        key="roofline",
        names=(
            "[the |a ]roofline",
            "the roofline model",
            "roofline",
            "arithmetic intensity",
            "a roofline [plot|chart|diagram]",
        ),
        answer=(
            "The roofline says how fast a step can be at best: the smaller of the arithmetic limit and memory bandwidth × operations per byte. Few operations per byte, as in decode, means bandwidth is the roof; many, as in prefill, means arithmetic is.",
        ),
        weight=1.2,
    ),
    Topic(
        key="bandwidth",
        names=("memory bandwidth", "the memory bandwidth", "bandwidth", "ram speed", "memory speed"),
        tasks=(
            "[estimate|compute|calculate|predict] [the tokens per second|the speed|tokens/s|tok/s|how fast a model will be][ of my machine|]",
        ),
        patterns=(
            "[what|how many] [speed|tokens per second|tok/s] can i expect [from my machine|on my laptop|]?",
            "does [faster ram|ram speed|memory bandwidth] [help|matter]?",
        ),
        answer=(
            "Memory bandwidth is how many bytes a second the machine can read. It limits decode, because every token reads all the weights: tokens per second ≈ bandwidth ÷ size of the weights. With 40 GB a second and a 4 GB model, that is at most 10.",
        ),
        more=(
            "`localrun doctor` prints the bandwidth of your machine, and `localrun fit` the speed to expect of each precision.",
        ),
        weight=1.2,
    ),
    Topic(
        key="slow",
        tasks=(
            "make [it|localrun|the model|my model|answers|this|my llm] [faster|run faster|quicker]",
            "speed [it|localrun|my model|things|this|the model] up",
            "[get|have] [faster answers|more speed|more tokens per second|better performance]",
            "speed up [inference|generation|the answers|decoding]",
            "make [inference|generation] faster",
        ),
        facts=(
            "[localrun|it|my model|the model|my llm|this|the thing] is [too |very |so |really |kinda |a bit |]slow[ on my machine| on my pc| here|]",
            "[the answers|answers|the words|tokens] [come|are|are coming] [too |so |very |][slow|slowly|slowly here]",
            "[i only get|it makes only|my laptop makes|my laptop generates|i get] [2|3|one|1|4|two] [tokens|words] [per|a] second",
            "[it|the answer] takes [ages|forever|too long|minutes]",
            "answers are crawling",
            "[generation|inference|everything] is [too |super |very |so |]slow",
            "my [laptop|pc|computer] [generates|makes|writes] [only |][1|2|3|4|5] [words|tokens] [per|a] second",
            "the model is [kinda|rather|pretty|very] slow on my [pc|laptop|machine|mac]",
        ),
        patterns=(
            "why [is|are] [localrun|it|my model|the model|my llm|this|the answers] [so |]slow?",
            "[it|the model|my model] is [too |very |so |]slow",
            "how [can|do] i get [more|higher] [tokens per second|tok/s|speed]?",
            "why is it [so |]slow on my [laptop|pc|mac|machine|computer]?",
            "why does it take so long on my [laptop|pc|machine]?",
        ),
        answer=(
            'Find the slow phase with `localrun run --stats "Hello"`. If the first token is late, prefill is: use a shorter prompt. If tokens come slowly, memory bandwidth is: use a smaller model or a lower precision such as int4. `localrun doctor` tells whether a fast backend is missing.',
        ),
        short=("Use a smaller model or a lower precision, and look at `localrun doctor` for a missing backend.",),
        more=(
            "`localrun bench` shows how close you are to the limits of your machine, and `localrun fit` shows which precision fits into memory.",
        ),
        weight=2.0,
    ),
    Topic(
        key="long_chats",
        facts=(
            "[long chats|longer chats|the chat] [get|gets|become|becomes] slower[ and slower|]",
            "[later|the tenth|the last] [messages|message|answers] [take|takes|are|is] [longer per word|slower than the first|slower]",
            "[speed|tokens per second] drops [with long context|in long chats|over time|as the chat grows]",
        ),
        patterns=(
            "why [do|does] [a long chat|long chats|a long context|the chat] [get|become|make it] slow[er|]?",
            "does a long[er|] context [slow|make] [it|the model] [down|slower]?",
            "why does [the model|it] get slower [as the chat goes on|the longer i chat|with every message|over time]?",
            "[it|the chat] gets slower and slower",
            "why [do|does] [later|newer|my latest|the last few] [answers|replies|messages|turns] [come slower|crawl|need more time|run slower|drip out] than the [early|earlier|opening] ones?",
            "[after|by] [twenty|30|fifty|a hundred] [messages|turns|questions] [it|the model|each word] [crawls|is slower|gets slow|takes longer][, why|, how come|. why|]?",
            "the [more|longer] [we talk|i chat|the chat gets|messages there are][, the slower it gets|, the slower it is|, the fewer tok/s][, why|. why|]?",
            "[at the start|in the beginning] [it is fast|i get 20 tok/s|it was quick], [after an hour|after many messages|later|in a long chat] [it is slow|only 10|it crawls][, why|. why|]?",
            "why does [each|every] [word|token] cost more [late in|at the end of|in] a long [chat|conversation|context]?",
            "[does|do] [the length of the chat|a full context|many messages|old messages] [slow down|slow] [generation|the answers|decode|the model]?",
            "why is [a new chat|a fresh chat|an empty chat] faster than [an old one|a long one|my old chat]?",
            "[itl|the time between tokens|the inter-token latency] [grows|rises|goes up] [with the chat|with the context|over a chat][, why|]?",
            "[message|turn|answer] [12|15|20|40|50] is [slower|much slower] than [message|turn|answer] [1|2|3][, why|]?",
        ),
        answer=(
            "Long chats get slower because each new token reads the keys and values of all earlier ones: the longer the chat, the more bytes of KV cache per token. A smaller cache helps (`--kv q8`), and so does a new chat.",
        ),
        weight=2.0,
    ),
    Topic(
        key="threads",
        names=("--threads", "[cpu |]threads", "the number of threads", "the --threads option"),
        tasks=(
            "[set|change|choose|limit] the [number of |]threads",
            "use [more|fewer|all|8|4] [cores|threads|cpu cores]",
        ),
        patterns=(
            "[do|does|would|will] more [threads|cores|cpu cores] [help|make it faster|speed it up|be faster]?",
            "how many [cpu |][threads|cores] [should i use|do i need|does localrun use|are best|is best|should i take]?",
            "does it use all [my |][cores|threads]?",
        ),
        answer=(
            "localrun uses one thread a core, which is best for most machines; `--threads N` sets another number. More threads help prefill, which needs arithmetic; decode is limited by memory bandwidth, where more threads soon help nothing.",
        ),
        weight=1.2,
    ),
    Topic(
        key="warm_up",
        names=("[a |]warm[-| ]up", "warming up", "a warm-up round", "a cold start", "cold start"),
        facts=(
            "the [very |]first [prompt|answer|question|run] [after loading|after the start|after starting] is slow[er|er than later ones|]",
            "[it|loading|the model] takes [long|a while|some time] to [load|start|load the model]",
        ),
        patterns=(
            "why is the [very |]first [prompt|run|answer|question] after [loading|the start|starting localrun] slow[er|]?",
            "why does [loading|loading a model|the start] take [so long|time|long]?",
            "why [do|does] [benchmarks|a benchmark|bench|you|localrun bench] [need|have|run|do] a warm[-| ]up[ round|]?",
            "why is the [very |]first run slow[er|][ than the second| than the next|]?",
            "is the first run [always |]slower?",
            "why is the first run [so |]slow?",
            "why [do|does] [benchmarks|a benchmark|people] need [a |]warm[-| ]up?",
        ),
        answer=(
            "A warm-up is what only happens the first time: the weights are read from disk and packed, memory is touched for the first time, and caches are still empty. So the first prompt after loading is slower than later ones; `localrun bench` runs one round to warm up before it measures.",
        ),
    ),
    Topic(
        key="speculation",
        names=(
            "speculative decoding",
            "speculative decoding",
            "speculation",
            "[a|the] draft model",
            "speculative sampling",
            "assisted generation",
            "lookahead decoding",
            "guessing tokens ahead",
            "spec decoding",
            "draft tokens",
        ),
        patterns=(
            "can a [small|little|tiny|draft] [model|draft model] [make|help] [a|the] [big|large|bigger] [one|model] [faster|be faster]?",
            "does speculative decoding [change|alter|hurt] the [text|answer|quality|output]?",
            "[is the text|do i get|is the output] [the same|different|other text] with speculative decoding?",
            "why is speculative decoding [faster|fast]?",
            "does localrun [have|support|use|do] speculative decoding?",
            "can a model [write|make] several tokens [at once|per step]?",
        ),
        pairs=(("speculative decoding", "[normal|ordinary|plain] decoding"), ("speculative decoding", "batching")),
        answer=(
            "Speculative decoding guesses several tokens ahead, often with a small draft model, and lets the large model check them all in one step. Decode is limited by reading the weights, so checking a few tokens costs little more than making one. The text stays the same; localrun does not do it yet.",
        ),
        short=(
            "Speculative decoding guesses tokens ahead and checks them in one step, for the same text in less time.",
        ),
        more=(
            "If the guesses are right, several tokens come out of one reading of the weights. If one is wrong, what follows it is thrown away. It helps most where text is easy to guess, such as code.",
        ),
        simple=("A quick assistant writes the next words in pencil, and the expert checks them at a glance.",),
        example=(
            "A draft of 4 tokens, 3 of them right: one step of the large model gives 4 tokens instead of 1, its own next one included.",
        ),
        weight=1.8,
    ),
    Topic(
        key="price",
        names=(
            "[the |]price of [input|output] tokens",
            "input [and|vs] output [token |]prices",
            "input tokens",
            "output tokens",
        ),
        pairs=(("input tokens", "output tokens"), ("prompt tokens", "completion tokens")),
        facts=(
            "[input tokens are cheaper than output tokens|output tokens cost more|output tokens are more expensive|providers charge less for input tokens]",
        ),
        patterns=(
            "why [are|do] [output tokens|generated tokens] [more expensive|cost more|dearer|so expensive][ than input tokens|]?",
            "why [are|do] input tokens [cheaper|cost less][ than output tokens|]?",
            "why do [providers|apis|companies|openai] charge [more|less] for [output|input][ tokens|]?",
            "what would [my|these] tokens cost here?",
        ),
        answer=(
            "Input tokens are cheap because prefill computes them all together and reads the weights once for many of them. Output tokens cost more because decode reads all the weights again for each one. `localrun explain price` shows both on your machine.",
        ),
        weight=1.1,
    ),
)
