"""A very small decoder-only language model on text from a second-order Markov chain."""
from dataclasses import dataclass
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Config:
    vocab: int = 10
    seq_len: int = 24
    d_model: int = 32
    n_heads: int = 2
    n_layers: int = 2
    batch_size: int = 32
    steps: int = 350
    lr: float = 3e-3


def markov_text(cfg, n, seed):
    table = np.random.default_rng(77).dirichlet(np.full(cfg.vocab, 0.15), (cfg.vocab, cfg.vocab))
    cum = table.cumsum(-1)
    rng = np.random.default_rng(seed)
    seq = rng.integers(0, cfg.vocab, (n, cfg.seq_len + 1))
    for t in range(2, cfg.seq_len + 1):
        u = rng.random((n, 1))
        seq[:, t] = (u > cum[seq[:, t - 2], seq[:, t - 1]]).sum(1).clip(max=cfg.vocab - 1)
    return torch.from_numpy(seq)


class DecoderBlock(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.ln1 = nn.LayerNorm(cfg.d_model)
        self.attn = nn.MultiheadAttention(cfg.d_model, cfg.n_heads, batch_first=True)
        self.ln2 = nn.LayerNorm(cfg.d_model)
        self.mlp = nn.Sequential(
            nn.Linear(cfg.d_model, 4 * cfg.d_model), nn.GELU(), nn.Linear(4 * cfg.d_model, cfg.d_model))

    def forward(self, x, mask):
        h = self.ln1(x)
        a, _ = self.attn(h, h, h, attn_mask=mask, need_weights=False)
        x = x + a
        return x + self.mlp(self.ln2(x))


class TinyGPT(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.tok = nn.Embedding(cfg.vocab, cfg.d_model)
        self.pos = nn.Embedding(cfg.seq_len, cfg.d_model)
        self.blocks = nn.ModuleList([DecoderBlock(cfg) for _ in range(cfg.n_layers)])
        self.ln = nn.LayerNorm(cfg.d_model)
        self.head = nn.Linear(cfg.d_model, cfg.vocab)

    def forward(self, idx):
        T = idx.size(1)
        x = self.tok(idx) + self.pos(torch.arange(T))
        mask = torch.triu(torch.ones(T, T), diagonal=1)
        for block in self.blocks:
            x = block(x, mask)
        return self.head(self.ln(x))


@torch.no_grad()
def validate(model, data):
    model.eval()
    logits = model(data[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), data[:, 1:].flatten()).item()
    # continuation: the model gets a prefix and must name the next token
    hits = []
    for cut in range(6, data.size(1)):
        guess = model(data[:, :cut])[:, -1].argmax(-1)
        hits.append((guess == data[:, cut]).float().mean().item())
    model.train()
    return loss, float(np.mean(hits))


def main():
    cfg = Config()
    torch.manual_seed(0)
    train, val = markov_text(cfg, 4000, 1), markov_text(cfg, 200, 2)
    model = TinyGPT(cfg)
    opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, cfg.lr, total_steps=cfg.steps)
    running = 0.0
    for step in range(1, cfg.steps + 1):
        batch = train[torch.randint(0, len(train), (cfg.batch_size,))]
        logits = model(batch[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        running += loss.item()
        if step % 70 == 0:
            vl, acc = validate(model, val)
            print(f"step {step} train {running / 70:.3f} val {vl:.3f} next-token accuracy {acc:.3f}")
            running = 0.0


if __name__ == "__main__":
    main()
