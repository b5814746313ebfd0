"""Recognition of spoken letters made of tones, by connectionist temporal classification; two loader processes."""

import argparse
import math

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset

BLANK, LETTERS = 0, "_abcd"


class Utterances(Dataset):
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        generator = torch.Generator().manual_seed(i)
        label = torch.randint(
            1, len(LETTERS), (int(torch.randint(2, 5, (1,), generator=generator)),), generator=generator
        )
        frames = []
        for letter in label.tolist():
            t = torch.arange(int(torch.randint(4, 7, (1,), generator=generator)))
            frames.append(torch.stack([torch.sin(t * letter * k * math.pi / 9) for k in range(1, 7)], 1))
            frames.append(torch.zeros(1, 6))
        x = torch.cat(frames)
        return x + 0.05 * torch.randn(x.shape, generator=generator), label


def collate(items):
    items.sort(key=lambda item: len(item[0]), reverse=True)
    xs, ys = zip(*items)
    lengths, targets = torch.tensor([len(x) for x in xs]), torch.tensor([len(y) for y in ys])
    return pad_sequence(xs, batch_first=True), lengths, torch.cat(ys), targets


class Recognizer(nn.Module):
    def __init__(self, hidden=16):
        super().__init__()
        self.conv = nn.Conv1d(6, hidden, 3, padding=1)
        self.rnn = nn.GRU(hidden, hidden, bidirectional=True, batch_first=True)
        self.fc = nn.Linear(2 * hidden, len(LETTERS))

    def forward(self, x, lengths):
        x = torch.relu(self.conv(x.transpose(1, 2))).transpose(1, 2)
        out, _ = self.rnn(pack_padded_sequence(x, lengths, batch_first=True))
        out, _ = pad_packed_sequence(out, batch_first=True)
        return self.fc(out).log_softmax(-1).transpose(0, 1)


def greedy(log_probs, length):
    best, last, out = log_probs[:length].argmax(-1).tolist(), BLANK, []
    for letter in best:
        if letter not in (last, BLANK):
            out.append(LETTERS[letter])
        last = letter
    return "".join(out)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    torch.manual_seed(30)
    loader = DataLoader(
        Utterances(48),
        batch_size=12,
        shuffle=True,
        collate_fn=collate,
        num_workers=args.workers,
        multiprocessing_context="fork",
    )
    model = Recognizer()
    ctc = nn.CTCLoss(blank=BLANK, zero_infinity=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(args.epochs):
        model.train()
        for batch, (x, lengths, labels, targets) in enumerate(loader):
            optimizer.zero_grad()
            loss = ctc(model(x, lengths), labels, lengths, targets)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            print(f"epoch {epoch} batch {batch} loss {loss.item():.4f}")
        model.eval()
        with torch.no_grad():
            x, lengths, labels, targets = collate([Utterances(60)[i] for i in range(48, 52)])
            out = model(x, lengths)
            print("val loss %.4f" % ctc(out, labels, lengths, targets).item(), greedy(out[:, 0], lengths[0]) or "-")
    torch.save(model.state_dict(), "ctc.pt")
    print(torch.rand(1).item())


if __name__ == "__main__":
    main()
