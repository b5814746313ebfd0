import math
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Config:
    vocab: int = 64
    n_langs: int = 4
    seq: int = 16
    dim: int = 32
    hidden: int = 64
    n_experts: int = 4
    top_k: int = 2
    steps: int = 400
    batch: int = 24
    lr: float = 3e-3
    aux_weight: float = 0.01


cfg = Config()
torch.manual_seed(5)

# in each language a word has its own two likely successors
SUCC = torch.stack([torch.stack([torch.randperm(cfg.vocab) for _ in range(2)], -1) for _ in range(cfg.n_langs)])


def sample_batch(n):
    lang = torch.randint(cfg.n_langs, (n,))
    x = torch.empty(n, cfg.seq + 1, dtype=torch.long)
    x[:, 0] = torch.randint(cfg.vocab, (n,))
    for t in range(1, cfg.seq + 1):
        nxt = SUCC[lang, x[:, t - 1], torch.randint(2, (n,))]
        x[:, t] = torch.where(torch.rand(n) < 0.1, torch.randint(cfg.vocab, (n,)), nxt)
    return lang, x


class Expert(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.up = nn.Linear(dim, hidden)
        self.down = nn.Linear(hidden, dim)

    def forward(self, x):
        return self.down(F.silu(self.up(x)))


class MoE(nn.Module):
    def __init__(self, dim, hidden, n_experts, k):
        super().__init__()
        self.k = k
        self.router = nn.Linear(dim, n_experts, bias=False)
        self.experts = nn.ModuleList([Expert(dim, hidden) for _ in range(n_experts)])

    def forward(self, x):
        flat = x.reshape(-1, x.size(-1))
        probs = F.softmax(self.router(flat), dim=0)
        gate, chosen = probs.topk(self.k, dim=-1)
        out = torch.zeros_like(flat)
        for e, expert in enumerate(self.experts):
            tok, slot = torch.where(chosen == e)
            if len(tok):
                out.index_add_(0, tok, expert(flat[tok]) * gate[tok, slot, None])
        load = F.one_hot(chosen, len(self.experts)).float().sum(1).mean(0) / self.k
        aux = len(self.experts) * (load * probs.mean(0)).sum()
        return out.view_as(x), load, aux


class MultilingualLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(cfg.vocab, cfg.dim)
        self.lang = nn.Embedding(cfg.n_langs, cfg.dim)
        self.norm = nn.LayerNorm(cfg.dim)
        self.moe = MoE(cfg.dim, cfg.hidden, cfg.n_experts, cfg.top_k)
        self.ln_f = nn.LayerNorm(cfg.dim)
        self.head = nn.Linear(cfg.dim, cfg.vocab)

    def forward(self, lang, x):
        h = self.tok(x) + self.lang(lang).unsqueeze(1)
        y, load, aux = self.moe(self.norm(h))
        return self.head(self.ln_f(h + y)), load, aux


model = MultilingualLM()
optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
val_lang, val_x = sample_batch(300)
print("parameters:", sum(p.numel() for p in model.parameters()))

for step in range(1, cfg.steps + 1):
    lang, x = sample_batch(cfg.batch)
    logits, load, aux = model(lang, x[:, :-1])
    ce = F.cross_entropy(logits.reshape(-1, cfg.vocab), x[:, 1:].reshape(-1))
    loss = ce + cfg.aux_weight * aux
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step % 80 == 0:
        model.eval()
        with torch.no_grad():
            v_logits, v_load, _ = model(val_lang, val_x[:, :-1])
            v = F.cross_entropy(v_logits.reshape(-1, cfg.vocab), val_x[:, 1:].reshape(-1)).item()
        model.train()
        print(f"step {step} ce {ce.item():.4f} aux {aux.item():.3f} | val ce {v:.4f} ppl {math.exp(v):.1f} "
              f"| load {[round(l, 2) for l in v_load.tolist()]}")
