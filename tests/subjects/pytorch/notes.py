"""What PyTorch scripts note down about themselves, in a run without the agent.

A script consists of scenes, functions that train something and note by name and step what they compute by hand. It
prints a digest of all that a run with the agent must leave alike, and stores the notes in the file that it is given.
"""

import gc
import hashlib
import random
import sys

import numpy as np
import torch

noting = len(sys.argv) > 1
notes = {}
place = {"scene": "", "TRAIN": 0, "EVAL": 0}


def note(name, step, value, mode="TRAIN"):
    """Note a value; ``step`` counts from the scene's first step of that mode."""
    if noting:
        if isinstance(value, torch.Tensor):
            value = value.detach()
            value = (value.float() if value.dtype == torch.bfloat16 else value).cpu().numpy()
        notes["|".join((place["scene"], mode, str(place[mode] + step), name))] = np.array(value)


def note_model(name, step, model, gradients=False, mode="TRAIN"):
    """Note a model's parameters, or their gradients, as they stand."""
    for key, parameter in model.named_parameters():
        key = key.replace("_orig_mod.", "")
        if not gradients:
            note(f"{name}_{key}", step, parameter, mode)
        elif parameter.grad is not None:
            note(f"gradient/{name}_{key}", step, parameter.grad, mode)


def add_weights(digest, models):
    for model in models:
        for _, value in sorted(model.state_dict().items()):
            value = value.to_local() if hasattr(value, "to_local") else value
            digest.update(value.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes())


def play(scenes, speaker=""):
    """Play scenes, each a function that returns its models, and how many steps of training and evaluation it took.

    ``speaker`` names the process in what it prints.
    """
    torch.set_num_threads(1)
    random.seed(3)
    np.random.seed(3)
    digest = hashlib.sha1()
    for scene in scenes:
        place["scene"] = scene.__name__
        torch.manual_seed(3)
        models, train, evaluation = scene()
        add_weights(digest, models)
        for drawn in (torch.rand(3).numpy(), np.random.rand(3), np.array(random.random())):
            digest.update(drawn.tobytes())
        print(f"{speaker} {scene.__name__} {digest.hexdigest()}".strip() + "\n", end="", flush=True)
        notes[f"{scene.__name__}|steps"] = np.array([place["TRAIN"], train, place["EVAL"], evaluation])
        place["TRAIN"] += train
        place["EVAL"] += evaluation
        # A model that lives on would be saved in the steps of the next scene too.
        models = None
        gc.collect()
    if noting:
        np.savez(sys.argv[1], **notes)
