"""Proximal policy optimization of a pole balanced by a cart, several environments at a time."""

import math
from dataclasses import dataclass

import torch
import torch.nn as nn
from torch.distributions import Categorical


@dataclass
class Config:
    seed: int = 1
    envs: int = 4
    horizon: int = 32
    iterations: int = 4
    epochs: int = 3
    minibatches: int = 2
    gamma: float = 0.99
    lam: float = 0.95
    clip: float = 0.2
    vf_coef: float = 0.5
    ent_coef: float = 0.01
    max_grad_norm: float = 0.5
    learning_rate: float = 3e-3


class Poles:
    """Poles on carts, all stepped at once."""

    def __init__(self, number, generator):
        self.number, self.generator = number, generator
        self.state = self.fresh(number)

    def fresh(self, number):
        return torch.rand(number, 4, generator=self.generator) * 0.1 - 0.05

    def step(self, action):
        x, v, angle, speed = self.state.unbind(1)
        force = action.float() * 20.0 - 10.0
        sin, cos = angle.sin(), angle.cos()
        temp = (force + 0.05 * speed**2 * sin) / 1.1
        turning = (9.8 * sin - cos * temp) / (0.5 * (4.0 / 3.0 - 0.1 * cos**2 / 1.1))
        pushing = temp - 0.05 * turning * cos / 1.1
        self.state = torch.stack([x + 0.02 * v, v + 0.02 * pushing, angle + 0.02 * speed, speed + 0.02 * turning], 1)
        done = (self.state[:, 0].abs() > 2.4) | (self.state[:, 2].abs() > 12 * math.pi / 180)
        self.state = torch.where(done[:, None], self.fresh(self.number), self.state)
        return self.state, torch.ones(self.number), done.float()


def layer_init(layer, std=math.sqrt(2)):
    nn.init.orthogonal_(layer.weight, std)
    nn.init.zeros_(layer.bias)
    return layer


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.critic = nn.Sequential(layer_init(nn.Linear(4, 32)), nn.Tanh(), layer_init(nn.Linear(32, 1), std=1.0))
        self.actor = nn.Sequential(layer_init(nn.Linear(4, 32)), nn.Tanh(), layer_init(nn.Linear(32, 2), std=0.01))

    def get_value(self, x):
        return self.critic(x).squeeze(-1)

    def get_action_and_value(self, x, action=None):
        probs = Categorical(logits=self.actor(x))
        if action is None:
            action = probs.sample()
        return action, probs.log_prob(action), probs.entropy(), self.get_value(x)


def advantages_of(rewards, values, dones, last_value, cfg):
    result, running = torch.zeros_like(rewards), 0.0
    for t in reversed(range(cfg.horizon)):
        following = last_value if t == cfg.horizon - 1 else values[t + 1]
        delta = rewards[t] + cfg.gamma * following * (1 - dones[t]) - values[t]
        running = delta + cfg.gamma * cfg.lam * (1 - dones[t]) * running
        result[t] = running
    return result


def main(cfg):
    torch.manual_seed(cfg.seed)
    envs = Poles(cfg.envs, torch.Generator().manual_seed(cfg.seed))
    agent = Agent()
    optimizer = torch.optim.Adam(agent.parameters(), lr=cfg.learning_rate, eps=1e-5)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, cfg.iterations)
    obs, updates = envs.state, 0
    for iteration in range(cfg.iterations):
        store = {name: [] for name in ("obs", "actions", "logprobs", "rewards", "dones", "values")}
        for _ in range(cfg.horizon):
            with torch.no_grad():
                action, logprob, _, value = agent.get_action_and_value(obs)
            following, reward, done = envs.step(action)
            for name, item in zip(store, (obs, action, logprob, reward, done, value)):
                store[name].append(item)
            obs = following
        data = {name: torch.stack(items) for name, items in store.items()}
        with torch.no_grad():
            advantages = advantages_of(data["rewards"], data["values"], data["dones"], agent.get_value(obs), cfg)
        returns = (advantages + data["values"]).flatten()
        flat = {name: items.flatten(0, 1) for name, items in data.items()}
        advantages = advantages.flatten()
        for _ in range(cfg.epochs):
            for rows in torch.randperm(cfg.envs * cfg.horizon).chunk(cfg.minibatches):
                _, logprob, entropy, value = agent.get_action_and_value(flat["obs"][rows], flat["actions"][rows])
                ratio = (logprob - flat["logprobs"][rows]).exp()
                advantage = advantages[rows]
                advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
                pg_loss = torch.max(-advantage * ratio, -advantage * ratio.clamp(1 - cfg.clip, 1 + cfg.clip)).mean()
                v_loss = 0.5 * ((value - returns[rows]) ** 2).mean()
                loss = pg_loss - cfg.ent_coef * entropy.mean() + v_loss * cfg.vf_coef
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), cfg.max_grad_norm)
                optimizer.step()
                print(
                    f"  update {updates} loss={loss.item():.5f} policy={pg_loss.item():.5f} value={v_loss.item():.5f}"
                )
                updates += 1
        scheduler.step()
        print(f"iteration {iteration}: lr {scheduler.get_last_lr()[0]:.2e}, falls {int(data['dones'].sum())}")
    torch.save(agent.state_dict(), "agent.pt")
    print("next:", torch.randn(2).tolist())


if __name__ == "__main__":
    main(Config())
