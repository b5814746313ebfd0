"""Language identification on character sequences, Lightning module with a small CNN."""
import warnings

import lightning as L
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics.classification import MulticlassAccuracy

warnings.filterwarnings("ignore")
L.seed_everything(17)

N_LANG, N_CHARS, SEQ_LEN = 20, 28, 40


def make_corpus(n_per_lang):
    """Every 'language' is a random first-order Markov chain over characters."""
    rng = np.random.default_rng(17)
    xs, ys = [], []
    for lang in range(N_LANG):
        trans = rng.dirichlet(np.full(N_CHARS, 0.35), size=N_CHARS).cumsum(1)
        state = rng.integers(N_CHARS, size=n_per_lang)
        seq = np.empty((n_per_lang, SEQ_LEN), dtype=np.int64)
        for t in range(SEQ_LEN):
            seq[:, t] = state
            u = rng.random(n_per_lang)
            state = np.minimum((trans[state] < u[:, None]).sum(1), N_CHARS - 1)
        xs.append(seq)
        ys.append(np.full(n_per_lang, lang))
    x, y = np.concatenate(xs), np.concatenate(ys)
    perm = rng.permutation(len(x))
    return torch.from_numpy(x[perm]), torch.from_numpy(y[perm])


class LangID(L.LightningModule):
    def __init__(self, lr=3e-3):
        super().__init__()
        self.save_hyperparameters()
        self.emb = nn.Embedding(N_CHARS, 24)
        self.conv1 = nn.Conv1d(24, 96, kernel_size=3, padding=1)
        self.conv2 = nn.Conv1d(96, 96, kernel_size=3, padding=1)
        self.drop = nn.Dropout(0.2)
        self.out = nn.Linear(96, N_LANG)
        self.train_acc = MulticlassAccuracy(N_LANG, average="micro")
        self.val_acc = MulticlassAccuracy(N_LANG, average="micro")

    def forward(self, x):
        h = self.emb(x).transpose(1, 2)
        h = F.relu(self.conv1(h))
        h = F.relu(self.conv2(h)).mean(-1)
        return F.softmax(self.out(self.drop(h)), dim=1)

    def training_step(self, batch, batch_idx):
        x, y = batch
        pred = self(x)
        loss = F.cross_entropy(pred, y)
        self.train_acc(pred, y)
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        self.log("train_acc", self.train_acc, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        pred = self(x)
        self.val_acc(pred, y)
        self.log("val_loss", F.cross_entropy(pred, y))
        self.log("val_acc", self.val_acc)

    def on_train_epoch_end(self):
        m = self.trainer.callback_metrics
        print(f"epoch {self.current_epoch:2d} | train_loss {m['train_loss']:.4f} train_acc {m['train_acc']:.3f} "
              f"| val_loss {m['val_loss']:.4f} val_acc {m['val_acc']:.3f}")

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)


x, y = make_corpus(400)
n_val = 1600
train_loader = DataLoader(TensorDataset(x[n_val:], y[n_val:]), batch_size=64, shuffle=True)
val_loader = DataLoader(TensorDataset(x[:n_val], y[:n_val]), batch_size=400)

trainer = L.Trainer(max_epochs=8, accelerator="cpu", logger=False, enable_checkpointing=False,
                    enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0)
model = LangID()
trainer.fit(model, train_loader, val_loader)
result = trainer.validate(model, val_loader, verbose=False)[0]
print("final:", {k: round(v, 4) for k, v in result.items()})
