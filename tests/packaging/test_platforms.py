"""What other systems lack is used only behind a question which system this is; and everything imports there."""

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache

import pytest
from localrun_testing import REPOSITORY
from localrun_testing.product import sources

# What Windows lacks, or macOS. `mypy --platform` (`make lint`) knows many more, and what they are called with.
MODULES = frozenset(
    {"curses", "fcntl", "grp", "posix", "pty", "pwd", "readline", "resource", "syslog", "termios", "tty"}
)
LACKED = {"darwin": ["posix"], "win32": sorted(MODULES)}  # what others import there is imported before
WINDOWS_MODULES = frozenset({"msvcrt", "winreg", "_winapi"})
LACKING = {
    "os": """fork forkpty getuid geteuid getgid getegid getgroups getpgid getpgrp getsid setsid setuid setgid killpg
        nice chown lchown fchown
        mkfifo mknod openpty statvfs fstatvfs sysconf uname getloadavg wait wait3 wait4 waitid pread
        pwrite preadv pwritev sendfile posix_fadvise posix_fallocate posix_spawn sched_getaffinity sched_setaffinity
        sched_yield memfd_create pipe2 fdatasync lockf startfile O_CLOEXEC O_DIRECTORY O_NOCTTY O_NOFOLLOW O_NONBLOCK
        O_BINARY O_SYNC O_DIRECT O_PATH O_TMPFILE WNOHANG WIFSIGNALED WTERMSIG""",
    "signal": """SIGALRM SIGBUS SIGCHLD SIGCONT SIGHUP SIGKILL SIGPIPE SIGQUIT SIGSTOP SIGTSTP SIGTTIN SIGTTOU SIGUSR1
        SIGUSR2 SIGWINCH alarm setitimer pause pthread_kill pthread_sigmask sigwait siginterrupt CTRL_C_EVENT""",
    "select": "poll epoll kqueue",
    "mmap": "MADV_RANDOM MADV_WILLNEED MADV_DONTNEED MADV_HUGEPAGE PROT_READ MAP_SHARED",
    "time": "clock_gettime tzset pthread_getcpuclockid",
    "socket": "AF_UNIX socketpair",
    "ctypes": "WinDLL windll oledll WinError get_last_error",
}
ATTRIBUTES = {module: frozenset(names.split()) for module, names in LACKING.items()}
NAMED = re.compile(rf"\b({'|'.join(MODULES.union(WINDOWS_MODULES, *ATTRIBUTES.values()))})\b")
QUESTIONS = ("sys.platform", "os.name", "hasattr(")  # asked above the line, in the same function


def unguarded(text: str) -> list[tuple[int, str]]:
    """Lines that use what not every system has, and what: those that no question stands above."""
    found = []
    for names, node, above in walk(ast.parse(text), ()) if NAMED.search(text) else ():
        if not any(is_guard(text, one, node) for one in above):
            found += [(node.lineno, name) for name in names]
    return found


def walk(
    node: ast.AST, above: tuple[ast.AST, ...]
) -> Iterator[tuple[list[str], ast.stmt | ast.expr, tuple[ast.AST, ...]]]:
    """(what it uses, the node, what it stands in) for every node that uses some of it."""
    if names := used(node):
        assert isinstance(node, ast.stmt | ast.expr)
        yield names, node, above
    for child in ast.iter_child_nodes(node):
        yield from walk(child, (*above, node))


