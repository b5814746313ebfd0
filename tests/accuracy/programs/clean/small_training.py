"""One of the clean trainings that the rules' own tests have, as a script."""

import sys
from pathlib import Path
from types import SimpleNamespace

import torch

sys.path.append(str(Path(__file__).resolve().parents[3] / "rules"))
from clean_trainings import TRAININGS

torch.manual_seed(0)
TRAININGS[sys.argv[1]](lambda *models: SimpleNamespace(set_mode=lambda mode: None))
