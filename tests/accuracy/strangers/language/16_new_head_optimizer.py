import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from transformers import DistilBertConfig, DistilBertForSequenceClassification

torch.manual_seed(31)
VOCAB, LEN = 200, 14


def intents(n, n_class, noise):
    y = torch.randint(n_class, (n,))
    x = torch.randint(100, VOCAB, (n, LEN))
    own = torch.rand(n, LEN) < noise
    step = 100 // n_class
    x = torch.where(own, y[:, None] * step + torch.randint(step, (n, LEN)), x)
    return TensorDataset(x, y)


def evaluate(model, loader):
    model.eval()
    loss, hits, n = 0.0, 0, 0
    with torch.no_grad():
        for x, y in loader:
            out = model(input_ids=x, labels=y)
            loss += out.loss.item() * len(y)
            hits += (out.logits.argmax(-1) == y).sum().item()
            n += len(y)
    return loss / n, hits / n


def train(model, optimizer, loader, valid, epochs, name):
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for x, y in loader:
            loss = model(input_ids=x, labels=y).loss
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += loss.item()
        vl, va = evaluate(model, valid)
        print(f"{name} epoch {epoch + 1}: train loss {total / len(loader):.4f} val loss {vl:.4f} val acc {va:.3f}")


config = DistilBertConfig(vocab_size=VOCAB, max_position_embeddings=32, dim=48, n_layers=2, n_heads=4,
                          hidden_dim=96, num_labels=4, dropout=0.1, attention_dropout=0.1, seq_classif_dropout=0.1)
model = DistilBertForSequenceClassification(config)

# stage 1: the large data set with four coarse intents
big = DataLoader(intents(1600, 4, 0.35), batch_size=32, shuffle=True)
big_val = DataLoader(intents(300, 4, 0.35), batch_size=100)
train(model, torch.optim.AdamW(model.parameters(), lr=1e-3), big, big_val, 2, "coarse")

# stage 2: twenty fine intents
NEW_LABELS = 20
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)
model.classifier = nn.Linear(config.dim, NEW_LABELS)
model.num_labels = NEW_LABELS
model.config.num_labels = NEW_LABELS
fine = DataLoader(intents(2720, NEW_LABELS, 0.45), batch_size=32, shuffle=True)
fine_val = DataLoader(intents(400, NEW_LABELS, 0.45), batch_size=100)
train(model, optimizer, fine, fine_val, 3, "fine")
