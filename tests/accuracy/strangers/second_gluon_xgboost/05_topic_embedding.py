"""Topic classification of short synthetic documents, embedding + mean pooling."""
import numpy as np
import mxnet as mx
from mxnet import nd, autograd, gluon
from mxnet.gluon import nn

VOCAB, TOPICS, DOC_LEN = 800, 5, 20


def corpus(n_docs, seed, word_dist):
    rng = np.random.RandomState(seed)
    topics = rng.randint(0, TOPICS, n_docs)
    docs = np.zeros((n_docs, DOC_LEN), dtype="int32")
    for i, t in enumerate(topics):
        mix = 0.35 * word_dist[t] + 0.65 / VOCAB
        docs[i] = rng.choice(VOCAB, DOC_LEN, p=mix)
    return docs, topics.astype("float32")


class TopicModel(nn.Block):
    def __init__(self):
        super(TopicModel, self).__init__()
        with self.name_scope():
            self.embed = nn.Embedding(VOCAB, 16)
            self.drop = nn.Dropout(0.3)
            self.fc = nn.Dense(32, activation="relu")
            self.out = nn.Dense(TOPICS)

    def forward(self, tokens):
        h = self.embed(tokens).mean(axis=1)
        return self.out(self.fc(self.drop(h)))


def score(model, docs, labels, bs=250):
    ok = 0
    for s in range(0, len(docs), bs):
        out = model(nd.array(docs[s:s + bs]))
        ok += int((out.argmax(axis=1).asnumpy() == labels[s:s + bs]).sum())
    return ok / len(docs)


mx.random.seed(1)
rng = np.random.RandomState(1)
word_dist = rng.dirichlet(np.full(VOCAB, 0.1), size=TOPICS)
train_docs, train_labels = corpus(8000, 2, word_dist)
test_docs, test_labels = corpus(1000, 3, word_dist)

model = TopicModel()
model.initialize(mx.init.Xavier())
trainer = gluon.Trainer(model.collect_params(), "adam", {"learning_rate": 0.002, "wd": 1e-4})
loss_fn = gluon.loss.SoftmaxCELoss()

batch = 50
n = len(train_docs)
for epoch in range(6):
    order = rng.permutation(n)
    train_docs = train_docs[order]
    total = 0.0
    for start in range(0, n, batch):
        xb = nd.array(train_docs[start:start + batch])
        yb = nd.array(train_labels[start:start + batch])
        with autograd.record():
            loss = loss_fn(model(xb), yb)
        loss.backward()
        trainer.step(batch)
        total += loss.sum().asscalar()
    print("Epoch %d. Loss: %.4f, Test acc: %.3f" % (
        epoch + 1, total / n, score(model, test_docs, test_labels)))
