"""Reversal of sequences by an encoder and a decoder with attention, each with an optimizer, with teacher forcing."""

import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim

SOS_token, EOS_token, VOCAB, MAX_LENGTH = 0, 1, 12, 6


class EncoderRNN(nn.Module):
    def __init__(self, input_size, hidden_size, dropout_p=0.1):
        super().__init__()
        self.embedding = nn.Embedding(input_size, hidden_size)
        self.gru = nn.GRU(hidden_size, hidden_size, batch_first=True)
        self.dropout = nn.Dropout(dropout_p)

    def forward(self, input):
        return self.gru(self.dropout(self.embedding(input)))


class BahdanauAttention(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.Wa = nn.Linear(hidden_size, hidden_size)
        self.Ua = nn.Linear(hidden_size, hidden_size)
        self.Va = nn.Linear(hidden_size, 1)

    def forward(self, query, keys):
        scores = self.Va(torch.tanh(self.Wa(query) + self.Ua(keys))).squeeze(2).unsqueeze(1)
        weights = F.softmax(scores, dim=-1)
        return torch.bmm(weights, keys), weights


class AttnDecoderRNN(nn.Module):
    def __init__(self, hidden_size, output_size):
        super().__init__()
        self.embedding = nn.Embedding(output_size, hidden_size)
        self.attention = BahdanauAttention(hidden_size)
        self.gru = nn.GRU(2 * hidden_size, hidden_size, batch_first=True)
        self.out = nn.Linear(hidden_size, output_size)

    def forward(self, encoder_outputs, encoder_hidden, target_tensor=None):
        decoder_input = torch.full((encoder_outputs.size(0), 1), SOS_token)
        hidden, outputs = encoder_hidden, []
        for i in range(MAX_LENGTH):
            embedded = self.embedding(decoder_input)
            context, _ = self.attention(hidden.permute(1, 0, 2), encoder_outputs)
            output, hidden = self.gru(torch.cat((embedded, context), dim=2), hidden)
            output = self.out(output)
            outputs.append(output)
            if target_tensor is not None:
                decoder_input = target_tensor[:, i].unsqueeze(1)
            else:
                decoder_input = output.topk(1)[1].squeeze(-1).detach()
        return F.log_softmax(torch.cat(outputs, dim=1), dim=-1), hidden


def get_pairs(n, rng):
    pairs = []
    for _ in range(n):
        words = [rng.randrange(2, VOCAB) for _ in range(MAX_LENGTH - 1)]
        pairs.append(([*words, EOS_token], [*reversed(words), EOS_token]))
    return pairs


def train_epoch(pairs, encoder, decoder, encoder_optimizer, decoder_optimizer, criterion, rng):
    total_loss, n = 0, 0
    rng.shuffle(pairs)
    for start in range(0, len(pairs), 20):
        input_tensor = torch.tensor([a for a, _ in pairs[start : start + 20]])
        target_tensor = torch.tensor([b for _, b in pairs[start : start + 20]])
        encoder_optimizer.zero_grad()
        decoder_optimizer.zero_grad()
        encoder_outputs, encoder_hidden = encoder(input_tensor)
        forced = target_tensor if rng.random() < 0.5 else None
        decoder_outputs, _ = decoder(encoder_outputs, encoder_hidden, forced)
        loss = criterion(decoder_outputs.view(-1, VOCAB), target_tensor.view(-1))
        loss.backward()
        encoder_optimizer.step()
        decoder_optimizer.step()
        total_loss += loss.item()
        n += 1
    return total_loss / n


def evaluate(encoder, decoder, pair):
    encoder.eval()
    decoder.eval()
    with torch.no_grad():
        outputs, hidden = encoder(torch.tensor(pair[0])[None])
        decoded, _ = decoder(outputs, hidden)
    encoder.train()
    decoder.train()
    return decoded.argmax(-1)[0].tolist()


def main():
    rng = random.Random(4)
    torch.manual_seed(4)
    pairs = get_pairs(100, rng)
    encoder, decoder = EncoderRNN(VOCAB, 16), AttnDecoderRNN(16, VOCAB)
    optimizers = [optim.Adam(net.parameters(), lr=0.01) for net in (encoder, decoder)]
    criterion = nn.NLLLoss()
    for epoch in range(1, 5):
        loss = train_epoch(pairs, encoder, decoder, *optimizers, criterion, rng)
        print("(%d %d%%) %.4f" % (epoch, epoch / 4 * 100, loss))
        pair = rng.choice(pairs)
        print(">", pair[0], "=", pair[1], "<", evaluate(encoder, decoder, pair))
    torch.save({"encoder": encoder.state_dict(), "decoder": decoder.state_dict()}, "seq2seq.tar")
    print(rng.random(), torch.rand(1))


if __name__ == "__main__":
    main()
