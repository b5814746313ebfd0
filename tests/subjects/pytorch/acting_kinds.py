"""Kinds of trainings that act to get their data, each as an author writes such a loop; see ``step_kinds``."""

import copy
import random
from collections import deque

import numpy as np
import torch
import torch.nn.functional as F
from author import LENGTH
from corridor import ACTIONS, STATES, Corridor
from learned import gradients, weights
from torch import nn
from torch.distributions import Categorical


class Policy(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(STATES, 8), nn.Tanh(), nn.Linear(8, ACTIONS))


class Values(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(STATES, 8), nn.ReLU(), nn.Linear(8, ACTIONS))


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(STATES, 8)
        self.actor, self.critic = nn.Linear(8, ACTIONS), nn.Linear(8, 1)

    def forward(self, x):
        h = torch.tanh(self.body(x))
        return Categorical(logits=self.actor(h)), self.critic(h).squeeze(-1)


def dqn(author):
    values = Values()
    target = copy.deepcopy(values)
    optimizer = torch.optim.AdamW(values.parameters(), lr=1e-2)
    memory = deque(maxlen=60)
    corridor = Corridor(1)
    state = corridor.reset()
    for time in range(64):
        if random.random() < max(0.1, 1 - time / 40):
            action = random.randrange(ACTIONS)
        else:
            with torch.no_grad():
                action = values(torch.from_numpy(state)).argmax().item()
            author.evaluated()
        after, reward, done = corridor.step(action)
        memory.append((state, action, reward, after, done))
        state = corridor.reset() if done else after
        if len(memory) < 16:
            continue
        states, actions, rewards, afters, ends = (
            np.array(part) for part in zip(*random.sample(memory, 8), strict=True)
        )
        chosen = values(torch.from_numpy(states)).gather(1, torch.from_numpy(actions)[:, None]).squeeze(1)
        with torch.no_grad():
            best = target(torch.from_numpy(afters)).max(1).values
        wanted = torch.from_numpy(rewards).float() + 0.9 * best * torch.from_numpy(~ends)
        loss = F.smooth_l1_loss(chosen, wanted)
        author.loss(loss.item())
        optimizer.zero_grad()
        loss.backward()
        author.gradients(gradients(values))
        nn.utils.clip_grad_value_(values.parameters(), 100)
        optimizer.step()
        author.iteration()
        if time % 10 == 0:
            target.load_state_dict(values.state_dict())
    return weights(values, target)


def reinforce(author):
    policy = Policy()
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
    corridor = Corridor(1)
    for _ in range(LENGTH):
        state, done, chances, rewards = corridor.reset(), False, [], []
        while not done:
            chosen = Categorical(logits=policy(torch.from_numpy(state)))
            action = chosen.sample()
            chances.append(chosen.log_prob(action))
            state, reward, done = corridor.step(action.item())
            rewards.append(reward)
        returns = np.cumsum(rewards[::-1])[::-1].copy()
        loss = -(torch.stack(chances) * torch.from_numpy(returns)).sum()
        author.loss(loss.item())
        optimizer.zero_grad()
        loss.backward()
        author.gradients(gradients(policy))
        optimizer.step()
        author.iteration()
    return weights(policy)


def ppo(author):
    model = ActorCritic()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, eps=1e-5)
    corridor = Corridor(1)
    state = corridor.reset()
    for _ in range(3):
        steps = []
        for _ in range(16):
            with torch.no_grad():
                chosen, value = model(torch.from_numpy(state))
                action = chosen.sample()
            author.evaluated()
            after, reward, done = corridor.step(action.item())
            steps.append((state, action, chosen.log_prob(action), value, reward, done))
            state = corridor.reset() if done else after
        with torch.no_grad():
            _, following = model(torch.from_numpy(state))
        author.evaluated()
        states = torch.from_numpy(np.array([step[0] for step in steps]))
        actions, before, values = (torch.stack([step[i] for step in steps]) for i in (1, 2, 3))
        returns = torch.zeros(16)
        for i in reversed(range(16)):
            following = steps[i][4] + 0.9 * following * (not steps[i][5])
            returns[i] = following
        gains = returns - values
        for _ in range(3):
            for picked in torch.randperm(16).split(4):
                chosen, value = model(states[picked])
                ratio = (chosen.log_prob(actions[picked]) - before[picked]).exp()
                clipped = ratio.clamp(0.8, 1.2)
                of_policy = -torch.min(ratio * gains[picked], clipped * gains[picked]).mean()
                of_value = F.mse_loss(value, returns[picked])
                author.loss(of_value.item())
                loss = of_policy + 0.5 * of_value - 0.01 * chosen.entropy().mean()
                author.loss(loss.item())
                optimizer.zero_grad()
                loss.backward()
                author.gradients(gradients(model))
                nn.utils.clip_grad_norm_(model.parameters(), 0.5)
                optimizer.step()
                author.iteration()
    return weights(model)


KINDS = [dqn, reinforce, ppo]
