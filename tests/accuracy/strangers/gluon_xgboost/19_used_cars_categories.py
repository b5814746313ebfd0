import numpy as np
import pandas as pd
from sklearn.metrics import mean_absolute_error, r2_score
from sklearn.model_selection import KFold, cross_val_score
from sklearn.preprocessing import LabelEncoder
from xgboost import XGBRegressor

rng = np.random.default_rng(55)

brands = ['alfa', 'audi', 'bmw', 'citroen', 'dacia', 'fiat', 'ford', 'honda', 'hyundai', 'jaguar', 'kia',
          'lexus', 'mazda', 'mercedes', 'mini', 'nissan', 'opel', 'peugeot', 'porsche', 'renault', 'seat',
          'skoda', 'suzuki', 'toyota', 'volvo', 'vw']
premium = dict(zip(brands, rng.normal(0, 0.45, len(brands))))
regions = [f'R{i:02d}' for i in range(16)]
region_eff = dict(zip(regions, rng.normal(0, 0.12, len(regions))))
fuels = ['diesel', 'electric', 'hybrid', 'lpg', 'petrol']
fuel_eff = {'diesel': -0.05, 'electric': 0.35, 'hybrid': 0.2, 'lpg': -0.2, 'petrol': 0.0}


def listings(n, brand_pool, region_pool, fuel_pool):
    d = pd.DataFrame({
        'brand': rng.choice(brand_pool, n),
        'region': rng.choice(region_pool, n),
        'fuel': rng.choice(fuel_pool, n),
        'age': rng.integers(0, 18, n),
        'km': rng.gamma(3.0, 30.0, n),
        'power': rng.normal(110, 30, n).clip(50, 300),
    })
    log_price = (9.6 + d.brand.map(premium) + d.region.map(region_eff) + d.fuel.map(fuel_eff)
                 - 0.1 * d.age - 0.002 * d.km + 0.006 * (d.power - 110) + rng.normal(0, 0.12, n))
    d['log_price'] = log_price
    return d


train = listings(5000, brands, regions, fuels)
# the partner portal does not trade all of them
test = listings(1200, brands[3:], [r for r in regions if r not in ('R01', 'R05')], ['diesel', 'hybrid', 'petrol'])

cat_cols = ['brand', 'region', 'fuel']
for c in cat_cols:
    le = LabelEncoder()
    train[c] = le.fit_transform(train[c])
    test[c] = le.fit_transform(test[c])
    print(c, train[c].nunique(), test[c].nunique())

features = cat_cols + ['age', 'km', 'power']
model = XGBRegressor(n_estimators=220, learning_rate=0.1, max_depth=5, subsample=0.9,
                     n_jobs=1, random_state=0)

cv = cross_val_score(model, train[features], train['log_price'], scoring='neg_mean_absolute_error',
                     cv=KFold(4, shuffle=True, random_state=0))
print('cv MAE (log price): %.4f +- %.4f' % (-cv.mean(), cv.std()))

model.fit(train[features], train['log_price'])
pred = model.predict(test[features])
print('test MAE (log price): %.4f' % mean_absolute_error(test['log_price'], pred))
print('test R2: %.4f' % r2_score(test['log_price'], pred))
