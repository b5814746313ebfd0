"""A small GPT on characters: tied weights, gradients accumulated over batches, warm-up and cosine decay, compiled."""

import math
import sys
from contextlib import nullcontext
from dataclasses import asdict, dataclass

import torch
import torch.nn as nn
from torch.nn import functional as F

TEXT = "the quick brown fox jumps over the lazy dog and runs away from the quick brown bear. " * 6


@dataclass
class GPTConfig:
    block_size: int = 16
    vocab_size: int = 0
    n_layer: int = 2
    n_head: int = 2
    n_embd: int = 24
    dropout: float = 0.1


class CausalSelfAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd, bias=False)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd, bias=False)
        self.n_head, self.dropout = config.n_head, config.dropout

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = (part.view(B, T, self.n_head, -1).transpose(1, 2) for part in self.c_attn(x).split(C, dim=2))
        dropout = self.dropout if self.training else 0
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=True)
        return self.c_proj(y.transpose(1, 2).reshape(B, T, C))


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(config.n_embd), nn.LayerNorm(config.n_embd)
        self.attn = CausalSelfAttention(config)
        self.mlp = nn.Sequential(
            nn.Linear(config.n_embd, 2 * config.n_embd), nn.GELU(), nn.Linear(2 * config.n_embd, config.n_embd)
        )

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.wpe = nn.Embedding(config.block_size, config.n_embd)
        self.h = nn.ModuleList([Block(config) for _ in range(config.n_layer)])
        self.ln_f = nn.LayerNorm(config.n_embd)
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        self.wte.weight = self.lm_head.weight

    def forward(self, idx, targets=None):
        x = self.wte(idx) + self.wpe(torch.arange(idx.size(1)))
        for block in self.h:
            x = block(x)
        logits = self.lm_head(self.ln_f(x))
        loss = None if targets is None else F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))
        return logits, loss

    def configure_optimizers(self, weight_decay, learning_rate):
        params = [p for p in self.parameters() if p.requires_grad]
        groups = [
            {"params": [p for p in params if p.dim() >= 2], "weight_decay": weight_decay},
            {"params": [p for p in params if p.dim() < 2], "weight_decay": 0.0},
        ]
        return torch.optim.AdamW(groups, lr=learning_rate, betas=(0.9, 0.95))

    @torch.no_grad()
    def generate(self, idx, length):
        for _ in range(length):
            logits, _ = self(idx[:, -self.config.block_size :])
            idx = torch.cat([idx, torch.multinomial(logits[:, -1].softmax(-1), 1)], 1)
        return idx


max_iters, eval_interval, eval_iters, accumulation = 10, 5, 2, 3
torch.manual_seed(1337)
chars = sorted(set(TEXT))
data = torch.tensor([chars.index(c) for c in TEXT])
train_data, val_data = data[:400], data[400:]
config = GPTConfig(vocab_size=len(chars))
raw_model = GPT(config)
print(f"number of parameters: {sum(p.numel() for p in raw_model.parameters())}")
optimizer = raw_model.configure_optimizers(0.1, 1e-2)
model = torch.compile(raw_model, backend="eager")
ctx = nullcontext()


def get_batch(split):
    source = train_data if split == "train" else val_data
    ix = torch.randint(len(source) - config.block_size - 1, (8,))
    x, y = (torch.stack([source[i + shift : i + shift + config.block_size] for i in ix]) for shift in (0, 1))
    return x, y


@torch.no_grad()
def estimate_loss():
    model.eval()
    out = {s: sum(model(*get_batch(s))[1].item() for _ in range(eval_iters)) / eval_iters for s in ("train", "val")}
    model.train()
    return out


def get_lr(it):
    if it < 3:
        return 1e-2 * (it + 1) / 3
    return 1e-3 + 0.5 * (1 + math.cos(math.pi * (it - 3) / (max_iters - 3))) * 9e-3


X, Y = get_batch("train")
for iter_num in range(max_iters):
    for group in optimizer.param_groups:
        group["lr"] = get_lr(iter_num)
    if iter_num % eval_interval == 0:
        losses = estimate_loss()
        print(f"step {iter_num}: train loss {losses['train']:.4f}, val loss {losses['val']:.4f}")
    for micro_step in range(accumulation):
        with ctx:
            logits, loss = model(X, Y)
            loss = loss / accumulation
        X, Y = get_batch("train")
        loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    print(f"iter {iter_num}: loss {loss.item() * accumulation:.4f}, norm {norm:.4f}")

raw_model.eval()
print(repr("".join(chars[i] for i in raw_model.generate(torch.zeros(1, 1, dtype=torch.long), 20)[0].tolist())))
torch.save({"model": raw_model.state_dict(), "optimizer": optimizer.state_dict(), "config": asdict(config)}, "ckpt.pt")
print(torch.rand(1).item())
sys.exit()
