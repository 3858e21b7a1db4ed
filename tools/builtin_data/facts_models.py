# ruff: noqa: E501 - patterns and sentences stand on one line each
"""What localrun's model can explain about models on disk and on the hub."""

from __future__ import annotations

from tools.builtin_data.topic import Topic

TOPICS = (
    Topic(
        key="pull",
        names=("localrun pull", "the pull command"),
        bare=("pull", "localrun pull"),
        tasks=(
            "[download|get|pull|fetch|install|add|grab] [a|another|a new|a bigger|a better|a real|a larger|the|some other] [model|llm|one]",
            "[download|get|pull|install|fetch|find] [models|more models|other models|bigger models]",
            "[use|run|try|switch to|change to] [a bigger|another|a smarter|a better|a different|a real] model",
            "[change|switch|replace] [the |]model",
            "[get|put|bring|load] [a bigger|another|a real|a larger|a better] model [on|onto|to] [my|this] [machine|computer|laptop|disk]",
            "[get|download|install|pull|fetch|run|use] [qwen|qwen3|qwen3-4b|llama|mistral|gemma|phi|gpt-oss|a model from hugging face]",
            "dowload a model",
        ),
        patterns=(
            "[which|what] command [downloads|pulls|gets|installs|fetches] [a model|models|a new model|bigger models|other models]?",
            "where [could|can|might|do] i [find|get|look for] [more|other|bigger|new] models [to download|to pull|to install|]?",
            "how do i go about [downloading|getting|installing|pulling] [a|another|a bigger] model?",
            "what is the command [to download|for downloading|to pull|for getting] [a model|models|a new model]?",
            "downloading [a model|models]?",
            "[get|give] me a [better|bigger|real|smarter] model",
            "model download",
            "can [you|localrun] download [a model|models|a bigger model] [for me|]?",
            "what do i type to [fetch|get|download] [a|another] model?",
            "which command [downloads|fetches|gets] models?",
            "[install|download|get|pull] [llama 3|qwen3|gemma 3|qwen|mistral|phi 4|llama 3.1 8b]",
            "how do i get [llama 3|qwen3|gemma 3|phi 4]?",
        ),
        answer=(
            "Type `localrun pull qwen3-4b` in a terminal, or open the app with `localrun` and pick a model there. `localrun fit` shows what your machine can hold, and the first model you pull becomes the default.",
        ),
        short=("Run `localrun pull qwen3-4b`, or open the app with `localrun` and pick one.",),
        more=(
            'A name from the catalogue like `qwen3-4b` is the easiest way; a GGUF or safetensors repository on the hub works too, written as org/repo. After that, `localrun list` shows what is on disk and `localrun run -m qwen3-4b "Hello"` uses it.',
        ),
        weight=2.6,
    ),
    Topic(
        key="pull_or_run",
        pairs=(
            ("[localrun |]pull", "[localrun |]run"),
            ("localrun pull", "localrun run"),
            ("pull", "run"),
            ("pulling", "running a model"),
            ("downloading a model", "running a model"),
            ("pull", "chat"),
        ),
        answer=(
            '`localrun pull NAME` downloads a model and ends; `localrun run -m NAME "prompt"` has it answer a prompt. `run` never downloads unasked: it shows size and licence first, or names the pull to type.',
        ),
        weight=1.2,
    ),
    Topic(
        key="resume",
        names=("resuming a download",),
        tasks=("[resume|continue|go on with|restart|pause] [a|my|the] [download|broken download]", "see my downloads"),
        facts=("[my|the|a] download [broke off|was cut|stopped|failed|was interrupted|hangs]",),
        patterns=(
            "do i have to [start over|begin again|download everything again] [when|if] [a|the|my] download [breaks|broke off|was cut|stops]?",
            "are downloads [checked|resumed|safe]?",
            "my download [broke off|stopped|was cut], do i have to start [over|again]?",
            "download [stopped|stuck|broke off|failed] at [20|50|80|99] [%|percent]",
            "[my |the |]download stopped[ at [10|50|90]%| halfway| in the middle|]",
        ),
        answer=(
            "Type the same `localrun pull` again: it goes on where it stopped, and every file is checked by its hash. In the app, F8 shows the downloads, with pause and retry.",
        ),
        weight=1.3,
    ),
    Topic(
        key="update",
        tasks=("[update|upgrade|refresh] [a|my|the] model[s|]", "get the newest version of a model"),
        patterns=(
            "is there a newer version of [my|a|the] model?",
            "[my|the] model is [old|outdated|out of date][, what now|, what can i do|. can i update it|]",
            "[does|will] localrun [update|refresh] models [by itself|automatically|for me]?",
            "[are|do] models [updated|get updates] [automatically|by themselves|]?",
            "a model [has changed|was updated] on the hub[, how do i get it|, what now]?",
            "how do i know [if|that] a model has a newer version?",
        ),
        answer=(
            "Run `localrun pull NAME` again: it fetches what has changed on the hub. The app says when there is a newer version.",
        ),
    ),
    Topic(
        key="list",
        names=(
            "localrun list",
            "localrun ls",
            "the list command",
            "the ls command",
            "the ls command in localrun",
        ),
        bare=("list", "ls", "localrun ls"),
        tasks=(
            "[list|see|show|view] [my|the|all|the installed|the downloaded] models",
            "[see|find out|check] [which|what] models [i have|are on my disk|are installed]",
        ),
        patterns=(
            "[which|what] models [do i have|are installed|are on my disk|have i downloaded|are here]?",
            "show [me |]my models",
            "localrun [ls|list], what does [that|it] [print|do|show]?",
            "what models do i [have|own|already have]?",
        ),
        answer=(
            "`localrun list` (or `ls`) shows the models on your disk with their precision and size, those of the Hugging Face cache, LM Studio and Ollama included.",
        ),
        weight=1.4,
    ),
    Topic(
        key="show",
        names=("localrun show", "the show command"),
        bare=("show", "localrun show"),
        tasks=(
            "[see|inspect|look at|find out] what is [in|inside] a model[ file|]",
            "[see|get|find] [the details|the layers|the heads|the architecture|the properties] of a model",
            "inspect a [gguf|model]",
        ),
        patterns=("localrun show, what does [that|it] [print|do|show]?",),
        answer=(
            "`localrun show MODEL` prints what is in a model: architecture, precision, layers, heads, context, and the bytes its KV cache takes per token. It works before a download, too.",
        ),
        weight=1.4,
    ),
    Topic(
        key="rm",
        names=("localrun rm", "the rm command"),
        bare=("rm", "localrun rm"),
        tasks=(
            "[delete|remove|uninstall|erase|get rid of|throw away] [a|the|my|some|an old|that|one] model[s|]",
            "[delete|remove] a model [i do not need|i no longer use|from disk|again]",
            "free [disk space|up disk space|space]",
            "make room on my disk",
            "[uninstall|delete|remove|erase] [qwen|llama|gemma|mistral|qwen3-4b]",
        ),
        patterns=("[which|what] command [deletes|removes] a model?",),
        answer=(
            "`localrun rm NAME` removes a model from disk; it shows what that frees and asks before it deletes anything. `localrun list` shows the names and sizes.",
        ),
        short=("Use `localrun rm NAME`.",),
        weight=1.4,
    ),
    Topic(
        key="search",
        names=("localrun search", "the search command"),
        bare=("search", "localrun search"),
        tasks=(
            "[search|look|browse] for [a model|models|a coding model|models on hugging face|a small model]",
            "find [a model|models] on [hugging face|the hub|huggingface]",
            "search [hugging face|the hub|the catalogue]",
        ),
        answer=(
            "`localrun search TERM` finds models, first those localrun knows well and then what the Hugging Face hub has: `localrun search qwen3`, `localrun search coder`.",
        ),
    ),
)
