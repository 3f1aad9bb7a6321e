"""Files that list the nodes of a fleet: what is read, and every problem of a file at once and where it is.

coordinator: gpu.example.org:7460
defaults: {user: ops, key: ~/.ssh/fleet, jump: bastion.example.org, pool: a100}
nodes:
  - host: 10.0.0.11
  - host: 10.0.0.12
    name: big
    labels: {rack: a7}
    agent: {mount-root: [/data]}
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from muster.bootstrap.request import DEFAULT_PORTS, MachineRequest, Setting
from muster.bootstrap.ssh.target import Target, parse_jumps, parse_target
from muster.domain.errors import InvalidJobError
from muster.domain.quoting import nearest
from muster.jobfile.document import OUTSIDE, START, Listing, Node, Place, Scalar, Table, UnreadableError, read
from muster.jobfile.errors import JobFileError, Problem

_LAST_PORT = 65535
_RESERVED = ("config", "join", "join-file", "state", "token-file", "name", "address", "ports", "coordinator", "label")
"""Options of the agent that are said in another way, or are not to be said."""


class InventoryError(JobFileError):
    """An inventory that cannot be used; `problems` has all that is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineInventory:
    """What a file says."""

    wishes: tuple[MachineRequest, ...]
    coordinator: str | None = None
    """Where nodes reach the coordinator; None: where we do."""


def read_inventory(text: str, source: str) -> MachineInventory:
    """The nodes that a file lists; raises InventoryError with all its problems."""
    try:
        document = read(text)
    except UnreadableError as error:
        raise InventoryError(source, [_problem(error.at, "", error.message)], text) from None
    reader = _Reader()
    for key in document.repeated:
        reader.complain(key.at, ".".join(map(str, key.path)), f"stands here a second time (first: {key.first.line})")
    inventory = reader.inventory(document.root)
    if reader.problems:
        raise InventoryError(source, reader.problems, text)
    return inventory


