"""Trains a policy with REINFORCE to walk a corridor to its goal."""

import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(2)
LENGTH, LIMIT = 7, 16


def one_hot(cells):
    return nn.functional.one_hot(cells, LENGTH).float()


def rollout(policy, episodes):
    """Plays many episodes at once; a step costs 0.1, the goal brings 1 and ends the episode."""
    place = torch.full((episodes,), LENGTH // 2)
    alive = torch.ones(episodes)
    log_probs, rewards, masks = [], [], []
    for _ in range(LIMIT):
        dist = Categorical(logits=policy(one_hot(place)))
        action = dist.sample()
        place = (place + 2 * action - 1).clamp(0, LENGTH - 1)
        arrived = (place == LENGTH - 1).float()
        log_probs.append(dist.log_prob(action))
        rewards.append(alive * (arrived - 0.1))
        masks.append(alive)
        alive = alive * (1 - arrived)
    return torch.stack(log_probs), torch.stack(rewards), torch.stack(masks)


policy = nn.Sequential(nn.Linear(LENGTH, 32), nn.Tanh(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)

for update in range(100):
    log_probs, rewards, masks = rollout(policy, 24)
    returns = rewards.flip(0).cumsum(0).flip(0)
    advantage = (returns - returns.mean()) / (returns.std() + 1e-6)
    loss = (log_probs * advantage * masks).sum() / masks.sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if update % 20 == 0:
        print(f"update {update}: mean return {rewards.sum(0).mean():.3f}")

with torch.no_grad():
    _, rewards, _ = rollout(policy, 200)
print(f"mean return after training {rewards.sum(0).mean():.3f}")
