import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split


class Residual(nn.Module):
    def __init__(self, width, p):
        super().__init__()
        self.lin = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.p = p

    def forward(self, x):
        h = F.gelu(self.lin(self.norm(x)))
        h = F.dropout(h, p=self.p)
        return x + h


class ResMLP(nn.Module):
    def __init__(self, n_in=64, width=64, depth=3, n_out=10, p=0.5):
        super().__init__()
        self.inp = nn.Linear(n_in, width)
        self.blocks = nn.ModuleList(Residual(width, p) for _ in range(depth))
        self.out = nn.Linear(width, n_out)
        self.p = p

    def forward(self, x):
        x = F.gelu(self.inp(x))
        for blk in self.blocks:
            x = blk(x)
        x = F.dropout(x, p=self.p)
        return self.out(x)


class Trainer:
    def __init__(self, model, lr=1e-3, batch_size=64):
        self.model = model
        self.opt = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.01)
        self.bs = batch_size

    def fit(self, x, y, x_val, y_val, epochs):
        for e in range(epochs):
            self.model.train()
            total = 0.0
            for idx in torch.randperm(len(x)).split(self.bs):
                loss = F.cross_entropy(self.model(x[idx]), y[idx])
                self.opt.zero_grad(set_to_none=True)
                loss.backward()
                self.opt.step()
                total += loss.item() * len(idx)
            if e % 3 == 2:
                loss, acc = self.score(x_val, y_val)
                print(f"epoch {e + 1}: train {total / len(x):.4f}  val {loss:.4f}  acc {acc:.4f}")

    @torch.no_grad()
    def score(self, x, y):
        self.model.eval()
        logits = self.model(x)
        return F.cross_entropy(logits, y).item(), (logits.argmax(-1) == y).float().mean().item()


if __name__ == "__main__":
    torch.manual_seed(9)
    d = load_digits()
    X = torch.tensor((d.data - 4.9) / 6.0, dtype=torch.float32)
    Y = torch.tensor(d.target)
    itr, iva = train_test_split(torch.arange(len(Y)), test_size=0.3, random_state=9)
    trainer = Trainer(ResMLP())
    trainer.fit(X[itr], Y[itr], X[iva], Y[iva], epochs=15)
    print("final val accuracy %.4f" % trainer.score(X[iva], Y[iva])[1])
