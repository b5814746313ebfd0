"""What Gluon scripts do beside a plain training loop; knows nothing of the agent.

usage: python scenes.py [NOTES.npz]
"""

import copy
import hashlib
import logging
import pickle
import warnings

import mxnet as mx
from mxnet import autograd, gluon, nd, npx
from mxnet import np as mnp
from mxnet.autograd import backward, record
from mxnet.gluon import nn
from mxnet.gluon.contrib.estimator import Estimator
from nets import NumpyNet, Pick, Reader, Shared, dense, sgd, two_layers
from notes import batch, note, noting, parameters, play, rng


def several_contexts(update):
    contexts = [mx.cpu(0), mx.cpu(1)]
    net = nn.Dense(3, in_units=6, prefix="many_")
    net.initialize(mx.init.Xavier(), ctx=contexts)
    loss_fn = gluon.loss.SoftmaxCrossEntropyLoss(prefix="manyloss0_")
    trainer = sgd(net, update_on_kvstore=update)
    for k in range(3):
        x, y = batch()
        xs, ys = gluon.utils.split_and_load(x, contexts), gluon.utils.split_and_load(y, contexts)
        note("many_weight", k, net.weight.data(contexts[0]))
        with autograd.record():
            losses = [loss_fn(net(a), b) for a, b in zip(xs, ys, strict=True)]
        for i, loss in enumerate(losses):
            note(f"manyloss0_output_{i}", k, loss)
            loss.backward()
        if noting:
            note("gradient/many_weight", k, sum(g.asnumpy() for g in net.weight.list_grad()))
        trainer.step(8)
    for _ in range(2):
        for x in gluon.utils.split_and_load(batch()[0], contexts):
            net(x)
    return [net], 3, 2


def contexts_updated_by_the_store():
    return several_contexts(update=True)


def contexts_updated_here():
    return several_contexts(update=False)


def contexts_by_default():
    return several_contexts(update=None)


def estimator():
    logging.disable(logging.CRITICAL)
    net = two_layers("est_")
    data = gluon.data.DataLoader(gluon.data.ArrayDataset(*batch(24)), batch_size=8)
    held = gluon.data.DataLoader(gluon.data.ArrayDataset(*batch(16)), batch_size=8)
    fitter = Estimator(
        net,
        gluon.loss.SoftmaxCrossEntropyLoss(prefix="estloss0_"),
        train_metrics=mx.metric.Accuracy(),
        val_metrics=mx.metric.Accuracy(),
        trainer=sgd(net),
        context=mx.cpu(),
    )
    fitter.fit(train_data=data, val_data=held, epochs=2)
    return [net], 6, 4


def by_hand():
    net = dense("hand_")
    for _, parameter in parameters(net):
        parameter.grad_req = "add"
    for k in range(3):
        x, _ = batch()
        with record():
            loss = ((net(x) - 1) ** 2).mean()
        backward(loss) if k % 2 else loss.backward()
        note("loss0_output_0", k, loss)
        for name, parameter in parameters(net):
            note("gradient/" + name, k, parameter.grad())
            parameter.set_data(parameter.data() - 0.1 * parameter.grad())
            parameter.zero_grad()
    return [net], 3, 0


def rescaled_loss():
    net = dense("scale_")
    loss_fn = gluon.loss.L2Loss(prefix="l2loss0_")
    trainer = sgd(net)
    for k in range(2):
        x, _ = batch()
        with autograd.record():
            loss = loss_fn(net(x), nd.ones((8, 3)))
            head = loss.mean() * 3 if k == 0 else loss.mean() + (net.weight.data() ** 2).sum()
        head.backward()
        note("l2loss0_output_0", k, loss)
        if k:
            note("loss0_output_0", k, head)
        trainer.step(1)
    return [net], 2, 0


def unreached():
    layers = gluon.nn.HybridSequential(prefix="lay_")
    with layers.name_scope():
        layers.add(nn.Dense(3, in_units=6), nn.Dense(3, in_units=6))
    pick = Pick(layers, prefix="pick_")
    pick.initialize(mx.init.Xavier())
    trainer = sgd(pick)
    for k in range(4):
        x, _ = batch()
        with autograd.record():
            loss = pick(x, nd.array([k % 2])).sum()
        loss.backward()
        # The last two passes wait for an update that never comes.
        note(f"gradient/lay_dense{k % 2}_weight", min(k, 2), layers[k % 2].weight.grad())
        if k < 2:
            trainer.step(8, ignore_stale_grad=True)
    return [pick], 3, 0


def shared_with(options):
    net = Shared(prefix="shared_")
    net.initialize(mx.init.Xavier())
    if options is not None:
        net.hybridize(**options)
    weight, bias = net.a.weight, net.a.bias
    trainer = sgd(net)
    for k in range(3):
        x, _ = batch()
        if noting:
            layer = lambda v: nd.FullyConnected(v, weight.data(), bias.data(), num_hidden=6, flatten=False)  # noqa: E731
            y = layer(x)
            z = layer(y * 2)
            for name, value in (("0_input_0", x), ("0_output_0", y), ("0_input_1", y * 2), ("0_output_1", z)):
                note("shared_dense" + name, k, value)
            note("shared_dense1_input_0", k, z)
            note("shared_dense1_output_0", k, layer(z))
        with autograd.record():
            loss = net(x).sum()
        loss.backward()
        trainer.step(8)
    return [net], 3, 0


def shared():
    return shared_with(None)


def shared_hybridized():
    return shared_with({})


def shared_static():
    return shared_with({"static_alloc": True, "static_shape": True})


