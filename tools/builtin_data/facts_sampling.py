# ruff: noqa: E501 - patterns and sentences stand on one line each
"""What localrun's model can explain about how the next token is chosen."""

from __future__ import annotations

from tools.builtin_data.topic import Topic

TOPICS = (
    Topic(
        key="temperature",
        names=(
            "temperature",
            "the temperature",
            "sampling temperature",
            "temperature in an llm",
            "the temperature setting",
            "--temperature",
            "temp",
        ),
        tasks=(
            "[set|change|lower|raise] the temperature",
            "make [the model|it|answers] more [creative|random|precise|predictable]",
        ),
        pairs=(
            ("temperature 0", "temperature 1"),
            ("[a |]low", "[a |]high temperature"),
            ("temperature 0", "0.7"),
            ("temperature", "top-p"),
        ),
        patterns=(
            "what does [the |]temperature [setting |][do|mean|change]?",
            "[what|which] temperature should i [use|set|choose]?",
            "what does temperature [0|0.7|1] mean?",
            "what [is|'s] a good temperature?",
            "[what|which] temp [should i use|is good|is best]?",
            "temperature [0|0.2|0.5|0.7] [or|vs|versus] [1|0.7|1.5|0.8]?",
            "is [a |]temperature [of |][0|0.3|0.7|1|2] [good|too high|too low|ok]?",
            "what temp should i [use|set|take]?",
        ),
        answer=(
            "Temperature controls how much chance there is in picking the next token. At 0 the model always takes the likeliest one; around 0.7 answers vary; above 1 they get wild. Set it with `--temperature`.",
        ),
        short=("Temperature sets how random the choice of the next token is; 0 means always the likeliest one.",),
        more=(
            "The model's scores are divided by the temperature before they become probabilities. A low value makes the best token stand out, a high one flattens the differences.",
        ),
        simple=("It is like a dial between careful and playful.",),
        weight=1.5,
    ),
    Topic(
        key="top_p",
        names=(
            "top-p",
            "top p",
            "top_p",
            "top-k",
            "top k",
            "top_k",
            "nucleus sampling",
            "--top-p",
            "--top-k",
            "nucleus sampling",
            "top-p sampling",
            "top-k sampling",
        ),
        pairs=(("top-p", "top-k"), ("top k", "top p"), ("top_p", "top_k")),
        patterns=(
            "top[-| ][k|p] explained",
            "explain top[-| |_][k|p]",
        ),
        answer=(
            "Top-p and top-k limit the choice of the next token. Top-k keeps the k likeliest tokens; top-p keeps the smallest set whose probabilities add up to p, for example 0.95. Set them with `--top-k` and `--top-p`.",
        ),
        weight=1.4,
    ),
    Topic(
        key="min_p",
        names=("min-p", "min p", "min_p", "--min-p"),
        pairs=(("min-p", "top-p"), ("min_p", "top_p")),
        answer=(
            "Min-p drops tokens that are much less likely than the best one: with 0.05, all below 5 % of its probability. It cuts more when the model is sure and less when it is not. Set it with `--min-p`.",
        ),
        weight=1.1,
    ),
    Topic(
        key="sampling",
        names=(
            "sampling",
            "a sampler",
            "samplers",
            "greedy decoding",
            "greedy sampling",
            "sampling parameters",
            "token sampling",
        ),
        pairs=(("greedy", "sampling"), ("greedy decoding", "sampling")),
        patterns=(
            "how is the next token [chosen|picked|selected]?",
            "how does a model [choose|pick] the next [token|word]?",
        ),
        answer=(
            "Sampling is how the next token is picked from the model's probabilities. Greedy always takes the best; otherwise chance decides, and temperature, top-k, top-p and min-p say how freely.",
        ),
        weight=1.1,
    ),
    Topic(
        key="seed",
        names=("a seed", "the seed", "the random seed", "--seed", "seeds", "seed"),
        tasks=(
            "[get|have] the same answer [twice|again|every time]",
            "[get|have] reproducible [answers|results|output]",
            "make [answers|the output|it] [reproducible|deterministic|repeatable]",
        ),
        facts=("[the model|it] gives [another|a different] answer [each time|every time]",),
        patterns=(
            "why [do|does] [you|it|the model] [give|say] [different|other] answers [each time|every time|]?",
            "how [do|can] i make the output [deterministic|the same|reproducible|repeatable]?",
            "why is the answer [different|another one] every time?",
            "why do i get [different|other|another] [answers|answer] [every time|each time]?",
        ),
        answer=(
            "A seed fixes the chance in sampling: the same prompt with the same seed gives the same answer. Set it with `--seed 1`, or use `--temperature 0` for no chance at all.",
        ),
        short=("A seed makes random choices repeatable: same seed, same answer.",),
        weight=1.2,
    ),
    Topic(
        key="repetition",
        names=(
            "--repeat-penalty",
            "the repeat penalty",
            "repetition penalty",
            "presence penalty",
            "frequency penalty",
            "a repeat penalty",
            "--stop-on-loop",
        ),
        facts=(
            "[it|the model|my model] [keeps repeating itself|repeats the same sentence|is stuck in a loop|loops|keeps repeating the same sentence|says the same thing again and again]",
        ),
        tasks=("stop [the model|it] from repeating itself", "avoid repetition"),
        patterns=(
            "it loops [forever|endlessly|and loops]",
            "[it|the model] [repeats|loops] [itself|forever|the same words]",
            "endless repetition",
        ),
        answer=(
            "If a model repeats itself, raise `--repeat-penalty` to 1.1 or the temperature a little; `--stop-on-loop` ends an answer that only repeats. Small and strongly quantized models loop more often.",
        ),
        weight=1.2,
    ),
    Topic(
        key="max_tokens",
        names=(
            "--max-tokens",
            "max tokens",
            "max_tokens",
            "--stop",
            "a stop [sequence|word|token]",
            "the length of an answer",
        ),
        tasks=("[limit|set|change] the length of [the|an] answer", "get [longer|shorter] answers"),
        facts=(
            "[the answer|it|the text|my answer|the reply|the output] [stops|ends|breaks off|is cut|was cut|is cut off] [in the middle|too early|mid sentence|in the middle of a sentence|half way|suddenly|]",
            "the answer [stops|ends|breaks off] in the middle",
            "the [output|answer|reply] [gets|is] cut off",
        ),
        patterns=(
            "how do i limit [the answer length|the length|the answer]?",
            "[answer|output] length limit",
        ),
        answer=(
            "`--max-tokens N` sets the longest answer in tokens. If an answer breaks off, it reached that limit or the end of the context: raise one of them, or type `/continue` in a chat. `--stop TEXT` ends an answer before that text.",
        ),
        weight=1.2,
    ),
)
