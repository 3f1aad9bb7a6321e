"""XGBoost and LightGBM: a tracker on rank 0, and a list of machines."""

from agent.core.launching.frameworks.surroundings import Surroundings, if_short
from muster.domain.gangs.roster import Roster

LIGHTGBM_PORT = "lightgbm"
"""The port at which a member hears the others."""
MACHINES_FILE = "mlist.txt"


def xgboost(rank: int, roster: Roster) -> Surroundings:
    """Where rabit's tracker is, which rank 0's code starts, and the names that Kubeflow's XGBoost jobs have for it."""
    port = str(roster.master_port)
    return Surroundings(
        env={
            "DMLC_TRACKER_URI": roster.master_address,
            "DMLC_TRACKER_PORT": port,
            "DMLC_NUM_WORKER": str(len(roster.nodes)),
            "DMLC_TASK_ID": str(rank),
            "DMLC_ROLE": "worker",
            "WORKER_PORT": port,
            **if_short("WORKER_ADDRS", ",".join(roster.addresses)),
        }
    )


def lightgbm(roster: Roster) -> Surroundings:
    """The machines as LightGBM's parameters `machines` and `machine_list_filename` take them."""
    machines = roster.endpoints(LIGHTGBM_PORT)
    lines = (f"{address} {port}\n" for address, _, port in (each.rpartition(":") for each in machines))
    return Surroundings(
        env=if_short("LIGHTGBM_MACHINES", ",".join(machines)), files={MACHINES_FILE: "".join(lines).encode()}
    )
