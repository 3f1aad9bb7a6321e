"""What an attempt holds that may have to make room, as far as its records say."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from coordinator.core.records import Attempt, Execution, Job
from muster.domain.fleet.quota import MILLIS_PER_GPU, NO_AMOUNTS, Amounts, amounts_of, amounts_of_job
from muster.domain.ids import AttemptId, NodeId
from muster.domain.jobs.job_class import JobClass
from muster.domain.jobs.lifecycle import NOT_PLACED, TERMINAL

ORDERS_A_SECOND = 1 << 32
"""Room for sequence numbers between the orders of two seconds."""
CPUS_PER_GPU = 8
"""How many CPUs count as much as a GPU, where there are none."""


@dataclass(frozen=True)
class HeldGang:
    """One attempt and its job; another one takes its place when anything about them changes."""

    job: Job
    attempt: Attempt
    members: Collection[Execution]

    @cached_property
    def attempt_id(self) -> AttemptId:
        """Names the attempt."""
        return self.attempt.attempt_id

    @cached_property
    def is_spare(self) -> bool:
        """Whether it is only what nobody else wants."""
        return self.job.job_class is JobClass.SPARE

    @cached_property
    def size(self) -> Amounts:
        """What its job counts as a whole."""
        return amounts_of_job(self.job.spec)

    @cached_property
    def weight(self) -> int:
        """What a second of its work counts, in thousandths of a GPU."""
        return self.size.gpus or max(MILLIS_PER_GPU, self.size.cpus // CPUS_PER_GPU)

    @cached_property
    def since(self) -> datetime | None:
        """From when on its work would be lost: its last checkpoint, or else its start."""
        return self.attempt.saved_at or self.attempt.started_at or self.attempt.placed_at

    @cached_property
    def order(self) -> int:
        """The larger, the newer."""
        placed = self.attempt.placed_at
        return (0 if placed is None else int(placed.timestamp())) * ORDERS_A_SECOND + self.job.sequence

    @cached_property
    def on(self) -> Mapping[NodeId, list[Execution]]:
        """The executions that hold something, by node."""
        found: dict[NodeId, list[Execution]] = {}
        for member in self.members:
            if member.node is not None and member.state not in NOT_PLACED and member.state not in TERMINAL:
                found.setdefault(member.node, []).append(member)
        return found

    @cached_property
    def freed(self) -> Mapping[NodeId, Amounts]:
        """What each of its nodes would get back."""
        found: dict[NodeId, Amounts] = {}
        for node, members in self.on.items():
            amounts = NO_AMOUNTS
            for member in members:
                amounts = amounts.plus(amounts_of(self.job.spec, member.rank))
            found[node] = amounts
        return found
