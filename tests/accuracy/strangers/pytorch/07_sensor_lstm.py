import math
import torch
import torch.nn as nn
from torch.utils.data import TensorDataset, DataLoader, random_split

torch.manual_seed(11)

N, T, CLASSES = 1200, 24, 3


def synth(n):
    """three kinds of machine vibration, two sensor channels"""
    y = torch.randint(0, CLASSES, (n,))
    freq = 0.5 + 0.6 * y.float()
    phase = torch.rand(n) * 2 * math.pi
    t = torch.arange(T).float()
    arg = freq[:, None] * t[None] + phase[:, None]
    x = torch.stack([torch.sin(arg), torch.cos(arg)], dim=-1)
    return x + 0.3 * torch.randn_like(x), y


class VibrationClassifier(nn.Module):
    def __init__(self, n_features=2, hidden=32):
        super().__init__()
        self.lstm = nn.LSTM(n_features, hidden, num_layers=1)
        self.fc = nn.Linear(hidden, CLASSES)

    def forward(self, x):
        out, _ = self.lstm(x)
        return self.fc(out[:, -1, :])


x, y = synth(N)
ds = TensorDataset(x, y)
train_ds, val_ds = random_split(ds, [1000, 200])
train_loader = DataLoader(train_ds, batch_size=50, shuffle=True)
val_loader = DataLoader(val_ds, batch_size=50)

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = VibrationClassifier().to(device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.003)

num_epochs = 15
for epoch in range(num_epochs):
    model.train()
    train_loss = 0
    for inputs, targets in train_loader:
        inputs, targets = inputs.to(device), targets.to(device)
        optimizer.zero_grad()
        outputs = model(inputs)
        loss = criterion(outputs, targets)
        loss.backward()
        optimizer.step()
        train_loss += loss.item()

    model.eval()
    hits, seen = 0, 0
    with torch.no_grad():
        for inputs, targets in val_loader:
            outputs = model(inputs.to(device))
            hits += (outputs.argmax(1).cpu() == targets).sum().item()
            seen += targets.numel()
    print(f"Epoch {epoch + 1}/{num_epochs}  Loss: {train_loss / len(train_loader):.4f}  Val acc: {hits / seen:.3f}")
