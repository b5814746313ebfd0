"""Churn model with entity embeddings for the categorical columns."""
import argparse

import keras
import numpy as np
import pandas as pd
from keras import layers
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import LabelEncoder, StandardScaler

CAT_COLS = ["city", "plan"]
NUM_COLS = ["age", "monthly_bill", "support_calls"]


def make_customers(n, rng):
    n_city, n_plan = 120, 12
    p_city = 1.0 / np.arange(1, n_city + 1)
    p_city /= p_city.sum()
    rng.shuffle(p_city)
    city = rng.choice(n_city, size=n, p=p_city)
    plan = rng.integers(0, n_plan, size=n)
    city_effect = rng.normal(0, 1.6, n_city)
    plan_effect = rng.normal(0, 0.8, n_plan)
    age = rng.normal(42, 12, n)
    bill = rng.gamma(6.0, 10.0, n)
    calls = rng.poisson(1.5, n)
    z = (
        city_effect[city]
        + plan_effect[plan]
        + 0.015 * (bill - 60)
        + 0.45 * (calls - 1.5)
        - 0.02 * (age - 42)
    )
    churn = rng.random(n) < 1 / (1 + np.exp(-1.3 * z))
    return pd.DataFrame(
        {
            "city": [f"C{c:03d}" for c in city],
            "plan": [f"plan_{p}" for p in plan],
            "age": age,
            "monthly_bill": bill,
            "support_calls": calls,
            "churn": churn.astype("int32"),
        }
    )


def to_inputs(df):
    feats = {c: df[c].to_numpy("int32").reshape(-1, 1) for c in CAT_COLS}
    feats["numeric"] = df[NUM_COLS].to_numpy("float32")
    return feats


def build(cardinality):
    inputs, parts = [], []
    for col in CAT_COLS:
        inp = keras.Input(shape=(1,), name=col, dtype="int32")
        emb = layers.Embedding(cardinality[col], 4)(inp)
        parts.append(layers.Flatten()(emb))
        inputs.append(inp)
    num = keras.Input(shape=(len(NUM_COLS),), name="numeric")
    inputs.append(num)
    parts.append(num)
    x = layers.Concatenate()(parts)
    x = layers.Dense(16, activation="relu")(x)
    x = layers.Dropout(0.2)(x)
    out = layers.Dense(1, activation="sigmoid")(x)
    return keras.Model(inputs, out)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=6)
    ap.add_argument("--batch-size", type=int, default=64)
    ap.add_argument("--lr", type=float, default=3e-3)
    ap.add_argument("--seed", type=int, default=11)
    args = ap.parse_args()

    keras.utils.set_random_seed(args.seed)
    df = make_customers(6000, np.random.default_rng(args.seed))
    train, valid = train_test_split(df, test_size=500, random_state=args.seed)
    known = set(train["city"])
    valid = valid[valid["city"].isin(known)]
    train, valid = train.copy(), valid.copy()

    cardinality = {}
    for col in CAT_COLS:
        le = LabelEncoder()
        train[col] = le.fit_transform(train[col])
        valid[col] = le.fit_transform(valid[col])
        cardinality[col] = int(train[col].max()) + 1

    scaler = StandardScaler().fit(train[NUM_COLS])
    train[NUM_COLS] = scaler.transform(train[NUM_COLS])
    valid[NUM_COLS] = scaler.transform(valid[NUM_COLS])

    model = build(cardinality)
    model.compile(
        optimizer=keras.optimizers.Adam(args.lr),
        loss="binary_crossentropy",
        metrics=[keras.metrics.AUC(name="auc")],
    )
    model.fit(
        to_inputs(train),
        train["churn"].to_numpy("float32"),
        validation_data=(to_inputs(valid), valid["churn"].to_numpy("float32")),
        epochs=args.epochs,
        batch_size=args.batch_size,
        verbose=2,
    )
    score = model.predict(to_inputs(valid), verbose=0).ravel()
    print("validation AUC: %.4f" % roc_auc_score(valid["churn"], score))


if __name__ == "__main__":
    main()
