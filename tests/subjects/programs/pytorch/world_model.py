"""Dreaming: a model of the world is learned from episodes, an actor and a critic from what is imagined with it."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import distributions as td
from torch import nn


class Corridor:
    """A cart shall stand in the middle of a corridor."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def episode(self, policy, length=12):
        place, speed, rows = self.rng.uniform(-1, 1), 0.0, []
        for _ in range(length):
            seen = np.array([place, speed], dtype=np.float32)
            action = float(np.clip(policy(seen), -1, 1))
            speed = 0.8 * speed + 0.3 * action
            place = float(np.clip(place + 0.3 * speed, -2, 2))
            rows.append((seen, np.float32([action]), np.float32(-abs(place))))
        return [np.stack(column) for column in zip(*rows)]


class WorldModel(nn.Module):
    def __init__(self, obs=2, action=1, deter=24, stoch=6):
        super().__init__()
        self.deter, self.stoch = deter, stoch
        self.encoder = nn.Sequential(nn.Linear(obs, 24), nn.ELU())
        self.cell = nn.GRUCell(stoch + action, deter)
        self.prior = nn.Linear(deter, 2 * stoch)
        self.posterior = nn.Linear(deter + 24, 2 * stoch)
        self.decoder = nn.Linear(deter + stoch, obs)
        self.reward = nn.Linear(deter + stoch, 1)

    def dist(self, stats):
        mean, std = stats.chunk(2, -1)
        return td.Independent(td.Normal(mean, F.softplus(std) + 0.1), 1)

    def initial(self, n):
        return torch.zeros(n, self.deter), torch.zeros(n, self.stoch)

    def imagine(self, state, action):
        deter = self.cell(torch.cat([state[1], action], -1), state[0])
        prior = self.dist(self.prior(deter))
        return (deter, prior.rsample()), prior

    def observe(self, state, action, embedded):
        (deter, _), prior = self.imagine(state, action)
        posterior = self.dist(self.posterior(torch.cat([deter, embedded], -1)))
        return (deter, posterior.rsample()), prior, posterior

    def forward(self, obs, actions, rewards):
        embedded, state = self.encoder(obs), self.initial(len(obs))
        previous = torch.cat([torch.zeros_like(actions[:, :1]), actions[:, :-1]], 1)
        losses, states = 0.0, []
        for t in range(obs.shape[1]):
            state, prior, posterior = self.observe(state, previous[:, t], embedded[:, t])
            feature = torch.cat(state, -1)
            divergence = td.kl_divergence(posterior, prior).clamp(min=0.1).mean()
            rebuilt = F.mse_loss(self.decoder(feature), obs[:, t])
            losses = losses + divergence * 0.1 + rebuilt + F.mse_loss(self.reward(feature)[:, 0], rewards[:, t])
            states.append(state)
        start = tuple(torch.stack(part, 1).flatten(0, 1).detach() for part in zip(*states))
        return losses / obs.shape[1], start


class Actor(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(features, 24), nn.ELU(), nn.Linear(24, 2))

    def forward(self, feature):
        mean, std = self.net(feature).chunk(2, -1)
        return torch.tanh(td.Normal(mean, F.softplus(std) + 0.1).rsample())


def lambda_returns(rewards, values, discount=0.95, lambda_=0.95):
    returns, last = [], values[-1]
    for reward, value in zip(reversed(rewards[:-1]), reversed(values[1:])):
        last = reward + discount * ((1 - lambda_) * value + lambda_ * last)
        returns.insert(0, last)
    return torch.stack(returns)


def dream(world, actor, critic, start, horizon=5):
    state, features = start, []
    for _ in range(horizon):
        features.append(torch.cat(state, -1))
        state, _ = world.imagine(state, actor(features[-1].detach()))
    features = torch.stack(features)
    return features, lambda_returns(world.reward(features)[..., 0], critic(features)[..., 0])


def main(updates=12, batch=8):
    torch.manual_seed(0)
    env = Corridor(0)
    replay = [env.episode(lambda seen: env.rng.uniform(-1, 1)) for _ in range(16)]
    world, actor, critic = WorldModel(), Actor(30), nn.Sequential(nn.Linear(30, 24), nn.ELU(), nn.Linear(24, 1))
    world_optimizer = torch.optim.Adam(world.parameters(), lr=6e-3)
    actor_optimizer = torch.optim.Adam(actor.parameters(), lr=3e-3)
    critic_optimizer = torch.optim.Adam(critic.parameters(), lr=3e-3)
    for update in range(updates):
        chosen = env.rng.integers(0, len(replay), batch)
        obs, actions, rewards = (torch.tensor(np.stack([replay[i][part] for i in chosen])) for part in range(3))
        world_loss, start = world(obs, actions, rewards)
        world_optimizer.zero_grad()
        world_loss.backward()
        nn.utils.clip_grad_norm_(world.parameters(), 100)
        world_optimizer.step()
        features, returns = dream(world, actor, critic, start)
        actor_loss = -returns.mean()
        actor_optimizer.zero_grad()
        actor_loss.backward()
        actor_optimizer.step()
        critic_loss = F.mse_loss(critic(features[:-1].detach())[..., 0], returns.detach())
        critic_optimizer.zero_grad()
        critic_loss.backward()
        critic_optimizer.step()
        print(f"{update} world {world_loss.item():.6f} actor {actor_loss.item():.6f} critic {critic_loss.item():.6f}")
    torch.save({"world": world.state_dict(), "actor": actor.state_dict(), "critic": critic.state_dict()}, "dreamer.pt")
    print(env.rng.random(), torch.rand(1).item())


if __name__ == "__main__":
    main()
