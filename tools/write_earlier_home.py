"""Writes the home that tests/client/test_earlier_home.py opens: chats, KV blocks, packed weights and settings.

It was run once, on a checkout of the version whose home it is; a later one gets a file of its own:

    PYTHONPATH=.:tui:tests/support python tools/write_earlier_home.py tests/client/homes/VERSION.tar.xz
"""

import argparse
import json
import os
import tarfile
import tempfile
from dataclasses import replace
from pathlib import Path

LONG = "Tell me everything about rivers, and do not leave anything out that a child would ask for. "
FILE_TEXT = "[file: notes.txt]\n```\nbuy milk\n```\n\nWhat is missing?"
PACKED_BYTES = 1 << 20
MOST_BYTES = 300_000


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("target", type=Path)
    target = parser.parse_args().target.absolute()
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        os.environ |= {"LOCALRUN_HOME": str(root / "home"), "LOCALRUN_ISA": "generic"}
        write_model(root)
        write_home(root)
        target.parent.mkdir(parents=True, exist_ok=True)
        with tarfile.open(target, "w:xz") as archive:
            for part in sorted(root.iterdir()):
                archive.add(part, part.name)
    size = target.stat().st_size
    assert size <= MOST_BYTES, f"{size:,} bytes are too many for the repository"
    print(f"{target}: {size:,} bytes")


def write_model(root: Path) -> None:
    """A tiny model of random weights, `tiny.gguf`."""
    from localrun_testing import gguf_convert, tiny_models

    with tempfile.TemporaryDirectory() as folder:
        shape = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2}
        model = tiny_models.build("qwen2", **shape, num_attention_heads=4, num_key_value_heads=2)
        model.save_pretrained(folder)
        tiny_models.save_tokenizer(Path(folder))
        gguf_convert.convert(Path(folder), root / "tiny.gguf", "Q8_0")


def write_home(root: Path) -> None:
    """What using that model leaves on disk, and `expected.json`: what has to be there again."""
    from localrun.base.paths import writable_folder
    from localrun.base.request import LoadOptions, Sampling
    from localrun.base.settings import write_setting
    from localrun.chat.journal import ChatStore
    from localrun.chat.turn import Answer, TurnOptions, begin_turn
    from localrun.client.local import LocalClient
    from localrun.engine import packed_weights

    packed_weights.LEAST_BYTES = 0  # else a model of this size is packed at every start
    write_setting("temperature", "0.5")
    write_setting("theme", "nord")
    store = ChatStore(writable_folder("chats"))
    chat = store.create(title="Rivers", model="tiny", system="Be brief.", pinned=True)
    how = LoadOptions(root / "tiny.gguf", "tiny", "Q8_0", backend="cpu", threads=1, ctx=512, kv="f16")
    turn = TurnOptions(Sampling(temperature=0.0), max_tokens=4)
    with LocalClient(replace(how, disk_cache=1 << 30, packed_weights=PACKED_BYTES, chat_id=chat.id)) as client:
        for text in (LONG, FILE_TEXT):
            question = chat.add_user(text)
            request, _ = begin_turn(chat, question.id, turn, client.info.ctx)
            answer = Answer(chat, question.id, request, client.info)
            for event in client.generate(request):
                answer.take(event)
            assert answer.keep()
        client.model.kept.thread.join()
    chat.edit(chat.tree.path(chat.tree.head)[0].id, "Tell me about lakes.")
    store.create(title="Another").add_user("Hello?")
    expected = {
        "chat": chat.id,
        "texts": [message.text for message in chat.tree.messages()],
        "n_chats": len(store.summaries()),
        "rewound_to": [message.id for message in chat.tree.messages()][3],
        "packed": len(list((root / "home" / "cache" / "weights").glob("*/*.packed"))),
    }
    (root / "expected.json").write_text(json.dumps(expected))


if __name__ == "__main__":
    main()
