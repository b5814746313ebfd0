"""A PyTorch training with a hook that the script makes, as for the old library: python pytorch_loop.py OUT_DIR."""

import sys

import smdebug.pytorch as smd
import torch
from smdebug import modes
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(6, 8)
        self.relu = nn.ReLU()
        self.out = nn.Linear(8, 3)

    def forward(self, x):
        return self.out(self.relu(self.hidden(x)))


def make_hook(out_dir):
    steps = {
        modes.TRAIN: smd.SaveConfigMode(save_interval=2),
        modes.EVAL: smd.SaveConfigMode(save_interval=1),
    }
    return smd.Hook(
        out_dir=out_dir,
        save_config=smd.SaveConfig(steps),
        include_collections=["weights", "biases", "gradients", "relu"],
    )


def train(model, criterion, optimizer, loader, hook):
    model.train()
    hook.set_mode(modes.TRAIN)
    for number, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        if number == 0:
            hook.save_scalar("first_loss", loss.item())
    return loss.item()


def evaluate(model, criterion, loader, hook):
    model.eval()
    hook.set_mode(modes.EVAL)
    with torch.no_grad():
        losses = [criterion(model(x), y).item() for x, y in loader]
    return sum(losses) / len(losses)


def main(out_dir):
    torch.manual_seed(7)
    data = TensorDataset(torch.randn(32, 6), torch.randint(0, 3, (32,)))
    loader = DataLoader(data, batch_size=8)
    model, criterion = Net(), nn.CrossEntropyLoss()
    hook = make_hook(out_dir)
    hook.get_collection("relu").add_module_tensors(model.relu, inputs=True, outputs=True)
    hook.register_module(model)
    hook.register_loss(criterion)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(2):
        print(train(model, criterion, optimizer, loader, hook), evaluate(model, criterion, loader, hook))
    hook.close()


if __name__ == "__main__":
    main(sys.argv[1])
