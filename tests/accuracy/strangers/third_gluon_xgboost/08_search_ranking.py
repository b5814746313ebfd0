import numpy as np
import pandas as pd
import xgboost as xgb
from sklearn.metrics import ndcg_score

# Learning to rank products for shop searches: graded relevance 0-3 from clicks and purchases.

rs = np.random.RandomState(99)


def build_log(n_queries=350):
    frames = []
    for q in range(n_queries):
        n = rs.randint(8, 26)
        level = rs.normal(0, 3.0)
        ctr = rs.beta(2, 2)
        text = rs.normal(level, 1.0, n)
        price = rs.lognormal(3 + 0.3 * level, 0.4, n)
        rating = np.clip(rs.normal(4.0, 0.6, n), 1, 5)
        stock = rs.randint(0, 2, n)
        utility = (1.1 * (text - level) - 0.9 * (np.log(price) - 3 - 0.3 * level)
                   + 0.6 * (rating - 4) * stock + 0.4 * rs.normal(size=n))
        rank = utility.argsort().argsort() / (n - 1.0)
        rel = np.digitize(rank + 0.8 * (ctr - 0.5), [0.5, 0.75, 0.9])
        frames.append(pd.DataFrame({
            "query_id": q, "text_score": text, "price": price, "rating": rating,
            "in_stock": stock, "query_ctr": ctr, "relevance": rel}))
    return pd.concat(frames, ignore_index=True)


FEATURES = ["text_score", "price", "rating", "in_stock", "query_ctr"]

log = build_log()
train = log[log.query_id < 200]
test = log[log.query_id >= 200]

# shuffle the training rows
train = train.sample(frac=1.0, random_state=1)
train_groups = train.groupby("query_id").size().to_numpy()
test_groups = test.groupby("query_id").size().to_numpy()
print("queries: %d train, %d test; rows: %d / %d"
      % (len(train_groups), len(test_groups), len(train), len(test)))

ranker = xgb.XGBRanker(
    objective="rank:ndcg",
    eval_metric=["ndcg@5"],
    n_estimators=120,
    learning_rate=0.1,
    max_depth=4,
    min_child_weight=0.1,
    random_state=0,
    n_jobs=1,
)
ranker.fit(
    train[FEATURES], train["relevance"], group=train_groups,
    eval_set=[(train[FEATURES], train["relevance"]), (test[FEATURES], test["relevance"])],
    eval_group=[train_groups, test_groups],
    verbose=30,
)

test = test.assign(score=ranker.predict(test[FEATURES]))
ndcg = [ndcg_score([g["relevance"]], [g["score"]], k=5) for _, g in test.groupby("query_id")]
top1 = [g.loc[g["score"].idxmax(), "relevance"] for _, g in test.groupby("query_id")]
print("mean NDCG@5 on the test queries: %.4f" % np.mean(ndcg))
print("mean relevance of the first hit: %.3f" % np.mean(top1))
for name, gain in zip(FEATURES, ranker.feature_importances_):
    print("  %-12s %.3f" % (name, gain))
