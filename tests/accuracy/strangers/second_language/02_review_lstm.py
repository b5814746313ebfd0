# Sentiment of short product reviews with an LSTM
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SEED = 7
np.random.seed(SEED)
torch.manual_seed(SEED)

POS = "good great lovely sturdy fast excellent pretty reliable".split()
NEG = "bad awful flimsy slow ugly noisy broken useless".split()
FILL = "the a this it phone case battery screen box very really and with my arrived color price i think overall".split()
MAXLEN = 20
words = ["<pad>", "not"] + POS + NEG + FILL
w2i = {w: i for i, w in enumerate(words)}


def make_review():
    while True:
        toks, score = [], 0
        for _ in range(np.random.randint(2, 6)):
            toks += list(np.random.choice(FILL, np.random.randint(1, 3)))
            positive = np.random.rand() < 0.5
            adj = np.random.choice(POS if positive else NEG)
            if np.random.rand() < 0.3:
                toks.append("not")
                positive = not positive
            toks.append(adj)
            score += 1 if positive else -1
        if score != 0 and len(toks) <= MAXLEN:
            return toks, int(score > 0)


def encode(toks):
    ids = [w2i[t] for t in toks]
    return [0] * (MAXLEN - len(ids)) + ids      # pre-padding, like in keras


reviews = [make_review() for _ in range(6000)]
X = torch.tensor([encode(t) for t, _ in reviews])
y = torch.tensor([l for _, l in reviews]).float()
train_ds = TensorDataset(X[:5000], y[:5000])
test_ds = TensorDataset(X[5000:], y[5000:])
train_dl = DataLoader(train_ds, batch_size=64, shuffle=True, drop_last=True)
test_dl = DataLoader(test_ds, batch_size=250)


class SentimentLSTM(nn.Module):
    def __init__(self, vocab_size, emb_dim=32, hidden=64):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, emb_dim, padding_idx=0)
        self.lstm = nn.LSTM(emb_dim, hidden)
        self.dropout = nn.Dropout(0.2)
        self.fc = nn.Linear(hidden, 1)

    def forward(self, x):
        emb = self.embedding(x)
        out, _ = self.lstm(emb)
        last = out[:, -1]
        return self.fc(self.dropout(last)).squeeze(1)


def evaluate(model):
    model.eval()
    correct = total = 0
    loss_sum = 0.0
    with torch.no_grad():
        for xb, yb in test_dl:
            logits = model(xb)
            loss_sum += criterion(logits, yb).item() * len(yb)
            correct += ((logits > 0).float() == yb).sum().item()
            total += len(yb)
    return loss_sum / total, correct / total


model = SentimentLSTM(len(words))
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
EPOCHS = 6
print("parameters:", sum(p.numel() for p in model.parameters()))
for epoch in range(1, EPOCHS + 1):
    model.train()
    running, hits, seen = 0.0, 0, 0
    for xb, yb in train_dl:
        optimizer.zero_grad()
        logits = model(xb)
        loss = criterion(logits, yb)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        running += loss.item() * len(yb)
        hits += ((logits > 0).float() == yb).sum().item()
        seen += len(yb)
    test_loss, test_acc = evaluate(model)
    print(f"Epoch {epoch}/{EPOCHS}  loss {running / seen:.4f}  acc {hits / seen:.3f}"
          f"  test_loss {test_loss:.4f}  test_acc {test_acc:.3f}")
