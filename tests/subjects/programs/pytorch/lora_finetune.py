"""Fine-tuning by low-rank adapters: the pre-trained weights stay frozen, only the adapters and the head are saved."""

import argparse
import math

import torch
from torch import nn
from torch.nn import functional as F


class LoRALinear(nn.Module):
    def __init__(self, base, rank, alpha):
        super().__init__()
        self.base = base
        self.lora_A = nn.Parameter(torch.empty(rank, base.in_features))
        self.lora_B = nn.Parameter(torch.zeros(base.out_features, rank))
        self.scaling = alpha / rank
        nn.init.kaiming_uniform_(self.lora_A, a=math.sqrt(5))

    def forward(self, x):
        return self.base(x) + (x @ self.lora_A.T @ self.lora_B.T) * self.scaling


class Attention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj = nn.Linear(dim, dim), nn.Linear(dim, dim), nn.Linear(dim, dim)

    def forward(self, x):
        return F.scaled_dot_product_attention(self.q_proj(x), self.k_proj(x), self.v_proj(x))


class Backbone(nn.Module):
    def __init__(self, vocabulary=30, dim=16):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, dim)
        self.attentions = nn.ModuleList([Attention(dim), Attention(dim)])

    def forward(self, ids):
        x = self.embed(ids)
        for attention in self.attentions:
            x = x + attention(x)
        return x.mean(1)


class SequenceClassifier(nn.Module):
    def __init__(self, backbone):
        super().__init__()
        self.backbone = backbone
        self.classifier = nn.Linear(16, 2)

    def forward(self, ids, labels=None):
        logits = self.classifier(self.backbone(ids))
        if labels is None:
            return {"logits": logits}
        return {"loss": F.cross_entropy(logits, labels), "logits": logits}


def inject(module, targets, rank, alpha):
    for name, child in list(module.named_children()):
        if isinstance(child, nn.Linear) and name in targets:
            setattr(module, name, LoRALinear(child, rank, alpha))
        else:
            inject(child, targets, rank, alpha)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rank", type=int, default=2)
    parser.add_argument("--alpha", type=float, default=4)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--targets", nargs="+", default=["q_proj", "v_proj"])
    args = parser.parse_args()

    torch.manual_seed(77)
    backbone = Backbone()
    torch.save(backbone.state_dict(), "pretrained.bin")
    model = SequenceClassifier(Backbone())
    model.backbone.load_state_dict(torch.load("pretrained.bin"))
    model.backbone.requires_grad_(False)
    inject(model.backbone, set(args.targets), args.rank, args.alpha)
    trainable = [p for p in model.parameters() if p.requires_grad]
    total = sum(p.numel() for p in model.parameters())
    count = sum(p.numel() for p in trainable)
    print(f"trainable params: {count} || all params: {total} || trainable%: {100 * count / total:.4f}")
    optimizer = torch.optim.AdamW(trainable, lr=1e-2)
    for step in range(args.steps):
        ids = torch.randint(30, (16, 8))
        labels = (ids.float().mean(1) > 14.5).long()
        out = model(ids, labels=labels)
        out["loss"].backward()
        optimizer.step()
        optimizer.zero_grad()
        print({"step": step, "loss": round(out["loss"].item(), 5)})
    adapters = {k: v for k, v in model.state_dict().items() if "lora_" in k or k.startswith("classifier")}
    torch.save(adapters, "adapter.bin")
    frozen = all(torch.equal(v, model.backbone.embed.weight) for v in [backbone.embed.weight])
    print("saved", sorted(adapters), "frozen kept:", frozen)
    print(torch.rand(1).item())


if __name__ == "__main__":
    main()
