"""`python -m tests.simulation --seeds 200 --seed 12345`: plays seeds, and tells the story of those that fail."""

import argparse
import sys
import time
from collections import Counter

from tests.simulation.scenario import LARGE, SMALL
from tests.simulation.simulation import Outcome, Simulation

EVERY = 50
"""Seeds between two lines that say how far it is."""


def main() -> int:
    arguments = _arguments()
    began, sights, failed, played = time.monotonic(), Counter[str](), [], 0
    for seed in range(arguments.seed, arguments.seed + arguments.seeds):
        outcome = Simulation(seed, LARGE if arguments.large else SMALL).run()
        played += 1
        sights.update(outcome.sights)
        if outcome.problem is not None:
            failed.append(seed)
            _say(_tale(outcome))
        if played % EVERY == 0 or arguments.seeds < EVERY:
            took = time.monotonic() - began
            _say(f"seed {seed}: {outcome.fingerprint}; {played} seeds in {took:.0f} s, {len(failed)} failed")
        if len(failed) >= arguments.most:
            break
    _say("seen: " + ", ".join(f"{count} {sight}" for sight, count in sorted(sights.items())))
    _say(f"{played} seeds run, {len(failed)} failed{': ' if failed else ''}{' '.join(map(str, failed))}")
    return 1 if failed else 0


def _tale(outcome: Outcome) -> str:
    return "\n".join((f"seed {outcome.seed}", *outcome.story, f"seed {outcome.seed}: {outcome.problem}"))


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--seeds", type=int, default=1, help="how many, counting up")
    parser.add_argument("--large", action="store_true", help="dozens of nodes, hundreds of jobs")
    parser.add_argument("--most", type=int, default=10, help="stop after so many failures")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
