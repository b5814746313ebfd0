"""Kinds of trainings that act to get their data, each as an author writes such a loop; see ``step_kinds``."""

import random
from collections import deque

import mxnet as mx
import numpy as np
from author import LENGTH
from corridor import ACTIONS, STATES, Corridor
from learned import adam, gradients, perceptron, weights
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn


class ActorCritic(gluon.HybridBlock):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.body = nn.Dense(8, activation="tanh", in_units=STATES)
            self.actor, self.critic = nn.Dense(ACTIONS, in_units=8), nn.Dense(1, in_units=8)

    def hybrid_forward(self, F, x):
        h = self.body(x)
        return F.log_softmax(self.actor(h)), self.critic(h).reshape(-1)


def update(target, source):
    for p, q in zip(target.collect_params().values(), source.collect_params().values(), strict=True):
        p.set_data(q.data())


def dqn(author):
    values, target = (perceptron(name, STATES, 8, ACTIONS) for name in ("values_", "target_"))
    update(target, values)
    trainer = adam(values)
    loss_fn = gluon.loss.HuberLoss()
    memory = deque(maxlen=60)
    corridor = Corridor(1)
    state = corridor.reset()
    for time in range(64):
        if random.random() < max(0.1, 1 - time / 40):
            action = random.randrange(ACTIONS)
        else:
            action = int(values(nd.array(state[None])).argmax(1).asscalar())
            author.evaluated()
        after, reward, done = corridor.step(action)
        memory.append((state, action, reward, after, done))
        state = corridor.reset() if done else after
        if len(memory) < 16:
            continue
        drawn = zip(*random.sample(memory, 8), strict=True)
        states, actions, rewards, afters, ends = map(np.array, drawn)
        wanted = nd.array(rewards) + 0.9 * target(nd.array(afters)).max(1) * nd.array(~ends)
        with autograd.record():
            loss = loss_fn(values(nd.array(states)).pick(nd.array(actions)), wanted)
        author.loss(loss.asnumpy())
        loss.backward()
        author.gradients(gradients(values))
        trainer.step(8)
        author.iteration()
        if time % 10 == 0:
            update(target, values)
    return weights(values, target)


def reinforce(author):
    policy = perceptron("policy_", STATES, 8, ACTIONS, "tanh")
    trainer = adam(policy)
    corridor = Corridor(1)
    for _ in range(LENGTH):
        state, done, chances, rewards = corridor.reset(), False, [], []
        with autograd.record():
            while not done:
                chance = nd.log_softmax(policy(nd.array(state[None])))
                action = int(np.random.rand() < chance[0, 1].exp().asscalar())
                chances.append(chance[0, action])
                state, reward, done = corridor.step(action)
                rewards.append(reward)
            returns = np.cumsum(rewards[::-1])[::-1]
            loss = -sum(chance * float(total) for chance, total in zip(chances, returns, strict=True))
        author.loss(loss.asnumpy())
        loss.backward()
        author.gradients(gradients(policy))
        trainer.step(1)
        author.iteration()
    return weights(policy)


def ppo(author):
    net = ActorCritic(prefix="net_")
    net.initialize(mx.init.Xavier())
    trainer = adam(net)
    corridor = Corridor(1)
    state = corridor.reset()
    for _ in range(3):
        steps = []
        for _ in range(16):
            chances, value = net(nd.array(state[None]))
            author.evaluated()
            action = int(np.random.rand() < chances[0, 1].exp().asscalar())
            after, reward, done = corridor.step(action)
            steps.append((state, action, chances[0, action].asscalar(), value.asscalar(), reward, done))
            state = corridor.reset() if done else after
        following = net(nd.array(state[None]))[1].asscalar()
        author.evaluated()
        states, actions, before, values, rewards, ends = map(np.array, zip(*steps, strict=True))
        returns = np.zeros(16)
        for i in reversed(range(16)):
            returns[i] = following = rewards[i] + 0.9 * following * (not ends[i])
        gains = returns - values
        for _ in range(3):
            for picked in np.random.permutation(16).reshape(4, 4):
                gain = nd.array(gains[picked])
                with autograd.record():
                    chances, value = net(nd.array(states[picked]))
                    ratio = (chances.pick(nd.array(actions[picked])) - nd.array(before[picked])).exp()
                    of_policy = -nd.minimum(ratio * gain, ratio.clip(0.8, 1.2) * gain)
                    entropy = -(chances.exp() * chances).sum(1)
                    loss = of_policy + 0.5 * (value - nd.array(returns[picked])) ** 2 - 0.01 * entropy
                author.loss(loss.asnumpy())
                loss.backward()
                author.gradients(gradients(net))
                trainer.step(4)
                author.iteration()
    return weights(net)


KINDS = [dqn, reinforce, ppo]
