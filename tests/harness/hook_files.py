"""Hook files, as their text is loaded, and the sentence by which one is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from smd_agent.config.hook_file import Source
from smd_agent.config.load import load_settings
from smd_agent.config.settings import CollectionSettings, HookSettings
from smd_agent.errors import ConfigError


def load(content: object, **options: Any) -> HookSettings:
    """Return the settings of a file, ``hook.json``, that holds this."""
    return load_settings(Source("hook.json", text=json.dumps(content)), **options)


def hook(**parameters: Any) -> HookSettings:
    """Return the settings of a file that has these parameters of the hook."""
    return load({"HookParameters": parameters})


def one_collection(parameters: dict[str, Any], **hook_parameters: Any) -> CollectionSettings:
    """Return the settings of ``weights`` in a file that has these parameters of it, and these of the hook."""
    listed = [{"CollectionName": "weights", "CollectionParameters": parameters}]
    return load({"HookParameters": hook_parameters, "CollectionConfigurations": listed}).collections[0]


def refusal(content: object) -> str:
    """Return the one line by which a file that holds this is refused."""
    with pytest.raises(ConfigError) as refused:
        load(content)
    sentence = str(refused.value)
    assert "\n" not in sentence
    return sentence
