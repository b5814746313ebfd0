import argparse
import logging

import lightning.pytorch as pl
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


def build_corpus(n, vocab, length, n_classes, seed):
    """Bag-of-topic documents: each class prefers its own part of the vocabulary."""
    g = torch.Generator().manual_seed(seed)
    topic = torch.softmax(1.1 * torch.randn(n_classes, vocab, generator=torch.Generator().manual_seed(99)), dim=1)
    y = torch.randint(0, n_classes, (n,), generator=g)
    x = torch.multinomial(topic[y], length, replacement=True, generator=g)
    return x, y


class TextClassifier(pl.LightningModule):
    def __init__(self, vocab, n_classes, dim, max_lr, steps_per_epoch, epochs):
        super().__init__()
        self.save_hyperparameters()
        self.emb = nn.EmbeddingBag(vocab, dim, mode="mean")
        self.fc1 = nn.Linear(dim, 64)
        self.fc2 = nn.Linear(64, n_classes)

    def forward(self, x):
        return self.fc2(F.relu(self.fc1(self.emb(x))))

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        self.log("val_loss", F.cross_entropy(logits, y), batch_size=len(y))
        self.log("val_acc", (logits.argmax(1) == y).float().mean(), batch_size=len(y))

    def on_train_epoch_end(self):
        m = self.trainer.callback_metrics
        print(f"epoch {self.current_epoch:2d} train_loss {m['train_loss']:.4f} "
              f"val_loss {m['val_loss']:.4f} val_acc {m['val_acc']:.4f}")

    def configure_optimizers(self):
        opt = torch.optim.Adam(self.parameters(), lr=self.hparams.max_lr)
        sched = torch.optim.lr_scheduler.OneCycleLR(
            opt, max_lr=self.hparams.max_lr,
            total_steps=self.hparams.steps_per_epoch * self.hparams.epochs)
        return {"optimizer": opt, "lr_scheduler": sched}


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=8)
    p.add_argument("--batch-size", type=int, default=64)
    p.add_argument("--max-lr", type=float, default=1e-2)
    args = p.parse_args()

    pl.seed_everything(1, verbose=False)
    train = build_corpus(3200, vocab=300, length=20, n_classes=6, seed=1)
    val = build_corpus(1000, vocab=300, length=20, n_classes=6, seed=2)
    train_dl = DataLoader(TensorDataset(*train), batch_size=args.batch_size, shuffle=True)
    val_dl = DataLoader(TensorDataset(*val), batch_size=250)

    model = TextClassifier(300, 6, 32, args.max_lr, len(train_dl), args.epochs)
    trainer = pl.Trainer(max_epochs=args.epochs, accelerator="cpu", logger=False,
                         enable_checkpointing=False, enable_progress_bar=False,
                         enable_model_summary=False, num_sanity_val_steps=0)
    trainer.fit(model, train_dl, val_dl)
