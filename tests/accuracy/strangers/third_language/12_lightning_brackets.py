# Is the bracket string well nested?  LSTM classifier in Lightning.
import random
import warnings

import lightning as L
import torch
import torch.nn.functional as F
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence
from torch.utils.data import DataLoader

warnings.filterwarnings("ignore")
PAIRS = {"(": ")", "[": "]"}
SYMBOLS = " ()[]"
L.seed_everything(31)


def balanced(n):
    out, stack = [], []
    while len(out) + len(stack) < n:
        if stack and random.random() < 0.45:
            out.append(stack.pop())
        else:
            b = random.choice("([")
            out.append(b)
            stack.append(PAIRS[b])
    return out + stack[::-1]


def is_balanced(s):
    stack = []
    for c in s:
        if c in PAIRS:
            stack.append(PAIRS[c])
        elif not stack or stack.pop() != c:
            return False
    return not stack


def example():
    s = balanced(random.choice(range(8, 26, 2)))
    label = random.random() < 0.5
    if not label:
        while is_balanced(s):
            i, j = random.sample(range(len(s)), 2)
            s[i], s[j] = s[j], s[i]
    return torch.tensor([SYMBOLS.index(c) for c in s]), float(label)


def collate(batch):
    lengths = torch.tensor([len(x) for x, _ in batch])
    x = nn.utils.rnn.pad_sequence([x for x, _ in batch], batch_first=True)
    return x, lengths, torch.tensor([y for _, y in batch])


class BracketChecker(L.LightningModule):
    def __init__(self, dim=16, hidden=48):
        super().__init__()
        self.embed = nn.Embedding(len(SYMBOLS), dim, padding_idx=0)
        self.lstm = nn.LSTM(dim, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 1)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(self.embed(x), lengths, batch_first=True, enforce_sorted=False)
        _, (h, _) = self.lstm(packed)
        return self.head(h[-1]).squeeze(-1)

    def step(self, batch, stage):
        x, lengths, y = batch
        logits = self(x, lengths)
        loss = F.binary_cross_entropy_with_logits(logits, y)
        acc = ((logits > 0) == (y > 0.5)).float().mean()
        self.log_dict({f"{stage}_loss": loss, f"{stage}_acc": acc}, on_epoch=True, on_step=False, batch_size=len(y))
        return loss

    def training_step(self, batch, batch_idx):
        return self.step(batch, "train")

    def validation_step(self, batch, batch_idx):
        self.step(batch, "val")

    def test_step(self, batch, batch_idx):
        self.step(batch, "test")

    def on_train_epoch_end(self):
        m = self.trainer.callback_metrics
        print(f"epoch {self.current_epoch:2d} train loss {m['train_loss']:.3f} val loss {m['val_loss']:.3f} "
              f"val acc {m['val_acc']:.3f}")

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=2e-3)


train, val, test = ([example() for _ in range(n)] for n in (4000, 800, 800))
stopper = EarlyStopping(monitor="val_acc", patience=3)
keeper = ModelCheckpoint(dirpath="/tmp/brackets", filename="best", monitor="val_acc", mode="max",
                         enable_version_counter=False)
trainer = L.Trainer(max_epochs=30, accelerator="cpu", callbacks=[stopper, keeper], logger=False,
                    enable_progress_bar=False, enable_model_summary=False)
model = BracketChecker()
trainer.fit(model, DataLoader(train, batch_size=64, shuffle=True, collate_fn=collate),
            DataLoader(val, batch_size=400, collate_fn=collate))
result = trainer.test(model, DataLoader(test, batch_size=400, collate_fn=collate), ckpt_path="best", verbose=False)[0]
print(f"stopped after epoch {trainer.current_epoch}, test accuracy {result['test_acc']:.4f}")
