"""A checkpoint that cannot be restored: whether it is to blame itself, or whoever was to give it."""

from datetime import timedelta
from pathlib import Path

import pytest

from agent.data.checkpoints.in_stores import PartsInStores
from agent.data.checkpoints.kept import KeptParts
from agent.data.checkpoints.work import CheckpointWays, CheckpointWork, restore_fault
from agent.data.mover.mover import Mover
from agent.executions.layout import ExecutionDirectory
from muster.domain.data.checkpoint import CheckpointPass, CheckpointToRestore, JobCheckpoint, NamedTree
from muster.domain.data.tree import MalformedTreeError
from muster.domain.errors import ExhaustedError, MusterError, UnavailableError, UnknownNameError
from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import ExecutionError, FailureKind
from muster.domain.jobs.job import Role
from muster.rpc.channel import Credentials
from muster.transfer.bucket_faults import BucketRefusedError, NoObjectError
from muster.transfer.objects import WrongContentError
from tests.unit.agent.core.ledger_builders import assignment

ROLE = Role(command=("train",), checkpoint=JobCheckpoint())
RESTORE = CheckpointToRestore(attempt=1, name="epoch-3", trees=(NamedTree(tree="ab" * 32, size=80),))


@pytest.mark.parametrize("error", [UnavailableError, ExhaustedError])
async def test_a_depot_that_is_away_or_busy_is_waited_for_and_then_is_to_blame(
    error: type[MusterError], tmp_path: Path
) -> None:
    async def away(execution: ExecutionId, tree: str) -> CheckpointPass:
        raise error(f"nobody gives {tree} to {execution}")

    async def nowhere(execution: ExecutionId) -> CheckpointPass:
        raise AssertionError(execution)

    ways = CheckpointWays(ask_to_save=nowhere, ask_for_tree=away, coordinator=str, credentials=Credentials)
    wanted = assignment(role=ROLE, restore=RESTORE, fetch=timedelta(milliseconds=500))
    directory, told = ExecutionDirectory(tmp_path, wanted.execution), list[str]()
    directory.path.mkdir()
    with pytest.raises(ExecutionError) as failed:
        await CheckpointWork(ways, KeptParts(tmp_path / "kept"), PartsInStores(Mover())).restore(
            wanted, directory, told.append
        )

    assert failed.value.kind is FailureKind.DATA
    assert "timeouts.fetch" in str(failed.value)
    assert told[-1].startswith("waiting for the depot: nobody gives")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (UnknownNameError("the depot has no tree"), FailureKind.CHECKPOINT),
        (WrongContentError("what arrived holds something else"), FailureKind.CHECKPOINT),
        (MalformedTreeError("the depot gave another tree"), FailureKind.CHECKPOINT),
        (MusterError("the depot failed (INTERNAL)"), FailureKind.DATA),
        (NoObjectError("there is no object s3://acme/a/**"), FailureKind.CHECKPOINT),
        (BucketRefusedError("s3://acme/a refuses the secret 'store'"), FailureKind.DATA_REFUSED),
        (ExecutionError(FailureKind.INVALID_OPTION, "it restores no such tree"), FailureKind.INVALID_OPTION),
    ],
)
def test_what_is_gone_or_damaged_is_to_blame_itself(error: Exception, kind: FailureKind) -> None:
    assert restore_fault(error) is kind
