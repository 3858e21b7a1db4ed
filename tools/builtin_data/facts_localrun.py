# ruff: noqa: E501 - patterns and sentences stand on one line each
"""What localrun's model can explain about localrun itself. Every command named here is in COMMANDS."""

from __future__ import annotations

from tools.builtin_data.grammar import words
from tools.builtin_data.topic import Topic

COMMANDS = frozenset(
    words(
        """
    run chat pull list ls show rm search fit tokenize perplexity bench explain doctor config history serve tui
    """
    )
)

TOPICS = (
    Topic(
        key="localrun",
        names=("localrun", "local run", "this app", "this program", "this tool", "this software"),
        patterns=(
            "what [can|does] localrun do?",
            "what is this?",
            "what [is|are] [the features of localrun|localrun's features]?",
            "what is [the point|the purpose|the idea] of [localrun|this app|this program|this]?",
            "why should i use localrun?",
            "who is localrun for?",
            "introduce localrun",
            "what [kind|sort] of [program|app|software|tool] is [this|localrun]?",
            "where am i?",
            "what am i using?",
            "what did i [just |]install?",
            "tell me [something |]about [localrun|this program|this app]",
        ),
        answer=(
            'localrun runs language models on your own machine: pick a model, see what fits, and chat. Nothing you type leaves your computer. Use `localrun` for the app, `localrun run "prompt"` for one answer, or `localrun serve` for an OpenAI-compatible API.',
            'localrun is a program that runs quantized language models on your own computer, offline and in private. Open the app with `localrun`, ask one question with `localrun run "prompt"`, and get a real model with `localrun pull qwen3-4b`.',
        ),
        short=("localrun runs quantized language models on your own machine.",),
        more=(
            "It fits the KV cache to the memory that is free, reuses every prefix it has already computed, and says what it does: what fits, what was reused, and which phase is slow and why. It loads GGUF and safetensors files.",
        ),
        simple=("localrun lets you chat with a language model that lives on your own computer.",),
        weight=2.0,
    ),
    Topic(
        key="pull",
        patterns=(
            "[which|what] command [downloads|pulls|gets|installs|fetches] [a model|models|a new model|bigger models|other models]?",
            "what [do|must|should|can] i [type|enter|run|write] to [download|get|pull|fetch|install|add] [a|another|a bigger|a new|the] model?",
            "how [can|do|could] i [get|put|bring|load] [a bigger|another|a real|a larger|a better|a different] model [on|onto|to] [my|this] [machine|computer|laptop|disk]?",
            "how [do|can] i go about [downloading|getting|installing|pulling] [a|another|a bigger] model?",
            "where [could|can|might|do] i [find|get|look for] [more|other|bigger|new] models [to download|to pull|to install|]?",
            "[tell|show] me how to [download|get|pull|fetch|install] [a model|models|another model|a bigger model]",
            "how [can|do] i [fetch|grab|obtain|acquire|load] [a|another|a bigger] [model|llm]?",
            "how [do|can|should|would] i [download|get|pull|install|fetch|add] [a|another|a new|a bigger|a better|a real|a larger|more|other|the] [model|models|llm|one]?",
            "how [to|do you|does one] [download|get|pull|install|fetch|add] [a|another|a new|a bigger|a better|a real|a larger|more] [model|models|llm]?",
            "[i want|i'd like|i need|i would like|can i|may i|could i] [to |][download|get|pull|install|have|use] [a|another|a new|a bigger|a better|a real|a larger] [model|llm|one]",
            "where [do|can] i [download|get|find] [models|a model|other models|a bigger model|more models|bigger models]?",
            "download [a model|another model|a bigger model|model]",
            "install [a model|another model|a bigger model|model]",
            "what is the command [to download|for downloading|to pull|to install] [a model|models]?",
            "how [do|can] i [use|run|try|switch to|change to] [a |][bigger|better|larger|other|smarter|real|different|another] model?",
            "how [do|can] i [change|switch] [the |]model?",
            "what does [localrun pull|pull] do?",
            "how does [localrun pull|pull] work?",
            "downloading [a model|models]?",
            "[get|give] me a [better|bigger|real|smarter] model",
            "pull a model",
            "model download",
            "how do i [get|download|install|run|use] [qwen|qwen3|qwen3-4b|llama|mistral|gemma|phi|a model from hugging face]?",
            "can [you|localrun] download [a model|models|a bigger model] [for me|]?",
        ),
        answer=(
            "Type `localrun pull qwen3-4b` in a terminal, or open the app with `localrun` and pick a model there. `localrun fit` shows what your machine can hold, and the first model you pull becomes the default.",
            "With `localrun pull qwen3-4b`, for example. You can also open the app with `localrun` and choose a model from the list. `localrun search qwen` looks for others on the hub.",
        ),
        short=("Run `localrun pull qwen3-4b`, or open the app with `localrun` and pick one.",),
        more=(
            'A name from the catalogue like `qwen3-4b` is the easiest way; any GGUF or safetensors repository on the hub works too, written as org/repo. After that, `localrun list` shows what is on disk and `localrun run -m qwen3-4b "Hello"` uses it.',
        ),
        weight=3.0,
    ),
    Topic(
        key="which_model",
        patterns=(
            "which [model|llm] [should i|do i|to|can i|would you] [use|download|pull|recommend|pick|choose|get|try]?",
            "what [model|llm] [should i|do you|would you|is best to] [use|download|pull|recommend|pick|get|try] [first|]?",
            "recommend [me |]a model",
            "what is the best model [for me|for my machine|for my laptop|for my computer|]?",
            "which model is [best|good|better|the best|right for me]?",
            "what is a good model [to start with|for me|]?",
            "suggest a model",
            "which models [are there|do you have|exist|can i download|can i use|are available]?",
            "what models [are there|do you have|can i use|are available|can i download]?",
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
        key="open_app",
        patterns=(
            "how [can|do|would|could] i [start|begin] [chatting|to chat|a chat|a conversation|talking] [with a model|with you|here|]?",
            "how [do|can] i [open|start|launch|run] [the app|localrun|the tui|the program|the interface|it]?",
            "how [do|can] i [chat|start a chat|start chatting|chat with a model|have a conversation]?",
            "open the app",
            "start the app",
            "how to [start|open|launch|use] [localrun|the app|the tui]?",
            "how do i [use|work with] [localrun|this|this app|it|this program]?",
            "what does localrun chat do?",
            "is there [a gui|an app|a tui|an interface|a window]?",
            "what is the tui?",
        ),
        answer=(
            'Type `localrun` in a terminal to open the app. `localrun chat` gives a plain chat without redraws, and `localrun run "your question"` prints one answer and ends.',
        ),
        short=("Type `localrun` in a terminal.",),
        more=(
            'In pipes, `localrun run` reads its input: `cat notes.txt | localrun run "Summarise this"`. Only the answer goes to stdout, everything else to stderr.',
        ),
        weight=1.5,
    ),
    Topic(
        key="run",
        names=("localrun run", "the run command"),
        patterns=(
            "how do i ask [one|a single] question?",
            "how [do|can] i use [you|localrun] in a [script|pipe|shell script]?",
            "how [do|can] i [pipe|send] a file [to|into] [you|the model|localrun]?",
        ),
        answer=(
            '`localrun run "prompt"` answers one prompt and ends. Only the answer goes to stdout, so it works in pipes: `cat notes.txt | localrun run "Summarise this"`. Add `--stats` for timings or `--json` for scripts.',
        ),
        short=('`localrun run "prompt"` prints one answer and ends.',),
        more=(
            "Use `-m` to choose a model, `--temperature` and `--seed` for sampling, and `--max-tokens` to limit the answer.",
        ),
    ),
    Topic(
        key="serve",
        names=("localrun serve", "the server", "the API", "the openai api"),
        patterns=(
            "[is there|does localrun have|do you have] an api?",
            "can i use [the openai api|an openai client|it from my own program|localrun from code]?",
            "how [do|can] i start [a|the] server?",
        ),
        answer=(
            "`localrun serve` starts an OpenAI-compatible server on your own machine. It listens on loopback only, so programs here can use it, and nobody else.",
        ),
        short=("`localrun serve` starts an OpenAI-compatible server on your machine.",),
        more=(
            'From Python you can also skip the server: `from localrun import LLM`, then `LLM("builtin").generate("Hello")`.',
        ),
    ),
    Topic(
        key="list",
        names=("localrun list", "localrun ls"),
        patterns=(
            "[which|what] models [do i have|are installed|are on my disk|have i downloaded]?",
            "[how do i |]list [my|the|all|installed|downloaded] models",
            "show [me |]my models",
            "how [can|do] i see [my|the installed|downloaded] models?",
        ),
        answer=(
            "`localrun list` shows the models on your disk with their precision and size. `localrun show` prints the details of one.",
        ),
        short=("`localrun list` shows the models on your disk.",),
    ),
    Topic(
        key="rm",
        names=("localrun rm",),
        patterns=(
            "how [can|do|could] i [delete|remove|uninstall|erase|throw away] [a|the|my|some|an old|that] model [again|from disk|i do not need|]?",
            "[which|what] command [deletes|removes] a model?",
            "how [do|can] i [delete|remove|uninstall|erase|get rid of] [a|the|my|an old] model[s|]?",
            "[delete|remove] [a|the|my] model",
            "how do i free [disk space|space|up space]?",
        ),
        answer=(
            "`localrun rm NAME` removes a model from disk; it asks before it deletes anything. `localrun list` shows the names and sizes.",
        ),
        short=("Use `localrun rm NAME`.",),
    ),
    Topic(
        key="fit",
        names=("localrun fit", "the fit command"),
        patterns=(
            "[will|does|would|can] [a|the|this|my|that] [model|7b model|bigger model|8b model|70b model|large model] fit [on|in|into] my [machine|computer|laptop|memory|gpu|ram|pc]?",
            "[how much|what] [ram|memory|vram] [do i need|is needed|does a model need|do models need|does it need]?",
            "[what|which models] fit[s|] [on|in|into] my [machine|computer|laptop|memory|gpu]?",
            "how big a model can i run?",
            "what size of model can [i|my computer|my laptop] run?",
            "do i have enough [memory|ram|vram]?",
            "out of memory",
            "i ran out of memory",
        ),
        answer=(
            "`localrun fit` answers that before you download anything: it shows, for each precision and context length, how many bytes the weights and the KV cache take on your machine, and whether they fit.",
        ),
        short=("Ask `localrun fit`: it shows what your memory can hold.",),
        more=(
            "As a rough guide, a model at 4 bits takes a little more than half a gigabyte per billion parameters, plus the KV cache for your context.",
        ),
    ),
    Topic(
        key="doctor",
        names=("localrun doctor", "the doctor", "the doctor command"),
        patterns=(
            "[something|localrun|it] [does not work|is broken|doesn't work|is not working|crashed|crashes|fails]",
            "how do i [fix|debug|diagnose] [localrun|a problem|problems|it]?",
            "i have a problem [with localrun|]",
            "i [get|got|see] an error",
        ),
        answer=(
            "Run `localrun doctor`: it checks the backends, the kernels and the memory, and says what to do about anything that is missing.",
        ),
        short=("Run `localrun doctor`.",),
    ),
    Topic(
        key="bench",
        names=("localrun bench", "the bench command"),
        patterns=(
            "how [do|can] i [measure|test|benchmark|check] [the speed|my machine|the performance|performance|a model|my speed|how fast it is]?",
            "benchmark",
        ),
        answer=(
            "`localrun bench` measures prefill and decode rates and shows them beside the measured limits of your machine, so you see how much of the bandwidth and the arithmetic is used.",
        ),
        short=("`localrun bench` measures prefill and decode rates.",),
    ),
    Topic(
        key="explain_cmd",
        names=("localrun explain", "the explain command"),
        patterns=("can you show me the kv cache [at work|live|]?", "how can i see [the kv cache|what the cache does]?"),
        answer=(
            "`localrun explain` runs live measurements on your machine and shows what the KV cache does: how long prefill and decode take, and what is reused.",
        ),
        short=("`localrun explain` measures what the KV cache does on your machine.",),
    ),
    Topic(
        key="privacy",
        patterns=(
            "is [my data|anything|what i write|my text|our chat] [sent|uploaded|going] [to the internet|to a server|somewhere|anywhere|to the cloud]?",
            "[can|does|will] localrun [run|work] without [an internet connection|internet|a connection|network|being online]?",
            "[is|are] [my data|my chats|this|it|localrun|our chat|what i type] [private|safe|secure|sent anywhere|sent to the cloud|stored]?",
            "do you [send|share|upload|store|keep|sell] my [data|messages|chats|text]?",
            "does [localrun|this|it] [work offline|need internet|need the internet|need a connection|use the cloud|phone home]?",
            "[do i need|is] [an |the |][internet connection|internet] [needed|required|]?",
            "can i use [it|localrun|this|you] offline?",
            "who can [see|read] [my messages|what i type|my chats|this]?",
            "are you [online|offline|connected to the internet|in the cloud]?",
            "do you have internet [access|]?",
            "where [do you run|are you running|does this run|does it run]?",
        ),
        answer=(
            "Everything runs on your own machine, and nothing you type is sent anywhere. The network is used only when you search for or download a model; `--offline` forbids even that.",
        ),
        short=("Everything stays on your machine.",),
        weight=1.3,
    ),
    Topic(
        key="cost",
        patterns=(
            "does [localrun|it|this|the app|this program] cost [anything|money|something]?",
            "[must|should|do] i [pay|buy] [for localrun|for this|for it|something|a licence]?",
            "[is|are] [localrun|it|this|you] free?",
            "how much does [localrun|it|this] cost?",
            "do i [have|need] to pay?",
            "what [is the|is your|is localrun's|] licen[s|c]e [of localrun|]?",
            "is [localrun|it|this] open source?",
            "what does [it|localrun] cost?",
        ),
        answer=(
            "localrun is free and open source, under the Apache 2.0 licence. Models have licences of their own; localrun shows them before a download.",
        ),
        short=("It is free and open source (Apache 2.0).",),
    ),
    Topic(
        key="hardware",
        patterns=(
            "do i need [a|an] [expensive|good|big|fast|special|powerful|strong|modern|dedicated] [gpu|graphics card|computer|machine|laptop] [for this|for localrun|for that|to use it|]?",
            "is a [gpu|graphics card] [needed|required|necessary|a must] [for this|for localrun|]?",
            "will [it|localrun|this] [run|work] [without a gpu|on my laptop|on an old computer|on a normal pc|on my cpu]?",
            "do i need a [gpu|graphics card|video card|nvidia card]?",
            "does [localrun|it|this] [work|run] on [a |][mac|macs|windows|linux|apple silicon|macos|laptop|gpu|cpu|nvidia|cuda|my computer|a cpu]?",
            "does [localrun|it] [use|support] [the gpu|cuda|metal|mps|my gpu|gpus|apple silicon]?",
            "what [hardware|computer|machine|operating system] do i need?",
            "can [it|localrun|i] [run|use it] [without a gpu|on a cpu|on cpu]?",
            "which [backends|devices|platforms] [are supported|does localrun support]?",
            "is my computer [good|fast] enough?",
        ),
        answer=(
            "You do not need a GPU: localrun computes on the CPU, and on NVIDIA GPUs (CUDA) or Apple GPUs (MPS) if you have one. `localrun doctor` shows what your machine offers.",
        ),
        short=("A CPU is enough; CUDA and Apple GPUs are used if present.",),
    ),
    Topic(
        key="history",
        names=("localrun history",),
        patterns=(
            "[where|how] are my [chats|conversations] [saved|stored|kept]?",
            "can i [see|find|search|continue] my [old|last|earlier|previous] chat[s|]?",
            "how do i [continue|resume] [my|the] last chat?",
        ),
        answer=(
            '`localrun history list` shows your chats, and `localrun history search` finds a word in them. `localrun run -c "prompt"` continues the last one.',
        ),
        short=("Use `localrun history list`.",),
    ),
    Topic(
        key="config",
        names=("localrun config",),
        patterns=(
            "how [do|can] i [change|set] the [default model|default|settings]?",
            "how [do|can] i [change|set] [the default model|my default model|the settings|a setting|settings]?",
            "where are the settings?",
        ),
        answer=(
            "`localrun config` shows the settings, and `localrun config model qwen3-4b` makes that model the default.",
        ),
        short=("Use `localrun config`.",),
    ),
    Topic(
        key="commands",
        patterns=(
            "what commands [are there|do you have|can i use|exist|does localrun have]?",
            "[list|show] [me |][the|all|your|all the] commands",
            "which commands [are there|does localrun have|can i use]?",
            "what can i type [here|in the terminal|]?",
            "how do i get help?",
            "localrun help",
            "localrun --help",
        ),
        answer=(
            "The main ones: `localrun` opens the app, `localrun run` answers one prompt, `localrun chat` is a plain chat, `localrun pull` downloads a model, `localrun list` shows what you have, and `localrun fit` shows what fits. `localrun --help` lists all of them.",
        ),
        short=("`localrun --help` lists them all.",),
    ),
)
