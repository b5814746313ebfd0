# topic classification with a small Kim-style CNN
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

rng = np.random.default_rng(42)
torch.manual_seed(42)

topics = ["sport", "politics", "science", "cooking"]
n_common, n_own, seq_len = 200, 30, 25
vocab_size = 1 + n_common + n_own * len(topics)


def build(n_per_topic):
    """documents come topic after topic, as they lie in their folders"""
    docs, ys = [], []
    for k in range(len(topics)):
        for _ in range(n_per_topic):
            doc = rng.integers(1, 1 + n_common, seq_len)
            # short phrases of own words, and some words of other topics as noise
            for _ in range(2):
                p = rng.integers(0, seq_len - 2)
                doc[p:p + 2] = 1 + n_common + k * n_own + rng.integers(0, n_own, 2)
            other = rng.integers(0, len(topics))
            doc[rng.integers(0, seq_len)] = 1 + n_common + other * n_own + rng.integers(0, n_own)
            cut = rng.integers(15, seq_len + 1)
            doc[cut:] = 0
            docs.append(doc)
            ys.append(k)
    return np.stack(docs), np.array(ys)


X_train, y_train = build(500)
X_test, y_test = build(100)


class TextCNN(nn.Module):
    def __init__(self, dim=32, n_filters=32, sizes=(1, 2, 3), p=0.3):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, dim, padding_idx=0)
        self.convs = nn.ModuleList([nn.Conv1d(dim, n_filters, s) for s in sizes])
        self.dropout = nn.Dropout(p)
        self.fc = nn.Linear(n_filters * len(sizes), len(topics))

    def forward(self, x):
        e = self.embed(x).transpose(1, 2)
        pooled = [F.relu(c(e)).amax(dim=2) for c in self.convs]
        return self.fc(self.dropout(torch.cat(pooled, 1)))


net = TextCNN()
opt = torch.optim.Adam(net.parameters(), lr=1.5e-3)
BS = 32
n = len(X_train)

for epoch in range(1, 6):
    X_train = X_train[rng.permutation(n)]
    y_train = y_train[rng.permutation(n)]
    net.train()
    running_loss = 0.0
    running_hits = 0
    for i in range(0, n, BS):
        xb = torch.from_numpy(X_train[i:i + BS])
        yb = torch.from_numpy(y_train[i:i + BS])
        logits = net(xb)
        loss = F.cross_entropy(logits, yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
        running_loss += loss.item() * len(xb)
        running_hits += (logits.argmax(1) == yb).sum().item()
    net.eval()
    with torch.no_grad():
        test_logits = net(torch.from_numpy(X_test))
        test_loss = F.cross_entropy(test_logits, torch.from_numpy(y_test)).item()
        test_acc = (test_logits.argmax(1).numpy() == y_test).mean()
    print(f"[{epoch}] train loss {running_loss / n:.3f} train acc {running_hits / n:.3f} | "
          f"test loss {test_loss:.3f} test acc {test_acc:.3f}")
