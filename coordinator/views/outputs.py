"""What executions have left, as it stands by now."""

from dataclasses import replace
from datetime import datetime

from coordinator.core.records import Execution, Job
from coordinator.views.placeholders import early_values
from muster.domain.data.output_terms import OutputTerms, StoredAfter
from muster.domain.data.outputs import RETRIED_STAGES, ExecutionOutputs, OutputsStage
from muster.domain.errors import UnavailableError
from muster.domain.jobs.lifecycle import TERMINAL, State
from muster.domain.quantity import format_duration


def outputs_now(job: Job, execution: Execution, now: datetime) -> ExecutionOutputs | None:
    """What an execution has left; what is not kept any more has no tree. None: it has left nothing."""
    outputs = execution.outputs
    if outputs is None or outputs.at is None:
        return outputs
    if outputs.stage is not OutputsStage.STORED and not (outputs.tree and outputs.stage in RETRIED_STAGES):
        return outputs
    keep = job.spec.role_of(execution.rank).outputs.keep
    if keep is None or now < outputs.at + keep:
        return outputs
    why = f"they were kept for {format_duration(keep)} (outputs.keep)"
    return replace(outputs, stage=OutputsStage.EXPIRED, tree="", size=0, why=why)


def outputs_store(job: Job, execution: Execution) -> str:
    """The place in a store to which the outputs of an execution go, as `s3://…`; empty: to the depot."""
    to = job.spec.role_of(execution.rank).outputs.to.removesuffix("/")
    to = early_values(job, execution).fill(to) if "{" in to else to
    return to and f"{to}/{job.spec.name}-{job.id}/{execution.attempt}/{execution.rank}"


def wanted_outputs(execution: Execution, terms: OutputTerms) -> OutputTerms | None:
    """Which outputs of an execution are to be stored; None: none, as it did not end so.

    Raises UnavailableError while that is not known.
    """
    if terms.after is StoredAfter.ALWAYS or execution.state is State.SUCCEEDED:
        return terms
    if execution.state not in TERMINAL:
        raise UnavailableError(f"nobody has heard yet how execution {execution.id} ended")
    return None
