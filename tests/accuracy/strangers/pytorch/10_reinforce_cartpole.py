import math
import numpy as np
import torch
import torch.nn as nn
from torch.distributions import Categorical

GAMMA = 0.98
MAX_STEPS = 200
EPISODES = 150


class CartPole:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def reset(self):
        self.s = self.rng.uniform(-0.05, 0.05, 4)
        self.t = 0
        return self.s.astype(np.float32)

    def step(self, a):
        x, xd, th, thd = self.s
        f = 10.0 if a == 1 else -10.0
        c, s = math.cos(th), math.sin(th)
        tmp = (f + 0.05 * thd ** 2 * s) / 1.1
        tha = (9.8 * s - c * tmp) / (0.5 * (4 / 3 - 0.1 * c * c / 1.1))
        xa = tmp - 0.05 * tha * c / 1.1
        self.s = np.array([x + 0.02 * xd, xd + 0.02 * xa, th + 0.02 * thd, thd + 0.02 * tha])
        self.t += 1
        fell = abs(self.s[0]) > 2.4 or abs(self.s[2]) > 0.21
        return self.s.astype(np.float32), 1.0, fell or self.t >= MAX_STEPS


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 2))

    def forward(self, s):
        return Categorical(logits=self.net(s))


def discounted_returns(rewards):
    returns = []
    g = 0.0
    for r in reversed(rewards):
        g = r + GAMMA * g
        returns.append(g)
    return torch.tensor(returns)


def main():
    torch.manual_seed(1)
    env = CartPole(1)
    policy = Policy()
    optimizer = torch.optim.Adam(policy.parameters(), lr=5e-3)
    history = []
    baseline = 0.0
    for episode in range(1, EPISODES + 1):
        obs, done = env.reset(), False
        states, actions, rewards = [], [], []
        while not done:
            with torch.no_grad():
                action = policy(torch.from_numpy(obs)).sample().item()
            states.append(obs)
            actions.append(action)
            obs, reward, done = env.step(action)
            rewards.append(reward)
        returns = discounted_returns(rewards)
        baseline = returns.mean().item() if episode == 1 else 0.95 * baseline + 0.05 * returns.mean().item()
        advantage = (returns - baseline) / (returns.std() + 1e-6)
        dist = policy(torch.from_numpy(np.array(states)))
        loss = -(dist.log_prob(torch.tensor(actions)) * advantage).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(len(rewards))
        if episode % 30 == 0:
            print(f"episode {episode:4d}  mean length {np.mean(history[-30:]):6.1f}")
    print(f"last 50 episodes: mean length {np.mean(history[-50:]):.1f}")


if __name__ == "__main__":
    main()
