"""How long the app takes to list thousands of chats, and to search in them (its first frame: benchmarks.app_terminal).

    python -m benchmarks.many_chats [--chats 10000]

writes them into a temporary folder and prints seconds, each the median of several runs of the app without a terminal.
"""

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from pathlib import Path

WORDS = ("puffins", "tides", "bread", "engines", "violins", "glaciers", "ferries", "lichen")
RUNS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chats", type=int, default=10_000)
    n_chats = parser.parse_args().chats
    with tempfile.TemporaryDirectory() as home:
        write_chats(Path(home) / "chats", n_chats)
        os.environ["LOCALRUN_HOME"] = home
        print(f"{n_chats:,} chats, medians of {RUNS}")
        opened, searched = asyncio.run(list_and_search())
        print(f"list of chats        {opened:.3f} s (wanted: 0.3)")
        print(f"search in all        {searched:.3f} s (wanted: 0.2)")


def write_chats(folder: Path, n_chats: int) -> None:
    """Two messages each, written as localrun writes them but for waiting for the disk."""
    from localrun.chat import file
    from localrun.chat.journal import ChatStore

    file.sync = file.sync_folder = lambda *_: None  # type: ignore[assignment]
    folder.mkdir(parents=True)
    for number in range(n_chats):
        chat = ChatStore(folder).create(model="builtin")
        question = (
            f"question {number} about {WORDS[number % 8]} and {WORDS[number // 8 % 8]} number {number * 7919 % 997}"
        )
        chat.add_answer(chat.add_user(question).id, "It depends on the season, and on the wind. " * 8)


async def list_and_search() -> tuple[float, float]:
    """Seconds from the key to the rows on the screen. What is on disk was read once before, as it is in the app."""
    from localrun.chat.search import search
    from localrun_tui.app import LocalrunApp
    from localrun_tui.screens.chat.chat_screen import ChatScreen
    from localrun_tui.start import open_client, open_store

    app = LocalrunApp(open_client, open_store)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = next(one for one in app.screen_stack if isinstance(one, ChatScreen))
        if app.screen is not screen:
            app.pop_screen()
        await pilot.pause()
        opened, searched = [], []
        await screen.session.disk.run(screen.session.disk.warm_up)
        await screen.session.disk.run(lambda: search(screen.session.disk.store(), "puffins"))  # makes the index
        for run in range(RUNS):
            began = time.perf_counter()
            screen.action_history()
            while not screen.chats.options.option_count:
                await asyncio.sleep(0.002)
            await asyncio.sleep(0)
            opened.append(time.perf_counter() - began)
            began = time.perf_counter()
            await screen.history.show(f"{WORDS[run]} number")
            searched.append(time.perf_counter() - began)
            await screen.history.show("")
            screen.action_history()
            screen.chats.show([], (), None, "")
    return statistics.median(opened), statistics.median(searched)


if __name__ == "__main__":
    main()
