import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(14)

NUM_WORDS, SEQ, CLASSES = 300, 20, 5


def fake_news(n):
    y = torch.randint(CLASSES, (n,))
    x = torch.randint(CLASSES * 30, NUM_WORDS, (n, SEQ))
    topical = torch.rand(n, SEQ) < 0.2
    other = torch.randint(CLASSES, (n, SEQ))
    src = torch.where(torch.rand(n, SEQ) < 0.75, y[:, None].expand(n, SEQ), other)
    x[topical] = (src * 30 + torch.randint(30, (n, SEQ)))[topical]
    return TensorDataset(x, y)


train_loader = DataLoader(fake_news(4000), batch_size=32, shuffle=True)
test_loader = DataLoader(fake_news(800), batch_size=200)


class AttentionClassifier(nn.Module):
    def __init__(self, dim=64):
        super().__init__()
        self.embedding = nn.Embedding(NUM_WORDS, dim)
        self.attn_score = nn.Linear(dim, 1)
        self.body = nn.Sequential(nn.Linear(dim, 128), nn.ReLU(), nn.Dropout(0.1), nn.Linear(128, CLASSES))

    def forward(self, x):
        e = self.embedding(x)
        w = torch.softmax(self.attn_score(e), dim=1)
        return self.body((w * e).sum(1))


def test(model):
    model.eval()
    correct = total = 0
    loss_sum = 0.0
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.float16):
        for x, y in test_loader:
            out = model(x)
            loss_sum += nn.functional.cross_entropy(out.float(), y, reduction="sum").item()
            correct += (out.argmax(1) == y).sum().item()
            total += len(y)
    return loss_sum / total, correct / total


model = AttentionClassifier()
optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9)
scaler = torch.amp.GradScaler("cpu")
MAX_NORM = 1.0

for epoch in range(5):
    model.train()
    running = 0.0
    for x, y in train_loader:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.float16):
            logits = model(x)
            loss = nn.functional.cross_entropy(logits.float(), y)
        scaler.scale(loss).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
        scaler.step(optimizer)
        scaler.update()
        running += loss.item()
    test_loss, test_acc = test(model)
    print(f"Epoch {epoch + 1}: train loss {running / len(train_loader):.4f}, "
          f"test loss {test_loss:.4f}, test accuracy {test_acc:.3f}, scale {scaler.get_scale():.0f}")
