"""A PyTorch training whose hook is made by a file, as for the old library: python pytorch_by_file.py [HOOK.json]."""

import sys

import torch
import torch.nn.functional as F
from smdebug.core.modes import ModeKeys
from smdebug.profiler.utils import str2bool
from smdebug.pytorch import get_hook
from smdebug.pytorch.hook import Hook


def main(*hook_file):
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    x, y = torch.randn(16, 4), torch.randint(0, 2, (16,))
    # Parts of a script ask for it on their own.
    hook = Hook.create_from_json_file(*hook_file)
    hook.register_hook(model)
    again = Hook.create_from_json_file(*hook_file)
    print("one hook:", again is hook is get_hook(), str2bool("True"))
    hook.set_mode(ModeKeys.TRAIN)
    for _ in range(5):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        get_hook(create_if_not_exists=True).record_tensor_value("ce_loss", tensor_value=loss)
        loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main(*sys.argv[1:])
