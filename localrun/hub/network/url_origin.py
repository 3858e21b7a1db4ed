"""Origin of a URL: scheme, host and port, whether it is this machine, and whether it is on the internet."""

import ipaddress
from urllib.parse import SplitResult, urlsplit

DEFAULT_PORTS = {"http": 80, "https": 443}

Origin = tuple[str, str, int]  # scheme, host, port


def origin_of(parts: SplitResult) -> Origin:
    """Scheme, host and port of a URL. ValueError for an invalid port."""
    return parts.scheme, (parts.hostname or "").lower(), parts.port or DEFAULT_PORTS.get(parts.scheme, 0)


def host_of(url: str) -> str:
    """Host of a URL for messages, without paths and signatures."""
    return urlsplit(url).hostname or "the hub"


def may_see_token(origin: Origin) -> bool:
    """Whether a secret may be sent there: over https, or to this machine."""
    scheme, host, _ = origin
    return scheme == "https" or is_this_machine(host)


def is_this_machine(host: str) -> bool:
    """Whether a name or address is one of this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_public(address: str) -> bool:
    """Whether an IP address is on the internet, not in a private network, this machine or a cloud's metadata range."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped is not None:
        ip = ip.ipv4_mapped
    return ip.is_global and not ip.is_multicast
