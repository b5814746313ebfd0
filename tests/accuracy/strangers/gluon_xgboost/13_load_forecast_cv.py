import numpy as np
import pandas as pd
from sklearn.metrics import mean_squared_error
from sklearn.model_selection import GridSearchCV, KFold
from xgboost import XGBRegressor

rs = np.random.RandomState(8)

# daily load of a district, four years
days = pd.date_range('2018-01-01', periods=4 * 365, freq='D')
weather = pd.Series(rs.normal(0, 30, len(days))).ewm(span=30).mean().to_numpy()
temp = 11 - 10 * np.cos(2 * np.pi * (days.day_of_year.to_numpy() - 20) / 365.25)
temp = temp + pd.Series(rs.normal(0, 6, len(days))).ewm(span=4).mean().to_numpy()
load = (120 + 0.9 * np.abs(temp - 17) ** 1.3 - 14 * (days.day_of_week.to_numpy() >= 5)
        + weather + rs.normal(0, 3, len(days)))

df = pd.DataFrame({
    'load': load,
    'temp': temp,
    'dow': days.day_of_week,
    'doy': days.day_of_year,
    'year': days.year,
    'heating': np.clip(17 - temp, 0, None),
}, index=days)
df['temp_avg3'] = df['temp'].rolling(3, min_periods=1).mean()

X = df.drop(columns='load')
y = df['load']
cut = pd.Timestamp('2021-01-01')
X_train, y_train = X[X.index < cut], y[y.index < cut]
X_test, y_test = X[X.index >= cut], y[y.index >= cut]
print('train', X_train.shape, 'test', X_test.shape)

grid = {
    'max_depth': [1, 2, 4, 8],
    'min_child_weight': [1, 40],
}
cv = KFold(n_splits=4, shuffle=True, random_state=0)
model = XGBRegressor(n_estimators=120, learning_rate=0.06, subsample=0.8, n_jobs=1, random_state=0)
search = GridSearchCV(model, grid, cv=cv, scoring='neg_root_mean_squared_error', n_jobs=1)
search.fit(X_train, y_train)

for p, m in zip(search.cv_results_['params'], search.cv_results_['mean_test_score']):
    print(p, 'cv rmse %.3f' % -m)
print('selected:', search.best_params_, 'cv rmse %.3f' % -search.best_score_)

pred = search.best_estimator_.predict(X_test)
print('rmse on the last year: %.3f' % np.sqrt(mean_squared_error(y_test, pred)))
