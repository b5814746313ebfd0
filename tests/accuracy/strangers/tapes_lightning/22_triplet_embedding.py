import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

N_IDS = 10


def identities(n, seed):
    """Noisy nonlinear views of N_IDS identities."""
    shared = torch.Generator().manual_seed(900)
    codes = torch.randn(N_IDS, 6, generator=shared)
    mix = torch.randn(9, 24, generator=shared)
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, N_IDS, (n,), generator=g)
    nuisance = 1.5 * torch.randn(n, 3, generator=g)
    x = torch.tanh(torch.cat([codes[y], nuisance], 1) @ mix / 2) + 0.3 * torch.randn(n, 24, generator=g)
    return x, y


def pairwise_distance(emb):
    sq = (emb.unsqueeze(0) - emb.unsqueeze(1)).pow(2).sum(dim=-1)
    return sq.sqrt()


def batch_hard_triplet_loss(emb, labels, margin=0.4):
    dist = pairwise_distance(emb)
    same = labels.unsqueeze(0) == labels.unsqueeze(1)
    hardest_pos = (dist * same).max(dim=1).values
    hardest_neg = (dist + 1e3 * same).min(dim=1).values
    return F.relu(hardest_pos - hardest_neg + margin).mean()


class EmbeddingNet(L.LightningModule):
    def __init__(self, dim=16, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Linear(24, 96), nn.ReLU(), nn.Linear(96, dim))
        self.bank = []

    def forward(self, x):
        return F.normalize(self.net(x), dim=1)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = batch_hard_triplet_loss(self(x), y)
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.bank.append((self(x), y))

    def on_validation_epoch_end(self):
        emb = torch.cat([e for e, _ in self.bank])
        y = torch.cat([t for _, t in self.bank])
        self.bank.clear()
        dist = torch.cdist(emb, emb)
        dist.fill_diagonal_(float("inf"))
        nearest = dist.argmin(dim=1)
        self.log("recall_at_1", (y[nearest] == y).float().mean())

    def on_train_epoch_end(self):
        if self.current_epoch % 2 == 1:
            m = self.trainer.callback_metrics
            print("epoch", self.current_epoch + 1,
                  "loss", round(m["train_loss"].item(), 4),
                  "recall@1", round(m["recall_at_1"].item(), 4))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)


def main():
    L.seed_everything(14, verbose=False)
    train = DataLoader(TensorDataset(*identities(3200, 1)), batch_size=64, shuffle=True)
    val = DataLoader(TensorDataset(*identities(1000, 2)), batch_size=500)
    trainer = L.Trainer(max_epochs=12, accelerator="cpu", logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(EmbeddingNet(), train, val)


if __name__ == "__main__":
    main()
