"""What code in a container learns from the roster files that Muster writes."""

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from muster import worker
from muster.domain.data.output_metadata import MOST_FILE_METADATA
from muster.domain.gangs.roster import Member, PortLease, Roster, config_files
from muster.domain.ids import GpuUuid, JobId, NodeId, execution_id
from muster.domain.jobs.job import Network
from muster.domain.jobs.stopping.notice import NOTICE, StopNotice, StopReason

AT = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)
JOB = JobId("j7k2")


def member(rank: int, node: str, *, port: int = 20001, container_port: int | None = None) -> Member:
    return Member(
        rank=rank,
        execution=execution_id(JOB, 2, rank),
        role="worker",
        node=NodeId(node),
        address=f"10.0.0.{rank + 1}",
        checked_in_at=AT,
        ports=(PortLease(name="master", host_port=port, container_port=container_port or port),),
        gpus=(GpuUuid(f"GPU-{rank}"),),
    )


def roster(*members: Member, network: Network = Network.HOST) -> Roster:
    return Roster.of(job=JOB, job_name="ring", attempt=2, network=network, members=members)


def files_of(tmp_path: Path, written: Roster, rank: int) -> Path:
    for name, content in config_files(written, rank).items():
        (tmp_path / name).write_bytes(content)
    return tmp_path / "distributed.json"


def test_a_worker_knows_its_rank_its_peers_and_the_master(tmp_path: Path) -> None:
    written = roster(member(0, "a"), member(1, "b", port=20005), member(2, "b"))

    loaded = worker.load(files_of(tmp_path, written, 1))

    assert (loaded.rank, loaded.world_size, loaded.attempt, loaded.job, loaded.job_name) == (1, 3, 2, "j7k2", "ring")
    assert loaded.master == ("10.0.0.1", 20001)
    assert not loaded.is_master
    assert [peer.rank for peer in loaded.peers] == [0, 2]
    assert loaded.me == worker.Member(
        rank=1,
        role="worker",
        name="worker-1",
        node="b",
        address="10.0.0.2",
        ports={"master": 20005},
        gpus=("GPU-1",),
    )


def test_the_local_rank_counts_members_on_the_same_node(tmp_path: Path) -> None:
    written = roster(member(0, "b"), member(1, "a"), member(2, "b"))

    loaded = worker.load(files_of(tmp_path, written, 2))

    assert (loaded.local_rank, loaded.local_world_size) == (1, 2)


def test_on_bridge_networking_the_port_to_listen_on_is_the_containers_own(tmp_path: Path) -> None:
    written = roster(member(0, "a", port=20001, container_port=29500), network=Network.BRIDGE)

    loaded = worker.load(files_of(tmp_path, written, 0))

    assert (loaded.ports, loaded.listen) == ({"master": 20001}, {"master": 29500})


def test_the_environment_says_where_the_files_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files_of(tmp_path, roster(member(0, "a")), 0)
    monkeypatch.setenv("MUSTER_CONFIG_DIR", str(tmp_path))
    monkeypatch.setenv("MUSTER_OUTPUTS_DIR", "/data/out")

    loaded = worker.load()

    assert loaded.is_master
    assert loaded.outputs == Path("/data/out")


def test_outside_of_a_job_the_error_says_how_to_get_inside_one(tmp_path: Path) -> None:
    with pytest.raises(worker.NotInAJobError, match=r"does not run inside a Muster job .start it with `muster run`"):
        worker.load(tmp_path / "distributed.json")


@pytest.mark.parametrize(
    "content", ["{", "[]", '{"config": {}}', '{"config": {"rank": 5}, "master": {}, "members": []}', "[" * 100_000]
)
def test_a_file_of_another_format_is_named(tmp_path: Path, content: str) -> None:
    file = tmp_path / "distributed.json"
    file.write_text(content)

    with pytest.raises(worker.NotInAJobError, match=str(file)):
        worker.load(file)


def test_an_address_reads_like_one() -> None:
    assert str(worker.Address("10.0.0.1", 1)) == "10.0.0.1:1"
    assert str(worker.Address("fd00::1", 1)) == "[fd00::1]:1"


