"""The collection ``usage`` of Keras, of fit and of loops with a GradientTape: what losses are given, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

import smd_agent.tensorflow as smd

keras = tf.keras
layers = keras.layers

pytestmark = [
    # Keras 2.15 draws seeds in a way that Python warns of.
    pytest.mark.filterwarnings("ignore:non-integer arguments to randrange:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*from_logits:UserWarning"),
]

WAYS = {"compiled": {}, "eager": {"run_eagerly": True}, "xla": {"jit_compile": True}}
X = np.random.RandomState(0).rand(12, 4).astype("f4")
Y = np.array([0, 2, 2, 1] * 3)
SPARSE = "loss/SparseCategoricalCrossentropy_0"


def hooked(out, collections=("usage",), every=1):
    return smd.KerasHook(out, save_config=smd.SaveConfig(save_interval=every), include_collections=[*collections])


def saved(hook, mode=smd.modes.TRAIN):
    """All numbers of the collection, by name, of each step of a mode."""
    hook.close()
    trial = smd.create_trial(hook.out_dir)
    found = {}
    for name in trial.tensor_names(collection="usage"):
        tensor = trial.tensor(name)
        values = [tensor.value(step, mode=mode) for step in tensor.steps(mode=mode)]
        assert {value.shape for value in values} <= {()}
        found[name.removeprefix("usage/")] = [float(value) for value in values]
    return found


def set_floats(dtype):
    keras.backend.set_floatx(dtype)
    # Keras 3 asks for it once, when the first layer is made.
    keras.mixed_precision.set_global_policy(dtype)


def of(found, loss, step=0):
    return {name.rpartition("/")[2]: values[step] for name, values in found.items() if name.startswith(f"{loss}/")}


def model_of(last=None, units=3, loss=None, **options):
    keras.utils.set_random_seed(0)
    model = keras.Sequential([layers.Input((4,)), layers.Dense(5, "relu"), layers.Dense(units, last)])
    model.compile(keras.optimizers.SGD(0.1), loss, **{"jit_compile": False, **options})
    return model


def fit(model, x=X, y=Y, **options):
    return model.fit(x, y, **{"batch_size": 4, "shuffle": False, "verbose": 0, "epochs": 1, **options})


def predicted(model, x):
    return model(x).numpy()


OF_LABELS = {"expects_logits": 0, "classes": 3, "labels": 4, "label_min": 0, "label_max": 2, "ignored": 0}
OF_LABELS |= {"top_label": np.bincount(Y[:4]).argmax(), "top_share": np.bincount(Y[:4]).max() / 4}


@pytest.mark.parametrize("way", WAYS)
def test_logits_that_a_loss_takes_for_probabilities(out, way):
    model = model_of(loss=keras.losses.SparseCategoricalCrossentropy(), **WAYS[way])
    y = predicted(model, X[:4])
    hook = hooked(out)
    fit(model)
    found = of(saved(hook), SPARSE)
    expected = {**OF_LABELS, "loss": float(keras.losses.SparseCategoricalCrossentropy()(Y[:4], y))}
    if way != "eager":
        expected |= {"activated": 0, "linear": 1}
    if way != "xla":
        expected |= {"input_min": y.min(), "input_max": y.max(), "row_sum_error": abs(y.sum(1) - 1).max()}
    assert {name: found[name] for name in expected} == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("last", ["softmax", "a layer"])
def test_probabilities_that_a_loss_takes_for_logits(out, way, last):
    model = model_of("softmax" if last == "softmax" else None, **WAYS[way])
    if last == "a layer":
        model.add(layers.Softmax())
    model.compile(keras.optimizers.SGD(0.1), keras.losses.SparseCategoricalCrossentropy(from_logits=True), **WAYS[way])
    hook = hooked(out)
    fit(model)
    found = of(saved(hook), SPARSE)
    assert (found["expects_logits"], found["activated"], found["undone"]) == (1, 1, 1)


@pytest.mark.parametrize("way", ["compiled", "eager"])
def test_keras_undoes_it_in_another_type_of_numbers_too(out, way):
    set_floats("float64")
    try:
        test_probabilities_that_a_loss_takes_for_logits(out, way, "softmax")
    finally:
        set_floats("float32")


@pytest.mark.parametrize("way", ["compiled", "eager"])
def test_what_stands_between_the_two_keeps_keras_from_undoing_it(out, way):
    model = model_of("softmax", **WAYS[way])
    model.add(layers.Reshape((3,)))
    model.compile(keras.optimizers.SGD(0.1), keras.losses.SparseCategoricalCrossentropy(from_logits=True), **WAYS[way])
    hook = hooked(out)
    fit(model)
    found = of(saved(hook), SPARSE)
    assert "undone" not in found
    assert found["row_sum_error"] < 1e-5
    assert found["input_min"] > 0


LOSSES = {
    "categorical_crossentropy": ("categorical_crossentropy", "softmax", np.eye(3, dtype="f4")[Y]),
    "CategoricalCrossentropy": (lambda: keras.losses.CategoricalCrossentropy(), "softmax", np.eye(3, dtype="f4")[Y]),
    "sparse_categorical_crossentropy": ("sparse_categorical_crossentropy", "softmax", Y[:, None].astype("f4")),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses_by_name_and_by_class_in_training_and_evaluation(out, name):
    loss, last, y = LOSSES[name]
    model = model_of(last, loss=loss if isinstance(loss, str) else loss())
    hook = hooked(out)
    fit(model, y=y, validation_data=(X[:8], y[:8]))
    for mode, steps in ((smd.modes.TRAIN, 3), (smd.modes.EVAL, 2)):
        found = saved(hook, mode)
        assert found[f"loss/{name}_0/labels"] == [4] * steps
        assert found[f"loss/{name}_0/label_max"] == [2] * steps
        assert found[f"loss/{name}_0/activated"] == [1] * steps
        assert max(found[f"loss/{name}_0/row_sum_error"]) < 1e-5


def test_labels_that_xla_makes_nan_of(out):
    model = model_of(loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=True)
    hook = hooked(out)
    fit(model, y=Y + 1)
    found = of(saved(hook), SPARSE)
    assert (found["label_min"], found["label_max"], found["classes"]) == (1, 3, 3)


def test_labels_that_are_soft_ignored_or_of_yes_and_no(out):
    hook = hooked(out)
    soft = np.full((12, 3), 1 / 3, "f4")
    fit(model_of("softmax", loss=keras.losses.CategoricalCrossentropy()), y=soft)
    fit(model_of("sigmoid", 1, keras.losses.BinaryCrossentropy()), y=(Y > 1).astype("f4"))
    fit(model_of(loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=2)))
    fit(model_of(loss=lambda y_true, y_pred: tf.reduce_mean(y_pred)))
    found = saved(hook)
    assert "labels" not in of(found, "loss/CategoricalCrossentropy_0")
    binary = of(found, "loss/BinaryCrossentropy_0")
    assert binary.keys() == {"expects_logits", "activated", "linear", "swapped", "input_min", "input_max", "loss"}
    assert of(found, "loss/CategoricalCrossentropy_0")["softmax_over"] == 3
    ignored = of(found, SPARSE)
    assert [ignored[name] for name in ("labels", "label_max", "ignored")] == [2, 1, 0.5]
    assert len({name.split("/")[1] for name in found if name.startswith("loss/")}) == 3


def guess_of(own, known):
    return -sum(p * np.log(q) for p, q in zip(own, known, strict=True) if p)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("hot", [False, True])
def test_what_a_guess_would_cost(out, way, hot):
    labels = np.random.RandomState(2).choice(3, 80, p=[0.6, 0.3, 0.1])
    y = np.eye(3, dtype="f4")[labels] if hot else labels
    model = model_of(
        "softmax", loss="categorical_crossentropy" if hot else "sparse_categorical_crossentropy", **WAYS[way]
    )
    hook = hooked(out, ("usage", "losses"))
    fit(model, x=np.zeros((80, 4), "f4"), y=y, batch_size=16)
    found = saved(hook)
    name = "loss/categorical_crossentropy_0" if hot else "loss/sparse_categorical_crossentropy_0"
    trial = smd.create_trial(hook.out_dir)
    losses = [float(trial.tensor("batch_loss").value(step, mode=smd.modes.TRAIN)) for step in range(5)]
    assert found[f"{name}/loss"] == pytest.approx(losses)
    shares = [np.bincount(labels[:end], minlength=3) / end for end in (64, 80)]
    own = [np.bincount(labels[end - 16 : end], minlength=3) / 16 for end in (64, 80)]
    assert found[f"{name}/guess"] == pytest.approx([*map(guess_of, own, shares)], rel=1e-5)
    assert found[f"{name}/least"] == [0, 0]


def test_another_model_has_labels_of_its_own(out):
    hook = hooked(out)
    labels = np.arange(96) % 3
    first, second = (model_of("softmax", loss="sparse_categorical_crossentropy") for _ in range(2))
    for model in (first, first, second):
        fit(model, x=np.zeros((96, 4), "f4"), y=labels, batch_size=32)
    hook.close()
    guess = smd.create_trial(out).tensor("usage/loss/sparse_categorical_crossentropy_0/guess")
    # Twice 60 labels are needed, and of the first step of another model there is none.
    assert guess.steps(mode=smd.modes.TRAIN) == [1, 2, 3, 4, 5, 7, 8]


def test_a_guess_of_yes_and_no(out):
    labels = (np.arange(96) % 3 == 0).astype("f4")
    hook = hooked(out)
    fit(model_of("sigmoid", 1, "binary_crossentropy"), x=np.zeros((96, 4), "f4"), y=labels, batch_size=48)
    found = saved(hook)
    assert found["loss/binary_crossentropy_0/guess"] == pytest.approx([guess_of((1 / 3, 2 / 3), (1 / 3, 2 / 3))] * 2)
    assert found["loss/binary_crossentropy_0/least"] == [0, 0]


@pytest.mark.parametrize("how", ["weights", "a sum", "masked"])
def test_a_loss_that_is_no_mean_over_labels_has_none_by_label(out, how):
    loss = keras.losses.SparseCategoricalCrossentropy(reduction="sum" if how == "a sum" else "sum_over_batch_size")
    hook = hooked(out)
    if how == "masked":
        keras.utils.set_random_seed(0)
        model = keras.Sequential([layers.Input((4, 1)), layers.Masking(), layers.Dense(3, "softmax")])
        model.compile("sgd", loss, jit_compile=False)
        fit(model, x=X[..., None], y=np.stack([Y] * 4, 1))
    else:
        weights = {"sample_weight": np.arange(12)} if how == "weights" else {}
        fit(model_of("softmax", loss=loss), **weights)
    found = of(saved(hook), SPARSE)
    assert "labels" in found
    assert "loss" not in found


TARGETS = (3 * np.random.RandomState(1).rand(12, 1) - 1).astype("f4")
OF_NUMBERS = {
    "mse": ("mse", "mean_squared_error", "sigmoid", (0, 1)),
    "MeanSquaredError": (lambda: keras.losses.MeanSquaredError(), "MeanSquaredError", "tanh", (-1, 1)),
    "mae": ("mae", "mean_absolute_error", "relu", (0, None)),
    "Huber": (lambda: keras.losses.Huber(), "Huber", "softplus", (0, None)),
    "Poisson": (lambda: keras.losses.Poisson(), "Poisson", "exponential", (0, None)),
}


def reach_of(part, ends):
    low, high = (bound if end is None else end for end, bound in zip(ends, (-np.inf, np.inf), strict=True))
    expected = {
        "target_min": part.min(),
        "target_max": part.max(),
        "out_of_reach": ((part < low) | (part > high)).mean(),
    }
    return {
        **expected,
        **{f"reach_{name}": end for name, end in zip(("min", "max"), ends, strict=True) if end is not None},
    }


@pytest.mark.parametrize("way", ["compiled", "xla"])
@pytest.mark.parametrize("name", OF_NUMBERS)
def test_targets_of_losses_of_numbers_behind_an_activation(out, name, way):
    loss, title, activation, ends = OF_NUMBERS[name]
    model = model_of(activation, 1, loss if isinstance(loss, str) else loss(), **WAYS[way])
    hook = hooked(out)
    fit(model, y=TARGETS, validation_data=(X[:8], TARGETS[:8]))
    for mode in (smd.modes.TRAIN, smd.modes.EVAL):
        found = of(saved(hook, mode), f"loss/{title}_0", 1)
        assert found == pytest.approx(reach_of(TARGETS[4:8], ends), rel=1e-6)


def test_there_are_none_where_nothing_bounds_the_prediction(out):
    hook = hooked(out)
    fit(model_of(None, 1, "mse"), y=TARGETS)
    # Which operation has made a tensor of an eager step is not known.
    fit(model_of("sigmoid", 1, "mse", run_eagerly=True), y=TARGETS)
    fit(model_of("sigmoid", 1, lambda y_true, y_pred: tf.reduce_mean((y_true - y_pred) ** 2)), y=TARGETS)
    own = "loss/own_loss_0/"
    names = {name for name in saved(hook) if name.startswith("loss/")}
    assert names <= {f"{own}input_repeated", f"{own}target_repeated"}


def test_targets_of_a_loop_with_a_tape(out):
    hook = hooked(out)
    criterion = keras.losses.MeanSquaredError()
    step = loop_of("compiled", model_of("sigmoid", 1), criterion, keras.optimizers.SGD(0.1), hook)
    for number in range(3):
        batch = slice(4 * number, 4 * number + 4)
        step(tf.constant(X[batch]), tf.constant(TARGETS[batch]))
    found = saved(hook)
    for number in range(3):
        part = TARGETS[4 * number : 4 * number + 4]
        assert of(found, "loss/MeanSquaredError_0", number) == pytest.approx(reach_of(part, (0, 1)), rel=1e-6)


def test_two_outputs_have_a_loss_each(out):
    inputs = layers.Input((4,))
    model = keras.Model(inputs, [layers.Dense(3)(inputs), layers.Dense(5, "softmax")(inputs)])
    criterion = keras.losses.SparseCategoricalCrossentropy
    model.compile("sgd", [criterion(from_logits=True), criterion()], jit_compile=False)
    hook = hooked(out)
    fit(model, y=[Y, Y + 2])
    found = saved(hook)
    first, second = of(found, SPARSE), of(found, "loss/SparseCategoricalCrossentropy_1")
    assert [(one["classes"], one["label_max"], one["expects_logits"]) for one in (first, second)] == [
        (3, 2, 1),
        (5, 4, 0),
    ]


def loop_of(way, model, criterion, optimizer, hook):
    def step(x, y):
        with hook.wrap_tape(tf.GradientTape()) if hook else tf.GradientTape() as tape:
            loss = criterion(y, model(x, training=True))
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    return step if way == "eager" else tf.function(step, jit_compile=way == "xla")


def test_the_first_step_of_a_second_run_has_what_its_loss_was_given(out):
    def train(hook, steps):
        model = model_of()
        step = loop_of("eager", model, keras.losses.SparseCategoricalCrossentropy(), keras.optimizers.SGD(0.1), hook)
        first = predicted(model, X[:4])
        for number in range(steps):
            batch = slice(4 * number, 4 * number + 4)
            step(tf.constant(X[batch]), tf.constant(Y[batch]))
        return first

    before = hooked(f"{out}-before", every=100)
    train(before, 3)
    before.close()
    hook = hooked(out, every=2)
    first = train(hook, 3)
    assert of(saved(hook), SPARSE)["input_min"] == pytest.approx(first.min())


@pytest.mark.parametrize("way", WAYS)
def test_loops_with_a_tape(out, way):
    def run(hook):
        model = model_of()
        criterion = keras.losses.SparseCategoricalCrossentropy()
        step = loop_of(way, model, criterion, keras.optimizers.SGD(0.1), hook)
        first = predicted(model, X[:4])
        for number in range(6):
            batch = slice(4 * (number % 3), 4 * (number % 3) + 4)
            step(tf.constant(X[batch]), tf.constant(Y[batch]))
            # Computed while no tape records: it is not trained.
            criterion(Y, model(X))
        return first, [variable.numpy() for variable in model.trainable_variables]

    _, plain = run(None)
    hook = hooked(out, ("usage", "weights"), every=2)
    first, ours = run(hook)
    for one, other in zip(plain, ours, strict=True):
        np.testing.assert_array_equal(one, other)
    found = saved(hook, smd.modes.TRAIN)
    expected = {**OF_LABELS}
    if way != "eager":
        expected |= {"activated": 0, "linear": 1}
    if way != "xla":
        expected |= {"loss": float(keras.losses.SparseCategoricalCrossentropy()(Y[:4], first))}
        expected |= {"input_min": first.min(), "input_max": first.max()}
        expected |= {"row_sum_error": abs(first.sum(1) - 1).max()}
    told = of(found, SPARSE)
    assert {name: told[name] for name in expected} == pytest.approx(expected, rel=1e-5)
    assert {len(values) for values in found.values()} == {3}


@pytest.mark.parametrize("way", ["compiled", "xla"])
def test_a_training_is_the_same_bit_for_bit(out, way):
    def run(hook=None):
        model = model_of("softmax", loss="sparse_categorical_crossentropy", **WAYS[way])
        fit(model, callbacks=[hook] if hook else [], epochs=2)
        return [np.asarray(value) for value in model.get_weights()]

    plain = run()
    hook = hooked(out, every=2)
    ours = run(hook)
    assert len(saved(hook)["loss/sparse_categorical_crossentropy_0/labels"]) == 3
    for one, other in zip(plain, ours, strict=True):
        np.testing.assert_array_equal(one, other)


def test_nothing_is_saved_unasked(out):
    hook = hooked(out, ["weights"])
    fit(model_of(loss=keras.losses.SparseCategoricalCrossentropy()))
    hook.close()
    assert smd.create_trial(hook.out_dir).tensor_names(regex="^usage/") == []
