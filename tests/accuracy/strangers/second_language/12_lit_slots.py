"""Slot tagging for a flight-booking assistant (BiLSTM tagger in Lightning)."""
import random
import warnings
from collections import Counter

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

warnings.filterwarnings("ignore")
L.seed_everything(8)

CITIES = "paris london tokyo berlin madrid lisbon oslo cairo lima delhi rome vienna prague dublin athens".split()
AIRLINES = "lufthansa iberia qantas emirates ryanair finnair".split()
DAYS = "monday tuesday wednesday thursday friday saturday sunday tomorrow".split()
CLASSES = ["economy", "business", "first"]
TAGS = ["PAD", "O", "FROM", "TO", "DAY", "AIRLINE", "CLASS"]
TEMPLATES = [
    "i want to fly from {FROM} to {TO} on {DAY}",
    "book a {CLASS} ticket to {TO} with {AIRLINE} please",
    "are there any {AIRLINE} flights leaving {FROM} for {TO} {DAY}",
    "show me the cheapest {CLASS} seat from {FROM}",
    "what does {AIRLINE} charge for {CLASS} on {DAY} to {TO}",
    "{TO} on {DAY} starting in {FROM} please",
    "can you find something to {TO} leaving {FROM} in {CLASS} class",
]
FILL = {"FROM": CITIES, "TO": CITIES, "DAY": DAYS, "AIRLINE": AIRLINES, "CLASS": CLASSES}


def make_utterance(rng):
    words, tags = [], []
    for w in rng.choice(TEMPLATES).split():
        if w.startswith("{"):
            words.append(rng.choice(FILL[w[1:-1]]))
            tags.append(w[1:-1])
        else:
            words.append(w)
            tags.append("O")
    if rng.random() < 0.3:
        words, tags = ["hello"] + words, ["O"] + tags
    return words, tags


class SlotDataset(Dataset):
    def __init__(self, utterances, vocab=None):
        if vocab is None:
            counts = Counter(w for words, _ in utterances for w in words)
            vocab = {"<pad>": 0, "<unk>": 1}
            for w, _ in counts.most_common():
                vocab[w] = len(vocab)
        self.vocab = vocab
        self.samples = [([vocab.get(w, 1) for w in words], [TAGS.index(t) for t in tags])
                        for words, tags in utterances]

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, i):
        return self.samples[i]


def pad_batch(batch):
    n = max(len(x) for x, _ in batch)
    x = torch.tensor([x + [0] * (n - len(x)) for x, _ in batch])
    y = torch.tensor([y + [0] * (n - len(y)) for _, y in batch])
    return x, y


class Tagger(L.LightningModule):
    def __init__(self, vocab_size, dim=32, hidden=32):
        super().__init__()
        self.emb = nn.Embedding(vocab_size, dim, padding_idx=0)
        self.lstm = nn.LSTM(dim, hidden, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * hidden, len(TAGS))
        self.loss = nn.CrossEntropyLoss(ignore_index=0)

    def forward(self, x):
        return self.out(self.lstm(self.emb(x))[0])

    def training_step(self, batch, i):
        x, y = batch
        loss = self.loss(self(x).flatten(0, 1), y.flatten())
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, i):
        x, y = batch
        logits = self(x)
        real = y != 0
        slots = real & (y != 1)
        ok = logits.argmax(-1) == y
        self.log("val_loss", self.loss(logits.flatten(0, 1), y.flatten()))
        self.log("val_token_acc", ok[real].float().mean())
        self.log("val_slot_acc", ok[slots].float().mean())

    def on_train_epoch_end(self):
        print(f"epoch {self.current_epoch} " + " ".join(
            f"{k}: {v.item():.4f}" for k, v in self.trainer.callback_metrics.items()))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=2e-3)


rng = random.Random(8)
utterances = [make_utterance(rng) for _ in range(4000)]
train_set = SlotDataset(utterances[:3200])
val_set = SlotDataset(utterances[3200:])
train_loader = DataLoader(train_set, batch_size=32, shuffle=True, collate_fn=pad_batch)
val_loader = DataLoader(val_set, batch_size=100, collate_fn=pad_batch)
print(f"{len(train_set)} training utterances, {len(val_set)} for validation, vocabulary {len(train_set.vocab)}")

model = Tagger(len(train_set.vocab))
trainer = L.Trainer(max_epochs=5, accelerator="cpu", logger=False, enable_checkpointing=False,
                    enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0)
trainer.fit(model, train_loader, val_loader)
