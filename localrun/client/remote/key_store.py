"""Keys of servers in the keyring of the system, which other users and files do not see."""

from typing import Any

from localrun.base.errors import UsageError

SERVICE = "localrun"
INSTALL = "pip install 'localrun[keyring]'"
_INSTEAD = "give the key by an environment variable instead (`localrun host add NAME URL --key-env VARIABLE`)"


def stored_key(server: str) -> str:
    """The key of a server; empty where there is none, or no keyring to ask."""
    try:
        return _keyring().get_password(SERVICE, server) or ""
    except Exception:  # there is no library, or a backend's own error: locked, or gone
        return ""


def has_keyring() -> bool:
    """Whether there is a keyring that keeps keys safe: one that the library recommends, by its priority."""
    try:
        return bool(_keyring().get_keyring().priority >= 1)
    except Exception:  # as stored_key
        return False


def store_key(server: str, key: str) -> None:
    """Keep the key of a server in place of an earlier one. UsageError where no keyring keeps it safe."""
    keyring = _keyring()
    if not has_keyring():
        raise UsageError("this system has no keyring that keeps keys safe", _INSTEAD)
    try:
        keyring.set_password(SERVICE, server, key)
    except Exception as error:
        what = f"the system's keyring does not take the key ({type(error).__name__})"
        raise UsageError(what, f"unlock it, or {_INSTEAD}") from None


def forget_key(server: str) -> None:
    """Remove the key of a server, if there is one and a keyring to ask."""
    try:
        _keyring().delete_password(SERVICE, server)
    except Exception:  # it has no such key, or cannot be asked
        return


def _keyring() -> Any:
    """The library; UsageError where it is not installed."""
    try:
        import keyring
    except ImportError:
        raise UsageError("keys in the system's keyring need the package keyring", f"{INSTALL}, or {_INSTEAD}") from None
    return keyring
