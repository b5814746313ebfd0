"""Deep Q-learning with a replay buffer and a target network, on a walk along a cliff."""

import argparse
import random
from collections import deque, namedtuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn, optim

Transition = namedtuple("Transition", "state action reward following done")


class CliffWalk:
    """A grid of 4 x 6 fields; the way along the lower edge is short and deadly."""

    HEIGHT, WIDTH = 4, 6
    MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1))

    def reset(self):
        self.row, self.column, self.time = self.HEIGHT - 1, 0, 0
        return self.observation()

    def observation(self):
        grid = np.zeros((self.HEIGHT, self.WIDTH), dtype=np.float32)
        grid[self.row, self.column] = 1.0
        return grid.ravel()

    def step(self, action):
        down, right = self.MOVES[action]
        self.row = min(max(self.row + down, 0), self.HEIGHT - 1)
        self.column = min(max(self.column + right, 0), self.WIDTH - 1)
        self.time += 1
        if self.row == self.HEIGHT - 1 and 0 < self.column < self.WIDTH - 1:
            return self.observation(), -1.0, True
        if self.row == self.HEIGHT - 1 and self.column == self.WIDTH - 1:
            return self.observation(), 1.0, True
        return self.observation(), -0.02, self.time >= 30


class QNetwork(nn.Module):
    def __init__(self, n_observations, n_actions):
        super().__init__()
        self.layer1 = nn.Linear(n_observations, 32)
        self.layer2 = nn.Linear(32, 32)
        self.head = nn.Linear(32, n_actions)

    def forward(self, x):
        x = F.relu(self.layer1(x))
        x = F.relu(self.layer2(x))
        return self.head(x)


class Agent:
    def __init__(self, args):
        self.args = args
        self.policy_net = QNetwork(24, 4)
        self.target_net = QNetwork(24, 4)
        self.target_net.load_state_dict(self.policy_net.state_dict())
        self.optimizer = optim.AdamW(self.policy_net.parameters(), lr=args.lr, amsgrad=True)
        self.memory = deque(maxlen=1000)
        self.updates = 0

    def act(self, state, epsilon):
        if random.random() < epsilon:
            return random.randrange(4)
        with torch.no_grad():
            return self.policy_net(torch.from_numpy(state)[None]).argmax(1).item()

    def optimize(self):
        if len(self.memory) < self.args.batch_size:
            return None
        batch = Transition(*zip(*random.sample(self.memory, self.args.batch_size)))
        states = torch.from_numpy(np.stack(batch.state))
        actions = torch.tensor(batch.action)[:, None]
        q = self.policy_net(states).gather(1, actions).squeeze(1)
        with torch.no_grad():
            following = self.target_net(torch.from_numpy(np.stack(batch.following))).max(1).values
        running = 1.0 - torch.tensor(batch.done, dtype=torch.float32)
        expected = torch.tensor(batch.reward) + self.args.gamma * running * following
        loss = nn.SmoothL1Loss()(q, expected)
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_value_(self.policy_net.parameters(), 1.0)
        self.optimizer.step()
        self.updates += 1
        if self.updates % self.args.sync_every == 0:
            self.target_net.load_state_dict(self.policy_net.state_dict())
        return loss.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--episodes", type=int, default=8)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--gamma", type=float, default=0.95)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--sync-every", type=int, default=20)
    parser.add_argument("--seed", type=int, default=3)
    args = parser.parse_args()
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)

    env, agent = CliffWalk(), Agent(args)
    for episode in range(args.episodes):
        state, total, done = env.reset(), 0.0, False
        epsilon = max(0.1, 0.9 * 0.8**episode)
        while not done:
            action = agent.act(state, epsilon)
            following, reward, done = env.step(action)
            agent.memory.append(Transition(state, action, reward, following, float(done)))
            state, total = following, total + reward
            loss = agent.optimize()
            if loss is not None:
                print(f"update {agent.updates - 1} loss {loss:.6f}")
        print(f"episode {episode:2d}  steps {env.time:2d}  return {total:+.2f}  epsilon {epsilon:.2f}")
    torch.save({"policy": agent.policy_net.state_dict(), "optimizer": agent.optimizer.state_dict()}, "dqn.pt")
    print(f"{agent.updates} updates; next random numbers", random.random(), np.random.rand(), torch.rand(1).item())


if __name__ == "__main__":
    main()
