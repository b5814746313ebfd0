import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

np.random.seed(3)
torch.manual_seed(3)

TAGSET = ["DET", "ADJ", "NOUN", "VERB", "ADV", "PREP"]
START = np.array([.5, .15, .2, .05, .1, .0])
TRANS = np.array([
    [.00, .35, .65, .00, .00, .00],
    [.00, .15, .85, .00, .00, .00],
    [.05, .00, .10, .50, .10, .25],
    [.40, .05, .15, .00, .25, .15],
    [.25, .20, .00, .35, .05, .15],
    [.65, .15, .20, .00, .00, .00]])
WORDS_PER_TAG = 50
SHARED = 60          # words which several tags use
VOCAB = 6 * WORDS_PER_TAG + SHARED
T = 12


def sample_corpus(n):
    X = np.zeros((n, T), dtype=np.int64)
    Y = np.zeros((n, T), dtype=np.int64)
    for i in range(n):
        tag = np.random.choice(6, p=START)
        for t in range(T):
            Y[i, t] = tag
            if np.random.rand() < 0.35:
                X[i, t] = 6 * WORDS_PER_TAG + np.random.randint(SHARED)
            else:
                X[i, t] = tag * WORDS_PER_TAG + np.random.randint(WORDS_PER_TAG)
            tag = np.random.choice(6, p=TRANS[tag])
    return torch.from_numpy(X), torch.from_numpy(Y)


class BiLSTMTagger(nn.Module):
    def __init__(self, embedding_dim=32, hidden_dim=48):
        super().__init__()
        self.word_embeddings = nn.Embedding(VOCAB, embedding_dim)
        self.lstm = nn.LSTM(embedding_dim, hidden_dim, bidirectional=True, batch_first=True)
        self.hidden2tag = nn.Linear(hidden_dim * 2, len(TAGSET))

    def forward(self, sentence):
        lstm_out, _ = self.lstm(self.word_embeddings(sentence))
        return self.hidden2tag(lstm_out)


def compute_loss(scores, tags):
    B, L, C = scores.shape
    return F.cross_entropy(scores.view(B, C, L), tags)


def accuracy(model, X, Y):
    model.eval()
    with torch.no_grad():
        scores = model(X)
    return compute_loss(scores, Y).item(), (scores.argmax(-1) == Y).float().mean().item()


Xtr, Ytr = sample_corpus(1500)
Xva, Yva = sample_corpus(300)
model = BiLSTMTagger()
optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
batch_size = 32

for epoch in range(5):
    model.train()
    order = torch.randperm(len(Xtr))
    total = 0.0
    for start in range(0, len(order), batch_size):
        idx = order[start:start + batch_size]
        optimizer.zero_grad()
        tag_scores = model(Xtr[idx])
        loss = compute_loss(tag_scores, Ytr[idx])
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
    val_loss, val_acc = accuracy(model, Xva, Yva)
    print("epoch", epoch, "loss %.4f" % (total / len(Xtr)), "val_loss %.4f" % val_loss, "val_acc %.4f" % val_acc)
