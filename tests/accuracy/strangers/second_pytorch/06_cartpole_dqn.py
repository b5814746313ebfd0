"""DQN on a self-contained CartPole (classic physics, reward 1 minus a small price for leaving the centre)."""
import math
import random
from collections import deque

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 0
random.seed(SEED)
np.random.seed(SEED)
torch.manual_seed(SEED)


class CartPole:
    limit = 200
    scale = np.array([2.4, 2.0, 0.21, 2.0])

    def reset(self):
        self.s = np.random.uniform(-1, 1, 4) * np.array([0.8, 0.3, 0.08, 0.3])
        self.t = 0
        return self.obs()

    def obs(self):
        return (self.s / self.scale).astype(np.float32)

    def step(self, action):
        x, v, th, w = self.s
        force = 10.0 if action == 1 else -10.0
        c, s = math.cos(th), math.sin(th)
        tmp = (force + 0.05 * w * w * s) / 1.1
        acc_th = (9.8 * s - c * tmp) / (0.5 * (4.0 / 3.0 - 0.1 * c * c / 1.1))
        acc = tmp - 0.05 * acc_th * c / 1.1
        self.s = np.array([x + 0.02 * v, v + 0.02 * acc, th + 0.02 * w, w + 0.02 * acc_th])
        self.t += 1
        fallen = abs(self.s[0]) > 2.4 or abs(self.s[2]) > 0.2095
        return self.obs(), 1.0 - 0.5 * abs(self.s[0]) / 2.4, fallen, self.t >= self.limit


def make_net():
    return nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))


def evaluate(net, episodes=10):
    env, lengths = CartPole(), []
    for _ in range(episodes):
        s, done = env.reset(), False
        while not done:
            with torch.no_grad():
                a = net(torch.from_numpy(s)).argmax().item()
            s, _, fallen, timeout = env.step(a)
            done = fallen or timeout
        lengths.append(env.t)
    return float(np.mean(lengths))


GAMMA, BATCH, TOTAL_STEPS, WARMUP = 0.97, 128, 8000, 1000
q_net, target_net = make_net(), make_net()
target_net.load_state_dict(q_net.state_dict())
optimizer = torch.optim.Adam(q_net.parameters(), lr=5e-4)
schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.05, total_iters=TOTAL_STEPS - WARMUP)
memory = deque(maxlen=15000)

env = CartPole()
state, returns, ep_return, losses = env.reset(), [], 0.0, []
for step in range(1, TOTAL_STEPS + 1):
    eps = max(0.05, 1.0 - step / 4000)
    if random.random() < eps:
        action = random.randrange(2)
    else:
        with torch.no_grad():
            action = q_net(torch.from_numpy(state)).argmax().item()
    nxt, reward, fallen, timeout = env.step(action)
    memory.append((state, action, reward, nxt, float(fallen)))
    state, ep_return = nxt, ep_return + reward
    if fallen or timeout:
        returns.append(ep_return)
        state, ep_return = env.reset(), 0.0

    if step >= WARMUP:
        s, a, r, s2, d = zip(*random.sample(memory, BATCH))
        s, s2 = torch.from_numpy(np.stack(s)), torch.from_numpy(np.stack(s2))
        a, r, d = torch.tensor(a), torch.tensor(r).float(), torch.tensor(d)
        with torch.no_grad():
            best = q_net(s2).argmax(1, keepdim=True)
            next_q = target_net(s2).gather(1, best).squeeze(1)
            target = r + GAMMA * next_q
        q = q_net(s).gather(1, a.unsqueeze(1)).squeeze(1)
        loss = F.smooth_l1_loss(q, target)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(q_net.parameters(), 10.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        if step % 150 == 0:
            target_net.load_state_dict(q_net.state_dict())

    if step % 1000 == 0:
        print(f"step {step:6d}  eps {eps:.2f}  return(last 10) {np.mean(returns[-10:]):6.1f}  "
              f"loss {np.mean(losses[-500:]):.4f}  mean q {q.mean().item():.2f}")

print(f"greedy policy, mean episode length over 20 episodes: {evaluate(q_net, 20):.1f} / 200")
