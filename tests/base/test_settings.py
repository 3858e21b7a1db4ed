"""config.toml and LOCALRUN_*: what they say, and errors that name the place."""

from pathlib import Path

import pytest

from localrun.base.errors import StorageError, UsageError
from localrun.base.settings import SETTINGS, Settings, read_settings, read_sources, write_setting


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
        ("ctx = 512\n\ntemprature = 1\n", 3, "did you mean temperature"),
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
        ("a.b = 1\n", 1, "there is no setting 'a'"),
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
    config(home, "").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="cannot be read"):
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
    assert [entry.name for entry in home.iterdir()] == ["config.toml"], "no temporary file stays behind"


def test_writing_refuses_what_reading_would(home: Path) -> None:
    for key, value in [("ctx", "0"), ("colour", "red")]:
        with pytest.raises(UsageError):
            write_setting(key, value)
    assert not home.exists()
    path = config(home, "broken = [")
    with pytest.raises(UsageError):
        write_setting("ctx", "512")
    assert path.read_text() == "broken = ["


def test_nowhere_to_write_is_a_usage_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("LOCALRUN_HOME", str(tmp_path / "file"))
    with pytest.raises(UsageError, match="settings are not kept"):
        write_setting("ctx", "512")


@pytest.mark.parametrize("key", SETTINGS)
def test_every_setting_reads_back_what_was_written(key: str, home: Path) -> None:
    example = {
        "model": "m",
        "ctx": 64,
        "kv": "k8v4",
        "window": 64,
        "backend": "reference",
        "isa": "generic",
        "theme": "nord",
    }
    example["system"] = "Be brief.\n"
    value = example.get(key, 1)
    write_setting(key, str(value))
    assert getattr(read_settings({}), key) == value


def test_what_set_a_setting_is_told(home: Path) -> None:
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
