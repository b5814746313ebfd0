# Translate written dates ("the 5th of march 2021") to ISO ("2021-03-05"), GRU encoder / decoder.
import random
import time

import torch
from torch import nn, optim
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

random.seed(0)
torch.manual_seed(0)
MONTHS = "january february march april may june july august september october november december".split()
SOS, EOS, PAD = 0, 1, 2
SYMS = ["<s>", "</s>", "<p>"] + list("abcdefghijklmnopqrstuvwxyz0123456789 -,/")
IDX = {c: i for i, c in enumerate(SYMS)}
HIDDEN = 64


def make_pair():
    d, m, y = random.randint(1, 28), random.randint(1, 12), random.randint(1950, 2029)
    name = MONTHS[m - 1]
    src = random.choice([f"{d} {name} {y}", f"{name} {d}, {y}", f"the {d}th of {name} {y}",
                         f"{name[:3]} {d} {y}", f"{d}/{m}/{y}"])
    return src, f"{y}-{m:02d}-{d:02d}"


def encode(strings):
    rows = [[IDX[c] for c in s] + [EOS] for s in strings]
    width = max(map(len, rows))
    return torch.tensor([r + [PAD] * (width - len(r)) for r in rows])


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(len(SYMS), 32, padding_idx=PAD)
        self.gru = nn.GRU(32, HIDDEN, batch_first=True)

    def forward(self, x):
        lengths = (x != PAD).sum(1)
        packed = pack_padded_sequence(self.embedding(x), lengths, batch_first=True, enforce_sorted=False)
        out, hidden = self.gru(packed)
        return pad_packed_sequence(out, batch_first=True)[0], hidden


class AttnDecoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(len(SYMS), 32)
        self.gru = nn.GRU(32, HIDDEN, batch_first=True)
        self.query = nn.Linear(HIDDEN, HIDDEN)
        self.out = nn.Linear(2 * HIDDEN, len(SYMS))

    def forward(self, y, hidden, memory, pad_mask):
        h, hidden = self.gru(self.embedding(y), hidden)
        scores = self.query(h) @ memory.transpose(1, 2)
        scores = scores.masked_fill(pad_mask[:, None], -1e9)
        context = torch.softmax(scores, dim=-1) @ memory
        return self.out(torch.cat([h, context], dim=-1)), hidden


def exact_match(encoder, decoder, pairs):
    encoder.eval(), decoder.eval()
    src = encode([p[0] for p in pairs])
    with torch.no_grad():
        memory, hidden = encoder(src)
        tok, outs = torch.full((len(pairs), 1), SOS), []
        for _ in range(11):
            logits, hidden = decoder(tok, hidden, memory, src == PAD)
            tok = logits.argmax(-1)
            outs.append(tok)
    outs = torch.cat(outs, 1).tolist()
    encoder.train(), decoder.train()
    return sum("".join(SYMS[i] for i in o).split("</s>")[0] == p[1] for o, p in zip(outs, pairs)) / len(pairs)


train_pairs = [make_pair() for _ in range(6000)]
test_pairs = [make_pair() for _ in range(500)]
encoder, decoder = Encoder(), AttnDecoder()
encoder_optimizer = optim.Adam(encoder.parameters(), lr=5e-3)
decoder_optimizer = optim.Adam(decoder.parameters(), lr=5e-3)
criterion = nn.CrossEntropyLoss(ignore_index=PAD)

start = time.time()
for epoch in range(8):
    random.shuffle(train_pairs)
    total = 0.0
    for i in range(0, len(train_pairs), 64):
        batch = train_pairs[i:i + 64]
        src, tgt = encode([p[0] for p in batch]), encode([p[1] for p in batch])
        dec_in = torch.cat([torch.full((len(batch), 1), SOS), tgt[:, :-1]], dim=1)
        memory, hidden = encoder(src)
        logits, _ = decoder(dec_in, hidden, memory, src == PAD)
        loss = criterion(logits.reshape(-1, len(SYMS)), tgt.reshape(-1))

        decoder_optimizer.zero_grad()
        loss.backward()
        encoder_optimizer.step()
        decoder_optimizer.step()
        total += loss.item() * len(batch)
    print(f"epoch {epoch + 1} loss {total / len(train_pairs):.4f} "
          f"exact match {exact_match(encoder, decoder, test_pairs):.3f} ({time.time() - start:.0f}s)")
