import os
import subprocess
import sys

import numpy as np
import pytest

from smd_agent.core.modes import ModeKeys

TRAIN, EVAL = ModeKeys.TRAIN, ModeKeys.EVAL
RED = "smdebug/reductions/"


def rows(out):
    """The words of each line of the table of rows, which is the last one."""
    starts = [number for number, line in enumerate(out) if line.split()[:2] == ["MODE", "STEP"]]
    return [line.split() for line in out[starts[-1] :]]


def courses(out):
    """The line of each tensor in the table of tensors over the steps."""
    start = next(number for number, line in enumerate(out) if line.startswith("TENSOR "))
    lines = out[start + 1 :]
    end = next(number for number, line in enumerate(lines) if line.startswith("over "))
    return {line.split()[0]: line for line in lines[:end] if not line.startswith("...")}


@pytest.mark.parametrize("name, words", [("ls", []), ("show", ["x"])])
def test_a_path_that_is_no_run_is_one_line_and_exit_2(command, name, words):
    code, out, err = command(name, *words)
    assert (code, out) == (2, [])
    assert len(err) == 1
    assert "there is no run at" in err[0]


def test_show_has_a_row_for_each_tensor_and_step(two_modes, command):
    code, out, err = command("show", "weight|loss", "--mode", "train")
    assert (code, err) == (0, [])
    header, *out = rows(out)
    assert header == ["MODE", "STEP", "GLOBAL", "MIN", "MAX", "MEAN", "STD", "L2", "ZERO", "NAN", "INF"]
    assert [line for line in out if line[0] != "TRAIN"] == [["a.weight", "2x3", "float32"], ["loss", "()", "float64"]]
    assert out[1] == ["TRAIN", "0", "0", "1", "1", "1", "0", "2.449", "0%", "0", "0"]
    assert out[-1] == ["TRAIN", "20", "2", "2", "2", "2", "0", "2", "0%", "0", "0"]
    assert len(out) == 2 * 4


def test_show_takes_a_step_of_a_mode_or_of_all(two_modes, command):
    assert len(command("show", "weight", "--mode", "TRAIN", "--step", "20")[1]) == 3
    assert command("show", "weight", "--step", "3")[1][2].split()[:3] == ["EVAL", "0", "3"]
    words = ["show", "weight", "--mode", "TRAIN"]
    for step, shown in (("10-20", [10, 20]), ("-10", [0, 10]), ("11-", [20]), ("0-9", [0])):
        assert [int(row[1]) for row in rows(command(*words, "--step", step)[1]) if row[0] == "TRAIN"] == shown
    assert [int(row[1]) for row in rows(command(*words, "--last", "2")[1]) if row[0] == "TRAIN"] == [10, 20]


@pytest.mark.parametrize("words", [["--step", "x"], ["--step", "-"], ["--last", "0"], ["--last", "-1"]])
def test_show_refuses_steps_that_are_none(two_modes, command, words):
    code, out, err = command("show", "weight", *words)
    assert (code, out, len(err)) == (2, [], 1)


def test_show_leaves_open_what_was_not_saved(two_modes, command):
    code, out, _ = command("show", "^g$")
    assert code == 0
    assert out[2].split() == ["EVAL", "0", "3", "-", "-", "0.5", "-", "2", "-", "-", "-"]


def test_show_prints_values_on_request(two_modes, command):
    _, out, _ = command("show", "weight", "--step", "0", "--raw")
    assert [line.strip() for line in out[3:]] == ["[[1., 1., 1.],", "[1., 1., 1.]]"]


def test_show_of_values_without_an_order(run, command):
    run.collections().step(0, {"c": np.array([3 + 4j]), "e": np.zeros((0, 2))})
    code, out, _ = command("show", ".")
    assert code == 0
    assert out[1].split() == ["c", "1", "complex128"]
    assert out[2].split()[2:] == ["-", "-", "-", "-", "5", "0%", "0", "0"]
    assert out[3].split() == ["e", "0x2", "float64"]
    assert out[4].split()[2:] == ["-"] * 8


