import torch
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset
from transformers import get_linear_schedule_with_warmup

set_seed(19)

VOCAB = 400
MAX_TOKENS = 20
CLASSES = 8
ACCUM = 4
EPOCHS = 3


def build_dataset(n):
    """language identification on sub-word ids: languages share half of their pieces"""
    y = torch.randint(CLASSES, (n,))
    shared = torch.randint(200, VOCAB, (n, MAX_TOKENS))
    own = y[:, None] * 25 + torch.randint(25, (n, MAX_TOKENS))
    noise = torch.randint(200, (n, MAX_TOKENS))
    u = torch.rand(n, MAX_TOKENS)
    x = torch.where(u < 0.30, own, torch.where(u < 0.55, noise, shared))
    return TensorDataset(x, y)


class LangID(nn.Module):
    def __init__(self, dim=64, hidden=64):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, dim)
        self.conv = nn.Conv1d(dim, hidden, 3, padding=1)
        self.norm = nn.LayerNorm(hidden)
        self.fc = nn.Linear(hidden, CLASSES)

    def forward(self, x):
        h = F.gelu(self.conv(self.emb(x).transpose(1, 2)))
        return self.fc(self.norm(h.mean(-1)))


def main():
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=ACCUM)
    train_dl = DataLoader(build_dataset(3200), batch_size=8, shuffle=True)
    eval_dl = DataLoader(build_dataset(500), batch_size=100)
    model = LangID()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9, weight_decay=1e-4)
    updates = EPOCHS * len(train_dl) // ACCUM
    scheduler = get_linear_schedule_with_warmup(optimizer, updates // 20, updates)
    model, optimizer, train_dl, eval_dl, scheduler = accelerator.prepare(
        model, optimizer, train_dl, eval_dl, scheduler)
    accelerator.print("optimizer updates:", updates)

    for epoch in range(EPOCHS):
        model.train()
        total = 0.0
        for x, y in train_dl:
            with accelerator.accumulate(model):
                loss = F.cross_entropy(model(x), y)
                total += loss.item()
                loss = loss / ACCUM
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()

        model.eval()
        hits, seen, eval_loss = 0, 0, 0.0
        for x, y in eval_dl:
            with torch.no_grad():
                logits = model(x)
            logits, y = accelerator.gather_for_metrics((logits, y))
            hits += (logits.argmax(-1) == y).sum().item()
            eval_loss += F.cross_entropy(logits, y, reduction="sum").item()
            seen += len(y)
        accelerator.print(f"epoch {epoch}: lr {scheduler.get_last_lr()[0]:.4f} train loss {total / len(train_dl):.4f} "
                          f"eval loss {eval_loss / seen:.4f} accuracy {hits / seen:.4f}")


if __name__ == "__main__":
    main()
