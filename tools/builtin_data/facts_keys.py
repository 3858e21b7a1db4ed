# ruff: noqa: E501 - patterns and sentences stand on one line each
"""What localrun's model can explain about the keys of the app."""

from __future__ import annotations

from tools.builtin_data.topic import Topic

TOPICS = (
    Topic(
        key="keys",
        names=(
            "[the |]keyboard shortcuts",
            "[the |]keys[ in the app|]",
            "the shortcuts",
            "hotkeys",
            "key bindings",
            "the keys of the app",
        ),
        patterns=("[what|which] [keys|shortcuts|hotkeys] [are there|can i use|does the app have|do i need]?",),
        answer=(
            "In the app: Enter sends, Esc stops an answer, Ctrl+N begins a new chat, Ctrl+L lists the chats, Ctrl+O the models, Ctrl+S sets this chat, Ctrl+R answers again, F3 is settings, F1 help and Ctrl+Q quits.",
        ),
        weight=1.1,
    ),
    Topic(
        key="key_models",
        tasks=(
            "open the [list of models|model list|models screen]",
            "see the models in the app",
            "choose [a model|another model] in the app",
        ),
        names=("Ctrl+O", "ctrl o", "the models screen"),
        patterns=(
            "[which|what] key [opens|shows] the [models|list of models|model list]?",
            "[which|what] [key|shortcut] [do i press|is it|is there] [for|to see|to get to] [the models|the model list|another model]?",
            "[how|where] do i [switch|change|pick] [the |]model[s|] in the app?",
            "[shortcut|key|hotkey] for the [models|model list|list of models]?",
        ),
        answer=(
            "Ctrl+O opens the models in the app: those on disk, in the catalogue, on the hub and on servers, with what fits.",
        ),
    ),
    Topic(
        key="quit",
        tasks=("[quit|close|exit|leave] [the app|localrun|the program|the chat|the tui]",),
        patterns=(
            "[which|what] key [quits|closes] [the app|localrun]?",
            "how do i [exit|quit|leave|get out]?",
            "[key|shortcut|hotkey] [to quit|for quitting|to close the app]?",
            "[i can't|i cannot|how do i] get out of [the app|this screen|localrun|here][?|]",
            "exit",
            "quit",
            "how to [exit|quit]",
        ),
        answer=("Ctrl+Q quits the app; in a plain chat, type `/quit`. Chats are kept.",),
        weight=1.1,
    ),
    Topic(
        key="new_chat",
        tasks=(
            "[start|begin|open|make] [a|another] [new|fresh|empty] [chat|conversation]",
            "forget [this chat|everything|the chat] and start [over|again]",
            "start over with an empty chat",
            "begin a fresh chat",
            "clear the chat",
        ),
        patterns=("[which|what] key [starts|begins|opens] a new chat?",),
        answer=(
            "Ctrl+N begins a new chat in the app; in a plain chat it is `/new`. The old one stays in the history.",
        ),
        weight=1.1,
    ),
    Topic(
        key="stop_answer",
        tasks=(
            "[stop|cancel|interrupt|abort|halt] [an answer|the answer|the model|the generation|a running answer]",
            "make it stop [talking|writing|generating]",
        ),
        patterns=(
            "[which|what] key [stops|cancels|interrupts|ends] [an answer|the answer|the model|a running answer]?",
            "how do i [stop|cancel|interrupt|halt|break off] [an answer|the answer|a reply|it] [while it is|that is still|that is being|when it is] [running|written|going on|too long]?",
            "[it|the answer|the model] [won't stop|does not stop|keeps going|goes on and on|writes too much][, how do i stop it|. how do i stop it|, which key|]?",
            "[stop|cancel|interrupt] [it|an answer|the model] [midway|halfway|early|while it writes|in the middle]",
        ),
        answer=("Press Esc in the app, or Ctrl-C in a plain chat: the answer stops, and what was written stays.",),
        weight=1.4,
    ),
    Topic(
        key="retry",
        tasks=(
            "[regenerate|repeat|redo] [an answer|the answer|the last answer]",
            "get [another answer|a different answer][ to the same question|]",
            "have the model answer again",
        ),
        answer=(
            "Ctrl+R in the app, or `/retry`, answers the last message again; `/retry-with MODEL` asks another model. Both answers stay, as branches, and the prompt is not computed again.",
        ),
        weight=1.1,
    ),
)
