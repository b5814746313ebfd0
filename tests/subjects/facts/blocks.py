"""Trainings of Gluon that have between them all that facts are saved of."""

import tempfile

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, nd
from mxnet.contrib import amp
from mxnet.gluon import nn, rnn

mx.random.seed(0)
np.random.seed(0)


def train(last, criterion, optimizer, settings, scaled=False, first=None, dtype="float32", shape=(10, 4)):
    net = nn.HybridSequential()
    net.add(first or nn.Dense(5), nn.BatchNorm(), nn.Dropout(0.2), last)
    net.initialize()
    trainer = gluon.Trainer(net.collect_params(), optimizer, settings)
    if scaled:
        amp.init_trainer(trainer)
    for _ in range(8):
        x = nd.array(np.random.randint(9, size=shape), dtype=dtype)
        y = x % 3 if dtype == "int32" else nd.array(np.arange(10) % 3)
        with autograd.record():
            loss = criterion(net(x), y)
            if scaled:
                with amp.scale_loss(loss, trainer) as whole:
                    autograd.backward(whole)
            else:
                autograd.backward(loss)
        trainer.step(10)
    criterion(net(x), y)


# Without ``amp.init``, after which layers expect float16, which they have on accelerators alone.
amp.amp._amp_initialized = amp.amp._amp_loss_scale_initialized = True
train(nn.Dense(3), gluon.loss.SoftmaxCrossEntropyLoss(), "adam", {"learning_rate": 1e-3, "wd": 1e-4})
logarithms = gluon.loss.SoftmaxCrossEntropyLoss(from_logits=True)
train(nn.Dense(3), logarithms, "sgd", {"learning_rate": 0.1, "momentum": 0.9}, scaled=True)
train(nn.Dense(1, activation="sigmoid"), gluon.loss.L2Loss(), "sgd", {"learning_rate": 0.1})
train(nn.HybridLambda("softmax"), gluon.loss.SoftmaxCrossEntropyLoss(), "sgd", {"learning_rate": 0.1})
crossing = gluon.loss.SoftmaxCrossEntropyLoss()
train(nn.Dense(3, flatten=False), crossing, "sgd", {}, first=nn.Embedding(9, 4), dtype="int32")
train(nn.Dense(3), crossing, "sgd", {}, first=rnn.LSTM(5), shape=(10, 4, 2))

net = nn.Dense(3, in_units=4)
net.initialize()
with tempfile.NamedTemporaryFile() as file:
    net.save_parameters(file.name)
    net.load_parameters(file.name)
net.initialize(force_reinit=True)
part, whole = nn.Sequential(), nn.Sequential()
part.add(nn.Dense(3, in_units=4))
part.initialize()
whole.add(part)
with tempfile.NamedTemporaryFile() as file:
    part.save_parameters(file.name)
    whole.load_parameters(file.name, allow_missing=True, ignore_extra=True)
trainer = gluon.Trainer(net.collect_params(), "sgd")
for _ in range(3):
    with autograd.record():
        loss = crossing(net(nd.ones((10, 4))), nd.array(np.arange(10) % 3))
    loss.backward()
    trainer.step(10)

pixels = nn.Conv2D(1, 3, padding=1, in_channels=1)
pixels.initialize()
trainer = gluon.Trainer(pixels.collect_params(), "sgd")
of_pixels = gluon.loss.SigmoidBinaryCrossEntropyLoss()
for _ in range(3):
    images = nd.random.uniform(shape=(4, 1, 16, 16))
    with autograd.record():
        loss = of_pixels(pixels(images), images > 0.5)
    loss.backward()
    trainer.step(4)
