"""TensorBoard itself, in a browser: it shows what was written while training, and what a saved run was made into.

Its server is asked for the tags first. A page that is opened before it has read the files stays empty for a while.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
import urllib.request
from contextlib import contextmanager

import numpy as np
import pytest
from harness.boards import board_python
from harness.written_runs import started

from smd_agent.cli import main
from smd_agent.core.collection_manager import CollectionManager
from smd_agent.core.display_collection import settle
from smd_agent.core.modes import ModeKeys
from smd_agent.storage.run_tensorboard import RunBoard

# Seconds; where much else runs, everything takes long.
PATIENCE = 240
RUNS = {"while/TRAIN", "later/TRAIN"}


@pytest.fixture
def boards(tmp_path, capsys):
    """A folder with files that a run has written, and with those that the command has made of it."""
    shown_in = {}
    settle(shown_in, "Net_fc.weight", [("weights", True)])
    settle(shown_in, "loss", [("losses", True)])
    run = started(tmp_path / "run", board=RunBoard(tmp_path / "board" / "while", shown_in))
    manager = CollectionManager()
    for collection, name in (("weights", "Net_fc.weight"), ("losses", "loss")):
        manager.get(collection).add_tensor_name(name)
    run.write_collections(manager.to_json())
    for step in range(4):
        file = run.begin_step(step, ModeKeys.TRAIN, step)
        file.add("Net_fc.weight", np.linspace(-1, step, 50, dtype=np.float32))
        file.add("loss", np.float32(4 - step))
        run.commit(file)
    run.close(end_marker=True)
    assert main(["export", str(tmp_path / "run"), "--tensorboard", str(tmp_path / "board" / "later")]) == 0
    return tmp_path / "board"


@contextmanager
def served(folder):
    """TensorBoard's address, once its server has read the files of both runs."""
    options = ("--host", "127.0.0.1", "--port", "0", "--load_fast=false", "--reload_interval", "1")
    command = [board_python(), "-W", "ignore", "-m", "tensorboard.main", "--logdir", str(folder), *options]
    env = {name: text for name, text in os.environ.items() if not name.startswith("SMD")}
    said = folder.parent / "said"
    with said.open("w") as out, subprocess.Popen(command, stdout=out, stderr=out, env=env) as server:
        try:
            deadline = time.monotonic() + PATIENCE
            while not (found := re.search(r"http://\S+", said.read_text())):
                assert server.poll() is None, said.read_text()
                assert time.monotonic() < deadline, said.read_text()
                time.sleep(0.2)
            while not all(asked(found[0], kind).keys() >= RUNS for kind in ("scalars", "histograms")):
                assert time.monotonic() < deadline, said.read_text()
                time.sleep(0.2)
            yield found[0]
        finally:
            server.kill()


def asked(address, kind):
    """The tags of a kind, by run, as TensorBoard's page asks its server for them."""
    with urllib.request.urlopen(f"{address}data/plugin/{kind}/tags", timeout=PATIENCE) as answer:
        return json.load(answer)


def test_both_kinds_of_files_are_shown(boards, browser):
    with served(boards) as address:
        for kind, tag in (("scalars", "loss"), ("histograms", "weights/Net_fc.weight")):
            tags = asked(address, kind)
            assert tags.keys() == RUNS
            assert all(tag in of for of in tags.values())
        errors, elsewhere = [], []
        with browser.new_context(viewport={"width": 1400, "height": 1400}) as context:
            context.set_default_timeout(PATIENCE * 1000)
            tab = context.new_page()
            tab.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
            tab.on("pageerror", lambda error: errors.append(str(error)))
            tab.on("request", lambda request: elsewhere.append(request.url))
            # Not until all is loaded: what the page shows is waited for.
            tab.goto(f"{address}#timeseries", wait_until="commit")
            for text in ("loss", "weights/Net_fc.weight", *RUNS):
                tab.get_by_text(text, exact=True).first.wait_for()
            # The lines of the loss are drawn, one for each kind of files.
            tab.wait_for_function("document.querySelectorAll('scalar-card svg path').length >= 2")
            # And the histograms of the weight.
            tab.wait_for_function("document.querySelectorAll('histogram-card svg path').length >= 2")
            tab.screenshot(path=boards.parent / "tensorboard.png")
        assert errors == []
        assert [url for url in elsewhere if not url.startswith(("data:", "blob:", address))] == []
