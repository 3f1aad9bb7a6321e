"""`python -m tests.simulation --seeds 200 --seed 12345`: plays seeds, and tells the story of those that fail."""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Generator, Iterable
from contextlib import closing
from functools import partial
from multiprocessing import Pool

from tests.simulation.families import FAMILIES
from tests.simulation.scenario import LARGE, SMALL
from tests.simulation.simulation import Outcome, Simulation

EVERY = 50
"""Seeds between two lines that say how far it is."""


def main() -> int:
    arguments = _arguments()
    began, sights, failed, played = time.monotonic(), Counter[str](), [], 0
    seeds = range(arguments.seed, arguments.seed + arguments.seeds)
    with closing(_outcomes(arguments, seeds)) as outcomes:
        for outcome in outcomes:
            played += 1
            sights.update(outcome.sights)
            if outcome.problem is not None:
                failed.append(outcome.seed)
                _say(_tale(outcome))
            if played % EVERY == 0 or arguments.seeds < EVERY:
                took = time.monotonic() - began
                words = f"{played} seeds in {took:.0f} s, {len(failed)} failed"
                _say(f"seed {outcome.seed}: {outcome.fingerprint}; {words}")
            if len(failed) >= arguments.most:
                break
    _say("seen: " + ", ".join(f"{count} {sight}" for sight, count in sorted(sights.items())))
    _say(f"{played} seeds run, {len(failed)} failed{': ' if failed else ''}{' '.join(map(str, failed))}")
    return 1 if failed else 0


def _outcomes(arguments: argparse.Namespace, seeds: Iterable[int]) -> Generator[Outcome, None, None]:
    """Outcomes in the order of the seeds, whoever plays them."""
    play = partial(_play, large=arguments.large, family=arguments.family)
    if arguments.jobs == 1:
        yield from map(play, seeds)
        return
    with Pool(arguments.jobs) as players:
        yield from players.imap(play, seeds, chunksize=1 if arguments.large else 10)


def _play(seed: int, *, large: bool, family: str | None) -> Outcome:
    return Simulation(seed, LARGE if large else SMALL, family=family).run()


def _tale(outcome: Outcome) -> str:
    return "\n".join((f"seed {outcome.seed}", *outcome.story, f"seed {outcome.seed}: {outcome.problem}"))


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--seeds", type=int, default=1, help="how many, counting up")
    parser.add_argument("--jobs", type=int, default=1, help="processes that play them")
    parser.add_argument("--large", action="store_true", help="dozens of nodes, hundreds of jobs")
    parser.add_argument(
        "--family", choices=sorted(FAMILIES), help="only this kind of scenario; otherwise the seed says"
    )
    parser.add_argument("--most", type=int, default=10, help="stop after so many failures")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
