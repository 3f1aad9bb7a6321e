"""Secrets on a fleet: user code has their values, and nobody else finds them, neither meanwhile nor afterwards."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.secret_places import digest, having, programs_with
from tests.e2e.deployment import Deployment
from tests.e2e.waiting import until

pytestmark = pytest.mark.fleet

TOKEN = b"t0ken-of-the-fleet-bG9uZw"
KEY = b"-----BEGIN KEY-----\nb25lIGxpbmUgb2YgaXQ\n-----END KEY-----\n"
USED = """
echo "token $WANDB_API_KEY"; echo "$WANDB_API_KEY" | sha256sum; sha256sum < /muster/secrets/deploy/key
cat /muster/secrets/deploy/key >&2
while [ ! -e /shared/go ]; do sleep 0.1; done
echo "again $WANDB_API_KEY"; exit 3
"""


@pytest.fixture
def memory() -> Iterator[Path]:
    """Where the agents of this test give out secrets."""
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="muster-e2e-") as directory:
        yield Path(directory) / "secrets"


def test_values_are_found_by_user_code_and_nowhere_else(muster: Deployment, tmp_path: Path, memory: Path) -> None:
    values = {"wandb": TOKEN, "deploy": KEY}
    for name, value in values.items():
        (tmp_path / name).write_bytes(value)
        assert muster.run("secrets", "set", name, f"key=@{tmp_path / name}").code == 0
    shared = muster.shared("shared")
    first, second, _ = muster.fleet.nodes
    for node in (first, second):
        muster.start_agent(node, "--secrets-dir", str(memory))
    muster.await_nodes(2)
    job = muster.submit(
        {
            "name": "secretive",
            "workers": 2,
            "placement": "spread",
            "image": "muster/busybox:latest",
            "pull": "never",
            "command": ["sh", "-c", USED],
            "mounts": [{"source": str(shared), "target": "/shared"}],
            "secrets": [{"secret": "wandb", "env": "WANDB_API_KEY"}, "deploy"],
        },
    )
    muster.await_states(job, ["running"] * 2)
    until(lambda: muster.run("logs", job).out.count("  -") == 4, within=30, what="both to have used their secrets")
    shown = muster.run("logs", job).out
    assert shown.count("token ***") == 2
    assert shown.count(digest(TOKEN + b"\n").decode()) == 2
    assert having(memory, [TOKEN]) != []
    assert found(muster) == []
    assert programs_with("cmdline", TOKEN) == set()
    assert programs_with("environ", TOKEN) <= {"sh", "sleep"}, "user code alone"

    (shared / "go").touch()
    assert muster.ended(job)["phase"] == "failed"
    told = "".join(
        muster.run(*words).out for words in (("logs", job), ("show", job, "-o", "json"), ("jobs",), ("audit",))
    )
    assert "again ***" in told
    assert not [value for value in (TOKEN, *KEY.splitlines()) if value.decode() in told]
    until(lambda: not muster.containers(), within=20, what="the last container to go")
    assert found(muster) == []
    assert having(memory, [TOKEN, KEY]) == []
    assert not any(value in muster.report().encode() for value in (TOKEN, KEY.splitlines()[1]))


def found(muster: Deployment) -> list[Path]:
    """Where a value is in what coordinator and agents keep and log, and in what engines know of containers.

    User code prints the token, and Docker keeps what it prints until the container is removed.
    """
    kept = [node.engine.directory / "docker" / "containers" for node in muster.fleet.nodes]
    assert all(each.is_dir() for each in kept)
    places = [muster.directory, *kept]
    paths = [path for place in places for path in having(place, [TOKEN, KEY, KEY.splitlines()[1]])]
    return [path for path in paths if "local-logs" not in path.parts]
