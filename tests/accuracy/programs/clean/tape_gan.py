"""Two tapes, two optimizers: a GAN of points on a ring, in a tf.function."""

import tensorflow as tf

tf.keras.utils.set_random_seed(0)
Dense = tf.keras.layers.Dense
generator = tf.keras.Sequential([tf.keras.layers.Input((4,)), Dense(24, "relu"), Dense(24, "relu"), Dense(2)])
critic = tf.keras.Sequential([tf.keras.layers.Input((2,)), Dense(24, "leaky_relu"), Dense(24, "leaky_relu"), Dense(1)])
opt_g, opt_c = tf.keras.optimizers.Adam(1e-3, 0.5), tf.keras.optimizers.Adam(1e-3, 0.5)
bce = tf.keras.losses.BinaryCrossentropy(from_logits=True)


@tf.function
def step():
    angle = tf.random.uniform((64, 1), 0, 6.283)
    real = tf.concat([tf.cos(angle), tf.sin(angle)], 1) + tf.random.normal((64, 2), stddev=0.05)
    noise = tf.random.normal((64, 4))
    with tf.GradientTape() as tape_g, tf.GradientTape() as tape_c:
        fake = generator(noise, training=True)
        on_real, on_fake = critic(real, training=True), critic(fake, training=True)
        loss_g = bce(tf.ones_like(on_fake), on_fake)
        loss_c = bce(tf.ones_like(on_real), on_real) + bce(tf.zeros_like(on_fake), on_fake)
    gradients_g = tape_g.gradient(loss_g, generator.trainable_variables)
    gradients_c = tape_c.gradient(loss_c, critic.trainable_variables)
    opt_g.apply_gradients(zip(gradients_g, generator.trainable_variables))
    opt_c.apply_gradients(zip(gradients_c, critic.trainable_variables))
    return loss_g, loss_c


for number in range(150):
    losses = step()
print([float(loss) for loss in losses])
