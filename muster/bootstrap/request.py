"""What somebody wants of a node that is to be, and what its agent's configuration then says."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from muster.bootstrap.ssh.target import Target

DEFAULT_PORTS = (20000, 29999)
"""Leased to executions; those of the agent where nothing else is said."""
JOIN_TOKEN = "/etc/muster/join-token"  # noqa: S105 - where it is
CONFIG = "/etc/muster/agent.toml"

Setting: TypeAlias = "str | int | float | bool | tuple[str | int | float | bool, ...]"
"""A value in the agent's configuration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineRequest:
    """A node that is to be."""

    target: Target
    name: str | None = None
    """None: the first part of its host name."""
    address: str | None = None
    """An interface, a CIDR or an address at which other nodes reach it; None: as it reaches the coordinator."""
    ports: tuple[int, int] = DEFAULT_PORTS
    labels: Mapping[str, str] = field(default_factory=dict)
    """What it carries; `pool` is one of them."""
    settings: Mapping[str, Setting] = field(default_factory=dict)
    """What else its agent's configuration says, by the names of the agent's options."""


def agent_config(wish: MachineRequest, *, name: str, coordinator: str) -> str:
    """The file from which the agent of a node reads its settings; the same for the same wish."""
    settings: dict[str, Setting] = {"coordinator": coordinator, "name": name, "join-file": JOIN_TOKEN}
    if wish.address is not None:
        settings["address"] = wish.address
    if wish.ports != DEFAULT_PORTS:
        settings["ports"] = f"{wish.ports[0]}-{wish.ports[1]}"
    lines = [f"{key} = {_toml(value)}" for key, value in {**settings, **wish.settings}.items()]
    return "\n".join(("# Written by `muster nodes add`, which writes it anew each time.", *lines, ""))


def _toml(value: Setting) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    # Text of JSON is text of TOML, as are its numbers and truths.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
