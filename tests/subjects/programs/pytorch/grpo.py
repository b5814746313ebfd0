"""Group-relative policy optimization of a small language model that has to count upwards; one file, no trainer."""

import copy
import json
from dataclasses import asdict, dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class GRPOConfig:
    num_prompts: int = 4
    num_generations: int = 6
    max_new_tokens: int = 5
    num_iterations: int = 2
    steps: int = 8
    beta: float = 0.04
    epsilon: float = 0.2
    temperature: float = 1.0
    learning_rate: float = 5e-3
    seed: int = 42


class CausalBlock(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        mask = torch.triu(torch.ones(x.shape[1], x.shape[1], dtype=torch.bool), 1)
        h = self.ln_1(x)
        x = x + self.attn(h, h, h, attn_mask=mask, need_weights=False)[0]
        return x + self.mlp(self.ln_2(x))


class LanguageModel(nn.Module):
    def __init__(self, vocab=12, dim=24, length=16):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, dim), nn.Embedding(length, dim)
        self.blocks = nn.ModuleList([CausalBlock(dim, 2)])
        self.lm_head = nn.Linear(dim, vocab, bias=False)

    def forward(self, input_ids):
        x = self.wte(input_ids) + self.wpe(torch.arange(input_ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.lm_head(x)

    @torch.no_grad()
    def generate(self, input_ids, max_new_tokens, temperature):
        for _ in range(max_new_tokens):
            probs = F.softmax(self(input_ids)[:, -1] / temperature, dim=-1)
            input_ids = torch.cat([input_ids, torch.multinomial(probs, 1)], 1)
        return input_ids


def reward_fn(prompt_ids, completion_ids):
    last = torch.cat([prompt_ids[:, -1:], completion_ids], 1)
    return (last[:, 1:] == (last[:, :-1] + 1) % 12).float().mean(1)


def per_token_logps(model, input_ids, num_logits):
    logits = model(input_ids)[:, :-1][:, -num_logits:]
    return torch.gather(logits.log_softmax(-1), 2, input_ids[:, -num_logits:, None]).squeeze(-1)


def train(config):
    torch.manual_seed(config.seed)
    model = LanguageModel()
    ref_model = copy.deepcopy(model).eval().requires_grad_(False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.learning_rate, betas=(0.9, 0.99), weight_decay=0.1)
    history = []
    for step in range(config.steps):
        prompts = torch.randint(0, 12, (config.num_prompts, 3)).repeat_interleave(config.num_generations, 0)
        model.eval()
        ids = model.generate(prompts, config.max_new_tokens, config.temperature)
        model.train()
        rewards = reward_fn(prompts, ids[:, 3:])
        grouped = rewards.view(-1, config.num_generations)
        advantages = (grouped - grouped.mean(1, keepdim=True)) / (grouped.std(1, keepdim=True) + 1e-4)
        advantages = advantages.flatten()
        with torch.no_grad():
            ref_logps = per_token_logps(ref_model, ids, config.max_new_tokens)
        old_logps = None
        for _ in range(config.num_iterations):
            logps = per_token_logps(model, ids, config.max_new_tokens)
            old_logps = logps.detach() if old_logps is None else old_logps
            kl = torch.exp(ref_logps - logps) - (ref_logps - logps) - 1
            ratio = torch.exp(logps - old_logps)
            clipped = torch.clamp(ratio, 1 - config.epsilon, 1 + config.epsilon)
            objective = torch.min(ratio * advantages[:, None], clipped * advantages[:, None])
            loss = -(objective - config.beta * kl).mean()
            optimizer.zero_grad()
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            logs = {"loss": round(loss.item(), 7), "kl": round(kl.mean().item(), 6), "grad_norm": round(norm.item(), 5)}
            print({**logs, "reward": round(rewards.mean().item(), 5), "step": step})
        history.append(logs)
    torch.save(model.state_dict(), "policy.bin")
    with open("trainer_state.json", "w") as f:
        json.dump({"config": asdict(config), "log_history": history}, f)
    print(torch.randint(1000, (2,)).tolist())


if __name__ == "__main__":
    train(GRPOConfig())
