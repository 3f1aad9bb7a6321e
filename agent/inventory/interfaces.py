"""The network interfaces that are up, with their addresses and networks, as the kernel tells them.

The formats are those of netlink(7) and rtnetlink(7).
"""

import ipaddress
import socket
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import TypeAlias

InterfaceAddress: TypeAlias = ipaddress.IPv4Interface | ipaddress.IPv6Interface
"""An address of an interface, with the network in which it is."""

KERNEL_ANSWERS_WITHIN = 5.0
"""Seconds; it takes well below a millisecond."""

_ANSWER = 64 * 1024
"""Bytes of one piece of an answer; the kernel sends half of that at the most."""
_HEADER, _LINK, _ADDRESS, _ATTRIBUTE = map(struct.Struct, ("=IHHII", "=BxHiII", "=BBBBI", "=HH"))
_REQUEST_ALL = 0x301
"""NLM_F_REQUEST with NLM_F_DUMP."""
_ERROR, _DONE = 2, 3
_NEW_LINK, _GET_LINK, _NEW_ADDRESS, _GET_ADDRESS = 16, 18, 20, 22
_RUNNING = 0x40
"""IFF_RUNNING: it is up, and has its cable or whatever else it needs."""
_LINK_NAME, _PEER_OR_OWN, _OWN = 3, 1, 2
_VALUE_OF_ATTRIBUTE = 0x3FFF
"""Bits of an attribute's type that say which one it is."""


def running_interfaces() -> Mapping[str, Sequence[InterfaceAddress]]:
    """The interfaces that are up, by name, and their addresses, those of version 4 first. Blocks. Raises OSError."""
    with closing(socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)) as kernel:
        kernel.settimeout(KERNEL_ANSWERS_WITHIN)
        links = b"".join(_dump(kernel, _GET_LINK, bytes(_LINK.size)))
        addresses = b"".join(_dump(kernel, _GET_ADDRESS, bytes(_ADDRESS.size)))
    return interfaces_told(links, addresses)


def interfaces_told(links: bytes, addresses: bytes) -> Mapping[str, Sequence[InterfaceAddress]]:
    """What two answers of the kernel say: all links, and all addresses."""
    names = dict(_names_of_running(links))
    found: dict[str, list[InterfaceAddress]] = {name: [] for name in sorted(names.values())}
    for index, address in _addresses(addresses):
        if index in names:
            found[names[index]].append(address)
    return {name: sorted(own, key=lambda each: each.version) for name, own in found.items()}


def _dump(kernel: socket.socket, what: int, asked: bytes) -> Iterator[bytes]:
    """The pieces of the kernel's answer to one question."""
    kernel.send(_HEADER.pack(_HEADER.size + len(asked), what, _REQUEST_ALL, what, 0) + asked)
    while True:
        piece = kernel.recv(_ANSWER)
        yield piece
        kinds = dict(_messages(piece))
        if _ERROR in kinds:
            number = -struct.unpack_from("=i", kinds[_ERROR])[0]
            raise OSError(number, "the kernel does not tell the network interfaces")
        if _DONE in kinds:
            return


def _messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Kind and body of each message."""
    at = 0
    while at + _HEADER.size <= len(data):
        length, kind, *_ = _HEADER.unpack_from(data, at)
        if length < _HEADER.size:
            return
        yield kind, data[at + _HEADER.size : at + length]
        at += _aligned(length)


def _attributes(data: bytes) -> Mapping[int, bytes]:
    found, at = {}, 0
    while at + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, at)
        if length < _ATTRIBUTE.size:
            break
        found[kind & _VALUE_OF_ATTRIBUTE] = data[at + _ATTRIBUTE.size : at + length]
        at += _aligned(length)
    return found


def _aligned(length: int) -> int:
    return (length + 3) & ~3


def _names_of_running(links: bytes) -> Iterator[tuple[int, str]]:
    for kind, body in _messages(links):
        if kind == _NEW_LINK:
            _, _, index, flags, _ = _LINK.unpack_from(body)
            if flags & _RUNNING:
                yield index, _attributes(body[_LINK.size :])[_LINK_NAME].rstrip(b"\0").decode(errors="replace")


def _addresses(addresses: bytes) -> Iterator[tuple[int, InterfaceAddress]]:
    for kind, body in _messages(addresses):
        if kind == _NEW_ADDRESS:
            family, bits, _, _, index = _ADDRESS.unpack_from(body)
            attributes = _attributes(body[_ADDRESS.size :])
            own = attributes.get(_OWN) or attributes.get(_PEER_OR_OWN)
            if own and family in {socket.AF_INET, socket.AF_INET6}:
                yield index, ipaddress.ip_interface((own, bits))
