"""What a loop with a GradientTape, a session or a step of fit cannot have is said with its reason, once."""

from __future__ import annotations

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

import smd_agent.tensorflow as smd

v1 = tf.compat.v1
keras = tf.keras
layers = keras.layers

pytestmark = [
    # Keras 2.15 draws seeds in a way that Python warns of.
    pytest.mark.filterwarnings("ignore:non-integer arguments to randrange:DeprecationWarning"),
]

OF_MODELS = ["inputs", "outputs", "layers", "input_digests"]
OF_OPTIMIZERS = ["optimizer_variables", "updates", "optimizer", "parameters"]
ASKED = [*OF_MODELS, *OF_OPTIMIZERS, "usage"]
X = np.random.RandomState(0).rand(12, 4).astype("f4")


def hooked(out, kind=smd.KerasHook):
    return kind(out, save_config=smd.SaveConfig(save_interval=1), include_collections=[*ASKED])


def ended(hook, capsys):
    """The reasons that are said at the end, each with its collections, and those that the run tells."""
    hook.close()
    start, middle = "smd_agent: no tensor of ", " came up in a step that was saved"
    lines = [line.removeprefix(start) for line in capsys.readouterr().err.splitlines() if line.startswith(start)]
    said = {
        why.removeprefix(": "): {*names.split(", ")} for names, _, why in (line.partition(middle) for line in lines)
    }
    assert len(said) == len(lines)
    return said, smd.create_trial(hook.out_dir).collection_manager.cannot_save


NO_MODEL = "of a loop with a GradientTape only models of Keras's are known, and no layers"
NO_USAGE = (
    "of a loop with a GradientTape it is known where a loss of Keras's is called as an object, or the loss compares"
    " two tensors"
)


@pytest.mark.parametrize("wrap", [lambda step: step, tf.function], ids=["eager", "compiled"])
def test_a_loop_with_a_tape_that_updates_by_hand(out, capsys, wrap):
    hook, w = hooked(out), tf.Variable(np.ones((4, 1), "f4"))

    @wrap
    def step():
        with hook.wrap_tape(tf.GradientTape()) as tape:
            loss = tf.reduce_mean((X @ w) ** 2)
        w.assign_sub(0.1 * tape.gradient(loss, w))

    step()
    step()
    said, noted = ended(hook, capsys)
    no_optimizer = "no optimizer of Keras's was called"
    assert said == {NO_MODEL: {*OF_MODELS}, no_optimizer: {*OF_OPTIMIZERS}, NO_USAGE: {"usage"}}
    assert noted["updates"] == no_optimizer


def test_a_loop_with_a_tape_and_an_optimizer_has_what_is_of_optimizers(out, capsys):
    hook, w = hooked(out), tf.Variable(np.ones((4, 1), "f4"))
    optimizer = keras.optimizers.SGD(0.1)
    for _ in range(2):
        with hook.wrap_tape(tf.GradientTape()) as tape:
            loss = tf.reduce_mean((X @ w) ** 2)
        optimizer.apply_gradients([(tape.gradient(loss, w), w)])
    said, _ = ended(hook, capsys)
    not_wrapped = "of a loop with a GradientTape they are those of optimizers that hook.wrap_optimizer is given"
    assert said == {NO_MODEL: {*OF_MODELS}, not_wrapped: {"optimizer_variables"}, NO_USAGE: {"usage"}}


def test_variables_that_a_script_names_are_saved_with_a_tape(out, capsys):
    hook, w, momentum = hooked(out), tf.Variable([1.0, 2.0]), tf.Variable([0.0, 0.0], name="momentum")
    hook.set_optimizer_variables([momentum])
    with hook.wrap_tape(tf.GradientTape()) as tape:
        loss = tf.reduce_sum(w**2)
    tape.gradient(loss, w)
    said, _ = ended(hook, capsys)
    assert not any("optimizer_variables" in names for names in said.values())
    assert smd.create_trial(out).tensor_names(collection="optimizer_variables") == ["momentum:0"]


def test_a_session_has_what_is_of_its_optimizer_and_nothing_of_a_model(out, capsys):
    hook = hooked(out, smd.SessionHook)
    with tf.Graph().as_default():
        x = v1.placeholder(tf.float32, [None, 4])
        loss = tf.reduce_mean((x @ v1.get_variable("w", [4, 1])) ** 2)
        train = v1.train.AdamOptimizer(0.1).minimize(loss)
        with v1.train.MonitoredSession(hooks=[hook]) as session:
            for _ in range(2):
                session.run(train, {x: X})
    said, noted = ended(hook, capsys)
    reason = "of a graph that a session runs they are not known"
    assert said == {reason: {*OF_MODELS, "usage"}}
    assert noted["usage"] == reason
    saved = smd.create_trial(out).tensor_names(collection="optimizer_variables")
    assert {"w/Adam:0", "w/Adam_1:0"} <= {*saved}


@pytest.mark.parametrize("way", [{}, {"run_eagerly": True}], ids=["compiled", "eager"])
def test_fit_with_inputs_that_are_no_numbers_and_a_loss_of_the_program(out, capsys, way):
    hook = hooked(out)
    model = keras.Sequential([layers.Input((4,), dtype="bool"), layers.Embedding(3, 2), layers.Flatten()])
    model.compile("sgd", lambda y_true, y_pred: y_pred**2, **way)
    model.fit(X > 0.5, X[:, 0], batch_size=6, verbose=0)
    said, _ = ended(hook, capsys)
    # There is the mode of the model, and nothing else.
    assert said == {}
    assert {name.rpartition("/")[2] for name in smd.create_trial(out).tensor_names(collection="usage")} == {"training"}


class Parts(keras.Model):
    """Calls a layer in its step, and never itself."""

    def __init__(self):
        super().__init__()
        self.part = layers.Dense(1)
        self.part.build((None, 4))

    def call(self, x):
        return self.part(x)

    def train_step(self, data):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(self.part(data[0]) ** 2)
        variables = self.part.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return {"loss": loss}


@pytest.mark.parametrize("way", [{}, {"run_eagerly": True}], ids=["compiled", "eager"])
def test_a_step_of_fit_that_calls_parts_of_its_model(out, capsys, way):
    # In a run before, inputs were out of reach, as they are in a loop that Keras has compiled.
    whole = keras.Sequential([keras.Input((4,)), layers.Dense(1)])
    whole.compile("sgd", "mse", steps_per_execution=2)
    first = hooked(f"{out}-before")
    whole.fit(X, X[:, 0], batch_size=3, verbose=0)
    ended(first, capsys)
    hook, model = hooked(out), Parts()
    model.compile("sgd", **way)
    model.fit(X, X[:, 0], batch_size=6, verbose=0)
    said, _ = ended(hook, capsys)
    assert said["a step of fit does not call the model, but parts of it"] == {"inputs", "outputs", "input_digests"}
    no_usage = "of fit it is known of models that a step calls, of cross entropies, and of losses behind an activation"
    assert said[no_usage] == {"usage"}
