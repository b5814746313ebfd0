# Character-level language model: a small transformer on generated sentences
import math
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

random.seed(5)
torch.manual_seed(5)

subjects = {"s": ["the cat", "a dog", "my friend", "the old king"], "p": ["the birds", "two men", "all kids", "some cows"]}
verbs = {"s": ["sees", "likes", "wants", "finds"], "p": ["see", "like", "want", "find"]}
objects = ["a red ball", "the river", "some bread", "his house", "a small stone", "the moon"]


def sentence():
    n = random.choice("sp")
    return f"{random.choice(subjects[n])} {random.choice(verbs[n])} {random.choice(objects)}. "


text = "".join(sentence() for _ in range(6000))
valid_words = {w for w in text.replace(".", "").split()}
chars = sorted(set(text))
stoi = {c: i for i, c in enumerate(chars)}
ids = torch.tensor([stoi[c] for c in text])
split = int(0.9 * len(ids))
train_ids, val_ids = ids[:split], ids[split:]

BLOCK, BATCH, DIM, STEPS = 48, 32, 64, 700


def get_batch(data):
    start = torch.randint(0, len(data) - BLOCK - 1, (BATCH,))
    x = torch.stack([data[s:s + BLOCK] for s in start])
    y = torch.stack([data[s + 1:s + BLOCK + 1] for s in start])
    return x, y


class CharLM(nn.Module):
    def __init__(self, vocab):
        super().__init__()
        self.tok = nn.Embedding(vocab, DIM)
        self.pos = nn.Embedding(BLOCK, DIM)
        layer = nn.TransformerEncoderLayer(DIM, nhead=4, dim_feedforward=4 * DIM, dropout=0.0,
                                           batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(DIM)
        self.head = nn.Linear(DIM, vocab)

    def forward(self, idx):
        T = idx.size(1)
        x = self.tok(idx) + self.pos(torch.arange(T))
        x = self.blocks(x)
        return self.head(self.norm(x))


@torch.no_grad()
def generate(model, prompt, n):
    model.eval()
    out = [stoi[c] for c in prompt]
    for _ in range(n):
        ctx = torch.tensor(out[-BLOCK:]).unsqueeze(0)
        probs = F.softmax(model(ctx)[0, -1], dim=-1)
        out.append(torch.multinomial(probs, 1).item())
    return "".join(chars[i] for i in out)


model = CharLM(len(chars))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
schedule = torch.optim.lr_scheduler.LambdaLR(
    optimizer, lambda s: min((s + 1) / 50, 0.5 * (1 + math.cos(math.pi * s / STEPS))))

for step in range(1, STEPS + 1):
    model.train()
    x, y = get_batch(train_ids)
    logits = model(x)
    loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    if step % 100 == 0:
        model.eval()
        with torch.no_grad():
            vx, vy = get_batch(val_ids)
            v = F.cross_entropy(model(vx).flatten(0, 1), vy.flatten())
        print(f"step {step} train {loss.item():.3f} val {v.item():.3f}")

sample = generate(model, "the cat ", 600)
words = sample.replace(".", "").split()[:-1]
print(sample[:200])
print(f"share of correctly spelled words: {sum(w in valid_words for w in words) / len(words):.3f}")
