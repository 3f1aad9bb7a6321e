"""Which jobs flow: small gangs of processes, containers or programs like torchrun, drawn from a seed."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from random import Random

from muster.domain.jobs.disconnect import DEFAULT_LOST_AFTER, SHORTEST_LOST_AFTER, OnDisconnect
from muster.domain.jobs.job import JobSpec, Mount, Packing, PullPolicy, Resources, Role, Timeouts
from muster.domain.jobs.restart import ExitRules, RestartPolicy, parse_exit_codes
from tests.e2e import images
from tests.e2e.chaos import spawner
from tests.e2e.chaos.user_code import SCRIPT

IMAGE = "muster/busybox:latest"
SYSTEM_PYTHON = Path("/usr/bin/python3")
PYTHON = SYSTEM_PYTHON if SYSTEM_PYTHON.exists() else images.INTERPRETER
"""The interpreter of a home directory is nothing for other users."""

SPAWNER = (str(PYTHON), "-I", "-S", "-c", Path(spawner.__file__).read_text())
WORKERS = 2
"""Processes that each execution starts in sessions of their own."""

FATAL = 42
"""An exit code that ends every job."""
RULES = ExitRules(fail=parse_exit_codes(str(FATAL)))


LENGTHS = (1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 90.0)
"""Seconds for which jobs run."""


class Fate(StrEnum):
    """What a client does with a job after its submit."""

    LEFT = "left alone"
    STOPPED = "stopped"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A job, and what its client does with it."""

    spec: JobSpec
    stamps: Path
    pause: float
    """Seconds until the next one."""
    fate: Fate
    after: float
    """Seconds from the submit to the stop or the removal."""


def drawn(chance: Random, directory: Path, mark: str, longest: float) -> Iterator[Order]:
    """Jobs without end, of `longest` seconds at most. `mark` is in the environment of all that they run."""
    number = 0
    while True:
        number += 1
        yield _order(chance, f"chaos-{number}", directory, mark, longest)


def gang(chance: Random, number: int, directory: Path, mark: str, seconds: float) -> Order:
    """A worker on each of three nodes, for so long that a set piece hits them; it may start again."""
    name = f"chaos-gang-{number}"
    steps, burst, pause = int(seconds), 5, 1.0
    env = _env(directory / name, mark, (steps, burst, pause))
    spec = JobSpec(
        name=name,
        roles=_roles(chance, 3, env, directory, gpus=0),
        priority=1,  # with what they need, which everybody has, they wait for nobody
        max_per_node=1,
        timeouts=Timeouts(check_in=timedelta(seconds=120), grace=timedelta(seconds=2), lost_after=SHORTEST_LOST_AFTER),
        restarts=RestartPolicy(limit=2, infrastructure=10, backoff=timedelta(seconds=1)),
        on_disconnect=OnDisconnect.STOP if number % 3 == 0 else OnDisconnect.KEEP,
    )
    return Order(spec=spec, stamps=directory / name, pause=0.0, fate=Fate.LEFT, after=0.0)


def _order(chance: Random, name: str, directory: Path, mark: str, longest: float) -> Order:
    stamps = directory / name
    spawns = chance.random() < 0.3
    steps, burst, pause = _length(chance, longest, 5.0 if spawns else 1.0)
    bad = chance.random() < 0.35
    size = chance.randint(1, 4)
    env = _env(stamps, mark, (steps, burst, pause)) | {
        "CHAOS_DEAF": str(int(chance.random() < 0.15)),
        "CHAOS_BAD_RANK": str(chance.randrange(size) if bad else -1),
        "CHAOS_BAD_ATTEMPTS": str(chance.choice([1, 1, 2, 99])),
        "CHAOS_BAD_CODE": str(chance.choice([1, 3, 17, 137, FATAL])),
    }
    spec = JobSpec(
        name=name,
        roles=_spawners(size, env) if spawns else _roles(chance, size, env, directory, gpus=chance.randint(0, 2)),
        packing=chance.choice(list(Packing)),
        timeouts=Timeouts(
            check_in=timedelta(seconds=chance.choice([30, 60, 120])),
            grace=timedelta(seconds=chance.choice([1, 2])),
            lost_after=chance.choice([SHORTEST_LOST_AFTER, DEFAULT_LOST_AFTER]),
        ),
        restarts=RestartPolicy(
            limit=chance.choice([0, 1, 2]),
            infrastructure=chance.choice([0, 3, 10, 10]),
            backoff=timedelta(seconds=1),
        ),
        on_disconnect=chance.choice(list(OnDisconnect)),
    )
    fate = chance.choices(list(Fate), (70, 15, 15))[0]
    return Order(spec=spec, stamps=stamps, pause=chance.uniform(0.5, 4.0), fate=fate, after=chance.expovariate(1 / 5.0))


def _env(stamps: Path, mark: str, length: tuple[int, int, float]) -> dict[str, str]:
    """What user code goes by; it ends well."""
    steps, burst, pause = length
    return {
        "CHAOS_MARK": mark,
        "CHAOS_STAMPS": str(stamps),
        "CHAOS_STEPS": str(steps * burst),
        "CHAOS_BURST": str(burst),
        "CHAOS_PAUSE": f"{pause:.2f}",
        "CHAOS_DEAF": "0",
        "CHAOS_BAD_RANK": "-1",
        "CHAOS_BAD_ATTEMPTS": "0",
        "CHAOS_BAD_CODE": "0",
    }


def _length(chance: Random, longest: float, shortest: float) -> tuple[int, int, float]:
    """Steps, lines a step, seconds between steps: some take a second, others a minute and a half."""
    seconds = chance.choice([each for each in LENGTHS if each <= longest and each >= shortest] or [shortest])
    pause = chance.choice([0.1, 0.2, 0.4])
    return int(seconds / pause), chance.choice([1, 5, 20]), pause


def _roles(chance: Random, size: int, env: dict[str, str], directory: Path, *, gpus: int) -> tuple[Role, ...]:
    """All containers, or all processes, or a gang of both."""
    containers = chance.choice([0, size, size, chance.randint(0, size)])
    resources = Resources(gpus=gpus, cpu_millis=50)
    command = ("/bin/sh", "-c", SCRIPT)
    roles: list[Role] = []
    if containers:
        mount = Mount(source=str(directory), target=str(directory), read_only=False)
        roles.append(
            Role(
                name="boxed",
                count=containers,
                image=IMAGE,
                pull=PullPolicy.NEVER,
                command=command,
                env=env,
                resources=resources,
                mounts=(mount,),
                exit_codes=RULES,
            )
        )
    if containers < size:
        roles.append(
            Role(name="plain", count=size - containers, command=command, env=env, resources=resources, exit_codes=RULES)
        )
    return tuple(roles)


def _spawners(size: int, env: dict[str, str]) -> tuple[Role, ...]:
    """Processes that start workers in sessions of their own."""
    resources = Resources(gpus=1, cpu_millis=50)
    env = {**env, "CHAOS_WORKERS": str(WORKERS)}
    return (Role(name="spawner", count=size, command=SPAWNER, env=env, resources=resources),)
