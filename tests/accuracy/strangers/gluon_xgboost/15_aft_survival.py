import numpy as np
import xgboost as xgb
from sklearn.model_selection import train_test_split

rng = np.random.default_rng(31)


def cohort(n):
    age = rng.uniform(35, 85, n)
    stage = rng.integers(1, 5, n)
    marker = rng.normal(0, 1, n)
    treated = rng.binomial(1, 0.5, n)
    bmi = rng.normal(27, 4, n)
    x = np.column_stack([age, stage, marker, treated, bmi])
    mu = 5.0 - 0.025 * (age - 60) - 0.45 * (stage - 2) - 0.4 * np.maximum(marker, 0) + 0.6 * treated * (stage < 4)
    true_time = np.exp(mu + 0.5 * rng.normal(size=n))
    # treated patients entered the study late, so their follow-up is short
    follow_up = np.where(treated == 1, rng.uniform(10, 120, n), rng.uniform(60, 500, n))
    observed = np.minimum(true_time, follow_up)
    event = (true_time <= follow_up).astype(int)
    return x, observed, event, true_time


def make_dmatrix(x, observed, event):
    d = xgb.DMatrix(x, feature_names=['age', 'stage', 'marker', 'treated', 'bmi'])
    lower = observed
    upper = observed.copy()
    d.set_float_info('label_lower_bound', lower)
    d.set_float_info('label_upper_bound', upper)
    return d


def concordance(time, score):
    i, j = np.triu_indices(len(time), 1)
    s = np.sign(time[i] - time[j]) * np.sign(score[i] - score[j])
    return float((s > 0).mean() + 0.5 * (s == 0).mean())


x, observed, event, true_time = cohort(10000)
idx_tr, idx_te = train_test_split(np.arange(len(x)), test_size=0.3, random_state=0)
print('events in train: %.1f%%' % (100 * event[idx_tr].mean()))

dtrain = make_dmatrix(x[idx_tr], observed[idx_tr], event[idx_tr])
dtest = make_dmatrix(x[idx_te], observed[idx_te], event[idx_te])

params = {
    'objective': 'survival:aft',
    'eval_metric': 'aft-nloglik',
    'aft_loss_distribution': 'normal',
    'aft_loss_distribution_scale': 0.6,
    'learning_rate': 0.05,
    'max_depth': 3,
    'min_child_weight': 5,
    'nthread': 1,
}
bst = xgb.train(params, dtrain, num_boost_round=200,
                evals=[(dtrain, 'train'), (dtest, 'test')], verbose_eval=40)

pred = bst.predict(dtest)
tt = true_time[idx_te]
print('median predicted %.1f, median true %.1f' % (np.median(pred), np.median(tt)))
print('mean abs log error %.4f' % np.abs(np.log(pred) - np.log(tt)).mean())
print('concordance with the true times %.4f' % concordance(tt, pred))
