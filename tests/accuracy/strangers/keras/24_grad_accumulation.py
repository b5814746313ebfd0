import keras
import tensorflow as tf
from keras import layers
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split


class AccumModel(keras.Model):
    """Adds up the gradients of several small batches before an update."""

    def __init__(self, *args, accum_steps=4, **kwargs):
        super().__init__(*args, **kwargs)
        self.accum_steps = accum_steps
        self.micro_step = tf.Variable(0, dtype=tf.int32, trainable=False)
        self.grad_acc = [
            tf.Variable(tf.zeros(v.shape), trainable=False) for v in self.trainable_variables
        ]

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            y_pred = self(x, training=True)
            loss = self.compute_loss(x=x, y=y, y_pred=y_pred)
        grads = tape.gradient(loss, self.trainable_variables)
        for acc, g in zip(self.grad_acc, grads):
            acc.assign_add(g / self.accum_steps)
        self.micro_step.assign_add(1)
        tf.cond(
            tf.equal(self.micro_step % self.accum_steps, 0),
            self.apply_accumulated,
            lambda: None,
        )
        for m in self.metrics:
            if m.name == "loss":
                m.update_state(loss)
            else:
                m.update_state(y, y_pred)
        return {m.name: m.result() for m in self.metrics}

    def apply_accumulated(self):
        pairs = [(tf.identity(a), v) for a, v in zip(self.grad_acc, self.trainable_variables)]
        self.optimizer.apply_gradients(pairs)


def main():
    keras.utils.set_random_seed(88)
    d = load_digits()
    x = (d.data / 16.0).astype("float32")
    x_tr, x_va, y_tr, y_va = train_test_split(
        x, d.target, test_size=0.25, stratify=d.target, random_state=88
    )

    inp = keras.Input((64,))
    h = layers.Dense(64, activation="relu")(inp)
    h = layers.Dropout(0.2)(h)
    h = layers.Dense(32, activation="relu")(h)
    out = layers.Dense(10, activation="softmax")(h)
    model = AccumModel(inp, out, accum_steps=4)
    model.compile(
        optimizer=keras.optimizers.SGD(0.01, momentum=0.9),
        loss="sparse_categorical_crossentropy",
        metrics=["accuracy"],
    )
    hist = model.fit(
        x_tr,
        y_tr,
        batch_size=8,
        epochs=7,
        validation_data=(x_va, y_va),
        verbose=2,
    )
    print("updates:", int(model.micro_step.numpy()) // model.accum_steps)
    print("final val accuracy: %.4f" % hist.history["val_accuracy"][-1])


if __name__ == "__main__":
    main()
