import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

BATCH = 64
EPOCHS = 15
LR = 1e-3
torch.manual_seed(42)


class DigitNet(nn.Module):
    def __init__(self, n_classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.fc1 = nn.Linear(32 * 2 * 2, 64)
        self.drop = nn.Dropout(0.3)
        self.fc2 = nn.Linear(64, n_classes)

    def forward(self, x):
        x = self.pool(F.relu(self.conv1(x)))
        x = self.pool(F.relu(self.conv2(x)))
        x = torch.flatten(x, 1)
        x = self.drop(F.relu(self.fc1(x)))
        return F.softmax(self.fc2(x), dim=1)


def load_data():
    digits = load_digits()
    images = torch.tensor(digits.images / 16.0, dtype=torch.float32).unsqueeze(1)
    images = (images - 0.305) / 0.376
    labels = torch.tensor(digits.target)
    idx_tr, idx_te = train_test_split(
        range(len(labels)), test_size=0.25, random_state=1, stratify=labels.numpy()
    )
    train = TensorDataset(images[idx_tr], labels[idx_tr])
    test = TensorDataset(images[idx_te], labels[idx_te])
    return DataLoader(train, BATCH, shuffle=True), DataLoader(test, 256)


def train_epoch(model, loader, loss_fn, opt):
    model.train()
    total, n = 0.0, 0
    for imgs, lbls in loader:
        out = model(imgs)
        loss = loss_fn(out, lbls)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() * len(lbls)
        n += len(lbls)
    return total / n


@torch.no_grad()
def test(model, loader, loss_fn):
    model.eval()
    correct, total, loss_sum = 0, 0, 0.0
    for imgs, lbls in loader:
        out = model(imgs)
        loss_sum += loss_fn(out, lbls).item() * len(lbls)
        correct += (out.argmax(1) == lbls).sum().item()
        total += len(lbls)
    return correct / total, loss_sum / total


def main():
    train_loader, test_loader = load_data()
    model = DigitNet()
    loss_fn = nn.CrossEntropyLoss()
    opt = torch.optim.Adam(model.parameters(), lr=LR)
    for epoch in range(EPOCHS):
        tr_loss = train_epoch(model, train_loader, loss_fn, opt)
        acc, te_loss = test(model, test_loader, loss_fn)
        print(f"[{epoch + 1:02d}/{EPOCHS}] train loss {tr_loss:.4f} | test loss {te_loss:.4f} | test acc {acc:.4f}")


if __name__ == "__main__":
    main()
