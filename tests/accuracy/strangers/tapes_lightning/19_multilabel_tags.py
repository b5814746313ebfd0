import lightning.pytorch as pl
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

N_TAGS, N_FEAT = 8, 30


class TagDataset(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        w = torch.randn(N_FEAT, N_TAGS, generator=torch.Generator().manual_seed(123))
        self.features = torch.randn(n, N_FEAT, generator=g)
        score = self.features @ w / N_FEAT ** 0.5 + 0.2 * torch.randn(n, N_TAGS, generator=g)
        thresholds = torch.linspace(1.2, 1.8, N_TAGS)
        self.tags = (score > thresholds).float()

    def __len__(self):
        return len(self.features)

    def __getitem__(self, i):
        return self.features[i], self.tags[i]


class Tagger(pl.LightningModule):
    def __init__(self, pos_weight, lr=3e-3):
        super().__init__()
        self.lr = lr
        self.backbone = nn.Sequential(nn.Linear(N_FEAT, 64), nn.ReLU(), nn.Dropout(0.2))
        self.head = nn.Linear(64, N_TAGS)
        self.criterion = nn.BCEWithLogitsLoss(pos_weight=pos_weight)
        self.outputs = []

    def forward(self, x):
        return self.head(self.backbone(x))

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = self.criterion(self(x), y)
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        self.log("val_loss", self.criterion(logits, y))
        self.outputs.append((logits > 0, y > 0.5))

    def on_validation_epoch_end(self):
        pred = torch.cat([o[0] for o in self.outputs])
        true = torch.cat([o[1] for o in self.outputs])
        self.outputs.clear()
        tp = (pred & true).sum(0).float()
        f1 = 2 * tp / (pred.sum(0) + true.sum(0)).clamp(min=1)
        self.log("val_f1", f1.mean())

    def on_train_epoch_end(self):
        m = self.trainer.callback_metrics
        print(f"[{self.current_epoch}] train_loss={m['train_loss']:.4f} val_loss={m['val_loss']:.4f} "
              f"macro_f1={m['val_f1']:.4f}")

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.lr)
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=self.trainer.max_epochs)
        return [optimizer], [scheduler]


def run():
    pl.seed_everything(77, verbose=False)
    train, val = TagDataset(4000, seed=1), TagDataset(2000, seed=2)
    positives = train.tags.sum(dim=0)
    negatives = len(train) - positives
    model = Tagger(pos_weight=positives / negatives)
    trainer = pl.Trainer(max_epochs=8, accelerator="cpu", logger=False, enable_checkpointing=False,
                         enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0)
    trainer.fit(model,
                DataLoader(train, batch_size=64, shuffle=True),
                DataLoader(val, batch_size=500))


if __name__ == "__main__":
    run()
