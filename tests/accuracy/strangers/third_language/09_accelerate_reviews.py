"""Star ratings from review text: GRU with attention pooling, trained with Accelerate and gradient accumulation."""
import argparse

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader

NOUNS = "plot acting music camera ending script lighting pacing dialogue humour".split()
WORTH = {"superb": 2, "great": 1.5, "good": 1, "fine": 0.5, "dull": -0.5, "bad": -1, "weak": -1.5, "horrible": -2}
ACCUMULATION = 8


def write_review(rng):
    words, score, n = [], 0.0, int(rng.integers(2, 6))
    for _ in range(n):
        adjective = rng.choice(list(WORTH))
        value = WORTH[adjective]
        negated = rng.random() < 0.3
        words += ["the", rng.choice(NOUNS), "is"] + (["not"] if negated else []) + [adjective]
        score += -value if negated else value
    return words, 3.0 + score / n


class Rater(nn.Module):
    def __init__(self, vocab_size, dim=48):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, dim, padding_idx=0)
        self.gru = nn.GRU(dim, dim, batch_first=True)
        self.attention = nn.Linear(dim, 1)
        self.head = nn.Sequential(nn.Linear(dim, dim), nn.Tanh(), nn.Linear(dim, 1))

    def forward(self, ids, mask):
        h, _ = self.gru(self.embedding(ids))
        weights = self.attention(h).squeeze(-1).masked_fill(~mask, -1e4).softmax(dim=-1)
        return self.head((weights.unsqueeze(-1) * h).sum(1)).squeeze(-1)


def main(args):
    set_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=ACCUMULATION)

    reviews = [write_review(rng) for _ in range(4600)]
    vocab = {"<pad>": 0}
    for words, _ in reviews:
        for w in words:
            vocab.setdefault(str(w), len(vocab))

    def collate(batch):
        longest = max(len(w) for w, _ in batch)
        ids = torch.zeros(len(batch), longest, dtype=torch.long)
        for row, (words, _) in zip(ids, batch):
            row[:len(words)] = torch.tensor([vocab[str(w)] for w in words])
        return ids, ids > 0, torch.tensor([s for _, s in batch], dtype=torch.float32)

    train_loader = DataLoader(reviews[:4096], batch_size=8, shuffle=True, collate_fn=collate)
    eval_loader = DataLoader(reviews[4096:], batch_size=128, collate_fn=collate)
    model = Rater(len(vocab))
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    model, optimizer, train_loader, eval_loader = accelerator.prepare(model, optimizer, train_loader, eval_loader)
    loss_fn = nn.MSELoss()

    for epoch in range(args.epochs):
        model.train()
        for ids, mask, stars in train_loader:
            with accelerator.accumulate(model):
                loss = loss_fn(model(ids, mask), stars) / ACCUMULATION
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 5.0)
                optimizer.step()
                optimizer.zero_grad()

        model.eval()
        errors = []
        with torch.no_grad():
            for ids, mask, stars in eval_loader:
                pred, stars = accelerator.gather_for_metrics((model(ids, mask), stars))
                errors.append((pred - stars) ** 2)
        accelerator.print(f"epoch {epoch + 1}: RMSE {torch.cat(errors).mean().sqrt().item():.4f} stars")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=5)
    main(parser.parse_args())
