"""config.toml and LOCALRUN_*: what they say, and errors that name the place."""

import os
import re
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from localrun.base import files, lock
from localrun.base.errors import StorageError, UsageError
from localrun.base.setting_rows import SETTINGS
from localrun.base.settings import Settings, read_settings, read_sources, write_setting


def config(home: Path, text: str) -> Path:
    home.mkdir(exist_ok=True)
    path = home / "config.toml"
    path.write_text(text, "utf-8")
    return path


def test_nothing_set_is_nothing(home: Path) -> None:
    assert read_settings({}) == Settings()
    assert not home.exists()


def test_the_environment_goes_before_the_file(home: Path) -> None:
    config(home, 'model = "from-file"\nctx = 512\ntemperature = 1\n')
    settings = read_settings({"LOCALRUN_CTX": "1024", "LOCALRUN_THREADS": "3", "LOCALRUN_KV": "F16"})
    assert settings == Settings(model="from-file", ctx=1024, temperature=1.0, threads=3, kv="f16")
    assert read_settings({"LOCALRUN_CTX": ""}).ctx == 512, "an empty variable says nothing"
    assert read_settings({"LOCALRUN_CTX": "auto"}).ctx == 0, "auto in a nearer place undoes a number"


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("seed.a.b = 1\n", 1, "seed = {'a': {'b': 1}}: a whole number"),
        ("kv = [1, 2]\n", 1, "one of auto"),
        ("\ufeff# a byte order mark\nctx = 0\n", 2, "a whole number from 1"),
        ("\n\nx = " + "[" * 100_000, 3, "cannot be read"),
        ("ctx = 1\nx = " + "[" * 100_000 + "]" * 100_000, 2, "cannot be read"),
        ("# a\nx = " + "{a=" * 30_000 + "1" + "}" * 30_000, 2, "cannot be read"),
        ("ctx = 1\n" + "a." * 100_000 + "a = 1\n", 2, "nested too deeply"),
        ("\n[" + '"a" . ' * 30_000 + "a]\n", 2, "nested too deeply"),
        ("ctx = 1\nseed = " + "9" * 10_000 + "\nkv = 1", 2, "cannot be read"),
        ("[model]\nname = 1\n", 1, "a text is needed"),
        ("# a comment\nctx = 0\n", 2, "a whole number from 1"),
        ("ctx = 1.5\n", 1, "a whole number"),
        ("ctx = true\n", 1, "a whole number"),
        ("temperature = nan\n", 1, "a number from 0"),
        ('temperature = "warm"\n', 1, "a number from 0"),
        ("top_p = 1.01\n", 1, "a number from 0 to 1"),
        ('kv = "q3"\n', 1, "one of auto, f32, f16, q8, k8v4, q4"),
        ("window = 63\n", 1, "from 64"),
        ('model = "  "\n', 1, "a text is needed"),
        ("seed = -1\n", 1, "a whole number from 0"),
        ("ctx = \n", 1, "Invalid value"),
        ("ctx = 1\nctx = 2\n", 2, "Cannot overwrite"),
    ],
)
def test_errors_name_file_and_line(home: Path, text: str, line: int, says: str) -> None:
    path = config(home, text)
    with pytest.raises(UsageError) as caught:
        read_settings({})
    whole = f"{caught.value.message} {caught.value.hint}"
    assert str(path) in whole
    assert f"line {line}" in whole
    assert says in whole


def test_a_file_that_is_not_text_is_a_usage_error(home: Path) -> None:
    config(home, "").write_bytes(b"ctx = 1\n\xff\xfe\x00")
    with pytest.raises(UsageError, match="line 2: this is not UTF-8 text"):
        read_settings({})
    (home / "config.toml").unlink()
    (home / "config.toml").mkdir()
    with pytest.raises(UsageError, match="cannot be read"):
        read_settings({})


@pytest.mark.parametrize(("name", "value"), [("CTX", "many"), ("BACKEND", "tpu"), ("THREADS", "0"), ("KV", "q3")])
def test_errors_name_the_variable(name: str, value: str) -> None:
    with pytest.raises(UsageError, match=f"LOCALRUN_{name}"):
        read_settings({f"LOCALRUN_{name}": value})


