import random

import torch
import torch.nn as nn
import torch.nn.functional as F

random.seed(11)
torch.manual_seed(11)

# ---- synthetic corpus: every topic has its own nouns and verbs, function words are common
TOPICS = {
    "sports": ("team player goal match coach league".split(), "scores wins trains loses".split()),
    "cooking": ("soup oven garlic recipe pan butter".split(), "boils tastes bakes melts".split()),
    "travel": ("train hotel island passport beach ticket".split(), "departs visits arrives books".split()),
    "finance": ("bank stock loan market broker fund".split(), "rises pays falls invests".split()),
    "music": ("guitar singer concert album drum song".split(), "plays sings tours records".split()),
}
ADJ = "big small old new famous quiet local cheap".split()
DET = ["the", "a", "every", "this"]
names = list(TOPICS)
vocab = sorted({w for n, v in TOPICS.values() for w in n + v} | set(ADJ) | set(DET) | {"and", "with", "then"})
stoi = {w: i for i, w in enumerate(vocab)}
T = 14


def sentence(topic):
    nouns, verbs = TOPICS[topic]
    other = TOPICS[random.choice(names)]
    out = []
    while len(out) < T + 1:
        src_n, src_v = (nouns, verbs) if random.random() < 0.8 else other
        out += [random.choice(DET)]
        if random.random() < 0.5:
            out += [random.choice(ADJ)]
        out += [random.choice(src_n), random.choice(src_v), random.choice(["and", "with", "then"])]
    return [stoi[w] for w in out[:T + 1]]


def dataset(n):
    labels = torch.tensor([random.randrange(len(names)) for _ in range(n)])
    return torch.tensor([sentence(names[l]) for l in labels]), labels


class Net(nn.Module):
    def __init__(self, vocab_size, dim=48, hidden=96):
        super().__init__()
        self.emb = nn.Embedding(vocab_size, dim)
        self.rnn = nn.GRU(dim, hidden, batch_first=True)
        self.head = nn.Linear(hidden, vocab_size)

    def features(self, x):
        return self.rnn(self.emb(x))[0]


def batches(*tensors, size=64):
    for idx in torch.randperm(len(tensors[0])).split(size):
        yield [t[idx] for t in tensors]


# ---- stage 1: language modelling on unlabelled text
unlabelled, _ = dataset(6000)
model = Net(len(vocab))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(4):
    total = 0.0
    for (seq,) in batches(unlabelled):
        logits = model.head(model.features(seq[:, :-1]))
        loss = F.cross_entropy(logits.flatten(0, 1), seq[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(seq)
    print(f"pretrain epoch {epoch}: lm loss {total / len(unlabelled):.3f}")

# ---- stage 2: topic classifier on top of the pretrained encoder
train_x, train_y = dataset(2000)
test_x, test_y = dataset(1000)
model.head = nn.Linear(96, len(names))
for p in list(model.emb.parameters()) + list(model.rnn.parameters()):
    p.requires_grad = False


@torch.no_grad()
def accuracy(x, y):
    model.eval()
    acc = (model.head(model.features(x).mean(1)).argmax(1) == y).float().mean().item()
    model.train()
    return acc


for epoch in range(8):
    total = 0.0
    for x, y in batches(train_x, train_y, size=32):
        loss = F.cross_entropy(model.head(model.features(x).mean(1)), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(x)
    print(f"finetune epoch {epoch:2d}: loss {total / len(train_x):.3f} "
          f"train acc {accuracy(train_x, train_y):.3f} test acc {accuracy(test_x, test_y):.3f}")
