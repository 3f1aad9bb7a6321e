"""Which job is placed next, and who may pass whom."""

from datetime import timedelta

from coordinator.core.notes import Offered
from coordinator.core.scheduling.cycle import LOOKS
from muster.domain.gangs.plan import Stage
from muster.domain.ids import GpuUuid, JobId
from muster.domain.jobs.failure import Exit
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.lifecycle import JobPhase
from muster.domain.jobs.restart import RestartPolicy
from tests.builders import World, gpu, gpus, inventory, pass_time, role, spec

RUNS = (Stage.PREPARING, Stage.PREPARED, Stage.ARMED, Stage.RUNNING)


def one(gpus: int = 1, *, cpus: float = 1, memory: int | None = None, **fields: object) -> JobSpec:
    """A job of one execution."""
    return spec(1, gpus=gpus, cpus=cpus, memory=memory, **fields)


def end(w: World, *jobs: JobId) -> None:
    """Jobs that run, or may not yet, come to their end."""
    for job in jobs:
        w.delete(job, force=True)
        if job in w.cluster.jobs:
            w.tell_all(job, Stage.STOPPED)


def placed(w: World, *jobs: JobId) -> list[bool]:
    return [w.phase(job) is JobPhase.PREPARING for job in jobs]


def test_jobs_are_placed_in_the_order_in_which_they_came() -> None:
    w = World(("a", 2))
    first = w.submit(one(2))
    waiting = [w.submit(one(2)) for _ in range(3)]
    assert [job.id for job in w.cluster.queue] == waiting

    end(w, first)

    assert placed(w, *waiting) == [True, False, False]


def test_a_higher_priority_goes_first() -> None:
    w = World(("a", 2))
    first, low, high = w.submit(one(2)), w.submit(one(2)), w.submit(one(2, priority=5))
    assert [w.cluster.queue.position(job) for job in (first, low, high)] == [0, 2, 1]

    end(w, first)

    assert placed(w, low, high) == [False, True]


def test_a_small_job_passes_a_large_one_where_it_cannot_delay_it() -> None:
    w = World(("a", 4), ("b", 2))
    w.submit(one(3))
    large, small = w.submit(one(4)), w.submit(one(2))

    assert placed(w, large, small) == [False, True]
    assert w.seats(small) == ["b"]


def test_a_small_job_does_not_take_what_the_head_of_the_queue_waits_for() -> None:
    w = World(("a", 4))
    running = w.submit(one(3))
    large, small = w.submit(one(4)), w.submit(one(1))
    assert placed(w, large, small) == [False, False]

    end(w, running)

    assert placed(w, large, small) == [True, False]


def test_cpus_and_memory_are_kept_for_the_head_as_well() -> None:
    w = World()
    w.connect("a", inventory("a", cpus=4, memory=4 * 2**30))
    running = w.submit(spec(1, cpus=3, memory=3 * 2**30))
    large = w.submit(spec(1, cpus=4, memory=4 * 2**30))
    small = [w.submit(spec(1, cpus=1)), w.submit(spec(1, cpus=0, memory=2**30))]
    assert placed(w, large, *small) == [False, False, False]

    end(w, running)

    assert placed(w, large) == [True]


def test_gpus_of_another_model_are_not_kept_for_the_head() -> None:
    w = World()
    w.connect("a", inventory("a", gpus=(*gpus("a", 2, "A100"), gpu("a", 2, "H100"), gpu("a", 3, "H100"))))
    w.submit(spec(roles=(role(1, 1, gpu_model="A100"),)))
    head = w.submit(spec(roles=(role(1, 2, gpu_model="A100"),)))
    thief = w.submit(spec(roles=(role(1, 1, gpu_model="A100"),)))
    other = w.submit(spec(roles=(role(1, 2, gpu_model="H100"),)))

    assert placed(w, head, thief, other) == [False, False, True]


def test_nothing_is_kept_for_the_head_on_a_gpu_that_is_broken() -> None:
    w = World(("a", 2), ("b", 2))
    w.change_inventory("a", gpus=(gpu("a", 0, problems=("lost",)), gpu("a", 1)))
    running = w.submit(spec(roles=(role(1, 2),)))
    assert w.seats(running) == ["b"]
    head, on_a, on_b = w.submit(one(2)), w.submit(one(1)), w.submit(one(1))
    assert placed(w, head, on_a, on_b) == [False, True, False]

    end(w, running)

    assert w.seats(head) == ["b"]


def test_what_is_kept_for_the_head_moves_when_a_gpu_of_it_breaks() -> None:
    w = World(("a", 2), ("b", 2))
    first, second = w.submit(one(2)), w.submit(one(1))
    head = w.submit(one(2))
    w.change_inventory("a", gpus=(gpu("a", 0, problems=("lost",)), gpu("a", 1)))
    small = w.submit(one(1))
    assert (w.seats(first), w.seats(second)) == (["a"], ["b"])
    assert placed(w, head, small) == [False, False]

    end(w, second)

    assert w.seats(head) == ["b"]


def test_what_is_kept_for_the_head_moves_when_its_node_goes_away() -> None:
    w = World(("a", 2), ("b", 2))
    w.submit(one(1))
    second = w.submit(one(2))
    assert (w.seats(second)) == ["b"]
    head = w.submit(one(2))
    w.disconnect("a")
    end(w, second)

    assert w.seats(head) == ["b"]


