import random
import warnings

import lightning as L
import torch
import torch.nn as nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

warnings.filterwarnings("ignore")
L.seed_everything(29)

PLUS = "delicious friendly cozy fresh generous quick charming perfect".split()
MINUS = "cold rude dirty stale tiny slow noisy overpriced".split()
NEUTRAL = ("we went there on a tuesday with friends the waiter brought pasta and soup then coffee table was near "
           "window service menu had many things my aunt ordered fish street parking").split()
VOCAB = {w: i for i, w in enumerate(["<pad>"] + PLUS + MINUS + NEUTRAL + ["but"])}


def make_review(rng):
    """Mixed reviews: what comes after 'but' is what counts."""
    n = min(120, max(4, int(rng.lognormvariate(2.6, 0.8))))
    words = [rng.choice(NEUTRAL) for _ in range(n)]
    positive = rng.random() < 0.5
    first, second = (MINUS, PLUS) if positive else (PLUS, MINUS)
    if rng.random() < 0.5:
        cut = rng.randint(1, n - 1)
        words = words[:cut] + [rng.choice(first), "but"] + words[cut:] + [rng.choice(second)]
    else:
        words.insert(rng.randint(0, n), rng.choice(second))
    return torch.tensor([VOCAB[w] for w in words]), int(positive)


def collate(batch):
    seqs, labels = zip(*batch)
    lengths = torch.tensor([len(s) for s in seqs])
    return pad_sequence(seqs, batch_first=True), lengths, torch.tensor(labels)


class ReviewClassifier(L.LightningModule):
    def __init__(self, vocab_size, emb=32, hidden=64):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, emb, padding_idx=0)
        self.rnn = nn.LSTM(emb, hidden, batch_first=True)
        self.classifier = nn.Sequential(nn.Dropout(0.1), nn.Linear(hidden, 2))
        self.loss_fn = nn.CrossEntropyLoss()

    def forward(self, tokens, lengths):
        output, _ = self.rnn(self.embedding(tokens))
        last = output[:, -1]
        return self.classifier(last)

    def step(self, batch, stage):
        tokens, lengths, labels = batch
        logits = self(tokens, lengths)
        loss = self.loss_fn(logits, labels)
        acc = (logits.argmax(1) == labels).float().mean()
        self.log_dict({f"{stage}_loss": loss, f"{stage}_acc": acc}, on_step=False, on_epoch=True,
                      batch_size=len(labels))
        return loss

    def training_step(self, batch, _):
        return self.step(batch, "train")

    def validation_step(self, batch, _):
        self.step(batch, "val")

    def test_step(self, batch, _):
        self.step(batch, "test")

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=3e-3, weight_decay=1e-3)


class Printer(L.Callback):
    def on_train_epoch_end(self, trainer, module):
        print(f"[{trainer.current_epoch}] " + "  ".join(f"{k}={v:.3f}" for k, v in
                                                        sorted(trainer.callback_metrics.items())))


rng = random.Random(29)
data = [make_review(rng) for _ in range(6400)]
train_dl = DataLoader(data[:4800], batch_size=64, shuffle=True, collate_fn=collate)
val_dl = DataLoader(data[4800:5600], batch_size=100, collate_fn=collate)
test_dl = DataLoader(data[5600:], batch_size=100, collate_fn=collate)

model = ReviewClassifier(len(VOCAB))
trainer = L.Trainer(max_epochs=5, accelerator="cpu", gradient_clip_val=1.0, callbacks=[Printer()], logger=False,
                    enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
trainer.fit(model, train_dl, val_dl)
print(trainer.test(model, test_dl, verbose=False))
