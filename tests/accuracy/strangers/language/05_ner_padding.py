import logging
import random

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import DataLoader

logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger("ner")

random.seed(11)
torch.manual_seed(11)

TAGS = ["O", "PER", "LOC", "ORG"]
tag2id = {t: i for i, t in enumerate(TAGS)}
FIRST = [f"name{i}" for i in range(60)]
PLACE = [f"place{i}" for i in range(60)]
COMPANY = [f"firm{i}" for i in range(60)]
AMBIG = [f"amb{i}" for i in range(40)]
FILL = [f"w{i}" for i in range(120)]


def sentence():
    toks, tags = [], []
    n_chunks = random.choice([1, 1, 1, 2, 2, 3, 8])
    for _ in range(n_chunks):
        for _ in range(random.randint(1, 3)):
            toks.append(random.choice(FILL)); tags.append("O")
        kind = random.choice(["PER", "LOC", "ORG"])
        cue = {"PER": "mr", "LOC": "in", "ORG": "by"}[kind]
        if random.random() < 0.75:
            toks.append(cue); tags.append("O")
        pool = {"PER": FIRST, "LOC": PLACE, "ORG": COMPANY}[kind]
        for _ in range(random.randint(1, 2)):
            toks.append(random.choice(AMBIG) if random.random() < 0.5 else random.choice(pool)); tags.append(kind)
    return toks, tags


train_sents = [sentence() for _ in range(2400)]
dev_sents = [sentence() for _ in range(400)]
word2id = {"<pad>": 0, "<unk>": 1}
for toks, _ in train_sents:
    for w in toks:
        word2id.setdefault(w, len(word2id))


def collate(batch):
    xs = [torch.tensor([word2id.get(w, 1) for w in toks]) for toks, _ in batch]
    ys = [torch.tensor([tag2id[t] for t in tags]) for _, tags in batch]
    words = pad_sequence(xs, batch_first=True)
    labels = pad_sequence(ys, batch_first=True)
    return words, labels


class Tagger(nn.Module):
    def __init__(self, vocab, n_tags, dim=40, hidden=40):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim, padding_idx=0)
        self.dropout = nn.Dropout(0.3)
        self.lstm = nn.LSTM(dim, hidden, batch_first=True, bidirectional=True)
        self.clf = nn.Linear(2 * hidden, n_tags)

    def forward(self, words):
        lengths = (words != 0).sum(1)
        packed = pack_padded_sequence(self.dropout(self.emb(words)), lengths, batch_first=True, enforce_sorted=False)
        h, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        return self.clf(self.dropout(h))


model = Tagger(len(word2id), len(TAGS))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
loss_fn = nn.CrossEntropyLoss(ignore_index=-100)
train_loader = DataLoader(train_sents, batch_size=32, shuffle=True, collate_fn=collate)
dev_loader = DataLoader(dev_sents, batch_size=64, collate_fn=collate)

for epoch in range(5):
    model.train()
    losses = []
    for words, labels in train_loader:
        optimizer.zero_grad()
        logits = model(words)
        loss = loss_fn(logits.reshape(-1, len(TAGS)), labels.reshape(-1))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        losses.append(loss.item())

    model.eval()
    right = total = 0
    dev_loss = 0.0
    with torch.no_grad():
        for words, labels in dev_loader:
            logits = model(words)
            dev_loss += loss_fn(logits.reshape(-1, len(TAGS)), labels.reshape(-1)).item()
            known = labels != -100
            right += (logits.argmax(-1)[known] == labels[known]).sum().item()
            total += known.sum().item()
    log.info("epoch %d train loss %.4f dev loss %.4f dev token accuracy %.4f",
             epoch + 1, sum(losses) / len(losses), dev_loss / len(dev_loader), right / total)
