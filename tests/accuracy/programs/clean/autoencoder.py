"""A denoising autoencoder of the digits with a sigmoid at its end, and a probe of what it has learned."""

import torch
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from torch import nn

torch.manual_seed(2)
x, y = load_digits(return_X_y=True)
x = torch.tensor(x / 16, dtype=torch.float32)
encoder = nn.Sequential(nn.Linear(64, 32), nn.SiLU(), nn.Linear(32, 8))
decoder = nn.Sequential(nn.Linear(8, 32), nn.SiLU(), nn.Linear(32, 64), nn.Sigmoid())
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=3e-3)
criterion = nn.BCELoss()
for epoch in range(5):
    for batch in torch.randperm(len(x)).split(64):
        clean = x[batch]
        noisy = (clean + 0.2 * torch.randn_like(clean)).clamp(0, 1)
        loss = criterion(decoder(encoder(noisy)), clean)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, f"{loss.item():.4f}")
with torch.no_grad():
    codes = encoder(x).numpy()
print(LogisticRegression(max_iter=500).fit(codes, y).score(codes, y))
