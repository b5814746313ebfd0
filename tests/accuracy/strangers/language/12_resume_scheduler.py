import argparse
import math
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--total-steps", type=int, default=360)
parser.add_argument("--interrupt-at", type=int, default=210)
parser.add_argument("--batch-size", type=int, default=8)
parser.add_argument("--max-lr", type=float, default=1e-2)
parser.add_argument("--d-model", type=int, default=48)
args = parser.parse_args()

VOCAB, BLOCK = 16, 24
g = torch.Generator().manual_seed(8)
P = torch.softmax(2.5 * torch.randn(VOCAB, VOCAB, generator=g), dim=-1)


def corpus(n):
    x = torch.randint(VOCAB, (n, BLOCK + 1), generator=g)
    for t in range(1, BLOCK + 1):
        x[:, t] = torch.multinomial(P[x[:, t - 1]], 1, generator=g)[:, 0]
    return x


train_x, val_x = corpus(4000), corpus(300)


class TinyLM(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, d)
        self.pos = nn.Parameter(torch.zeros(BLOCK, d))
        layer = nn.TransformerEncoderLayer(d, 4, 4 * d, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(d)
        self.head = nn.Linear(d, VOCAB)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(BLOCK))

    def forward(self, x):
        h = self.body(self.tok(x) + self.pos, mask=self.mask, is_causal=True)
        return self.head(self.norm(h))


def build():
    model = TinyLM(args.d_model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.max_lr, weight_decay=0.01)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=args.max_lr, total_steps=args.total_steps,
                                                    pct_start=0.15, cycle_momentum=False)
    return model, optimizer, scheduler


def loss_on(model, x):
    return F.cross_entropy(model(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten())


def save_checkpoint(path, step, model, optimizer, scheduler):
    torch.save({"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict(),
                "scheduler": scheduler.state_dict()}, path)


def load_checkpoint(path, model, optimizer, scheduler):
    ckpt = torch.load(path)
    model.load_state_dict(ckpt["model"])
    optimizer.load_state_dict(ckpt["optimizer"])
    return ckpt["step"]


def run(path, stop):
    torch.manual_seed(0)
    model, optimizer, scheduler = build()
    step = load_checkpoint(path, model, optimizer, scheduler) if os.path.exists(path) else 0
    print("starting at step", step)
    torch.manual_seed(100 + step)
    while step < stop:
        idx = torch.randint(len(train_x), (args.batch_size,))
        loss = loss_on(model, train_x[idx])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        step += 1
        if step % 30 == 0:
            with torch.no_grad():
                val = loss_on(model, val_x).item()
            print(f"step {step} lr {scheduler.get_last_lr()[0]:.2e} train {loss.item():.4f} val {val:.4f} ppl {math.exp(val):.2f}")
    save_checkpoint(path, step, model, optimizer, scheduler)


with tempfile.TemporaryDirectory() as folder:
    file = os.path.join(folder, "last.pt")
    run(file, args.interrupt_at)       # job 1 ends at the cluster's time limit
    run(file, args.total_steps)        # job 2 goes on
