"""FlippedApart, on trainings whose images are flipped without their targets, and on others that need not fit."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from smd_agent.framework.flipped_targets import Images
from smd_agent.rules import FlippedApart
from smd_agent.rules.finding import Severity

BATCH, SIDE = 16, 24


def cells(count=BATCH, height=SIDE, width=SIDE, contrast=0.5):
    """Images of bright spots, and the masks of these."""
    rows, columns = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    masks = torch.zeros(count, 1, height, width)
    for mask in masks:
        for _ in range(int(torch.randint(1, 4, ()))):
            row, column = torch.rand(2) * torch.tensor([height, width])
            mask[0][(rows - row) ** 2 + (columns - column) ** 2 < 12] = 1
    return 0.2 + contrast * masks + 0.1 * torch.randn(count, 1, height, width), masks


def some(images, change):
    """Change about half of them, each by its own draw."""
    return torch.stack([change(one) if torch.rand(()) < 0.5 else one for one in images])


def to_the_left(image):
    return image.flip(-1)


def upside_down(image):
    return image.flip(-2)


def by_a_quarter(image):
    return image.rot90(1, (-2, -1))


class Pixels(nn.Module):
    """A convolution, whose output has one number for each pixel."""

    def __init__(self, channels=1, outputs=1):
        super().__init__()
        self.last = nn.Conv2d(channels, outputs, 3, padding=1)

    def forward(self, images):
        return self.last(images)


def training_of(make, loss_of=functional.binary_cross_entropy_with_logits, net=Pixels, count=8):
    def training(capture):
        torch.manual_seed(11)
        model = net()
        capture(model)
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        for _ in range(count):
            images, targets = make()
            optimizer.zero_grad()
            loss_of(model(images), targets).backward()
            optimizer.step()

    return training


def image_alone(change=to_the_left, **sizes):
    def make():
        images, masks = cells(**sizes)
        return some(images, change), masks

    return make


def both_by_their_own_draws():
    images, masks = cells()
    return some(some(images, to_the_left), upside_down), some(some(masks, to_the_left), upside_down)


def mask_alone_as_labels():
    images, masks = cells()
    return images, some(masks, to_the_left)[:, 0].long()


FAULTY = {
    "image alone": (image_alone(),),
    "upside down": (image_alone(upside_down),),
    "quarter turns": (image_alone(by_a_quarter),),
    "wide images": (image_alone(height=20, width=50),),
    "more places than are looked at": (image_alone(height=70, width=90),),
    "own draws": (both_by_their_own_draws,),
    "labels": (mask_alone_as_labels, functional.cross_entropy, lambda: Pixels(outputs=2)),
    "squares": (image_alone(), functional.mse_loss),
}


@pytest.mark.parametrize("name", FAULTY)
def test_images_that_are_flipped_without_their_targets(trained, name):
    (found,) = trained(training_of(*FAULTY[name])).findings(FlippedApart())
    assert found.severity is Severity.PROBLEM
    assert found.tensor.startswith("usage/target/")
    evidence = found.evidence
    assert evidence["flipped"] >= 8
    assert evidence["fitting"] >= 4
    assert evidence["by_chance"] * 2 < evidence["flipped"] < evidence["images"]


def together():
    images, masks = cells()
    pairs = zip(images, masks, strict=True)
    found = [(to_the_left(a), to_the_left(b)) if torch.rand(()) < 0.5 else (a, b) for a, b in pairs]
    return tuple(torch.stack(part) for part in zip(*found, strict=True))


def unflipped():
    return cells()


def faces():
    """Images that are much the same when they are flipped."""
    images, masks = cells()
    return some((images + to_the_left(images)) / 2, to_the_left), (masks + to_the_left(masks)) / 2


def smooth_fields():
    """As of an equation: what is to be predicted has little to do with the image's own values."""

    def field():
        waves = torch.cos(torch.arange(SIDE)[:, None] * torch.arange(3) * torch.pi / SIDE)
        return torch.einsum("nij,xi,yj->nxy", torch.randn(BATCH, 3, 3), waves, waves)[:, None]

    return field(), field()


