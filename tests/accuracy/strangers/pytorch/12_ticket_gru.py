import random
import torch
import torch.nn as nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import Dataset, DataLoader

random.seed(5)
torch.manual_seed(5)

FILLER = "the a my and on in is was it to of for please hello team we have with at when".split()
TOPICS = {
    "billing": "invoice charge refund card payment".split(),
    "login": "password account reset locked email".split(),
    "shipping": "parcel courier address late tracking".split(),
    "bug": "crash error screen freeze update".split(),
}
names = list(TOPICS)
vocab = {"<pad>": 0}
for w in FILLER + sum(TOPICS.values(), []):
    vocab.setdefault(w, len(vocab))


def ticket():
    label = random.randrange(len(names))
    n = random.choice([4, 6, 8, 25, 30, 40])
    words = [random.choice(FILLER) for _ in range(n)]
    own = random.sample(range(n), 3)
    for p in own[:2]:
        words[p] = random.choice(TOPICS[names[label]])
    words[own[2]] = random.choice(TOPICS[random.choice(names)])
    return [vocab[w] for w in words], label


class Tickets(Dataset):
    def __init__(self, n):
        self.data = [ticket() for _ in range(n)]

    def __len__(self):
        return len(self.data)

    def __getitem__(self, i):
        ids, label = self.data[i]
        return torch.tensor(ids), label


def collate(batch):
    seqs, labels = zip(*batch)
    lengths = torch.tensor([len(s) for s in seqs])
    return pad_sequence(seqs, batch_first=True, padding_value=0), lengths, torch.tensor(labels)


class GRUClassifier(nn.Module):
    def __init__(self, n_words, emb=24, hid=32, n_out=4):
        super().__init__()
        self.emb = nn.Embedding(n_words, emb, padding_idx=0)
        self.gru = nn.GRU(emb, hid, batch_first=True)
        self.out = nn.Linear(hid, n_out)

    def forward(self, x, lengths):
        h, _ = self.gru(self.emb(x))
        last = h[:, -1]
        return self.out(last)


train_dl = DataLoader(Tickets(1200), batch_size=32, shuffle=True, collate_fn=collate)
val_dl = DataLoader(Tickets(400), batch_size=100, collate_fn=collate)
model = GRUClassifier(len(vocab))
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
ce = nn.CrossEntropyLoss()

for epoch in range(1, 7):
    model.train()
    tot = 0.0
    for x, lengths, y in train_dl:
        loss = ce(model(x, lengths), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        tot += loss.item()
    model.eval()
    ok = {"short": [0, 0], "long": [0, 0]}
    with torch.no_grad():
        for x, lengths, y in val_dl:
            hit = model(x, lengths).argmax(1) == y
            for name, sel in (("short", lengths <= 8), ("long", lengths > 8)):
                ok[name][0] += hit[sel].sum().item()
                ok[name][1] += sel.sum().item()
    acc = sum(v[0] for v in ok.values()) / sum(v[1] for v in ok.values())
    print(f"epoch {epoch} loss {tot / len(train_dl):.3f} val acc {acc:.3f}",
          " ".join(f"{k} {v[0] / v[1]:.3f}" for k, v in ok.items()))
