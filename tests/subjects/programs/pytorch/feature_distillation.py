"""A student learns a loaded teacher's logits and, by way of a regressor, its hidden features."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset


class ConvNet(nn.Module):
    def __init__(self, widths, classes=10):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, widths[0], 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(widths[0], widths[1], 3, padding=1),
        )
        self.classifier = nn.Linear(widths[1] * 4, classes)
        self.hint = None

    def forward(self, x):
        self.hint = self.features(x)
        return self.classifier(F.max_pool2d(torch.relu(self.hint), 2).flatten(1))


def digits(batch_size):
    data = load_digits()
    x, y = torch.tensor(data.images, dtype=torch.float32).unsqueeze(1) / 16, torch.tensor(data.target)
    train, test = TensorDataset(x[:384], y[:384]), TensorDataset(x[1600:], y[1600:])
    return DataLoader(train, batch_size, shuffle=True), DataLoader(test, 100)


def make_teacher(loader):
    """Stands for the download of a trained one."""
    teacher = ConvNet((16, 32))
    torch.manual_seed(77)
    for p in teacher.parameters():
        if p.ndim > 1:
            nn.init.orthogonal_(p)
    torch.save(teacher.state_dict(), "teacher.pth")


def train_hint(student, teacher, regressor, loader, epochs, optimizer, T=2.0):
    kl, mse = nn.KLDivLoss(reduction="batchmean"), nn.MSELoss()
    teacher.eval()
    for epoch in range(epochs):
        student.train()
        running_loss = 0.0
        for inputs, labels in loader:
            optimizer.zero_grad()
            with torch.no_grad():
                teacher_logits = teacher(inputs)
            student_logits = student(inputs)
            soft = kl(F.log_softmax(student_logits / T, dim=-1), F.softmax(teacher_logits / T, dim=-1)) * T**2
            hidden = mse(regressor(student.hint), teacher.hint)
            loss = 0.1 * soft + 0.2 * hidden + 0.7 * F.cross_entropy(student_logits, labels)
            loss.backward()
            optimizer.step()
            running_loss += loss.item()
        print(f"Epoch {epoch + 1}/{epochs}, Loss: {running_loss / len(loader):.6f}")
        yield epoch


@torch.no_grad()
def test(model, loader):
    model.eval()
    losses, hits = [], 0
    for inputs, labels in loader:
        outputs = model(inputs)
        losses.append(F.cross_entropy(outputs, labels).item())
        hits += (outputs.argmax(1) == labels).sum().item()
    print(f"Test Loss: {sum(losses) / len(losses):.6f} Accuracy: {100 * hits / len(loader.dataset):.2f}%")


def main():
    torch.manual_seed(42)
    train_loader, test_loader = digits(64)
    make_teacher(train_loader)
    teacher = ConvNet((16, 32))
    teacher.load_state_dict(torch.load("teacher.pth"))
    for p in teacher.parameters():
        p.requires_grad_(False)
    student, regressor = ConvNet((8, 8)), nn.Conv2d(8, 32, 1)
    optimizer = torch.optim.Adam([*student.parameters(), *regressor.parameters()], lr=3e-3)
    for _ in train_hint(student, teacher, regressor, train_loader, 4, optimizer):
        test(student, test_loader)
    torch.save(student.state_dict(), "student.pth")
    print(torch.rand(1).item())


if __name__ == "__main__":
    main()
