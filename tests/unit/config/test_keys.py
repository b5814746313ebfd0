"""The table of keys says of each what the loader does with it."""

import json
from dataclasses import replace

import pytest

from smd_agent.config import keys, values
from smd_agent.config.hook_file import Source
from smd_agent.config.load import load_settings
from smd_agent.core.reduction_config import ReductionConfig

IN_HOOK = (*keys.STEPS, *keys.FORM, *keys.OF_HOOK)


def settings(content):
    found = load_settings(Source("hook.json", text=json.dumps(content)))
    # No reductions, and whole tensors only, are the same.
    return replace(found, reduction_config=found.reduction_config or ReductionConfig(save_raw_tensor=True))


@pytest.mark.parametrize("key", [key for key in IN_HOOK if key.default is not None], ids=lambda key: key.name)
def test_writing_a_hooks_default_into_the_file_changes_nothing(key):
    assert settings({"HookParameters": {key.name: key.default}}) == settings({})


def test_the_default_folder_is_the_one_that_the_table_names():
    assert settings({}).out_dir == keys.LOCAL_PATH.default


def test_writing_the_default_histogram_into_a_collection_says_so():
    entry = {"CollectionName": "weights", "CollectionParameters": {"save_histogram": keys.SAVE_HISTOGRAM.default}}
    assert settings({"CollectionConfigurations": [entry]}).collections[0].save_histogram is True


def test_all_keys_together_leave_no_warning():
    hook = {key.name: key.default for key in IN_HOOK if key.default}
    of_collection = {key.name: key.default for key in (*keys.STEPS, *keys.FORM, keys.SAVE_HISTOGRAM) if key.default}
    entry = {"CollectionName": "weights", "CollectionParameters": of_collection}
    top = {"LocalPath": keys.LOCAL_PATH.default, "S3OutputPath": "", "S3Path": ""}
    assert settings({**top, "HookParameters": hook, "CollectionConfigurations": [entry]}).warnings == ()


@pytest.mark.parametrize(
    "key",
    [*keys.TOP, *keys.COLLECTION, *keys.OF_RULE, keys.RULE_TO_INVOKE, *IN_HOOK, keys.SAVE_HISTOGRAM],
    ids=lambda key: key.name,
)
def test_a_value_of_no_kind_is_refused_with_words(key):
    if key in keys.UPLOADS:
        return
    with pytest.raises(values.InvalidValue, match=r"\w+"):
        key.kind(object())