def symbol_block():
    data = mx.sym.var("data")
    hidden = mx.sym.tanh(mx.sym.FullyConnected(data, num_hidden=4, name="one"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net = gluon.SymbolBlock(mx.sym.FullyConnected(hidden, num_hidden=3, name="two"), data)
    net.initialize(mx.init.Uniform(0.5))
    loss_fn = gluon.loss.SoftmaxCrossEntropyLoss(prefix="symloss0_")
    trainer = sgd(net)
    for k in range(3):
        x, y = batch()
        with autograd.record():
            result = net(x)
            loss = loss_fn(result, y)
        note(net.name + "_output_0", k, result)
        loss.backward()
        for name, parameter in parameters(net):
            note("gradient/" + name, k, parameter.grad())
        trainer.step(8)
        if k < 2:
            for name, parameter in parameters(net):
                note(name, k + 1, parameter.data())
    return [net], 3, 0


def numpy_with(hybridize):
    npx.set_np()
    net = NumpyNet(prefix="numpy_")
    net.initialize(mx.init.Xavier())
    if hybridize:
        net.hybridize()
    loss_fn = gluon.loss.SoftmaxCrossEntropyLoss(prefix="numpyloss0_")
    trainer = sgd(net)
    for k in range(3):
        x, y = (mnp.array(part, dtype="float32") for part in (rng.rand(8, 6), rng.randint(0, 3, 8)))
        if noting:
            weight, bias = net.fc1.weight.data().asnumpy(), net.fc1.bias.data().asnumpy()
            note("numpy_dense0_output_0", k, x.asnumpy() @ weight.T + bias)
        with autograd.record():
            out = net(x)
            loss = loss_fn(out, y).mean()
        loss.backward()
        note("numpy_output_0", k, out.asnumpy())
        note("gradient/numpy_dense1_weight", k, net.fc2.weight.grad().asnumpy())
        trainer.step(1)
    npx.reset_np()
    return [net], 3, 0


def numpy_front_end():
    return numpy_with(hybridize=False)


def numpy_front_end_hybridized():
    return numpy_with(hybridize=True)


def sparse_gradient():
    net = nn.Embedding(10, 3, sparse_grad=True, prefix="sparse_")
    net.initialize()
    trainer = sgd(net)
    for k in range(2):
        x = nd.array(rng.randint(0, 10, 4))
        with autograd.record():
            loss = (net(x) ** 2).sum()
        loss.backward()
        note("gradient/sparse_weight", k, net.weight.grad())
        trainer.step(1)
    return [net], 2, 0


def call_that_raises():
    net = two_layers("raise_", hybridize=True)
    trainer = sgd(net)
    done = 0
    for k in range(4):
        x, _ = batch(8, 7 if k == 1 else 6)
        try:
            with autograd.record():
                out = net(x)
                out.wait_to_read()
                loss = out.sum()
        except mx.base.MXNetError:
            print("refused")
            continue
        loss.backward()
        note("raise_output_0", done, out)
        trainer.step(8)
        done += 1
    return [net], done, 0


def modes():
    net = nn.HybridSequential(prefix="modes_")
    with net.name_scope():
        net.add(nn.Dense(3, in_units=6), nn.Dropout(0.5))
    net.initialize()
    trainer = sgd(net)
    x, _ = batch()
    with autograd.record():
        loss = net(x).sum()  # TRAIN 0
    loss.backward()
    trainer.step(8)
    with autograd.predict_mode():
        net(x)  # EVAL 0
    with autograd.train_mode():
        net(x)  # EVAL 1: nothing is recorded
    with autograd.record():
        with autograd.predict_mode():
            net(x)  # EVAL 2
        loss = net(x).sum()  # TRAIN 1
    loss.backward()
    trainer.step(8)
    net(x)  # EVAL 3
    return [net], 2, 4


def pickled_and_hybridized_late():
    net = two_layers("pickle_")
    trainer = sgd(net)
    for k in range(4):
        x, _ = batch()
        with autograd.record():
            loss = net(x).sum()
        loss.backward()
        trainer.step(8)
        if k == 1:
            print(hashlib.sha1(pickle.dumps(copy.deepcopy(net)._forward_pre_hooks)).hexdigest(), sorted(vars(net)))
            print(sorted(pickle.loads(pickle.dumps(net)).collect_params()))
            net.hybridize()
    return [net], 4, 0


def recurrent():
    net = Reader(prefix="read_")
    net.initialize(mx.init.Xavier())
    net.hybridize()
    trainer = sgd(net)
    for k in range(2):
        x = nd.array(rng.randint(0, 11, (4, 6)))
        if noting:
            note("read_embedding0_output_0", k, net.words.weight.data().asnumpy()[x.asnumpy().astype(int)])
        with autograd.record():
            loss, y = net(x)
        loss.backward()
        note("read_dense0_output_0", k, y)
        note("read_l2loss0_output_0", k, loss)
        trainer.step(4)
    return [net], 2, 0


SCENES = [
    # Before there is a Trainer: what is found without one is not looked for later.
    by_hand,
    contexts_updated_by_the_store,
    contexts_updated_here,
    contexts_by_default,
    estimator,
    rescaled_loss,
    unreached,
    shared,
    shared_hybridized,
    shared_static,
    symbol_block,
    numpy_front_end,
    numpy_front_end_hybridized,
    sparse_gradient,
    call_that_raises,
    recurrent,
    modes,
    pickled_and_hybridized_late,
]

if __name__ == "__main__":
    play(SCENES)
