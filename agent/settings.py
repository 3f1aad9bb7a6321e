"""The agent's settings: parsed once in main, passed on."""

import argparse
import platform
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from muster.client.endpoint import coordinator_address
from muster.daemon.journal import add_format_option
from muster.daemon.options_file import parse_with_file
from muster.domain.fleet.user import NOBODY, JobUser, numeric
from muster.domain.quantity import MEMORY_FORM, MEMORY_UNITS

AGENT_PORTS = (20000, 29999)
"""Outside Linux' range of ephemeral ports, so that nothing else on the machine picks from there by itself."""
DEFAULT_LOG_LIMIT = 1024
HIGHEST_PORT = 65535
MOST_KEPT_FREE = 90
_NO_JOB_USER = "none"
_NO_PROCESS_USERS = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """Everything that can be chosen about an agent."""

    coordinator: str
    state: Path
    """Directory of executions, outputs and the agent's identity."""
    name: str
    address: str | None = None
    """Where peers reach executions: an address, an interface or a CIDR; None: as the route to the coordinator says."""
    join_token: str | None = field(default=None, repr=False)
    """The token with which it joins the fleet, if it has not joined yet."""
    token_file: Path | None = None
    """Where the token of `muster up` is; None: the agent shows the certificate of its node."""
    ports: tuple[int, int] = AGENT_PORTS
    gpu_provider: str = "nvml"
    docker_socket: Path | None = None
    """None: no containers."""
    processes: bool = False
    """Whether jobs without an image may run as plain processes."""
    attach: bool = True
    """Whether people and programs may attach to what runs here, where the project lets them."""
    mount_roots: tuple[Path, ...] = ()
    """Directories below which jobs may mount."""
    volumes_dir: Path | None = None
    """Where volumes of jobs lie; None: in the directory of the agent's state."""
    kept_size: int | None = None
    """Bytes of volumes that stay on the node; None: half of the file system."""
    cache_dir: Path | None = None
    """Where inputs of jobs are kept; None: in the directory of the agent's state."""
    cache_size: int | None = None
    """Bytes of inputs that are kept at most; None: half of the file system."""
    keep_free: int = 10
    """Percent of a file system that inputs and images that were pulled leave free."""
    peers: bool = True
    """Whether it gives code and inputs to other nodes and takes them from there."""
    peer_images: bool = True
    """Whether its container engine pulls images through the agent, which keeps their layers."""
    peer_rate: int | None = None
    """Bytes a second that it gives to other nodes; None: as much as they take."""
    secrets_dir: Path | None = None
    """Directory in memory where executions find their secrets; None: a usual one."""
    job_user: JobUser | None = NOBODY
    """The user of roles that name nobody; None: the user that the image names, and the agent's own for processes."""
    process_users: Sequence[int] = ()
    """Numbers of users of which each plain process has one for itself; none: all run as the user for jobs."""
    labels: Mapping[str, str] = field(default_factory=dict)
    cpus: int | None = None
    memory: int | None = None
    local_nodes: int = 0
    """So many nodes in this one program, each with a loopback address of its own; 0: one node, this machine."""
    whole_machine: bool = False
    """Whether each local node offers all CPUs and memory of this machine; otherwise they are shared out."""
    stop_on_exit: bool = False
    """Whether executions are stopped when the agent ends in an orderly way."""
    log_limit: int = DEFAULT_LOG_LIMIT
    """MiB that are kept of what one execution prints."""
    ready_file: Path | None = None
    log_level: str = "info"
    log_format: str = "text"
    """Form of each line of the journal: `text` or `json`."""


