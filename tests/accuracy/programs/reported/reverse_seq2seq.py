"""Trains an encoder-decoder to write short words backwards."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(41)
PAD, BOS, EOS, FIRST, VOCAB = 0, 1, 2, 3, 15
LONGEST = 22


def words(n):
    """Most words are two or three letters long; one in fifty is a long one."""
    source = torch.full((n, LONGEST), PAD)
    target = torch.full((n, LONGEST + 1), PAD)
    for row in range(n):
        size = int(torch.randint(12, 21, ())) if torch.rand(()) < 0.02 else int(torch.randint(2, 4, ()))
        letters = torch.randint(FIRST, VOCAB, (size,))
        source[row, :size] = letters
        target[row, :size] = letters.flip(0)
        target[row, size] = EOS
    return source, target


class Seq2Seq(nn.Module):
    def __init__(self, dim=40):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim, padding_idx=PAD)
        self.encoder = nn.GRU(dim, dim, batch_first=True)
        self.decoder = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, VOCAB)

    def forward(self, source, target):
        lengths = (source != PAD).sum(1)
        packed = nn.utils.rnn.pack_padded_sequence(self.embed(source), lengths, batch_first=True, enforce_sorted=False)
        _, state = self.encoder(packed)
        begin = torch.full((len(target), 1), BOS)
        h, _ = self.decoder(self.embed(torch.cat([begin, target[:, :-1]], dim=1)), state)
        return self.out(h)


source, target = words(1200)
model = Seq2Seq()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
for epoch in range(6):
    for idx in torch.randperm(len(source)).split(48):
        logits = model(source[idx], target[idx])
        loss = F.cross_entropy(logits.transpose(1, 2), target[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.3f}")

model.eval()
source, target = words(300)
with torch.no_grad():
    guess = model(source, target).argmax(-1)
letters = target >= FIRST
print(f"letters right {(guess == target)[letters].float().mean():.3f}")
