import logging
import math
import warnings

import torch
import torch.nn as nn
import torch.nn.functional as F
import lightning as L
from torch.utils.data import DataLoader, Dataset

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore")


class MarkovText(Dataset):
    """token streams where the next token depends on the last one and on the parity of the one before"""

    def __init__(self, n, length, vocab, seed):
        table = torch.randperm(2 * vocab, generator=torch.Generator().manual_seed(0)).view(vocab, 2) % vocab
        g = torch.Generator().manual_seed(seed)
        x = torch.randint(vocab, (n, length + 1), generator=g)
        for t in range(2, length + 1):
            keep = torch.rand(n, generator=g) < 0.1
            x[:, t] = torch.where(keep, x[:, t], table[x[:, t - 1], x[:, t - 2] % 2])
        self.x = x

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i, :-1], self.x[i, 1:]


class TrigramLM(L.LightningModule):
    def __init__(self, vocab=32, dim=64, lr=3e-4):
        super().__init__()
        self.save_hyperparameters()
        self.embedding = nn.Embedding(vocab, dim)
        self.block = nn.Sequential(nn.Linear(2 * dim, 128), nn.GELU(), nn.Linear(128, dim))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocab)
        self.history = []

    def forward(self, x):
        e = self.embedding(x)
        prev = F.pad(e, (0, 0, 1, 0))[:, :-1]
        h = e + self.block(torch.cat([e, prev], dim=-1))
        return self.head(self.norm(h))

    def _loss(self, batch):
        x, y = batch
        return F.cross_entropy(self(x).float().flatten(0, 1), y.flatten())

    def training_step(self, batch, batch_idx):
        loss = self._loss(batch)
        self.log("train_loss", loss.float(), on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        self.log("val_loss", self._loss(batch).float())

    def on_validation_epoch_end(self):
        self.history.append(self.trainer.callback_metrics["val_loss"].item())

    def on_train_epoch_end(self):
        tl = self.trainer.callback_metrics["train_loss"].item()
        print(f"epoch {self.current_epoch:2d} train {tl:.4f} val {self.history[-1]:.4f} "
              f"ppl {math.exp(self.history[-1]):.2f}")

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)


L.seed_everything(9)
train_loader = DataLoader(MarkovText(3200, 24, 32, 1), batch_size=32, shuffle=True)
val_loader = DataLoader(MarkovText(400, 24, 32, 2), batch_size=200)
model = TrigramLM()
trainer = L.Trainer(
    max_epochs=5,
    accelerator="cpu",
    precision="bf16-true",
    gradient_clip_val=1.0,
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
    num_sanity_val_steps=0,
)
trainer.fit(model, train_loader, val_loader)
print("best val loss", round(min(model.history), 4))
