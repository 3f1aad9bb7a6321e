"""The roles of TensorFlow's clusters, by the names that `TF_CONFIG` has for them.

The source is TensorFlow's guide to distributed training with Keras, under "TF_CONFIG".
"""

from collections.abc import Collection

CHIEFS = ("chief", "master")
"""The role of which there is one at most: it saves checkpoints, and its end is the job's."""
WORKER = "worker"
EVALUATOR = "evaluator"
"""The role that reads checkpoints beside the training, and is in no cluster."""
SERVER = "ps"
"""The role of parameter servers, which never end by themselves."""
ROLES = (*CHIEFS, WORKER, SERVER, EVALUATOR)


def needs_chief(roles: Collection[str]) -> bool:
    """Whether some of these roles run until others have ended."""
    return SERVER in roles or EVALUATOR in roles


def chief_of(roles: Collection[str]) -> str:
    """The role whose end is the end of the job."""
    return next((name for name in CHIEFS if name in roles), WORKER)
