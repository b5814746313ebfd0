"""A reward model for feedback: pairs of answers, the chosen one shall have the larger reward; gradients accumulate."""

import argparse
import json
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader


class Transformer(nn.Module):
    def __init__(self, vocab, width):
        super().__init__()
        self.embed = nn.Embedding(vocab, width, padding_idx=0)
        layer = nn.TransformerEncoderLayer(width, 2, 2 * width, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, input_ids, attention_mask):
        mask = nn.Transformer.generate_square_subsequent_mask(input_ids.shape[1])
        return self.layers(self.embed(input_ids), mask=mask, src_key_padding_mask=(attention_mask == 0).float() * -1e9)


class RewardModel(nn.Module):
    def __init__(self, vocab=16, width=16):
        super().__init__()
        self.transformer = Transformer(vocab, width)
        self.v_head = nn.Linear(width, 1, bias=False)

    def forward(self, input_ids, attention_mask):
        rewards = self.v_head(self.transformer(input_ids, attention_mask)).squeeze(-1)
        last = attention_mask.sum(1) - 1
        return rewards.gather(1, last[:, None]).squeeze(1)


def pairs(n, seed):
    """Whoever answers politely, by the word 7, is preferred."""
    rng = random.Random(seed)
    for _ in range(n):
        prompt = [rng.randrange(8, 16) for _ in range(3)]
        chosen = [rng.randrange(1, 7) for _ in range(rng.randrange(2, 5))] + [7]
        rejected = [rng.randrange(1, 7) for _ in range(rng.randrange(2, 6))]
        yield {"chosen": prompt + chosen, "rejected": prompt + rejected}


def data_collator(features):
    rows = [f["chosen"] for f in features] + [f["rejected"] for f in features]
    length = max(map(len, rows))
    ids = torch.tensor([row + [0] * (length - len(row)) for row in rows])
    return {"input_ids": ids, "attention_mask": (ids != 0).long()}


def compute_loss(model, inputs):
    chosen, rejected = model(**inputs).chunk(2)
    return -F.logsigmoid(chosen - rejected).mean(), (chosen > rejected).float().mean()


def evaluate(model, loader):
    model.eval()
    with torch.no_grad():
        found = [torch.stack(compute_loss(model, inputs)) for inputs in loader]
    model.train()
    loss, accuracy = torch.stack(found).mean(0).tolist()
    return {"eval_loss": round(loss, 6), "eval_accuracy": round(accuracy, 4)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--gradient_accumulation_steps", type=int, default=2)
    args = parser.parse_args()
    torch.manual_seed(0)
    train_loader = DataLoader([*pairs(96, 0)], batch_size=12, shuffle=True, collate_fn=data_collator)
    eval_loader = DataLoader([*pairs(32, 1)], batch_size=16, collate_fn=data_collator)
    model = RewardModel()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    log = []
    for epoch in range(args.epochs):
        for step, inputs in enumerate(train_loader):
            loss, _ = compute_loss(model, inputs)
            (loss / args.gradient_accumulation_steps).backward()
            if (step + 1) % args.gradient_accumulation_steps == 0:
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
                log.append({"epoch": epoch, "loss": round(loss.item(), 6)})
                print(log[-1])
        print(evaluate(model, eval_loader))
    with open("trainer_state.json", "w") as f:
        json.dump(log, f)
    torch.save(model.state_dict(), "pytorch_model.bin")
    print(torch.rand(1).item())
