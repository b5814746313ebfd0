"""Topic classification of short documents (synthetic token ids) with averaged embeddings + MLP."""
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(99)

VOCAB, TOPICS, DOC_LEN = 2000, 12, 30
config = dict(epochs=12, batch_size=64, lr=0.1, step_size=3, gamma=0.5, emb=48, hidden=64)


def make_docs(n, word_probs):
    topics = torch.randint(0, TOPICS, (n,))
    docs = torch.stack([torch.multinomial(word_probs[k], DOC_LEN, replacement=True) for k in topics])
    return docs, topics


background = torch.distributions.Dirichlet(torch.full((VOCAB,), 0.5)).sample()
specific = torch.distributions.Dirichlet(torch.full((VOCAB,), 0.1)).sample((TOPICS,))
word_probs = 0.5 * background + 0.5 * specific

train_docs, train_topics = make_docs(16000, word_probs)
dev_docs, dev_topics = make_docs(2000, word_probs)
train_loader = DataLoader(TensorDataset(train_docs, train_topics), batch_size=config["batch_size"], shuffle=True)
dev_loader = DataLoader(TensorDataset(dev_docs, dev_topics), batch_size=500)


class TopicModel(nn.Module):
    def __init__(self, emb, hidden):
        super().__init__()
        self.embedding = nn.EmbeddingBag(VOCAB, emb, mode="mean")
        self.norm = nn.LayerNorm(emb)
        self.fc = nn.Linear(emb, hidden)
        self.drop = nn.Dropout(0.3)
        self.out = nn.Linear(hidden, TOPICS)

    def forward(self, docs):
        h = self.norm(self.embedding(docs))
        h = self.drop(torch.relu(self.fc(h)))
        return self.out(h)


def run_eval(model, loader, loss_fn):
    model.eval()
    loss, hits, n = 0.0, 0, 0
    with torch.no_grad():
        for docs, topics in loader:
            logits = model(docs)
            loss += loss_fn(logits, topics).item() * len(topics)
            hits += (logits.argmax(1) == topics).sum().item()
            n += len(topics)
    return loss / n, hits / n


model = TopicModel(config["emb"], config["hidden"])
loss_fn = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=config["lr"], momentum=0.9)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=config["step_size"], gamma=config["gamma"])

start = time.time()
for epoch in range(1, config["epochs"] + 1):
    model.train()
    total = 0.0
    for docs, topics in train_loader:
        optimizer.zero_grad()
        loss = loss_fn(model(docs), topics)
        loss.backward()
        optimizer.step()
        scheduler.step()
        total += loss.item() * len(topics)
    dev_loss, dev_acc = run_eval(model, dev_loader, loss_fn)
    print(f"| epoch {epoch:2d} | train loss {total / len(train_docs):.3f} | dev loss {dev_loss:.3f} | dev acc {dev_acc:.3f} |")
print(f"done in {time.time() - start:.1f}s, best guess accuracy {1 / TOPICS:.3f}, dev accuracy {dev_acc:.3f}")
