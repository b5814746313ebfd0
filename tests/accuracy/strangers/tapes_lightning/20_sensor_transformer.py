import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

WINDOW = 24


def make_windows(n, seed):
    """Sensor windows with their own offset; every reading is marked as spike or not."""
    g = torch.Generator().manual_seed(seed)
    offset = 1.5 * torch.randn(n, 1, generator=g)
    spikes = (torch.rand(n, WINDOW, generator=g) < 0.2).float()
    x = offset + 0.25 * torch.randn(n, WINDOW, generator=g) + 1.2 * spikes
    return x.unsqueeze(-1), spikes


class SpikeTagger(L.LightningModule):
    def __init__(self, d_model=32, n_heads=4, n_layers=2, lr=1e-3):
        super().__init__()
        self.lr = lr
        self.proj = nn.Linear(1, d_model)
        self.pos = nn.Parameter(0.02 * torch.randn(1, WINDOW, d_model))
        layer = nn.TransformerEncoderLayer(
            d_model, n_heads, dim_feedforward=64, dropout=0.0)
        self.encoder = nn.TransformerEncoder(layer, n_layers)
        self.out = nn.Linear(d_model, 1)

    def forward(self, x):
        h = self.proj(x) + self.pos
        h = self.encoder(h)
        return self.out(h).squeeze(-1)

    def step(self, batch):
        x, y = batch
        logits = self(x)
        loss = F.binary_cross_entropy_with_logits(logits, y)
        pred = logits > 0
        tp = (pred & (y > 0.5)).sum()
        f1 = 2 * tp / (pred.sum() + y.sum()).clamp(min=1)
        return loss, f1

    def training_step(self, batch, batch_idx):
        loss, _ = self.step(batch)
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        loss, f1 = self.step(batch)
        self.log("val_loss", loss)
        self.log("val_f1", f1)

    def on_train_epoch_end(self):
        logs = self.trainer.callback_metrics
        print(f"Epoch {self.current_epoch}:", ", ".join(f"{k} {v:.4f}" for k, v in sorted(logs.items())))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.lr)


def cli_main():
    L.seed_everything(55, verbose=False)
    train_loader = DataLoader(TensorDataset(*make_windows(1920, 0)), batch_size=32, shuffle=True, drop_last=True)
    val_loader = DataLoader(TensorDataset(*make_windows(512, 1)), batch_size=128)
    trainer = L.Trainer(
        max_epochs=5,
        accelerator="cpu",
        gradient_clip_val=1.0,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    trainer.fit(SpikeTagger(), train_loader, val_loader)


if __name__ == "__main__":
    cli_main()