def test_show_tells_workers_apart(run, command):
    for worker in ("worker_0", "worker_1"):
        run.collections(worker, num_workers=2)
    run.step(0, {"t": np.zeros(1)}).step(0, {"t": np.ones(1)}, worker="worker_1")
    _, out, _ = command("show", "t")
    assert [line.split()[-1] for line in out] == ["WORKER", "float64", "worker_0", "worker_1"]
    _, out, _ = command("show", "t", "--worker", "worker_1")
    assert [line.split()[-1] for line in out[2:]] == ["worker_1"]
    code, _, err = command("show", "t", "--worker", "worker_7")
    assert code == 1
    assert "worker_0, worker_1" in err[0]


@pytest.mark.parametrize(
    "words, code, said",
    [
        (["a.wieght"], 1, "the nearest are a.weight"),
        (["loss", "--mode", "eval"], 1, "in mode EVAL; the run has steps of TRAIN, EVAL"),
        (["loss", "--step", "7"], 1, "saved steps are 0, 1, 2"),
        (["("], 2, "is not a regular expression"),
    ],
)
def test_show_explains_an_empty_answer_in_one_line(two_modes, command, words, code, said):
    got, out, err = command("show", *words)
    assert (got, out, len(err)) == (code, [], 1)
    assert said in err[0]


def test_show_names_a_damaged_record_and_goes_on(two_modes, command):
    path = two_modes.root / "events/000000000001/000000000001_worker_0.tfevents"
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    path.write_bytes(content)
    code, out, err = command("show", "weight")
    assert code == 1
    assert len(err) == 1
    assert "a.weight at step 1 is damaged" in err[0]
    assert [row[3] for row in rows(out)[2:]] == ["1", "damaged", "1", "1"]


@pytest.mark.usefixtures("impatient")
def test_regexes_that_python_does_not_come_back_from_do_not_hang(run, command):
    hanging = "^([a-zA-Z_.0-9/]+)+!$"
    run.collections(mine=hanging).step(0, {"gradient/layers.0.attention.self.query.weight": np.zeros(1)})
    assert command("ls")[0] == 0
    code, _, err = command("show", hanging)
    assert code == 1
    assert "no tensor" in err[0]
    code, _, err = command("show", r"(.+)+\1!")
    assert code == 2
    assert "can take longer to match than a training lasts" in err[0]


@pytest.fixture
def sick(run):
    """Losses that fall and rise, a tensor with NaN, a frozen one, one that grows, one of zeros."""
    run.collections(weights="weight$", losses="[Ll]oss", gradients="^gradient")
    for step in range(12):
        value = np.array([1.0, -2.0, step + 1.0], np.float32)
        tensors = {f"block{number}.weight": value * (number + 1) for number in range(11)}
        bad = np.array([np.nan, np.inf, -np.inf, 1.0], np.float32)
        tensors["bad.weight"] = bad if step >= 7 else np.ones(4) * step
        tensors["frozen.weight"] = np.ones(4, np.float32)
        tensors["gradient/head.weight"] = value * 3.0**step
        tensors["gradient/dead.weight"] = np.array([0.0] * 99 + [step + 1.0])
        tensors["TrainLoss_output_0"] = np.float32(5 - step / 3)
        tensors["OtherLoss_output_0"] = np.float32(1 + step)
        run.step(step, tensors)
    return run


