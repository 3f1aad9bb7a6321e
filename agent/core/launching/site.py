"""Facts about an execution and its node that user code is told in its variables."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkInterface:
    """The network interface of a node that has its address."""

    name: str
    subnet: str | None = None
    """The addresses that are reached over it, in CIDR form; None where the node does not know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchSite:
    """The directories of an execution as user code sees them, and the network of its node."""

    config: str
    outputs: str
    status: str = ""
    """Where user code tells its agent how far it is; empty where there is nothing of that."""
    inputs: str = ""
    """The directory of inputs, for jobs that have some and for dialects that have one."""
    code: str = ""
    """The copy of the code that the job brings along; empty where it brings none."""
    commit: str = ""
    """The commit of a repository that the code is; empty where it comes from none."""
    checkpoint: str = ""
    """Where it saves for the next attempt; empty where its job stores nothing of that."""
    workdir: str = ""
    """Empty where only the image knows it."""
    programs: str = ""
    """The directory of the programs that start commands in other executions; empty where there are none."""
    inside: str = ""
    """The companion's program, which is also what executions run that only wait; empty where none is brought."""
    door: str = ""
    """The socket to which these programs come; empty where there is none."""
    volumes: Mapping[str, str] = field(default_factory=dict)
    """The directory of each volume by the variable that leads to it."""
    interface: NetworkInterface | None = None
    """None where the node does not know which interface has its address."""
