"""A Bayesian network: weights are drawn in each pass, and the evidence is maximised over their distributions."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

SAMPLES, TEST_SAMPLES, BATCH, TRAIN = 2, 4, 25, 100
PI, SIGMA_1, SIGMA_2 = 0.5, torch.tensor(1.0), torch.tensor(math.exp(-6))


class Gaussian:
    def __init__(self, mu, rho):
        self.mu, self.rho = mu, rho
        self.normal = torch.distributions.Normal(0, 1)

    @property
    def sigma(self):
        return torch.log1p(torch.exp(self.rho))

    def sample(self):
        return self.mu + self.sigma * self.normal.sample(self.rho.size())

    def log_prob(self, x):
        return (
            -math.log(math.sqrt(2 * math.pi)) - torch.log(self.sigma) - (x - self.mu) ** 2 / (2 * self.sigma**2)
        ).sum()


class ScaleMixture:
    def log_prob(self, x):
        one = torch.exp(torch.distributions.Normal(0, SIGMA_1).log_prob(x))
        two = torch.exp(torch.distributions.Normal(0, SIGMA_2).log_prob(x))
        return torch.log(PI * one + (1 - PI) * two).sum()


class BayesianLinear(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.weight_mu = nn.Parameter(torch.empty(out_features, in_features).uniform_(-0.2, 0.2))
        self.weight_rho = nn.Parameter(torch.empty(out_features, in_features).uniform_(-5, -4))
        self.weight = Gaussian(self.weight_mu, self.weight_rho)
        self.bias_mu = nn.Parameter(torch.empty(out_features).uniform_(-0.2, 0.2))
        self.bias_rho = nn.Parameter(torch.empty(out_features).uniform_(-5, -4))
        self.bias = Gaussian(self.bias_mu, self.bias_rho)
        self.weight_prior, self.bias_prior = ScaleMixture(), ScaleMixture()
        self.log_prior = self.log_variational_posterior = 0

    def forward(self, input, sample=False):
        if not (self.training or sample):
            return F.linear(input, self.weight.mu, self.bias.mu)
        weight, bias = self.weight.sample(), self.bias.sample()
        if self.training:
            self.log_prior = self.weight_prior.log_prob(weight) + self.bias_prior.log_prob(bias)
            self.log_variational_posterior = self.weight.log_prob(weight) + self.bias.log_prob(bias)
        return F.linear(input, weight, bias)


class BayesianNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.l1, self.l2 = BayesianLinear(1, 16), BayesianLinear(16, 1)

    def forward(self, x, sample=False):
        return self.l2(torch.tanh(self.l1(x, sample)), sample)

    def sample_elbo(self, input, target, num_batches):
        outputs, priors, posteriors = [], [], []
        for _ in range(SAMPLES):
            outputs.append(self(input, sample=True))
            priors.append(self.l1.log_prior + self.l2.log_prior)
            posteriors.append(self.l1.log_variational_posterior + self.l2.log_variational_posterior)
        negative_log_likelihood = F.mse_loss(torch.stack(outputs).mean(0), target, reduction="sum") / (2 * 0.1**2)
        complexity = (torch.stack(posteriors).mean() - torch.stack(priors).mean()) / num_batches
        return complexity + negative_log_likelihood, negative_log_likelihood


def train(net, optimizer, x, y, epoch):
    net.train()
    for rows in torch.randperm(len(x)).split(BATCH):
        net.zero_grad()
        loss, nll = net.sample_elbo(x[rows], y[rows], len(x) // BATCH)
        loss.backward()
        optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f} negative log likelihood {nll.item():.4f}")


def test_ensemble(net, x, y):
    net.eval()
    with torch.no_grad():
        outputs = torch.stack([net(x, sample=True) for _ in range(TEST_SAMPLES)] + [net(x, sample=False)])
    print(f"ensemble mse {F.mse_loss(outputs.mean(0), y).item():.5f} mean mse {F.mse_loss(outputs[-1], y).item():.5f}")
    return outputs


torch.manual_seed(0)
x = torch.rand(TRAIN, 1) * 2 - 1
y = x + 0.3 * torch.sin(2 * math.pi * x) + 0.05 * torch.randn_like(x)
grid = torch.linspace(-1.5, 1.5, 30)[:, None]
net = BayesianNetwork()
optimizer = optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(6):
    train(net, optimizer, x, y, epoch)
outputs = test_ensemble(net, grid, grid + 0.3 * torch.sin(2 * math.pi * grid))
torch.save({"net": net.state_dict(), "curves": outputs}, "bbb.pt")
print(torch.rand(1).item())
