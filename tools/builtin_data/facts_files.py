# ruff: noqa: E501 - patterns and sentences stand on one line each
"""What localrun's model can explain about model files: their formats, and how large they are."""

from __future__ import annotations

from tools.builtin_data.topic import Topic

TOPICS = (
    Topic(
        key="gguf",
        names=("GGUF", "[a |]gguf file[s|]", "the gguf format", "a .gguf file", "gguf", "ggml"),
        patterns=(
            "what is inside a gguf [file|]?",
            "what does gguf stand for?",
            "what [file formats|formats|files|kinds of files|model files|file types] can [you|localrun|i|it|the app] [open|load|read|use|run]?",
            "[which|what] [file |]formats [do you|does it|does localrun] [understand|know|read|open|load|support]?",
            "[what|which] [file formats|formats|files] [are supported|can i load|can it read]?",
            "what [file formats|formats|files] can you open?",
        ),
        answer=(
            'GGUF is a file format for language models: one file holds the weights, usually quantized, the tokenizer and all settings. localrun loads it directly: `localrun run -m model.gguf "Hello"`. Folders with safetensors work too.',
        ),
        short=("GGUF is a single-file format that holds a model's weights, tokenizer and settings.",),
        more=(
            "I am a GGUF file myself: about 7 MB of Q8_0 weights in the llama architecture. `localrun show builtin` prints what is inside.",
        ),
        weight=1.7,
    ),
    Topic(
        key="own_file",
        tasks=(
            "[run|use|load|open] [a|my|my own|a local] [gguf|model file|local file|gguf file|safetensors folder|model that i already have]",
            "use a [gguf |model |][file|i downloaded myself|that i already have]",
            "[import|add] [my own|an existing|a local] [model|gguf|model file]",
        ),
        patterns=(
            "can [localrun|it|i] [load|open|use|run] [a |my own |][gguf|safetensors] [file|files|that i already have|]?",
            "i have a [gguf|model file] [on my disk|here|], how [do|can] i [chat with it|use it|run it|load it]?",
            "load [a |my |]local gguf",
            "[run|open|use] [a |my |]gguf[ file|]",
        ),
        facts=(
            "i [have|already have|got|downloaded] a [gguf|model file|gguf file] [on my disk|here|in my downloads|]",
        ),
        answer=(
            'Give its path: `localrun run -m path/to/model.gguf "Hello"`, or `localrun chat path/to/model.gguf`. A folder with safetensors files works the same way.',
        ),
        weight=1.2,
    ),
    Topic(
        key="safetensors",
        names=("safetensors", "[a |]safetensors file[s|]", "the safetensors format", "a .safetensors file"),
        pairs=(
            ("GGUF", "safetensors"),
            ("[a |]gguf file", "[a |]safetensors folder"),
            ("safetensors", "gguf"),
            ("gguf", "safetensors and pytorch"),
            ("gguf, safetensors", "pytorch"),
        ),
        patterns=(
            "gguf vs[.|] safetensors vs[.|] [pytorch|ggml|onnx]",
            "[which|what] is better, gguf or safetensors?",
        ),
        answer=(
            "Safetensors and GGUF are two formats for model weights, and localrun loads both. Safetensors is a folder of plain numbers, mostly 16 bits, beside a config and a tokenizer; GGUF is one file with everything in it, mostly quantized. Neither contains code.",
        ),
        weight=1.4,
    ),
    Topic(
        key="parameters",
        names=(
            "[the |a ]parameter[s|]",
            "weights",
            "the weights",
            "model weights",
            "a weight",
            "[7b|4b|8b|70b|1b]",
            "a [7b|4b|8b|70b] model",
            "a billion parameters",
        ),
        patterns=(
            "what does [7b|4b|8b|70b|1b|3b] mean?",
            "what does the b in [7b|4b|8b] [mean|stand for]?",
            "what are [a model's|the] weights[ of a model|]?",
            "how many [parameters|weights] does [an 8b|a 7b|a 4b|a 70b|an 8b model] have?",
            "what is the number of parameters?",
            "what['s|s| is] the [b|B] in [4B|7B|8B|70B|1b]?",
            "what does [4b|7b|13b|70b] [mean|stand for]?",
        ),
        answer=(
            'Parameters, or weights, are the learnt numbers of a model. "4B" means four billion of them. More parameters usually mean better answers, more memory and slower tokens. I have about 7 million.',
        ),
        short=("Parameters are the learnt numbers of a model; 4B means four billion.",),
        weight=1.2,
    ),
    Topic(
        key="model_sizes",
        names=("model sizes", "the size of a [model|model file]", "[the |]memory of a model"),
        patterns=(
            "how [big|large] is a [7b|8b|13b|70b|4b|3b|1b|14b|32b] [model |][file |][at|in] [4 bits|8 bits|q4|q8|int4|16 bits][ on disk|]?",
            "how [big|large] is a [7b|8b|13b|70b|4b|3b] [model|file|gguf]?",
            "how much [ram|memory|vram|space|disk] [do i need|is needed|does one need] for a [7b|8b|13b|70b|4b|3b|14b|32b] [model|]?",
            "how much [ram|memory|vram|space|disk] does a [7b|8b|13b|70b|4b|3b|14b|32b] [model |]need?",
            "[which|what] [size of model|models|model|size] [fits|fit|run|runs|can i run] [into|in|on|with] [4|6|8|12|16|24|32|64] [gb|gigs|gigabytes|gb of ram|gb ram|gb vram|gigs of memory]?",
            "[my laptop|my pc|my machine|my computer|my gpu|i] [has|have] [4|8|16|24|32|64] [gb|gigs|gb ram|gb of memory], what [can it run|can i run|fits|model fits]?",
            "what [can i run|fits|runs] [on|with|in] [8|16|32|24|64] [gb|gigs][ of ram|]?",
            "[which|what] [size of model|model size|models|model] [fit|fits|can i run] [in|into|with|on] [6|8|10|12|16|20|24|32|48|64|96|128] [gb|gigs|gigabytes|gb of ram|gb of memory|gigs of memory|gb vram]?",
            "i['ve| have] [got |][6|8|12|16|24|32|48|64] [gb|gigs] [ram|of ram|of memory|memory|vram|], [which model|what model|what|what size] [fits|can i run|runs|works]?",
            "[my laptop|my pc|my computer|my mac|it] has [only |][6|8|12|16|24|32] [gb|gigs|gb of ram|gb ram], [what can it run|which models run|what fits|what should i take]?",
            "can i run [a 70b|a 13b|a 32b|an 8b|a 7b|a 14b|a 4b] [model |][with|on|in] [8|12|16|24|32|64] [gb|gigs][ of ram| of memory|]?",
            "how many [gb|gigs|gigabytes] [is|has|does] [a 7b|an 8b|a 70b|a 4b|a 13b] [model|] [have|need|take|]?",
            "can i run [a |]70b with [24|32|48|64] gb[ of ram|]?",
        ),
        answer=(
            "At 4 bits a model takes about 0.6 GB per billion weights, at 8 bits 1.1 GB, plus the KV cache: 7B about 4.5 GB, 13B 8 GB, 70B 42 GB. So 8 GB of memory hold a 4B to 8B model at 4 bits, 16 GB a 14B, 64 GB a 70B. `localrun fit` knows what fits your machine.",
        ),
        weight=2.2,
    ),
)
