"""The compiled training loops in which most could be compiled anew; knows nothing of the agent.

usage: python recompile_scenes.py [NOTES.npz]
"""

import compile_scenes as scenes
from notes import play

SCENES = [scenes.compiled_model, scenes.compiled_parts, scenes.compiled_losses, scenes.compiled_optimizer]

if __name__ == "__main__":
    play(SCENES)
