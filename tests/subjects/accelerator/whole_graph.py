import torch
from shown import show
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(32, 64), nn.Dropout(0.1), nn.ReLU(), nn.Linear(64, 8)).cuda()
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), 1e-3, capturable=True)
static_x, static_y = torch.randn(16, 32, device="cuda"), torch.randn(16, 8, device="cuda")
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        optimizer.zero_grad(set_to_none=True)
        criterion(model(static_x), static_y).backward()
        optimizer.step()
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
optimizer.zero_grad(set_to_none=True)
with torch.cuda.graph(graph):
    static_loss = criterion(model(static_x), static_y)
    static_loss.backward()
    optimizer.step()
losses = []
for _ in range(40):
    static_x.copy_(torch.randn(16, 32))
    static_y.copy_(torch.randn(16, 8))
    graph.replay()
    losses.append(static_loss.clone())
show(model, losses=losses[::8])
