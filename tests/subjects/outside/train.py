import json

import numpy as np
import toytrain

model = toytrain.Linear(3)
trainer = toytrain.Trainer(model)
generator = np.random.default_rng(0)
weights, losses = [], []
for _ in range(12):
    x = generator.normal(size=(8, 3))
    weights.append(model.weight.tolist())
    losses.append(trainer.step(x, x @ np.array([1.0, -2.0, 3.0])))
print(json.dumps({"weights": weights, "losses": losses}))
