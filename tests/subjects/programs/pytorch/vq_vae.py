"""A vector-quantized autoencoder of digits: gradients go straight through the nearest vector of a codebook."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F


class VectorQuantizer(nn.Module):
    def __init__(self, num_embeddings, embedding_dim, commitment_cost):
        super().__init__()
        self.embedding_dim, self.num_embeddings = embedding_dim, num_embeddings
        self.embedding = nn.Embedding(num_embeddings, embedding_dim)
        self.embedding.weight.data.uniform_(-1 / num_embeddings, 1 / num_embeddings)
        self.commitment_cost = commitment_cost

    def forward(self, inputs):
        inputs = inputs.permute(0, 2, 3, 1).contiguous()
        flat = inputs.view(-1, self.embedding_dim)
        distances = torch.cdist(flat, self.embedding.weight)
        indices = torch.argmin(distances, dim=1).unsqueeze(1)
        encodings = torch.zeros(indices.shape[0], self.num_embeddings).scatter_(1, indices, 1)
        quantized = torch.matmul(encodings, self.embedding.weight).view(inputs.shape)
        e_latent_loss = F.mse_loss(quantized.detach(), inputs)
        q_latent_loss = F.mse_loss(quantized, inputs.detach())
        loss = q_latent_loss + self.commitment_cost * e_latent_loss
        quantized = inputs + (quantized - inputs).detach()
        avg_probs = encodings.mean(0)
        perplexity = torch.exp(-torch.sum(avg_probs * torch.log(avg_probs + 1e-10)))
        return loss, quantized.permute(0, 3, 1, 2).contiguous(), perplexity


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self._block = nn.Sequential(
            nn.ReLU(True), nn.Conv2d(channels, 8, 3, padding=1, bias=False), nn.ReLU(True), nn.Conv2d(8, channels, 1)
        )

    def forward(self, x):
        return x + self._block(x)


class Model(nn.Module):
    def __init__(self, hiddens=16, num_embeddings=24, embedding_dim=6):
        super().__init__()
        self._encoder = nn.Sequential(nn.Conv2d(1, hiddens, 4, stride=2, padding=1), Residual(hiddens))
        self._pre_vq_conv = nn.Conv2d(hiddens, embedding_dim, 1)
        self._vq_vae = VectorQuantizer(num_embeddings, embedding_dim, 0.25)
        self._decoder = nn.Sequential(
            nn.Conv2d(embedding_dim, hiddens, 3, padding=1),
            Residual(hiddens),
            nn.ConvTranspose2d(hiddens, 1, 4, stride=2, padding=1),
        )

    def forward(self, x):
        z = self._pre_vq_conv(self._encoder(x))
        loss, quantized, perplexity = self._vq_vae(z)
        return loss, self._decoder(quantized), perplexity


def main():
    torch.manual_seed(3)
    images = torch.tensor(load_digits().images, dtype=torch.float32).unsqueeze(1) / 16 - 0.5
    training_data, validation_data = images[:1500], images[1500:]
    data_variance = training_data.var()
    model = Model()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, amsgrad=False)
    model.train()
    for i in range(20):
        data = training_data[torch.randint(len(training_data), (32,))]
        optimizer.zero_grad()
        vq_loss, data_recon, perplexity = model(data)
        recon_error = F.mse_loss(data_recon, data) / data_variance
        loss = recon_error + vq_loss
        loss.backward()
        optimizer.step()
        print(
            f"{i + 1} iterations loss: {loss.item():.6f} recon_error: {recon_error.item():.4f}",
            f"perplexity: {perplexity.item():.3f}",
        )
    model.eval()
    with torch.no_grad():
        _, reconstructions, _ = model(validation_data[:32])
    print(f"validation {F.mse_loss(reconstructions, validation_data[:32]).item():.6f}")
    torch.save(model.state_dict(), "vq_vae.pt")
    print(torch.rand(1).item())


if __name__ == "__main__":
    main()
