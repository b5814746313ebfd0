"""Actions of old rules are understood, and told to be not available."""

from __future__ import annotations

import json

import pytest

from smd_agent.rules.rule import Actions

SMS = {"name": "sms", "endpoint": "+123"}
STOP = {"name": "StopTraining", "training_job_prefix": "Mine"}


@pytest.mark.parametrize(
    "action, names, said",
    [
        (None, [], []),
        ("  ", [], []),
        (json.dumps(SMS), ["sms"], ["not available here, as they need a service of the cloud: sms"]),
        (json.dumps([STOP, SMS]), ["stoptraining", "sms"], ["cloud: stoptraining, sms"]),
        (json.dumps({"name": "email"}), [], ["needs endpoint"]),
        (json.dumps({"name": "stoptraining"}), [], ["needs training_job_prefix"]),
        (json.dumps({"name": "dance"}), [], ["has no name out of stoptraining, sms, email"]),
        (json.dumps([1, SMS]), ["sms"], ["1 is no action", "cloud: sms"]),
    ],
)
def test_actions(action, names, said, caplog):
    found = Actions(action, "MyRule")
    assert found.names == names
    assert len(caplog.messages) == len(said)
    for line, part in zip(caplog.messages, said, strict=True):
        assert line.startswith("smd_agent: MyRule: ")
        assert part in line
    found.invoke()


def test_what_is_no_json_is_an_error():
    with pytest.raises(ValueError, match="Expecting"):
        Actions("stop it", "MyRule")