def test_the_first_screen_says_what_is_unusual(sick, command):
    code, out, err = command("show")
    assert (code, err) == (0, [])
    assert out[: out.index("")] == [
        "NaN/Inf  1 of 17 tensors, from step 7 on: bad.weight",
        "Same     1 of 17 tensors, at all 12 steps: frozen.weight",
        "Grows    1 of 17 tensors, up to x8.83e+05: gradient/head.weight",
        "Zeros    1 of 17 tensors: gradient/dead.weight",
        "Rises    1 of 17 tensors: OtherLoss_output_0",
    ]
    lines = courses(out)
    unusual = ["bad.weight", "frozen.weight", "gradient/head.weight", "gradient/dead.weight", "OtherLoss_output_0"]
    assert [*lines][:8] == [*unusual, "TrainLoss_output_0", "block0.weight", "block1.weight"]
    assert [*lines][16] == "block10.weight"
    assert lines["bad.weight"].split() == ["bad.weight", "▁▂▃▄▆▇█×××××", "0", "nan", "0%", "1", "2"]
    assert lines["frozen.weight"].split()[1:] == ["────────────", "2", "2", "0%", "0", "0", "same"]
    assert lines["gradient/head.weight"].split()[-1] == "x8.83e+05"
    assert lines["gradient/dead.weight"].split()[4:] == ["99%", "0", "0", "zeros"]
    assert lines["OtherLoss_output_0"].split()[1:] == ["▁▁▂▃▃▄▅▆▆▇██", "1", "12", "0%", "0", "0", "rises"]
    assert lines["TrainLoss_output_0"].split()[-1] == "falls"
    assert out[-1] == "over 12 steps; tensors of several elements by their l2"
    assert max(map(len, out)) <= 80


def test_a_run_in_which_nothing_is_unusual_says_so(run, command):
    run.collections(losses="loss")
    for step in range(5):
        run.step(step, {"loss": np.float32(5 - step), "w": np.ones(3) * step})
    assert command("show")[1][0] == "Unusual  nothing in 2 tensors"


def test_a_product_that_is_too_large_is_no_finding(run, command):
    run.collections()
    for step in range(3):
        run.step(step, {RED + "prod/t": np.float64(np.inf), RED + "l2/t": np.float64(step)})
    assert command("show")[1][0] == "Unusual  nothing in 1 tensor"
    run.step(3, {RED + "prod/t": np.float64(0), RED + "max/t": np.float64(np.inf)})
    assert command("show")[1][0] == "NaN/Inf  1 of 1 tensor, from step 3 on: t"


def test_what_may_stay_or_be_missing_is_not_unusual(run, command):
    run.collections(labels="^label", trees="^trees", hyperparameters="^hyper", feature_importance="^gain")
    for step in range(4):
        missing = np.array([np.nan, step])
        run.step(step, {"labels": np.ones(3), "trees/Split": missing, "hyper/missing": np.nan, "gain": np.zeros(1)})
    assert command("show")[1][0] == "Unusual  nothing in 4 tensors"
    run.step(4, {"labels": np.array([np.nan, 1, 1])})
    assert command("show")[1][0] == "NaN/Inf  1 of 4 tensors, from step 4 on: labels"


def test_weights_may_stay_the_same_in_an_evaluation_and_its_loss_may_not(run, command):
    run.collections(losses="^loss")
    for step in range(4):
        run.step(step, {"weight": np.ones(3), "loss": np.ones(1)}, EVAL, step)
    assert command("show")[1][0] == "Same     1 of 2 tensors, at all 4 steps: loss"
    for step in range(4, 8):
        run.step(step, {"weight": np.ones(3), "loss": np.ones(1) * step}, TRAIN, step - 4)
    assert command("show")[1][0] == "Same     2 of 2 tensors, at all 4 steps: loss, weight"


def test_tensors_are_ordered_by_name_on_request(sick, command):
    assert [*courses(command("show", ".", "--sort", "name")[1])][:3] == [
        "OtherLoss_output_0",
        "TrainLoss_output_0",
        "bad.weight",
    ]


def test_long_lists_are_cut_unless_told_otherwise(run, command):
    run.collections()
    for step in range(3):
        run.step(step, {f"t{number}": np.ones(2) * step for number in range(40)})
    _, out, _ = command("show")
    assert len([line for line in out if line.startswith("t")]) == 30
    assert "... and 10 more: --all lists them" in out
    assert len([line for line in command("show", ".", "--all")[1] if line.startswith("t")]) == 40


def test_how_losses_are_used_does_not_hide_the_losses(run, command):
    run.collections(usage="^usage/")
    for step in range(3):
        run.step(step, {"CrossEntropyLoss_output_0": np.float32(step), "usage/loss/nll/max": np.float32(3)})
    assert list(courses(command("show", "loss")[1])) == ["CrossEntropyLoss_output_0"]
    assert list(courses(command("show", "max")[1])) == ["usage/loss/nll/max"]
    for word in ("usage", "usage/loss"):
        assert list(courses(command("show", word)[1])) == ["usage/loss/nll/max"]
    assert len(courses(command("show")[1])) == 2


