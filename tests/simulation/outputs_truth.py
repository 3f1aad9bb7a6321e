"""What the coordinator says of outputs, held against what the depot really has."""

from coordinator.core.records import Execution
from muster.domain.data.outputs import OutputsStage
from tests.simulation.truth import Sandbox
from tests.simulation.world import Violation


def check_outputs(before: Execution | None, after: Execution, sandbox: Sandbox | None) -> None:
    """What counts as stored is in the depot, and stays what it is."""
    about = (after.job, *(() if after.node is None else (after.node,)))
    known = None if before is None else before.outputs
    if known is not None and known.stage is OutputsStage.STORED and after.outputs != known:
        raise Violation(f"the outputs of {after.id} were stored, and then they are {after.outputs}", *about)
    if after.outputs is None or after.outputs.stage is not OutputsStage.STORED:
        return
    if sandbox is None or not sandbox.stored:
        raise Violation(f"the outputs of {after.id} count as stored, and the depot does not have them", *about)
