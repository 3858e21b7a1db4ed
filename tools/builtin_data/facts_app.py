# ruff: noqa: E501 - patterns and sentences stand on one line each
"""What localrun's model can explain about the app: its keys, its chats, its settings."""

from __future__ import annotations

from tools.builtin_data.topic import Topic

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
            "what does localrun do, exactly?",
            "what exactly does localrun do?",
            "what is localrun?",
            "explain what localrun does",
        ),
        answer=(
            'localrun is a program that runs quantized language models on your own machine, offline and in private. Open the app with `localrun`, ask one question with `localrun run "prompt"`, and get a real model with `localrun pull qwen3-4b`.',
        ),
        more=(
            "It fits the KV cache to the memory that is free, reuses every prefix it has already computed, and says what it does: what fits, what was reused, and which phase is slow and why. It loads GGUF and safetensors files.",
        ),
        simple=("localrun lets you chat with a language model that lives on your own computer.",),
        weight=1.8,
    ),
    Topic(
        key="open_app",
        names=("localrun tui", "the tui", "the app"),
        tasks=(
            "[start|begin] [chatting|a chat|a conversation|talking][ with a model| with one of the models| with you|]",
            "[open|start|launch|run] [the app|localrun|the tui|the program|the interface]",
            "[chat|have a conversation] with a model",
            "[use|work with] [localrun|this app|this program]",
            "open the app",
            "start the app",
            "launch localrun",
        ),
        patterns=(
            "is there [a gui|an app|a tui|an interface|a window]?",
            "how do i open the app?",
            "how does the app [open|start]?",
            "[open|start|launch] the app",
        ),
        answer=(
            'Type `localrun` in a terminal to open the app, with chats, models, downloads and settings. `localrun chat` gives a plain chat, and `localrun run "your question"` prints one answer and ends.',
        ),
        weight=1.3,
    ),
    Topic(
        key="branches",
        names=("branches", "a branch", "/edit", "/branch", "the branches of a chat", "/compare"),
        tasks=(
            "[edit|change|reword|correct] [my|a|the last] [message|question|prompt]",
            "[edit|branch] a chat",
            "go back to [an earlier|another] [version|answer|branch]",
            "compare two answers",
            "edit my last message",
            "change what i wrote",
            "edit a question i sent",
        ),
        patterns=("can [a chat|the answer|a message] be [edited|branched|changed]?",),
        answer=(
            "A chat is a tree: `/edit` puts another question beside the last one as a new branch, and `/branch` shows all of them and goes there. Nothing is lost, and what was computed is reused.",
        ),
        weight=1.1,
    ),
    Topic(
        key="history",
        names=("localrun history", "the history", "the chat history"),
        bare=("history", "localrun history"),
        tasks=(
            "[see|find|search|open] my [old|last|earlier|previous] [chats|chat|conversations]",
            "find [an old|a] [chat|conversation|message]",
            "search [my|all|old] chats",
        ),
        patterns=(
            "[where|how] are my [chats|conversations] [saved|stored|kept]?",
            "are [my |]chats [saved|kept|stored]?",
        ),
        answer=(
            "`localrun history list` shows your chats, and `localrun history search WORD` finds messages in them; in the app Ctrl+L lists them. Chats are kept as files on your own disk.",
        ),
        weight=1.1,
    ),
    Topic(
        key="continue_chat",
        names=("-c", "--continue"),
        tasks=(
            "[continue|resume|go on with|reopen|carry on with] [my|the|an old|yesterday's|a] [last |old |]chat",
            "go on where i stopped",
            "go on with yesterday's [chat|conversation]",
            "[pick up|take up|get back to|return to|reopen] [the|my|our] [chat|conversation|talk] [from yesterday|of last week|from this morning|from last night|i had before]",
            "[pick up|carry on|keep going|go on] where [we|i] [left off|stopped last time|ended]",
            "continue [the last|my last|an earlier|yesterday's] [chat|conversation]",
        ),
        patterns=(
            "[how do i get|i want|bring] [my old chat|yesterday's chat|my last conversation|the chat of this morning] back[?|]",
            "[can|may] we [continue|go on with|resume] [our|the] [last|previous|old] [chat|conversation]?",
            "i closed [the window|the terminal|localrun|the app], [how do i|can i] [continue|go on|get my chat back]?",
        ),
        answer=(
            '`localrun run -c "prompt"` and `localrun chat -c` go on with the last chat; in the app, Ctrl+L opens any of them. Its model and settings come back with it.',
        ),
        weight=1.8,
    ),
    Topic(
        key="export",
        tasks=(
            "[export|save|write] [a|my|the|this] [chat|conversation] [to a file|as markdown|as json|]",
            "copy a chat to a file",
            "share a chat",
        ),
        names=("/save", "localrun history export"),
        answer=(
            "`localrun history export 1 chat.md` writes a chat as Markdown, and chat.json as JSON; inside a chat it is `/save FILE`.",
        ),
    ),
    Topic(
        key="attach",
        names=("/attach", "@FILE", "attachments", "--file", "attaching files"),
        tasks=(
            "[attach|add|give|send|upload|pass|show] [a|my|the] [file|text file|document|pdf|folder]",
            "[attach|give|pass|send] [a|my] [file|text file|pdf|document] [to you|to the model|to localrun|to a chat|to a prompt|to it]",
            "[summarise|summarize|ask about] [a file|a pdf|a document]",
            "[add|upload|attach] a [pdf|file|text file|document] to [the|a|my] chat",
        ),
        patterns=("can [i attach|it read|localrun read|you read|the model read] [a pdf|a file|pdfs|documents]?",),
        answer=(
            'In a chat, `/attach notes.txt` or `@notes.txt` inside the message sends the text of a file or PDF along; Ctrl+T does it in the app. For one prompt use `localrun run --file notes.txt "Summarise this"`.',
        ),
        weight=1.6,
    ),
    Topic(
        key="slash",
        names=(
            "slash commands",
            "the commands inside a chat",
            "the slash commands",
            "/help",
            "commands with a slash",
            "the slash",
            "/[commands|help] in a chat",
        ),
        tasks=("[see|list|show|get] the [slash commands|commands of a chat|commands inside a chat]",),
        patterns=(
            "[what|which] [slash|chat] commands [are there|exist|do you know|can i use]?",
            "what does a [/|slash] [do|mean] [in a chat|at the start of a line|before a word]?",
            "[what|which] commands [are there|can i use] in a chat?",
            "what can i type in a chat?",
        ),
        answer=(
            "In a chat, a line that begins with a slash is a command: `/help` shows all, such as `/new`, `/retry`, `/edit`, `/attach`, `/system`, `/stats` and `/quit`.",
        ),
    ),
    Topic(
        key="config",
        names=(
            "localrun config",
            "the settings",
            "the config file",
            "config.toml",
            "the configuration",
            "the config command",
        ),
        bare=("config", "localrun config"),
        tasks=(
            "[change|set|see|find|edit] [the settings|a setting|settings|my settings|the config|options]",
            "[keep|save] a setting",
        ),
        patterns=("where [are the settings|is the config file|is config.toml]?",),
        answer=(
            "`localrun config` shows all settings and where their file is, and `localrun config KEY VALUE` changes one, for example `localrun config temperature 0.7`. In the app, F3 opens them.",
        ),
        weight=1.1,
    ),
    Topic(
        key="default_model",
        names=("the default model",),
        tasks=(
            "[change|set|choose|make] [the|my] default model",
            "[set|make|use] [qwen|qwen3-4b|another model|it|llama] as [my |the ]default[ model|]",
        ),
        patterns=("which model [answers|is used] [by default|when i name none]?",),
        answer=(
            "`localrun config model qwen3-4b` makes that model the default. The first model you pull becomes it by itself; `-m NAME` takes another one once.",
        ),
        weight=1.1,
    ),
    Topic(
        key="remote_server",
        tasks=(
            "[connect to|use|add|chat with] [a|my|a remote|another] server[ in the app| from the app|]",
            "use [ollama|vllm|llama.cpp|openai|a remote model|an api key] [in the app|from localrun|as a server]",
            "add a server",
        ),
        names=("adding a server", "servers in the app", "a remote server"),
        patterns=(
            "can [localrun|the app] [talk|connect] to [my|an] [ollama|vllm|openai|remote|llama.cpp] [server|api|endpoint]?",
        ),
        answer=(
            'Yes: the app can chat with a server that speaks the OpenAI protocol. Press F3 for the settings, choose "add a server", and give its address. What you type there goes to that server.',
        ),
        weight=1.1,
    ),
)
