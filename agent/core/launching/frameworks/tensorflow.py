"""TensorFlow: `TF_CONFIG`, the cluster by roles and the execution's own task."""

import json
from collections import Counter

from agent.core.launching.frameworks.surroundings import Surroundings
from muster.domain.gangs.roster import Roster
from muster.domain.jobs.frameworks.tensorflow_roles import EVALUATOR

TENSORFLOW_PORT = "tensorflow"
"""The port at which a member serves the others of its cluster."""


def tensorflow(rank: int, roster: Roster) -> Surroundings:
    """What `tf.distribute` reads; the evaluator stands in no cluster."""
    cluster: dict[str, list[str]] = {}
    for role, endpoint in zip(roster.roles, roster.endpoints(TENSORFLOW_PORT), strict=True):
        if role != EVALUATOR:
            cluster.setdefault(role, []).append(endpoint)
    role = roster.roles[rank]
    task = {"type": role, "index": Counter(roster.roles[:rank])[role]}
    config = json.dumps({"cluster": cluster, "task": task, "environment": "cloud"})
    return Surroundings(env={"TF_CONFIG": config}, files={"tf_config.json": f"{config}\n".encode()})
