import json
import os

import numpy as np
import pytest

from smd_agent.cli import main
from smd_agent.core.modes import ModeKeys
from smd_agent.storage.claim import Claim

TRAIN, EVAL = ModeKeys.TRAIN, ModeKeys.EVAL
RED = "smdebug/reductions/"


@pytest.fixture
def command(run, capsys):
    def call(name, *words):
        code = main([name, str(run.root), *words])
        written = capsys.readouterr()
        return code, written.out.splitlines(), written.err.splitlines()

    return call


@pytest.fixture
def two_modes(run):
    run.collections(weights="weight$", losses="loss", all=".*")
    for step in range(3):
        run.step(step, {"a.weight": np.ones((2, 3), np.float32), "loss": np.float64(step)}, TRAIN, step * 10)
    run.step(
        3,
        {"a.weight": np.ones((2, 3), np.float32), RED + "mean/g": np.float64(0.5), RED + "l2/g": np.float64(2)},
        EVAL,
        0,
    )
    return run


def cells(lines, start):
    return next(iter(cells_of(lines, start)))


def cells_of(lines, start):
    return [line.split() for line in lines if line.split()[:1] == [start]]


def test_ls_tells_steps_collections_and_tensors(two_modes, command):
    two_modes.end()
    code, out, err = command("ls")
    assert (code, err) == (0, [])
    assert cells(out, "State") == ["State", "finished"]
    assert cells(out, "Workers") == ["Workers", "worker_0"]
    assert "3 tensors in 4 steps" in next(line for line in out if line.startswith("Saved"))
    assert cells(out, "TRAIN") == ["TRAIN", "3", "0", "20"]
    assert cells(out, "EVAL") == ["EVAL", "1", "0", "0"]
    assert cells(out, "weights")[:2] == ["weights", "1"]
    assert cells(out, "a.weight")[1:6] == ["float32", "2x3", "raw", "4", "TRAIN,EVAL"]
    assert cells(out, "loss")[1:6] == ["float64", "()", "raw", "3", "TRAIN"]
    assert cells(out, "g")[1:6] == ["-", "-", "l2,mean", "1", "EVAL"]
    assert max(map(len, out)) <= 100
    order = [line.strip() for line in out if line.endswith(":")]
    assert order == ["all:", "losses:", "weights:"]


def test_ls_adds_up_the_bytes_of_the_event_files(two_modes, command):
    total = sum(path.stat().st_size for path in two_modes.root.rglob("*.tfevents"))
    _, out, _ = command("ls")
    assert next(line for line in out if line.startswith("Saved")).split()[1] == str(total)


def test_ls_shortens_long_lists_unless_told_otherwise(run, command):
    run.collections(weights="w").step(0, {f"w{number}": np.zeros(1) for number in range(60)})
    code, out, _ = command("ls")
    assert code == 0
    assert len([line for line in out if line.startswith("  w")]) == 5
    assert any("55 more" in line for line in out)
    _, whole, _ = command("ls", "--all")
    assert len([line for line in whole if line.startswith("  w")]) == 60


def test_ls_tells_a_running_process_from_a_killed_one(two_modes, command):
    claim = Claim(two_modes.root)
    assert claim.acquire() is None
    claim.sign()
    assert f"running as process {os.getpid()}" in command("ls")[1][1]
    path = two_modes.root / "claim.smd"
    path.write_text(path.read_text().replace('"started": "', '"started": "9'))
    assert f"was cut off: process {os.getpid()} is gone" in command("ls")[1][1]
    claim.release()
    assert "not finished, last step written" in command("ls")[1][1]


def test_ls_tells_what_was_lost(two_modes, command):
    folder = two_modes.root / "lost"
    folder.mkdir()
    notes = {"count": 12, "gone": 0, "steps": [*range(5, 17)], "reason": "No space left on device"}
    (folder / "worker_0.json").write_text(json.dumps(notes))
    (folder / "worker_1.json").write_text(json.dumps({"count": 1, "gone": 20, "steps": [4], "reason": ""}))
    code, out, _ = command("ls")
    assert code == 0
    assert [line for line in out if line.startswith("Lost")] == [
        "Lost     12 steps of worker_0 (No space left on device): 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, ...",
        "Lost     1 step of worker_1: 4",
        "Lost     20 steps of worker_1, with a folder that was removed or moved",
    ]


