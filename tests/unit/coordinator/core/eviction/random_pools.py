"""Small pools at random: up to four nodes, two departments, four projects and ten jobs."""

from dataclasses import replace
from random import Random

from tests.unit.coordinator.core.eviction.plain_model import PlainPool
from tests.unit.coordinator.core.eviction.plain_rooms import PlainJob, PlainUnit

PROJECTS = "ABCF"
STARTED_AT = 500


def random_pool(seed: int) -> PlainPool:
    """A pool in the middle of things: some jobs run, wherever they fit, and others wait."""
    random = Random(seed)
    nodes = {f"n{number}": random.choice([2, 4, 8]) for number in range(1, random.randint(1, 4) + 1)}
    pool = PlainPool(nodes, _units(random))
    for sequence in range(1, random.randint(4, 10) + 1):
        job = _job(random, sequence)
        seats = pool.seats(job, pool.free())
        runs = seats is not None and random.random() < 0.75 and not (job.job_class == "guaranteed" and pool.barred(job))
        if runs and seats is not None:
            started_at = random.randint(1, 900)
            saved_at = random.choice([None, random.randint(started_at, 1000)])
            job = replace(job, started_at=started_at, saved_at=saved_at, evictions=random.choice([0, 0, 1, 3]))
            pool.running[job] = seats
        else:
            pool.waiting.append(job)
    return pool


def of_one_age(pool: PlainPool) -> PlainPool:
    """The same pool, where all that runs has started at once: many cost the same, unless they saved something."""
    running = {
        replace(job, started_at=STARTED_AT, saved_at=job.saved_at and max(STARTED_AT, job.saved_at)): seats
        for job, seats in pool.running.items()
    }
    return PlainPool(pool.nodes, pool.units, running, pool.waiting)


def _units(random: Random) -> dict[str, PlainUnit]:
    departments = [PlainUnit(name, random.randint(0, 8), weight=random.randint(0, 2)) for name in "DE"]
    units = {each.name: each for each in departments[: random.randint(0, 2)]}
    above = ["", *units]
    for name in PROJECTS[: random.randint(1, 4)]:
        units[name] = PlainUnit(
            name,
            random.choice([None, 0, 1, 2, 4]),
            limit=random.choice([10**9, 10**9, 3, 6]),
            weight=random.randint(0, 3),
            rank=random.choice([0, 0, 1]),
            above=random.choice(above),
            min_runtime=random.choice([0, 100, 300]),
            min_runtime_within=random.choice([0, 100, 300]),
        )
    for name in PROJECTS:
        units.setdefault(name, PlainUnit(name, 1))
    return units


def _job(random: Random, sequence: int) -> PlainJob:
    project = random.choice(PROJECTS)
    return PlainJob(
        f"{project.lower()}{sequence}",
        project,
        count=random.choice([1, 1, 1, 2, 3]),
        gpus=random.choice([1, 1, 2, 4]),
        job_class=random.choice(["preemptible"] * 6 + ["guaranteed", "spare"]),
        priority=random.choice([0, 0, 5, 10]),
        sequence=sequence,
    )
