"""Numbers are reversed by an encoder and a decoder, which is given its own words more and more often."""

import math
import random

import torch
import torch.nn as nn
import torch.optim as optim

PAD, SOS, EOS = 0, 1, 2


class Encoder(nn.Module):
    def __init__(self, vocab, emb_dim, hid_dim):
        super().__init__()
        self.embedding = nn.Embedding(vocab, emb_dim)
        self.rnn = nn.LSTM(emb_dim, hid_dim)
        self.dropout = nn.Dropout(0.1)

    def forward(self, src):
        _, (hidden, cell) = self.rnn(self.dropout(self.embedding(src)))
        return hidden, cell


class Decoder(nn.Module):
    def __init__(self, vocab, emb_dim, hid_dim):
        super().__init__()
        self.output_dim = vocab
        self.embedding = nn.Embedding(vocab, emb_dim)
        self.rnn = nn.LSTM(emb_dim, hid_dim)
        self.fc_out = nn.Linear(hid_dim, vocab)

    def forward(self, input, hidden, cell):
        output, (hidden, cell) = self.rnn(self.embedding(input.unsqueeze(0)), (hidden, cell))
        return self.fc_out(output.squeeze(0)), hidden, cell


class Seq2Seq(nn.Module):
    def __init__(self, encoder, decoder):
        super().__init__()
        self.encoder, self.decoder = encoder, decoder

    def forward(self, src, trg, teacher_forcing_ratio):
        outputs = torch.zeros(trg.shape[0], trg.shape[1], self.decoder.output_dim)
        hidden, cell = self.encoder(src)
        input = trg[0, :]
        for t in range(1, trg.shape[0]):
            output, hidden, cell = self.decoder(input, hidden, cell)
            outputs[t] = output
            input = trg[t] if random.random() < teacher_forcing_ratio else output.argmax(1)
        return outputs


def batch(rng, size=24, longest=6):
    rows = [[rng.randrange(3, 12) for _ in range(rng.randrange(3, longest + 1))] for _ in range(size)]
    src, trg = [[SOS, *row, EOS] for row in rows], [[SOS, *reversed(row), EOS] for row in rows]
    padded = [[words + [PAD] * (longest + 2 - len(words)) for words in side] for side in (src, trg)]
    return tuple(torch.tensor(side).T for side in padded)


def train(model, optimizer, criterion, rng, epoch, batches):
    model.train()
    epoch_loss = 0
    for i in range(batches):
        src, trg = batch(rng)
        ratio = 6 / (6 + math.exp((epoch * batches + i) / 6))
        optimizer.zero_grad()
        output = model(src, trg, ratio)
        loss = criterion(output[1:].view(-1, output.shape[-1]), trg[1:].reshape(-1))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1)
        optimizer.step()
        epoch_loss += loss.item()
    return epoch_loss / batches, ratio


def evaluate(model, criterion, rng, batches):
    model.eval()
    epoch_loss = 0
    with torch.no_grad():
        for _ in range(batches):
            src, trg = batch(rng)
            output = model(src, trg, 0)
            epoch_loss += criterion(output[1:].view(-1, output.shape[-1]), trg[1:].reshape(-1)).item()
    return epoch_loss / batches


def main():
    random.seed(1234)
    torch.manual_seed(1234)
    rng = random.Random(5)
    model = Seq2Seq(Encoder(12, 12, 24), Decoder(12, 12, 24))
    for param in model.parameters():
        nn.init.uniform_(param.data, -0.08, 0.08)
    optimizer = optim.Adam(model.parameters(), lr=1e-2)
    criterion = nn.CrossEntropyLoss(ignore_index=PAD)
    best = float("inf")
    for epoch in range(4):
        train_loss, ratio = train(model, optimizer, criterion, rng, epoch, 5)
        valid_loss = evaluate(model, criterion, rng, 2)
        if valid_loss < best:
            best = valid_loss
            torch.save(model.state_dict(), "tut1-model.pt")
        print(f"Epoch: {epoch + 1:02} | teacher forcing {ratio:.3f}")
        print(f"\tTrain Loss: {train_loss:.5f} | Train PPL: {math.exp(train_loss):7.3f}")
        print(f"\t Val. Loss: {valid_loss:.5f} |  Val. PPL: {math.exp(valid_loss):7.3f}")
    print(random.random(), rng.random(), torch.rand(1).item())


if __name__ == "__main__":
    main()
