# Claim frequency for a motor portfolio. Policies run for different times, so the
# number of claims is modelled as Poisson with the exposure as an offset.
import numpy as np
import pandas as pd
from sklearn.metrics import mean_poisson_deviance
from sklearn.model_selection import train_test_split
from xgboost import XGBRegressor

rng = np.random.default_rng(77)
N = 15000

df = pd.DataFrame({
    "driver_age": rng.integers(18, 85, N),
    "car_age": rng.integers(0, 20, N),
    "power": rng.integers(4, 13, N),
    "density": rng.lognormal(5, 1.2, N),
    "bonus": rng.integers(50, 130, N),
    "exposure": np.clip(rng.beta(0.9, 0.8, N), 0.03, 1.0),
})
log_rate = (-2.2
            + 0.9 * (df.driver_age < 25)
            + 0.3 * (df.driver_age > 72)
            + 0.012 * (df.bonus - 50)
            + 0.12 * np.log(df.density)
            + 0.04 * (df.power - 7) * (df.car_age < 5))
df["claims"] = rng.poisson(np.exp(log_rate) * df.exposure)

features = ["driver_age", "car_age", "power", "density", "bonus"]
train, test = train_test_split(df, test_size=0.3, random_state=77)
fit_part, valid = train_test_split(train, test_size=0.2, random_state=77)


def offset(frame):
    return frame["exposure"].to_numpy()


model = XGBRegressor(
    objective="count:poisson",
    n_estimators=400,
    learning_rate=0.05,
    max_depth=3,
    subsample=0.7,
    min_child_weight=5,
    early_stopping_rounds=25,
    random_state=77,
    n_jobs=1,
)
model.fit(
    fit_part[features], fit_part["claims"],
    base_margin=offset(fit_part),
    eval_set=[(valid[features], valid["claims"])],
    base_margin_eval_set=[offset(valid)],
    verbose=50,
)

expected = model.predict(test[features], base_margin=offset(test))
naive = train.claims.sum() / train.exposure.sum() * test.exposure

print(f"trees used: {model.best_iteration + 1}")
print(f"Poisson deviance, flat rate: {mean_poisson_deviance(test.claims, naive):.4f}")
print(f"Poisson deviance, model:     {mean_poisson_deviance(test.claims, expected):.4f}")

bins = pd.cut(test.exposure, [0, 0.1, 0.3, 0.6, 1.0])
table = pd.DataFrame({"observed": test.claims, "expected": expected}).groupby(
    bins, observed=True).sum()
print(table.round(1))
