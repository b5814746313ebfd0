"""A large network is trained, then a small one learns from what the large one predicts."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


class Teacher(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))

    def forward(self, x):
        return self.net(x)


class Student(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(10, 8)
        self.fc2 = nn.Linear(8, 4)

    def forward(self, x):
        return self.fc2(torch.tanh(self.fc1(x)))


class DistillationLoss(nn.Module):
    def __init__(self, temperature, alpha):
        super().__init__()
        self.temperature, self.alpha = temperature, alpha
        self.hard, self.soft = nn.CrossEntropyLoss(), nn.KLDivLoss(reduction="batchmean")

    def forward(self, student_logits, teacher_logits, labels):
        T = self.temperature
        soft = self.soft(F.log_softmax(student_logits / T, 1), F.softmax(teacher_logits / T, 1)) * T * T
        return self.alpha * soft + (1 - self.alpha) * self.hard(student_logits, labels)


def accuracy(model, loader):
    model.eval()
    with torch.inference_mode():
        hits = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
    return hits / len(loader.dataset)


def train_teacher(model, train, test, epochs):
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(epochs):
        model.train()
        total = 0
        for x, y in train:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"teacher epoch {epoch}: loss {total / len(train):.5f} test accuracy {accuracy(model, test):.3f}")


def distill(teacher, student, train, test, epochs):
    criterion = DistillationLoss(temperature=3.0, alpha=0.7)
    optimizer = torch.optim.Adam(student.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)
    teacher.eval()
    for epoch in range(epochs):
        student.train()
        total = 0
        for x, y in train:
            with torch.no_grad():
                teacher_logits = teacher(x)
            loss = criterion(student(x), teacher_logits, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        scheduler.step()
        print(f"student epoch {epoch}: loss {total / len(train):.5f} test accuracy {accuracy(student, test):.3f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--teacher-epochs", type=int, default=3)
    parser.add_argument("--student-epochs", type=int, default=4)
    args = parser.parse_args()
    torch.manual_seed(21)
    x = torch.randn(300, 10)
    y = (x[:, :4] * x[:, 4:8]).argmax(1)
    train_set, test_set = random_split(TensorDataset(x, y), [240, 60])
    train = DataLoader(train_set, batch_size=48, shuffle=True)
    test = DataLoader(test_set, batch_size=60)
    teacher, student = Teacher(), Student()
    train_teacher(teacher, train, test, args.teacher_epochs)
    distill(teacher, student, train, test, args.student_epochs)
    torch.save(teacher.state_dict(), "teacher.pth")
    torch.save(student.state_dict(), "student.pth")
    print("ratio of sizes", sum(p.numel() for p in student.parameters()) / sum(p.numel() for p in teacher.parameters()))
    print("next", torch.rand(2).tolist())


if __name__ == "__main__":
    main()
