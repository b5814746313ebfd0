"""Keras's recurrent layers that go on through padding: which are found, what is told of the rows, and what is not."""

from __future__ import annotations

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from harness.rule_runs import verdict

import smd_agent.tensorflow as smd
from smd_agent.rules import LastOfPadding

keras = tf.keras
layers = keras.layers

# Keras 2.15 draws seeds in a way that Python warns of.
pytestmark = pytest.mark.filterwarnings("ignore:non-integer arguments to randrange:DeprecationWarning")

TOKENS, LENGTH, ROWS = 20, 12, 8
LENGTHS = (3, 4, 5, 6, 7, 8, 9, LENGTH)


def rows(lengths=LENGTHS, in_front=False):
    """Two batches of rows of these lengths, padded with 0."""
    draw = np.random.RandomState(0)
    found = np.zeros((2 * ROWS, LENGTH), "i4")
    for row, length in enumerate(2 * lengths):
        place = slice(LENGTH - length, None) if in_front else slice(length)
        found[row, place] = draw.permutation(TOKENS - 1)[:length] + 1
    return found


def sequential(*stack, mask=False):
    embedding = layers.Embedding(TOKENS, 4, mask_zero=mask)
    return keras.Sequential([layers.Input((LENGTH,), dtype="int32"), embedding, *stack])


def trained(out, model, x, **options):
    """The folder of a run of eight steps."""
    model.compile("sgd", "mse", **options)
    collections = ["usage", "input_digests"]
    hook = smd.KerasHook(out, save_config=smd.SaveConfig(save_interval=1), include_collections=collections)
    model.fit(x, np.zeros((2 * ROWS, 1)), batch_size=ROWS, epochs=4, shuffle=False, verbose=0, callbacks=[hook])
    hook.close()
    return hook.out_dir


def findings(folder):
    return verdict(smd.create_trial(folder), LastOfPadding()).findings


@pytest.mark.parametrize("options", [{}, {"run_eagerly": True}, {"jit_compile": True}])
@pytest.mark.parametrize("kind", ["SimpleRNN", "LSTM", "GRU"])
def test_the_last_step_after_padding_is_found(out, kind, options):
    folder = trained(out, sequential(getattr(layers, kind)(4, name="reader"), layers.Dense(1)), rows(), **options)
    (found,) = findings(folder)
    assert found.tensor == "usage/layer/reader/last_only"
    assert found.evidence["rows"] == ROWS
    assert found.evidence["padded_rows"] == ROWS - 1
    assert found.evidence["padding"] == pytest.approx(np.mean([LENGTH - length for length in LENGTHS[:-1]]))


def test_behind_other_layers_and_in_a_functional_model_too(out):
    tokens, other = layers.Input((LENGTH,), dtype="int32"), layers.Input((2,))
    steps = layers.LSTM(4, return_sequences=True)(layers.Dropout(0.1)(layers.Embedding(TOKENS, 4)(tokens)))
    last = layers.GRU(4, name="reader")(layers.Dense(4)(layers.LayerNormalization()(steps)))
    model = keras.Model([other, tokens], layers.Dense(1)(layers.Concatenate()([last, other])))
    folder = trained(out, model, [np.zeros((2 * ROWS, 2), "f4"), rows()])
    assert [found.tensor for found in findings(folder)] == ["usage/layer/reader/last_only"]


def test_in_a_model_that_layers_are_added_to(out):
    model = keras.Sequential()
    for layer in (layers.Input((LENGTH,), dtype="int32"), layers.Embedding(TOKENS, 4), layers.GRU(4), layers.Dense(1)):
        model.add(layer)
    assert len(findings(trained(out, model, rows()))) == 1


def test_in_a_model_whose_inputs_are_known_when_it_is_called(out):
    model = keras.Sequential([layers.Embedding(TOKENS, 4), layers.GRU(4), layers.Dense(1)])
    assert len(findings(trained(out, model, rows()))) == 1


RIGHT = {
    "a mask": lambda: sequential(layers.GRU(4), layers.Dense(1), mask=True),
    "read from the end": lambda: sequential(layers.GRU(4, go_backwards=True), layers.Dense(1)),
    "both directions": lambda: sequential(layers.Bidirectional(layers.GRU(4)), layers.Dense(1)),
    "all steps": lambda: sequential(layers.GRU(4, return_sequences=True), layers.GlobalMaxPooling1D(), layers.Dense(1)),
    "no recurrence": lambda: sequential(layers.GlobalAveragePooling1D(), layers.Dense(1)),
}


@pytest.mark.parametrize("name", RIGHT)
def test_nothing_is_told_of_what_is_right(out, name):
    trial = smd.create_trial(trained(out, RIGHT[name](), rows()))
    assert trial.tensor_names(regex="^usage/layer/") == []


HARMLESS = {
    "all are long": rows(ROWS * (LENGTH,)),
    "padded in front": rows(in_front=True),
    "padded by little": rows((LENGTH - 2, LENGTH - 1) * (ROWS // 2)),
}


@pytest.mark.parametrize("name", HARMLESS)
def test_rows_that_are_long_or_padded_in_front_or_by_little_are_no_fault(out, name):
    assert findings(trained(out, sequential(layers.GRU(4), layers.Dense(1)), HARMLESS[name])) == []


def test_a_mask_given_by_hand_is_one(out):
    tokens = layers.Input((LENGTH,), dtype="int32")
    mask = layers.Lambda(lambda x: tf.not_equal(x, 0), output_shape=(LENGTH,))(tokens)
    last = layers.GRU(4)(layers.Embedding(TOKENS, 4)(tokens), mask=mask)
    folder = trained(out, keras.Model(tokens, layers.Dense(1)(last)), rows())
    assert findings(folder) == []


def recordings(lengths=LENGTHS):
    found = np.random.RandomState(0).randn(2 * ROWS, LENGTH, 3).astype("f4")
    for row, length in zip(found, 2 * lengths, strict=True):
        row[length:] = 0
    return found


def of_recordings(*stack):
    return keras.Sequential([layers.Input((LENGTH, 3)), *stack, layers.Dense(1)])


BEFORE = {"nothing": lambda: (), "layers": lambda: (layers.Dense(4), layers.LSTM(4, return_sequences=True))}


@pytest.mark.parametrize("options", [{}, {"run_eagerly": True}])
@pytest.mark.parametrize("name", BEFORE)
def test_the_last_step_after_padding_of_numbers_is_found(out, name, options):
    model = of_recordings(*BEFORE[name](), layers.GRU(4, name="reader"))
    (found,) = findings(trained(out, model, recordings(), **options))
    assert found.tensor == "usage/layer/reader/last_only"
    assert (found.evidence["padded_rows"], found.evidence["steps"]) == (ROWS - 1, LENGTH)


RIGHT_NUMBERS = {
    "long": lambda: (of_recordings(layers.GRU(4)), recordings(ROWS * (LENGTH,))),
    "a mask": lambda: (of_recordings(layers.Masking(), layers.GRU(4)), recordings()),
    "read from the end": lambda: (of_recordings(layers.GRU(4, go_backwards=True)), recordings()),
    "all as long": lambda: (of_recordings(layers.GRU(4)), recordings(ROWS * (LENGTH - 5,))),
}


@pytest.mark.parametrize("name", RIGHT_NUMBERS)
def test_numbers_that_are_not_padded_or_masked_are_no_fault(out, name):
    assert findings(trained(out, *RIGHT_NUMBERS[name]())) == []
