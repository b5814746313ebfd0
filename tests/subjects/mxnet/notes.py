"""What scripts that train with Gluon note down about themselves, in a run without the agent.

A script consists of scenes, functions that train something and note by name and step what they compute by hand. It
prints a digest of all that a run with the agent must leave alike, and stores the notes in the file that it is given.
"""

import gc
import hashlib
import sys

import mxnet as mx
import numpy as np
from mxnet import nd

rng = np.random.RandomState(5)
noting = len(sys.argv) > 1
notes = {}
place = {"scene": "", "TRAIN": 0, "EVAL": 0}


def note(name, step, value, mode="TRAIN"):
    """Note a value; ``step`` counts from the scene's first step of that mode."""
    if noting:
        value = value.asnumpy() if isinstance(value, nd.NDArray) else value
        notes["|".join((place["scene"], mode, str(place[mode] + step), name))] = np.array(value)


def batch(n=8, *shape):
    """Return rows and their classes."""
    return nd.array(rng.rand(n, *(shape or (6,)))), nd.array(rng.randint(0, 3, n))


def parameters(net):
    """Return a net's parameters by name."""
    return net.collect_params().items()


def play(scenes):
    """Play scenes, each a function that returns its nets, and how many steps of training and evaluation it took."""
    mx.random.seed(3)
    np.random.seed(3)
    digest = hashlib.sha1()
    for scene in scenes:
        place["scene"] = scene.__name__
        train, evaluation = _play(scene, digest)
        digest.update(nd.random.uniform(shape=(3,)).asnumpy().tobytes())
        digest.update(np.random.rand(3).tobytes())
        print(scene.__name__, digest.hexdigest(), flush=True)
        notes[f"{scene.__name__}|steps"] = np.array([place["TRAIN"], train, place["EVAL"], evaluation])
        place["TRAIN"] += train
        place["EVAL"] += evaluation
        # A net that lives on would be saved in the steps of the next scene too.
        gc.collect()
    if noting:
        np.savez(sys.argv[1], **notes)


def _play(scene, digest):
    nets, train, evaluation = scene()
    for net in nets:
        for _, parameter in parameters(net):
            for array in parameter.list_data():
                digest.update(array.asnumpy().tobytes())
    return train, evaluation
