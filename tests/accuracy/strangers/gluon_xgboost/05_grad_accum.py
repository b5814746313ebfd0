# small text classifier (bag of embeddings), effective batch = MICRO * ACCUM
import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn

np.random.seed(0)
mx.random.seed(0)

VOCAB, LEN, CLASSES = 400, 20, 4
MICRO, ACCUM = 16, 4
EPOCHS = 6


def fake_corpus(n):
    topics = np.random.dirichlet(np.ones(VOCAB) * 0.08, CLASSES)
    background = np.random.dirichlet(np.ones(VOCAB), 1)[0]
    docs = np.zeros((n, LEN), dtype='float32')
    labels = np.random.randint(0, CLASSES, n)
    for i in range(n):
        p = 0.3 * topics[labels[i]] + 0.7 * background
        docs[i] = np.random.choice(VOCAB, LEN, p=p)
    return docs, labels.astype('float32')


class BagOfEmbeddings(gluon.HybridBlock):
    def __init__(self, dim=32):
        super().__init__()
        with self.name_scope():
            self.embed = nn.Embedding(VOCAB, dim, weight_initializer=mx.init.Normal(0.5))
            self.fc = nn.Dense(32, activation='relu')
            self.out = nn.Dense(CLASSES)

    def hybrid_forward(self, F, tokens):
        e = self.embed(tokens)
        return self.out(self.fc(F.mean(e, axis=1)))


docs, labels = fake_corpus(3000)
split = 2240
train_set = gluon.data.ArrayDataset(docs[:split], labels[:split])
train_loader = gluon.data.DataLoader(train_set, MICRO, shuffle=True, last_batch='discard')
x_test, y_test = nd.array(docs[split:]), labels[split:]

model = BagOfEmbeddings()
model.initialize(mx.init.Xavier())
model.hybridize()
model.collect_params().setattr('grad_req', 'add')
ce = gluon.loss.SoftmaxCrossEntropyLoss()
trainer = gluon.Trainer(model.collect_params(), 'sgd', {'learning_rate': 0.1, 'momentum': 0.9})

for epoch in range(1, EPOCHS + 1):
    epoch_loss = 0.0
    for i, (tok, lab) in enumerate(train_loader):
        with autograd.record():
            loss = ce(model(tok), lab)
        loss.backward()
        epoch_loss += loss.mean().asscalar()
        if (i + 1) % ACCUM == 0:
            trainer.step(MICRO * ACCUM)
    pred = model(x_test).argmax(axis=1).asnumpy()
    print('epoch', epoch, 'loss', round(epoch_loss / len(train_loader), 4),
          'test acc', round(float((pred == y_test).mean()), 4))
