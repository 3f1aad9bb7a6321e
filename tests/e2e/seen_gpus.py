"""Jobs whose containers say which GPUs they see, and what the coordinator gave them."""

from pathlib import Path
from typing import Any

from tests.e2e.deployment import Deployment


def shows_gpus(name: str, seen: Path, *, workers: int, **resources: object) -> dict[str, Any]:
    """A job whose executions say which GPUs they see, and end when `end-NAME` appears."""
    script = (
        "echo $NVIDIA_VISIBLE_DEVICES > /seen/.$MUSTER_RANK-$MUSTER_JOB_NAME;"
        "mv /seen/.$MUSTER_RANK-$MUSTER_JOB_NAME /seen/$MUSTER_JOB_NAME-$MUSTER_RANK;"
        "until [ -e /seen/end-$MUSTER_JOB_NAME ]; do sleep 0.1; done"
    )
    return {
        "name": name,
        "workers": workers,
        "image": "muster/busybox:latest",
        "pull": "never",
        "command": script,
        "resources": {"cpus": "100m", **resources},
        "mounts": [f"{seen}:/seen:rw"],
        "timeouts": {"grace": "1s"},
    }


def gpus_of(muster: Deployment, job: str) -> dict[str, list[str]]:
    """What the coordinator gave to each execution, by `name-rank`."""
    shown = muster.ask("show", job)
    executions = shown["attempts"][-1]["executions"]
    return {f"{shown['spec']['name']}-{each['rank']}": sorted(each["gpus"]) for each in executions}


def visible(seen: Path, count: int) -> dict[str, list[str]] | None:
    """What each container sees, by `name-rank`, when so many have said so."""
    said = {path.name: sorted(path.read_text().strip().split(",")) for path in seen.glob("[a-z]*-[0-9]")}
    return said if len(said) == count else None
