import math
import random

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset
from transformers import RobertaConfig, RobertaForSequenceClassification

random.seed(2)
torch.manual_seed(2)

VOCAB, LEN, RANK, ALPHA = 100, 16, 8, 16


class LoRALinear(nn.Module):
    def __init__(self, base, r, alpha):
        super().__init__()
        self.base = base
        self.lora_A = nn.Parameter(torch.empty(r, base.in_features))
        self.lora_B = nn.Parameter(torch.zeros(base.out_features, r))
        nn.init.kaiming_uniform_(self.lora_A, a=math.sqrt(5))
        self.scaling = alpha / r

    def forward(self, x):
        return self.base(x) + (x @ self.lora_A.t() @ self.lora_B.t()) * self.scaling


def add_lora(model):
    for layer in model.roberta.encoder.layer:
        att = layer.attention.self
        att.query = LoRALinear(att.query, RANK, ALPHA)
        att.value = LoRALinear(att.value, RANK, ALPHA)
        layer.intermediate.dense = LoRALinear(layer.intermediate.dense, RANK, ALPHA)
        layer.output.dense = LoRALinear(layer.output.dense, RANK, ALPHA)


def freeze_base(model):
    for name, p in model.named_parameters():
        if not name.startswith("classifier"):
            p.requires_grad = False


def data(n, task):
    """task a: two groups of frequent words; task b: two groups among the other words"""
    x = torch.randint(44, VOCAB, (n, LEN))
    x[:, 0] = 4
    if task == "a":
        y = torch.randint(2, (n,))
        pick = torch.rand(n, LEN) < 0.4
        pick[:, 0] = False
        x = torch.where(pick, 4 + 20 * y[:, None] + torch.randint(1, 20, (n, LEN)), x)
    else:
        y = torch.randint(2, (n,))
        pick = torch.rand(n, LEN) < 0.35
        pick[:, 0] = False
        x = torch.where(pick, 44 + 28 * y[:, None] + torch.randint(28, (n, LEN)), x)
    return TensorDataset(x, y)


def run(model, task, n, epochs, lr):
    trainable = [p for p in model.parameters() if p.requires_grad]
    print(task, "trainable parameters:", sum(p.numel() for p in trainable))
    loader = DataLoader(data(n, task), batch_size=32, shuffle=True)
    vx, vy = data(400, task).tensors
    opt = torch.optim.AdamW(trainable, lr=lr)
    for epoch in range(epochs):
        model.train()
        tot = 0
        for x, y in loader:
            opt.zero_grad()
            loss = model(input_ids=x, attention_mask=torch.ones_like(x), labels=y).loss
            loss.backward()
            opt.step()
            tot += loss.item()
        model.eval()
        with torch.no_grad():
            out = model(input_ids=vx, attention_mask=torch.ones_like(vx), labels=vy)
        acc = (out.logits.argmax(-1) == vy).float().mean().item()
        print(f"  epoch {epoch + 1} loss {tot / len(loader):.4f} val loss {out.loss.item():.4f} val acc {acc:.4f}")


config = RobertaConfig(vocab_size=VOCAB, hidden_size=48, num_hidden_layers=2, num_attention_heads=4,
                       intermediate_size=96, max_position_embeddings=40, num_labels=2,
                       hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
model = RobertaForSequenceClassification(config)
run(model, "a", 1600, 2, 1e-3)

add_lora(model)
freeze_base(model)
run(model, "b", 2400, 4, 2e-3)
