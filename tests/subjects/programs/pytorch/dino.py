"""Self-distillation without labels: a student sees all crops, a teacher that follows it only the large ones."""

import json
import sys

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn


class DINOHead(nn.Module):
    def __init__(self, in_dim, out_dim, hidden_dim=32, bottleneck_dim=12):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(in_dim, hidden_dim), nn.GELU(), nn.Linear(hidden_dim, bottleneck_dim))
        self.apply(self._init_weights)
        self.last_layer = nn.utils.parametrizations.weight_norm(nn.Linear(bottleneck_dim, out_dim, bias=False))
        self.last_layer.parametrizations.weight.original0.data.fill_(1)
        self.last_layer.parametrizations.weight.original0.requires_grad = False

    def _init_weights(self, m):
        if isinstance(m, nn.Linear):
            nn.init.trunc_normal_(m.weight, std=0.1)
            nn.init.constant_(m.bias, 0)

    def forward(self, x):
        return self.last_layer(F.normalize(self.mlp(x), dim=-1))


class Backbone(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.patch_embed = nn.Conv2d(1, dim, 2, stride=2)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.attn = nn.MultiheadAttention(dim, 2, batch_first=True)
        self.norm = nn.LayerNorm(dim)

    def forward(self, x):
        x = self.patch_embed(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], 1)
        x = x + self.attn(x, x, x, need_weights=False)[0]
        return self.norm(x)[:, 0]


class MultiCropWrapper(nn.Module):
    """Crops of the same size go through the backbone together."""

    def __init__(self, backbone, head):
        super().__init__()
        self.backbone, self.head = backbone, head

    def forward(self, x):
        if not isinstance(x, list):
            x = [x]
        sizes = torch.tensor([inp.shape[-1] for inp in x])
        ends = torch.cumsum(torch.unique_consecutive(sizes, return_counts=True)[1], 0)
        start, output = 0, torch.empty(0)
        for end in ends:
            output = torch.cat((output, self.backbone(torch.cat(x[start:end]))))
            start = end
        return self.head(output)


class DINOLoss(nn.Module):
    def __init__(self, out_dim, ncrops, teacher_temp=0.07, student_temp=0.1, center_momentum=0.9):
        super().__init__()
        self.student_temp, self.teacher_temp = student_temp, teacher_temp
        self.center_momentum, self.ncrops = center_momentum, ncrops
        self.register_buffer("center", torch.zeros(1, out_dim))

    def forward(self, student_output, teacher_output):
        student_out = (student_output / self.student_temp).chunk(self.ncrops)
        teacher_out = F.softmax((teacher_output - self.center) / self.teacher_temp, dim=-1).detach().chunk(2)
        total_loss, n_terms = 0, 0
        for iq, q in enumerate(teacher_out):
            for v in range(len(student_out)):
                if v == iq:
                    continue
                loss = torch.sum(-q * F.log_softmax(student_out[v], dim=-1), dim=-1)
                total_loss += loss.mean()
                n_terms += 1
        self.update_center(teacher_output)
        return total_loss / n_terms

    @torch.no_grad()
    def update_center(self, teacher_output):
        batch_center = teacher_output.mean(dim=0, keepdim=True)
        self.center = self.center * self.center_momentum + batch_center * (1 - self.center_momentum)


def cosine_scheduler(base, final, steps):
    return final + 0.5 * (base - final) * (1 + np.cos(np.pi * np.arange(steps) / steps))


def crops(images, small=2):
    def one(size):
        top, left = np.random.randint(0, 8 - size + 1, 2)
        return images[:, :, top : top + size, left : left + size] + 0.05 * torch.randn(len(images), 1, size, size)

    return [one(8), one(8)] + [one(4) for _ in range(small)]


def train_dino(epochs=3, batch_size=40, out_dim=32):
    torch.manual_seed(0)
    np.random.seed(0)
    images = torch.from_numpy(load_digits().images[:240]).float().unsqueeze(1) / 16
    student = MultiCropWrapper(Backbone(), DINOHead(24, out_dim))
    teacher = MultiCropWrapper(Backbone(), DINOHead(24, out_dim))
    teacher.load_state_dict(student.state_dict())
    for p in teacher.parameters():
        p.requires_grad = False
    dino_loss = DINOLoss(out_dim, ncrops=4)
    regularized = [p for p in student.parameters() if p.requires_grad and p.ndim > 1]
    others = [p for p in student.parameters() if p.requires_grad and p.ndim <= 1]
    optimizer = torch.optim.AdamW([{"params": regularized}, {"params": others, "weight_decay": 0.0}])
    n = epochs * (len(images) // batch_size)
    lr_schedule, wd_schedule = cosine_scheduler(2e-3, 1e-5, n), cosine_scheduler(0.04, 0.4, n)
    momentum_schedule = cosine_scheduler(0.9, 1, n)
    it = 0
    for epoch in range(epochs):
        total = 0.0
        for batch in images[torch.randperm(len(images))].split(batch_size):
            for i, group in enumerate(optimizer.param_groups):
                group["lr"] = lr_schedule[it]
                if i == 0:
                    group["weight_decay"] = wd_schedule[it]
            views = crops(batch)
            teacher_output = teacher(views[:2])
            student_output = student(views)
            loss = dino_loss(student_output, teacher_output)
            if not np.isfinite(loss.item()):
                print(f"Loss is {loss.item()}, stopping training")
                sys.exit(1)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(student.parameters(), 3.0)
            if epoch < 1:
                for p in student.head.last_layer.parameters():
                    p.grad = None
            optimizer.step()
            with torch.no_grad():
                m = momentum_schedule[it]
                for param_q, param_k in zip(student.parameters(), teacher.parameters()):
                    param_k.data.mul_(m).add_((1 - m) * param_q.detach().data)
            total += loss.item()
            print(f"Epoch: [{epoch}/{epochs}] it {it} loss: {loss.item():.6f} lr: {lr_schedule[it]:.6f}")
            it += 1
        torch.save({"student": student.state_dict(), "teacher": teacher.state_dict()}, "checkpoint.pth")
        with open("log.txt", "a") as f:
            f.write(json.dumps({"train_loss": total / (len(images) // batch_size), "epoch": epoch}) + "\n")
    print(torch.rand(1).item(), np.random.rand())


if __name__ == "__main__":
    train_dino()