def test_the_module_needs_only_the_standard_library() -> None:
    program = (
        "import sys, muster.worker;"
        "print(sorted({name.partition('.')[0] for name in sys.modules} - set(sys.stdlib_module_names) - {'__main__'}))"
    )

    printed = subprocess.run(
        [sys.executable, "-S", "-c", program],
        cwd=Path(worker.__file__).parents[1],
        check=True,
        capture_output=True,
        text=True,
    )

    assert printed.stdout.strip() == "['muster']"


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directories of an execution; the roster files are in the first of them."""
    for name, variable in (("config", "MUSTER_CONFIG_DIR"), ("status", "MUSTER_STATUS_DIR")):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(variable, str(tmp_path / name))
    return tmp_path


def give(told: Path, reason: StopReason, kill_at: datetime = AT) -> None:
    (told / "config" / NOTICE).write_bytes(StopNotice(reason=reason, kill_at=kill_at).written())


@pytest.mark.usefixtures("told")
def test_a_worker_that_is_not_stopped_has_no_notice() -> None:
    assert worker.noticed() is None


@pytest.mark.parametrize("reason", StopReason)
def test_a_worker_reads_why_it_is_stopped_and_when_it_is_killed(told: Path, reason: StopReason) -> None:
    give(told, reason)
    notice = worker.noticed()
    assert notice is not None
    assert (notice.reason, notice.kill_at, notice.comes_back) == (reason, AT, reason.comes_back)


def test_a_worker_knows_how_long_it_has(told: Path) -> None:
    give(told, StopReason.PREEMPTED, datetime.now(UTC) + timedelta(hours=1))
    notice = worker.noticed()
    assert notice is not None
    assert 3500 < notice.seconds_left <= 3600
    give(told, StopReason.PREEMPTED, AT)
    late = worker.noticed()
    assert late is not None
    assert late.seconds_left == 0


async def test_a_worker_can_wait_for_its_notice(told: Path) -> None:
    give(told, StopReason.IDLE)
    assert (await worker.wait_for_notice()).reason == "idle"


def test_a_notice_that_is_none_is_told(told: Path) -> None:
    (told / "config" / NOTICE).write_text("{}")
    with pytest.raises(worker.NotInAJobError, match=r"notice\.json is not as Muster writes it"):
        worker.noticed()


def test_a_worker_tells_of_its_checkpoints_again_and_again(told: Path) -> None:
    for _ in range(2):
        worker.checkpointed()
    assert [path.name for path in (told / "status").iterdir()] == ["checkpoints"]


def test_code_outside_of_a_job_cannot_tell_of_checkpoints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUSTER_STATUS_DIR", str(tmp_path / "nowhere"))
    with pytest.raises(worker.NotInAJobError, match="does not run inside a Muster job"):
        worker.checkpointed()


def test_what_a_worker_measures_is_printed_as_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    class Scalar:
        def __float__(self) -> float:
            return 0.25

    worker.metrics(step=3, loss=Scalar(), lr=1e-3, grad=float("inf"), phase="warm up", last=True)

    assert capsys.readouterr().out == (
        '{"step": 3, "loss": 0.25, "lr": 0.001, "grad": "inf", "phase": "warm up", "last": true}\n'
    )


@pytest.mark.parametrize("value", [None, [1], {"a": 1}, object()])
def test_what_is_neither_a_number_nor_text_is_not_printed(capsys: pytest.CaptureFixture[str], value: object) -> None:
    with pytest.raises(TypeError, match="loss is neither a number nor text"):
        worker.metrics(loss=value)

    assert capsys.readouterr().out == ""


def test_a_checkpoint_gets_its_name_once_it_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUSTER_CHECKPOINT_DIR", str(tmp_path))
    monkeypatch.setenv("MUSTER_STATUS_DIR", str(tmp_path))
    with worker.checkpoint("step-1") as directory:
        (directory / "model").write_text("weights")
        assert not (tmp_path / "step-1").exists()

    assert (tmp_path / "step-1" / "model").read_text() == "weights"
    assert {path.name for path in tmp_path.iterdir()} == {"step-1", ".step-1.finished", "checkpoints"}


def test_one_that_fails_half_way_never_gets_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUSTER_CHECKPOINT_DIR", str(tmp_path))
    with pytest.raises(ZeroDivisionError), worker.checkpoint("step-1"):
        raise ZeroDivisionError

    assert [path.name for path in tmp_path.iterdir()] == ["step-1.tmp"]


def test_a_name_is_taken_once_and_is_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUSTER_CHECKPOINT_DIR", str(tmp_path))
    (tmp_path / "step-1").mkdir()
    with pytest.raises(FileExistsError, match="give each one a name of its own"), worker.checkpoint("step-1"):
        pass
    with pytest.raises(ValueError, match="cannot be the name"), worker.checkpoint("a/b"):
        pass


def test_outside_of_a_job_that_saves_there_is_no_checkpoint(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("MUSTER_CHECKPOINT_DIR", raising=False)
    with pytest.raises(worker.NotInAJobError, match="stores no checkpoints"), worker.checkpoint("a"):
        pass
    monkeypatch.setenv("MUSTER_CHECKPOINT", "")
    assert worker.restored() is None
    monkeypatch.setenv("MUSTER_CHECKPOINT", str(tmp_path))
    assert worker.restored() == tmp_path


@pytest.fixture
def outputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The outputs directory of a job."""
    monkeypatch.setenv("MUSTER_OUTPUTS_DIR", str(tmp_path))
    return tmp_path