def test_writing_keeps_comments_and_other_keys(home: Path) -> None:
    path = config(home, "# mine\nctx = 512  # small\n")
    write_setting("temperature", "0.25")
    write_setting("ctx", "1024")
    assert path.read_text() == "# mine\nctx = 1024  # small\ntemperature = 0.25\n"
    write_setting("ctx", "auto")
    assert read_settings({}) == Settings(temperature=0.25, ctx=0)
    assert 'ctx = "auto"' in path.read_text()
    write_setting("temperature", None)
    write_setting("temperature", None)
    assert read_settings({}).temperature is None
    left = sorted(entry.name for entry in home.iterdir())
    assert left == ["config.lock", "config.toml"], "no temporary file stays behind"


def test_writing_refuses_what_reading_would(home: Path) -> None:
    for key, value in [("ctx", "0"), ("colour", "red")]:
        with pytest.raises(UsageError):
            write_setting(key, value)
    assert not home.exists()
    path = config(home, "broken = [")
    with pytest.raises(UsageError):
        write_setting("ctx", "512")
    assert path.read_text() == "broken = ["


def test_a_missing_home_folder_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("LOCALRUN_HOME", str(tmp_path / "file"))
    with pytest.raises(StorageError, match="settings are not kept"):
        write_setting("ctx", "512")


@pytest.mark.parametrize("key", SETTINGS)
def test_every_setting_survives_a_round_trip(key: str, home: Path) -> None:
    example = {
        "model": "m",
        "ctx": 64,
        "kv": "k8v4",
        "window": 64,
        "backend": "reference",
        "isa": "generic",
        "draft": "lookup",
        "theme": "nord",
        "folders": "/models",
    }
    example["system"] = "Be brief.\n"
    value = example.get(key, 1)
    write_setting(key, str(value))
    assert getattr(read_settings({}), key) == value


def test_the_source_of_a_setting_is_known(home: Path) -> None:
    config(home, "ctx = 512\nseed = 1\n")
    sources = read_sources({"LOCALRUN_CTX": "1024", "LOCALRUN_SEED": "2"})
    assert sources == {"ctx": (1024, "LOCALRUN_CTX"), "seed": (1, "config.toml")}


def test_settings_of_few_words_say_which() -> None:
    assert SETTINGS["backend"].choices[:2] == ("auto", "reference")
    assert SETTINGS["seed"].choices == ()


