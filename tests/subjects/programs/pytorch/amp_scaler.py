"""Mixed precision with a gradient scaler and accumulation over two batches; overflows skip updates at the start."""

import torch
import torch.nn as nn
from torch.amp import GradScaler, autocast
from torch.utils.data import DataLoader, TensorDataset


class ResidualMLP(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.stem = nn.Linear(10, width)
        self.mid = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        h = torch.relu(self.stem(x))
        return self.head(self.norm(h + torch.relu(self.mid(h)))).squeeze(-1)


def main():
    torch.manual_seed(6)
    x = torch.randn(256, 10)
    y = (x[:, 0] - x[:, 1] * x[:, 2] > 0).float()
    loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
    model = ResidualMLP()
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    scaler = GradScaler("cpu", init_scale=2.0**21, growth_interval=4)
    accumulate, update = 2, 0
    for epoch in range(3):
        for i, (inputs, targets) in enumerate(loader):
            with autocast("cpu", dtype=torch.float16):
                loss = criterion(model(inputs), targets)
            scaler.scale(loss / accumulate).backward()
            if (i + 1) % accumulate:
                continue
            scaler.unscale_(optimizer)
            norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            before = scaler.get_scale()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
            skipped = " (skipped)" if scaler.get_scale() < before else ""
            print(f"update {update} loss {loss.item():.4f} norm {norm:.4f} scale {before:.0f}{skipped}")
            update += 1
        model.eval()
        with torch.no_grad(), autocast("cpu", dtype=torch.bfloat16):
            accuracy = ((model(x) > 0).float() == y).float().mean()
        model.train()
        print(f"epoch {epoch} accuracy {accuracy:.3f}")
    torch.save({"model": model.state_dict(), "scaler": scaler.state_dict()}, "amp.pt")
    print(torch.rand(1).item())


if __name__ == "__main__":
    main()
