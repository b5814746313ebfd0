"""Learning to rank: answers of queries are put in order by LambdaMART, measured by NDCG and by pairs."""

import numpy as np
import xgboost as xgb


def queries(n, seed):
    rng = np.random.RandomState(seed)
    X, y, qid = [], [], []
    for query in range(n):
        size = rng.randint(5, 12)
        features = rng.randn(size, 6)
        relevance = features[:, 0] + 0.5 * features[:, 1] * features[:, 2] + 0.3 * rng.randn(size)
        X.append(features)
        y.append(np.digitize(relevance, [-0.5, 0.5, 1.5]))
        qid.append(np.full(size, query))
    return np.concatenate(X), np.concatenate(y), np.concatenate(qid)


if __name__ == "__main__":
    X, y, qid = queries(60, 1)
    X_test, y_test, qid_test = queries(20, 2)
    ranker = xgb.XGBRanker(
        objective="rank:ndcg",
        eval_metric=["ndcg@5", "map"],
        n_estimators=10,
        learning_rate=0.3,
        max_depth=3,
        n_jobs=1,
        random_state=0,
    )
    ranker.fit(X, y > 1, qid=qid, eval_set=[(X_test, y_test > 1)], eval_qid=[qid_test], verbose=False)
    history = ranker.evals_result()["validation_0"]
    for ndcg, precision in zip(history["ndcg@5"], history["map"]):
        print(f"ndcg@5 {ndcg:.6f} map {precision:.6f}")
    scores = ranker.predict(X_test)
    first = [y_test[qid_test == query][np.argmax(scores[qid_test == query])] for query in range(20)]
    print(f"mean relevance of the first answer {np.mean(first):.4f} of any {y_test.mean():.4f}")
    np.savetxt("scores.txt", scores, fmt="%.6f")
    ranker.save_model("ranker.json")
