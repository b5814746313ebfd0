import numpy as np
import mxnet as mx
from mxnet import nd, autograd
from mxnet.gluon import nn, Trainer, HybridBlock
from mxnet.gluon.data import Dataset, DataLoader
from mxnet.gluon.loss import SigmoidBinaryCrossEntropyLoss

np.random.seed(42)
mx.random.seed(42)
SIZE = 32


def draw_cell(rng):
    """A noisy microscope-like image with one bright cell and its mask."""
    yy, xx = np.mgrid[:SIZE, :SIZE]
    cy, cx = rng.uniform(8, SIZE - 8, 2)
    a, b = rng.uniform(3, 8, 2)
    th = rng.uniform(0, np.pi)
    u = (xx - cx) * np.cos(th) + (yy - cy) * np.sin(th)
    v = -(xx - cx) * np.sin(th) + (yy - cy) * np.cos(th)
    mask = ((u / a) ** 2 + (v / b) ** 2 <= 1).astype("float32")
    image = 0.3 + 0.4 * mask + 0.25 * rng.randn(SIZE, SIZE) + 0.1 * np.sin(xx / 5.0)
    return image.astype("float32")[None], mask[None]


class CellDataset(Dataset):
    def __init__(self, n, seed, augment=False):
        rng = np.random.RandomState(seed)
        self.items = [draw_cell(rng) for _ in range(n)]
        self.augment = augment

    def __len__(self):
        return len(self.items)

    def __getitem__(self, idx):
        image, mask = self.items[idx]
        if self.augment:
            if np.random.rand() < 0.5:
                image = image[:, :, ::-1]
            image = image * np.random.uniform(0.9, 1.1)
        return np.ascontiguousarray(image, dtype="float32"), np.ascontiguousarray(mask)


class MiniUNet(HybridBlock):
    def __init__(self, width=12):
        super().__init__()
        with self.name_scope():
            self.enc1 = self.block(width)
            self.enc2 = self.block(width * 2)
            self.pool = nn.MaxPool2D(2)
            self.up = nn.Conv2DTranspose(width, 2, strides=2)
            self.dec = self.block(width)
            self.out = nn.Conv2D(1, 1)

    def block(self, ch):
        seq = nn.HybridSequential()
        seq.add(nn.Conv2D(ch, 3, padding=1, use_bias=False), nn.BatchNorm(), nn.Activation("relu"))
        return seq

    def hybrid_forward(self, F, x):
        e1 = self.enc1(x)
        e2 = self.enc2(self.pool(e1))
        d = self.dec(F.concat(self.up(e2), e1, dim=1))
        return self.out(d)


def iou(net, loader):
    inter = union = 0.0
    for img, msk in loader:
        pred = (net(img) > 0).asnumpy() > 0
        true = msk.asnumpy() > 0
        inter += (pred & true).sum()
        union += (pred | true).sum()
    return inter / union


train = DataLoader(CellDataset(320, seed=1, augment=True), batch_size=16, shuffle=True)
val = DataLoader(CellDataset(120, seed=2), batch_size=40)

net = MiniUNet()
net.initialize(mx.init.Xavier(magnitude=2.24))
net.hybridize()
bce = SigmoidBinaryCrossEntropyLoss()
trainer = Trainer(net.collect_params(), "adam", {"learning_rate": 0.003})

for epoch in range(10):
    tot = 0
    for img, msk in train:
        with autograd.record():
            l = bce(net(img), msk)
        l.backward()
        trainer.step(img.shape[0])
        tot += l.mean().asscalar()
    print("Epoch {}: loss {:.4f}, val IoU {:.4f}".format(epoch, tot / len(train), iou(net, val)))
