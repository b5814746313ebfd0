import numpy as np
import pandas as pd
import xgboost as xgb
from sklearn.metrics import ndcg_score


def make_log(n_queries, seed):
    r = np.random.RandomState(seed)
    rows = []
    for q in range(n_queries):
        n_docs = r.randint(8, 25)
        hard = r.normal(0, 2.0)
        x = r.normal(size=(n_docs, 6))
        util = x[:, 0] + 0.8 * x[:, 1] + 0.6 * np.tanh(x[:, 3] * x[:, 4]) + r.normal(0, 0.6, n_docs)
        rel = np.digitize(util, [0.0, 1.2, 2.2])
        x[:, 0] += hard
        x[:, 1] += 0.7 * hard
        block = pd.DataFrame(x, columns=['bm25', 'title_match', 'doc_len', 'freshness', 'clicks', 'pagerank'])
        block['query_id'] = q
        block['rel'] = rel
        rows.append(block)
    return pd.concat(rows, ignore_index=True)


FEATURES = ['bm25', 'title_match', 'doc_len', 'freshness', 'clicks', 'pagerank']


def to_dmatrix(frame):
    sizes = frame.groupby('query_id').size().to_numpy()
    d = xgb.DMatrix(frame[FEATURES], label=frame['rel'])
    d.set_group(sizes)
    return d


def mean_ndcg(booster, frame, k=5):
    scores = booster.predict(xgb.DMatrix(frame[FEATURES]))
    vals = []
    for _, idx in frame.groupby('query_id').indices.items():
        rel = frame['rel'].to_numpy()[idx]
        if rel.max() > 0:
            vals.append(ndcg_score([rel], [scores[idx]], k=k))
    return float(np.mean(vals))


train = make_log(500, 1)
valid = make_log(150, 2)
train = train.sample(frac=1, random_state=3).reset_index(drop=True)
dtrain, dvalid = to_dmatrix(train), to_dmatrix(valid)

params = {
    'objective': 'rank:ndcg',
    'eval_metric': 'ndcg@5',
    'eta': 0.1,
    'max_depth': 4,
    'min_child_weight': 1,
    'nthread': 1,
    'seed': 0,
}
booster = xgb.train(params, dtrain, num_boost_round=120,
                    evals=[(dtrain, 'train'), (dvalid, 'valid')], verbose_eval=20)
print('NDCG@5 train %.4f' % mean_ndcg(booster, train))
print('NDCG@5 valid %.4f' % mean_ndcg(booster, valid))
