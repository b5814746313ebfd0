"""A training of many short steps, with evaluations in between; told to, it notes the loss of each."""

import hashlib
import os

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(16, 64)
        self.relu = nn.ReLU()
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        return self.fc2(self.relu(self.fc1(x)))


model, criterion = Net(), nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
notes = os.open(os.environ.get("NOTES", os.devnull), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
for step in range(int(os.environ.get("STEPS", "30"))):
    x, y = torch.randn(8, 16), torch.randint(10, (8,))
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
    os.write(notes, f"{loss.item()!r}\n".encode())
    if step % 10 == 9:
        model.eval()
        with torch.no_grad():
            print(criterion(model(x), y).item())
        model.train()
weights = b"".join(parameter.detach().numpy().tobytes() for parameter in model.parameters())
print(loss.item(), hashlib.sha1(weights).hexdigest(), torch.rand(1).item())
