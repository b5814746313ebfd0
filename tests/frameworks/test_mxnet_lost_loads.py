"""Parameters of Gluon that are loaded and initialized again, and what people do that looks alike."""

from __future__ import annotations

import pytest

pytest.importorskip("mxnet")

import mxnet as mx
from harness.gluon_facts import findings_of, hooked, make_net, of_first, rows, train, usage_of
from mxnet import gluon, init
from mxnet.gluon import nn

from smd_agent.rules import LoadedThenInitialized
from smd_agent.rules.finding import Severity


class Parts(gluon.Block):
    """A net of features that may be loaded, and a head."""

    def __init__(self):
        super().__init__(prefix="net_")
        self.features, self.head = make_net("features_"), nn.Dense(2, in_units=3, prefix="head_")

    def forward(self, x):
        return self.head(self.features(x))


@pytest.fixture
def file(tmp_path):
    make_net("saved_").save_parameters(str(tmp_path / "features.params"))
    return str(tmp_path / "features.params")


def everything(net, file):
    net.features.load_parameters(file)
    net.initialize(init.Xavier(), force_reinit=True)


def as_a_dict(net, file):
    net.features.collect_params().load(file.replace("features", "dict"))
    net.initialize(init.Xavier(), force_reinit=True)


def twice(net, file):
    everything(net, file)
    net.initialize(init.Xavier(), force_reinit=True)


def one_by_one(net, file):
    net.features.load_parameters(file)
    for parameter in net.collect_params().values():
        parameter.initialize(init.Uniform(), ctx=mx.cpu(), force_reinit=True)


def findings(out, prepare, file):
    hook = hooked(out, include_collections=["usage"])
    net = Parts()
    if prepare is as_a_dict:
        net.features.initialize(force_reinit=True)
        net.features.collect_params().save(file.replace("features", "dict"))
    prepare(net, file)
    hook.register_block(net)
    train(net, lambda net, step: net(rows(step)).square().mean(), 3)
    return hook


@pytest.mark.parametrize("prepare", [everything, as_a_dict, twice, one_by_one])
def test_what_was_loaded_is_lost(out, file, prepare):
    hook = findings(out, prepare, file)
    (found,) = findings_of(hook, LoadedThenInitialized())
    assert (found.severity, found.tensor) == (Severity.WARNING, "usage/model/net/lost")
    assert found.evidence == {"loaded": 4, "lost": 4}


def test_a_head_that_is_initialized_again(out, file):
    def prepare(net, file):
        net.features.load_parameters(file)
        net.head.initialize(force_reinit=True)
        net.features[1].initialize(force_reinit=True)

    hook = findings(out, prepare, file)
    assert findings_of(hook, LoadedThenInitialized()) == []
    found = of_first(usage_of(hook), "model/net")
    assert (found["loaded"], found["lost"]) == (4, 2)


def loaded_last(net, file):
    net.initialize(force_reinit=True)
    net.features.load_parameters(file)


def loaded_again(net, file):
    everything(net, file)
    net.features.load_parameters(file)


def without_force(net, file):
    net.features.load_parameters(file)
    with pytest.warns(UserWarning, match="already initialized"):
        net.initialize()


def evaluated(net, file):
    net.head.initialize()
    net.features.load_parameters(file)
    net(rows(0))
    net.initialize(force_reinit=True)


def set_by_hand(net, file):
    everything(net, file)
    for parameter in net.features.collect_params().values():
        parameter.set_data(parameter.data() * 2)


def moved(net, file):
    net.head.initialize()
    net.features.load_parameters(file)
    net.collect_params().reset_ctx(mx.cpu(1))
    net.collect_params().reset_ctx(mx.cpu(0))


@pytest.mark.parametrize("prepare", [loaded_last, loaded_again, without_force, evaluated, set_by_hand, moved])
def test_what_is_no_fault(out, file, prepare):
    hook = findings(out, prepare, file)
    assert findings_of(hook, LoadedThenInitialized()) == []
    assert of_first(usage_of(hook), "model/net").get("lost", 0) == 0


def test_a_warning_is_where_it_was(out, file):
    hooked(out).close()
    net = make_net()
    net.load_parameters(file)
    with pytest.warns(UserWarning, match="already initialized") as told:
        net[0].weight.initialize()
    assert {one.filename for one in told} == {__file__}
