"""Soft actor-critic whose temperature is tuned by itself, in one file; the policy is updated every second time."""

import argparse
import random
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim


@dataclass
class Args:
    seed: int = 1
    total_timesteps: int = 96
    learning_starts: int = 60
    batch_size: int = 32
    gamma: float = 0.95
    tau: float = 0.01
    policy_lr: float = 1e-3
    q_lr: float = 2e-3
    policy_frequency: int = 2
    target_network_frequency: int = 1


class PointEnv:
    """A point is pushed to the origin of a plane."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def reset(self):
        self.where, self.t = self.rng.uniform(-1, 1, 2).astype(np.float32), 0
        return self.where.copy()

    def step(self, action):
        self.where = np.clip(self.where + 0.2 * action, -2, 2).astype(np.float32)
        self.t += 1
        return self.where.copy(), -float(np.linalg.norm(self.where)), self.t == 20


class SoftQNetwork(nn.Module):
    def __init__(self, obs, act):
        super().__init__()
        self.fc1 = nn.Linear(obs + act, 32)
        self.fc2 = nn.Linear(32, 32)
        self.fc3 = nn.Linear(32, 1)

    def forward(self, x, a):
        x = torch.cat([x, a], 1)
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        return self.fc3(x)


class Actor(nn.Module):
    def __init__(self, obs, act):
        super().__init__()
        self.fc1 = nn.Linear(obs, 32)
        self.fc_mean = nn.Linear(32, act)
        self.fc_logstd = nn.Linear(32, act)

    def forward(self, x):
        x = F.relu(self.fc1(x))
        log_std = torch.tanh(self.fc_logstd(x))
        return self.fc_mean(x), -5 + 0.5 * 7 * (log_std + 1)

    def get_action(self, x):
        mean, log_std = self(x)
        normal = torch.distributions.Normal(mean, log_std.exp())
        x_t = normal.rsample()
        action = torch.tanh(x_t)
        log_prob = normal.log_prob(x_t) - torch.log(1 - action.pow(2) + 1e-6)
        return action, log_prob.sum(1, keepdim=True), torch.tanh(mean)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    for name, default in vars(Args()).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(default), default=default)
    args = Args(**vars(parser.parse_args()))
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    env = PointEnv(args.seed)

    actor = Actor(2, 2)
    qf1, qf2 = SoftQNetwork(2, 2), SoftQNetwork(2, 2)
    qf1_target, qf2_target = SoftQNetwork(2, 2), SoftQNetwork(2, 2)
    qf1_target.load_state_dict(qf1.state_dict())
    qf2_target.load_state_dict(qf2.state_dict())
    q_optimizer = optim.Adam(list(qf1.parameters()) + list(qf2.parameters()), lr=args.q_lr)
    actor_optimizer = optim.Adam(list(actor.parameters()), lr=args.policy_lr)
    target_entropy = -2.0
    log_alpha = torch.zeros(1, requires_grad=True)
    alpha = log_alpha.exp().item()
    a_optimizer = optim.Adam([log_alpha], lr=args.q_lr)

    rb = []
    obs = env.reset()
    returns = [0.0]
    for global_step in range(args.total_timesteps):
        if global_step < args.learning_starts:
            actions = np.random.uniform(-1, 1, 2)
        else:
            actions, _, _ = actor.get_action(torch.Tensor(obs[None]))
            actions = actions.detach().numpy()[0]
        next_obs, reward, done = env.step(actions)
        rb.append((obs, actions.astype(np.float32), next_obs, np.float32(reward)))
        obs = next_obs
        returns[-1] += reward
        if done:
            print(f"global_step={global_step}, episodic_return={returns[-1]:.4f}")
            obs = env.reset()
            returns.append(0.0)

        if global_step >= args.learning_starts:
            batch = [torch.tensor(np.array(part)) for part in zip(*random.sample(rb, args.batch_size))]
            s, a, s2, r = batch
            with torch.no_grad():
                next_a, next_log_pi, _ = actor.get_action(s2)
                min_qf_next_target = torch.min(qf1_target(s2, next_a), qf2_target(s2, next_a)) - alpha * next_log_pi
                next_q_value = r + args.gamma * min_qf_next_target.view(-1)
            qf1_loss = F.mse_loss(qf1(s, a).view(-1), next_q_value)
            qf2_loss = F.mse_loss(qf2(s, a).view(-1), next_q_value)
            qf_loss = qf1_loss + qf2_loss
            q_optimizer.zero_grad()
            qf_loss.backward()
            q_optimizer.step()
            print(f"step {global_step} qf_loss={qf_loss.item():.6f} alpha={alpha:.5f}")

            if global_step % args.policy_frequency == 0:
                for _ in range(args.policy_frequency):
                    pi, log_pi, _ = actor.get_action(s)
                    min_qf_pi = torch.min(qf1(s, pi), qf2(s, pi))
                    actor_loss = ((alpha * log_pi) - min_qf_pi).mean()
                    actor_optimizer.zero_grad()
                    actor_loss.backward()
                    actor_optimizer.step()
                    with torch.no_grad():
                        _, log_pi, _ = actor.get_action(s)
                    alpha_loss = (-log_alpha.exp() * (log_pi + target_entropy)).mean()
                    a_optimizer.zero_grad()
                    alpha_loss.backward()
                    a_optimizer.step()
                    alpha = log_alpha.exp().item()
                print(f"step {global_step} actor_loss={actor_loss.item():.6f} alpha_loss={alpha_loss.item():.6f}")

            if global_step % args.target_network_frequency == 0:
                for net, target in ((qf1, qf1_target), (qf2, qf2_target)):
                    for param, target_param in zip(net.parameters(), target.parameters()):
                        target_param.data.copy_(args.tau * param.data + (1 - args.tau) * target_param.data)

    torch.save({"actor": actor.state_dict(), "log_alpha": log_alpha.detach()}, "sac.pt")
    print(random.random(), np.random.rand(), torch.rand(1).item())