def test_ls_names_the_runs_that_went_beside_this_one(two_modes, command):
    for name in ("run-2", "run-10", "run-2x", "run-", "runs", "run/run-3"):
        (two_modes.root.parent / name / "index").mkdir(parents=True)
    (two_modes.root.parent / "run-11").mkdir()
    assert cells(command("ls")[1], "Further") == ["Further", "run-2,", "run-10,", "run/run-3"]


def test_ls_of_a_folder_of_runs_lists_them(two_modes, run, capsys):
    two_modes.end()
    second = type(run)(run.root.with_name("run-2")).collections().step(0).step(0, worker="worker_1").step(1000)
    second.root.with_name("notes").mkdir()
    assert main(["ls", str(run.root.parent)]) == 0
    out = capsys.readouterr().out.splitlines()
    assert cells(out, "run") == ["run", "4", "finished"]
    assert cells(out, "run-2")[:4] == ["run-2", "2", "not", "finished,"]
    assert not cells_of(out, "notes")


def test_ls_counts_steps_that_lack_a_worker(run, command):
    for worker in ("worker_0", "worker_1"):
        run.collections(worker, num_workers=2)
    run.step(0).step(0, worker="worker_1").step(1)
    _, out, _ = command("ls")
    assert next(line for line in out if line.startswith("TRAIN")).endswith("1 not written by all workers")


def test_ls_names_what_it_cannot_read(two_modes, command):
    (two_modes.root / "index/000000000/000000000001_worker_0.json").write_text("{")
    code, out, _ = command("ls")
    assert code == 1
    assert cells(out, "TRAIN") == ["TRAIN", "2", "0", "20"]


def test_ls_of_a_run_before_its_first_step(run, command):
    run.collections()
    code, out, _ = command("ls")
    assert code == 0
    assert "No step has been saved." in out


@pytest.mark.parametrize("name, words", [("ls", []), ("show", ["x"])])
def test_a_path_that_is_no_run_is_one_line_and_exit_2(command, name, words):
    code, out, err = command(name, *words)
    assert (code, out) == (2, [])
    assert len(err) == 1
    assert "there is no run at" in err[0]


def test_show_has_a_row_for_each_tensor_and_step(two_modes, command):
    code, out, err = command("show", "weight|loss", "--mode", "train")
    assert (code, err) == (0, [])
    assert " ".join(out[0].split()) == "MODE STEP GLOBAL SHAPE DTYPE MIN MAX MEAN STD L2"
    assert [line for line in out if not line.startswith("  ")] == ["a.weight", "loss"]
    assert out[2].split() == ["TRAIN", "0", "0", "2x3", "float32", "1", "1", "1", "0", "2.449"]
    assert out[-1].split() == ["TRAIN", "20", "2", "()", "float64", "2", "2", "2", "0", "2"]
    assert len(out) == 1 + 2 * 4
    assert max(map(len, out)) <= 100


def test_show_takes_a_step_of_a_mode_or_of_all(two_modes, command):
    assert len(command("show", "weight", "--mode", "TRAIN", "--step", "20")[1]) == 3
    assert command("show", "weight", "--step", "3")[1][2].split()[:3] == ["EVAL", "0", "3"]


def test_show_leaves_open_what_was_not_saved(two_modes, command):
    code, out, _ = command("show", "^g$")
    assert code == 0
    assert out[2].split() == ["EVAL", "0", "3", "-", "-", "-", "-", "0.5", "-", "2"]


def test_show_prints_values_on_request(two_modes, command):
    _, out, _ = command("show", "weight", "--step", "0", "--raw")
    assert [line.strip() for line in out[3:]] == ["[[1., 1., 1.],", "[1., 1., 1.]]"]


def test_show_of_values_without_an_order(run, command):
    run.collections().step(0, {"c": np.array([3 + 4j]), "e": np.zeros((0, 2))})
    code, out, _ = command("show", ".")
    assert code == 0
    assert out[2].split()[3:] == ["1", "complex128", "-", "-", "-", "-", "5"]
    assert out[4].split()[3:] == ["0x2", "float64", "-", "-", "-", "-", "-"]


def test_show_tells_workers_apart(run, command):
    for worker in ("worker_0", "worker_1"):
        run.collections(worker, num_workers=2)
    run.step(0, {"t": np.zeros(1)}).step(0, {"t": np.ones(1)}, worker="worker_1")
    _, out, _ = command("show", "t")
    assert [line.split()[-1] for line in out] == ["WORKER", "t", "worker_0", "worker_1"]
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
    assert [line.split()[-1] for line in out[2:]] == ["2.449", "damaged", "2.449", "2.449"]


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
