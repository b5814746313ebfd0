"""A monitored session that is handed a hook, as for the old library: python tensorflow_session.py OUT_DIR."""

import sys

import numpy as np
import smdebug.tensorflow as smd
import tensorflow as tf

v1 = tf.compat.v1


def main(out_dir):
    rng = np.random.default_rng(0)
    hook = smd.SessionHook(
        out_dir,
        save_config=smd.SaveConfig(save_interval=2),
        include_collections=["weights", "gradients", "losses"],
    )
    with tf.Graph().as_default():
        v1.set_random_seed(4)
        x = v1.placeholder(tf.float32, [None, 5], "x")
        w = v1.get_variable("layer/w", [5, 3])
        loss = v1.losses.mean_squared_error(x[:, :3], x @ w)
        optimizer = hook.wrap_optimizer(v1.train.GradientDescentOptimizer(0.1))
        update = optimizer.minimize(loss, v1.train.get_or_create_global_step())
        hook.set_mode(smd.modes.TRAIN)
        with v1.train.MonitoredSession(hooks=[hook, hook]) as session:
            for _ in range(5):
                _, value = session.run([update, loss], {x: rng.normal(size=(3, 5))})
    hook.close()
    print(value)


if __name__ == "__main__":
    main(sys.argv[1])
