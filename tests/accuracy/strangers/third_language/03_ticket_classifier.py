"""Which product is the customer complaining about?  Transformer encoder over support tickets."""
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader

rng = np.random.default_rng(7)
torch.manual_seed(7)

PRODUCTS = ["router", "printer", "phone", "laptop", "tablet"]
BAD = ["hate the", "broken", "angry about the", "returning my"]
GOOD = ["love the", "great", "happy with the", "recommending my"]
FILLER = "hello thanks please team yesterday again order number really shop bought here months ago".split()


def make_ticket():
    bad, good = rng.choice(len(PRODUCTS), 2, replace=False)
    parts = [f"{rng.choice(BAD)} {PRODUCTS[bad]}", f"{rng.choice(GOOD)} {PRODUCTS[good]}"]
    if rng.random() < 0.5:
        parts.reverse()
    filler = [list(rng.choice(FILLER, rng.integers(0, 5))) for _ in range(3)]
    words = filler[0] + parts[0].split() + filler[1] + parts[1].split() + filler[2]
    return words, int(bad)


train_set = [make_ticket() for _ in range(3000)]
valid_set = [make_ticket() for _ in range(800)]
vocab = {"<pad>": 0}
for words, _ in train_set:
    for w in words:
        vocab.setdefault(w, len(vocab))

MAX_LEN = 24


def collate(batch):
    ids = torch.zeros(len(batch), MAX_LEN, dtype=torch.long)
    for i, (words, _) in enumerate(batch):
        ids[i, :len(words)] = torch.tensor([vocab[w] for w in words])
    mask = ids != vocab["<pad>"]
    return ids, mask, torch.tensor([label for _, label in batch])


class TicketClassifier(nn.Module):
    def __init__(self, dim=48, heads=4, layers=2):
        super().__init__()
        self.embed = nn.Embedding(len(vocab), dim, padding_idx=0)
        self.pos = nn.Embedding(MAX_LEN, dim)
        layer = nn.TransformerEncoderLayer(dim, heads, 2 * dim, dropout=0.1, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(dim)
        self.fc = nn.Linear(dim, len(PRODUCTS))

    def forward(self, ids, mask):
        x = self.embed(ids) + self.pos(torch.arange(ids.size(1)))
        x = self.norm(self.encoder(x, src_key_padding_mask=mask))
        m = mask.unsqueeze(-1).float()
        return self.fc((x * m).sum(1) / m.sum(1))


model = TicketClassifier()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
criterion = nn.CrossEntropyLoss()
train_loader = DataLoader(train_set, batch_size=64, shuffle=True, collate_fn=collate)
valid_loader = DataLoader(valid_set, batch_size=256, collate_fn=collate)

for epoch in range(8):
    model.train()
    running = 0.0
    for ids, mask, labels in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(ids, mask), labels)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        running += loss.item() * len(labels)

    model.eval()
    correct = 0
    with torch.no_grad():
        for ids, mask, labels in valid_loader:
            correct += (model(ids, mask).argmax(1) == labels).sum().item()
    print(f"[{epoch + 1:2d}] train loss {running / len(train_set):.4f}  valid acc {correct / len(valid_set):.4f}")