def test_capitals_matter_only_where_that_leaves_something(sick, command):
    assert [*courses(command("show", "loss")[1])] == ["OtherLoss_output_0", "TrainLoss_output_0"]
    assert [*courses(command("show", "trainloss")[1])] == ["TrainLoss_output_0"]
    assert [*courses(command("show", "Loss_output")[1])] == ["OtherLoss_output_0", "TrainLoss_output_0"]
    assert [*courses(command("show", "LOSS_.UTPUT")[1])] == ["OtherLoss_output_0", "TrainLoss_output_0"]


def test_a_pattern_may_have_flags_of_its_own(sick, command):
    assert [*courses(command("show", "(?i)trainLOSS")[1])] == ["TrainLoss_output_0"]
    code, out, err = command("show", "(?i)nothing")
    assert (code, out, len(err)) == (1, [], 1)


@pytest.mark.parametrize("name", ["ls", "show"])
def test_a_command_does_not_wait_for_files_that_are_not_there(run, command, monkeypatch, name):
    run.collections(num_workers=1)
    for step in range(3):
        run.step(step)
    (run.root / "events/000000000002/000000000002_worker_0.tfevents").unlink()
    monkeypatch.setattr("time.sleep", lambda seconds: pytest.fail("it waits"))
    command(name)


@pytest.mark.parametrize("word", ["losses", "Losses"])
def test_a_collection_stands_for_its_tensors(sick, command, word):
    assert [*courses(command("show", word)[1])] == ["OtherLoss_output_0", "TrainLoss_output_0"]


def test_rows_of_one_tensor_that_has_many_are_the_last_ones(run, command):
    run.collections()
    for step in range(50):
        run.step(step, {"t": np.float32(step)})
    _, out, _ = command("show", "t")
    assert [row[1] for row in rows(out)[2:]] == [str(step) for step in range(40, 50)]
    assert len(rows(command("show", "t", "--rows")[1])) == 2 + 50
    assert courses(out)["t"].split()[2:4] == ["0", "49"]


def test_rows_count_what_is_not_finite(run, command):
    run.collections().step(0, {"t": np.array([np.nan, np.nan, np.inf, 0, 0, 0, 0, 1], np.float32)})
    assert rows(command("show", "t")[1])[2][2:] == ["nan", "nan", "nan", "nan", "nan", "50%", "2", "1"]


def test_stored_counts_are_shown(run, command):
    from smd_agent.core.reduction_config import OPS

    if "nan_count" not in OPS:
        pytest.skip("this version stores no counts")
    stored = {RED + "nan_count/t": np.float64(12_345), RED + "inf_count/t": np.float64(0)}
    run.collections().step(0, {**stored, RED + "zero_share/t": np.float64(0.003)})
    assert rows(command("show", "t")[1])[2][-3:] == ["<1%", "12k", "0"]


def test_a_mode_has_a_line_of_its_own(run, command):
    run.collections(losses="loss")
    for step in range(4):
        run.step(2 * step, {"loss": np.float32(4 - step)}, TRAIN, step)
        run.step(2 * step + 1, {"loss": np.float32(step + 1)}, EVAL, step)
    _, out, _ = command("show", "loss")
    lines = [line.split() for line in out if line.startswith("loss ")]
    assert [(line[1], line[-1]) for line in lines[:2]] == [("EVAL", "rises"), ("TRAIN", "falls")]


