import random
import time
import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim

SEED = 1234
random.seed(SEED)
np.random.seed(SEED)
torch.manual_seed(SEED)

PAD, SOS, EOS = 0, 1, 2
N_SYM = 12
BATCH = 64


def make_pair():
    n = random.randint(4, 8)
    s = [random.randint(3, 2 + N_SYM) for _ in range(n)]
    return s + [EOS], [SOS] + s[::-1] + [EOS]


def pad(seqs):
    m = max(map(len, seqs))
    return torch.tensor([s + [PAD] * (m - len(s)) for s in seqs])


train_pairs = [make_pair() for _ in range(6000)]
valid_pairs = [make_pair() for _ in range(400)]


def batches(pairs, shuffle):
    pairs = random.sample(pairs, len(pairs)) if shuffle else pairs
    for i in range(0, len(pairs), BATCH):
        chunk = pairs[i:i + BATCH]
        yield pad([p[0] for p in chunk]), torch.tensor([len(p[0]) for p in chunk]), pad([p[1] for p in chunk])


class Encoder(nn.Module):
    def __init__(self, vocab, emb_dim, hid_dim):
        super().__init__()
        self.embedding = nn.Embedding(vocab, emb_dim, padding_idx=PAD)
        self.rnn = nn.GRU(emb_dim, hid_dim, batch_first=True)

    def forward(self, src, src_len):
        packed = nn.utils.rnn.pack_padded_sequence(self.embedding(src), src_len, batch_first=True, enforce_sorted=False)
        _, hidden = self.rnn(packed)
        return hidden


class Decoder(nn.Module):
    def __init__(self, vocab, emb_dim, hid_dim):
        super().__init__()
        self.embedding = nn.Embedding(vocab, emb_dim)
        self.rnn = nn.GRU(emb_dim, hid_dim, batch_first=True)
        self.fc_out = nn.Linear(hid_dim, vocab)

    def forward(self, tok, hidden):
        out, hidden = self.rnn(self.embedding(tok.unsqueeze(1)), hidden)
        return self.fc_out(out.squeeze(1)), hidden


class Seq2Seq(nn.Module):
    def __init__(self, encoder, decoder):
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder

    def forward(self, src, src_len, trg, teacher_forcing_ratio=0.5):
        hidden = self.encoder(src, src_len)
        tok = trg[:, 0]
        outputs = []
        for t in range(1, trg.size(1)):
            output, hidden = self.decoder(tok, hidden)
            outputs.append(output)
            teacher_force = random.random() < teacher_forcing_ratio
            tok = trg[:, t] if teacher_force else output.argmax(1)
        return torch.stack(outputs, 1)


def evaluate(model, pairs, criterion):
    model.eval()
    total, hit, count, exact = 0.0, 0, 0, 0
    with torch.no_grad():
        for src, src_len, trg in batches(pairs, False):
            output = model(src, src_len, trg)
            gold = trg[:, 1:]
            total += criterion(output.reshape(-1, output.size(-1)), gold.reshape(-1)).item() * len(src)
            keep = gold != PAD
            ok = output.argmax(-1) == gold
            hit += (ok & keep).sum().item()
            count += keep.sum().item()
            exact += (ok | ~keep).all(1).sum().item()
    return total / len(pairs), hit / count, exact / len(pairs)


model = Seq2Seq(Encoder(3 + N_SYM, 24, 80), Decoder(3 + N_SYM, 24, 80))
optimizer = optim.Adam(model.parameters(), lr=3e-3)
criterion = nn.CrossEntropyLoss(ignore_index=PAD)
for epoch in range(5):
    t0 = time.time()
    model.train()
    epoch_loss, n_batches = 0.0, 0
    for src, src_len, trg in batches(train_pairs, True):
        optimizer.zero_grad()
        output = model(src, src_len, trg)
        loss = criterion(output.reshape(-1, output.size(-1)), trg[:, 1:].reshape(-1))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        epoch_loss += loss.item()
        n_batches += 1
    valid_loss, acc, exact = evaluate(model, valid_pairs, criterion)
    print(f"Epoch: {epoch + 1:02} | Time: {time.time() - t0:.1f}s")
    print(f"\tTrain Loss: {epoch_loss / n_batches:.3f} | Val. Loss: {valid_loss:.3f} | "
          f"Val. token acc: {acc:.3f} | exact: {exact:.3f}")
