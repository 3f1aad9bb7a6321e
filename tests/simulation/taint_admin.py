"""An operator who gives nodes taints and takes them away again."""

from datetime import timedelta

from coordinator.core.answers import Answer, Noted
from coordinator.core.events import TaintsRequested
from muster.domain.ids import NodeId
from muster.domain.jobs.placing.taint import Taint, TaintName
from muster.domain.jobs.placing.toleration import TaintEffect
from tests.simulation.clients import Clients
from tests.simulation.scenario import Scenario
from tests.simulation.taint_truth import TaintTruth
from tests.simulation.world import World

KEYS = ("worn", "team")
VALUES = ("", "red")
RARELY = 30.0
"""Seconds between two taints, in the middle."""


class TaintAdmin:
    """Gives one taint after the other; in most scenarios there is nothing to do."""

    def __init__(self, world: World, clients: Clients, truth: TaintTruth, scenario: Scenario) -> None:
        self._world = world
        self._clients = clients
        self._truth = truth
        self._scenario = scenario
        self._chance = world.chance("taint admin")
        self._there: set[tuple[NodeId, str, TaintEffect]] = set()
        """Taints by node, key and effect that are being given, are there, or are being taken away."""

    def begin(self) -> None:
        """Give taints for as long as there is trouble."""
        if self._scenario.taints:
            self._world.after(self._chance.expovariate(1 / RARELY), self._give)

    def _give(self) -> None:
        if self._world.seconds > self._scenario.seconds:
            return
        node = NodeId(f"node-{self._chance.randint(1, len(self._scenario.parts))}")
        effect = self._chance.choice(list(TaintEffect))
        taint = Taint(key=self._chance.choice(KEYS), value=self._chance.choice(VALUES), effect=effect)
        name = node, taint.key, effect
        spell = self._chance.choice((5.0, 30.0, 120.0))
        after = timedelta(seconds=self._chance.choice((0.0, 5.0, 60.0)) if effect is TaintEffect.NO_EXECUTE else 0.0)

        def given(answer: Answer) -> None:
            if isinstance(answer, Noted):
                self._truth.wanted.setdefault(node, set()).add(taint)
            self._world.after(spell, take_away)

        def take_away() -> None:
            self._truth.wanted.get(node, set()).discard(taint)
            removed = (TaintName(key=taint.key, effect=effect),)
            self._clients.insist(
                lambda: TaintsRequested(node=node, removed=removed), lambda _: self._there.discard(name)
            )

        if name not in self._there:
            self._there.add(name)
            self._world.tell(f"is to have the taint {taint}", node)
            self._clients.insist(lambda: TaintsRequested(node=node, given=(taint,), after=after), given)
        self._world.after(self._chance.expovariate(1 / RARELY), self._give)