def test_each_worker_has_its_own_steps_of_a_mode(run, command):
    for worker in ("worker_0", "worker_1"):
        run.collections(worker, num_workers=2)
    # The second worker evaluates later.
    for worker, train, held in (("worker_0", (0, 2), 1), ("worker_1", (0, 1), 2)):
        for number, step in enumerate(train):
            run.step(step, {"t": np.full(2, step)}, TRAIN, number, worker=worker)
        run.step(held, {"t": np.full(2, 100 + held)}, EVAL, 0, worker=worker)
    _, out, _ = command("show", "t", "--mode", "eval")
    assert [(row[0], row[1], row[2], row[4], row[-1]) for row in rows(out)[2:]] == [
        ("EVAL", "0", "1", "101", "worker_0"),
        ("EVAL", "0", "2", "102", "worker_1"),
    ]
    _, out, _ = command("show", "t", "--mode", "train", "--worker", "worker_1")
    assert [(row[0], row[1], row[2]) for row in rows(out)[2:]] == [("TRAIN", "0", "0"), ("TRAIN", "1", "1")]


def test_what_another_worker_saved_is_looked_at(run, command):
    for worker in ("worker_0", "worker_1"):
        run.collections(worker, num_workers=2)
        for step in range(3):
            value = np.nan if (step, worker) == (1, "worker_1") else float(step)
            run.step(step, {"t": np.full(2, value)}, worker=worker)
    _, out, _ = command("show", "t")
    assert out[0] == "NaN/Inf  1 of 1 tensor, first at step 1: t"
    assert courses(out)["t"].split()[1] == "▁×█"
    assert [line for line in out if len(line) > 80] == []


def test_lines_fit_into_eighty_columns_with_modes_and_workers(run, command):
    workers = ("worker_00000", "worker_00001")
    for worker in workers:
        run.collections(worker, num_workers=2)
    name = "gradient/TheModel_transformer.h.11.mlp.c_proj.weight"
    for worker in workers:
        for step in range(3):
            mode = ModeKeys.PREDICT if step == 2 else TRAIN
            run.step(1_000_000 + step, {name: np.full(2, -1.2345e-5 * step)}, mode, 900_000 + step, worker=worker)
    _, out, _ = command("show")
    assert max(map(len, out)) <= 80
    assert "MAX" in rows(out)[0]
    assert "gradient/TheModel_transformer.h.11.mlp.c_proj.weight  2 float64" in out


def test_a_wide_terminal_has_room_for_names(run, command, monkeypatch):
    name = "gradient/TheModel_transformer.h.11.mlp.c_proj.weight"
    run.collections()
    for step in range(3):
        run.step(step, {name: np.full(2, step)})
    monkeypatch.setenv("COLUMNS", "120")
    assert "gradient.." in command("show")[1][3]
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert command("show")[1][3].startswith(f"{name} ")


def test_a_terminal_without_the_bars_gets_plain_ones(run):
    run.collections()
    for step in range(4):
        run.step(step, {"t": np.float32(np.nan if step == 3 else step)})
    command = [sys.executable, "-m", "smd_agent", "show", str(run.root)]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60)
    assert courses(done.stdout.splitlines())["t"].split()[1] == "_=@x"


def shares_of(dead, saturated):
    numbers = {"dead_share": dead, "saturated_share": saturated, "l2": 3, "zero_share": 0.5}
    return {f"{RED}{name}/relu": np.float64(value) for name, value in numbers.items()}


def test_shares_of_channels_are_shown_where_some_are(run, command):
    run.collections()
    for step in range(4):
        run.step(step, {**shares_of(step / 8, 0), "w": np.ones(3) * step})
    _, out, _ = command("show")
    header = next(line for line in out if line.startswith("TENSOR")).split()
    assert header[3:6] == ["LAST", "ZERO", "DEAD"]
    assert "SAT" not in header
    assert courses(out)["relu"].split()[3:] == ["3", "50%", "38%", "-", "-"]
    assert courses(out)["w"].split()[3:] == ["5.196", "0%", "-", "0", "0"]
    _, out, _ = command("show", "relu", "--step", "2")
    header, _, row = (line.split() for line in out[:3])
    row = dict(zip(header, row, strict=True))
    assert (row["ZERO"], row["DEAD"], row["SAT"], row["NAN"]) == ("50%", "25%", "0%", "-")
    _, out, _ = command("show", "w", "--step", "2")
    assert "DEAD" not in out[0].split()
