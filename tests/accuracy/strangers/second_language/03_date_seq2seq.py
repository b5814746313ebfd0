"""Seq2seq: human-written dates -> ISO dates, GRU encoder / GRU decoder with teacher forcing."""
import datetime
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

random.seed(3)
torch.manual_seed(3)
FORMATS = ["%d %B %Y", "%B %d, %Y", "%d.%m.%Y", "%A %d %b %Y", "%b %d %Y"]


def sample_pair():
    d = datetime.date(1950, 1, 1) + datetime.timedelta(days=random.randrange(36500))
    return d.strftime(random.choice(FORMATS)).lower(), d.isoformat()


pairs = [sample_pair() for _ in range(9000)]
train_pairs, test_pairs = pairs[:8500], pairs[8500:]

PAD, BOS = 0, 1
src_chars = sorted({c for s, _ in pairs for c in s})
s2i = {c: i + 1 for i, c in enumerate(src_chars)}
tgt_chars = "0123456789-"
t2i = {c: i + 2 for i, c in enumerate(tgt_chars)}
i2t = {i: c for c, i in t2i.items()}
V = len(tgt_chars) + 2


def collate(batch):
    lens = torch.tensor([len(s) for s, _ in batch])
    src = torch.zeros(len(batch), int(lens.max()), dtype=torch.long)
    for i, (s, _) in enumerate(batch):
        src[i, :len(s)] = torch.tensor([s2i[c] for c in s])
    tgt = torch.tensor([[t2i[c] for c in t] for _, t in batch])
    bos = torch.full((len(batch), 1), BOS)
    return src, lens, torch.cat([bos, tgt[:, :-1]], 1), tgt


class Seq2Seq(nn.Module):
    def __init__(self, n_src, n_tgt, emb=32, hid=96):
        super().__init__()
        self.src_emb = nn.Embedding(n_src, emb, padding_idx=PAD)
        self.tgt_emb = nn.Embedding(n_tgt, emb)
        self.encoder = nn.GRU(emb, hid, batch_first=True, bidirectional=True)
        self.bridge = nn.Linear(2 * hid, hid)
        self.decoder = nn.GRU(emb, hid, batch_first=True)
        self.query = nn.Linear(hid, 2 * hid, bias=False)
        self.out = nn.Linear(3 * hid, n_tgt)

    def encode(self, src, lens):
        packed = nn.utils.rnn.pack_padded_sequence(self.src_emb(src), lens, batch_first=True, enforce_sorted=False)
        enc, h = self.encoder(packed)
        enc, _ = nn.utils.rnn.pad_packed_sequence(enc, batch_first=True)
        h = torch.tanh(self.bridge(torch.cat([h[0], h[1]], -1))).unsqueeze(0)
        return enc, (src == PAD), h

    def decode(self, tgt_in, enc, mask, h):
        dec, h = self.decoder(self.tgt_emb(tgt_in), h)
        scores = self.query(dec) @ enc.transpose(1, 2) / enc.size(-1) ** 0.5
        scores = scores.masked_fill(mask.unsqueeze(1), -1e9)
        ctx = scores.softmax(-1) @ enc
        return self.out(torch.cat([dec, ctx], -1)), h

    def forward(self, src, lens, tgt_in):
        return self.decode(tgt_in, *self.encode(src, lens))[0]      # (batch, time, vocab)


@torch.no_grad()
def translate(model, batch):
    model.eval()
    src, lens, _, tgt = collate(batch)
    enc, mask, h = model.encode(src, lens)
    tok = torch.full((len(batch), 1), BOS)
    outs = []
    for _ in range(tgt.size(1)):
        logits, h = model.decode(tok, enc, mask, h)
        tok = logits.argmax(-1)
        outs.append(tok)
    model.train()
    return ["".join(i2t.get(int(i), "?") for i in row) for row in torch.cat(outs, 1)]


model = Seq2Seq(len(src_chars) + 1, V)
opt = torch.optim.Adam(model.parameters(), lr=2e-3)
steps, bs = 400, 64
order = []
for step in range(1, steps + 1):
    if len(order) < bs:
        order = random.sample(range(len(train_pairs)), len(train_pairs))
    batch = [train_pairs[order.pop()] for _ in range(bs)]
    src, lens, tgt_in, tgt_out = collate(batch)
    logits = model(src, lens, tgt_in)
    loss = F.cross_entropy(logits.reshape(logits.size(0), V, -1), tgt_out)
    opt.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    if step % 100 == 0:
        pred = translate(model, test_pairs[:200])
        acc = sum(p == t for p, (_, t) in zip(pred, test_pairs)) / 200
        print(f"[{step:4d}/{steps}] loss={loss.item():.4f} exact_match={acc:.3f}")

pred = translate(model, test_pairs)
print("test exact match:", sum(p == t for p, (_, t) in zip(pred, test_pairs)) / len(test_pairs))
for (s, t), p in list(zip(test_pairs, pred))[:5]:
    print(f"{s:30s} -> {p}  (want {t})")
