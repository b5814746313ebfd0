"""Tiny character GPT trained on a made-up town chronicle."""
import math
import random
import re

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(1337)
rng = random.Random(1337)

people = ["the baker", "the miller", "a sailor", "old martha", "the priest", "a young farmer", "my sister"]
verbs = ["sold", "bought", "carried", "found", "painted", "lost"]
things = ["bread", "a red boat", "six apples", "the silver key", "a wooden chair", "some honey", "two lamps"]
places = ["at the market", "by the river", "near the old mill", "in the garden", "behind the church"]
days = ["monday", "tuesday", "thursday", "friday", "sunday"]


def sentence():
    s = f"on {rng.choice(days)} {rng.choice(people)} {rng.choice(verbs)} {rng.choice(things)}"
    if rng.random() < 0.6:
        s += " " + rng.choice(places)
    return s + ".\n"


text = "".join(sentence() for _ in range(6000))
chars = sorted(set(text))
stoi = {c: i for i, c in enumerate(chars)}
itos = {i: c for c, i in stoi.items()}
data = torch.tensor([stoi[c] for c in text])
n = int(0.9 * len(data))
train_data, val_data = data[:n], data[n:]
block_size, batch_size = 64, 32
n_embd, n_head, n_layer = 64, 4, 2
max_iters, lr = 500, 2e-3


def get_batch(split):
    d = train_data if split == "train" else val_data
    ix = torch.randint(len(d) - block_size - 1, (batch_size,))
    x = torch.stack([d[i:i + block_size] for i in ix])
    y = torch.stack([d[i + 1:i + block_size + 1] for i in ix])
    return x, y


class SelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(n_embd, 3 * n_embd)
        self.proj = nn.Linear(n_embd, n_embd)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(x).split(n_embd, dim=2)
        q, k, v = (t.view(B, T, n_head, C // n_head).transpose(1, 2) for t in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v)
        return self.proj(y.transpose(1, 2).reshape(B, T, C))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.attn = SelfAttention()
        self.mlp = nn.Sequential(nn.Linear(n_embd, 4 * n_embd), nn.GELU(), nn.Linear(4 * n_embd, n_embd))

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(len(chars), n_embd)
        self.pos = nn.Embedding(block_size, n_embd)
        self.blocks = nn.Sequential(*[Block() for _ in range(n_layer)])
        self.ln_f = nn.LayerNorm(n_embd)
        self.head = nn.Linear(n_embd, len(chars))
        for emb in (self.tok, self.pos):
            nn.init.normal_(emb.weight, std=0.02)

    def forward(self, idx, targets=None):
        x = self.tok(idx) + self.pos(torch.arange(idx.size(1)))
        logits = self.head(self.ln_f(self.blocks(x)))
        if targets is None:
            return logits, None
        return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))

    @torch.no_grad()
    def generate(self, idx, steps):
        for _ in range(steps):
            logits, _ = self(idx[:, -block_size:])
            probs = F.softmax(logits[:, -1], dim=-1)
            idx = torch.cat([idx, torch.multinomial(probs, 1)], dim=1)
        return idx


@torch.no_grad()
def estimate_loss(model):
    model.eval()
    out = {s: sum(model(*get_batch(s))[1].item() for _ in range(10)) / 10 for s in ("train", "val")}
    model.train()
    return out


model = GPT()
optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=lr, total_steps=max_iters, pct_start=0.1)
for it in range(max_iters):
    if it % 100 == 0:
        l = estimate_loss(model)
        print(f"step {it}: train {l['train']:.3f} val {l['val']:.3f} (ppl {math.exp(l['val']):.2f})")
    _, loss = model(*get_batch("train"))
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()

l = estimate_loss(model)
print(f"final: train {l['train']:.3f} val {l['val']:.3f}")
model.eval()
sample = "".join(itos[int(i)] for i in model.generate(torch.tensor([[stoi["o"], stoi["n"]]]), 400)[0])
print(sample)
vocab = set(re.findall("[a-z]+", text))
words = re.findall("[a-z]+", sample)[:-1]
print(f"real words in the sample: {sum(w in vocab for w in words)}/{len(words)}")
