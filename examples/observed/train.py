"""Train a classifier of handwritten digits on all ranks together, and print its loss; standard library only.

Each rank has a part of the images. After every pass the gradients of all ranks are added up at rank 0, which is reached
at MASTER_ADDR and MASTER_PORT, so all ranks keep the same weights. A line that is a JSON object is a point of a plot.
"""

import json
import math
import os
import socket
import sys
import time
from pathlib import Path

DIGITS, PIXELS = 10, 64
EPOCHS = 40
"""Passes over all images, unless the first argument says how many."""
RATE = 1.0
HELD_OUT = 100
"""Images that no rank trains on."""
GOOD = 0.8
"""Share of held-out images that must be recognised."""
PATIENCE = 30.0
"""Seconds to wait for another rank."""

Image = tuple[int, list[float]]
"""Which digit it is, and its grey values from 0 to 1, with a 1 behind them for what does not depend on them."""


def main() -> int:
    """Train, report, check: 0 when the loss fell and held-out digits are recognised."""
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    epochs = int(sys.argv[1]) if len(sys.argv) > 1 else EPOCHS
    images = read(Path(__file__).with_name("digits.txt"))
    mine = images[: -HELD_OUT or None][rank::size]
    weights = [[0.0] * (PIXELS + 1) for _ in range(DIGITS)]
    losses: list[float] = []
    with Gang(rank, size) as gang:
        for epoch in range(1, epochs + 1):
            loss, gradient = loss_and_gradient(weights, mine)
            total, *summed = gang.added_up([loss, *gradient])
            count = len(images) - HELD_OUT
            for number, change in enumerate(summed):
                weights[number // (PIXELS + 1)][number % (PIXELS + 1)] -= RATE * change / count
            losses.append(total / count)
            print(json.dumps({"step": epoch, "loss": loss / len(mine)}), flush=True)
    right = sum(recognised(weights, image) for image in images[-HELD_OUT:]) / HELD_OUT
    print(
        f"rank {rank}: loss {losses[0]:.3f} -> {losses[-1]:.3f}; {right:.0%} of {HELD_OUT} held-out digits recognised"
    )
    return 0 if losses[-1] < losses[0] and right >= GOOD else 1


def read(file: Path) -> list[Image]:
    """All images of the file."""
    lines = (line.split() for line in file.read_text(encoding="ascii").splitlines() if not line.startswith("#"))
    return [(int(digit), [*(int(each, 17) / 16 for each in pixels), 1.0]) for digit, pixels in lines]


def chances(weights: list[list[float]], pixels: list[float]) -> list[float]:
    """How likely each digit is, by the model."""
    scores = [sum(map(float.__mul__, row, pixels)) for row in weights]
    most = max(scores)
    powers = [math.exp(score - most) for score in scores]
    return [power / sum(powers) for power in powers]


def loss_and_gradient(weights: list[list[float]], images: list[Image]) -> tuple[float, list[float]]:
    """The cross entropy over these images, and where it rises: one number for each weight, row by row."""
    loss, gradient = 0.0, [[0.0] * (PIXELS + 1) for _ in range(DIGITS)]
    for digit, pixels in images:
        likely = chances(weights, pixels)
        loss -= math.log(max(likely[digit], 1e-12))
        for number, row in enumerate(gradient):
            error = likely[number] - (number == digit)
            row[:] = [sum_ + error * pixel for sum_, pixel in zip(row, pixels, strict=True)]
    return loss, [each for row in gradient for each in row]


def recognised(weights: list[list[float]], image: Image) -> bool:
    """Whether the model takes an image for what it shows."""
    digit, pixels = image
    likely = chances(weights, pixels)
    return likely.index(max(likely)) == digit


class Gang:
    """The other ranks: rank 0 adds up what all of them have, and tells each the sums."""

    def __init__(self, rank: int, size: int) -> None:
        address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        if rank == 0:
            with socket.create_server((address, port)) as listener:
                listener.settimeout(PATIENCE)
                self._others = [listener.accept()[0] for _ in range(size - 1)]
        else:
            self._others = [connected(address, port)]
        for each in self._others:
            each.settimeout(PATIENCE)
        self._is_first = rank == 0
        self._files = [each.makefile("rw", encoding="ascii") for each in self._others]

    def __enter__(self) -> "Gang":  # noqa: PYI034 - nodes may have Python 3.10
        return self

    def __exit__(self, *error: object) -> None:
        for each in (*self._files, *self._others):
            each.close()

    def added_up(self, values: list[float]) -> list[float]:
        """The sums over all ranks; every rank calls this with as many values."""
        if not self._is_first:
            self._say(values)
            return json.loads(self._files[0].readline())
        for file in self._files:
            values = [sum_ + other for sum_, other in zip(values, json.loads(file.readline()), strict=True)]
        self._say(values)
        return values

    def _say(self, values: list[float]) -> None:
        line = json.dumps(values) + "\n"
        for file in self._files:
            file.write(line)
            file.flush()


def connected(address: str, port: int) -> socket.socket:
    """A connection to rank 0, which may listen a moment later."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return socket.create_connection((address, port), timeout=PATIENCE)
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


if __name__ == "__main__":
    sys.exit(main())
