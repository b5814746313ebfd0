"""Two threads that train a model each at the same time. Knows nothing of the agent; writes down what it computes."""

import pickle
import sys
import threading

import torch
from torch import nn

STEPS = 12


def train(number, meeting, notes):
    random = torch.Generator().manual_seed(number)
    model = nn.Sequential(nn.Linear(20, 20), nn.ReLU(), nn.Linear(20, 3))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=random) / 5)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    criterion = nn.CrossEntropyLoss()
    for step in range(STEPS):
        x, y = torch.randn((8, 20), generator=random), torch.randint(3, (8,), generator=random)
        weight = model[0].weight.detach().clone()
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        if step % 2 == 0:
            # Both are between their forward and their backward pass.
            meeting.wait()
        loss.backward()
        notes.append((number, weight.numpy(), model[0].weight.grad.clone().numpy(), loss.item()))
        optimizer.step()


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.setswitchinterval(1e-4)
    notes = []
    meeting = threading.Barrier(2)
    threads = [threading.Thread(target=train, args=(number, meeting, notes)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with open(sys.argv[1], "wb") as file:
        pickle.dump(notes, file)
    print(sorted((number, loss) for number, _, _, loss in notes))