def test_a_head_that_cannot_run_on_the_nodes_that_are_there_holds_nobody_up() -> None:
    w = World(("a", 2), ("b", 2))
    w.disconnect("b")
    head, small = w.submit(spec(2, gpus=2)), w.submit(one(2))

    assert placed(w, head, small) == [False, True]


def test_a_new_head_of_higher_priority_gets_what_was_kept_for_the_old_one() -> None:
    w = World(("a", 4))
    running = w.submit(one(3))
    old, new = w.submit(one(4)), w.submit(one(2, priority=1))
    end(w, running)

    assert placed(w, old, new) == [False, True]


def test_what_was_kept_for_a_head_that_is_stopped_is_free_for_others() -> None:
    w = World(("a", 4))
    w.submit(one(3))
    head, small = w.submit(one(4)), w.submit(one(1))
    assert placed(w, small) == [False]

    w.stop(head)

    assert placed(w, small) == [True]


def test_what_is_kept_for_the_head_does_not_depend_on_which_of_its_gpus_are_free() -> None:
    w = World(("a", 4))
    blocks = [w.submit(one(1)) for _ in range(4)]
    end(w, blocks[2], blocks[3])
    head, small = w.submit(one(3)), w.submit(one(1))
    assert placed(w, head, small) == [False, False]

    end(w, blocks[0])

    assert placed(w, head, small) == [True, False]


def test_a_gang_is_placed_whole_or_not_at_all() -> None:
    w = World(("a", 2), ("b", 2))
    w.submit(one(1))
    gang = w.submit(spec(2, gpus=2))

    assert w.seats(gang) == [None, None]


def test_waiting_jobs_know_why() -> None:
    w = World(("a", 2))
    w.submit(one(2))
    job = w.submit(one(2))

    assert w.cluster.queue.refused[job] == "needs room for 1 execution at once; 0 fit"


def test_one_turn_places_as_many_as_it_has_looks_and_the_next_one_follows_at_once() -> None:
    w = World(("a", 4))
    first = w.submit(one(4))
    jobs = [w.submission(one(0, cpus=0.01)) for _ in range(LOOKS + 10)]
    large = w.submission(one(4, priority=10))
    w.turn(large, *jobs)
    assert len(w.cluster.queue) == 1 + 11  # the large one was looked at as well
    w.advance(0)

    assert [job.id for job in w.cluster.queue] == [large.job]
    end(w, first)
    assert list(w.cluster.queue) == []


def test_a_job_for_idle_gpus_of_another_kind_runs_at_once_however_many_wait_before_it() -> None:
    w = World()
    w.connect("h", inventory("h", gpus=gpus("h", 8, "NVIDIA H100")))
    w.connect("a", inventory("a", gpus=gpus("a", 8, "NVIDIA A100")))
    w.submit(spec(roles=(role(1, 8, gpu_model="H100"),)))
    for count in range(250):
        w.submit(spec(roles=(role(1, 1 + count % 8, gpu_model="H100"),)))
    assert len(w.cluster.queue) == 250

    waiting = w.submit(spec(roles=(role(1, 8, gpu_model="A100"),)))

    assert w.seats(waiting) == ["a"]


def test_a_job_that_could_not_run_is_tried_again_when_there_is_more_room_and_not_before() -> None:
    w = World(("a", 2))
    running = [w.submit(one(1)), w.submit(one(1))]
    waiting = w.submit(one(2))
    w.submit(one(2))
    assert offers(w) == [*running, waiting]

    w.heartbeat("a")
    w.submit(spec(1, cpus=1, priority=-1))
    assert offers(w)[3:] == ["j005"]

    end(w, running[0])  # one GPU is free, and both are wanted
    assert offers(w)[4:] == []

    end(w, running[1])
    assert offers(w)[4:] == [waiting, "j004"]


def offers(w: World) -> list[JobId]:
    """The jobs for which seats were looked for, one after the other."""
    return [note.job.id for note in w.notes if isinstance(note, Offered)]


def test_a_job_whose_pause_is_not_over_is_in_nobodys_way() -> None:
    w = World(("a", 2))
    policy = RestartPolicy(limit=3, backoff=timedelta(seconds=60))
    failing = w.running(one(2, restarts=policy))
    for _ in range(2):
        w.tell_all(failing, Stage.EXITED, exit=Exit(code=1))
        w.tell_all(failing, *(() if w.phase(failing) is JobPhase.QUEUED else RUNS))
    assert w.phase(failing) is JobPhase.QUEUED

    other = w.submit(one(2))

    assert placed(w, failing, other) == [False, True]
    end(w, other)
    pass_time(w, 60)
    assert placed(w, failing) == [True]


def test_the_head_takes_what_was_kept_for_it_where_a_search_over_all_that_is_free_comes_out_worse() -> None:
    w = World()
    w.connect("x", inventory("x", 4, cpus=8))
    w.connect("y", inventory("y", 3, cpus=0))
    blocks = {w.rank(job, 0).gpus: job for job in (w.submit(one(cpus=0)) for _ in range(7))}
    head = w.submit(spec(roles=(role(1, 2, cpus=0, name="master"), role(2, 1, cpus=4))))
    assert placed(w, head) == [False]

    end(w, *(blocks[GpuUuid(gpu),] for gpu in ("GPU-y-0", "GPU-y-1", "GPU-y-2", "GPU-x-0", "GPU-x-1")))

    assert w.seats(head) == ["y", "x", "x"]
