# ruff: noqa: E501 - patterns and sentences stand on one line each
"""What localrun's model can explain about the machine, privacy, licences, and using localrun from programs."""

from __future__ import annotations

from tools.builtin_data.topic import Topic

TOPICS = (
    Topic(
        key="which_model",
        names=("a good model[ for me| to start with|]", "the best model[ for me| for my laptop|]"),
        patterns=(
            "which [model|llm] [should i|do i|to|can i|would you] [use|download|pull|recommend|pick|choose|get|try]?",
            "what [model|llm] [should i|do you|would you|is best to] [use|download|pull|recommend|pick|get|try] [first|]?",
            "recommend [me |]a model",
            "which model is [best|good|better|the best|right for me]?",
            "suggest a model",
            "which models [are there|do you have|exist|can i download|can i use|are available]?",
            "what models [are there|do you have|can i use|are available|can i download]?",
            "what do you recommend?",
            "which model do you recommend [for coding|for writing|for chat|for 16 gb|for my mac|for a laptop]?",
            "what's the best [small|tiny|coding|local|large] model?",
            "which model do you recommend [for [coding|writing|chat|translating] |][on|with|for] [8|16|32] [gb|gigs]?",
            "best [small |coding |local |]model?",
        ),
        answer=(
            "Start with `localrun pull qwen3-4b`: it is small enough for most laptops and far more capable than I am. `localrun fit` shows what your machine can hold, and `localrun search` finds more.",
        ),
        short=("Try `localrun pull qwen3-4b`.",),
        more=(
            "As a rule: the largest model whose weights fit into memory at 4 bits with room for the KV cache. `localrun fit qwen3-4b` shows each precision and how much context is left.",
        ),
        weight=1.5,
    ),
    Topic(
        key="architectures",
        names=(
            "supported models",
            "the supported architectures",
            "supported architectures",
            "[model |]architectures",
            "the list of [supported |]architectures",
        ),
        tasks=("[see|find out|check] [which|what] [architectures|model families] [are supported|run here]",),
        patterns=(
            "[which|what] [architectures|model families|kinds of models] [are supported|does localrun support|run|can it run|work]?",
            "[is|are] [gemma|qwen3|mixtral|phi|gpt-oss|olmo|granite|nemotron|lfm2|smollm3|llama 3] [supported|possible here|ok here|something that runs here]?",
            "[will|would|can] [gemma|qwen|mistral|phi|gpt-oss|olmo|granite|smollm3] [run|work] [here|with localrun|in localrun|with this]?",
            "[can|may] i [run|use|load] [gemma|qwen|mistral|phi|gpt-oss|olmo|granite] [here|with localrun|with this|]?",
            "[every|each|any] model from [hugging face|the hub], [does that run|will it run|or only some]?",
            "[does|do] [every|all|any] [model|models] [run|work] here?",
            "does [localrun|it] [support|run] [qwen|llama|gemma|mistral|phi|gpt-oss|qwen3|mixtral|granite|olmo]?",
        ),
        answer=(
            "localrun runs Llama, Mistral, Mixtral, Qwen, Gemma, gpt-oss, Phi, OLMo, Granite, Nemotron-H, LFM2 and SmolLM3, from GGUF or safetensors. `localrun show NAME` says whether a model runs before you download it.",
        ),
    ),
    Topic(
        key="too_big",
        facts=(
            "[the|my|a] model does[ not|n't] fit[ into memory| in memory|]",
            "[i ran|it runs|localrun ran|i am|it says] out of memory",
            "[the model is|it is] too [big|large] for my [machine|memory|ram|gpu]",
            "i do not have enough [memory|ram|vram]",
        ),
        patterns=(
            "out of memory",
            "oom",
            "not enough [memory|ram]",
            "[memory|out of memory] error",
            "the model does not fit, what [can i do|now|do i do]?",
        ),
        answer=(
            "Take a smaller model or a lower precision, shorten the context with `--ctx 4096`, or store the KV cache in fewer bits with `--kv q8`. `localrun fit` shows which of these fit your memory.",
        ),
        weight=1.2,
    ),
    Topic(
        key="privacy",
        names=("privacy", "--offline", "offline use", "the privacy of localrun"),
        tasks=("[use|run] [it|localrun|this|you] [offline|without internet|without the internet|on a plane]",),
        patterns=(
            "is [my data|anything|what i write|my text|our chat] [sent|uploaded|going] [to the internet|to a server|somewhere|anywhere|to the cloud]?",
            "[can|does|will] localrun [run|work] without [an internet connection|internet|a connection|network|being online]?",
            "[is|are] [my data|my chats|this|it|localrun|our chat|what i type] [private|safe|secure|sent anywhere|sent to the cloud]?",
            "is it [safe|ok] to [type|enter|paste] [secrets|private things|passwords|company data] [here|]?",
            "do you [send|share|upload|store|keep|sell] my [data|messages|chats|text]?",
            "does [localrun|this|it] [work offline|need internet|need the internet|need a connection|use the cloud|phone home]?",
            "[do i need|is] [an |the |][internet connection|internet] [needed|required|][ for this|]?",
            "who can [see|read] [my messages|what i type|my chats|this]?",
            "are you [online|offline|connected to the internet|in the cloud]?",
            "do you have internet [access|]?",
            "where [do you run|are you running|does this run|does it run]?",
            "are my [chats|messages|conversations|prompts|questions] [uploaded|sent|shared|private|leaked|seen by anyone][ anywhere| to anyone|]?",
            "does [anyone|somebody|a company] [see|read|get] [my chats|what i type|my data]?",
            "do i need [the |]internet for [this|it|localrun]?",
            "is it safe to type [secrets|my secrets|private stuff|customer data] [here|in|]?",
            "are my [chats|messages] [uploaded|sent|shared] [anywhere|somewhere|to anyone]?",
            "do my [chats|messages|files] leave my [computer|machine|laptop]?",
        ),
        answer=(
            "Everything runs on your own machine, and nothing you type is sent anywhere. The network is used only to look up and download models; `--offline` forbids even that.",
        ),
        short=("Everything stays on your machine.",),
        weight=1.5,
    ),
    Topic(
        key="cost",
        names=(
            "the licence of localrun",
            "the license of localrun",
            "localrun's licen[s|c]e",
        ),
        patterns=(
            "does [localrun|it|this|the app|this program] cost [anything|money|something]?",
            "[must|should|do] i [pay|buy] [for localrun|for this|for it|something|a licence]?",
            "[is|are] [localrun|it|this|you] free?",
            "how much does [localrun|it|this] cost?",
            "do i [have|need] to pay?",
            "[what|which|under what|under which] licen[s|c]e [is localrun|is localrun under|does localrun have|is it]?",
            "is [localrun|it|this] open source?",
            "what does [it|localrun] cost?",
            "licen[s|c]e?",
            "what is the licen[s|c]e?",
            "how is localrun licensed?",
            "[under|with] [which|what] licen[s|c]e is localrun?",
            "is localrun free?",
            "does localrun cost [anything|money]?",
            "licen[s|c]e?",
            "licen[s|c]e",
        ),
        answer=(
            "localrun is free and open source, under the Apache 2.0 licence. Models have licences of their own; localrun shows them before a download.",
        ),
        short=("It is free and open source (Apache 2.0).",),
    ),
    Topic(
        key="model_licence",
        names=("[the |]licen[c|s]e[s|] of [a model|models]", "model licen[s|c]es"),
        patterns=(
            "is [llama|llama 3|qwen|gemma|mistral|this model|a model] [free|free to use|open source|allowed][ commercially| for my company|]?",
            "[can|may] i use [llama|qwen|gemma|a model|this model|models] [commercially|for work|in my company|in a product]?",
            "what licen[s|c]e does [qwen|llama|gemma|a model|the model] have?",
            "can i use [qwen3|llama|gemma|a model] in a [commercial|paid] [product|app]?",
            "[is|are] [llama 3|qwen3|gemma|the models] free to use[ commercially| at work|]?",
        ),
        answer=(
            "Each model has a licence of its own: Qwen3 has Apache 2.0, Llama the terms of its maker. localrun shows the licence before a download; read it before you use a model commercially.",
        ),
        weight=1.2,
    ),
    Topic(
        key="hardware",
        names=("the hardware requirements", "system requirements"),
        patterns=(
            "do i need [a|an] [expensive|good|big|fast|special|powerful|strong|modern|dedicated] [gpu|graphics card|computer|machine|laptop] [for this|for localrun|for that|to use it|]?",
            "[must|should|do] i [need to |have to |][buy|own|have|get] [a|an] [gpu|graphics card|nvidia card|big gpu|expensive gpu|fast gpu|better computer] [for this|first|to use localrun|to run models|]?",
            "is a [gpu|graphics card] [needed|required|necessary|a must] [for this|for localrun|]?",
            "will [it|localrun|this] [run|work] [without a gpu|on my laptop|on an old computer|on a normal pc|on my cpu]?",
            "do i need a [gpu|graphics card|video card|nvidia card]?",
            "does [localrun|it|this] [work|run] on [a |][mac|macs|windows|linux|apple silicon|macos|laptop|my computer|a cpu|a raspberry pi]?",
            "what [hardware|computer|machine|operating system] do i need?",
            "can [it|localrun|i] [run|use it] [without a gpu|on a cpu|on cpu]?",
            "is my computer [good|fast] enough?",
            "can i run [this|it|localrun] without a [graphics card|gpu|nvidia card]?",
            "does [it|this|localrun] work on [a macbook|my macbook|an old laptop|a thinkpad|windows 11|ubuntu|an m2|a raspberry pi]?",
        ),
        answer=(
            "You do not need a GPU: localrun computes on the CPU, and on NVIDIA GPUs (CUDA) or Apple GPUs (MPS) if you have one. It runs on Linux, macOS and Windows; `localrun doctor` shows what your machine offers.",
        ),
        short=("A CPU is enough; CUDA and Apple GPUs are used if present.",),
        weight=1.9,
    ),
    Topic(
        key="gpu_or_cpu",
        pairs=(("[a |the |]gpu", "[a |the |]cpu"), ("cpu", "gpu"), ("cuda", "cpu")),
        facts=("[gpus|a gpu] [are|is] [faster|much faster] [at this|for llms|than a cpu|]",),
        patterns=(
            "why [is a gpu|are gpus] [so much |][faster|better][ at this| for llms| than a cpu|]?",
            "how much faster is a gpu?",
        ),
        answer=(
            "A GPU is faster because its memory has several times the bandwidth of a CPU's, which speeds up decode, and far more arithmetic, which speeds up prefill. A CPU has more memory and runs small and quantized models well.",
        ),
        weight=1.5,
    ),
    Topic(
        key="use_gpu",
        names=("--backend", "the --backend option", "backends", "a backend", "the cuda backend", "the mps backend"),
        tasks=(
            "[use|run on|switch to|turn on|enable] [the gpu|my gpu|cuda|metal|mps|my nvidia card|my graphics card]",
            "choose [the|a] backend",
        ),
        patterns=(
            "does [localrun|it] [use|support] [the gpu|cuda|metal|mps|my gpu|gpus|apple silicon]?",
            "which [backends|devices|platforms] [are supported|does localrun support|are there]?",
            "my [gpu|graphics card] is [not used|not working|idle]",
            "how do i [make|let] [it|localrun] use [the|my] [gpu|graphics card]?",
        ),
        facts=(
            "[my|the] gpu is [not used|idle|not found|not detected|ignored]",
            "localrun [does not|doesn't] [use|see|find] my gpu",
        ),
        answer=(
            "`--backend cuda` uses an NVIDIA GPU and `--backend mps` an Apple GPU; `--backend auto`, the default, takes what your machine has. `localrun doctor` says which are ready and why not.",
        ),
        weight=1.1,
    ),
    Topic(
        key="vram",
        names=(
            "VRAM",
            "gpu memory",
            "video memory",
            "[the |]memory of [a|the|my] [graphics card|gpu|card]",
            "graphics memory",
        ),
        patterns=(
            "[is|are] [8|12|16|24|48] gb [of |][vram|gpu memory] [enough|good|a lot]?",
            "why does the amount of vram matter?",
        ),
        pairs=(("VRAM", "RAM"), ("ram", "vram")),
        answer=(
            "VRAM is the memory of a graphics card. It is much faster than main memory, so a model that fits into it decodes faster. `localrun fit` shows what fits.",
        ),
    ),
)
