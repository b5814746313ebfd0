"""Actor-critic with one update for each episode: the gradient flows through all calls of the episode."""

import argparse
from itertools import count

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.distributions import Categorical

parser = argparse.ArgumentParser(description="actor-critic example")
parser.add_argument("--gamma", type=float, default=0.97)
parser.add_argument("--seed", type=int, default=543)
parser.add_argument("--episodes", type=int, default=8)
parser.add_argument("--log-interval", type=int, default=2)
args = parser.parse_args()

rng = np.random.RandomState(args.seed)
torch.manual_seed(args.seed)


class Lane:
    """Stay on a lane while the wind blows."""

    def reset(self):
        self.position, self.speed = rng.uniform(-0.1, 0.1), 0.0
        return np.array([self.position, self.speed], dtype=np.float32)

    def step(self, action):
        self.speed += 0.1 * (action - 1) + rng.normal(0, 0.05)
        self.position += 0.2 * self.speed
        done = abs(self.position) > 1.0
        return np.array([self.position, self.speed], dtype=np.float32), 1.0 - abs(self.position), done


class Policy(nn.Module):
    """Both the actor and the critic."""

    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(2, 24)
        self.action_head = nn.Linear(24, 3)
        self.value_head = nn.Linear(24, 1)
        self.saved = []
        self.rewards = []

    def forward(self, x):
        x = F.relu(self.affine1(x))
        return F.softmax(self.action_head(x), dim=-1), self.value_head(x)


model = Policy()
optimizer = optim.Adam(model.parameters(), lr=1e-2)
eps = np.finfo(np.float32).eps.item()
env = Lane()


def select_action(state):
    probs, value = model(torch.from_numpy(state))
    m = Categorical(probs)
    action = m.sample()
    model.saved.append((m.log_prob(action), value))
    return action.item()


def finish_episode():
    R, returns = 0, []
    for r in model.rewards[::-1]:
        R = r + args.gamma * R
        returns.insert(0, R)
    returns = torch.tensor(returns, dtype=torch.float32)
    returns = (returns - returns.mean()) / (returns.std() + eps)
    policy_losses, value_losses = [], []
    for (log_prob, value), ret in zip(model.saved, returns):
        policy_losses.append(-log_prob * (ret - value.item()))
        value_losses.append(F.smooth_l1_loss(value, ret.reshape(1)))
    optimizer.zero_grad()
    loss = torch.stack(policy_losses).sum() + torch.stack(value_losses).sum()
    loss.backward()
    optimizer.step()
    del model.rewards[:]
    del model.saved[:]
    return loss.item()


def main():
    running_reward = 5.0
    for i_episode in range(args.episodes):
        state = env.reset()
        ep_reward = 0
        for t in count(1):
            state, reward, done = env.step(select_action(state))
            model.rewards.append(reward)
            ep_reward += reward
            if done or t == 25:
                break
        running_reward = 0.05 * ep_reward + 0.95 * running_reward
        loss = finish_episode()
        print(f"loss of episode {i_episode}: {loss:.4f}")
        if i_episode % args.log_interval == 0:
            print(f"Episode {i_episode}\tLast reward: {ep_reward:.2f}\tAverage reward: {running_reward:.2f}")
    torch.save(model, "policy.pth")
    print(torch.rand(2), rng.rand())


if __name__ == "__main__":
    main()
