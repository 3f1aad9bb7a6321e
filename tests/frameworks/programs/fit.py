"""Fits a model with Lightning on so many devices of the CPU, and says how many ranks it found, and by what."""

import os
import sys

import lightning
import torch


class Line(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def training_step(self, batch: list[torch.Tensor]) -> torch.Tensor:
        return self.layer(batch[0]).square().mean()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.1)


data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(16, 4)))
trainer = lightning.Trainer(
    accelerator="cpu",
    devices=int(sys.argv[1]),
    num_nodes=int(os.environ["NNODES"]),
    strategy="ddp",
    max_steps=2,
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(Line(), data)
found_by = type(trainer.strategy.cluster_environment).__name__
line = f"rank {trainer.global_rank} of {trainer.world_size} after {trainer.global_step} steps, by {found_by}"
os.write(1, f"{line}\n".encode())
