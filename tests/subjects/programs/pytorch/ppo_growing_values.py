"""PPO on a pole that learns to stand longer: returns grow, and so does the loss of their estimate."""

import csv
import math
import random

import torch
from torch import nn
from torch.distributions import Categorical


class Pole:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def reset(self):
        self.state = [self.random.uniform(-0.05, 0.05) for _ in range(4)]
        self.steps = 0
        return torch.tensor(self.state)

    def step(self, action):
        x, v, angle, turn = self.state
        force = 10.0 if action else -10.0
        temp = (force + 0.05 * turn**2 * math.sin(angle)) / 1.1
        turning = (9.8 * math.sin(angle) - math.cos(angle) * temp) / (0.5 * (4 / 3 - 0.1 * math.cos(angle) ** 2 / 1.1))
        moving = temp - 0.05 * turning * math.cos(angle) / 1.1
        self.state = [x + 0.02 * v, v + 0.02 * moving, angle + 0.02 * turn, turn + 0.02 * turning]
        self.steps += 1
        fallen = abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.21
        return torch.tensor(self.state), 1.0, fallen or self.steps >= 200


class RolloutBuffer:
    def __init__(self):
        self.clear()

    def clear(self):
        self.actions, self.states, self.logprobs, self.rewards, self.is_terminals = [], [], [], [], []


class ActorCritic(nn.Module):
    def __init__(self, state_dim, action_dim):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(state_dim, 32), nn.Tanh(), nn.Linear(32, action_dim), nn.Softmax(dim=-1))
        self.critic = nn.Sequential(nn.Linear(state_dim, 32), nn.Tanh(), nn.Linear(32, 1))

    def forward(self):
        raise NotImplementedError

    def act(self, state):
        dist = Categorical(self.actor(state))
        action = dist.sample()
        return action.detach(), dist.log_prob(action).detach()

    def evaluate(self, state, action):
        dist = Categorical(self.actor(state))
        return dist.log_prob(action), self.critic(state), dist.entropy()


class PPO:
    def __init__(self, state_dim, action_dim, gamma=0.99, k_epochs=8, eps_clip=0.2):
        self.gamma, self.k_epochs, self.eps_clip = gamma, k_epochs, eps_clip
        self.buffer = RolloutBuffer()
        self.policy = ActorCritic(state_dim, action_dim)
        self.optimizer = torch.optim.Adam(
            [
                {"params": self.policy.actor.parameters(), "lr": 4e-3},
                {"params": self.policy.critic.parameters(), "lr": 1e-3},
            ]
        )
        self.policy_old = ActorCritic(state_dim, action_dim)
        self.policy_old.load_state_dict(self.policy.state_dict())
        self.mse = nn.MSELoss()

    def select_action(self, state):
        with torch.no_grad():
            action, logprob = self.policy_old.act(state)
        self.buffer.states.append(state)
        self.buffer.actions.append(action)
        self.buffer.logprobs.append(logprob)
        return action.item()

    def update(self):
        rewards, discounted = [], 0
        for reward, is_terminal in zip(reversed(self.buffer.rewards), reversed(self.buffer.is_terminals)):
            discounted = reward + (0 if is_terminal else self.gamma * discounted)
            rewards.insert(0, discounted)
        rewards = torch.tensor(rewards, dtype=torch.float32)
        old_states, old_actions = torch.stack(self.buffer.states), torch.stack(self.buffer.actions)
        old_logprobs = torch.stack(self.buffer.logprobs)
        for _ in range(self.k_epochs):
            logprobs, values, entropy = self.policy.evaluate(old_states, old_actions)
            values = values.squeeze(-1)
            advantages = rewards - values.detach()
            advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-7)
            ratios = torch.exp(logprobs - old_logprobs)
            surr1 = ratios * advantages
            surr2 = torch.clamp(ratios, 1 - self.eps_clip, 1 + self.eps_clip) * advantages
            value_loss = self.mse(values, rewards)
            loss = -torch.min(surr1, surr2) + 0.5 * value_loss - 0.01 * entropy
            self.optimizer.zero_grad()
            loss.mean().backward()
            self.optimizer.step()
        self.policy_old.load_state_dict(self.policy.state_dict())
        self.buffer.clear()
        return loss.mean().item(), value_loss.item()


def train(updates=12, update_timestep=300):
    torch.manual_seed(3)
    env, agent = Pole(3), PPO(4, 2)
    state, timesteps, episode, lengths, log = env.reset(), 0, 0, [], []
    while len(log) < updates:
        action = agent.select_action(state)
        state, reward, done = env.step(action)
        agent.buffer.rewards.append(reward)
        agent.buffer.is_terminals.append(done)
        timesteps += 1
        if done:
            lengths.append(env.steps)
            episode, state = episode + 1, env.reset()
        if timesteps % update_timestep == 0:
            loss, value_loss = agent.update()
            mean = sum(lengths) / max(1, len(lengths))
            lengths = []
            log.append((episode, timesteps, mean))
            print(f"Episode : {episode} \t Length : {mean:.1f} \t loss {loss:.5f} \t value loss {value_loss:.4f}")
    with open("PPO_log.csv", "w", newline="") as file:
        csv.writer(file).writerows([("episode", "timestep", "length"), *log])
    torch.save(agent.policy_old.state_dict(), "PPO_pole.pth")
    print(env.random.random(), torch.rand(1).item())


if __name__ == "__main__":
    train()
