"""Collections of the frameworks whose models call layers, such as PyTorch and Gluon."""

from __future__ import annotations

from smd_agent.core.collection_keys import CollectionKeys

# Saved whatever else is asked for; only end_step 0 takes them out.
DEFAULT_SAVED = (CollectionKeys.LOSSES,)


def built_in_collections(losses: str) -> dict[str, tuple[str, ...]]:
    """The collections that there are from the start, and the regexes by which tensors join them.

    Args:
        losses: regex of the losses, which are named by the framework's loss layers.
    """
    return {
        CollectionKeys.ALL: (),
        CollectionKeys.DEFAULT: (),
        CollectionKeys.WEIGHTS: ("^(?!gradient).*weight",),
        CollectionKeys.BIASES: ("^(?!gradient).*bias",),
        CollectionKeys.GRADIENTS: ("^gradient",),
        CollectionKeys.LOSSES: (losses,),
    }


def layers_but(losses: str) -> dict[str, tuple[str, ...]]:
    """The collection of what layers return, which leaves out losses: they have one of their own.

    Args:
        losses: their regex.
    """
    return {CollectionKeys.LAYERS: (rf"^(?!.*{losses}).*_output_\d+$",)}
