"""Weekly demand per store and product: gradient boosting on a mixed-type table."""
import numpy as np
import pandas as pd
import xgboost as xgb
from sklearn.metrics import mean_absolute_error, r2_score

CATEGORICAL = ["city", "product", "promo", "weather"]


def build_table(n=80000, seed=17):
    rng = np.random.default_rng(seed)
    cities = np.array([f"city_{i:02d}" for i in range(30)])
    products = np.array([f"sku_{i:02d}" for i in range(40)])
    city_eff = dict(zip(cities, rng.normal(0, 0.5, len(cities))))
    prod_eff = dict(zip(products, rng.normal(0, 0.6, len(products))))
    promo_eff = {"none": 0.0, "flyer": 0.15, "discount": 0.4, "bundle": 0.25}
    weather_eff = {"sun": 0.1, "rain": -0.1, "snow": -0.3, "cloud": 0.0}
    df = pd.DataFrame({
        "week": np.sort(rng.integers(0, 104, n)),
        "city": rng.choice(cities, n),
        "product": rng.choice(products, n),
        "promo": rng.choice(list(promo_eff), n, p=[0.6, 0.15, 0.15, 0.1]),
        "weather": rng.choice(list(weather_eff), n, p=[0.3, 0.3, 0.1, 0.3]),
        "price": rng.normal(0, 1, n),
    })
    df["week_of_year"] = df["week"] % 52
    log_demand = (3.0 + df["city"].map(city_eff) + df["product"].map(prod_eff)
                  + df["promo"].map(promo_eff) + df["weather"].map(weather_eff)
                  - 0.25 * df["price"] + 0.2 * np.sin(2 * np.pi * df["week"] / 52)
                  + rng.normal(0, 0.2, n))
    df["log_demand"] = log_demand
    return df


table = build_table()
train = table[table["week"] < 78].copy()
valid = table[(table["week"] >= 78) & (table["week"] < 91)].copy()
test = table[table["week"] >= 91].copy()
print("rows:", len(train), len(valid), len(test))

for col in CATEGORICAL:
    train[col], levels = pd.factorize(train[col])
    valid[col], _ = pd.factorize(valid[col])
    test[col], _ = pd.factorize(test[col])

features = CATEGORICAL + ["price", "week_of_year"]
model = xgb.XGBRegressor(
    n_estimators=400,
    learning_rate=0.1,
    max_depth=5,
    min_child_weight=5,
    subsample=0.8,
    colsample_bytree=0.9,
    eval_metric="mae",
    random_state=17,
)
model.fit(train[features], train["log_demand"],
          eval_set=[(train[features], train["log_demand"]), (valid[features], valid["log_demand"])],
          verbose=50)

pred = model.predict(test[features])
units, pred_units = np.exp(test["log_demand"]), np.exp(pred)
print("test MAE (log):   %.4f" % mean_absolute_error(test["log_demand"], pred))
print("test R2 (log):    %.4f" % r2_score(test["log_demand"], pred))
print("test MAE (units): %.2f" % mean_absolute_error(units, pred_units))
