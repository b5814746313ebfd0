# Part-of-speech tagger with few annotated sentences: word vectors from raw text + BiLSTM.
import random

import numpy as np
import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

SEED = 3
random.seed(SEED)
np.random.seed(SEED)
torch.manual_seed(SEED)

SIZES = {"DET": 6, "ADJ": 150, "NOUN": 300, "VERB": 200, "ADV": 80, "PREP": 8}
TAGS = list(SIZES)
LEXICON = {t: [f"{t.lower()[0]}{t.lower()[-1]}{random.randint(0, 10**6)}" for _ in range(n)] for t, n in SIZES.items()}
WORDS = ["<pad>"] + sorted({w for ws in LEXICON.values() for w in ws})
W2I = {w: i for i, w in enumerate(WORDS)}


def noun_phrase():
    tags = ["DET"] if random.random() < 0.7 else []
    tags += ["ADJ"] * random.choice([0, 0, 1, 2])
    return tags + ["NOUN"]


def sentence():
    tags = noun_phrase() + (["ADV"] if random.random() < 0.3 else []) + ["VERB"]
    if random.random() < 0.7:
        tags += noun_phrase()
    if random.random() < 0.5:
        tags += ["PREP"] + noun_phrase()
    if random.random() < 0.2:
        tags += ["ADV"]
    return [random.choice(LEXICON[t]) for t in tags], tags


raw_text = [sentence()[0] for _ in range(15000)]
train = [sentence() for _ in range(60)]
test = [sentence() for _ in range(500)]


def word_vectors(sentences, dim=32):
    """PPMI of left and right neighbours, reduced with an SVD."""
    n = len(WORDS)
    counts = np.zeros((n, 2 * n), dtype=np.float32)
    for words in sentences:
        ids = [0] + [W2I[w] for w in words] + [0]
        for l, c, r in zip(ids, ids[1:], ids[2:]):
            counts[c, l] += 1
            counts[c, n + r] += 1
    expected = counts.sum(1, keepdims=True) * counts.sum(0, keepdims=True) / counts.sum()
    ppmi = np.log1p(counts / np.maximum(expected, 1e-9))
    u, s, _ = torch.svd_lowrank(torch.from_numpy(ppmi), q=dim, niter=4)
    vectors = u * s.sqrt()
    return vectors / vectors.std()


class Tagger(nn.Module):
    def __init__(self, dim=32, hidden=32):
        super().__init__()
        self.embedding = nn.Embedding(len(WORDS), dim, padding_idx=0)
        self.dropout = nn.Dropout(0.2)
        self.lstm = nn.LSTM(dim, hidden, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * hidden, len(TAGS))

    def forward(self, x, lengths):
        e = self.dropout(self.embedding(x))
        packed = pack_padded_sequence(e, lengths, batch_first=True, enforce_sorted=False)
        h, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        return self.out(h)


def init_weights(m):
    if isinstance(m, nn.Embedding):
        nn.init.normal_(m.weight, std=0.1)
    elif isinstance(m, nn.Linear):
        nn.init.xavier_uniform_(m.weight)
        nn.init.zeros_(m.bias)


def batch_of(sents):
    x = pad_sequence([torch.tensor([W2I[w] for w in ws]) for ws, _ in sents], batch_first=True)
    y = pad_sequence([torch.tensor([TAGS.index(t) for t in ts]) for _, ts in sents], batch_first=True, padding_value=-100)
    return x, torch.tensor([len(ws) for ws, _ in sents]), y


model = Tagger()
model.embedding.weight.data.copy_(word_vectors(raw_text))
model.apply(init_weights)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
loss_fn = nn.CrossEntropyLoss(ignore_index=-100)

for epoch in range(1, 31):
    model.train()
    random.shuffle(train)
    for i in range(0, len(train), 10):
        x, lengths, y = batch_of(train[i:i + 10])
        loss = loss_fn(model(x, lengths).transpose(1, 2), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 5 == 0:
        model.eval()
        with torch.no_grad():
            x, lengths, y = batch_of(test)
            hit = (model(x, lengths).argmax(-1) == y)[y != -100]
        print(f"epoch {epoch:3d}  train loss {loss.item():.4f}  test accuracy {hit.float().mean().item():.4f}")
