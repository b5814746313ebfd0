"""PyTorch training loops compiled by inductor; knows nothing of the agent.

usage: python inductor_scenes.py [NOTES.npz]
"""

import compile_scenes as scenes
import torch
from notes import play


class Sure(scenes.Net):
    def forward(self, x):
        return self.fc2(self.relu(self.bn(self.fc1(x))))


def without_random_numbers():
    model = Sure()
    model.drop = None
    return scenes.train(model, torch.compile(model, fullgraph=True), name="Sure")


def with_random_numbers():
    model = scenes.Net()
    model.drop.p = 0.9
    return scenes.train(model, torch.compile(model, fullgraph=True), evaluated=0, layers=False)


SCENES = [without_random_numbers, with_random_numbers]

if __name__ == "__main__":
    play(SCENES)
