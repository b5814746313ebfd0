"""A recurrent classifier compiled by TorchScript and exported with its weights; fails where it is not good enough."""

import os
import sys
import time
import warnings

import torch
from torch import Tensor, nn

warnings.filterwarnings("ignore", category=DeprecationWarning)


class Cell(nn.Module):
    def __init__(self, inputs: int, hidden: int):
        super().__init__()
        self.ih = nn.Linear(inputs, hidden)
        self.hh = nn.Linear(hidden, hidden, bias=False)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        return torch.tanh(self.ih(x) + self.hh(h))


class ParityRNN(nn.Module):
    def __init__(self, hidden: int = 12):
        super().__init__()
        self.hidden = hidden
        self.cell = Cell(1, hidden)
        self.out = nn.Linear(hidden, 2)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros(x.size(0), self.hidden)
        for t in range(x.size(1)):
            h = self.cell(x[:, t], h)
        return self.out(h)


def main() -> None:
    torch.manual_seed(64)
    model = torch.jit.script(ParityRNN())
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Rprop(model.parameters(), lr=0.01)
    bits = torch.randint(0, 2, (64, 5, 1)).float()
    parity = bits.sum((1, 2)).long() % 2
    for iteration in range(15):
        model.train()
        optimizer.zero_grad()
        loss = criterion(model(bits), parity)
        loss.backward()
        optimizer.step()
        print(f"iteration {iteration:2d} loss {loss.item():.5f}")
    model.eval()
    with torch.no_grad():
        accuracy = (model(bits).argmax(1) == parity).float().mean().item()
    torch.save(model.state_dict(), "parity.pt")
    print("accuracy", accuracy, "next", torch.rand(1).item())
    reloaded = ParityRNN()
    reloaded.load_state_dict(torch.load("parity.pt"))
    print("same after loading:", torch.equal(reloaded(bits), model(bits)))
    if accuracy < 1:
        sys.stdout.flush()
        print("accuracy is below 1, giving up", file=sys.stderr, flush=True)
        # What reads the log needs a moment.
        time.sleep(1)
        os._exit(5)


if __name__ == "__main__":
    main()
