"""The head of the queue is never starved: it is placed once all that ran when it became the head has ended."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.core.records import Job
from muster.domain.gangs.plan import Stage
from muster.domain.ids import JobId
from muster.domain.jobs.job import JobSpec, Packing
from tests.builders import World, gpu, inventory, role, spec

CHOICES = (
    spec(1, gpus=1),
    spec(1, gpus=1),
    spec(1, cpus=2),
    spec(2, gpus=1, packing=Packing.SPREAD),
    spec(1, gpus=4),
    spec(2, gpus=2, max_per_node=1),
    spec(3, gpus=2),
    spec(roles=(role(1, 2, gpu_model="A100"),)),
    spec(roles=(role(1, 1, gpu_model="H100"), role(2, cpus=2))),
    spec(1, cpus=6, memory=6),
    spec(1, cpus=0, memory=3),
    spec(2, gpus=1, priority=1),
)
"""Small and large, so that there is always something that could pass the head."""


def world() -> World:
    w = World()
    models = {"a": ["A100"] * 4, "b": ["H100", "A100", "H100", "A100"], "c": ["H100"] * 2}
    for node, of in models.items():
        gpus = tuple(gpu(node, index, model) for index, model in enumerate(of))
        w.connect(node, inventory(node, gpus=gpus, cpus=8, memory=8))
    return w


class Watch:
    """Jobs that ran when the present head became head; a higher priority may pass it at any time."""

    def __init__(self) -> None:
        self.head: JobId | None = None
        self.elders: set[JobId] = set()

    def look(self, w: World) -> None:
        head = next(iter(w.cluster.queue), None)
        live = holding(w)
        if head is None or head.id != self.head:
            self.head, self.elders = (None if head is None else head.id), live
        if head is None:
            return
        may_pass = {job for job in live if w.cluster.jobs[job].spec.priority > head.spec.priority}
        assert (self.elders | may_pass) & live, f"{head.id} could have been placed: nothing of before it runs"


def holding(w: World) -> set[JobId]:
    """The jobs that hold something on a node."""
    names = (name for node in w.cluster.nodes for name in w.cluster.load.used(node).executions)
    return {w.cluster.executions[name].job for name in names}


def end(w: World, job: JobId) -> None:
    w.delete(job, force=True)
    w.tell_all(job, Stage.STOPPED)


@given(st.randoms(use_true_random=False))
@settings(max_examples=8)
def test_the_head_is_placed_once_those_before_it_have_ended(chance: Random) -> None:
    """A long course in which a little more comes than ends, so that there is always a queue."""
    w, watch = world(), Watch()
    for _ in range(100):
        live = sorted(holding(w))
        if not live or chance.random() < 0.55:
            w.submit(chance.choice(CHOICES))
        else:
            end(w, chance.choice(live))
        watch.look(w)


def test_a_stream_of_small_jobs_does_not_keep_a_large_one_waiting() -> None:
    """Scenario G5: small jobs come and go in a full pool, and a large one waits."""
    w = world()
    running = [w.submit(CHOICES[0]) for _ in range(10)]
    large = w.submit(spec(3, gpus=2))
    for _ in range(len(running)):
        w.submit(CHOICES[0])
        end(w, running.pop(0))

    assert w.cluster.queue.position(large) == 0


@given(st.lists(st.sampled_from(CHOICES), max_size=30), st.lists(st.integers(0, 20), max_size=60))
@settings(max_examples=25)
def test_every_job_gets_its_turn_when_all_that_run_come_to_an_end(wanted: list[JobSpec], order: list[int]) -> None:
    w = world()
    jobs = [w.submit(each) for each in wanted]
    for number in [*order, *[0] * len(jobs)]:
        if live := sorted(holding(w)):
            end(w, live[number % len(live)])

    assert list(w.cluster.queue) == []


@given(st.lists(st.sampled_from(CHOICES), max_size=15))
@settings(max_examples=40)
def test_what_waits_behind_the_head_would_not_fit_beside_what_is_kept(wanted: list[JobSpec]) -> None:
    """Backfill does all it may: a job that needs nothing of what is kept is not held up."""
    w = world()
    for each in wanted:
        w.submit(each)
    kept = w.cluster.load.reservation
    waiting: list[Job] = list(w.cluster.queue)
    if not waiting or kept is None:
        assert waiting == []
        return
    assert kept.job == waiting[0].id
    trial = World()
    for node in w.cluster.nodes:
        capacity = kept.unreserved(w.cluster.load.free.of(node))
        trial.connect(
            node, inventory(node, gpus=capacity.gpus, cpus=capacity.cpu_millis // 1000, memory=capacity.memory)
        )
    for job in waiting[1:]:
        trial_job = trial.submit(job.spec, queue_anyway=True)
        assert trial.cluster.queue.position(trial_job) > 0
        trial.delete(trial_job, force=True)
