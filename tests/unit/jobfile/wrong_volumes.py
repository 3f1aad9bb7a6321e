"""Jobs with something wrong in their volumes, each with the beginning of the sentence that says what."""

from collections.abc import Sequence
from typing import Any

from muster.domain.data.volume import MAX_VOLUMES, Volume, VolumeKeep
from muster.domain.jobs.job import JobSpec, Mount, Resources
from muster.domain.jobs.secret_use import SecretUse
from tests.unit.jobfile.wrong_jobs import CONTAINER, PROCESS, role, spoken


def volumes(*volumes: Volume, spec: JobSpec = CONTAINER, **changes: Any) -> JobSpec:
    return role(spec, volumes=volumes, **changes)


WRONG_VOLUMES: Sequence[tuple[JobSpec, str]] = (
    (
        volumes(*(Volume(name=f"v{number:02}", size=2**30) for number in range(MAX_VOLUMES + 1))),
        "roles[0].volumes: has 17 volumes; 16 are the most",
    ),
    (volumes(Volume(name="A", size=2**30)), "roles[0].volumes.A: must be 1 to 63 lower-case letters"),
    (volumes(Volume(name="a")), "roles[0].volumes.a: needs exactly one of size and tmpfs"),
    (volumes(Volume(name="a", size=2**30, tmpfs=2**30)), "roles[0].volumes.a: needs exactly one of size and tmpfs"),
    (volumes(Volume(name="a", size=500)), "roles[0].volumes.a.size: is 500 bytes; the least is 1Mi"),
    (volumes(Volume(name="a", tmpfs=2**61)), "roles[0].volumes.a.tmpfs: is more than"),
    (
        volumes(Volume(name="a", tmpfs=2**30, keep=VolumeKeep.NODE)),
        "roles[0].volumes.a.keep: needs size: what lies in memory (tmpfs) goes with the execution",
    ),
    (volumes(Volume(name="a", size=2**30, writable=False)), "roles[0].volumes.a.writable: needs keep: node"),
    (
        volumes(Volume(name="a", size=2**30, keep=VolumeKeep.NODE, writable=False), spec=PROCESS),
        "roles[0].volumes.a.writable: needs an image: nothing keeps a plain process from writing",
    ),
    (volumes(Volume(name="a", path="b", size=2**30)), "roles[0].volumes.a.path: must be an absolute path"),
    (volumes(Volume(name="a", path="/b/../c", size=2**30)), "roles[0].volumes.a.path: must be an absolute path"),
    (volumes(Volume(name="a", path="/", size=2**30)), "roles[0].volumes.a.path: cannot cover the whole container"),
    (volumes(Volume(name="a", path="/muster/x", size=2**30)), "roles[0].volumes.a.path: cannot cover /muster"),
    (volumes(Volume(name="a", path="/proc/x", size=2**30)), 'roles[0].volumes.a.path: "/proc/x" is the system\'s own'),
    (
        volumes(Volume(name="a", path="/b", size=2**30), spec=PROCESS),
        "roles[0].volumes.a.path: needs an image: a plain process finds the volume by the variable MUSTER_VOLUME_A",
    ),
    (volumes(Volume(name="a", tmpfs=2**30), spec=PROCESS), "roles[0].volumes.a.tmpfs: needs an image"),
    (
        volumes(Volume(name="a", path="/b", size=2**30), Volume(name="c", path="/b/c", size=2**30)),
        "roles[0].volumes.c: lies at /b/c, where the volume a is",
    ),
    (
        volumes(Volume(name="a", path="/b", size=2**30), mounts=(Mount(source="/a", target="/b/c"),)),
        "roles[0].volumes.a: lies at /b, where the mount at /b/c is",
    ),
    (
        volumes(Volume(name="a", path="/s", size=2**30), secrets=(SecretUse(secret="x", directory="/s/x"),)),
        "roles[0].volumes.a: lies at /s, where the secret x is",
    ),
    (
        volumes(Volume(name="a", tmpfs=2**30), resources=Resources(memory=2**30)),
        "roles[0].volumes.a.tmpfs: makes 1Gi of volumes in memory, and the execution may use 1Gi in all",
    ),
    (
        spoken("valohai", volumes(Volume(name="a", path="/valohai/inputs", size=2**30))),
        "roles[0].volumes.a.path: covers /valohai/inputs, which the dialect valohai fills itself",
    ),
)
