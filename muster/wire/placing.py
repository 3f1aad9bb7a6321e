"""Where a job is placed: pools, taints that it bears, labels of nodes, levels of topology."""

from muster.domain.jobs.placing.affinity import Affinity, LabelExpression, LabelOperator, PreferredTerm
from muster.domain.jobs.placing.pool_choice import PoolChoice
from muster.domain.jobs.placing.toleration import TaintEffect, Toleration, TolerationOperator
from muster.domain.jobs.placing.topology import ANYWHERE, Topology
from muster.rpc.v1 import model_pb2 as pb
from muster.wire import checks


def pool_choice_to_wire(choice: PoolChoice) -> pb.PoolChoice:
    """A pool that a job names."""
    return pb.PoolChoice(pool=choice.pool, after=checks.duration(choice.after))


def pool_choice_from_wire(message: pb.PoolChoice) -> PoolChoice:
    """A pool that a job names."""
    after = checks.span(message.after, "PoolChoice.after") if message.HasField("after") else None
    return PoolChoice(pool=message.pool, after=after)


def toleration_to_wire(toleration: Toleration) -> pb.Toleration:
    """A taint that a job bears."""
    return pb.Toleration(
        key=toleration.key,
        operator=toleration.operator,
        value=toleration.value,
        effect=toleration.effect or "",
        seconds=toleration.seconds,
    )


def toleration_from_wire(message: pb.Toleration) -> Toleration:
    """A taint that a job bears; raises WireError."""
    operator = message.operator or TolerationOperator.EQUAL
    return Toleration(
        key=message.key,
        operator=checks.word(TolerationOperator, operator, "Toleration.operator"),
        value=message.value,
        effect=checks.word(TaintEffect, message.effect, "Toleration.effect") if message.effect else None,
        seconds=message.seconds if message.HasField("seconds") else None,
    )


def affinity_to_wire(affinity: Affinity) -> pb.Affinity | None:
    """What a job asks of labels; None: nothing."""
    if affinity == Affinity():
        return None
    return pb.Affinity(
        required=[pb.AffinityTerm(expressions=map(_expression_to_wire, term)) for term in affinity.required],
        preferred=[
            pb.PreferredTerm(weight=term.weight, all=map(_expression_to_wire, term.all)) for term in affinity.preferred
        ],
    )


def affinity_from_wire(message: pb.Affinity) -> Affinity:
    """What a job asks of labels; raises WireError."""
    return Affinity(
        required=tuple(tuple(map(_expression, term.expressions)) for term in message.required),
        preferred=tuple(
            PreferredTerm(weight=term.weight, all=tuple(map(_expression, term.all))) for term in message.preferred
        ),
    )


def _expression_to_wire(expression: LabelExpression) -> pb.LabelExpression:
    return pb.LabelExpression(key=expression.key, operator=expression.operator, values=expression.values)


def _expression(message: pb.LabelExpression) -> LabelExpression:
    return LabelExpression(
        key=message.key,
        operator=checks.word(LabelOperator, message.operator, "LabelExpression.operator"),
        values=tuple(message.values),
    )


def topology_to_wire(topology: Topology) -> pb.Topology | None:
    """How close a gang stays together; None: wherever."""
    return None if topology == ANYWHERE else pb.Topology(required=topology.required, preferred=topology.preferred)


def topology_from_wire(message: pb.Topology) -> Topology:
    """How close a gang stays together."""
    return Topology(
        required=message.required if message.HasField("required") else None,
        preferred=message.preferred if message.HasField("preferred") else None,
    )
