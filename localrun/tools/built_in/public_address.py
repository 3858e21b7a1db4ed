"""Public internet addresses: a name is resolved once, checked, and connected to at the checked address."""

import ipaddress
import socket
from collections.abc import Callable

from localrun.tools.running_call import RunningCall, ToolError

IsAllowed = Callable[[str], bool]
_CONNECT_SECONDS = 10.0
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


def is_public(address: str) -> bool:
    """Whether an address is on the internet, not of this machine or a private network."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        inner = found.ipv4_mapped or found.sixtofour or (found.teredo or (None, None))[1]
        if found in _NAT64:
            inner = ipaddress.IPv4Address(int(found) & 0xFFFF_FFFF)
        if inner is not None and not is_public(str(inner)):
            return False
    return found.is_global and not found.is_multicast


def connect(host: str, port: int, call: RunningCall, is_allowed: IsAllowed = is_public) -> socket.socket:
    """Connect to `host`. Raises ToolError, also where any of its addresses is not allowed."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError, ValueError) as error:
        raise ToolError(f"{host} is not found: {getattr(error, 'strerror', None) or error}") from None
    addresses = list(dict.fromkeys((family, str(address[0])) for family, _, _, _, address in found))
    for _, address in addresses:
        if not is_allowed(address):
            raise ToolError(f"{host} leads to {address}, which is not an address on the internet")
    failure = "no address"
    for _, address in addresses:
        call.check()
        try:
            return socket.create_connection((address, port), min(_CONNECT_SECONDS, call.seconds_left))
        except OSError as error:
            failure = error.strerror or str(error)
    raise ToolError(f"{host} cannot be reached: {failure}")
