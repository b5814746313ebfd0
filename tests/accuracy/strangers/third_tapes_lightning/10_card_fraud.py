"""Rare-event classification on tabular payments, keeping the best checkpoint."""
import tempfile

import lightning as L
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics.classification import BinaryAveragePrecision

L.seed_everything(33)

N, N_NUM, N_MERCHANT = 8000, 12, 30
merchant = torch.randint(0, N_MERCHANT, (N,))
numeric = torch.randn(N, N_NUM)
risk = torch.randn(N_MERCHANT)
score = (1.6 * numeric[:, 0] * numeric[:, 1] + 1.2 * numeric[:, 2]
         + 1.5 * risk[merchant] - 1.0 * numeric[:, 3].abs() + 0.5 * torch.randn(N))
fraud = (score > score.quantile(0.95)).float()


def loader(a, b, shuffle=False):
    return DataLoader(TensorDataset(numeric[a:b], merchant[a:b], fraud[a:b]),
                      batch_size=128, shuffle=shuffle)


class FraudNet(L.LightningModule):
    def __init__(self, lr=2e-3, pos_weight=5.0):
        super().__init__()
        self.save_hyperparameters()
        self.emb = nn.Embedding(N_MERCHANT, 6)
        self.net = nn.Sequential(
            nn.Linear(N_NUM + 6, 64), nn.ReLU(), nn.Dropout(0.1),
            nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
        self.register_buffer("pos_weight", torch.tensor(pos_weight))
        self.val_ap = BinaryAveragePrecision()
        self.test_ap = BinaryAveragePrecision()

    def forward(self, num, mer):
        return self.net(torch.cat([num, self.emb(mer)], 1)).squeeze(1)

    def training_step(self, batch, batch_idx):
        num, mer, y = batch
        loss = nn.functional.binary_cross_entropy_with_logits(
            self(num, mer), y, pos_weight=self.pos_weight)
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        num, mer, y = batch
        self.val_ap(self(num, mer).sigmoid(), y.long())
        self.log("val_ap", self.val_ap, on_epoch=True)

    def test_step(self, batch, batch_idx):
        num, mer, y = batch
        self.test_ap(self(num, mer).sigmoid(), y.long())
        self.log("test_ap", self.test_ap, on_epoch=True)

    def on_train_epoch_end(self):
        m = self.trainer.callback_metrics
        print(f"epoch {self.current_epoch:2d} loss {m['train_loss']:.4f} val_ap {m['val_ap']:.4f}")

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)


with tempfile.TemporaryDirectory() as folder:
    best = ModelCheckpoint(dirpath=folder, monitor="val_ap", save_top_k=1,
                           filename="{epoch}-{val_ap:.3f}")
    trainer = L.Trainer(max_epochs=15, accelerator="cpu", logger=False, callbacks=[best],
                        enable_progress_bar=False, enable_model_summary=False)
    model = FraudNet()
    trainer.fit(model, loader(0, 5000, shuffle=True), loader(5000, 6500))
    print("best checkpoint:", best.best_model_path.split("/")[-1])
    trainer.test(model, loader(6500, N), ckpt_path="best")