def used(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and not node.level:
        names = [node.module or ""]
        if node.module in ATTRIBUTES:
            return [alias.name for alias in node.names if alias.name in ATTRIBUTES[node.module]]
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return [node.attr] if node.attr in ATTRIBUTES.get(node.value.id, ()) else []
    else:
        return []
    return [name for name in names if name.split(".")[0] in MODULES | WINDOWS_MODULES]


def is_guard(text: str, one: ast.AST, node: ast.stmt | ast.expr) -> bool:
    """Whether `one`, in which the node stands, asks for the system first or lives with what is missing."""
    if isinstance(one, ast.With):
        caught = " ".join(ast.unparse(item.context_expr) for item in one.items)
        return "suppress(" in caught and "ImportError" in caught
    if isinstance(one, ast.Try):
        return any(handler.type and "ImportError" in ast.unparse(handler.type) for handler in one.handlers)
    if isinstance(one, ast.If | ast.IfExp):
        return any(question in ast.unparse(one.test) for question in QUESTIONS)
    if isinstance(one, ast.FunctionDef):
        first = [statement for statement in one.body if statement.lineno < node.lineno]
        leaving = [s for s in first if isinstance(s, ast.If) and isinstance(s.body[-1], ast.Return | ast.Raise)]
        return any(question in ast.unparse(s.test) for s in leaving for question in QUESTIONS)
    return False


def test_what_not_every_system_has_is_asked_for_first() -> None:
    found = [(path, line, name) for _, path in sources() for line, name in unguarded(path.read_text("utf-8"))]
    assert [f"{path.relative_to(REPOSITORY)}:{line}: {name}" for path, line, name in found] == []


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("import fcntl", ["fcntl"]),
        ("def f():\n    from termios import TCSANOW", ["termios"]),
        ("import os\nx = os.O_NONBLOCK", ["O_NONBLOCK"]),
        ("from signal import SIGKILL", ["SIGKILL"]),
        ("import sys\ndef f():\n    os.fork()\n    if sys.platform == 'win32':\n        return", ["fork"]),
        ("if sys.platform == 'linux':\n    pass\nos.getuid()", ["getuid"]),
        ("with suppress(OSError):\n    import pwd", ["pwd"]),
        ("with suppress(ImportError):\n    import pwd", []),
        ("try:\n    import pwd\nexcept ImportError:\n    pwd = None", []),
        ("def f():\n    if sys.platform == 'win32':\n        return 1\n    return os.getuid()", []),
        ("def f():\n    if sys.platform == 'win32':\n        raise OSError\n    os.sync()\n    os.fork()", []),
        ("x = os.getuid() if hasattr(os, 'getuid') else 0", []),
        ("import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)", []),
    ],
)
def test_unguarded_names_are_noticed(text: str, names: list[str]) -> None:
    assert [name for _, name in unguarded(text)] == names


PRETEND = """
import contextlib, importlib, io, json, sys, types

lacked, names = {lacked!r}, {names!r}
for name in names:
    importlib.import_module(name)
found = {{}}
for system in lacked:
    for loaded in [module for module in sys.modules if module.split(".")[0] in ("localrun", "localrun_tui")]:
        del sys.modules[loaded]
    sys.modules.update(dict.fromkeys(lacked[system]))
    if system == "win32":
        sys.modules["winreg"] = types.SimpleNamespace(OpenKey=lambda *_: open("no registry"), HKEY_LOCAL_MACHINE=0)
    sys.platform, sys.argv[1:], code = system, ["doctor", "--json"], None
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        for name in names:
            importlib.import_module(name)
        sys.modules["localrun.fit.probe"].MOST_ROUNDS = 1  # that it can measure, not how fast it is
        try:
            sys.modules["localrun.__main__"].main()
        except SystemExit as end:
            code = end.code
    found[system] = code, err.getvalue(), out.getvalue()
print(json.dumps(found))
"""


@cache  # what others import is imported once
def pretended() -> dict[str, tuple[int, str, str]]:
    """Exit code, errors and report of `doctor` in a Python that says it is on another system, for each: all of ours is
    imported there, without what that lacks."""
    names = [name for name, _ in sources()]
    done = subprocess.run(
        [sys.executable, "-c", PRETEND.format(lacked=LACKED, names=names)],
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "tui")},
    )
    assert (done.returncode, done.stderr[-2000:]) == (0, "")
    found: dict[str, tuple[int, str, str]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("system", LACKED)
def test_all_modules_import_on_another_system_and_doctor_reports_it(system: str) -> None:
    """The native library of Linux has another name there, so that the reference computes."""
    code, errors, report = pretended()[system]
    assert (code, errors[-2000:]) == (0, "")
    found = json.loads(report)  # one line: no import has said anything
    assert found["backends"]["reference"]["available"]
    reason = found["backends"]["cpu"]["reason"]
    assert "without the native library" in reason
    assert ("pip install ziglang" in reason) == (system == "win32")
    assert found["machine"]["threads"] >= 1
    assert found["machine"]["cpu"]
