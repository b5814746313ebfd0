import numpy as np
import tensorflow as tf

N_ENVS = 32
HORIZON = 25
GAMMA = 0.95
UPDATES = 150

tf.keras.utils.set_random_seed(1)


class PointMass:
    """A mass on a line. Actions push it left or right; it should stay near the origin."""

    def __init__(self, n, rng):
        self.n, self.rng = n, rng

    def reset(self):
        self.x = self.rng.uniform(-1.0, 1.0, self.n)
        self.v = self.rng.uniform(-0.2, 0.2, self.n)
        return self.obs()

    def obs(self):
        return np.stack([self.x, self.v * 3.0], axis=1).astype("float32")

    def step(self, action):
        force = np.where(action == 1, 1.0, -1.0)
        self.x = np.clip(self.x + self.v, -3.0, 3.0)
        self.v = 0.9 * self.v + 0.08 * force
        return self.obs(), -np.abs(self.x)


policy = tf.keras.Sequential([
    tf.keras.Input((2,)),
    tf.keras.layers.Dense(32, activation="tanh"),
    tf.keras.layers.Dense(2),
])
optimizer = tf.keras.optimizers.Adam(1e-2)
env = PointMass(N_ENVS, np.random.default_rng(1))


@tf.function
def act(obs):
    return tf.random.categorical(policy(obs), 1)[:, 0]


@tf.function
def update(obs, actions, advantages):
    with tf.GradientTape() as tape:
        logits = policy(obs)
        nll = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=actions, logits=logits)
        loss = tf.reduce_mean(nll * advantages)
    grads = tape.gradient(loss, policy.trainable_variables)
    optimizer.apply_gradients(zip(grads, policy.trainable_variables))
    return loss


def discounted_returns(rewards):
    returns = np.zeros_like(rewards)
    running = np.zeros(rewards.shape[1])
    for t in range(len(rewards)):
        running = rewards[t] + GAMMA * running
        returns[t] = running
    return returns


def rollout():
    obs, all_obs, all_act, all_rew = env.reset(), [], [], []
    for _ in range(HORIZON):
        a = act(tf.constant(obs)).numpy()
        all_obs.append(obs)
        all_act.append(a)
        obs, r = env.step(a)
        all_rew.append(r)
    return np.array(all_obs), np.array(all_act), np.array(all_rew)


history = []
for it in range(1, UPDATES + 1):
    obs, actions, rewards = rollout()
    returns = discounted_returns(rewards)
    adv = returns - returns.mean(axis=1, keepdims=True)
    adv = adv / (adv.std() + 1e-8)
    update(tf.constant(obs.reshape(-1, 2)),
           tf.constant(actions.reshape(-1)),
           tf.constant(adv.reshape(-1).astype("float32")))
    history.append(rewards.sum(axis=0).mean())
    if it % 15 == 0:
        print(f"update {it:4d}  mean return {np.mean(history[-15:]):8.3f}")
