"""Support-ticket routing with a small Transformer encoder and Accelerate."""
import math
import random

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, Dataset

QUEUES = {
    "billing": [("charged", "twice"), ("refund", "missing"), ("invoice", "wrong"), ("card", "declined")],
    "login": [("password", "wrong"), ("account", "locked"), ("code", "missing"), ("email", "declined")],
    "shipping": [("parcel", "missing"), ("address", "wrong"), ("driver", "late"), ("box", "damaged")],
    "device": [("screen", "damaged"), ("battery", "hot"), ("charger", "missing"), ("sound", "late")],
    "cancel": [("subscription", "twice"), ("order", "wrong"), ("renewal", "late"), ("contract", "locked")],
}
FILLER = "hello please help i have my is was since and yesterday again the it team you can thanks support today".split()
MAX_LEN = 16


class Tickets(Dataset):
    def __init__(self, n, seed):
        r = random.Random(seed)
        self.items = []
        for _ in range(n):
            label = r.randrange(len(QUEUES))
            name = list(QUEUES)[label]
            words = [r.choice(FILLER) for _ in range(r.randint(4, 10))]
            for thing, problem in r.sample(QUEUES[name], r.choice([1, 2])):
                k = r.randint(0, len(words))
                words[k:k] = [thing, problem]
            if r.random() < 0.4:        # a distracting word of some other queue
                words.insert(r.randint(0, len(words)), r.choice(r.choice(list(QUEUES.values())))[1])
            ids = [VOCAB[w] for w in words][:MAX_LEN]
            self.items.append((ids + [0] * (MAX_LEN - len(ids)), label))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        ids, label = self.items[i]
        return torch.tensor(ids), torch.tensor(label)


all_words = sorted({w for q in QUEUES.values() for pair in q for w in pair} | set(FILLER))
VOCAB = {w: i + 1 for i, w in enumerate(all_words)}


class Router(nn.Module):
    def __init__(self, n_vocab, n_classes, d=64):
        super().__init__()
        self.emb = nn.Embedding(n_vocab, d, padding_idx=0)
        self.pos = nn.Parameter(torch.randn(1, MAX_LEN, d) * 0.02)
        layer = nn.TransformerEncoderLayer(d, 4, 2 * d, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(d, n_classes)

    def forward(self, x):
        pad = x == 0
        h = self.encoder(self.emb(x) * 0.5 + self.pos, src_key_padding_mask=pad)
        keep = (~pad).unsqueeze(-1).float()
        return self.head((h * keep).sum(1) / keep.sum(1))


def main():
    set_seed(21)
    accelerator = Accelerator(cpu=True)
    train_loader = DataLoader(Tickets(4000, 0), batch_size=64, shuffle=True)
    eval_loader = DataLoader(Tickets(800, 1), batch_size=200)
    model = Router(len(VOCAB) + 1, len(QUEUES))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    scheduler = StepLR(optimizer, step_size=1, gamma=0.8)
    model, optimizer, train_loader, eval_loader, scheduler = accelerator.prepare(
        model, optimizer, train_loader, eval_loader, scheduler)
    loss_fn = nn.CrossEntropyLoss()

    for epoch in range(5):
        model.train()
        losses = []
        for ids, labels in train_loader:
            loss = loss_fn(model(ids), labels)
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            scheduler.step()
            losses.append(loss.item())
        model.eval()
        correct, total = 0, 0
        for ids, labels in eval_loader:
            with torch.no_grad():
                preds = model(ids).argmax(-1)
            preds, labels = accelerator.gather_for_metrics((preds, labels))
            correct += (preds == labels).sum().item()
            total += labels.numel()
        accelerator.print(f"epoch {epoch + 1}: train loss {sum(losses) / len(losses):.4f}, "
                          f"eval accuracy {correct / total:.4f}")


if __name__ == "__main__":
    main()