def noise():
    return cells()[0], torch.randn(BATCH, 1, SIDE, SIDE)


def the_image_itself():
    images = cells()[0]
    return images, images


def edges():
    """A target that is made of the image by another model, or by hand."""
    images, _ = cells()
    return images, functional.pad(images.diff(dim=-1).abs(), (0, 1))


def one_of_two():
    """Of two kinds of spots, of different brightness, one is to be found."""
    dim, masks = cells(contrast=0.3)
    return dim + cells(contrast=0.6)[0], masks


def hardly_to_be_seen():
    images, masks = cells(contrast=0.02)
    return some(images, to_the_left), masks


def the_same_place():
    """All targets alike, such as organs that lie in one place."""
    mask = torch.zeros(SIDE, SIDE)
    mask[4:14, 2:9] = 1
    masks = mask.expand(BATCH, 1, SIDE, SIDE).clone()
    return 0.5 * masks + 0.2 * torch.randn(BATCH, 1, SIDE, SIDE), masks


HEALTHY = {
    "together": (together,),
    "unflipped": (unflipped,),
    "faces": (faces, functional.mse_loss),
    "smooth fields": (smooth_fields, functional.mse_loss),
    "noise": (noise, functional.mse_loss),
    "the image itself": (the_image_itself, functional.mse_loss),
    "edges": (edges, functional.mse_loss),
    "one of two": (one_of_two,),
    "hardly to be seen": (hardly_to_be_seen,),
    "the same place": (the_same_place,),
}


@pytest.mark.parametrize("name", HEALTHY)
def test_others_are_left_alone(trained, name):
    assert trained(training_of(*HEALTHY[name], count=20)).verdict(FlippedApart()).findings == []


def small():
    images, masks = cells(height=12, width=12)
    return some(images, to_the_left), masks


def one_number_each():
    images, masks = cells()
    return some(images, to_the_left), masks.mean((1, 2, 3))[:, None]


@pytest.mark.parametrize(
    "make, net", [(small, Pixels), (one_number_each, lambda: nn.Sequential(nn.Flatten(), nn.LazyLinear(1)))]
)
def test_what_is_too_small_or_no_image_is_not_looked_at(trained, make, net):
    def training(capture):
        model = net()
        model(make()[0])
        training_of(make, functional.mse_loss, lambda: model)(capture)

    verdict = trained(training).verdict(FlippedApart())
    assert verdict.findings == []
    assert verdict.not_for_it == ["FlippedApart"]


@pytest.mark.parametrize(
    "settings, findings", [({}, 1), ({"images": 500}, 0), ({"share": 0.9}, 0), ({"times": 1e3}, 0)]
)
def test_as_much_as_it_takes(trained, settings, findings):
    assert len(trained(training_of(image_alone())).findings(FlippedApart(**settings))) == findings


def test_images_of_channels_last_are_the_same():
    torch.manual_seed(2)
    images, masks = cells()
    images, masks = images.expand(-1, 3, -1, -1).numpy(), some(masks, to_the_left).numpy()

    def looked_at(first, second):
        kept = Images(lambda part: part.astype(np.float32))
        kept.take([first])
        return {name: int(count) for name, count in kept.compared(second).items()}

    found = looked_at(images, masks)
    assert found["flipped"] > 0
    assert found["images"] == BATCH
    last = [np.ascontiguousarray(np.moveaxis(one, 1, -1)) for one in (images, masks)]
    assert looked_at(*last) == looked_at(images[:, 0], masks.reshape(BATCH, -1)) == found
    assert looked_at(images, np.concatenate([masks, 1 - masks], 1)) == found


def test_clean_trainings_are_silent(clean):
    assert {name: found for name, run in clean.items() if (found := run.verdict(FlippedApart()).findings)} == {}
