"""What rank 0 starts its processes with finds the hosts of all executions, and the way to them."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.launching.frameworks.horovod import horovod
from agent.core.launching.frameworks.mpi import mpi
from agent.core.launching.frameworks.surroundings import Surroundings
from muster.domain.gangs.plan import Assignment, Launch
from muster.domain.jobs.frameworks.framework import Framework, FrameworkName, LaunchPlace
from tests.unit.agent.core.gang_builders import SITE, gang, launched, roster_of, workers

SIZES = [1, 2, 3, 12]
AT = replace(SITE, programs="/muster/bin")


def brought(orders: Sequence[Assignment]) -> list[Surroundings]:
    """What MPI brings to each of these executions."""
    roster = roster_of(orders)
    return [mpi(order, roster, AT) for order in orders]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("attempt", [1, 2])
def test_every_mpi_is_told_hosts_and_the_way_to_them(size: int, attempt: int) -> None:
    remote, hosts = "/muster/bin/muster-rsh", "/muster/config/hostfile"
    for each in brought(gang(workers(size), attempt=attempt)):
        assert each.env == {
            "OMPI_MCA_plm_rsh_agent": remote,
            "OMPI_MCA_orte_default_hostfile": hosts,
            "PRTE_MCA_plm_ssh_agent": remote,
            "PRTE_MCA_prte_default_hostfile": hosts,
            "HYDRA_LAUNCHER": "ssh",
            "HYDRA_LAUNCHER_EXEC": remote,
            "HYDRA_HOST_FILE": f"{hosts}.mpich",
            "I_MPI_HYDRA_BOOTSTRAP": "ssh",
            "I_MPI_HYDRA_BOOTSTRAP_EXEC": remote,
            "I_MPI_HYDRA_HOST_FILE": f"{hosts}.mpich",
            "PDSH_RCMD_TYPE": "ssh",
        }


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("gpus", "slots"), [(0, 1), (1, 1), (8, 8)])
def test_the_hosts_are_the_executions_by_rank_with_their_processes(size: int, gpus: int, slots: int) -> None:
    addresses = [f"10.0.0.{rank + 1}" for rank in range(size)]
    for each in brought(gang(workers(size), gpus)):
        written = {name: content.decode().splitlines() for name, content in each.files.items()}
        assert written == {
            "hostfile": [f"{address} slots={slots}" for address in addresses],
            "hostfile.mpich": [f"{address}:{slots}" for address in addresses],
            "machinefile": [address for address in addresses for _ in range(slots)],
        }


@given(st.lists(st.integers(0, 8), min_size=1, max_size=20))
def test_each_process_has_one_slot_whatever_the_executions_are_like(gpus: list[int]) -> None:
    """The executions of two roles may have different GPUs."""
    orders = [gang(workers(len(gpus)), number)[rank] for rank, number in enumerate(gpus)]
    files = brought(orders)[0].files
    hosts = [line.split(" slots=") for line in files["hostfile"].decode().splitlines()]
    assert [f"{address}:{slots}" for address, slots in hosts] == files["hostfile.mpich"].decode().splitlines()
    assert len({address for address, _ in hosts}) == len(gpus)
    slots = {address: int(number) for address, number in hosts}
    assert sum(slots.values()) == sum(max(1, number) for number in gpus)
    machines = files["machinefile"].decode().splitlines()
    assert {address: machines.count(address) for address in slots} == slots


@pytest.mark.parametrize("size", SIZES)
def test_all_but_rank_0_wait_for_what_it_starts_in_them(size: int) -> None:
    first, *others = brought(gang(workers(size)))
    assert first.instead == ()
    assert {each.instead for each in others} <= {("/muster/bin/muster-inside", "wait")}


@pytest.mark.parametrize(("size", "star"), [(2, True), (64, True), (65, False)])
def test_mpirun_starts_all_daemons_itself_unless_there_are_very_many(size: int, star: bool) -> None:
    told = brought(gang(workers(size)))[0].defaults
    names = {"OMPI_MCA_plm_rsh_no_tree_spawn", "PRTE_MCA_plm_ssh_no_tree_spawn"}
    assert names & told.keys() == (names if star else set())


def test_open_mpi_runs_as_root_of_a_container() -> None:
    told = brought(gang(workers(1)))[0].defaults
    assert told["OMPI_ALLOW_RUN_AS_ROOT"] == told["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] == "1"
    assert told["PRTE_ALLOW_RUN_AS_ROOT"] == told["PRTE_ALLOW_RUN_AS_ROOT_CONFIRM"] == "1"


@pytest.mark.parametrize("size", SIZES)
def test_horovod_finds_what_mpi_does_and_the_interface_for_gloo(size: int) -> None:
    orders = gang(workers(size), 4)
    roster = roster_of(orders)
    for order, plain in zip(orders, brought(orders), strict=True):
        found = horovod(order, roster, AT)
        gloo = {"HOROVOD_GLOO_IFACE": "eno1", "HOROVOD_GLOO_TIMEOUT_SECONDS": "120"}
        assert found == replace(plain, defaults={**plain.defaults, **gloo})


def test_horovod_is_told_no_interface_where_the_node_knows_none() -> None:
    [order] = gang(workers(1))
    found = horovod(order, roster_of([order]), replace(AT, interface=None))
    assert "HOROVOD_GLOO_IFACE" not in found.defaults


@pytest.mark.parametrize("name", [FrameworkName.MPI, FrameworkName.HOROVOD, FrameworkName.DEEPSPEED])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("image", [None, "trainer:1"])
def test_the_command_runs_on_rank_0_and_the_others_wait(name: FrameworkName, size: int, image: str | None) -> None:
    framework = Framework(name=name, processes=2)
    orders = gang(workers(size), image=image, framework=framework)
    own = [replace(each, role=replace(each.role, entrypoint=("tini", "--") if image else None)) for each in orders]
    first, *others = launched(own, site=AT)
    assert first.role is None
    assert {words(each) for each in others} <= {(() if image else None, ("/muster/bin/muster-inside", "wait"))}
    assert first.config_files["hostfile"].decode().splitlines() == [
        f"10.0.0.{rank + 1} slots=2" for rank in range(size)
    ]
    assert first.env["MUSTER_HOSTFILE"] == "/muster/config/hostfile"


def words(launch: Launch) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """Entrypoint and command in place of those of the job."""
    assert launch.role is not None
    return launch.role.entrypoint, launch.role.command


@pytest.mark.parametrize("size", SIZES)
def test_deepspeed_in_every_execution_finds_what_torchrun_does_and_the_hosts(size: int) -> None:
    framework = Framework(name=FrameworkName.DEEPSPEED, launch=LaunchPlace.ALL)
    several = launched(gang(workers(size), 8, framework=framework), site=AT)
    torch = launched(gang(workers(size), 8, framework=Framework(name=FrameworkName.PYTORCH)), site=AT)
    for each, other in zip(several, torch, strict=True):
        assert (each.role, each.env, each.defaults) == (None, other.env, other.defaults)
        assert len(each.config_files["hostfile"].splitlines()) == size


def test_deepspeed_on_rank_0_shares_out_the_cpus_as_torchrun_does() -> None:
    framework = Framework(name=FrameworkName.DEEPSPEED)
    [first, _] = launched(gang(workers(2), 4, framework=framework), site=AT)
    assert first.defaults["OMP_NUM_THREADS"] == "2"
    assert not [name for name in first.env if name.startswith("PET_")]
