"""What valohai-utils tells user code of its place in a distributed task, on one line; and an output that it keeps."""

import json
import os
from pathlib import Path
from typing import Any

import valohai
from valohai import paths

valohai.prepare(step="train", default_parameters={"epochs": 3}, default_inputs={"data": []})


def seen(member: Any) -> dict[str, Any]:
    return {
        "job_id": member.job_id,
        "member_id": member.member_id,
        "rank": member.rank,
        "is_master": member.is_master,
        "identity": member.identity,
        "announced": bool(member.announce_time),
        "exposed_ports": member.exposed_ports,
        "primary_local_ip": member.primary_local_ip,
        "primary_public_ip": member.primary_public_ip,
    }


group, execution = valohai.distributed, valohai.execution().config
assert execution is not None
Path(valohai.outputs("models").path("model.txt")).write_text(f"model of rank {group.rank}")
told = {
    "kept": (Path(os.environ["MUSTER_OUTPUTS_DIR"]) / "models" / "model.txt").read_text(),
    "rank": group.rank,
    "is_distributed_task": group.is_distributed_task(),
    "group_name": group.group_name,
    "member_id": group.member_id,
    "required_count": group.required_count,
    "members": [seen(member) for member in group.members()],
    "me": seen(group.me()),
    "master": seen(group.master()),
    "first": seen(group.member("0")),
    "execution": {"counter": execution.counter, "id": execution.id, "title": execution.title},
    "parameter": valohai.parameters("epochs").value,
    "input": valohai.inputs("data").path(default="none"),
    "directories": {
        "config": paths.get_config_path(),
        "inputs": paths.get_inputs_path(),
        "outputs": paths.get_outputs_path(),
        "repository": paths.get_repository_path(),
    },
    "exist": [
        Path(path).is_dir() for path in (paths.get_inputs_path(), paths.get_outputs_path(), paths.get_repository_path())
    ],
    "working_directory": str(Path.cwd()),
    "variables": {name: value for name, value in os.environ.items() if name.startswith("VH_")},
}
valohai.set_status_detail("training")  # nothing hears it here, and nothing goes wrong
with valohai.logger() as logger:
    logger.log("told", 1)
print(json.dumps(told))