def parse(arguments: Sequence[str], environ: Mapping[str, str]) -> AgentSettings:
    """Settings from the command line, with defaults from the environment; exits with a message for bad ones."""
    parser = _parser(environ)
    given = parse_with_file(parser, arguments)
    if given.local_nodes and given.token_file is None:
        parser.error("--local-nodes needs the --token-file of `muster up`: several nodes cannot share a certificate")
    return AgentSettings(
        coordinator=given.coordinator,
        state=given.state,
        name=given.name,
        address=given.address,
        join_token=given.join or _join_token(parser, given) or environ.get("MUSTER_JOIN_TOKEN") or None,
        token_file=given.token_file,
        ports=given.ports,
        gpu_provider=given.gpu_provider,
        docker_socket=None if given.no_docker else given.docker_socket,
        processes=given.processes if given.processes is not None else bool(given.local_nodes),
        attach=not given.no_attach,
        mount_roots=tuple(given.mount_root),
        volumes_dir=given.volumes_dir,
        kept_size=given.kept_size,
        cache_dir=given.cache_dir,
        cache_size=given.cache_size,
        keep_free=given.keep_free,
        peers=not given.no_peers,
        peer_images=not given.no_peer_images,
        peer_rate=given.peer_rate,
        secrets_dir=given.secrets_dir,
        job_user=_job_user_of(given.job_user, local=bool(given.local_nodes)),
        process_users=_users_of(parser, given.process_users),
        labels=dict(given.label),
        cpus=given.cpus,
        memory=given.memory,
        local_nodes=given.local_nodes,
        whole_machine=given.whole_machine,
        log_limit=given.log_limit,
        stop_on_exit=given.stop_on_exit or bool(given.local_nodes),
        ready_file=given.ready_file,
        log_level=given.log_level,
        log_format=given.log_format,
    )


