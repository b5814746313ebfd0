"""DQN keeps a small drone between floor and ceiling."""
import copy
import random
from collections import deque
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class HoverEnv:
    """state: height in [-1, 1] and vertical speed; actions: motor off / on"""

    def __init__(self, limit=150):
        self.limit = limit

    def reset(self):
        self.h, self.v, self.t = random.uniform(-0.3, 0.3), random.uniform(-0.1, 0.1), 0
        return np.array([self.h, self.v], dtype=np.float32)

    def step(self, action):
        acc = (1.2 if action == 1 else -0.8) + random.gauss(0, 0.3)
        self.v += 0.1 * acc
        self.h += 0.1 * self.v
        self.t += 1
        crashed = abs(self.h) > 1.0
        truncated = self.t >= self.limit
        return np.array([self.h, self.v], dtype=np.float32), 1.0, crashed, truncated


class Agent:
    def __init__(self, gamma=0.95, lr=1e-3):
        self.q = nn.Sequential(nn.Linear(2, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 2))
        self.target = copy.deepcopy(self.q)
        self.opt = torch.optim.Adam(self.q.parameters(), lr=lr)
        self.gamma = gamma
        self.memory = deque(maxlen=5000)

    @torch.no_grad()
    def act(self, s, eps):
        if random.random() < eps:
            return random.randrange(2)
        return self.q(torch.from_numpy(s)).argmax().item()

    def learn(self, batch_size=64):
        batch = random.sample(self.memory, batch_size)
        s, a, r, s2, _ = map(np.array, zip(*batch))
        s, s2 = torch.from_numpy(s), torch.from_numpy(s2)
        a = torch.from_numpy(a)
        r = torch.tensor(r, dtype=torch.float32)
        with torch.no_grad():
            next_q = self.target(s2).max(1).values
            y = r + self.gamma * next_q
        q = self.q(s).gather(1, a[:, None]).squeeze(1)
        loss = F.smooth_l1_loss(q, y)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()


def greedy_length(agent, env, episodes=10):
    total = 0
    for _ in range(episodes):
        s, over = env.reset(), False
        while not over:
            s, _, crashed, truncated = env.step(agent.act(s, 0.0))
            over = crashed or truncated
            total += 1
    return total / episodes


random.seed(0)
np.random.seed(0)
torch.manual_seed(0)
env, agent = HoverEnv(), Agent()
state = env.reset()
losses = deque(maxlen=200)
for step in range(1, 4001):
    eps = max(0.05, 1 - step / 2000)
    action = agent.act(state, eps)
    nxt, reward, crashed, truncated = env.step(action)
    agent.memory.append((state, action, reward, nxt, float(crashed)))
    state = env.reset() if crashed or truncated else nxt
    if step >= 300 and step % 2 == 0:
        losses.append(agent.learn())
    if step % 100 == 0:
        agent.target.load_state_dict(agent.q.state_dict())
    if step % 500 == 0:
        print(f"step {step}  loss {np.mean(losses):.4f}  eps {eps:.2f}")
print(f"greedy policy: mean episode length {greedy_length(agent, env):.1f} of {env.limit}")
