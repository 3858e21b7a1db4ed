"""A module of ours as a process of its own: without the secrets that are in our environment."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import localrun

_SECRET = re.compile(r"(TOKEN|KEY|SECRET|PASSWORD|CREDENTIALS?)$", re.IGNORECASE)


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment less its tokens, keys and passwords."""
    return {name: value for name, value in environment.items() if not _SECRET.search(name)}


def start_module(module: str) -> "subprocess.Popen[bytes]":
    """Start it with pipes and in a session of its own: Ctrl-C in the terminal is for us alone. Raises OSError."""
    apart: dict[str, Any] = {"start_new_session": True}
    if sys.platform == "win32":
        apart = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW}
    pipe = subprocess.PIPE
    command = [sys.executable, "-P", "-m", module]
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=_environment(), **apart)


def _environment() -> dict[str, str]:
    """Ours with our module path, so that a checkout, a wheel and an editable install all find localrun."""
    root = str(Path(localrun.__file__).parents[1])
    path = os.pathsep.join(dict.fromkeys([*filter(None, sys.path), root]))
    return {**without_secrets(os.environ), "PYTHONPATH": path}
