"""Pre-train on rotation prediction, then classify digits from few labels.

Stage 1: the encoder learns to tell by how much an image was turned.
Stage 2: a classifier head is trained on the frozen encoder.
Stage 3: the whole network is fine-tuned with a smaller learning rate.
"""
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

tf.keras.utils.set_random_seed(5)
layers = tf.keras.layers

digits = load_digits()
images = (digits.images / 16.0).astype("float32")[..., None]
labels = digits.target.astype("int32")
order = np.random.permutation(len(images))
images, labels = images[order], labels[order]

unlabelled = images[:1000]
x_small, y_small = images[:400], labels[:400]
x_test, y_test = images[1000:], labels[1000:]

encoder = tf.keras.Sequential([
    layers.Input((8, 8, 1)),
    layers.Conv2D(16, 3, padding="same", activation="relu"),
    layers.Conv2D(24, 3, strides=2, padding="same", activation="relu"),
    layers.Flatten(),
    layers.Dense(32, activation="relu"),
], name="encoder")
loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def fit(net, optimizer, variables, x, y, epochs, batch=32):
    @tf.function
    def step(xb, yb):
        with tf.GradientTape() as tape:
            loss = loss_fn(yb, net(xb, training=True))
        grads = tape.gradient(loss, variables)
        optimizer.apply_gradients(zip(grads, variables))
        return loss

    data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(len(x)).batch(batch)
    for epoch in range(epochs):
        running = [step(xb, yb).numpy() for xb, yb in data]
        if (epoch + 1) % 5 == 0:
            print(f"  epoch {epoch + 1:2d}  loss {np.mean(running):.4f}")


def accuracy(net, x, y):
    return float((net(x, training=False).numpy().argmax(-1) == y).mean())


print("stage 1: rotations")
turn = np.random.randint(0, 4, len(unlabelled))
turned = np.stack([np.rot90(im, k) for im, k in zip(unlabelled, turn)])
pretext = tf.keras.Sequential([encoder, layers.Dense(4)])
pretext.build((None, 8, 8, 1))
fit(pretext, tf.keras.optimizers.Adam(1e-3), pretext.trainable_variables, turned, turn, 10)

print("stage 2: head")
classifier = tf.keras.Sequential([encoder, layers.Dense(10)])
classifier.build((None, 8, 8, 1))
encoder.trainable = False
params = classifier.trainable_variables
fit(classifier, tf.keras.optimizers.Adam(3e-3), params, x_small, y_small, 15)
print(f"  test accuracy {accuracy(classifier, x_test, y_test):.4f}")

print("stage 3: fine-tuning")
encoder.trainable = True
fit(classifier, tf.keras.optimizers.Adam(5e-4), params, x_small, y_small, 25)
print(f"  test accuracy {accuracy(classifier, x_test, y_test):.4f}")
