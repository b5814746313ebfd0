"""Bootstrap your own latent: hidden layers are read by a hook, projector and target are made in the first call."""

import copy
from functools import wraps

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn


def singleton(cache_key):
    def inner_fn(fn):
        @wraps(fn)
        def wrapper(self, *args, **kwargs):
            instance = getattr(self, cache_key)
            if instance is not None:
                return instance
            instance = fn(self, *args, **kwargs)
            setattr(self, cache_key, instance)
            return instance

        return wrapper

    return inner_fn


def loss_fn(x, y):
    x, y = F.normalize(x, dim=-1, p=2), F.normalize(y, dim=-1, p=2)
    return 2 - 2 * (x * y).sum(dim=-1)


class EMA:
    def __init__(self, beta):
        self.beta = beta

    def update_average(self, old, new):
        return old * self.beta + (1 - self.beta) * new


def mlp(dim, projection_size, hidden_size):
    return nn.Sequential(
        nn.Linear(dim, hidden_size),
        nn.BatchNorm1d(hidden_size),
        nn.ReLU(inplace=True),
        nn.Linear(hidden_size, projection_size),
    )


class NetWrapper(nn.Module):
    def __init__(self, net, projection_size, hidden_size, layer):
        super().__init__()
        self.net, self.layer = net, layer
        self.projector = None
        self.projection_size, self.hidden_size = projection_size, hidden_size
        self.hidden = None
        self.hook_registered = False

    def _hook(self, _, input, output):
        self.hidden = output.flatten(1)

    def _register_hook(self):
        layer = dict(self.net.named_modules())[self.layer]
        layer.register_forward_hook(self._hook)
        self.hook_registered = True

    @singleton("projector")
    def _get_projector(self, hidden):
        return mlp(hidden.shape[1], self.projection_size, self.hidden_size)

    def forward(self, x):
        if not self.hook_registered:
            self._register_hook()
        self.net(x)
        hidden, self.hidden = self.hidden, None
        projector = self._get_projector(hidden)
        return projector(hidden)


class BYOL(nn.Module):
    def __init__(self, net, image_size, hidden_layer, projection_size=16, projection_hidden_size=48, decay=0.99):
        super().__init__()
        self.online_encoder = NetWrapper(net, projection_size, projection_hidden_size, layer=hidden_layer)
        self.target_encoder = None
        self.target_ema_updater = EMA(decay)
        self.online_predictor = mlp(projection_size, projection_size, projection_hidden_size)
        self.forward(torch.randn(2, 1, image_size, image_size))

    @singleton("target_encoder")
    def _get_target_encoder(self):
        target_encoder = copy.deepcopy(self.online_encoder)
        for p in target_encoder.parameters():
            p.requires_grad = False
        return target_encoder

    def update_moving_average(self):
        pairs = zip(self.target_encoder.parameters(), self.online_encoder.parameters())
        for target, online in pairs:
            target.data = self.target_ema_updater.update_average(target.data, online.data)

    def reset_moving_average(self):
        self.target_encoder = None

    def augment(self, x):
        shift = torch.randint(-1, 2, (2,)).tolist()
        return torch.roll(x, shift, (2, 3)) + 0.1 * torch.randn_like(x)

    def forward(self, x):
        images = torch.cat((self.augment(x), self.augment(x)), dim=0)
        online_one, online_two = self.online_predictor(self.online_encoder(images)).chunk(2, dim=0)
        with torch.no_grad():
            target_one, target_two = self._get_target_encoder()(images).detach().chunk(2, dim=0)
        return (loss_fn(online_one, target_two) + loss_fn(online_two, target_one)).mean()


torch.manual_seed(5)
net = nn.Sequential()
net.add_module("conv", nn.Conv2d(1, 8, 3, stride=2, padding=1))
net.add_module("act", nn.ReLU())
net.add_module("avgpool", nn.AvgPool2d(2))
net.add_module("fc", nn.Sequential(nn.Flatten(), nn.Linear(32, 10)))

learner = BYOL(net, image_size=8, hidden_layer="avgpool")
# The target begins anew, with the weights that the pre-trained net would have.
learner.reset_moving_average()
opt = torch.optim.Adam([p for p in learner.parameters() if p.requires_grad], lr=3e-3)
images = torch.tensor(load_digits().images[:512], dtype=torch.float32).unsqueeze(1) / 16

for step in range(20):
    batch = images[torch.randint(len(images), (48,))]
    loss = learner(batch)
    opt.zero_grad()
    loss.backward()
    opt.step()
    learner.update_moving_average()
    print(f"step {step} loss {loss.item():.6f}")

torch.save(net.state_dict(), "improved-net.pt")
torch.save(learner, "learner.pt")
again = torch.load("learner.pt", weights_only=False)
print("hooks", [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in again.modules()])
print(torch.rand(1).item())
