import os
import tempfile
import warnings
import logging

import torch
import torch.nn as nn
import torch.nn.functional as F
import lightning as L
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
L.seed_everything(4)

TOPICS, PER_TOPIC, COMMON, LEN = 6, 60, 80, 16
VOCAB = TOPICS * PER_TOPIC + COMMON


def documents(n):
    y = torch.randint(TOPICS, (n,))
    x = torch.randint(TOPICS * PER_TOPIC, VOCAB, (n, LEN))
    topical = torch.rand(n, LEN) < 0.45
    x = torch.where(topical, y[:, None] * PER_TOPIC + torch.randint(PER_TOPIC, (n, LEN)), x)
    return x, y


class TextEncoder(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)

    def forward(self, x):
        return self.rnn(self.embed(x))[0]


class LanguageModel(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.encoder = TextEncoder()
        self.decoder = nn.Linear(48, VOCAB)

    def training_step(self, batch, _):
        (x,) = batch
        logits = self.decoder(self.encoder(x[:, :-1]))
        loss = F.cross_entropy(logits.reshape(-1, VOCAB), x[:, 1:].reshape(-1))
        self.log("lm_loss", loss, on_step=False, on_epoch=True)
        return loss

    def on_train_epoch_end(self):
        print("LM epoch", self.current_epoch, "loss %.4f" % self.trainer.callback_metrics["lm_loss"].item())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=5e-3)


class Classifier(L.LightningModule):
    def __init__(self, checkpoint):
        super().__init__()
        self.encoder = TextEncoder()
        self.head = nn.Linear(48, TOPICS)
        state = torch.load(checkpoint, map_location="cpu", weights_only=False)["state_dict"]
        self.encoder.load_state_dict(state, strict=False)

    def forward(self, x):
        return self.head(self.encoder(x).mean(1))

    def training_step(self, batch, _):
        x, y = batch
        return F.cross_entropy(self(x), y)

    def validation_step(self, batch, _):
        x, y = batch
        logits = self(x)
        self.log("val_loss", F.cross_entropy(logits, y))
        self.log("val_acc", (logits.argmax(1) == y).float().mean())

    def on_validation_epoch_end(self):
        if self.current_epoch % 3 == 2 and not self.trainer.sanity_checking:
            m = self.trainer.callback_metrics
            print(f"epoch {self.current_epoch} val loss {m['val_loss']:.4f} val acc {m['val_acc']:.4f}")

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


def trainer(epochs):
    return L.Trainer(max_epochs=epochs, accelerator="cpu", logger=False, enable_checkpointing=False,
                     enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0)


unlabelled, _ = documents(3200)
x_small, y_small = documents(160)
x_val, y_val = documents(600)

with tempfile.TemporaryDirectory() as tmp:
    lm = LanguageModel()
    t = trainer(4)
    t.fit(lm, DataLoader(TensorDataset(unlabelled), batch_size=64, shuffle=True))
    path = os.path.join(tmp, "lm.ckpt")
    t.save_checkpoint(path)
    clf = Classifier(path)
    trainer(12).fit(clf, DataLoader(TensorDataset(x_small, y_small), batch_size=16, shuffle=True),
                    DataLoader(TensorDataset(x_val, y_val), batch_size=600))
