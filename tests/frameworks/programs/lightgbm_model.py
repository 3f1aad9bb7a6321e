"""Trains one model on data that differs by rank, and says its digest."""

import hashlib
import os

import lightgbm
import numpy as np

rank = int(os.environ["MUSTER_RANK"])
rows = np.random.default_rng(rank).random((200, 4))
params = {
    "objective": "regression",
    "tree_learner": "data",
    "machines": os.environ["LIGHTGBM_MACHINES"],
    "local_listen_port": int(os.environ["MUSTER_PORT_LIGHTGBM"]),
    "num_machines": int(os.environ["MUSTER_WORLD_SIZE"]),
    "num_threads": 1,
    "verbose": -1,
}
model = lightgbm.train(params, lightgbm.Dataset(rows, rows.sum(1)), 5)
digest = hashlib.sha256(model.model_to_string().partition("parameters:")[0].encode()).hexdigest()[:8]
print(f"rank {rank}, model {digest}", flush=True)
