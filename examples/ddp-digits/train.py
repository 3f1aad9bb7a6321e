"""Train a small network on handwritten digits with DistributedDataParallel, one worker per rank, on CPUs.

PyTorch finds its peers by the environment that Muster sets (MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE). Exits non-zero
unless the loss fell, held-out digits are recognised and the parameters of all ranks are the same to the last bit.
"""

import hashlib
import os
import sys
from datetime import timedelta

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

EPOCHS = 20
BATCH = 32
"""Images per rank and step."""
HELD_OUT = 297
"""Images that no rank trains on."""
GOOD = 0.9
"""Share of held-out images that must be recognised."""


def main() -> int:
    """Train, compare, report: 0 when all is well."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(minutes=2))
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    images, labels = digits()
    model = DistributedDataParallel(nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)))
    # The same shuffle everywhere; each rank takes every size-th image. All shards have the same length, because a rank
    # that took one step more than the others would wait for them for ever.
    mine = torch.arange(rank, len(images) - HELD_OUT, size)[: (len(images) - HELD_OUT) // size]
    losses = train(model, images[mine], labels[mine])
    accuracy = recognised(model, images[-HELD_OUT:], labels[-HELD_OUT:])
    digests = all_digests(model)
    dist.barrier()  # nobody hangs up while another still reads
    dist.destroy_process_group()
    return verdict(rank, losses, accuracy, digests)


def digits() -> tuple[torch.Tensor, torch.Tensor]:
    """All images, 64 grey values each, and what they show, shuffled in the same way on every rank."""
    images, labels = load_digits(return_X_y=True)
    order = torch.randperm(len(images))
    return torch.tensor(images, dtype=torch.float32)[order] / 16, torch.tensor(labels)[order]


def train(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> list[float]:
    """The loss of each epoch, averaged over all ranks."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    losses = []
    for epoch in range(EPOCHS):
        total = torch.zeros(1)
        batches = list(zip(images.split(BATCH), labels.split(BATCH), strict=True))
        for batch, expected in batches:
            optimizer.zero_grad()
            loss = cross_entropy(model(batch), expected)
            loss.backward()  # averages the gradients over all ranks
            optimizer.step()
            total += loss.detach() / len(batches)
        dist.all_reduce(total)
        losses.append(total.item() / dist.get_world_size())
        if dist.get_rank() == 0 and epoch in {0, EPOCHS // 2, EPOCHS - 1}:
            print(f"epoch {epoch + 1:2} of {EPOCHS}: loss {losses[-1]:.4f}", flush=True)
    return losses


@torch.no_grad()
def recognised(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> float:
    """The share of images that the network names rightly."""
    return (model(images).argmax(dim=1) == labels).float().mean().item()


def all_digests(model: nn.Module) -> list[str]:
    """The SHA-256 of the parameters of every rank, by rank."""
    digest = hashlib.sha256()
    for name, values in sorted(model.state_dict().items()):
        digest.update(name.encode() + values.numpy().tobytes())
    digests: list[str] = [""] * dist.get_world_size()
    dist.all_gather_object(digests, digest.hexdigest())
    return digests


def verdict(rank: int, losses: list[float], accuracy: float, digests: list[str]) -> int:
    """Print what came out; the exit code says whether it is good."""
    same, fell, good = len(set(digests)) == 1, losses[-1] < losses[0], accuracy >= GOOD
    print(f"rank {rank}: parameters {digests[rank][:16]}, {'the same' if same else 'NOT the same'} on all ranks")
    if rank == 0:
        print(f"loss {losses[0]:.4f} -> {losses[-1]:.4f}; {accuracy:.1%} of {HELD_OUT} held-out digits recognised")
    return 0 if same and fell and good else 1


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    # DistributedDataParallel keeps the process group's threads for good, and those may crash a Python that shuts down
    # around them ("terminate called without an active exception"), so this one does not.
    os._exit(code)
