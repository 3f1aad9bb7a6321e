"""Where peers are: what counts as one place, however many ports and addresses somebody there can choose from."""

import ipaddress
from urllib.parse import unquote

_SITE = 64
"""Bits of an IPv6 address that tell one customer from another; the rest is the customer's to choose."""


def place_of(peer: str) -> str:
    """The place of a peer that gRPC names: its address without the port; of an IPv6 address the network."""
    kind, _, rest = peer.partition(":")
    host = unquote(rest).rpartition(":")[0].strip("[]").partition("%")[0]
    if kind != "ipv6":
        return host or peer
    try:
        address = ipaddress.IPv6Address(host)
    except ValueError:
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((address, _SITE), strict=False))


def peer_at(address: str) -> str:
    """A peer as gRPC names it, from an address like `203.0.113.7:51234` or `[2001:db8::1]:51234`; raises ValueError."""
    host, _, port = address.rpartition(":")
    parsed = ipaddress.ip_address(host.strip("[]").partition("%")[0])
    number = int(port)
    return f"ipv4:{parsed}:{number}" if parsed.version == 4 else f"ipv6:[{parsed}]:{number}"  # noqa: PLR2004 - the versions of IP
