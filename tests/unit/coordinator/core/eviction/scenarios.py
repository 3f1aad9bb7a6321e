"""Small fleets with jobs, and who runs in the end: one table, which everything that decides about it must agree with.

Jobs run or wait in the order in which they are written. Unless it says otherwise a job is preemptible, of priority 0,
one execution with one GPU, and of the project that its name begins with. What runs was started a second after the one
before it, and the clock says 1000 s.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tests.unit.coordinator.core.eviction.plain_model import PlainPool
from tests.unit.coordinator.core.eviction.plain_rooms import PlainJob, PlainUnit

GUARANTEED, SPARE = "guaranteed", "spare"


@dataclass(frozen=True)
class Scenario:
    """What is given, and what is expected."""

    name: str
    nodes: Mapping[str, int]
    units: Sequence[PlainUnit]
    running: Sequence[tuple[PlainJob, str]]
    """Jobs with the nodes of their executions."""
    waiting: Sequence[PlainJob]
    runs: frozenset[str]
    """Names of all jobs that run in the end."""
    evicted: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """The job that gets room, and who is evicted for it, in the order in which it happens."""

    def pool(self) -> PlainPool:
        """The fleet as it is given."""
        running = {
            replace(job, sequence=place, started_at=job.started_at or place): tuple(nodes.split())
            for place, (job, nodes) in enumerate(self.running, start=1)
        }
        waiting = [replace(job, sequence=place) for place, job in enumerate(self.waiting, start=len(running) + 1)]
        return PlainPool(self.nodes, {unit.name: unit for unit in self.units}, running, waiting)


def unit(name: str, quota: int | None = None, above: str = "", **terms: int) -> PlainUnit:
    return PlainUnit(name, quota, above=above, **terms)


def job(name: str, gpus: int = 1, count: int = 1, **facts: int | str) -> PlainJob:
    return PlainJob(name, name[0].upper(), count, gpus, **facts)  # type: ignore[arg-type]  # any field


def jobs(names: str, gpus: int = 1) -> list[PlainJob]:
    """Jobs that differ in nothing but their names."""
    return [job(name, gpus) for name in names.split()]


def on(node: str, *there: PlainJob) -> list[tuple[PlainJob, str]]:
    """Jobs whose executions all are on one node."""
    return [(each, " ".join([node] * each.count)) for each in there]


def names(text: str) -> frozenset[str]:
    return frozenset(text.split())


N = "n1"
EQUAL = (unit("A", 4), unit("B", 4))
FOUR = on(N, *(job(f"a{number}", 2, started_at=100 * number or 1) for number in range(4)))
LONG_AGO, LATELY = job("a-old", 4, started_at=1), job("a-new", 4, started_at=700)
BIG = [*on("n1", job("a1", 2, job_class=GUARANTEED)), *on("n2", job("a2", 2, job_class=GUARANTEED))]
WANTS_ALL = job("a-big", 4, 2, job_class=GUARANTEED)
SMALL = [job(f"a-small{number}", 2, job_class=GUARANTEED) for number in (1, 2)]
GANG = [(job("a-gang", 2, 4), "n1 n1 n2 n2")]

SCENARIOS: Sequence[Scenario] = (
    Scenario(
        "O1: projects take turns in their quotas",
        {N: 4},
        (unit("A", 2), unit("B", 2)),
        [],
        jobs("a1 a2 a3 a4 b1 b2"),
        names("a1 a2 b1 b2"),
    ),
    Scenario(
        "O2: what is left over goes by weight",
        {N: 10},
        (unit("A", 2), unit("B", 2, weight=3)),
        [],
        jobs("a0 a1 a2 a3 a4 a5 a6 a7 a8 a9 b0 b1 b2 b3 b4 b5 b6 b7 b8 b9"),
        names("a0 a1 a2 b0 b1 b2 b3 b4 b5 b6"),
    ),
    Scenario(
        "O3: nobody has more than its limit",
        {N: 8},
        (unit("A", 2, limit=3),),
        [],
        jobs("a1 a2 a3 a4 a5"),
        names("a1 a2 a3"),
    ),
    Scenario(
        "O4: guaranteed jobs stay within the quota",
        {N: 8},
        (unit("A", 2),),
        [],
        [job("a1", 2, job_class=GUARANTEED), job("a2", job_class=GUARANTEED), job("a3", 3)],
        names("a1 a3"),
    ),
    Scenario(
        "O5: a higher rank comes first",
        {N: 6},
        (unit("A", 0, rank=1), unit("B", 0, weight=9)),
        [],
        jobs("a1 a2 a3 a4 b1 b2 b3 b4 b5 b6"),
        names("a1 a2 a3 a4 b1 b2"),
    ),
    Scenario(
        "O6: departments come before projects",
        {N: 4},
        (unit("D", 2), unit("E", 2), unit("A", 3, "D"), unit("B", 1, "D"), unit("C", 2, "E")),
        [],
        jobs("a1 a2 a3 b1 c1 c2"),
        names("a1 b1 c1 c2"),
    ),
    Scenario(
        "O7: classes and priorities within a project",
        {N: 4},
        (unit("A", 2), unit("B", 2)),
        [],
        [job("a-s1", job_class=SPARE), job("a-p1"), job("a-p2", priority=50), job("a-g1", job_class=GUARANTEED),
         job("b1")],
        names("a-g1 a-p1 a-p2 b1"),
    ),
    Scenario(
        "G1: nobody passes into what is kept for the head",
        {"n1": 4, "n2": 4},
        (unit("A"),),
        BIG,
        [WANTS_ALL, SMALL[0]],
        names("a1 a2"),
    ),
    Scenario(
        "G2: what is not kept for the head is there for others",
        {"n1": 4, "n2": 4, "n3": 4},
        (unit("A"),),
        BIG,
        [WANTS_ALL, *SMALL],
        names("a1 a2 a-small1 a-small2"),
    ),
    Scenario("R1: the newest goes", {N: 8}, EQUAL, FOUR, [job("b", 2)], names("a0 a1 a2 b"), (("b", ("a3",)),)),
    Scenario(
        "R2: who has just saved goes",
        {N: 8},
        EQUAL,
        [(replace(each, saved_at=900) if each.name == "a1" else each, node) for each, node in FOUR],
        [job("b", 2)],
        names("a0 a2 a3 b"),
        (("b", ("a1",)),),
    ),
    Scenario(
        "R3: who is too young is protected",
        {N: 8},
        (unit("A", 4, min_runtime=600), unit("B", 4)),
        on(N, LONG_AGO, LATELY),
        [job("b", 4)],
        names("a-new b"),
        (("b", ("a-old",)),),
    ),
    Scenario(
        "R4: guaranteed jobs are never evicted",
        {N: 8},
        EQUAL,
        on(N, job("a-g", 4, job_class=GUARANTEED), job("a-p", 4)),
        [job("b1", 4, job_class=GUARANTEED), job("b2", job_class=GUARANTEED)],
        names("a-g b1"),
        (("b1", ("a-p",)),),
    ),
    Scenario("R5: who would borrow evicts nobody", {N: 8}, EQUAL, on(N, job("a", 4), job("b", 4)), [job("b1", 2)],
             names("a b")),
    Scenario(
        "R6: a gang that was borrowed goes as a whole",
        {N: 8},
        (unit("A", 6), unit("B", 2)),
        on(N, job("a-whole", 8)),
        [job("b", 2)],
        names("b"),
        (("b", ("a-whole",)),),
    ),
    Scenario(
        "F1: shares are reached by one eviction after the other",
        {N: 9},
        (unit("A", 1), unit("B", 2, weight=2)),
        on(N, *jobs("a1 a2 a3 a4 a5 a6 a7 a8 a9")),
        jobs("b1 b2 b3 b4 b5 b6 b7"),
        names("a1 a2 a3 b1 b2 b3 b4 b5 b6"),
        tuple((f"b{number}", (f"a{10 - number}",)) for number in range(1, 7)),
    ),
    Scenario(
        "F2: nobody goes below its share if it can be",
        {N: 8},
        (unit("A", 1), unit("B", 1)),
        on(N, job("a0", 3), job("a1", 5)),
        jobs("b0 b1", 3),
        names("a1 b0"),
        (("b0", ("a0",)),),
    ),
    Scenario(
        "F3: others lose less of their share than is gained",
        {N: 7},
        (unit("A", 1), unit("B", 3)),
        on(N, job("a0", 4), job("b0", 3)),
        [job("b1")],
        names("a0 b0"),
    ),
    Scenario("F4: at its share nobody evicts", {N: 8}, (unit("A", 2), unit("B", 2)), on(N, job("a", 4), job("b", 4)),
             [job("a1")], names("a b")),
    Scenario(
        "H1: within a department its projects have their rights",
        {N: 8},
        (unit("D", 4), unit("E", 4), unit("A", 2, "D"), unit("B", 2, "D"), unit("C", 4, "E")),
        on(N, job("a", 3), job("b0"), job("c", 4)),
        [job("b1")],
        names("b0 b1 c"),
        (("b1", ("a",)),),
    ),
    Scenario(
        "H2: victims of two departments together",
        {N: 8},
        (unit("D", 2), unit("E", 6), unit("A", 2, "D"), unit("B", 0, "E", weight=0), unit("C", 6, "E")),
        on(N, job("a0", 2), job("a1", 2), job("b0", 4)),
        [job("c0", 6)],
        names("a0 c0"),
        (("c0", ("a1", "b0")),),
    ),
    Scenario(
        "H3: a department that is over its quota loses, though none of its projects is",
        {N: 6},
        (unit("D", 2), unit("E", 4), unit("A", 2, "D"), unit("B", 2, "D"), unit("C", 4, "E")),
        on(N, job("a0", 2), job("b0", 2), job("c0", 2)),
        [job("c1")],
        names("a0 c0 c1"),
        (("c1", ("b0",)),),
    ),
    Scenario(
        "P1: a higher priority evicts a lower one of its project",
        {N: 4},
        (unit("A", 4),),
        on(N, job("a-low", 2), job("a-mid", 2, priority=10)),
        [job("a-high", 2, priority=20), job("a-same", 2, priority=10)],
        names("a-mid a-high"),
        (("a-high", ("a-low",)),),
    ),
    Scenario(
        "P2: a limit is lifted by a victim of the project",
        {N: 4},
        (unit("A", 2, limit=2),),
        on(N, job("a-train", 2)),
        [job("a-shell", job_class=GUARANTEED)],
        names("a-shell"),
        (("a-shell", ("a-train",)),),
    ),
    Scenario("P3: a gang goes as a whole", {"n1": 4, "n2": 4}, (unit("A"),), GANG, [job("a-hi", priority=5)],
             names("a-hi"), (("a-hi", ("a-gang",)),)),
    Scenario(
        "P4: a gang that is too young is safe from its own project, too",
        {"n1": 4, "n2": 4},
        (unit("A", min_runtime_within=600),),
        [(replace(GANG[0][0], started_at=900), GANG[0][1])],
        [job("a-hi", priority=5)],
        names("a-gang"),
    ),
    Scenario(
        "P5: who was evicted goes elsewhere where there is room",
        {"n1": 2, "n2": 2},
        (unit("A"),),
        [*on("n1", job("a-x")), *on("n2", job("a-y"))],
        [job("a-hi", 2, priority=9)],
        names("a-x a-y a-hi"),
        (("a-hi", ("a-y",)),),
    ),
    Scenario(
        "P6: priorities of other projects count for nothing",
        {N: 4},
        (unit("A", 0), unit("B", 0), unit("C", 2)),
        on(N, job("a-low", priority=-5), job("a-m", priority=7), job("b-x", priority=900), job("b-y", priority=950)),
        [job("c")],
        names("a-low a-m b-y c"),
        (("c", ("b-x",)),),
    ),
    Scenario(
        "S1: spare jobs go for everybody but spare ones",
        {N: 4},
        (unit("A", 0), unit("B")),
        on(N, *(job(f"b{number}", job_class=SPARE) for number in range(1, 5))),
        [job("a", 2), job("b5", job_class=SPARE)],
        names("b1 b2 a"),
        (("a", ("b3", "b4")),),
    ),
)  # fmt: skip
"""All that can be said with whole GPUs and without time passing."""
