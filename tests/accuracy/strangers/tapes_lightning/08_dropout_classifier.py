import numpy as np
import tensorflow as tf
from sklearn.datasets import make_classification
from sklearn.preprocessing import StandardScaler


class Config:
    seed = 5
    n_train = 400
    n_val = 2000
    batch_size = 40
    epochs = 45
    lr = 1e-3
    drop = 0.5


class Trainer:
    def __init__(self, model, cfg):
        self.model = model
        self.cfg = cfg
        self.loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        self.opt = tf.keras.optimizers.Adam(cfg.lr)

    @tf.function
    def train_step(self, x, y):
        with tf.GradientTape() as tape:
            logits = self.model(x)
            loss = self.loss(y, logits)
        variables = self.model.trainable_variables
        self.opt.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    def evaluate(self, x, y):
        logits = self.model(x, training=False)
        acc = np.mean(np.argmax(logits.numpy(), axis=1) == y)
        return float(self.loss(y, logits)), float(acc)

    def fit(self, train, val):
        ds = tf.data.Dataset.from_tensor_slices(train)
        ds = ds.shuffle(self.cfg.n_train, seed=self.cfg.seed).batch(self.cfg.batch_size)
        for epoch in range(1, self.cfg.epochs + 1):
            losses = [float(self.train_step(x, y)) for x, y in ds]
            if epoch % 5 == 0:
                val_loss, val_acc = self.evaluate(*val)
                print(f"{epoch:3d}: train_loss={np.mean(losses):.4f} val_loss={val_loss:.4f} val_acc={val_acc:.4f}")


def build_model(cfg, n_features, n_classes):
    inputs = tf.keras.Input((n_features,))
    h = tf.keras.layers.Dense(128, activation="relu", kernel_initializer="he_normal")(inputs)
    h = tf.keras.layers.Dropout(cfg.drop)(h)
    h = tf.keras.layers.Dense(64, activation="relu", kernel_initializer="he_normal")(h)
    h = tf.keras.layers.Dropout(cfg.drop)(h)
    outputs = tf.keras.layers.Dense(n_classes)(h)
    return tf.keras.Model(inputs, outputs)


def load(cfg):
    x, y = make_classification(
        n_samples=cfg.n_train + cfg.n_val, n_features=30, n_informative=10, n_redundant=0,
        n_classes=3, n_clusters_per_class=1, class_sep=1.0, flip_y=0.15, random_state=cfg.seed)
    x_train, x_val = x[:cfg.n_train], x[cfg.n_train:]
    scaler = StandardScaler().fit(x_train)
    x_train = scaler.transform(x_train).astype("float32")
    x_val = scaler.transform(x_val).astype("float32")
    return (x_train, y[:cfg.n_train]), (x_val, y[cfg.n_train:])


if __name__ == "__main__":
    cfg = Config()
    tf.keras.utils.set_random_seed(cfg.seed)
    train, val = load(cfg)
    trainer = Trainer(build_model(cfg, train[0].shape[1], 3), cfg)
    trainer.fit(train, val)
    print("final val loss %.4f, accuracy %.4f" % trainer.evaluate(*val))