def test_a_full_disk_changes_nothing_and_is_said(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = config(home, "ctx = 512\n")

    def full(path: Path, text: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("localrun.base.settings.write_whole", full)
    with pytest.raises(StorageError, match="No space left on device"):
        write_setting("ctx", "1024")
    assert path.read_text() == "ctx = 512\n"


def test_a_link_to_the_file_stays_one(home: Path, tmp_path: Path) -> None:
    home.mkdir()
    (tmp_path / "dotfiles.toml").write_text("ctx = 512\n")
    (home / "config.toml").symlink_to(tmp_path / "dotfiles.toml")
    write_setting("ctx", "1024")
    assert (tmp_path / "dotfiles.toml").read_text() == "ctx = 1024\n"


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was said of keys that are no settings."""
    said: list[str] = []
    monkeypatch.setattr("localrun.base.settings._tell", said.append)
    return said


def test_a_setting_of_a_newer_version_is_reported_once_and_kept(home: Path, told: list[str]) -> None:
    text = "# mine\nctx = 512\n\ntemprature = 1  # new\n[future]\ndeep = [1, {a = 2}]\n"
    path = config(home, text)
    for _ in range(2):
        assert read_settings({}) == Settings(ctx=512)
    assert len(told) == 2
    assert (
        f"{path}, line 4: there is no setting 'temprature': it is passed over\n  did you mean temperature?" in told[0]
    )
    assert "line 5: there is no setting 'future'" in told[1]
    write_setting("seed", "5")
    assert read_settings({}) == Settings(ctx=512, seed=5)
    added = [line for line in path.read_text().splitlines() if line not in text.splitlines()]
    assert added == ["seed = 5"]
    assert [line for line in text.splitlines() if line not in path.read_text().splitlines()] == []
    assert len(told) == 2


def test_names_of_unknown_settings_do_not_steer_a_terminal(home: Path, told: list[str]) -> None:
    config(home, '"\\u001b]0;pwned\\u0007' + "x" * 1000 + '" = 1\n')
    assert read_settings({}) == Settings()
    assert "\x1b" not in told[0]
    assert len(told[0]) < 1000


def test_a_device_or_large_file_is_refused_at_once(home: Path) -> None:
    path = config(home, "# x\n" * 100_000)
    links: list[Callable[[], object]] = [lambda: path.symlink_to("/dev/zero"), lambda: os.mkfifo(path), path.mkdir]
    for make in (lambda: None, *links):
        make()
        looks: list[Callable[[], object]] = [lambda: read_settings({}), lambda: write_setting("ctx", "512")]
        for look in looks:
            with pytest.raises(UsageError, match=re.escape(str(path))):
                look()
        if not path.is_dir():
            path.unlink()


def test_a_byte_order_mark_and_windows_line_ends_are_no_matter(home: Path) -> None:
    path = config(home, "")
    path.write_bytes(b"\xef\xbb\xbfctx = 512\r\n")
    assert read_settings({}).ctx == 512
    write_setting("seed", "5")
    assert read_settings({}) == Settings(ctx=512, seed=5)


def test_text_that_is_none_is_a_usage_error(home: Path) -> None:
    for key in ("system", "model", "theme", "isa"):
        with pytest.raises(UsageError, match="UTF-8"):
            write_setting(key, "\udcff")
    with pytest.raises(UsageError, match="UTF-8"):
        read_settings({"LOCALRUN_MODEL": "\udcff"})


def test_a_file_never_grows_beyond_what_is_read(home: Path) -> None:
    with pytest.raises(UsageError, match="256 KiB"):
        write_setting("system", "x" * 300_000)
    assert read_settings({}) == Settings()


def test_of_two_writers_at_once_none_loses_what_the_other_set(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one stops between reading and writing, until the second waits for it or is through."""
    waits, second = threading.Event(), threading.Thread(target=write_setting, args=("seed", "5"))
    wait_for, write = lock._wait_for, files.write_whole

    def noted(fd: int) -> None:
        if threading.current_thread() is second:
            waits.set()
        wait_for(fd)

    def slow(path: Path, text: str) -> None:
        if threading.current_thread() is not second:
            second.start()
            assert waits.wait(60)
        write(path, text)

    monkeypatch.setattr(lock, "_wait_for", noted)
    monkeypatch.setattr("localrun.base.settings.write_whole", slow)
    write_setting("ctx", "512")
    second.join()
    assert read_settings({}) == Settings(ctx=512, seed=5)


def test_a_layer_that_drafts_is_preferred_by_the_file_and_demanded_by_a_command(home: Path) -> None:
    """What is shown of the file stays as it was written."""
    write_setting("draft", "mtp")
    assert read_settings({}).draft == "auto"
    assert read_sources({})["draft"][0] == "mtp"
    write_setting("draft", "lookup")
    assert read_settings({}).draft == "lookup"


def test_what_drafts_is_a_word_or_a_model_that_is_there(tmp_path: Path) -> None:
    """A relative path means the same wherever the program goes."""
    parse = SETTINGS["draft"].parse
    (tmp_path / "small.gguf").touch()
    assert (parse("MTP"), parse(str(tmp_path / "small.gguf"))) == ("mtp", str(tmp_path / "small.gguf"))
    assert SETTINGS["draft"].placeholder == "auto|off|lookup|mtp|FILE"
    with pytest.raises(ValueError, match="there is no such file; one of auto, off"):
        parse(str(tmp_path / "other.gguf"))
    with pytest.raises(ValueError, match=r"^one of auto, off, lookup, mtp is needed, or the path of a model"):
        parse("lokup")
