# ruff: noqa: E501 - patterns and sentences stand on one line each
"""Why the second token is faster than the first: the question that everything else is about."""

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
            "why do i [always |]have to wait at the [start|beginning][ of an answer| of each answer|]?",
            "why is there a wait at the [start|beginning] of [the|every|each|an] answer?",
            "what makes the first token [so |]slow?",
            "why does the [first token|first word] [lag|hang|come late]?",
        ),
        answer=(
            "Because the first token pays for reading your prompt. Before it can appear, the model runs every prompt token through all of its layers (the prefill) and stores their keys and values in the KV cache. "
            "The second token reuses that cache, so only one new token has to be computed.\n\n"
            "Prefill does a lot of arithmetic at once, so it is limited by compute: that wait is the time to first token (TTFT). "
            "Decode does little arithmetic but reads all the weights once per token, so it is limited by memory bandwidth: that pace is the inter-token latency (ITL).",
        ),
        short=(
            "The first token waits until the whole prompt has been computed (prefill); the second reuses those results from the KV cache and computes only one new token.",
        ),
        more=(
            'You can see both phases on your own machine: `localrun run --stats "Hello"` prints the time to first token and the time between tokens, and `localrun explain` measures them live. '
            "A longer prompt makes the first number grow, while the second stays almost the same. And when a new prompt begins like an earlier one, localrun reuses the cached prefix, so even the first token comes quickly.",
        ),
        simple=(
            "Think of an exam: before you write the first word, you have to read the whole question. That is the prefill. Then you write on from your notes, word after word, without reading it all again. The notes are the KV cache.",
        ),
        facts=(
            "[the first token|the first word] [takes long|is slow|takes forever|takes longer than the second|is slower than the rest]",
            "the second token is faster than the first",
            "[there is|i see|you make] a [long |]pause before [the answer|the first word|you start]",
        ),
        example=(
            "In numbers: a prompt of 1000 tokens means work for 1000 tokens before the first word, but they share each read of the weights, so the processor is kept busy with arithmetic. "
            "Every later token needs the work of one token, yet the weights must be read again, so memory bandwidth sets the speed. Try it: `localrun explain` measures both on your machine.",
        ),
        weight=4.0,
    ),
)
