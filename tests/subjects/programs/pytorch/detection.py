"""A small detector with anchors: targets come in a list of dictionaries, with any number of boxes each."""

import math
import sys

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Rectangles(Dataset):
    def __init__(self, n, size=32):
        self.n, self.size = n, size

    def __len__(self):
        return self.n

    def __getitem__(self, idx):
        g = torch.Generator().manual_seed(1000 + idx)
        image = 0.1 * torch.randn(1, self.size, self.size, generator=g)
        boxes, labels = [], []
        for _ in range(int(torch.randint(0, 4, (1,), generator=g))):
            w, h = torch.randint(8, 16, (2,), generator=g).tolist()
            x, y = torch.randint(0, self.size - 16, (2,), generator=g).tolist()
            label = int(w > h)
            image[:, y : y + h, x : x + w] += 1.0 if label else -1.0
            boxes.append([x, y, x + w, y + h])
            labels.append(label + 1)
        target = {
            "boxes": torch.tensor(boxes, dtype=torch.float32).reshape(-1, 4),
            "labels": torch.tensor(labels, dtype=torch.int64),
            "image_id": idx,
        }
        return image, target


def collate_fn(batch):
    return tuple(zip(*batch))


def box_area(boxes):
    return (boxes[:, 2:] - boxes[:, :2]).prod(1)


def box_iou(a, b):
    lt, rb = torch.max(a[:, None, :2], b[None, :, :2]), torch.min(a[:, None, 2:], b[None, :, 2:])
    inter = (rb - lt).clamp(min=0).prod(2)
    return inter / (box_area(a)[:, None] + box_area(b)[None] - inter)


class Head(nn.Module):
    def __init__(self, channels, anchors, classes):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)
        self.cls_logits = nn.Conv2d(channels, anchors * classes, 1)
        self.bbox_reg = nn.Conv2d(channels, anchors * 4, 1)
        nn.init.constant_(self.cls_logits.bias, -math.log((1 - 0.05) / 0.05))
        self.classes = classes

    def forward(self, features):
        t = F.relu(self.conv(features))
        n = len(features)
        logits = self.cls_logits(t).permute(0, 2, 3, 1).reshape(n, -1, self.classes)
        return logits, self.bbox_reg(t).permute(0, 2, 3, 1).reshape(n, -1, 4)


class Detector(nn.Module):
    def __init__(self, classes=2, sizes=(9.0, 14.0)):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 16, 3, 2, 1), nn.ReLU()
        )
        self.head = Head(16, len(sizes), classes)
        self.sizes, self.classes = sizes, classes

    def anchors(self, height, width):
        centers = torch.cartesian_prod(torch.arange(height), torch.arange(width)).flip(1) * 4.0 + 2.0
        half = torch.tensor(self.sizes)[None, :, None] / 2
        return torch.cat([centers[:, None] - half, centers[:, None] + half], -1).reshape(-1, 4)

    def compute_loss(self, logits, regression, anchors, targets):
        losses = {"classification": [], "bbox_regression": []}
        for row, boxes, target in zip(logits, regression, targets):
            wanted = torch.zeros_like(row)
            if len(target["boxes"]):
                quality, match = box_iou(anchors, target["boxes"]).max(1)
                positive = quality > 0.4
                wanted[positive, target["labels"][match[positive]] - 1] = 1.0
                offsets = (target["boxes"][match] - anchors) / 8.0
                box_loss = F.smooth_l1_loss(boxes[positive], offsets[positive], reduction="sum")
            else:
                positive, box_loss = torch.zeros(len(anchors), dtype=torch.bool), boxes.sum() * 0
            n = max(1, int(positive.sum()))
            losses["classification"].append(F.binary_cross_entropy_with_logits(row, wanted, reduction="sum") / n)
            losses["bbox_regression"].append(box_loss / n)
        return {name: torch.stack(each).mean() for name, each in losses.items()}

    def forward(self, images, targets=None):
        if self.training and targets is None:
            raise ValueError("In training mode, targets should be passed")
        features = self.backbone(torch.stack(images))
        logits, regression = self.head(features)
        anchors = self.anchors(*features.shape[-2:])
        if self.training:
            return self.compute_loss(logits, regression, anchors, targets)
        detections = []
        for scores, boxes in zip(logits.sigmoid(), anchors + regression * 8.0):
            best, labels = scores.max(1)
            keep = best > 0.3
            detections.append({"boxes": boxes[keep], "scores": best[keep], "labels": labels[keep] + 1})
        return detections


def train_one_epoch(model, optimizer, loader, epoch):
    model.train()
    for i, (images, targets) in enumerate(loader):
        loss_dict = model(list(images), [dict(t) for t in targets])
        losses = sum(loss for loss in loss_dict.values())
        if not math.isfinite(losses.item()):
            print(f"Loss is {losses.item()}, stopping training")
            sys.exit(1)
        optimizer.zero_grad()
        losses.backward()
        optimizer.step()
        parts = "  ".join(f"{name}: {value.item():.4f}" for name, value in loss_dict.items())
        print(f"Epoch: [{epoch}] [{i}/{len(loader)}]  loss: {losses.item():.5f}  {parts}")


@torch.inference_mode()
def evaluate(model, loader):
    model.eval()
    found = hits = wanted = 0
    for images, targets in loader:
        for output, target in zip(model(list(images)), targets):
            found, wanted = found + len(output["boxes"]), wanted + len(target["boxes"])
            if len(output["boxes"]) and len(target["boxes"]):
                hits += int((box_iou(target["boxes"], output["boxes"]).max(1).values > 0.4).sum())
    print(f"boxes {found}, recall {hits / max(1, wanted):.3f}")


def main():
    torch.manual_seed(0)
    loader = DataLoader(Rectangles(48), batch_size=8, shuffle=True, collate_fn=collate_fn)
    test_loader = DataLoader(Rectangles(12), batch_size=4, collate_fn=collate_fn)
    model = Detector()
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.02, momentum=0.9)
    lr_scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.3)
    for epoch in range(3):
        train_one_epoch(model, optimizer, loader, epoch)
        lr_scheduler.step()
        evaluate(model, test_loader)
    torch.save(model.state_dict(), "detector.pth")
    print(torch.rand(1).item())


if __name__ == "__main__":
    main()
