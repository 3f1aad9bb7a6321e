"""A training whose nodes die under it goes on from its newest whole checkpoint, as if nothing had happened."""

from typing import Any

import pytest

from tests.e2e.deployment import Deployment
from tests.e2e.fleet import Node
from tests.e2e.waiting import until

pytestmark = pytest.mark.fleet

WITHIN = 300.0
"""Seconds for what takes a tenth of that where nothing else is going on: each process loads PyTorch."""
PROGRAM = """
import hashlib, importlib, os, sys, time
import torch, torch.distributed as dist
from torch.nn.functional import cross_entropy

sys.path.append(os.environ["MUSTER_CONFIG_DIR"])
worker = importlib.import_module("muster_worker")
torch.set_num_threads(1)
dist.init_process_group("gloo")
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(16, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
done, saved = 0, worker.restored()
if saved is not None:
    state = torch.load(saved / "state.pt")
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    done = state["epoch"]
print(f"begins after epoch {done}", flush=True)
for epoch in range(done + 1, 7):
    drawn = torch.Generator().manual_seed(100 * epoch + dist.get_rank())
    for _ in range(20):
        images, labels = torch.randn(8, 16, generator=drawn), torch.randint(4, (8,), generator=drawn)
        optimizer.zero_grad()
        cross_entropy(model(images), labels).backward()
        optimizer.step()
    if dist.get_rank() == 0:
        with worker.checkpoint(f"epoch-{epoch}") as directory:
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
            torch.save(state, directory / "state.pt")
    while f"{os.environ['MUSTER_ATTEMPT']}:{epoch}" in os.environ.get("DIES_AT", "").split():
        time.sleep(0.2)
digest = hashlib.sha256()
for values in model.parameters():
    digest.update(values.detach().numpy().tobytes())
print(f"rank {dist.get_rank()}: {digest.hexdigest()[:16]}", flush=True)
dist.barrier()
os._exit(0)
"""


@pytest.mark.usefixtures("digits_image")
def test_a_training_whose_node_is_lost_twice_ends_with_the_parameters_of_one_that_nobody_disturbed(
    muster: Deployment,
) -> None:
    nodes = {node.name: node for node in muster.fleet.nodes}
    muster.start_depot()
    muster.start_agents(*nodes.values())
    calm = muster.submit(training("calm"))
    expected = muster.ended(calm, within=WITHIN)
    assert expected["phase"] == "succeeded", muster.run("logs", calm).out
    job = muster.submit(training("disturbed", DIES_AT="1:2 2:4"))

    # A node with the second rank loses power and network, and does not come back.
    await_checkpoint(muster, job, "epoch-2")
    _, gone = nodes_of(muster, job)
    nodes[gone].partition()
    lose_power(muster, nodes[gone])

    # One with the first rank loses power, and comes back at once.
    await_checkpoint(muster, job, "epoch-4")
    second, other = nodes_of(muster, job)
    assert {second, other} == nodes.keys() - {gone}
    lose_power(muster, nodes[second])
    muster.start_agent(nodes[second])

    ended = muster.ended(job, within=WITHIN)
    nodes[gone].heal()
    assert ended["phase"] == "succeeded", muster.run("logs", job).out
    assert [attempt["number"] for attempt in ended["attempts"]] == [1, 2, 3]
    begun = [printed(muster, job, attempt)[:2] for attempt in (1, 2, 3)]
    assert begun == [[f"begins after epoch {epoch}"] * 2 for epoch in (0, 2, 4)]
    assert printed(muster, job, 3)[2:] == printed(muster, calm, 1)[2:]


def training(name: str, **env: str) -> dict[str, Any]:
    """A job with two ranks on two nodes; its first one saves for both."""
    return {
        "name": name,
        "workers": 2,
        "max_per_node": 1,
        "image": "muster/digits:latest",
        "pull": "never",
        "command": ["python3", "-c", PROGRAM],
        "env": env,
        "checkpoint": {"ranks": "rank0"},
        "restarts": {"limit": 1},
        "timeouts": {"lost_after": "1m"},
    }


def lose_power(muster: Deployment, node: Node) -> None:
    """All that runs on a node ends at once."""
    muster.agents.pop(node.name).kill()
    node.engine.remove_containers()


def nodes_of(muster: Deployment, job: str) -> list[str]:
    """The nodes of the newest attempt, by rank."""
    return [str(execution["node"]) for execution in muster.executions(job)]


def await_checkpoint(muster: Deployment, job: str, name: str) -> None:
    """Return when a checkpoint is whole."""
    with muster.sdk as client:

        def whole() -> bool:
            return any(each.name == name and each.whole for each in client.checkpoints.of(job).checkpoints)

        until(whole, within=WITHIN, what=f"{name} to be whole")


def printed(muster: Deployment, job: str, attempt: int) -> list[str]:
    """What the ranks of an attempt have printed of themselves; PyTorch prints warnings, too."""
    lines = muster.run("logs", job, "--attempt", str(attempt), "--no-prefix").out.splitlines()
    return sorted(line for line in lines if line.startswith(("begins ", "rank ")))
