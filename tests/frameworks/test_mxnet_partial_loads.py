"""Loads of Gluon that give a block nothing, and what people do that looks alike."""

from __future__ import annotations

import pytest

pytest.importorskip("mxnet")

import mxnet as mx
from harness.gluon_facts import findings_of, hooked, make_net, rows, train
from mxnet import gluon
from mxnet.gluon import nn

from smd_agent.mxnet.partial_loads import partial_loads
from smd_agent.rules import NothingLoaded
from smd_agent.rules.finding import Severity

WHATEVER_FITS = {"allow_missing": True, "ignore_extra": True}


class Parts(gluon.Block):
    """A net of features that may be loaded, and a head."""

    def __init__(self):
        super().__init__(prefix="net_")
        self.features, self.head = make_net("features_"), nn.Dense(2, in_units=3, prefix="head_")

    def forward(self, x):
        return self.head(self.features(x))


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    whole = Parts()
    whole.head.initialize()
    whole.save_parameters("whole")
    whole.features.save_parameters("part")
    whole.features.collect_params().save("plain")


def findings(out, prepare):
    hook = hooked(out)
    net = Parts()
    net.head.initialize()
    prepare(net)
    hook.register_block(net)
    train(net, lambda net, step: net(rows(step)).square().mean(), 3)
    return findings_of(hook, NothingLoaded())


def of_a_part(net):
    net.load_parameters("part", **WHATEVER_FITS)


def twice(net):
    of_a_part(net)
    net.load_parameters("part", mx.cpu(), True, True)


def of_the_whole(net):
    net.features.load_parameters("whole", **WHATEVER_FITS)


def with_its_prefix(net):
    net.features.load_parameters("plain", **WHATEVER_FITS)


@pytest.mark.parametrize(
    "prepare, title, given, own",
    [
        *((of_a_part, "Parts", 4, 6), (twice, "Parts", 4, 6), (of_the_whole, "HybridSequential", 6, 4)),
        (with_its_prefix, "HybridSequential", 4, 4),
    ],
)
def test_a_load_that_gives_nothing(out, prepare, title, given, own):
    (found,) = findings(out, prepare)
    assert (found.severity, found.tensor) == (Severity.PROBLEM, f"loads/{title}")
    assert found.evidence == {"given": given, "own": own, "loaded": 0}
    assert "With allow_missing=True and ignore_extra=True that raises no error" in found.cause
    assert "load_state_dict" not in found.cause + found.advice


def test_names_of_a_part_are_told(out):
    (found,) = findings(out, of_a_part)
    assert "such as 0.weight, 0.bias, 1.weight, and it has such as features.0.weight" in found.cause
    assert found.advice.startswith("Load the file into the part features of the block")


def all_fits(net):
    net.load_parameters("whole", **WHATEVER_FITS)


def some_fits(net):
    net.head = nn.Dense(4, in_units=3, prefix="other_")
    net.head.initialize()
    net.features.save_parameters("features")
    net.features.load_parameters("features", **WHATEVER_FITS)


def then_into_the_part(net):
    of_a_part(net)
    net.features.load_parameters("part")


def loaded_before(net):
    net.features.load_parameters("part")
    of_a_part(net)


def then_by_hand(net):
    of_a_part(net)
    for name, value in mx.nd.load("part").items():
        place, _, kind = name.partition(".")
        getattr(net.features[int(place)], kind).set_data(value)


def of_another_block(net):
    # It is let go of, whatever it was for.
    nn.Dense(2, in_units=9).load_parameters("part", **WHATEVER_FITS)


def an_error(net):
    with pytest.raises(ValueError, match="not present"):
        net.load_parameters("part", allow_missing=True)
    with pytest.raises(AssertionError, match="missing"):
        net.load_parameters("part", ignore_extra=True)


GOOD = (all_fits, some_fits, then_into_the_part, loaded_before, then_by_hand, of_another_block, an_error)


@pytest.mark.parametrize("prepare", GOOD)
def test_other_loads(out, prepare):
    assert findings(out, prepare) == []
    assert partial_loads.take() == {}
