"""Trains one model on data that differs by rank, and says its digest; rabit's rank is the execution's."""

import hashlib
import os

import numpy as np
import xgboost
from xgboost import collective
from xgboost.tracker import RabitTracker

where = {"dmlc_tracker_uri": os.environ["DMLC_TRACKER_URI"], "dmlc_tracker_port": int(os.environ["DMLC_TRACKER_PORT"])}
number, rank = int(os.environ["DMLC_NUM_WORKER"]), int(os.environ["MUSTER_RANK"])
if rank == 0:
    tracker = RabitTracker(number, where["dmlc_tracker_uri"], where["dmlc_tracker_port"], sortby="task")
    tracker.start()
with collective.CommunicatorContext(**where, dmlc_task_id=os.environ["DMLC_TASK_ID"]):
    rows = np.random.default_rng(rank).random((100, 4))
    model = xgboost.train({"tree_method": "hist"}, xgboost.DMatrix(rows, label=rows.sum(1)), 3)
    digest = hashlib.sha256(model.save_raw()).hexdigest()[:8]
    print(f"rank {rank} is rabit's {collective.get_rank()}, model {digest}", flush=True)
if rank == 0:
    tracker.wait_for()
