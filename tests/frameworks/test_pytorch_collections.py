"""Which collections a PyTorch tensor joins by its name."""

from __future__ import annotations

import pytest

from smd_agent.core.collection_manager import CollectionManager
from smd_agent.pytorch.collection import BUILT_IN


@pytest.mark.parametrize(
    "tensor, collections",
    [
        ("Net_conv1.weight", {"weights"}),
        ("Net_conv1.bias", {"biases"}),
        ("gradient/Net_conv1.weight", {"gradients"}),
        ("gradient/Net_conv1.bias", {"gradients"}),
        ("CrossEntropyLoss_output_0", {"losses"}),
        ("CrossEntropyLoss_input_0", set()),
        ("my_loss_output_0", {"losses"}),
        ("Net_conv1_output_0", {"layers"}),
        ("LossNet_conv1_output_0", {"layers"}),
        ("MSELoss_1_output_0", {"losses"}),
        ("Net_conv1_input_0", set()),
    ],
)
def test_names_join_their_collections(tensor: str, collections: set[str]) -> None:
    manager = CollectionManager(create_default=True, built_in=BUILT_IN)
    assert {name for name, one in manager.get_collections().items() if one.matches(tensor)} == collections
