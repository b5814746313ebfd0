"""A small framework, which knows of no agent: a linear model and what trains it."""

import numpy as np

__version__ = "1.2"


class Linear:
    def __init__(self, inputs):
        self.weight = np.zeros(inputs)

    def __call__(self, x):
        return x @ self.weight


class Trainer:
    def __init__(self, model, rate=0.1):
        self.model = model
        self.rate = rate

    def step(self, x, y):
        difference = self.model(x) - y
        self.model.weight -= self.rate * 2 * x.T @ difference / len(x)
        return float(np.mean(difference**2))
