"""Trains a little network on drawn digits, saves after each epoch, and goes on where an attempt before was.

Nothing is left to chance but by seeds, so a training that was killed ends with the same weights as one that was not.
"""

import hashlib
import json
import math
import os
import random
import signal
import sys
from pathlib import Path

sys.path.insert(0, os.environ.get("MUSTER_CONFIG_DIR", "/muster/config"))
import muster_worker as worker

SHAPES = {
    0: "111 101 101 101 111",
    1: "010 110 010 010 111",
    2: "111 001 111 100 111",
    3: "111 001 111 001 111",
    4: "101 101 111 001 001",
    5: "111 100 111 001 111",
    6: "111 100 111 101 111",
    7: "111 001 010 010 010",
    8: "111 101 111 101 111",
    9: "111 101 111 001 111",
}
EPOCHS, RATE, PIXELS, WRONG = 8, 0.5, 15, 0.05


def drawn(digit: int, chance: random.Random) -> list[float]:
    """A digit as somebody draws it: now and then a pixel is wrong."""
    pixels = [float(each) for each in SHAPES[digit].replace(" ", "")]
    return [1.0 - pixel if chance.random() < WRONG else pixel for pixel in pixels]


def likely(weights: list[list[float]], pixels: list[float]) -> list[float]:
    """How likely each digit is."""
    sums = [sum(w * p for w, p in zip(row, [*pixels, 1.0], strict=True)) for row in weights]
    powers = [math.exp(each - max(sums)) for each in sums]
    return [each / sum(powers) for each in powers]


def train(weights: list[list[float]], epoch: int) -> float:
    """One epoch, which depends on nothing but the weights and its number."""
    chance, loss = random.Random(epoch), 0.0
    for _ in range(200):
        digit = chance.randrange(10)
        pixels = drawn(digit, chance)
        found = likely(weights, pixels)
        loss -= math.log(found[digit]) / 200
        for other in range(10):
            wrong = found[other] - (other == digit)
            for place, pixel in enumerate([*pixels, 1.0]):
                weights[other][place] -= RATE * wrong * pixel
    return loss


def main() -> None:
    """Train from the beginning, or from what was saved."""
    weights, first = [[0.0] * (PIXELS + 1) for _ in range(10)], 1
    saved = worker.restored()
    if saved is not None:
        state = json.loads((saved / "state.json").read_text())
        weights, first = state["weights"], state["epoch"] + 1
        print(f"goes on after epoch {state['epoch']}", flush=True)
    for epoch in range(first, EPOCHS + 1):
        worker.metrics(epoch=epoch, loss=train(weights, epoch))
        with worker.checkpoint(f"epoch-{epoch}") as directory:
            (directory / "state.json").write_text(json.dumps({"epoch": epoch, "weights": weights}))
        if str(epoch) == os.environ.get("DIE_AFTER") and os.environ.get("MUSTER_ATTEMPT") == "1":
            os.kill(os.getpid(), signal.SIGKILL)
    text = json.dumps(weights)
    Path(os.environ["MUSTER_OUTPUTS_DIR"], "weights.json").write_text(text)
    print("weights", hashlib.sha256(text.encode()).hexdigest()[:16])


main()
