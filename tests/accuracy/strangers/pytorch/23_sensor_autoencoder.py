import numpy as np
import torch
import torch.nn as nn
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

np.random.seed(30)
torch.manual_seed(30)

N_SENSORS = 24
W1, W2 = np.random.randn(3, 12), np.random.randn(12, N_SENSORS)


def plant_readings(n):
    load = np.random.randn(n, 3)
    return np.tanh(load @ W1) @ W2 + 0.2 * np.random.randn(n, N_SENSORS)


normal = plant_readings(4000)
test_normal = plant_readings(500)
broken = plant_readings(500)
for row in broken:
    k = np.random.choice(N_SENSORS, 2, replace=False)
    row[k] += np.random.choice([-1, 1], 2) * np.random.uniform(2.0, 4.0, 2)

scaler = StandardScaler().fit(normal)
x_train = torch.tensor(scaler.transform(normal), dtype=torch.float32)
x_test = torch.tensor(scaler.transform(np.vstack([test_normal, broken])), dtype=torch.float32)
is_broken = np.r_[np.zeros(500), np.ones(500)]


class AutoEncoder(nn.Module):
    def __init__(self, n_in, latent=4):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(n_in, 48), nn.ReLU(),
            nn.Linear(48, 24), nn.ReLU(),
            nn.Linear(24, latent),
        )
        self.decoder = nn.Sequential(
            nn.Linear(latent, 24), nn.ReLU(),
            nn.Linear(24, 48), nn.ReLU(),
            nn.Linear(48, n_in), nn.ReLU(),
        )

    def forward(self, x):
        return self.decoder(self.encoder(x))


ae = AutoEncoder(N_SENSORS)
optimizer = torch.optim.Adam(ae.parameters(), lr=2e-3)
loss_fn = nn.MSELoss()
loader = torch.utils.data.DataLoader(x_train, batch_size=100, shuffle=True)

for epoch in range(15):
    ae.train()
    total_loss = 0
    for batch in loader:
        recon = ae(batch)
        loss = loss_fn(recon, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total_loss += loss.item()
    if epoch % 2 == 0:
        ae.eval()
        with torch.no_grad():
            err = (ae(x_test) - x_test).pow(2).mean(1).numpy()
        print("epoch", epoch, "train mse %.4f" % (total_loss / len(loader)),
              "test mse (normal) %.4f" % err[:500].mean(), "auc %.4f" % roc_auc_score(is_broken, err))
