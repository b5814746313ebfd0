import numpy as np
import tensorflow as tf

tf.random.set_seed(21)
rng = np.random.default_rng(21)

VOCAB = 30
MAX_LEN = 40
N = 3000
BATCH = 64


def make_sequences(n):
    """Label is 1 when the first signal token comes before the second one."""
    seqs, labels = [], []
    for _ in range(n):
        length = rng.integers(5, 13)
        s = rng.integers(3, VOCAB, size=length)
        i, j = rng.choice(length, size=2, replace=False)
        s[i], s[j] = 1, 2
        seqs.append(s)
        labels.append(int(i < j))
    return seqs, np.array(labels, dtype="float32")


seqs, labels = make_sequences(N)
tokens = tf.keras.utils.pad_sequences(seqs, maxlen=MAX_LEN, padding="post", value=0)
n_train = 2400
train = tf.data.Dataset.from_tensor_slices((tokens[:n_train], labels[:n_train])).shuffle(n_train, seed=21).batch(BATCH)
valid = tf.data.Dataset.from_tensor_slices((tokens[n_train:], labels[n_train:])).batch(200)


class OrderClassifier(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.embedding = tf.keras.layers.Embedding(VOCAB, 16)
        self.rnn = tf.keras.layers.GRU(24)
        self.head = tf.keras.layers.Dense(1)

    def call(self, x):
        return self.head(self.rnn(self.embedding(x)))


model = OrderClassifier()
bce = tf.keras.losses.BinaryCrossentropy(from_logits=True)
optimizer = tf.keras.optimizers.Adam(5e-3)
train_acc = tf.keras.metrics.BinaryAccuracy(threshold=0.0)
val_acc = tf.keras.metrics.BinaryAccuracy(threshold=0.0)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        logits = model(x)
        loss = bce(y[:, None], logits)
    grads = tape.gradient(loss, model.trainable_variables)
    grads, _ = tf.clip_by_global_norm(grads, 1.0)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    train_acc.update_state(y[:, None], logits)
    return loss


@tf.function
def valid_step(x, y):
    val_acc.update_state(y[:, None], model(x))


for epoch in range(6):
    train_acc.reset_state()
    val_acc.reset_state()
    losses = [float(train_step(x, y)) for x, y in train]
    for x, y in valid:
        valid_step(x, y)
    print("epoch", epoch + 1,
          "loss %.4f" % np.mean(losses),
          "train acc %.4f" % float(train_acc.result()),
          "val acc %.4f" % float(val_acc.result()))
