"""Trainings that have between them all that facts are saved of."""

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
STEPS = 4


class Words(nn.Module):
    """Words that a recurrent layer and an attention read."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(9, 8)
        self.lstm = nn.LSTM(8, 8)
        self.attention = nn.MultiheadAttention(8, 2)
        self.last = nn.Linear(8, 9)
        # As a model of transformers has it.
        self.config = type("Config", (), {"eos_token_id": 2})()

    def forward(self, tokens):
        found, _ = self.lstm(self.embedding(tokens))
        mask = torch.ones(len(tokens), len(tokens), dtype=torch.bool).triu(1)
        found, _ = self.attention(found, found, found, attn_mask=mask)
        return self.last(found)


class Translation(nn.Module):
    """Words that follow on others, which are of several lengths."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(9, 8)
        self.encoder = nn.LSTM(8, 8, batch_first=True)
        self.decoder = nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)
        self.last = nn.Linear(8, 9)

    def forward(self, words, wanted):
        lengths = torch.arange(len(words)) % 3 + 2
        packed = nn.utils.rnn.pack_padded_sequence(self.embedding(words), lengths, True, enforce_sorted=False)
        memory, _ = nn.utils.rnn.pad_packed_sequence(self.encoder(packed)[0], True)
        mask = torch.full((wanted.shape[1], wanted.shape[1]), -torch.inf).triu(1)
        return self.last(self.decoder(self.embedding(wanted), memory, tgt_mask=mask))


class Reviews(nn.Module):
    """Words that all see each other."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(9, 8)
        self.encoder = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.last = nn.Linear(8, 2)

    def forward(self, tokens):
        return self.last(self.encoder(self.embedding(tokens), src_key_padding_mask=tokens == 0).mean(1))


class Table(nn.Module):
    """Numbers that a layer is given as they are, and a prediction between 0 and 1."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.norm = nn.BatchNorm1d(8)
        self.dropout = nn.Dropout(0.2)
        self.classes = nn.Linear(8, 2)
        self.one = nn.Linear(8, 1)

    def forward(self, x):
        hidden = self.dropout(self.norm(self.first(x)))
        return self.classes(hidden), torch.sigmoid(self.one(hidden))


class Recordings(nn.Module):
    """Numbers over time."""

    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(3, 4, batch_first=True)
        self.last = nn.Linear(4, 2)

    def forward(self, x):
        return self.last(self.gru(x)[0][:, -1])


def train_words():
    words = Words()
    optimizer = torch.optim.AdamW(words.parameters(), 1e-3)
    for _ in range(STEPS):
        tokens = torch.randint(9, (6, 5))
        logits = words(tokens)
        loss = functional.cross_entropy(logits.reshape(-1, 9), tokens.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    words.eval()
    with torch.no_grad():
        functional.cross_entropy(words(tokens).transpose(1, 2), tokens)


def train_translation():
    translation = Translation()
    optimizer = torch.optim.SGD(translation.parameters(), 1e-2)
    for _ in range(STEPS):
        words, wanted = torch.randint(9, (6, 4)), torch.randint(9, (6, 7))
        optimizer.zero_grad()
        logits = translation(words, wanted[:, :-1])
        functional.cross_entropy(logits.transpose(1, 2), wanted[:, 1:]).backward()
        optimizer.step()


def train_recordings():
    recordings = Recordings()
    optimizer = torch.optim.SGD(recordings.parameters(), 1e-2)
    for _ in range(STEPS):
        optimizer.zero_grad()
        functional.cross_entropy(recordings(torch.randn(6, 5, 3)), torch.arange(6) % 2).backward()
        optimizer.step()


def train_reviews():
    reviews = Reviews()
    optimizer = torch.optim.SGD(reviews.parameters(), 1e-2)
    for _ in range(STEPS):
        optimizer.zero_grad()
        functional.cross_entropy(reviews(torch.randint(9, (6, 5))), torch.arange(6) % 2).backward()
        optimizer.step()


def train_table():
    table = Table()
    table.load_state_dict({"other.weight": torch.ones(2)}, strict=False)
    optimizer = torch.optim.SGD(table.parameters(), 1e-2, momentum=0.9)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / STEPS)
    scaler = torch.amp.GradScaler("cpu")
    for _ in range(STEPS):
        x, y = torch.rand(50, 4), torch.arange(50) % 2
        classes, one = table(x)
        loss = functional.cross_entropy(classes.softmax(1), y) + functional.mse_loss(one, y[:, None].float())
        loss = loss + ((one - y) ** 2).mean() + functional.nll_loss((2 * classes).log_softmax(1), y)
        loss = loss + functional.cross_entropy(classes, y, weight=torch.tensor([1.0, 3.0]))
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(table.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        schedule.step()
    table.eval()
    with torch.no_grad():
        classes, one = table(x)
        functional.cross_entropy(classes, y)
        functional.nll_loss(classes.log_softmax(1), y)
        functional.mse_loss(one, y[:, None].float())


def train_latent():
    encode = nn.Linear(4, 6)
    optimizer = torch.optim.SGD(encode.parameters(), 1e-2)
    for _ in range(STEPS):
        optimizer.zero_grad()
        mean, log_variance = encode(torch.rand(5, 4)).chunk(2, dim=1)
        (-0.5 * (1 + log_variance - mean.pow(2) - log_variance.exp()).sum(1)).mean().backward()
        optimizer.step()


def train_pixels():
    last = nn.Conv2d(1, 1, 3, padding=1)
    optimizer = torch.optim.SGD(last.parameters(), 1e-2)
    for _ in range(STEPS):
        images = torch.rand(4, 1, 16, 16)
        optimizer.zero_grad()
        functional.binary_cross_entropy_with_logits(last(images), (images > 0.5).float()).backward()
        optimizer.step()


train_words()
train_translation()
train_reviews()
train_recordings()
train_table()
train_latent()
train_pixels()
