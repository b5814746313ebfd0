"""Training fed by worker processes, forked and spawned, that call models themselves; knows nothing of the agent."""

import hashlib

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Augmented(Dataset):
    """Items made by a small model, one of each worker, which is trained in doing so."""

    def __init__(self, with_optimizer):
        self.with_optimizer = with_optimizer
        self.model = None

    def train(self, x):
        if self.model is None:
            torch.set_num_threads(1)
            self.model = nn.Linear(5, 5)
            if self.with_optimizer:
                self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.model.zero_grad()
        nn.MSELoss()(self.model(x), x).backward()
        if self.with_optimizer:
            self.optimizer.step()
        else:
            with torch.no_grad():
                for parameter in self.model.parameters():
                    parameter -= 0.1 * parameter.grad

    def __len__(self):
        return 8

    def __getitem__(self, index):
        x = torch.randn(5, generator=torch.Generator().manual_seed(index))
        self.train(x)
        return self.model(x).detach(), index % 3


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for method in ("fork", "spawn"):
        loader = DataLoader(
            Augmented(method == "fork"),
            batch_size=4,
            num_workers=2,
            multiprocessing_context=method,
            persistent_workers=True,
        )
        for _ in range(2):
            for x, y in loader:
                optimizer.zero_grad()
                nn.CrossEntropyLoss()(model(x), y).backward()
                optimizer.step()
    print(hashlib.sha1(b"".join(p.detach().numpy().tobytes() for p in model.parameters())).hexdigest())


if __name__ == "__main__":
    main()
