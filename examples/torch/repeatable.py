"""A training run whose losses have the same bits on any number of ranks.

    torchrun --nproc-per-node 1 examples/torch/repeatable.py
    torchrun --nproc-per-node 8 examples/torch/repeatable.py

Both print the same lines. With ``--plain`` gradients are averaged as usual, and the losses differ.
"""

import sys

import torch
import warpfold
import warpfold.torch
from torch import distributed, nn

STEPS, BATCH, MICRO = 12, 64, 4


def main(plain):
    # The bits of a micro-batch do not depend on how many cores a rank has.
    torch.set_num_threads(1)
    distributed.init_process_group("gloo")
    rank, ranks = distributed.get_rank(), distributed.get_world_size()
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 1))
    parameters = list(model.parameters())
    optimizer = torch.optim.SGD(parameters, lr=0.1, momentum=0.9)
    x = torch.randn(STEPS, BATCH, 16)
    y = (x.sum(-1, keepdim=True) / 4).sin()

    for step in range(STEPS):
        # Micro-batches have one size for any number of ranks, which share them.
        losses = warpfold.Partial("mean")
        gradients = [warpfold.Partial("mean", axis=0) for _ in parameters]
        rounded, count = [torch.zeros_like(p) for p in parameters], 0
        for first in range(rank * MICRO, BATCH, ranks * MICRO):
            rows = slice(first, first + MICRO)
            each = (model(x[step, rows]) - y[step, rows]).square()
            losses.absorb(each.detach())
            count += 1
            for i, gradient in enumerate(torch.autograd.grad(each.mean(), parameters)):
                rounded[i] += gradient
                gradients[i].absorb(gradient.unsqueeze(0))
        for p, gradient, total in zip(parameters, gradients, rounded):
            if plain:
                distributed.all_reduce(total)
                p.grad = total / (BATCH // MICRO)
            else:
                p.grad = warpfold.torch.all_reduce(gradient)
        # Every rank has all gradients, so that the norm needs no message.
        norm = warpfold.Partial("norm2")
        for p in parameters:
            norm.absorb(p.grad.flatten())
        for p in parameters:
            p.grad *= min(1.0, 1.0 / norm.finish())
        optimizer.step()
        loss = warpfold.torch.all_reduce(losses).item()
        if rank == 0:
            print(f"step {step:2}  loss {loss:.7f}  {loss.hex()}  norm {norm.finish().hex()}")
    distributed.destroy_process_group()


if __name__ == "__main__":
    main("--plain" in sys.argv)
