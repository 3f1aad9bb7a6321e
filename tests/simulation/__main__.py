"""`python -m tests.simulation --seeds 200 --seed 12345`: runs seeds, and tells the story of those that fail."""

import argparse
import sys
import time

from tests.simulation.scenario import LARGE, SMALL
from tests.simulation.simulation import Outcome, Simulation


def main() -> int:
    arguments = _arguments()
    scale = LARGE if arguments.large else SMALL
    began, failed, harsh = time.monotonic(), [], 0
    for number in range(arguments.seeds):
        seed = arguments.seed + number
        outcome = Simulation(seed, scale, harsh=arguments.harsh).run()
        if outcome.problem is not None:
            failed.append(seed)
            print(_tale(outcome), flush=True)
        if number % 50 == 49 or arguments.seeds < 5:
            print(f"{number + 1} seeds, {len(failed)} failed, {time.monotonic() - began:.0f} s; {outcome.fingerprint}", flush=True)
        if len(failed) >= arguments.most:
            break
    print(f"{number + 1} seeds run, {len(failed)} failed{': ' if failed else ''}{' '.join(map(str, failed))}")
    return 1 if failed else 0


def _tale(outcome: Outcome) -> str:
    return "\n".join((f"seed {outcome.seed}", *outcome.story, f"seed {outcome.seed}: {outcome.problem}"))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--seeds", type=int, default=1, help="how many, counting up")
    parser.add_argument("--large", action="store_true", help="dozens of nodes, hundreds of jobs")
    parser.add_argument("--harsh", action="store_true", help="streams lose, double and reorder messages")
    parser.add_argument("--most", type=int, default=10, help="stop after so many failures")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
