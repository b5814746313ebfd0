import numpy as np
import pandas as pd
import xgboost as xgb
from sklearn.metrics import mean_absolute_error
from sklearn.model_selection import TimeSeriesSplit

np.random.seed(10)
N_STORES, N_DAYS, LIVE = 12, 500, 40


def make_sales():
    frames = []
    for s in range(N_STORES):
        t = np.arange(N_DAYS)
        base = np.random.uniform(40, 120)
        promo = np.random.binomial(1, 0.15, N_DAYS)
        lam = base * (1 + 0.25 * np.sin(2 * np.pi * t / 7 + s)) * (1 + 0.4 * promo)
        lam = lam * np.exp(pd.Series(np.random.normal(0, 0.3, N_DAYS)).ewm(span=10).mean().to_numpy())
        frames.append(pd.DataFrame({'store': s, 'day': t, 'promo': promo,
                                    'sales': lam * np.random.lognormal(0, 0.2, N_DAYS)}))
    return pd.concat(frames, ignore_index=True)


def add_features(df):
    df = df.sort_values(['store', 'day']).copy()
    g = df.groupby('store')['sales']
    df['dow'] = df['day'] % 7
    for lag in (1, 7, 14):
        df[f'lag_{lag}'] = g.shift(lag)
    df['roll_3'] = g.transform(lambda s: s.rolling(3, min_periods=1).mean())
    df['roll_14'] = g.transform(lambda s: s.rolling(14, min_periods=1).mean())
    return df


sales = make_sales()
FEATS = ['store', 'promo', 'dow', 'lag_1', 'lag_7', 'lag_14', 'roll_3', 'roll_14']
history = add_features(sales[sales.day < N_DAYS - LIVE]).dropna().sort_values('day')
params = {'objective': 'reg:squarederror', 'eta': 0.06, 'max_depth': 4, 'subsample': 0.8,
          'min_child_weight': 5, 'nthread': 1, 'seed': 0}

scores = []
days = np.sort(history.day.unique())
for k, (a, b) in enumerate(TimeSeriesSplit(n_splits=4).split(days)):
    tr, va = history[history.day.isin(days[a])], history[history.day.isin(days[b])]
    m = xgb.train(params, xgb.DMatrix(tr[FEATS], tr.sales), num_boost_round=120)
    scores.append(mean_absolute_error(va.sales, m.predict(xgb.DMatrix(va[FEATS]))))
    print('fold', k, 'train', len(tr), 'valid', len(va), 'MAE %.3f' % scores[-1])
print('CV MAE %.3f' % np.mean(scores))

model = xgb.train(params, xgb.DMatrix(history[FEATS], history.sales), num_boost_round=120)

# live: every morning predict today, today's sales are not there yet
errs = []
for d in range(N_DAYS - LIVE, N_DAYS):
    window = sales[(sales.day <= d) & (sales.day > d - 30)].copy()
    actual = window.loc[window.day == d].sort_values('store').sales.to_numpy()
    window.loc[window.day == d, 'sales'] = np.nan
    today = add_features(window)
    today = today[today.day == d].sort_values('store')
    errs.append(np.abs(model.predict(xgb.DMatrix(today[FEATS])) - actual).mean())
print('live MAE over %d days: %.3f' % (LIVE, np.mean(errs)))
