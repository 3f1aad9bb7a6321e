"""SkyPilot: the number of a node among those of its task, and the addresses of all."""

from agent.core.launching.frameworks.surroundings import Surroundings, if_short
from muster.domain.gangs.plan import Assignment
from muster.domain.gangs.roster import Roster


def skypilot(who: Assignment, roster: Roster) -> Surroundings:
    """The variables of one execution; SkyPilot says nothing about ports."""
    return Surroundings(
        env={
            "SKYPILOT_NODE_RANK": str(who.rank),
            **if_short("SKYPILOT_NODE_IPS", "\n".join(roster.addresses)),
            "SKYPILOT_NUM_NODES": str(who.world_size),
            "SKYPILOT_NUM_GPUS_PER_NODE": str(len(who.gpus)),
            "SKYPILOT_TASK_ID": who.job,
        }
    )
