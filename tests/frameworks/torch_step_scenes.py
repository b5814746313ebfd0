"""Training loops of PyTorch that count steps in their own way; knows nothing of the agent.

usage: python torch_step_scenes.py [NOTES.npz]
"""

import torch
from torch import nn
from torch_notes import note, note_model, play


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(5, 4)
        self.drop = nn.Dropout(0.3)
        self.fc2 = nn.Linear(4, 3)

    def forward(self, x):
        return self.fc2(self.drop(torch.relu(self.fc1(x))))


def plain_loop():
    model = Plain()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loss_fn = nn.CrossEntropyLoss()
    for k in range(4):
        note_model("Plain", k, model)
        optimizer.zero_grad()
        out = model(torch.randn(8, 5))
        note("Plain_output_0", k, out)
        loss = loss_fn(out, torch.randint(0, 3, (8,)))
        note("CrossEntropyLoss_output_0", k, loss)
        loss.backward()
        note_model("Plain", k, model, gradients=True)
        optimizer.step()
    model.eval()
    for k in range(2):
        with torch.no_grad():
            note("Plain_output_0", k, model(torch.randn(8, 5)), "EVAL")
    return [model], 4, 2


SCENES = [plain_loop]

if __name__ == "__main__":
    play(SCENES)
