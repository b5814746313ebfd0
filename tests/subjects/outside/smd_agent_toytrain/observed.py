"""Where toytrain trains, for the observer of `verify`; nothing of the agent is imported."""

import numpy as np


def watch(toytrain, observer):
    def after(result, trainer, *args, **kwargs):
        observer.loss("loss", observer.array(np.float64(result)))
        observer.updated(trainer, lambda it: [("weight", observer.array(it.model.weight))])

    observer.around(toytrain.Trainer, "step", after=after)
