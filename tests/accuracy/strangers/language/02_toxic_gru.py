import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch.utils.data import DataLoader, TensorDataset
from sklearn.model_selection import train_test_split
from sklearn.metrics import f1_score, average_precision_score

SEED = 7
rng = np.random.default_rng(SEED)
torch.manual_seed(SEED)

VOCAB, MAXLEN, N = 400, 18, 3200


def make_comments(n):
    """Comments as token ids; 8% are toxic, and toxic ones use words below 40 more often."""
    labels = (rng.random(n) < 0.08).astype(np.int64)
    comments = rng.integers(1, VOCAB, size=(n, MAXLEN))
    for i, lab in enumerate(labels):
        k = rng.binomial(MAXLEN, 0.42 if lab else 0.06)
        where = rng.choice(MAXLEN, k, replace=False)
        comments[i, where] = rng.integers(1, 40, size=k)
        comments[i, rng.integers(8, MAXLEN + 1):] = 0
    return comments, labels


def oversample(comments, labels):
    pos = np.where(labels == 1)[0]
    extra = rng.choice(pos, size=(labels == 0).sum() - len(pos), replace=True)
    keep = np.concatenate([np.arange(len(labels)), extra])
    rng.shuffle(keep)
    return comments[keep], labels[keep]


X, y = make_comments(N)
print("toxic share:", y.mean())
X, y = oversample(X, y)
X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.25, stratify=y, random_state=SEED)
print("train", X_train.shape, "val", X_val.shape)

train_dl = DataLoader(TensorDataset(torch.tensor(X_train), torch.tensor(y_train)), batch_size=64, shuffle=True)
val_dl = DataLoader(TensorDataset(torch.tensor(X_val), torch.tensor(y_val)), batch_size=256)


class ToxicClassifier(nn.Module):
    def __init__(self, emb=24, hidden=24):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, emb, padding_idx=0)
        self.drop = nn.Dropout(0.4)
        self.gru = nn.GRU(emb, hidden, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * hidden, 1)

    def forward(self, x):
        lengths = (x != 0).sum(1)
        packed = pack_padded_sequence(self.drop(self.emb(x)), lengths, batch_first=True, enforce_sorted=False)
        h, _ = pad_packed_sequence(self.gru(packed)[0], batch_first=True)
        h = h.sum(1) / lengths.unsqueeze(1)
        return self.out(self.drop(h)).squeeze(-1)


model = ToxicClassifier()
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-5)

for epoch in range(1, 6):
    model.train()
    running = 0.0
    for xb, yb in train_dl:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb.float())
        loss.backward()
        optimizer.step()
        running += loss.item() * len(xb)
    model.eval()
    probs, val_loss = [], 0.0
    with torch.no_grad():
        for xb, yb in val_dl:
            logit = model(xb)
            val_loss += criterion(logit, yb.float()).item() * len(xb)
            probs.append(torch.sigmoid(logit))
    probs = torch.cat(probs).numpy()
    f1 = f1_score(y_val, probs > 0.5)
    ap = average_precision_score(y_val, probs)
    print(f"epoch {epoch}  train loss {running / len(X_train):.4f}  val loss {val_loss / len(X_val):.4f}  "
          f"val F1 {f1:.3f}  val AP {ap:.3f}")
