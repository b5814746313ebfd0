"""REINFORCE with a baseline on a corridor of ten cells: the agent learns to walk to the right."""

import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(0)
CELLS, LONGEST, EPISODES = 10, 40, 60
policy = nn.Sequential(nn.Linear(CELLS, 32), nn.Tanh(), nn.Linear(32, 2))
value = nn.Sequential(nn.Linear(CELLS, 32), nn.Tanh(), nn.Linear(32, 1))
opt = torch.optim.Adam([*policy.parameters(), *value.parameters()], lr=5e-3)
eye = torch.eye(CELLS)
for episode in range(EPISODES):
    cell, states, actions, rewards = 0, [], [], []
    while cell < CELLS - 1 and len(states) < LONGEST:
        with torch.no_grad():
            action = Categorical(logits=policy(eye[cell])).sample().item()
        states.append(cell)
        actions.append(action)
        cell = max(0, cell + (1 if action else -1))
        rewards.append(1.0 if cell == CELLS - 1 else -0.05)
    returns, total = [], 0.0
    for reward in reversed(rewards):
        total = reward + 0.97 * total
        returns.insert(0, total)
    returns = torch.tensor(returns)
    batch = eye[states]
    baseline = value(batch).squeeze(1)
    advantage = returns - baseline.detach()
    distribution = Categorical(logits=policy(batch))
    policy_loss = -(distribution.log_prob(torch.tensor(actions)) * advantage).mean()
    loss = policy_loss + 0.5 * nn.functional.mse_loss(baseline, returns) - 0.01 * distribution.entropy().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if episode % 30 == 0:
        print(episode, len(states))