class _Reader:
    """Walks over the tree and notes what is wrong on the way."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def complain(self, at: Place, field: str, message: str, suggestion: str | None = None) -> None:
        self.problems.append(_problem(at, field, message, suggestion))

    def inventory(self, root: Node | None) -> MachineInventory:
        table = self._table(root, "", START, ("coordinator", "defaults", "nodes"))
        defaults = self._keys(table.entries.get("defaults"), "defaults", _at(table, "defaults"), _DEFAULTS)
        listed = table.entries.get("nodes")
        wishes: list[MachineRequest] = []
        if not isinstance(listed, Listing) or not listed.items:
            self.complain(_at(table, "nodes"), "nodes", "must be a list of nodes, each with a host")
        else:
            for number, node in enumerate(listed.items):
                wishes += self._wish(node, f"nodes[{number}]", defaults)
        self._refuse_doubles(wishes, listed)
        said = self._keys(_only(table, "coordinator"), "", START, {"coordinator": _address})
        return MachineInventory(wishes=tuple(wishes), coordinator=said.get("coordinator"))

    def _wish(self, node: Node, field: str, defaults: Mapping[str, Any]) -> Iterator[MachineRequest]:
        own = self._keys(node, field, node.at, _KEYS)
        if "host" not in own:
            if isinstance(node, Table) and "host" not in node.entries:
                self.complain(node.at, field, "has no host")
            return
        said = {**defaults, **own}
        target: Target = own["host"]
        yield MachineRequest(
            target=replace(
                target,
                user=target.user or said.get("user"),
                port=target.port or said.get("port"),
                key=said.get("key"),
                jumps=said.get("jump"),
            ),
            name=said.get("name"),
            address=said.get("address"),
            ports=said.get("ports", DEFAULT_PORTS),
            labels={
                **defaults.get("labels", {}),
                **own.get("labels", {}),
                **({"pool": said["pool"]} if "pool" in said else {}),
            },
            settings={**defaults.get("agent", {}), **own.get("agent", {})},
        )

    def _refuse_doubles(self, wishes: list[MachineRequest], listed: Node | None) -> None:
        seen: set[str] = set()
        for number, wish in enumerate(wishes):
            for word in filter(None, (str(wish.target), wish.name and f"the name {wish.name}")):
                if word in seen:
                    at = listed.items[number].at if isinstance(listed, Listing) else START
                    self.complain(at, f"nodes[{number}]", f"{word} is in the list twice")
                seen.add(word)

    def _keys(self, node: Node | None, field: str, at: Place, known: Mapping[str, "_Take"]) -> dict[str, Any]:
        """The values of a map, each as its key takes it; those that are wrong are noted and left out."""
        if node is None:
            return {}
        table = self._table(node, field, at, tuple(known))
        values: dict[str, Any] = {}
        for key, value in table.entries.items():
            if key in known:
                try:
                    values[key] = known[key](value)
                except InvalidJobError as error:
                    place = value.at if isinstance(value, Scalar) else _at(table, key)
                    self.complain(place, f"{field}.{key}".removeprefix("."), str(error))
        return values

    def _table(self, node: Node | None, field: str, at: Place, known: tuple[str, ...]) -> Table:
        if not isinstance(node, Table):
            self.complain(at, field, f"must be a map with keys such as {' and '.join(known[:2])}")
            return Table()
        for key in node.entries:
            if key not in known:
                self.complain(_at(node, key), f"{field}.{key}".removeprefix("."), "unknown key", _nearest(key, known))
        return node


_Take = Callable[[Node], Any]


def _text(node: Node) -> str:
    if not isinstance(node, Scalar) or not node.text.strip():
        raise InvalidJobError("must be a single value")
    return node.text


def _host(node: Node) -> Target:
    return parse_target(_text(node))


def _port(node: Node) -> int:
    text = _text(node)
    if not text.isdecimal() or not 1 <= int(text) <= _LAST_PORT:
        raise InvalidJobError(f"must be a port from 1 to {_LAST_PORT}, not {text!r}")
    return int(text)


def parse_ports(text: str) -> tuple[int, int]:
    """`FIRST-LAST`; raises InvalidJobError."""
    first, dash, last = text.partition("-")
    if not (dash and first.isdecimal() and last.isdecimal() and 1 <= int(first) <= int(last) <= _LAST_PORT):
        raise InvalidJobError(f"must be a range of ports like 20000-29999, not {text!r}")
    return int(first), int(last)


def parse_label(text: str) -> tuple[str, str]:
    """`KEY=VALUE`; raises InvalidJobError."""
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise InvalidJobError(f"{text!r} is no label like rack=a7")
    return key, value


def _ports(node: Node) -> tuple[int, int]:
    return parse_ports(_text(node))


def _jump(node: Node) -> tuple[Target, ...]:
    items = node.items if isinstance(node, Listing) else (node,)
    if isinstance(node, Scalar) and node.text in {"", "none", "null"}:
        return ()
    return tuple(jump for item in items for jump in parse_jumps(_text(item)))


def _key(node: Node) -> Path:
    return Path(_text(node)).expanduser()


def _address(node: Node) -> str:
    text = _text(node)
    if not re.fullmatch(r"[^\s:/]+:\d+|\[[^\]\s]+\]:\d+", text):
        raise InvalidJobError(f"must be HOST:PORT, not {text!r}")
    return text


def _labels(node: Node) -> dict[str, str]:
    if not isinstance(node, Table) or not all(isinstance(value, Scalar) for value in node.entries.values()):
        raise InvalidJobError("must be a map of labels, like {rack: a7}")
    return {key: value.text for key, value in node.entries.items() if isinstance(value, Scalar)}


def _settings(node: Node) -> dict[str, Setting]:
    if not isinstance(node, Table):
        raise InvalidJobError("must be a map of the agent's options, like {processes: true}")
    for key in node.entries:
        if key in _RESERVED:
            raise InvalidJobError(f"cannot hold {key!r}; that follows from the rest of the inventory")
    return {key: _setting(value) for key, value in node.entries.items()}


def _setting(node: Node) -> Setting:
    if isinstance(node, Listing):
        return tuple(_atom(item) for item in node.items)
    return _atom(node)


def _atom(node: Node) -> str | int | float | bool:
    if not isinstance(node, Scalar) or node.value is None:
        raise InvalidJobError("must hold single values and lists of them")
    return node.value


_DEFAULTS: Mapping[str, _Take] = {
    "user": _text,
    "port": _port,
    "key": _key,
    "jump": _jump,
    "pool": _text,
    "labels": _labels,
    "address": _text,
    "ports": _ports,
    "agent": _settings,
}
_KEYS: Mapping[str, _Take] = {"host": _host, "name": _text, **_DEFAULTS}


def _nearest(word: str, known: tuple[str, ...]) -> str | None:
    foreign = {"hostname": "host", "ansible_host": "host", "ssh_key": "key", "identity_file": "key", "hosts": "nodes"}
    meant = foreign.get(word.lower(), word.lower())
    return meant if meant in known else nearest(meant, known)


def _only(table: Table, key: str) -> Table | None:
    return Table(entries={key: table.entries[key]}, keys=table.keys) if key in table.entries else None


def _at(table: Table, key: str) -> Place:
    return table.keys.get(key, START if table.at == OUTSIDE else table.at)


def _problem(at: Place, field: str, message: str, suggestion: str | None = None) -> Problem:
    return Problem(line=at.line, column=at.column, field=field, message=message, suggestion=suggestion)
