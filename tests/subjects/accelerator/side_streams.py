import torch
from shown import show
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256)).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
copies, compute = torch.cuda.Stream(), torch.cuda.Stream()
compute.wait_stream(torch.cuda.current_stream())
batches = [torch.randn(128, 256).pin_memory() for _ in range(40)]
losses = []


def load(i):
    with torch.cuda.stream(copies):
        return batches[i].to("cuda", non_blocking=True)


ahead = load(0)
with torch.cuda.stream(compute):
    for i in range(len(batches)):
        compute.wait_stream(copies)
        x = ahead
        x.record_stream(compute)
        if i + 1 < len(batches):
            ahead = load(i + 1)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), x)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
torch.cuda.synchronize()
show(model, losses=losses[::8])
