# ruff: noqa: E501 - patterns and sentences stand on one line each
"""What localrun's model can explain about localrun's commands. Every command named anywhere is in COMMANDS."""

from __future__ import annotations

from tools.builtin_data.grammar import words
from tools.builtin_data.topic import Topic

COMMANDS = frozenset(
    words(
        """
    run chat pull list ls show rm search fit tokenize perplexity bench explain doctor config history cache tui
    completion
    """
    )
)

TOPICS = (
    Topic(
        key="run",
        names=("localrun run", "the run command"),
        bare=("run", "localrun run"),
        tasks=(
            "ask [one|a single] question[ from the terminal|]",
            "[use|call] [you|localrun|it] in a [script|pipe|shell script]",
            "[pipe|send] [text|a file|the output of a command] [to|into] [you|the model|localrun]",
            "get one answer without [the app|a chat]",
            "use [it|localrun] in a [bash script|cron job|one-liner]",
            "feed text [into|to] [it|localrun]",
        ),
        patterns=(
            "what does localrun run do?",
            "pipe [a file|text|logs] into localrun",
            "[use it|localrun] in a [bash|shell|python] [script|loop]",
        ),
        answer=(
            '`localrun run "prompt"` answers one prompt and ends. Only the answer goes to stdout, so it works in pipes: `cat notes.txt | localrun run "Summarise this"`.',
        ),
        short=('`localrun run "prompt"` prints one answer and ends.',),
        more=(
            "Use `-m` to choose a model, `--stats` for timings, `--json` for scripts, `--temperature` and `--seed` for sampling, and `--max-tokens` to limit the answer.",
        ),
        weight=1.2,
    ),
    Topic(
        key="chat_cmd",
        names=("localrun chat", "the chat command", "plain chat"),
        bare=("chat", "localrun chat"),
        tasks=("chat [in the terminal|without the app|line by line|with a screen reader]",),
        pairs=(
            ("localrun run", "localrun chat"),
            ("run", "chat"),
            ("localrun chat", "[localrun|the app]"),
            ("localrun tui", "localrun chat"),
        ),
        answer=(
            "`localrun chat` holds a plain conversation line by line and remembers what was said, while `localrun run` answers one prompt and ends. `localrun` alone opens the app, with chats, models and settings.",
        ),
        weight=1.2,
    ),
    Topic(
        key="fit",
        names=("localrun fit", "the fit command"),
        bare=("fit", "localrun fit"),
        tasks=(
            "[see|check|know|find out|test] [if|whether] a model fits[ my machine| before a download|]",
            "[see|find out|check] what fits[ my machine| on my machine|]",
        ),
        patterns=(
            "[will|does|would|can] [a|the|this|my|that] [model|7b model|bigger model|8b model|70b model|large model] fit [on|in|into] my [machine|computer|laptop|memory|gpu|ram|pc]?",
            "[how much|what] [ram|memory|vram] [do i need|is needed|does a model need|do models need|does it need]?",
            "[what|which models] fit[s|] [on|in|into] my [machine|computer|laptop|memory|gpu]?",
            "how big a model can i run?",
            "what size of model can [my computer|my laptop] [run|hold]?",
            "do i have enough [memory|ram|vram]?",
            "how do i know [what|which model|if a model] [my machine can run|fits|my pc can handle|will fit]?",
        ),
        answer=(
            "`localrun fit` answers that before you download anything: it shows, for each precision and context length, how much memory the weights and the KV cache take on your machine, and whether they fit.",
        ),
        short=("`localrun fit` shows what your memory can hold.",),
        more=(
            "`localrun fit qwen3-4b --ctx 8192` asks about one model and context, and `--memory 64GiB` about another machine.",
        ),
        weight=1.5,
    ),
    Topic(
        key="doctor",
        names=("localrun doctor", "the doctor", "the doctor command"),
        bare=("doctor", "localrun doctor"),
        tasks=(
            "[check|test] [my installation|if everything works|whether localrun works|my machine for problems]",
            "[fix|debug|diagnose] [localrun|a problem|problems|it]",
            "see which backends [work|i have|there are]",
        ),
        facts=(
            "[something|localrun|it] [does not work|is broken|doesn't work|is not working|crashed|crashes|fails]",
            "i [get|got|see] an error",
            "i have a problem[ with localrun|]",
        ),
        patterns=(
            "localrun [is not|isn't|does not] [working|start|starting|run]",
            "localrun [does not|doesn't|won't] [start|work|run|load]",
        ),
        answer=(
            "`localrun doctor` checks the backends, the kernels and the memory of your machine, and says what to do about anything that is missing.",
        ),
        weight=1.2,
    ),
    Topic(
        key="bench",
        names=("localrun bench", "the bench command", "benchmark", "a benchmark", "the benchmark"),
        bare=("bench", "localrun bench"),
        tasks=(
            "[measure|test|benchmark|check] [the speed|my machine|the performance|performance|a model|my speed|how fast it is|prefill and decode]",
            "compare the speed of [two models|models]",
            "benchmark [my machine|a model|qwen3|my laptop]",
        ),
        patterns=(
            "how fast is [my computer|my machine|this model|a model|qwen3|my laptop] [with this model|here|on my machine|]?",
        ),
        answer=(
            "`localrun bench` measures prefill and decode rates and shows them beside the measured limits of your machine, so you see how much of the bandwidth and the arithmetic is used.",
        ),
        short=("`localrun bench` measures prefill and decode rates.",),
        weight=1.2,
    ),
    Topic(
        key="explain_cmd",
        names=("localrun explain", "the explain command"),
        bare=("localrun explain", "explain"),
        tasks=("see [the kv cache|what the cache does|prefill and decode] [at work|live|on my machine|]",),
        patterns=(
            "can you show me the kv cache [at work|live|]?",
            "explain localrun explain",
            "which topics does localrun explain have?",
        ),
        answer=(
            "`localrun explain` measures live on your machine what the KV cache does and draws it: with and without the cache, prefill and decode, memory, precision, reuse, windows, batches and the price of tokens. `localrun explain memory` shows one topic.",
        ),
        weight=1.1,
    ),
    Topic(
        key="commands",
        names=("localrun --help", "the commands", "localrun's commands"),
        tasks=("get help", "see all commands"),
        patterns=(
            "what commands [are there|do you have|can i use|exist|does localrun have]?",
            "[list|show] [me |][the|all|your|all the] commands",
            "which commands [are there|does localrun have|can i use]?",
            "what can i type [here|in the terminal|]?",
            "localrun help",
            "what are the available commands?",
            "which commands are available?",
            "list of [all |]commands",
            "command list",
            "[all|available] commands",
        ),
        answer=(
            "The main ones: `localrun` opens the app, `localrun run` answers one prompt, `localrun chat` is a plain chat, `localrun pull` downloads a model, `localrun list` shows what you have, and `localrun fit` shows what fits. `localrun --help` lists all of them.",
        ),
        short=("`localrun --help` lists them all.",),
    ),
)
