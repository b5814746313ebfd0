"""What a program prints of what it trained: a digest of all weights, and the states of the random generators."""

import hashlib

import torch


def show(*models, losses=()):
    for model in models:
        found = hashlib.sha256()
        for name, value in sorted(model.state_dict().items()):
            if torch.is_tensor(value):
                if hasattr(value, "full_tensor"):
                    value = value.full_tensor()
                found.update(name.encode())
                found.update(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
        print(type(model).__name__, found.hexdigest()[:16])
    for loss in losses:
        print(repr(float(loss)))
    print("host", hashlib.sha256(torch.get_rng_state().numpy().tobytes()).hexdigest()[:16])
    if torch.cuda.is_initialized():
        print("gpu", hashlib.sha256(torch.cuda.get_rng_state().numpy().tobytes()).hexdigest()[:16])
