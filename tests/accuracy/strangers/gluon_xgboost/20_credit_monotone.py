import argparse

import numpy as np
import pandas as pd
import xgboost as xgb
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold


def get_args():
    ap = argparse.ArgumentParser()
    ap.add_argument('--rows', type=int, default=8000)
    ap.add_argument('--rounds', type=int, default=120)
    ap.add_argument('--folds', type=int, default=4)
    ap.add_argument('--seed', type=int, default=6)
    return ap.parse_args()


def applications(n, seed):
    r = np.random.RandomState(seed)
    inc = r.lognormal(3.4, 0.5, n)
    debt = r.beta(2, 4, n)
    late = r.poisson(0.7, n)
    hist = r.gamma(2, 40, n)
    age = r.uniform(20, 75, n)
    z = (-1.4 - 0.8 * (np.log(inc) - 3.4) + 2.5 * (debt - 0.33) + 0.55 * late
         - 0.011 * (hist - 80) + 0.0009 * (age - 47) ** 2)
    y = r.binomial(1, 1 / (1 + np.exp(-z)))
    raw = {'income': inc, 'debt_ratio': debt, 'late_payments': late, 'history_months': hist, 'age': age}
    frame = pd.DataFrame(raw)
    frame = frame.reindex(sorted(frame.columns), axis=1)
    frame['default'] = y
    return frame


def check_direction(bst, X, col):
    grid = np.quantile(X[col], [0.05, 0.5, 0.95])
    out = []
    for v in grid:
        Z = X.copy()
        Z[col] = v
        out.append(bst.predict(xgb.DMatrix(Z)).mean())
    return ' -> '.join('%.3f' % o for o in out)


def main():
    args = get_args()
    df = applications(args.rows, args.seed)
    X, y = df.drop(columns='default'), df['default']

    params = {
        'objective': 'binary:logistic',
        'eval_metric': 'auc',
        'tree_method': 'hist',
        'eta': 0.06,
        'max_depth': 4,
        'min_child_weight': 10,
        'nthread': 1,
        'seed': args.seed,
        # income, debt_ratio, late_payments, history_months fixed by risk dept, age free
        'monotone_constraints': (-1, 1, 1, -1, 0),
    }
    aucs = []
    for fold, (a, b) in enumerate(StratifiedKFold(args.folds, shuffle=True, random_state=args.seed).split(X, y)):
        dtr = xgb.DMatrix(X.iloc[a], label=y.iloc[a])
        dva = xgb.DMatrix(X.iloc[b], label=y.iloc[b])
        bst = xgb.train(params, dtr, args.rounds, evals=[(dtr, 'train'), (dva, 'valid')], verbose_eval=False)
        aucs.append(roc_auc_score(y.iloc[b], bst.predict(dva)))
        print('fold %d auc %.4f' % (fold, aucs[-1]))
    print('mean auc %.4f (std %.4f)' % (np.mean(aucs), np.std(aucs)))

    final = xgb.train(params, xgb.DMatrix(X, label=y), args.rounds)
    for c in X.columns:
        print('%-15s' % c, check_direction(final, X, c))


if __name__ == '__main__':
    main()
