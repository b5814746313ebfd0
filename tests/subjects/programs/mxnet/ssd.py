"""A single-shot detector of squares: anchors at two scales, a loss of classes and one of boxes, in Gluon."""

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn

SIZES, RATIOS = [[0.3, 0.4], [0.6, 0.75]], [[1, 2, 0.5]] * 2
ANCHORS, CLASSES = len(SIZES[0]) + len(RATIOS[0]) - 1, 1

mx.random.seed(0)
np.random.seed(0)


def down_sample(channels):
    block = nn.HybridSequential()
    block.add(nn.Conv2D(channels, 3, padding=1), nn.BatchNorm(), nn.Activation("relu"), nn.MaxPool2D(2))
    return block


class ToySSD(gluon.Block):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.body, self.second = nn.HybridSequential(), down_sample(16)
            self.body.add(down_sample(8), down_sample(16))
            self.cls_preds, self.box_preds = nn.Sequential(), nn.Sequential()
            for _ in SIZES:
                self.cls_preds.add(nn.Conv2D(ANCHORS * (CLASSES + 1), 3, padding=1))
                self.box_preds.add(nn.Conv2D(ANCHORS * 4, 3, padding=1))

    def forward(self, x):
        anchors, classes, boxes = [], [], []
        for scale, stage in enumerate((self.body, self.second)):
            x = stage(x)
            anchors.append(nd.contrib.MultiBoxPrior(x, sizes=SIZES[scale], ratios=RATIOS[scale]))
            classes.append(self.cls_preds[scale](x).transpose((0, 2, 3, 1)).flatten())
            boxes.append(self.box_preds[scale](x).transpose((0, 2, 3, 1)).flatten())
        classes = nd.concat(*classes, dim=1).reshape((0, -1, CLASSES + 1))
        return nd.concat(*anchors, dim=1), classes, nd.concat(*boxes, dim=1)


class SmoothL1Loss(gluon.loss.Loss):
    def __init__(self, batch_axis=0, **kwargs):
        super().__init__(None, batch_axis, **kwargs)

    def hybrid_forward(self, F, output, label, mask):
        return F.mean(F.smooth_l1((output - label) * mask, scalar=1.0), self._batch_axis, exclude=True)


def batch(n=8, size=32):
    images, labels = 0.1 * np.random.randn(n, 3, size, size), np.zeros((n, 1, 5))
    for image, label in zip(images, labels):
        side = np.random.randint(10, 22)
        x, y = np.random.randint(0, size - side, 2)
        image[:, y : y + side, x : x + side] += 1
        label[0] = [0, x / size, y / size, (x + side) / size, (y + side) / size]
    return nd.array(images), nd.array(labels)


net = ToySSD(prefix="toyssd_")
net.initialize(mx.init.Xavier(magnitude=2))
cls_loss, box_loss = gluon.loss.SoftmaxCrossEntropyLoss(), SmoothL1Loss()
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "wd": 5e-4})
for step in range(12):
    x, y = batch()
    with autograd.record():
        anchors, class_preds, box_preds = net(x)
        with autograd.pause():
            box_target, box_mask, cls_target = nd.contrib.MultiBoxTarget(
                anchors, y, class_preds.transpose((0, 2, 1)), negative_mining_ratio=3, negative_mining_thresh=0.5
            )
        loss1 = cls_loss(class_preds, cls_target)
        loss2 = box_loss(box_preds, box_target, box_mask)
        loss = loss1 + 5 * loss2
    loss.backward()
    trainer.step(len(x))
    print(f"batch {step} class loss {loss1.mean().asscalar():.6f} box loss {loss2.mean().asscalar():.6f}")

x, y = batch(2)
anchors, class_preds, box_preds = net(x)
found = nd.contrib.MultiBoxDetection(class_preds.softmax().transpose((0, 2, 1)), box_preds, anchors, nms_threshold=0.5)
print("best scores", [round(float(v), 4) for v in found[:, :, 1].max(axis=1).asnumpy()])
net.save_parameters("ssd.params")
print(mx.nd.random_uniform(shape=(1,)).asscalar(), np.random.rand())
