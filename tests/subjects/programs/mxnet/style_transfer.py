"""Style transfer: not a net is trained but an image, by features of a net that is fixed."""

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn

mx.random.seed(2)
np.random.seed(2)
STYLE_LAYERS, CONTENT_LAYERS = [0, 2], [2]
CONTENT_WEIGHT, STYLE_WEIGHT, TV_WEIGHT = 1.0, 20.0, 0.5


def fixed_net():
    net = nn.Sequential(prefix="vgg_")
    with net.name_scope():
        net.add(nn.Conv2D(8, 3, padding=1), nn.Activation("relu"), nn.Conv2D(8, 3, strides=2, padding=1))
    net.initialize(mx.init.Orthogonal())
    net.collect_params().setattr("grad_req", "null")
    return net


class GeneratedImage(gluon.Block):
    def __init__(self, shape, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.weight = self.params.get("weight", shape=shape)

    def forward(self):
        return self.weight.data()


def extract_features(net, x):
    contents, styles = [], []
    for i, layer in enumerate(net):
        x = layer(x)
        if i in STYLE_LAYERS:
            styles.append(x)
        if i in CONTENT_LAYERS:
            contents.append(x)
    return contents, styles


def gram(x):
    channels = x.shape[1]
    flat = x.reshape((channels, -1))
    return nd.dot(flat, flat.T) / flat.size


def content_loss(y_hat, y):
    return (y_hat - y).square().mean()


def style_loss(y_hat, gram_y):
    return (gram(y_hat) - gram_y).square().mean()


def tv_loss(y):
    across = (y[:, :, 1:, :] - y[:, :, :-1, :]).abs().mean()
    return 0.5 * (across + (y[:, :, :, 1:] - y[:, :, :, :-1]).abs().mean())


grid = np.stack(np.meshgrid(np.linspace(-1, 1, 24), np.linspace(-1, 1, 24)))
content = nd.array(np.stack([np.exp(-4 * (grid**2).sum(0)), grid[0], grid[1]])[None])
style = nd.array(np.stack([np.sin(9 * grid[0]), np.sin(9 * grid[1]), np.sin(9 * grid.sum(0))])[None])
net = fixed_net()
contents_y, _ = extract_features(net, content)
styles_y = [gram(y) for y in extract_features(net, style)[1]]
image = GeneratedImage(content.shape, prefix="image_")
image.initialize(mx.init.Constant(content))
trainer = gluon.Trainer(image.collect_params(), "adam", {"learning_rate": 0.05})
for epoch in range(15):
    with autograd.record():
        X = image()
        contents_y_hat, styles_y_hat = extract_features(net, X)
        contents_l = sum(content_loss(a, b) * CONTENT_WEIGHT for a, b in zip(contents_y_hat, contents_y))
        styles_l = sum(style_loss(a, b) * STYLE_WEIGHT for a, b in zip(styles_y_hat, styles_y))
        total = contents_l + styles_l + tv_loss(X) * TV_WEIGHT
    total.backward()
    trainer.step(1)
    print(
        f"epoch {epoch} loss {total.asscalar():.6f} content {contents_l.asscalar():.5f} style {styles_l.asscalar():.5f}"
    )
np.save("painting.npy", image.weight.data().asnumpy())
print(mx.nd.random_uniform(shape=(1,)).asscalar())