def test_the_files_of_an_input_are_those_that_the_list_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUSTER_CONFIG_DIR", str(tmp_path))
    with pytest.raises(worker.NotInAJobError, match="this job has no inputs"):
        worker.inputs("words")
    files = [{"name": "a.txt", "path": "/muster/inputs/words/a.txt", "size": 8, "uri": "https://example.org/a.txt"}]
    (tmp_path / "inputs.json").write_text(json.dumps({"words": {"files": files}, "none": {"files": []}}))

    assert worker.inputs("words") == (Path("/muster/inputs/words/a.txt"),)
    assert worker.inputs("none") == ()
    with pytest.raises(KeyError, match="no input wodrs; it has words, none"):
        worker.inputs("wodrs")
    (tmp_path / "inputs.json").write_text('["words"]')
    with pytest.raises(worker.NotInAJobError, match="not as Muster writes it"):
        worker.inputs("words")


def test_an_output_has_its_directories_and_stays_in_the_outputs_directory(outputs: Path) -> None:
    assert worker.output("model/final.pt") == outputs / "model/final.pt"
    assert (outputs / "model").is_dir()
    assert worker.output(outputs / "a/../b") == outputs / "b"
    for path in ("../x", "/etc/passwd", "a/../../x", "."):
        with pytest.raises(ValueError, match="is not in the outputs directory"):
            worker.output(path)


def test_what_is_said_of_an_output_stands_beside_it(outputs: Path) -> None:
    worker.describe("model.pt", loss=float("nan"), epoch=2)
    worker.describe("model.pt", loss=0.5, **{"valohai.tags": ["best"]})

    told = json.loads((outputs / "model.pt.metadata.json").read_text())
    assert told == {"loss": 0.5, "epoch": 2, "valohai.tags": ["best"]}
    assert [each.name for each in outputs.iterdir()] == ["model.pt.metadata.json"]
    assert worker.MOST_DESCRIBED == MOST_FILE_METADATA


def test_what_cannot_be_said_of_an_output_is_refused_and_what_was_said_stays(outputs: Path) -> None:
    worker.describe("model.pt", loss=float("inf"))
    with pytest.raises(ValueError, match="are the most"):
        worker.describe("model.pt", note="x" * worker.MOST_DESCRIBED)
    with pytest.raises(TypeError):
        worker.describe("model.pt", note=object())
    assert json.loads((outputs / "model.pt.metadata.json").read_text()) == {"loss": "inf"}
    (outputs / "model.pt.metadata.json").write_text("[]")
    with pytest.raises(TypeError, match="is no JSON object"):
        worker.describe("model.pt", loss=1)


def test_what_is_published_is_on_the_disk_and_nobody_may_write_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUSTER_OUTPUTS_DIR", str(tmp_path))
    (tmp_path / "epoch-1").mkdir()
    for name in ("model.pt", "epoch-1/a", "epoch-1/b"):
        (tmp_path / name).write_text("x")
    (tmp_path / "epoch-1" / "latest").symlink_to("/etc/passwd")
    assert worker.publish("model.pt") == tmp_path / "model.pt"
    assert worker.publish(tmp_path / "epoch-1") == tmp_path / "epoch-1"
    modes = [(tmp_path / name).stat().st_mode & 0o222 for name in ("model.pt", "epoch-1/a", "epoch-1/b")]
    assert modes == [0, 0, 0]
    with pytest.raises(FileNotFoundError, match="gone to publish"):
        worker.publish("gone")
