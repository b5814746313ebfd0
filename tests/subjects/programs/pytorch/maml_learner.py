"""Few-shot classification of patterns by MAML: the learner keeps its weights in a list and is called with others."""

import argparse
from copy import deepcopy

import numpy as np
import torch
from torch import nn, optim
from torch.nn import functional as F


class Learner(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.vars = nn.ParameterList()
        for name, shape in config:
            if name == "linear":
                w = nn.Parameter(torch.ones(*shape))
                nn.init.kaiming_normal_(w)
                self.vars.append(w)
                self.vars.append(nn.Parameter(torch.zeros(shape[0])))
            elif name == "conv2d":
                w = nn.Parameter(torch.ones(*shape[:4]))
                nn.init.kaiming_normal_(w)
                self.vars.append(w)
                self.vars.append(nn.Parameter(torch.zeros(shape[0])))
            elif name not in ("relu", "flatten"):
                raise NotImplementedError(name)

    def extra_repr(self):
        return "\n".join(f"{name}: {shape}" for name, shape in self.config)

    def forward(self, x, vars=None):
        if vars is None:
            vars = self.vars
        idx = 0
        for name, shape in self.config:
            if name == "conv2d":
                x = F.conv2d(x, vars[idx], vars[idx + 1], stride=shape[4], padding=shape[5])
                idx += 2
            elif name == "linear":
                x = F.linear(x, vars[idx], vars[idx + 1])
                idx += 2
            elif name == "relu":
                x = F.relu(x)
            elif name == "flatten":
                x = x.view(x.size(0), -1)
        assert idx == len(vars)
        return x

    def zero_grad(self, vars=None):
        with torch.no_grad():
            for p in self.vars if vars is None else vars:
                if p.grad is not None:
                    p.grad.zero_()

    def parameters(self):
        return self.vars


class Episodes:
    """Each task has a prototype image for each of its classes."""

    def __init__(self, args):
        self.n, self.k, self.q = args.n_way, args.k_spt, args.k_qry
        self.rng = np.random.RandomState(222)

    def next(self, tasks):
        prototypes = self.rng.randn(tasks, self.n, 1, 1, 8, 8)
        images = prototypes + 0.7 * self.rng.randn(tasks, self.n, self.k + self.q, 1, 8, 8)
        labels = np.tile(np.arange(self.n)[None, :, None], (tasks, 1, self.k + self.q))
        x, y = torch.from_numpy(images).float(), torch.from_numpy(labels)
        parts = ((x[:, :, : self.k], y[:, :, : self.k]), (x[:, :, self.k :], y[:, :, self.k :]))
        return [t for a, b in parts for t in (a.reshape(tasks, -1, 1, 8, 8), b.reshape(tasks, -1))]


def adapt(net, x, y, lr, steps):
    fast = None
    for _ in range(steps):
        loss = F.cross_entropy(net(x, fast), y)
        weights = list(net.parameters()) if fast is None else fast
        fast = [w - lr * g for g, w in zip(torch.autograd.grad(loss, weights), weights)]
    return fast


def finetune(net, x_spt, y_spt, x_qry, y_qry, args):
    net = deepcopy(net)
    fast = adapt(net, x_spt, y_spt, args.update_lr, args.update_step_test)
    with torch.no_grad():
        return (net(x_qry, fast).argmax(1) == y_qry).float().mean().item()


def main(args):
    torch.manual_seed(222)
    net = Learner(
        [("conv2d", [8, 1, 3, 3, 2, 1]), ("relu", None), ("flatten", None), ("linear", [args.n_way, 8 * 4 * 4])]
    )
    print(net)
    print("Total trainable tensors:", sum(np.prod(p.shape) for p in net.parameters() if p.requires_grad))
    meta_optim = optim.Adam(net.parameters(), lr=args.meta_lr)
    episodes = Episodes(args)
    for step in range(args.epoch):
        losses_q, corrects = [], 0
        for x_spt, y_spt, x_qry, y_qry in zip(*episodes.next(args.task_num)):
            fast = adapt(net, x_spt, y_spt, args.update_lr, args.update_step)
            logits_q = net(x_qry, fast)
            losses_q.append(F.cross_entropy(logits_q, y_qry))
            corrects += (logits_q.argmax(1) == y_qry).sum().item()
        loss_q = torch.stack(losses_q).mean()
        meta_optim.zero_grad()
        loss_q.backward()
        meta_optim.step()
        accuracy = corrects / (args.task_num * args.n_way * args.k_qry)
        print(f"step: {step}  training loss: {loss_q.item():.5f}  acc: {accuracy:.3f}")
    accs = [finetune(net, *task, args) for task in zip(*episodes.next(3))]
    print("Test acc:", np.array(accs).round(3))
    torch.save({"vars": [p.detach() for p in net.parameters()]}, "learner.pt")
    print(torch.rand(2), episodes.rng.rand())


if __name__ == "__main__":
    argparser = argparse.ArgumentParser()
    argparser.add_argument("--epoch", type=int, default=12)
    argparser.add_argument("--n_way", type=int, default=5)
    argparser.add_argument("--k_spt", type=int, default=1)
    argparser.add_argument("--k_qry", type=int, default=4)
    argparser.add_argument("--task_num", type=int, default=3)
    argparser.add_argument("--meta_lr", type=float, default=1e-2)
    argparser.add_argument("--update_lr", type=float, default=0.05)
    argparser.add_argument("--update_step", type=int, default=2)
    argparser.add_argument("--update_step_test", type=int, default=4)
    main(argparser.parse_args())
