"""Character-level language model (an MLP over the last characters) on the text of the sklearn dataset docs."""
import math
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn import datasets

torch.manual_seed(1234)

CTX, EMB, HIDDEN = 10, 16, 128
BATCH, STEPS, LR = 64, 2500, 3e-4
DTYPE = torch.bfloat16

names = ("iris", "wine", "breast_cancer", "diabetes", "digits", "linnerud")
text = "".join(getattr(datasets, f"load_{n}")().DESCR for n in names)
vocab = sorted(set(text))
stoi = {c: i for i, c in enumerate(vocab)}
ids = torch.tensor([stoi[c] for c in text])

# every window of CTX characters and the one after it; blocks of 200 go to validation now and then
windows = ids.unfold(0, CTX + 1, 1)
in_valid = (torch.arange(len(windows)) // 200) % 10 == 9
train_w, valid_w = windows[~in_valid], windows[in_valid]
print(f"{len(ids)} characters, vocabulary {len(vocab)}, {len(train_w)} training windows")


class CharMLP(nn.Module):
    def __init__(self, n_vocab):
        super().__init__()
        self.emb = nn.Embedding(n_vocab, EMB)
        self.fc1 = nn.Linear(CTX * EMB, HIDDEN)
        self.ln1 = nn.LayerNorm(HIDDEN)
        self.fc2 = nn.Linear(HIDDEN, HIDDEN)
        self.ln2 = nn.LayerNorm(HIDDEN)
        self.head = nn.Linear(HIDDEN, n_vocab)

    def forward(self, idx):
        x = self.emb(idx).flatten(1)
        x = F.gelu(self.ln1(self.fc1(x)))
        x = x + F.gelu(self.ln2(self.fc2(x)))
        return self.head(x)


def nll(model, w):
    logits = model(w[:, :-1])
    return F.cross_entropy(logits.float(), w[:, -1])


@torch.no_grad()
def validate(model):
    model.eval()
    loss = nll(model, valid_w).item()
    model.train()
    return loss


@torch.no_grad()
def sample(model, prompt="The data ", n=60):
    out = [stoi[c] for c in prompt.rjust(CTX)[-CTX:]]
    for _ in range(n):
        probs = model(torch.tensor([out[-CTX:]])).float().softmax(-1)
        out.append(torch.multinomial(probs[0], 1).item())
    return "".join(vocab[i] for i in out)


model = CharMLP(len(vocab)).to(DTYPE)
optimizer = torch.optim.AdamW(model.parameters(), lr=LR, weight_decay=0.01)

tic = time.time()
running = 0.0
for step in range(1, STEPS + 1):
    batch = train_w[torch.randint(len(train_w), (BATCH,))]
    loss = nll(model, batch)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    running += loss.item()
    if step % 500 == 0:
        v = validate(model)
        print(f"step {step:5d}  train {running / 500:.3f}  valid {v:.3f}  bits/char {v / math.log(2):.3f}")
        running = 0.0

print(f"done in {time.time() - tic:.0f}s")
print(repr(sample(model)))
