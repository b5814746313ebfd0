"""Character-level transformer language model on a small built-in text."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_breast_cancer

torch.manual_seed(2)

TEXT = load_breast_cancer().DESCR
CHARS = sorted(set(TEXT))
STOI = {c: i for i, c in enumerate(CHARS)}
DATA = torch.tensor([STOI[c] for c in TEXT])
CUT = int(0.85 * len(DATA))
TRAIN, VALID = DATA[:CUT], DATA[CUT:]
CONTEXT, BATCH, DIM = 32, 16, 64


class CharLM(nn.Module):
    def __init__(self, vocab, dim=DIM, heads=4, layers=2):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.pos = nn.Embedding(CONTEXT, dim)
        layer = nn.TransformerEncoderLayer(
            dim, heads, dim_feedforward=4 * dim, dropout=0.0, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocab)

    def forward(self, idx):
        h = self.tok(idx) + self.pos(torch.arange(idx.size(1)))
        h = self.encoder(h)
        return self.head(self.norm(h))


def get_batch(src):
    start = torch.randint(len(src) - CONTEXT - 1, (BATCH,))
    x = torch.stack([src[s : s + CONTEXT] for s in start])
    y = torch.stack([src[s + 1 : s + CONTEXT + 1] for s in start])
    return x, y


def lm_loss(model, src):
    x, y = get_batch(src)
    logits = model(x)
    return F.cross_entropy(logits.reshape(-1, logits.size(-1)), y.reshape(-1))


@torch.no_grad()
def sample(model, prompt, n=60):
    model.eval()
    idx = torch.tensor([[STOI[c] for c in prompt]])
    for _ in range(n):
        logits = model(idx[:, -CONTEXT:])[:, -1]
        nxt = torch.multinomial(F.softmax(logits, -1), 1)
        idx = torch.cat([idx, nxt], 1)
    return "".join(CHARS[i] for i in idx[0])


def main():
    model = CharLM(len(CHARS))
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for epoch in range(8):
        model.train()
        total = 0.0
        for _ in range(25):
            loss = lm_loss(model, TRAIN)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            val = sum(lm_loss(model, VALID).item() for _ in range(5)) / 5
        print(f"epoch {epoch + 1} train {total / 25:.3f} valid {val:.3f} ppl {math.exp(val):.2f}")
    print(repr(sample(model, "The mean")))


if __name__ == "__main__":
    main()
