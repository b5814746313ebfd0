"""Direct preference optimization of a small language model, against a frozen copy of itself."""

import copy
import dataclasses
import random

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

VOCAB, PAD = 20, 0


@dataclasses.dataclass
class PreferencePair:
    prompt: list
    chosen: list
    rejected: list


class TinyLM(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, width, padding_idx=PAD)
        self.rnn = nn.GRU(width, width, batch_first=True)
        self.lm_head = nn.Linear(width, VOCAB, bias=False)

    def forward(self, ids):
        hidden, _ = self.rnn(self.embed(ids))
        return self.lm_head(hidden)


def make_pairs(n):
    rng = random.Random(7)
    pairs = []
    for _ in range(n):
        prompt = [rng.randrange(1, VOCAB) for _ in range(4)]
        chosen = sorted(prompt) + [rng.randrange(1, VOCAB) for _ in range(rng.randrange(3))]
        pairs.append(PreferencePair(prompt, chosen, rng.sample(chosen, len(chosen))))
    return pairs


def collate(pairs):
    def side(name):
        ids = [torch.tensor(pair.prompt + getattr(pair, name)) for pair in pairs]
        mask = [torch.arange(len(row)) >= len(pair.prompt) for row, pair in zip(ids, pairs)]
        return pad_sequence(ids, batch_first=True), pad_sequence(mask, batch_first=True)

    return {"chosen": side("chosen"), "rejected": side("rejected")}


def sequence_logps(model, ids, mask):
    logits = model(ids[:, :-1])
    logps = logits.log_softmax(-1).gather(-1, ids[:, 1:, None]).squeeze(-1)
    return (logps * mask[:, 1:]).sum(-1)


def dpo_loss(policy, reference, batch, beta):
    policy_chosen, policy_rejected = (sequence_logps(policy, *batch[side]) for side in ("chosen", "rejected"))
    with torch.no_grad():
        ref_chosen, ref_rejected = (sequence_logps(reference, *batch[side]) for side in ("chosen", "rejected"))
    margin = (policy_chosen - policy_rejected) - (ref_chosen - ref_rejected)
    return -F.logsigmoid(beta * margin).mean(), margin


def pretrain(model, pairs, steps=6):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(steps):
        ids = pad_sequence([torch.tensor(p.prompt + p.chosen) for p in pairs[step * 8 : step * 8 + 8]], True)
        loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten(), ignore_index=PAD)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"sft {step} loss {loss.item():.4f}")


def main():
    torch.manual_seed(0)
    pairs = make_pairs(48)
    policy = TinyLM()
    pretrain(policy, pairs)
    reference = copy.deepcopy(policy)
    reference.eval()
    for p in reference.parameters():
        p.requires_grad_(False)
    optimizer = torch.optim.RMSprop(policy.parameters(), lr=5e-4)
    warmup = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 4))
    loader = DataLoader(pairs, batch_size=12, shuffle=True, collate_fn=collate)
    step = 0
    for _ in range(3):
        for batch in loader:
            policy.train()
            loss, margin = dpo_loss(policy, reference, batch, beta=0.5)
            optimizer.zero_grad()
            loss.backward()
            norm = nn.utils.clip_grad_norm_(policy.parameters(), 10.0)
            optimizer.step()
            warmup.step()
            right = (margin > 0).float().mean().item()
            print(f"dpo {step} loss {loss.item():.4f} accuracy {right:.2f} grad_norm {norm.item():.4f}")
            step += 1
    torch.save({"step": step, "state": policy.state_dict()}, "policy.pt")
    print("done", torch.randint(1000, (3,)).tolist())


if __name__ == "__main__":
    main()
