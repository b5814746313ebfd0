import argparse
import random

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset

GOOD = ["great", "lovely", "brilliant", "fun", "moving", "charming"]
BAD = ["dull", "awful", "boring", "weak", "messy", "flat"]
NEUTRAL = ["the", "film", "a", "plot", "was", "and", "actor", "scene", "music", "of", "with", "story", "it", "very"]
VOCAB = {w: i + 1 for i, w in enumerate(GOOD + BAD + NEUTRAL + ["not"])}


def make_review(rnd):
    label = rnd.randint(0, 1)
    words = [rnd.choice(NEUTRAL) for _ in range(rnd.randint(4, 30))]
    for _ in range(rnd.randint(1, 3)):
        pos = rnd.randint(0, len(words))
        if rnd.random() < 0.3:
            words[pos:pos] = ["not", rnd.choice(BAD if label else GOOD)]
        else:
            words[pos:pos] = [rnd.choice(GOOD if label else BAD)]
    if rnd.random() < 0.05:
        label = 1 - label
    return " ".join(words), label


class ReviewDataset(Dataset):
    def __init__(self, n, seed):
        rnd = random.Random(seed)
        self.items = [make_review(rnd) for _ in range(n)]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        text, label = self.items[i]
        return torch.tensor([VOCAB[w] for w in text.split()]), label


def collate(batch):
    seqs, labels = zip(*batch)
    lengths = torch.tensor([len(s) for s in seqs])
    return pad_sequence(seqs, batch_first=True), lengths, torch.tensor(labels)


class LSTMClassifier(nn.Module):
    def __init__(self, vocab_size, emb_dim, hidden):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, emb_dim, padding_idx=0)
        self.lstm = nn.LSTM(emb_dim, hidden, batch_first=True)
        self.fc = nn.Linear(hidden, 2)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(self.embedding(x), lengths, batch_first=True, enforce_sorted=False)
        out, _ = self.lstm(packed)
        out, _ = pad_packed_sequence(out, batch_first=True)
        last = out[:, -1]
        return self.fc(last)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=6)
    ap.add_argument("--lr", type=float, default=4e-3)
    ap.add_argument("--batch-size", type=int, default=32)
    args = ap.parse_args()

    torch.manual_seed(0)
    train_loader = DataLoader(ReviewDataset(2000, 1), batch_size=args.batch_size, shuffle=True, collate_fn=collate)
    valid_loader = DataLoader(ReviewDataset(500, 2), batch_size=100, collate_fn=collate)
    model = LSTMClassifier(len(VOCAB) + 1, 32, 48)
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    ce = nn.CrossEntropyLoss()

    for epoch in range(args.epochs):
        model.train()
        tot = 0
        for x, lengths, y in train_loader:
            opt.zero_grad()
            loss = ce(model(x, lengths), y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            tot += loss.item()
        model.eval()
        correct, vloss = 0, 0
        with torch.no_grad():
            for x, lengths, y in valid_loader:
                logits = model(x, lengths)
                correct += (logits.argmax(1) == y).sum().item()
                vloss += ce(logits, y).item()
        print(f"epoch {epoch}: train_loss={tot / len(train_loader):.4f} valid_loss={vloss / len(valid_loader):.4f} "
              f"valid_acc={correct / len(valid_loader.dataset):.4f}")


if __name__ == "__main__":
    main()