def _parser(environ: Mapping[str, str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="muster-agent", description="Reports what this machine has and runs what the coordinator places on it."
    )
    add = parser.add_argument
    state = Path(environ.get("MUSTER_STATE", "/var/lib/muster/agent"))
    add("--coordinator", default=coordinator_address(environ), metavar="HOST:PORT", help="(%(default)s)")
    add("--state", type=Path, default=state, help="directory of executions, outputs and identity (%(default)s)")
    add("--name", default=platform.node().split(".")[0], help="the node's name, unique in the fleet (%(default)s)")
    add("--address", help="where peers reach executions: an address, an interface or a CIDR (by default: as routed)")
    add("--join-file", type=Path, metavar="FILE", help="join the fleet with the token in this file; `-` for stdin")
    add(
        "--join", metavar="TOKEN", help="the same; who lists processes sees it, so rather the file or MUSTER_JOIN_TOKEN"
    )
    add("--token-file", type=Path, help="be an agent of `muster up`, whose token is in this file")
    add("--ports", type=_range, default=AGENT_PORTS, metavar="FIRST-LAST", help="leased to executions (20000-29999)")
    add("--gpu-provider", default="nvml", help="`nvml`, or simulated GPUs like `fake:8xH100` (%(default)s)")
    add("--docker-socket", type=Path, default=Path("/var/run/docker.sock"), help="(%(default)s)")
    add("--no-docker", action="store_true", help="run no containers")
    add(
        "--processes",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="run jobs without an image as plain processes (by default only for local nodes)",
    )
    add("--no-attach", action="store_true", help="let nobody attach to what runs here, whatever its project says")
    add("--mount-root", type=Path, action="append", default=[], help="jobs may mount what is below it; may be repeated")
    add(
        "--job-user",
        type=_job_user,
        metavar="UID:GID",
        help="runs user code whose role names no user, processes too where the agent may switch users (65534:65534); "
        f"`{_NO_JOB_USER}`: containers as their images say, processes as the agent (so it is for local nodes)",
    )
    add("--volumes-dir", type=Path, metavar="DIR", help="where volumes of jobs lie (`volumes` in the state directory)")
    add("--kept-size", type=_memory, metavar="SIZE", help="volumes that stay: 500Gi (half of the file system)")
    add("--cache-dir", type=Path, metavar="DIR", help="where inputs of jobs are kept (`cache` in the state directory)")
    add("--cache-size", type=_memory, metavar="SIZE", help="inputs that are kept: 500Gi (half of the file system)")
    spare = "of the disks that inputs and pulled images leave free, as far as nothing uses them (%(default)s)"
    add("--keep-free", type=_percent, default=10, metavar="PERCENT", help=spare)
    add("--no-peers", action="store_true", help="share no code and inputs with other nodes of the same attempt")
    add("--no-peer-images", action="store_true", help="let the container engine pull images by itself")
    add("--peer-rate", type=_memory, metavar="SIZE", help="given to other nodes each second: 100Mi (no limit)")
    in_memory = "where executions find their secrets; in memory (/run/muster/secrets, or what the user has)"
    add("--secrets-dir", type=Path, metavar="DIR", help=in_memory)
    add(
        "--process-users",
        type=_process_users,
        default=environ.get("MUSTER_PROCESS_USERS", _NO_PROCESS_USERS),
        metavar="FIRST-LAST",
        help="give each plain process a user of its own by number; `none`: all run as the user for jobs (%(default)s)",
    )
    add(
        "--label",
        type=_label,
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="label local/KEY; may be repeated",
    )
    add("--cpus", type=_positive, metavar="COUNT", help="CPUs that the node offers (all of the machine)")
    add("--memory", type=_memory, metavar="SIZE", help="memory that the node offers: 16Gi, 500M, or bytes (all of it)")
    add("--local-nodes", type=int, default=0, metavar="N", help="be N nodes on this machine, for trying things out")
    whole = "let each local node offer all CPUs and memory of this machine, instead of its share"
    add("--whole-machine", action="store_true", help=whole)
    add("--stop-on-exit", action="store_true", help="stop executions when the agent ends in an orderly way")
    kept = "kept of what one execution prints (%(default)s)"
    add("--log-limit", type=_positive, default=DEFAULT_LOG_LIMIT, metavar="MIB", help=kept)
    add("--ready-file", type=Path, help="written once all nodes run")
    add("--log-level", choices=["debug", "info", "warning", "error"], default="info")
    add_format_option(parser, environ)
    return parser


def _join_token(parser: argparse.ArgumentParser, given: argparse.Namespace) -> str | None:
    file: Path | None = given.join_file
    if file is None:
        return None
    try:
        return (sys.stdin.readline() if str(file) == "-" else file.read_text()).strip()
    except OSError as error:
        if has_joined(given.state):
            return None  # who has joined needs no token, and whoever installed it may have taken it away
        parser.error(f"cannot read the join token in {file}: {error.strerror}")


def has_joined(state: Path) -> bool:
    """Whether a node with this state directory has joined a fleet before."""
    return (state / "trust" / "node.json").exists()


def _range(text: str) -> tuple[int, int]:
    first, _, last = text.partition("-")
    if not (first.isdecimal() and last.isdecimal() and 1 <= int(first) <= int(last) <= HIGHEST_PORT):
        raise argparse.ArgumentTypeError(f"{text!r} is no range like 20000-29999")
    return int(first), int(last)


def _job_user(text: str) -> JobUser | str:
    user = numeric(text)
    if text == _NO_JOB_USER:
        return text
    if user is None or user.is_root:
        raise argparse.ArgumentTypeError(f"{text!r} is no user like 65534:65534, by number and not root's")
    return user


def _process_users(text: str) -> Sequence[int]:
    if text == _NO_PROCESS_USERS:
        return ()
    first, _, last = text.partition("-")
    users = (numeric(first), numeric(last))
    if users[0] is None or users[1] is None or not 0 < users[0].uid <= users[1].uid:
        raise argparse.ArgumentTypeError(f"{text!r} is no range of users like 1879048192-1879048447, without root")
    return range(users[0].uid, users[1].uid + 1)


def _users_of(parser: argparse.ArgumentParser, given: Sequence[int] | str) -> Sequence[int]:
    """Defaults from the environment are text as long as nothing outweighs them."""
    try:
        return _process_users(given) if isinstance(given, str) else given
    except argparse.ArgumentTypeError as error:
        parser.error(f"MUSTER_PROCESS_USERS: {error}")


def _job_user_of(given: JobUser | str | None, *, local: bool) -> JobUser | None:
    """Local nodes belong to the user who started them, and so does what runs there."""
    if given is None:
        return None if local else NOBODY
    return given if isinstance(given, JobUser) else None


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 on")
    return int(text)


def _percent(text: str) -> int:
    if not text.isdecimal() or int(text) > MOST_KEPT_FREE:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 0 to {MOST_KEPT_FREE}")
    return int(text)


def _memory(text: str) -> int:
    """Bytes, written as in a job file."""
    found = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)([A-Za-z]*)", text)
    size = 0 if found is None else int(float(found[1]) * MEMORY_UNITS.get(found[2], 0))
    if size < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not {MEMORY_FORM}")
    return size


def _label(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is no label like rack=a7")
    return key, value
