# ruff: noqa: E501 - patterns and sentences stand on one line each
"""What localrun's model can explain about using localrun from programs, and what it prints and keeps."""

from __future__ import annotations

from tools.builtin_data.topic import Topic

TOPICS = (
    Topic(
        key="serve",
        names=("localrun serve", "the openai api[ of localrun|]", "a localrun server", "the [localrun |api |]server"),
        tasks=(
            "[start|run|host|launch|set up] [a|the|an openai compatible|a local|the localrun|an http] [server|api|api server][ with localrun|]",
            "[use|call] localrun from [another program|curl|an openai client|my web app]",
        ),
        patterns=(
            "[is there|does localrun have|do you have|does localrun offer] [an api|an openai api|a server|an openai compatible api|a rest api|an http api]?",
            "is there a server i can start?",
            "localrun serve?",
        ),
        answer=(
            "No, localrun does not serve an API yet. Programs can call `localrun run --json`, or use it from Python: `from localrun import LLM`.",
        ),
        weight=1.2,
    ),
    Topic(
        key="python",
        names=("the python api", "localrun.LLM", "the LLM class"),
        tasks=(
            "use [localrun|it|a model] [from|in|with] [python|code|my python program|a notebook]",
            "call localrun from python",
        ),
        answer=(
            '`from localrun import LLM`, then `LLM("builtin").generate("Hello").text`. `stream` gives the answer piece by piece, and `chat` takes a list of messages.',
        ),
        weight=1.1,
    ),
    Topic(
        key="json",
        names=("--json", "--jsonl", "the json output", "the --json option", "exit codes"),
        tasks=(
            "get [json|machine readable output|the output as json]",
            "parse the output in a script",
            "use the answer in a script",
            "get json out of it",
            "get the answer as json",
            "make localrun print json",
        ),
        pairs=(("--json", "--jsonl"),),
        patterns=(
            "can [scripts|programs|i] [parse|read] the output?",
            "json output?",
            "is there json output?",
            "json",
        ),
        answer=(
            "`--json` prints the answer and its figures as one JSON object; `--jsonl` prints one object a line as tokens arrive. Other commands know `--json` too, and exit codes tell scripts what went wrong.",
        ),
        weight=1.3,
    ),
    Topic(
        key="stats",
        names=(
            "--stats",
            "the --stats option",
            "the stats",
            "/stats",
            "the inspector",
            "the statistics[ after an answer|]",
            "the figures after an answer",
        ),
        tasks=(
            "see [the timings|how fast it was|the speed|the time to first token|the figures|statistics][ after an answer| of an answer|]",
            "show [the speed|the timings|tokens per second] after [each|an|every] answer",
        ),
        patterns=("what [does --stats show|do the stats mean]?",),
        answer=(
            "`--stats` prints, after the answer, the tokens of the prompt and how many were cached, the time to the first token, the time between tokens, the speed and the memory. In a chat it is `/stats`; in the app, Ctrl+G.",
        ),
        weight=1.2,
    ),
    Topic(
        key="storage",
        tasks=("use [models from ollama|models from lm studio|ollama's models|models that ollama has]",),
        patterns=(
            "where [are|does localrun store|does localrun keep|do you keep] [the |my |downloaded |][models|model files]?",
            "where do [downloads|models|downloaded models] go?",
            "[does|can] [it|localrun] [use|see|find] [the |my |][models|models that i have] [from|in|of] [ollama|lm studio|the hugging face cache]?",
            "where are [the |my |]models [saved|stored|kept|on disk]?",
            "[which|what] folder [has|holds|are] the models[ in|]?",
            "[where|in which folder|in what place] [on my disk |][is|are] [the|a|my] [downloaded |pulled |][model|models|weights|gguf files]?",
            "[do|does] [localrun|it] [share|reuse] [models|files|downloads] with [ollama|lm studio|other programs|transformers]?",
            "i have [ollama|lm studio], [can i use its models|does localrun see its models|must i download again|do i have to download them again][?|]",
            "[what is|where is] the [model folder|models directory|download folder|model path]?",
        ),
        answer=(
            "Models are stored in the Hugging Face cache, so other programs can share them. localrun also finds the models of LM Studio and Ollama; `localrun list` shows all with their place.",
        ),
    ),
    Topic(
        key="completion",
        names=("localrun completion", "shell completion", "tab completion", "autocompletion"),
        tasks=("[install|get|turn on] [tab completion|shell completion|completion]",),
        patterns=("[bash|zsh|fish] completion[s|]",),
        answer=(
            "`localrun completion` prints the script that completes commands, options and model names in your shell.",
        ),
        weight=0.7,
    ),
)
