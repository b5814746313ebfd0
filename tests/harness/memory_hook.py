"""A hook of no framework, whose sink only remembers, and steps of it."""

from __future__ import annotations

import numpy as np

from smd_agent.core.collection_manager import CollectionManager
from smd_agent.core.hook import BaseHook
from smd_agent.core.selection import Selection
from smd_agent.framework.built_in_collections import built_in_collections

BUILT_IN = built_in_collections(losses="[Ll]oss_(?!input).*output")


class MemoryStep:
    def __init__(self, step, mode, mode_step):
        self.at = (step, mode, mode_step)
        self.values, self.shapes, self.times = {}, {}, {}

    def add(self, name, array, original_dtype=None, wall_time=None):
        self.values[name] = array.copy()
        self.times[name] = wall_time
        return True

    def add_text(self, name, values):
        self.values[name] = values
        return True

    def add_scalars(self, names, values):
        self.values.update(zip(names, values.tolist(), strict=True))
        return True

    def add_shape(self, name, original_name, shape, dtype=None):
        self.shapes[name] = shape


class MemoryRun:
    location = "memory"
    relocated_because = None

    def __init__(self, dry_run=False, owner=None):
        self.dry_run, self.owner = dry_run, owner
        self.started, self.steps, self.collections, self.ends = False, [], [], []
        self.about, self.flushed = [], []

    def start(self, worker, alone):
        self.started = self.owner is None
        self.worker = worker
        return self.owner

    def begin_step(self, step, mode, mode_step):
        return MemoryStep(step, mode, mode_step)

    def begin_anew(self):
        self.started, self.steps = False, []

    def commit(self, step, steps_among):
        self.steps.append(step)

    def write_collections(self, text):
        self.collections.append(text)

    def write_about(self, environment, took):
        self.about.append((environment, took))

    def write_failures(self, failures):
        self.failures = [*failures]

    def listen(self, requests, place):
        pass

    def flush(self, last_look=True):
        self.flushed.append(len(self.steps))
        return True

    def close(self, end_marker):
        self.ends.append(end_marker)

    def summary(self, more=""):
        return f"{len(self.steps)} steps{more}"


def make(sink=None, **options):
    manager = CollectionManager(create_default=True, built_in=BUILT_IN)
    include_workers = options.pop("include_workers", "one")
    return BaseHook(sink or MemoryRun(), Selection(manager, ["losses"], **options), include_workers)


def begin(hook):
    """What a framework's hook does when a step begins."""
    position = hook.position
    if position.open:
        hook.recorder.end_step()
    return position.begin(position.train) and hook.recorder.open_step()


TENSORS = {
    "Net_conv.weight": np.arange(6.0).reshape(2, 3),
    "Net_conv.bias": np.ones(2, np.float32),
    "gradient/Net_conv.weight": np.full((2, 3), -2.0),
    "conv_output_0": np.ones((4, 2)),
    "CrossEntropyLoss_output_0": np.float32(0.5),
}


def train(hook, steps, mode=None):
    if mode is not None:
        hook.set_mode(mode)
    for _ in range(steps):
        if begin(hook):
            hook.recorder.save_tensors(list(TENSORS), list(TENSORS.values()))


def saved(hook):
    hook.recorder.end_step()
    return {step.at: step.values for step in hook._output.sink.steps}
