"""A recurrent language model of characters: the hidden state is carried on, gradients are clipped by their norm."""

import math
import pickle
import sys

import mxnet as mx
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn, rnn

TEXT = "she sells sea shells by the sea shore and the shells she sells are sea shells. " * 8


class RNNModel(gluon.Block):
    def __init__(self, vocabulary, embed, hidden, layers, dropout=0.2, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.drop = nn.Dropout(dropout)
            self.encoder = nn.Embedding(vocabulary, embed)
            self.rnn = rnn.LSTM(hidden, layers, dropout=dropout, input_size=embed)
            self.decoder = nn.Dense(vocabulary, in_units=hidden)
        self.hidden = hidden

    def forward(self, inputs, state):
        output, state = self.rnn(self.drop(self.encoder(inputs)), state)
        return self.decoder(self.drop(output).reshape((-1, self.hidden))), state

    def begin_state(self, *args, **kwargs):
        return self.rnn.begin_state(*args, **kwargs)


def detach(state):
    return [each.detach() for each in state]


def batchify(tokens, batch_size):
    n = len(tokens) // batch_size
    return nd.array(tokens[: n * batch_size]).reshape((batch_size, n)).T


def main(epochs=3, batch_size=8, bptt=12, clip=0.5):
    mx.random.seed(100)
    letters = sorted(set(TEXT))
    data = batchify([letters.index(letter) for letter in TEXT], batch_size)
    model = RNNModel(len(letters), 12, 16, 1, prefix="lm_")
    model.initialize(mx.init.Uniform(0.2))
    trainer = gluon.Trainer(model.collect_params(), "sgd", {"learning_rate": 4.0, "momentum": 0, "wd": 0})
    loss_fn = gluon.loss.SoftmaxCrossEntropyLoss()
    step = 0
    for epoch in range(epochs):
        state, total, seen = model.begin_state(batch_size), 0.0, 0
        for i in range(0, data.shape[0] - 1 - bptt, bptt):
            inputs, targets = data[i : i + bptt], data[i + 1 : i + 1 + bptt].reshape((-1,))
            state = detach(state)
            with autograd.record():
                output, state = model(inputs, state)
                loss = loss_fn(output, targets).mean()
            loss.backward()
            gradients = [p.grad() for p in model.collect_params().values()]
            gluon.utils.clip_global_norm(gradients, clip)
            trainer.step(1)
            print(f"step {step} loss {loss.asscalar():.6f}")
            step += 1
            total += loss.asscalar()
            seen += 1
        print(f"[Epoch {epoch}] perplexity {math.exp(total / seen):.4f}")
    state, token, written = model.begin_state(1), nd.array([[0]]), []
    for _ in range(10):
        output, state = model(token, state)
        token = output.argmax(1).reshape((1, 1))
        written.append(letters[int(token.asscalar())])
    print(repr("".join(written)))
    with open("lm.pkl", "wb") as file:
        pickle.dump({name: p.data().asnumpy() for name, p in model.collect_params().items()}, file)
    print(mx.nd.random.normal(shape=(1,)).asscalar())
    return 4


sys.exit(main())
