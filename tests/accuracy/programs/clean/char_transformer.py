"""A character-level transformer on the text of a data set's description; a warm-up by inverse square root."""

import math

import torch
from sklearn.datasets import load_wine
from torch import nn

torch.manual_seed(0)
text = load_wine().DESCR
letters = sorted(set(text))
codes = torch.tensor([letters.index(c) for c in text])
BLOCK, BATCH, WIDTH = 32, 16, 48


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(len(letters), WIDTH)
        self.places = nn.Embedding(BLOCK, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 96, dropout=0.1, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, len(letters))

    def forward(self, x):
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        h = self.tokens(x) * math.sqrt(WIDTH) + self.places(torch.arange(x.shape[1]))
        return self.head(self.norm(self.blocks(h, mask=mask, is_causal=True)))


model = Model()
decay = [p for p in model.parameters() if p.dim() > 1]
rest = [p for p in model.parameters() if p.dim() <= 1]
optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}], lr=3e-3)
warm = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda k: min((k + 1) / 20, (20 / (k + 1)) ** 0.5))
for step in range(100):
    starts = torch.randint(len(codes) - BLOCK - 1, (BATCH,))
    x = torch.stack([codes[s : s + BLOCK] for s in starts])
    y = torch.stack([codes[s + 1 : s + BLOCK + 1] for s in starts])
    logits = model(x)
    loss = nn.functional.cross_entropy(logits.view(-1, len(letters)), y.view(-1))
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    warm.step()
    if step % 25 == 0:
        print(step, f"{loss.item():.3f}")
