"""Character-level GPT that writes menu lines."""
import math
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(1337)
random.seed(1337)

COOKED = ["grilled", "roasted", "smoked", "fried", "braised", "steamed"]
MAIN = ["salmon", "chicken", "tofu", "aubergine", "lamb", "cod"]
SIDE = ["rice", "potatoes", "lentils", "spinach", "noodles"]
SAUCE = ["lemon butter", "red pesto", "ginger soy", "mint yoghurt"]


def menu_line():
    s = f"{random.choice(COOKED)} {random.choice(MAIN)} with {random.choice(SIDE)}"
    if random.random() < 0.5:
        s += f" and {random.choice(SAUCE)}"
    return s


text = "\n".join(menu_line() for _ in range(6000)) + "\n"
chars = sorted(set(text))
stoi = {c: i for i, c in enumerate(chars)}
data = torch.tensor([stoi[c] for c in text])
split = int(0.9 * len(data))
train_data, val_data = data[:split], data[split:]

block_size, batch_size, n_embd, n_head, n_layer = 48, 16, 48, 4, 2
vocab_words = set(" ".join(COOKED + MAIN + SIDE + SAUCE).split()) | {"with", "and"}


class CausalSelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(n_embd, 3 * n_embd)
        self.proj = nn.Linear(n_embd, n_embd)
        self.register_buffer("mask", torch.tril(torch.ones(block_size, block_size)).bool())

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q, k, v = [t.reshape(B, n_head, T, C // n_head) for t in (q, k, v)]
        att = q @ k.transpose(-2, -1) / math.sqrt(C // n_head)
        att = att.masked_fill(~self.mask[:T, :T], float("-inf"))
        y = F.softmax(att, dim=-1) @ v
        return self.proj(y.transpose(1, 2).reshape(B, T, C))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.attn = CausalSelfAttention()
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

    def forward(self, idx):
        x = self.tok(idx) + self.pos(torch.arange(idx.shape[1]))
        return self.head(self.ln_f(self.blocks(x)))


def get_batch(source):
    ix = torch.randint(len(source) - block_size - 1, (batch_size,))
    x = torch.stack([source[i:i + block_size] for i in ix])
    y = torch.stack([source[i + 1:i + block_size + 1] for i in ix])
    return x, y


model = GPT()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for step in range(601):
    x, y = get_batch(train_data)
    loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        with torch.no_grad():
            xv, yv = get_batch(val_data)
            val = F.cross_entropy(model(xv).flatten(0, 1), yv.flatten())
        print(f"step {step}: train {loss.item():.3f} val {val.item():.3f}")

model.eval()
idx = torch.full((16, 1), stoi["\n"])
with torch.no_grad():
    for _ in range(150):
        logits = model(idx[:, -block_size:])[:, -1]
        idx = torch.cat([idx, torch.multinomial(F.softmax(logits, -1), 1)], dim=1)
samples = ["".join(chars[i] for i in row) for row in idx.tolist()]
print(samples[0])
words = [w for s in samples for w in s.split()[:-1]]
print(f"real words among the generated: {sum(w in vocab_words for w in words) / len(words):.3f}")
