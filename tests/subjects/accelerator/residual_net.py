import torch
import torchvision
from shown import show

torch.manual_seed(0)
model = torchvision.models.resnet18(num_classes=10).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9, nesterov=True)
criterion = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
torch.backends.cudnn.benchmark = False
torch.backends.cudnn.deterministic = True
losses = []
for _ in range(25):
    x, y = torch.rand(16, 3, 64, 64, device="cuda"), torch.randint(0, 10, (16,), device="cuda")
    loss = criterion(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
show(model, losses=losses[::5])
