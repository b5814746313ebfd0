"""A generative adversarial network with two Trainers; the discriminator's update comes before the generator's."""

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn

BATCH, LATENT, STEPS = 16, 4, 12
mx.random.seed(1)
np.random.seed(1)

netG = nn.HybridSequential(prefix="generator_")
with netG.name_scope():
    netG.add(nn.Dense(16), nn.BatchNorm(), nn.Activation("relu"), nn.Dense(8, activation="tanh"))
netD = nn.HybridSequential(prefix="discriminator_")
with netD.name_scope():
    netD.add(nn.Dense(16), nn.LeakyReLU(0.2), nn.Dense(1))
for net in (netG, netD):
    net.initialize(mx.init.Normal(0.2))
    net.hybridize()

loss = gluon.loss.SigmoidBinaryCrossEntropyLoss()
trainerG = gluon.Trainer(netG.collect_params(), "adam", {"learning_rate": 2e-3, "beta1": 0.5})
trainerD = gluon.Trainer(netD.collect_params(), "adam", {"learning_rate": 2e-3, "beta1": 0.5})
real_label, fake_label = nd.ones((BATCH,)), nd.zeros((BATCH,))


def facc(label, pred):
    return ((pred.ravel() > 0.5) == label.ravel()).mean()


metric = mx.metric.CustomMetric(facc)


def real_batch():
    phase = np.random.uniform(0, 2 * np.pi, size=(BATCH, 1))
    return nd.array(0.8 * np.sin(phase + np.arange(8) * np.pi / 4))


for step in range(STEPS):
    data, latent = real_batch(), mx.nd.random_normal(0, 1, shape=(BATCH, LATENT))
    with autograd.record():
        output = netD(data)
        errD_real = loss(output, real_label)
        metric.update([real_label], [output.sigmoid()])
        fake = netG(latent)
        output = netD(fake.detach())
        errD_fake = loss(output, fake_label)
        errD = errD_real + errD_fake
    errD.backward()
    metric.update([fake_label], [output.sigmoid()])
    trainerD.step(BATCH)
    with autograd.record():
        errG = loss(netD(netG(latent)), real_label)
    errG.backward()
    trainerG.step(BATCH)
    print(f"iter {step}: discriminator {errD.mean().asscalar():.6f} generator {errG.mean().asscalar():.6f}")
    if step % 4 == 3:
        print("accuracy %s = %.4f" % metric.get())
        metric.reset()

samples = netG(mx.nd.random_normal(0, 1, shape=(4, LATENT)))
np.save("samples.npy", samples.asnumpy())
netG.save_parameters("netG.params")
netD.export("netD")
print(mx.nd.random_uniform(shape=(1,)).asscalar(), np.random.rand())
