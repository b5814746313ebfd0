"""Exact Gaussian process regression: the hyper-parameters of a kernel maximize the marginal likelihood."""

import math

import torch
from torch import nn
from torch.distributions import MultivariateNormal


class RBFKernel(nn.Module):
    def __init__(self):
        super().__init__()
        self.raw_lengthscale = nn.Parameter(torch.zeros(1, 1))
        self.raw_outputscale = nn.Parameter(torch.zeros(()))

    @property
    def lengthscale(self):
        return nn.functional.softplus(self.raw_lengthscale)

    @property
    def outputscale(self):
        return nn.functional.softplus(self.raw_outputscale)

    def forward(self, a, b):
        distance = (a[:, None] - b[None]).div(self.lengthscale).pow(2).sum(-1)
        return self.outputscale * torch.exp(-0.5 * distance)


class ConstantMean(nn.Module):
    def __init__(self):
        super().__init__()
        self.constant = nn.Parameter(torch.zeros(()))

    def forward(self, x):
        return self.constant.expand(len(x))


class GaussianLikelihood(nn.Module):
    def __init__(self):
        super().__init__()
        self.raw_noise = nn.Parameter(torch.tensor(-1.0))

    @property
    def noise(self):
        return nn.functional.softplus(self.raw_noise) + 1e-4

    def forward(self, distribution):
        n = len(distribution.mean)
        return MultivariateNormal(distribution.mean, distribution.covariance_matrix + self.noise * torch.eye(n))


class ExactGPModel(nn.Module):
    """In training the prior at the training inputs, in evaluation the posterior."""

    def __init__(self, train_x, train_y, likelihood):
        super().__init__()
        self.train_x, self.train_y, self.likelihood = train_x, train_y, likelihood
        self.mean_module, self.covar_module = ConstantMean(), RBFKernel()

    def forward(self, x):
        jitter = 1e-5 * torch.eye(len(x))
        if self.training:
            return MultivariateNormal(self.mean_module(x), self.covar_module(x, x) + jitter)
        noisy = self.covar_module(self.train_x, self.train_x) + self.likelihood.noise * torch.eye(len(self.train_x))
        factor = torch.linalg.cholesky(noisy)
        cross = self.covar_module(self.train_x, x)
        weights = torch.cholesky_solve((self.train_y - self.mean_module(self.train_x))[:, None], factor)
        mean = self.mean_module(x) + (cross.T @ weights).squeeze(-1)
        covariance = self.covar_module(x, x) - cross.T @ torch.cholesky_solve(cross, factor)
        return MultivariateNormal(mean, covariance + jitter)


torch.manual_seed(3)
torch.set_default_dtype(torch.float64)
train_x = torch.linspace(0, 1, 30)[:, None]
train_y = torch.sin(train_x[:, 0] * 2 * math.pi) + 0.2 * torch.randn(30)

likelihood = GaussianLikelihood()
model = ExactGPModel(train_x, train_y, likelihood)
model.train()
likelihood.train()
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
training_iter = 25
for i in range(training_iter):
    optimizer.zero_grad()
    output = likelihood(model(train_x))
    loss = -output.log_prob(train_y) / len(train_y)
    loss.backward()
    print(
        "Iter %d/%d - Loss: %.6f   lengthscale: %.3f   noise: %.3f"
        % (i + 1, training_iter, loss.item(), model.covar_module.lengthscale.item(), likelihood.noise.item())
    )
    optimizer.step()

model.eval()
likelihood.eval()
with torch.no_grad():
    predicted = likelihood(model(torch.linspace(0, 1, 11)[:, None]))
    lower, upper = predicted.mean - 2 * predicted.stddev, predicted.mean + 2 * predicted.stddev
for row in zip(lower.tolist(), predicted.mean.tolist(), upper.tolist()):
    print("%8.4f %8.4f %8.4f" % row)
torch.save(model.state_dict(), "gp_state.pth")
print(torch.randn(2).tolist())
