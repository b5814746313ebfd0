import json
import os

import numpy as np

from smd_agent.cli import main
from smd_agent.core.modes import ModeKeys
from smd_agent.storage.claim import Claim

TRAIN, EVAL = ModeKeys.TRAIN, ModeKeys.EVAL
RED = "smdebug/reductions/"


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
    assert "Same     1 of 3 tensors, at all 3 steps: a.weight" in out
    order = [line.strip() for line in out if line.endswith(":")]
    assert order == ["all:", "losses:", "weights:"]


def test_ls_begins_with_the_verdict(run, command):
    run.collections(losses="loss").step(0, {"loss": np.float32(1)}).step(1, {"loss": np.float32(np.nan)})
    assert command("ls")[1][:3] == [
        "Verdict  1 finding so far: loss not finite at step 1 (finite at 0)",
        f"         more: python -m smd_agent check {run.root}",
        f"Run      {run.root}",
    ]
    run.end()
    assert command("ls")[1][0] == "Verdict  1 finding: loss not finite at step 1 (finite at 0)"


def test_ls_of_a_run_without_steps_has_no_verdict(run, command):
    run.collections(losses="loss").end()
    assert command("ls")[1][0] == f"Run      {run.root}"


def test_ls_says_what_is_on_the_disk(two_modes, command):
    _, out, _ = command("ls")
    total = sum(path.stat().st_size for path in two_modes.root.rglob("*") if path.is_file())
    size = f"{total} bytes" if total < 1000 else f"{total / 1000:.3g} kB"
    assert next(line for line in out if line.startswith("Saved")).startswith(f"Saved    {size}: ")


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
    assert f"running as process {os.getpid()}" in command("ls")[1][2]
    path = two_modes.root / "claim.smd"
    path.write_text(path.read_text().replace('"started": "', '"started": "9'))
    assert f"was cut off: process {os.getpid()} is gone" in command("ls")[1][2]
    claim.release()
    assert "not finished, last step written" in command("ls")[1][2]


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


def test_ls_marks_what_is_unusual(run, command):
    run.collections(weights="weight$", losses="loss", inputs="^input")
    for step in range(4):
        value = np.full(3, step + 1, np.float32)
        tensors = {f"w{number}.weight": value + number for number in range(40)}
        tensors["z.weight"] = np.where(step >= 2, np.nan, value)
        run.step(step, {**tensors, "frozen.weight": np.ones(3), "input": np.ones(3), "loss": np.float64(-step)})
    code, out, _ = command("ls")
    assert code == 0
    assert "NaN/Inf  1 of 44 tensors, from step 2 on: z.weight" in out
    assert "Same     1 of 44 tensors, at all 4 steps: frozen.weight" in out
    weights = out[out.index("weights:") + 1 :]
    marked = [(line.split()[0], line.split()[-1]) for line in weights[:3]]
    assert marked == [("frozen.weight", "Same"), ("z.weight", "NaN/Inf"), ("w0.weight", "B")]


def test_ls_leaves_large_tensors_to_show(run, command, monkeypatch):
    monkeypatch.setattr("smd_agent.cli.ls._LARGEST", 1000)
    run.collections()
    for step in range(3):
        run.step(step, {"large": np.full(1000, np.nan), "small": np.full(10, np.nan)})
    assert "Looked   at 3 of 3 steps, not at 1 large tensor" in command("ls")[1]
    assert "NaN/Inf  1 of 1 tensor, from step 0 on: small" in command("ls")[1]


def test_ls_looks_at_some_of_many_steps(run, command, monkeypatch):
    monkeypatch.setattr("smd_agent.cli.ls._NUMBERS", 200)
    run.collections()
    for step in range(20):
        run.step(step, {"t": np.full(3, np.nan if step in (0, 19) else step)})
    out = command("ls")[1]
    assert "Looked   at 7 of 20 steps" in out
    assert "NaN/Inf  1 of 1 tensor, first at step 0: t" in out
