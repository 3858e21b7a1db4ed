"""The proxy of a connection, from environment variables or the settings of macOS and Windows.

The variables are http_proxy, https_proxy, all_proxy and no_proxy.
"""

import base64
import ipaddress
import re
import urllib.request
from dataclasses import field
from urllib.parse import unquote, urlsplit

from localrun.base.dataclass import dataclass
from localrun.base.errors import HubError
from localrun.hub.network.url_origin import Origin, is_this_machine

_HINT = "localrun supports http:// proxies: set {name} to one, name the host in no_proxy, or unset it"


@dataclass(frozen=True, slots=True)
class Proxy:
    """An HTTP proxy. `authorization` is a header value and never shown."""

    host: str
    port: int
    authorization: str = field(default="", repr=False)


def proxy_for(origin: Origin) -> Proxy | None:
    """The proxy to an origin; None for a direct connection. HubError for an unsupported kind of proxy."""
    scheme, host, port = origin
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    proxies = urllib.request.getproxies()
    if is_this_machine(host) or urllib.request.proxy_bypass(host) or urllib.request.proxy_bypass(place):
        return None
    if any(_covers(entry, host) for entry in re.split(r"[,\s]+", proxies.get("no", ""))):
        return None
    name = scheme if proxies.get(scheme) else "all"
    address = proxies.get(name, "")
    return _parse(address, f"{name}_proxy") if address else None


def _covers(entry: str, host: str) -> bool:
    """Whether an entry of no_proxy covers a host in a form that urllib lacks: `*.example.org`, or a network.

    Entries after a blank are trimmed; networks look like `10.0.0.0/8`.
    """
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(entry, strict=False)
    except ValueError:  # one of them is a name
        return f".{host}".endswith("." + entry.lower().lstrip("*.")) if entry.strip("*.") else False


def _parse(address: str, name: str) -> Proxy:
    """Parse the address of a proxy. HubError names the variable and the scheme only, since there may be a password."""
    try:
        address = address.strip()
        parts = urlsplit(address if "://" in address else f"http://{address}")
        scheme, host, port = parts.scheme, parts.hostname or "", parts.port or 80
        user, password = unquote(parts.username or ""), unquote(parts.password or "")
        token = base64.b64encode(f"{user}:{password}".encode()).decode()
    except ValueError:
        host = ""
    if not host or not host.isascii() or not host.isprintable() or " " in host:
        raise HubError(f"{name} is not the address of a proxy", "set it to http://HOST:PORT, or unset it")
    if scheme != "http":
        kind = "SOCKS" if scheme.startswith("socks") else scheme[:20]
        raise HubError(f"{name} names a {kind} proxy, which localrun does not support", _HINT.format(name=name))
    return Proxy(host, port, f"Basic {token}" if user or password else "")
