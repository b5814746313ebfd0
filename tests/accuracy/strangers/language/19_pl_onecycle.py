import logging
import warnings

import lightning.pytorch as pl
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class SpamData(pl.LightningDataModule):
    vocab, length = 300, 24

    def __init__(self, batch_size=32):
        super().__init__()
        self.batch_size = batch_size

    def _make(self, n, seed):
        torch.manual_seed(seed)
        y = (torch.rand(n) < 0.4).long()
        x = torch.randint(60, self.vocab, (n, self.length))
        x = torch.where(torch.rand(n, self.length) < 0.12, torch.randint(60, (n, self.length)), x)
        spam = (torch.rand(n, self.length) < 0.2) & (y[:, None] == 1)
        return TensorDataset(torch.where(spam, torch.randint(30, (n, self.length)), x), y)

    def setup(self, stage=None):
        self.train_set, self.val_set = self._make(2560, 1), self._make(500, 2)

    def train_dataloader(self):
        return DataLoader(self.train_set, batch_size=self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val_set, batch_size=250)


class SpamModel(pl.LightningModule):
    def __init__(self, vocab, max_lr=3e-3, dim=32):
        super().__init__()
        self.save_hyperparameters()
        self.embed = nn.Embedding(vocab, dim)
        self.drop = nn.Dropout(0.4)
        self.lstm = nn.LSTM(dim, dim, batch_first=True, bidirectional=True)
        self.head = nn.Sequential(nn.Dropout(0.4), nn.Linear(2 * dim, 2))
        self.loss = nn.CrossEntropyLoss()

    def forward(self, x):
        h, _ = self.lstm(self.drop(self.embed(x)))
        return self.head(h.amax(dim=1))

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = self.loss(self(x), y)
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        self.log("val_loss", self.loss(logits, y))
        self.log("val_acc", (logits.argmax(-1) == y).float().mean())

    def on_train_epoch_end(self):
        m = self.trainer.callback_metrics
        lr = self.trainer.optimizers[0].param_groups[0]["lr"]
        print(f"epoch {self.current_epoch} lr {lr:.2e} train_loss {m['train_loss']:.4f} "
              f"val_loss {m['val_loss']:.4f} val_acc {m['val_acc']:.4f}")

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.max_lr, weight_decay=0.01)
        scheduler = torch.optim.lr_scheduler.OneCycleLR(
            optimizer, max_lr=self.hparams.max_lr,
            total_steps=self.trainer.estimated_stepping_batches, cycle_momentum=False)
        return {"optimizer": optimizer, "lr_scheduler": scheduler}


if __name__ == "__main__":
    pl.seed_everything(12)
    dm = SpamData()
    model = SpamModel(dm.vocab)
    trainer = pl.Trainer(max_epochs=4, accelerator="cpu", logger=False, enable_checkpointing=False,
                         enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0,
                         gradient_clip_val=1.0)
    trainer.fit(model, dm)
    result = trainer.validate(model, dm, verbose=False)[0]
    print("final", {k: round(v, 4) for k, v in result.items()})
