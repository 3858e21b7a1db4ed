"""What a chat sets for itself comes back, goes before config.toml, and is never out of range."""

from pathlib import Path

from localrun.base.settings import Settings
from localrun.chat.chat_settings import HeldWith, held_with, hold_with, numbers_of, settings_of, think_of
from localrun.chat.journal import ChatStore
from localrun.chat.presets import sampling_of
from localrun.chat.records import pack


def test_the_model_of_a_chat_is_there_when_it_is_reopened_and_written_once(tmp_path: Path) -> None:
    for held in (HeldWith("m", "Q4_K_M", 0, "q8", 512), HeldWith("m", "Q8_0", None), HeldWith("m", server="lab")):
        chat = ChatStore(tmp_path).create()
        chat.add_user("hello")
        hold_with(chat, held)
        size = (tmp_path / f"{chat.id}.jsonl").stat().st_size
        again = ChatStore(tmp_path).open(chat.id)
        assert held_with(again) == held
        hold_with(again, held)
        assert (tmp_path / f"{chat.id}.jsonl").stat().st_size == size


def test_numbers_go_before_the_preset_and_that_before_the_settings(tmp_path: Path) -> None:
    chat = ChatStore(None).create(preset="careful")
    usual = Settings(temperature=1.0, top_p=0.5, top_k=7, max_tokens=9)
    assert sampling_of(settings_of(chat, usual)).temperature == 0.3
    chat.set(temperature=1.5, seed=3, max_tokens=50, think="on")
    mine = settings_of(chat, usual)
    assert (mine.temperature, mine.top_p, mine.top_k, mine.seed, mine.max_tokens) == (1.5, 0.9, 7, 3, 50)
    assert think_of(chat) == "on"
    chat.set(temperature=None, max_tokens=None)
    assert (settings_of(chat, usual).temperature, settings_of(chat, usual).max_tokens) == (0.3, 9)


def test_settings_of_other_programs_are_validated(tmp_path: Path) -> None:
    chat = ChatStore(tmp_path).create()
    chat.add_user("hello")
    path = tmp_path / f"{chat.id}.jsonl"
    with path.open("ab") as file:
        file.write(pack("set", temperature=5.0, seed="x", top_p=True, ctx=-1, kv="q9", window=[1], think="maybe"))
    again = ChatStore(tmp_path).open(chat.id)
    assert numbers_of(again) == {}
    assert held_with(again) == HeldWith()
    assert think_of(again) == "auto"


def test_a_copy_has_every_branch_and_setting_and_is_a_chat_of_its_own(tmp_path: Path) -> None:
    store = ChatStore(tmp_path)
    chat = store.create(title="First", system="Be brief")
    question = chat.add_user("one")
    chat.add_answer(question.id, "uno", ids=(1, 2, 3))
    chat.edit(question.id, "two")
    chat.select(question.id)
    chat.set(temperature=0.4, pinned=True)
    copy = store.duplicate(chat.id)
    chat.add_user("only in the first")
    again = ChatStore(tmp_path).open(copy.id)
    assert [message.text for message in again.tree.path(again.tree.head)] == ["one", "uno"]
    assert sorted(message.text for message in again.tree.messages()) == ["one", "two", "uno"]
    assert again.known_ids(again.tree.head) == (1, 2, 3)
    assert (again.title, again.system, again.pinned) == ("First (copy)", "Be brief", False)
    assert numbers_of(again) == {"temperature": 0.4}
    assert {one.title for one in ChatStore(tmp_path).summaries()} == {"First", "First (copy)"}
