"""Nodes of a gang that restore the same part of a checkpoint: one that has kept it gives it to the others."""

import random
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from agent.data.checkpoints.in_stores import PartsInStores
from agent.data.checkpoints.kept import KeptParts
from agent.data.checkpoints.shared import SharedParts
from agent.data.checkpoints.work import CheckpointWays, CheckpointWork
from agent.data.mover.mover import Mover
from agent.executions.layout import ExecutionDirectory
from muster.domain.data.checkpoint import CheckpointPass, CheckpointRanks, CheckpointToRestore, JobCheckpoint, NamedTree
from muster.domain.data.tree import ContentEntry, ContentKind, ContentTree, content_tree
from muster.domain.data.upload import DepotPass
from muster.domain.ids import ExecutionId
from muster.domain.jobs.job import Role
from muster.rpc.channel import Credentials
from tests.integration.swarms import GangNode, gang_of

FILES = {"step/weights": random.Random(1).randbytes(3 * 1024 * 1024 + 7), "step/notes": b"small"}
ROLE = Role(command=("train",), checkpoint=JobCheckpoint(ranks=CheckpointRanks.RANK0))


def tree_of(files: Mapping[str, bytes]) -> ContentTree:
    return content_tree(
        ContentEntry(path=path, kind=ContentKind.FILE, size=len(content), content=sha256(content).hexdigest())
        for path, content in files.items()
    )


async def nowhere(execution: ExecutionId, tree: str = "") -> CheckpointPass:
    """A depot that is away."""
    del execution, tree
    return CheckpointPass(depot=DepotPass(depot="127.0.0.1:1", ticket="nobody looks at it"))


def restoring(node: GangNode, directory: Path, tree: ContentTree) -> CheckpointWork:
    """What a node does with checkpoints that knows what the part lists."""
    ways = CheckpointWays(ask_to_save=nowhere, ask_for_tree=nowhere, coordinator=str, credentials=Credentials)
    kept = KeptParts(directory / node.name / "kept")
    work = CheckpointWork(
        ways, kept, PartsInStores(Mover()), shared=SharedParts(kept, node.cache, node.access, ways.depot)
    )
    work.trees.add(tree)
    return work


def keep(kept: KeptParts, tree: ContentTree, files: Mapping[str, bytes], place: Path) -> None:
    """Have a node keep a part that an execution on it has stored."""
    for path, content in files.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_bytes(content)
    kept.keep("j.0", tree, place / "step")


async def test_a_node_restores_what_another_one_has_kept_although_the_depot_is_away(
    tmp_path: Path,
) -> None:
    tree = tree_of(FILES)
    restore = CheckpointToRestore(attempt=1, name="step", trees=(NamedTree(tree=tree.digest, size=80),))
    async with gang_of(tmp_path, "a", "b") as nodes:
        works = [restoring(node, tmp_path, tree) for node in nodes]
        keep(works[0].kept, tree, FILES, tmp_path / "saved")
        for node, work in zip(nodes, works, strict=True):
            wanted = node.assignment(ROLE, restore)
            directory = ExecutionDirectory(tmp_path / node.name / "executions", wanted.execution)
            await work.restore(wanted, directory, node.said.append)
            assert {path: (directory.checkpoint / path).read_bytes() for path in FILES} == FILES
        assert "restoring a checkpoint: 3 MiB of 3 MiB, 3 MiB from other nodes" in nodes[1].said
