"""Twin delayed policy gradients on a pendulum: the actor is updated every second time, targets follow slowly."""

import copy
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class Pendulum:
    max_action = 2.0

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def reset(self):
        self.angle, self.speed, self.t = self.rng.uniform(-math.pi, math.pi), self.rng.uniform(-1, 1), 0
        return self.observe()

    def observe(self):
        return np.array([math.cos(self.angle), math.sin(self.angle), self.speed], dtype=np.float32)

    def step(self, action):
        u = float(np.clip(action[0], -self.max_action, self.max_action))
        angle = (self.angle + math.pi) % (2 * math.pi) - math.pi
        cost = angle**2 + 0.1 * self.speed**2 + 0.001 * u**2
        self.speed = float(np.clip(self.speed + 0.05 * (15 * math.sin(self.angle) + 3 * u), -8, 8))
        self.angle += 0.05 * self.speed
        self.t += 1
        return self.observe(), -cost, self.t >= 40


class Actor(nn.Module):
    def __init__(self, state_dim, action_dim, max_action):
        super().__init__()
        self.l1 = nn.Linear(state_dim, 32)
        self.l2 = nn.Linear(32, 32)
        self.l3 = nn.Linear(32, action_dim)
        self.max_action = max_action

    def forward(self, state):
        a = F.relu(self.l1(state))
        a = F.relu(self.l2(a))
        return self.max_action * torch.tanh(self.l3(a))


class Critic(nn.Module):
    def __init__(self, state_dim, action_dim):
        super().__init__()
        self.l1 = nn.Linear(state_dim + action_dim, 32)
        self.l2 = nn.Linear(32, 1)
        self.l4 = nn.Linear(state_dim + action_dim, 32)
        self.l5 = nn.Linear(32, 1)

    def forward(self, state, action):
        sa = torch.cat([state, action], 1)
        return self.l2(F.relu(self.l1(sa))), self.l5(F.relu(self.l4(sa)))

    def Q1(self, state, action):
        sa = torch.cat([state, action], 1)
        return self.l2(F.relu(self.l1(sa)))


class ReplayBuffer:
    def __init__(self, state_dim, action_dim, max_size=1000):
        self.max_size, self.ptr, self.size = max_size, 0, 0
        self.store = [np.zeros((max_size, n), dtype=np.float32) for n in (state_dim, action_dim, state_dim, 1, 1)]

    def add(self, *transition):
        for rows, value in zip(self.store, transition):
            rows[self.ptr] = value
        self.ptr = (self.ptr + 1) % self.max_size
        self.size = min(self.size + 1, self.max_size)

    def sample(self, batch_size):
        ind = np.random.randint(0, self.size, size=batch_size)
        return [torch.from_numpy(rows[ind]) for rows in self.store]


class TD3:
    def __init__(self, state_dim, action_dim, max_action, discount=0.98, tau=0.01, policy_freq=2):
        self.actor = Actor(state_dim, action_dim, max_action)
        self.actor_target = copy.deepcopy(self.actor)
        self.actor_optimizer = torch.optim.Adam(self.actor.parameters(), lr=3e-3)
        self.critic = Critic(state_dim, action_dim)
        self.critic_target = copy.deepcopy(self.critic)
        self.critic_optimizer = torch.optim.Adam(self.critic.parameters(), lr=3e-3)
        self.max_action, self.discount, self.tau, self.policy_freq = max_action, discount, tau, policy_freq
        self.total_it = 0

    @torch.no_grad()
    def select_action(self, state):
        state = torch.FloatTensor(state.reshape(1, -1))
        return self.actor(state).numpy().flatten()

    def train(self, replay_buffer, batch_size=32):
        self.total_it += 1
        state, action, next_state, reward, not_done = replay_buffer.sample(batch_size)
        with torch.no_grad():
            noise = (torch.randn_like(action) * 0.2).clamp(-0.5, 0.5)
            next_action = (self.actor_target(next_state) + noise).clamp(-self.max_action, self.max_action)
            target_Q = torch.min(*self.critic_target(next_state, next_action))
            target_Q = reward + not_done * self.discount * target_Q
        current_Q1, current_Q2 = self.critic(state, action)
        critic_loss = F.mse_loss(current_Q1, target_Q) + F.mse_loss(current_Q2, target_Q)
        self.critic_optimizer.zero_grad()
        critic_loss.backward()
        self.critic_optimizer.step()
        actor_loss = None
        if self.total_it % self.policy_freq == 0:
            actor_loss = -self.critic.Q1(state, self.actor(state)).mean()
            self.actor_optimizer.zero_grad()
            actor_loss.backward()
            self.actor_optimizer.step()
            for net, target in ((self.critic, self.critic_target), (self.actor, self.actor_target)):
                for param, target_param in zip(net.parameters(), target.parameters()):
                    target_param.data.copy_(self.tau * param.data + (1 - self.tau) * target_param.data)
        return critic_loss.item(), None if actor_loss is None else actor_loss.item()

    def save(self, filename):
        torch.save(self.critic.state_dict(), filename + "_critic")
        torch.save(self.actor.state_dict(), filename + "_actor")


def main(max_timesteps=110, start_timesteps=80):
    torch.manual_seed(0)
    np.random.seed(0)
    env = Pendulum(0)
    policy = TD3(3, 1, env.max_action)
    buffer = ReplayBuffer(3, 1)
    state, episode_reward, evaluations = env.reset(), 0.0, []
    for t in range(max_timesteps):
        if t < start_timesteps:
            action = np.random.uniform(-env.max_action, env.max_action, 1)
        else:
            action = policy.select_action(state) + np.random.normal(0, 0.2, size=1)
            action = action.clip(-env.max_action, env.max_action)
        next_state, reward, done = env.step(action)
        buffer.add(state, action, next_state, reward, 1.0)
        state, episode_reward = next_state, episode_reward + reward
        if t >= start_timesteps:
            critic_loss, actor_loss = policy.train(buffer)
            rest = "" if actor_loss is None else f"  actor {actor_loss:.5f}"
            print(f"T: {t + 1}  critic {critic_loss:.5f}{rest}")
        if done:
            print(f"Total T: {t + 1} Reward: {episode_reward:.3f}")
            evaluations.append(episode_reward)
            state, episode_reward = env.reset(), 0.0
    np.save("evaluations.npy", evaluations)
    policy.save("TD3_pendulum")
    print(torch.rand(1).item(), np.random.rand(), env.rng.random())


if __name__ == "__main__":
    main()
