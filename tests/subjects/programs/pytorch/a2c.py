"""Advantage actor-critic over eight environments beside each other; rollouts keep their graph until the update."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class GridWorlds:
    """Walks in squares of 5 by 5; the goal is in a corner."""

    def __init__(self, n, seed):
        self.n, self.generator = n, torch.Generator().manual_seed(seed)
        self.place = torch.randint(5, (n, 2), generator=self.generator)

    def observe(self):
        return torch.cat([F.one_hot(self.place[:, axis], 5) for axis in (0, 1)], 1).float()

    def step(self, actions):
        moves = torch.tensor([[0, 1], [0, -1], [1, 0], [-1, 0]])
        self.place = (self.place + moves[actions]).clamp(0, 4)
        done = (self.place == 4).all(1)
        again = torch.randint(5, (self.n, 2), generator=self.generator)
        self.place = torch.where(done[:, None], again, self.place)
        return self.observe(), torch.where(done, 1.0, -0.02), done.float()


class Policy(nn.Module):
    def __init__(self, inputs, actions):
        super().__init__()
        self.base = nn.Sequential(nn.Linear(inputs, 32), nn.Tanh())
        self.critic_linear = nn.Linear(32, 1)
        self.dist = nn.Linear(32, actions)

    def forward(self, x):
        hidden = self.base(x)
        return torch.distributions.Categorical(logits=self.dist(hidden)), self.critic_linear(hidden).squeeze(-1)


def main(num_updates=15, num_steps=5, num_processes=8, gamma=0.95):
    torch.manual_seed(1)
    envs = GridWorlds(num_processes, 1)
    actor_critic = Policy(10, 4)
    optimizer = torch.optim.RMSprop(actor_critic.parameters(), 5e-3, eps=1e-5, alpha=0.99)
    obs, total = envs.observe(), 0.0
    for j in range(num_updates):
        log_probs, values, rewards, masks, entropies = [], [], [], [], []
        for _ in range(num_steps):
            dist, value = actor_critic(obs)
            action = dist.sample()
            obs, reward, done = envs.step(action)
            log_probs.append(dist.log_prob(action))
            values.append(value)
            rewards.append(reward)
            masks.append(1 - done)
            entropies.append(dist.entropy())
            total += reward.sum().item()
        with torch.no_grad():
            _, next_value = actor_critic(obs)
        returns = []
        for reward, mask in zip(reversed(rewards), reversed(masks)):
            next_value = reward + gamma * mask * next_value
            returns.insert(0, next_value)
        advantages = torch.stack(returns) - torch.stack(values)
        value_loss = advantages.pow(2).mean()
        action_loss = -(advantages.detach() * torch.stack(log_probs)).mean()
        loss = 0.5 * value_loss + action_loss - 0.01 * torch.stack(entropies).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(actor_critic.parameters(), 0.5)
        optimizer.step()
        print(f"Updates {j}, reward so far {total:.2f}, loss {loss.item():.6f}, value loss {value_loss.item():.5f}")
    torch.save([actor_critic.state_dict(), optimizer.state_dict()], "grid.pt")
    print(torch.rand(1).item(), torch.rand(1, generator=envs.generator).item())


if __name__ == "__main__":
    main()
