"""DQN on a hand-written CartPole (so that gym isn't needed)."""
import copy
import math
import random
from collections import deque

import numpy as np
import torch
import torch.nn as nn

SEED = 1
random.seed(SEED)
np.random.seed(SEED)
torch.manual_seed(SEED)


class CartPole:
    MAX_STEPS = 200

    def reset(self):
        self.s = np.random.uniform(-0.05, 0.05, 4)
        self.t = 0
        return self.s.astype(np.float32)

    def step(self, action):
        x, v, th, w = self.s
        force = 10.0 if action == 1 else -10.0
        cos, sin = math.cos(th), math.sin(th)
        tmp = (force + 0.05 * w * w * sin) / 1.1
        acc_th = (9.8 * sin - cos * tmp) / (0.5 * (4 / 3 - 0.1 * cos * cos / 1.1))
        acc = tmp - 0.05 * acc_th * cos / 1.1
        self.s = np.array([x + 0.02 * v, v + 0.02 * acc, th + 0.02 * w, w + 0.02 * acc_th])
        self.t += 1
        fell = abs(self.s[0]) > 2.4 or abs(self.s[2]) > 0.2095
        return self.s.astype(np.float32), 1.0, fell, self.t >= self.MAX_STEPS


GAMMA = 0.99
BATCH = 64
EPISODES = 200
TARGET_EVERY = 200

env = CartPole()
q_net = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
target_net = copy.deepcopy(q_net)
optimizer = torch.optim.Adam(q_net.parameters(), lr=1e-3)
buffer = deque(maxlen=10000)
eps, updates = 1.0, 0


def learn():
    global updates
    s, a, r, s2, done = zip(*random.sample(buffer, BATCH))
    s, s2 = torch.from_numpy(np.stack(s)), torch.from_numpy(np.stack(s2))
    a = torch.tensor(a)
    r = torch.tensor(r)
    done = torch.tensor(done, dtype=torch.float32)
    q = q_net(s).gather(1, a[:, None]).squeeze(1)
    with torch.no_grad():
        target = r + GAMMA * target_net(s2).max(1).values
    loss = nn.functional.smooth_l1_loss(q, target)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(q_net.parameters(), 10.0)
    optimizer.step()
    updates += 1
    if updates % TARGET_EVERY == 0:
        target_net.load_state_dict(q_net.state_dict())
    return loss.item()


history = []
for episode in range(1, EPISODES + 1):
    state, total, losses = env.reset(), 0.0, []
    while True:
        if random.random() < eps:
            action = random.randrange(2)
        else:
            with torch.no_grad():
                action = q_net(torch.from_numpy(state)).argmax().item()
        nxt, reward, terminated, truncated = env.step(action)
        buffer.append((state, action, reward, nxt, terminated))
        state, total = nxt, total + reward
        if len(buffer) >= 500:
            losses.append(learn())
        if terminated or truncated:
            break
    eps = max(0.02, eps * 0.97)
    history.append(total)
    if episode % 25 == 0:
        print(f"episode {episode}: mean return {np.mean(history[-25:]):.1f}  "
              f"eps {eps:.2f}  loss {np.mean(losses) if losses else float('nan'):.4f}")

print("mean return of the last 50 episodes:", np.mean(history[-50:]))
