import random
import torch
import torch.nn as nn
from torch.nn import functional as F

# hyperparameters
batch_size = 16
block_size = 40
max_iters = 300
eval_interval = 75
eval_iters = 8
learning_rate = 3e-3
n_embd = 64
n_head = 4
n_layer = 2
dropout = 0.05
torch.manual_seed(1337)
random.seed(1337)

subj = ["the old miller", "a young fox", "my sister", "the grey cat", "that sailor", "our teacher"]
verb = ["watches", "finds", "follows", "paints", "remembers", "carries"]
obj = ["a wooden boat", "the broken lamp", "seven stones", "the river", "a letter", "warm bread"]
tail = ["in the morning", "near the mill", "without a word", "before winter", "every day"]
text = " ".join(
    f"{random.choice(subj)} {random.choice(verb)} {random.choice(obj)} {random.choice(tail)}."
    for _ in range(1500))

chars = sorted(set(text))
vocab_size = len(chars)
stoi = {c: i for i, c in enumerate(chars)}
itos = {i: c for i, c in enumerate(chars)}
data = torch.tensor([stoi[c] for c in text], dtype=torch.long)
n = int(0.9 * len(data))
train_data, val_data = data[:n], data[n:]


def get_batch(split):
    d = train_data if split == "train" else val_data
    ix = torch.randint(len(d) - block_size - 1, (batch_size,))
    x = torch.stack([d[i:i + block_size] for i in ix])
    y = torch.stack([d[i:i + block_size] for i in ix])
    return x, y


@torch.no_grad()
def estimate_loss(model):
    out = {}
    model.eval()
    for split in ["train", "val"]:
        out[split] = sum(model(*get_batch(split))[1].item() for _ in range(eval_iters)) / eval_iters
    model.train()
    return out


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1 = nn.LayerNorm(n_embd)
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd)
        self.ln2 = nn.LayerNorm(n_embd)
        self.mlp = nn.Sequential(nn.Linear(n_embd, 4 * n_embd), nn.GELU(), nn.Linear(4 * n_embd, n_embd))
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(B, T, 3, n_head, C // n_head).permute(2, 0, 3, 1, 4)
        att = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.drop(self.proj(att.transpose(1, 2).reshape(B, T, C)))
        return x + self.drop(self.mlp(self.ln2(x)))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(vocab_size, n_embd)
        self.pos = nn.Embedding(block_size, n_embd)
        self.blocks = nn.Sequential(*[Block() for _ in range(n_layer)])
        self.ln_f = nn.LayerNorm(n_embd)
        self.head = nn.Linear(n_embd, vocab_size)

    def forward(self, idx, targets=None):
        x = self.tok(idx) + self.pos(torch.arange(idx.size(1)))
        logits = self.head(self.ln_f(self.blocks(x)))
        if targets is None:
            return logits, None
        return logits, F.cross_entropy(logits.view(-1, vocab_size), targets.view(-1))

    @torch.no_grad()
    def generate(self, idx, max_new_tokens):
        for _ in range(max_new_tokens):
            logits, _ = self(idx[:, -block_size:])
            probs = F.softmax(logits[:, -1], dim=-1)
            idx = torch.cat([idx, torch.multinomial(probs, 1)], dim=1)
        return idx


model = GPT()
print(sum(p.numel() for p in model.parameters()) / 1e3, "K parameters")
optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
for it in range(max_iters):
    xb, yb = get_batch("train")
    logits, loss = model(xb, yb)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    if (it + 1) % eval_interval == 0:
        l = estimate_loss(model)
        print(f"step {it + 1}: train loss {l['train']:.4f}, val loss {l['val']:.4f}")

model.eval()
start = torch.tensor([[stoi[c] for c in "the old "]])
sample = "".join(itos[i] for i in model.generate(start, 220)[0].tolist())
print(sample)
known = set(text.replace(".", "").split())
words = sample.replace(".", "").split()[:-1]
print(f"share of the sample that is real words: {sum(len(w) + 1 for w in words if w in known) / len(sample):.2f}")
