"""Two-tower query/passage retrieval trained with in-batch negatives."""
import random

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
random.seed(0)

N_WORDS = 500
PASSAGE_LEN, QUERY_LEN = 14, 5
TEMPERATURE = 0.07
SYNONYM = list(range(N_WORDS))
random.shuffle(SYNONYM)            # queries use other words than passages


class PairDataset(Dataset):
    def __init__(self, n):
        self.pairs = []
        for _ in range(n):
            topic = random.randrange(25)
            words = [topic * 20 + random.randrange(20) if random.random() < 0.5 else random.randrange(N_WORDS)
                     for _ in range(PASSAGE_LEN)]
            query = [SYNONYM[w] for w in random.sample(words, QUERY_LEN)]
            query[0] = random.randrange(N_WORDS)
            self.pairs.append((torch.tensor(query), torch.tensor(words)))

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, i):
        return self.pairs[i]


class Tower(nn.Module):
    def __init__(self, dim=48, out=48):
        super().__init__()
        self.emb = nn.EmbeddingBag(N_WORDS, dim, mode="mean")
        self.proj = nn.Sequential(nn.Linear(dim, 96), nn.GELU(), nn.Linear(96, out))

    def forward(self, tokens):
        return F.normalize(self.proj(self.emb(tokens)), dim=-1)


class DualEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.query_tower = Tower()
        self.passage_tower = Tower()

    def forward(self, query, passage):
        q = self.query_tower(query)
        p = self.passage_tower(passage)
        logits = q @ p.t() * TEMPERATURE
        target = torch.arange(len(q))
        return (F.cross_entropy(logits, target) + F.cross_entropy(logits.t(), target)) / 2


@torch.no_grad()
def recall(model, data, k=(1, 5)):
    model.eval()
    q = model.query_tower(torch.stack([a for a, _ in data.pairs]))
    p = model.passage_tower(torch.stack([b for _, b in data.pairs]))
    rank = (q @ p.t()).argsort(dim=1, descending=True)
    gold = torch.arange(len(q)).unsqueeze(1)
    model.train()
    return [(rank[:, :n] == gold).any(1).float().mean().item() for n in k]


train_set, dev_set = PairDataset(6400), PairDataset(300)
loader = DataLoader(train_set, batch_size=64, shuffle=True, drop_last=True)
model = DualEncoder()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)

for epoch in range(1, 6):
    total = 0.0
    for query, passage in loader:
        loss = model(query, passage)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    r1, r5 = recall(model, dev_set)
    print(f"epoch {epoch}  loss {total / len(loader):.4f}  dev recall@1 {r1:.3f}  recall@5 {r5:.3f}")
