"""A word language model: states of an LSTM go on from batch to batch, gradients end where a batch begins."""

import math

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn, rnn

BATCH, BPTT, CLIP = 8, 6, 0.25
mx.random.seed(3)
np.random.seed(3)


class RNNModel(gluon.Block):
    def __init__(self, vocab_size, num_embed, num_hidden, dropout=0.2, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.drop = nn.Dropout(dropout)
            self.encoder = nn.Embedding(vocab_size, num_embed, weight_initializer=mx.init.Uniform(0.1))
            self.rnn = rnn.LSTM(num_hidden, 1, input_size=num_embed)
            self.decoder = nn.Dense(vocab_size, in_units=num_hidden)
            self.num_hidden = num_hidden

    def forward(self, inputs, hidden):
        output, hidden = self.rnn(self.drop(self.encoder(inputs)), hidden)
        return self.decoder(self.drop(output).reshape((-1, self.num_hidden))), hidden

    def begin_state(self, **kwargs):
        return self.rnn.begin_state(**kwargs)


def detach(hidden):
    return [state.detach() for state in hidden]


def text(n):
    """Each word is followed by one of two."""
    words = [0]
    for _ in range(n):
        words.append((words[-1] * 2 + np.random.randint(1, 3)) % 15)
    return nd.array(words)


def batchify(data):
    length = len(data) // BATCH
    return data[: length * BATCH].reshape((BATCH, length)).T


def batches(source):
    for i in range(0, len(source) - 1, BPTT):
        length = min(BPTT, len(source) - 1 - i)
        yield source[i : i + length], source[i + 1 : i + 1 + length].reshape((-1,))


def evaluate(model, loss, source):
    total, n = 0.0, 0
    hidden = model.begin_state(func=nd.zeros, batch_size=BATCH)
    for data, target in batches(source):
        output, hidden = model(data, hidden)
        total, n = total + loss(output, target).mean().asscalar(), n + 1
    return total / n


train_data, val_data = batchify(text(8 * 37)), batchify(text(8 * 13))
model = RNNModel(15, 12, 16, prefix="model_")
model.initialize(mx.init.Xavier())
trainer = gluon.Trainer(model.collect_params(), "sgd", {"learning_rate": 20.0, "momentum": 0, "wd": 0})
loss = gluon.loss.SoftmaxCrossEntropyLoss()
best_val = float("inf")
for epoch in range(3):
    hidden = model.begin_state(func=nd.zeros, batch_size=BATCH)
    for i, (data, target) in enumerate(batches(train_data)):
        hidden = detach(hidden)
        with autograd.record():
            output, hidden = model(data, hidden)
            L = loss(output, target)
        L.backward()
        grads = [p.grad() for p in model.collect_params().values()]
        gluon.utils.clip_global_norm(grads, CLIP * BPTT * BATCH)
        trainer.step(BPTT * BATCH)
        print(f"[Epoch {epoch} Batch {i}] loss {L.mean().asscalar():.6f}")
    val_L = evaluate(model, loss, val_data)
    print(f"[Epoch {epoch}] valid loss {val_L:.6f}, valid ppl {math.exp(val_L):.4f}")
    if val_L < best_val:
        best_val = val_L
        model.save_parameters("model.params")
    else:
        trainer.set_learning_rate(trainer.learning_rate * 0.25)
print(mx.nd.random_uniform(shape=(1,)).asscalar(), np.random.rand())
