# ruff: noqa: E501 - patterns and sentences stand on one line each
"""What localrun's model can explain about language models: the words on the screen of the app."""

from __future__ import annotations

from tools.builtin_data.topic import Topic

TOPICS = (
    Topic(
        key="quantization",
        names=(
            "quantization",
            "quantisation",
            "a quantized model",
            "quantized models",
            "quantizing",
            "a quant",
            "quantized",
            "weight quantization",
            "model quantization",
        ),
        patterns=(
            "why [quantize|quantise|are models quantized|do people quantize models|should i quantize]?",
            "does quantization [hurt|lower|reduce] quality?",
            "what [do|does] [q4|q8|4-bit|8-bit|int8|int4|q4_0|q8_0|q4_k_m|q4_k] mean?",
            "what is [q4|q8|4-bit|8-bit|int8|int4|q4_0|q8_0|q4_k_m|q6_k|q4_k]?",
            "[int4|q4|4 bit] [or|vs] [int8|q8|8 bit]?",
            "which [precision|quant|quantization] should i [use|choose|pick]?",
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
        weight=1.5,
    ),
    Topic(
        key="gguf",
        names=("GGUF", "a gguf file", "gguf files", "the gguf format", "a .gguf file", "gguf"),
        patterns=(
            "what is inside a gguf [file|]?",
            "what [file formats|formats|files|kinds of files|model files|file types] can [you|localrun|i|it|the app] [open|load|read|use|run]?",
            "[which|what] [file |]formats [do you|does it|does localrun] [understand|know|read|open|load]?",
            "what does gguf stand for?",
            "gguf [or|vs] safetensors?",
            "[what|which] [file formats|formats|files] [are supported|does localrun support|can localrun load|can i load|can it read]?",
            "can [localrun|it|i] [load|open|use] [a |my own |][gguf|safetensors] [file|files|]?",
            "how do i [run|use|load|open] [a|my|my own] [gguf|model file|local file|gguf file]?",
        ),
        answer=(
            'GGUF is a file format for language models: one file holds the weights, usually quantized, the tokenizer and all settings. localrun loads it directly: `localrun run -m model.gguf "Hello"`. Folders with safetensors work too.',
        ),
        short=("GGUF is a single-file format that holds a model's weights, tokenizer and settings.",),
        more=(
            "I am a GGUF file myself: about 7 MB of Q8_0 weights in the llama architecture. `localrun show builtin` prints what is inside.",
        ),
        weight=1.3,
    ),
    Topic(
        key="safetensors",
        names=("safetensors", "a safetensors file", "safetensors files", "the safetensors format"),
        answer=(
            "Safetensors is a file format for model weights that holds plain numbers and no code, so it is safe to open. A model is a folder with such files, a config and a tokenizer, and localrun loads it as it is.",
        ),
        short=("Safetensors is a safe file format for model weights.",),
    ),
    Topic(
        key="token",
        names=("a token", "tokens", "token", "tokens in an llm"),
        patterns=(
            "how [long|big] is a token?",
            "how many [words|letters|characters] is a token?",
            "is a token a word?",
            "what are tokens [made of|]?",
        ),
        answer=(
            'A token is a piece of text that a model reads or writes in one step: a word, part of a word, or a sign. In English, one token is about three quarters of a word. `localrun tokenize "Hello there"` shows how a text is split.',
        ),
        short=("A token is the piece of text, often a word or part of one, that a model handles in one step.",),
        more=(
            "The model never sees letters: it sees token ids, which are numbers in its vocabulary. Mine has 3072 of them, others have 150,000 and more.",
        ),
        simple=("Tokens are the building bricks of text: short words are one brick, long words are several.",),
        weight=1.5,
    ),
    Topic(
        key="tokenizer",
        names=(
            "a tokenizer",
            "the tokenizer",
            "tokenizer",
            "tokenization",
            "bpe",
            "byte pair encoding",
            "localrun tokenize",
        ),
        answer=(
            'A tokenizer turns text into token ids and back. Most models use byte-pair encoding (BPE), which starts from single bytes and merges the pairs that occur most often. `localrun tokenize "Hello there"` shows the ids.',
        ),
        short=("A tokenizer turns text into token ids, and ids back into text.",),
    ),
    Topic(
        key="context",
        names=(
            "context",
            "the context",
            "a context window",
            "the context window",
            "context length",
            "the context length",
            "context size",
            "ctx",
            "a context",
        ),
        patterns=(
            "what happens when the context is full?",
            "how [long|big|large] is your [context|memory]?",
            "how [long|big|large] is your context [window|]?",
            "how much [can you remember|text can you read|context do you have]?",
            "how long can [a|our] chat be?",
            "how [can|do] i [increase|set|change] the context [length|size|window|]?",
        ),
        answer=(
            "The context is the text a model can see at once: system prompt, your messages and its own answers, measured in tokens. Mine is 1024 tokens. A longer context needs a larger KV cache; set it with `--ctx`.",
        ),
        short=("The context is how many tokens a model can see at once; mine is 1024.",),
        more=(
            "When the context is full, localrun never cuts anything silently: you choose whether to stop, to drop the oldest turns, or to let a window roll, and the chat shows what the model no longer sees.",
        ),
        weight=1.3,
    ),
    Topic(
        key="temperature",
        names=(
            "temperature",
            "the temperature",
            "sampling temperature",
            "temperature in an llm",
            "the temperature setting",
            "--temperature",
        ),
        patterns=(
            "what does [the |]temperature [setting |][do|mean|change]?",
            "[what|which] temperature should i [use|set|choose]?",
            "how do i [set|change] the temperature?",
            "how do i make [the model|it|answers] more [creative|random|precise]?",
        ),
        answer=(
            "Temperature controls how much chance there is in picking the next token. At 0 the model always takes the most likely one; around 0.7 answers vary; above 1 they get wild. Set it with `--temperature`.",
        ),
        short=("Temperature sets how random the choice of the next token is; 0 means always the most likely one.",),
        more=(
            "The model's scores are divided by the temperature before they become probabilities. A low value makes the best token stand out, a high one flattens the differences.",
        ),
        simple=("It is like a dial between careful and playful.",),
        weight=1.3,
    ),
    Topic(
        key="sampling",
        names=(
            "top-p",
            "top p",
            "top-k",
            "top k",
            "min-p",
            "nucleus sampling",
            "sampling",
            "a sampler",
            "greedy decoding",
            "greedy sampling",
            "min p",
        ),
        answer=(
            "Sampling is how the next token is picked from the model's probabilities. Top-k keeps the k most likely tokens, top-p keeps the smallest set whose probabilities reach p, and min-p drops tokens far below the best one. Greedy always takes the best.",
        ),
        short=(
            "Sampling picks the next token from the model's probabilities; top-k, top-p and min-p limit the choice.",
        ),
    ),
    Topic(
        key="seed",
        names=("a seed", "the seed", "the random seed", "--seed", "seeds"),
        patterns=(
            "why [do|does] [you|it|the model] [give|say] [different|other] answers [each time|every time|]?",
            "how [do|can] i get the same answer [twice|again]?",
        ),
        answer=(
            "A seed fixes the chance in sampling: the same prompt with the same seed gives the same answer. Set it with `--seed 1`, or use `--temperature 0` for no chance at all.",
        ),
        short=("A seed makes random choices repeatable: same seed, same answer.",),
    ),
    Topic(
        key="llm",
        names=(
            "an LLM",
            "LLMs",
            "a language model",
            "a large language model",
            "language models",
            "llm",
            "a chatbot",
            "a local llm",
            "a local model",
            "a model",
            "models",
        ),
        patterns=(
            "how do [llms|language models|models] work?",
            "how [does|do] [a language model|an llm|llms] [learn|think]?",
            "how are [models|llms|language models] trained?",
        ),
        answer=(
            "A language model is a network that predicts the next token of a text. Trained on a lot of text, it can write, answer and summarise by predicting one token after another. Large ones know a lot; I am a very small one.",
        ),
        short=("A language model predicts the next token of a text, over and over.",),
        more=(
            "It has two parts in practice: the weights, which are learnt numbers in a file, and a program such as localrun that runs them. Everything the model knows is in the weights; everything it remembers of a chat is in the KV cache.",
        ),
        simple=("It is a program that is very good at guessing the next word.",),
    ),
    Topic(
        key="parameters",
        names=("parameters", "a parameter", "weights", "the weights", "model weights", "a weight", "7b", "4b", "8b"),
        patterns=(
            "what does [7b|4b|8b|70b|1b|3b] mean?",
            "what is a [7b|4b|8b|70b] model?",
            "what does the b in [7b|4b|8b] [mean|stand for]?",
        ),
        answer=(
            'Parameters, or weights, are the learnt numbers of a model. "4B" means four billion of them. More parameters usually mean better answers, more memory and slower tokens. I have about 6.3 million.',
        ),
        short=("Parameters are the learnt numbers of a model; 4B means four billion.",),
    ),
    Topic(
        key="attention",
        names=(
            "attention",
            "self-attention",
            "an attention layer",
            "the attention mechanism",
            "attention in transformers",
            "a transformer",
            "transformers",
            "the transformer architecture",
        ),
        answer=(
            "Attention is how a transformer looks back: for each new token, a query is compared with the keys of all earlier tokens, and their values are mixed by how well they match. Those keys and values are what the KV cache keeps.",
        ),
        short=("Attention lets each token look at all earlier tokens and take what it needs from them.",),
        simple=("It is like looking back over your notes and picking the lines that matter for the next word.",),
    ),
    Topic(
        key="gqa",
        names=("GQA", "grouped-query attention", "grouped query attention"),
        answer=(
            "Grouped-query attention lets several query heads share one key and value head. That makes the KV cache smaller, so a longer context fits into memory. I use it too: 4 query heads share 2 KV heads.",
        ),
        short=("With grouped-query attention several query heads share one KV head, so the KV cache is smaller.",),
    ),
    Topic(
        key="speculation",
        names=("speculative decoding", "speculation", "a draft model"),
        answer=(
            "Speculative decoding guesses several tokens ahead and lets the model check them all in one step. Because decode is limited by reading the weights, checking a few tokens costs little more than making one. The text stays the same, only faster.",
        ),
        short=(
            "Speculative decoding guesses tokens ahead and checks them in one step, for the same text in less time.",
        ),
    ),
    Topic(
        key="perplexity",
        names=("perplexity", "localrun perplexity"),
        answer=(
            "Perplexity measures how surprised a model is by a text: the lower, the better it predicts it. `localrun perplexity -m MODEL file.txt` computes it, for example to see what quantization costs.",
        ),
        short=("Perplexity says how surprised a model is by a text; lower is better.",),
    ),
    Topic(
        key="system_prompt",
        names=("a system prompt", "the system prompt", "system prompts", "a system message", "a prompt", "prompts"),
        answer=(
            'A prompt is the text you give a model. A system prompt comes before the chat and tells the model how to behave, for example to answer briefly. Set it with `--system "Be brief."`. I am too small to follow most of them.',
        ),
        short=("A system prompt comes before the chat and tells the model how to behave.",),
    ),
    Topic(
        key="template",
        names=("a chat template", "chat templates", "the chat template"),
        answer=(
            "A chat template turns a list of messages into the exact text a model was trained on, with its own control tokens for user, assistant and the end of a turn. It is stored in the model file.",
        ),
        short=("A chat template turns messages into the text format a model was trained on.",),
    ),
    Topic(
        key="hallucination",
        names=("hallucination", "hallucinations", "a hallucination"),
        patterns=(
            "[do you|can you|do models] [hallucinate|make things up|lie|make mistakes]?",
            "can i trust [you|your answers|a language model]?",
            "are you [always |]right?",
            "why are models wrong?",
        ),
        answer=(
            "A hallucination is an answer that sounds right but is made up. Every language model can be wrong, large ones too, so check what matters. I try to stay within the few things I was trained on.",
        ),
        short=("A hallucination is a made-up answer that sounds right.",),
    ),
    Topic(
        key="vram",
        names=("VRAM", "gpu memory", "video memory"),
        answer=(
            "VRAM is the memory of a graphics card. It is much faster than main memory, so a model that fits into it decodes faster. `localrun fit` shows what fits.",
        ),
        short=("VRAM is the memory of a graphics card.",),
    ),
    Topic(
        key="inference",
        names=("inference", "local inference", "inference in ai"),
        answer=(
            "Inference means running a trained model to get an answer, as opposed to training it. localrun does inference on your own machine, in two phases: prefill reads the prompt, decode writes the answer.",
        ),
        short=("Inference is running a trained model to get an answer.",),
    ),
    Topic(
        key="thinking",
        names=("a reasoning model", "reasoning models", "thinking models", "a thinking model"),
        answer=(
            "A reasoning model writes down its thinking before it answers, which helps with hard questions and takes more tokens. `--think on` or `--think off` chooses, where the model supports it. I do not think aloud.",
        ),
        short=("A reasoning model writes its thinking before the answer.",),
    ),
    Topic(
        key="moe",
        names=("MoE", "mixture of experts", "a mixture of experts", "a mixture-of-experts model"),
        answer=(
            "In a mixture of experts, each token passes through only a few of many feed-forward networks. Such a model needs memory for all of them, but reads only a part of the weights per token, so it decodes fast.",
        ),
        short=("A mixture of experts uses only a few of its many sub-networks for each token.",),
    ),
)
