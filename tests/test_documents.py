"""What the pages say is so: about files, keys, commands and each other; and commands print what stands there.

Compared is everything but numbers with a decimal point, sizes in bytes, shares and bars, which differ between releases
of the frameworks. ``…`` in a line of a page stands for any text, alone in a line for any lines.
"""

from __future__ import annotations

import ast
import doctest
import importlib.util
import inspect
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from harness.generated_parts import generator
from harness.written_runs import started

from smd_agent import cli, create_trial
from smd_agent.cli import run as launcher
from smd_agent.config import env, keys
from smd_agent.config.hook_file import Source
from smd_agent.config.load import load_settings
from smd_agent.rules.finding import Severity
from smd_agent.rules.registry import built_in_rules

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
RULES = ROOT / "docs" / "rules"
SECTIONS_OF_A_RULE = ["What it looks like", "Causes", "Telling them apart", "What to change", "When it is meant"]
ABOUT_THE_PROJECT = [ROOT / name for name in ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "RELEASING.md")]

_BLOCK = re.compile(r"^(?:<!-- (?:needs: (\w+)|file: ([\w.]+)) -->\n)?```(\w+)\n(.*?)^```$", re.M | re.S)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language and text; the variable that names the interpreter it needs; the file that it is."""

    language: str
    text: str
    needs: str
    file: str


def blocks(page: Path, *languages: str) -> list[Block]:
    """The blocks of these languages, in order."""
    found = [Block(match[3], match[4], match[1] or "", match[2] or "") for match in _BLOCK.finditer(page.read_text())]
    return [block for block in found if block.language in languages]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


README = ROOT / "README.md"
MOST_LINES = 150


def all_keys():
    return [
        one
        for listed in (keys.TOP, keys.COLLECTION, keys.OF_RULE, keys.STEPS, keys.FORM, keys.OF_HOOK)
        for one in listed
    ]


def text_of(page):
    return re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S)


def test_the_readme_is_a_door_and_no_manual():
    assert len(README.read_text().splitlines()) <= MOST_LINES


def test_links_lead_to_pages_that_exist():
    broken = [
        (name_of(page), target)
        for page in [*PAGES, *ABOUT_THE_PROJECT]
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text_of(page))
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert broken == []


def test_files_that_pages_name_exist():
    named = re.compile(r"`((?:smd_agent|tests|docs|examples|benchmarks)/[\w./-]*)`")
    missing = [
        (name_of(page), path)
        for page in [*PAGES, *ABOUT_THE_PROJECT]
        for path in named.findall(page.read_text())
        if not (ROOT / path).exists()
    ]
    assert missing == []
    assert len(named.findall((ROOT / "docs" / "architecture.md").read_text())) > 20


def test_every_part_that_is_made_from_the_sources_stands_on_a_page():
    asked = {part for page in PAGES for part in generator().PLACE.findall(page.read_text())}
    assert asked == set(generator().PARTS)


def test_the_configuration_page_has_every_key_and_variable():
    page = generator().fill_in((ROOT / "docs" / "configuration.md").read_text())
    names = [key.name for key in vars(keys).values() if isinstance(key, keys.Key)]
    # And save_histogram and rule_to_invoke.
    assert len(names) == len(all_keys()) + 2
    assert [name for name in names if f"| `{name}` |" not in page] == []
    assert [v.name for v in env.VARIABLES if f"| `{v.name}` |" not in page] == []


def test_the_commands_page_has_every_command():
    page = generator().fill_in((ROOT / "docs" / "commands.md").read_text())
    assert [name for name in cli.COMMANDS if f"## python -m smd_agent {name}\n" not in page] == []
    assert [option for option in (*launcher.VALUE_OPTIONS, "--strict", "--raw", "--all") if option not in page] == []


def test_each_rule_has_a_page_with_its_parameters_and_numbers(tmp_path):
    rules = built_in_rules()
    listed = generator().fill_in((ROOT / "docs" / "rules.md").read_text())
    started(tmp_path / "run").close(True)
    small_run = create_trial(tmp_path / "run")
    assert len(rules) >= 8
    for name, rule in rules.items():
        assert f"| [{name}](rules/{name}.md) |" in listed
        page = generator().fill_in((RULES / f"{name}.md").read_text())
        (section,) = re.findall(rf"^# {name}\n(.*?)(?=^##)", page, re.M | re.S)
        assert rule.meaning in section, name
        assert [number for number in rule.evidence if f"| `{number}` |" not in section] == []
        made = {"check": rule(), "program": rule(small_run)}
        for parameter in rule.parameters:
            (row,) = re.findall(rf"^\| `{parameter.name}` \| (.*?) \| (.*?) \| ", section, re.M)
            for cell, one in zip(row, made.values(), strict=True):
                value = getattr(one, parameter.name)
                shown = ",".join(value).replace("|", "\\|") if isinstance(value, tuple) else value
                assert cell == (f"`{shown}`" if shown not in (None, "") else "none"), (name, parameter.name)


def test_the_installation_page_names_every_make_target():
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^echo 'make ([\w-]+)", makefile.replace("\t", ""), re.M)
    page = (ROOT / "docs" / "install.md").read_text()
    assert {"demo", "test", "test-all", "lint", "bench", "docs", "dist", "check"} <= set(targets)
    assert [name for name in targets if name not in ("help", "setup", "clean") and f"make {name}" not in page] == []


def test_the_demo_ends_with_a_finding(tmp_path):
    makefile = (ROOT / "Makefile").read_text()
    (command,) = re.findall(r"^\t\$\(VENV\)/bin/python (-m smd_agent --out .*-sick .*)$", makefile, re.M)
    words = shlex.split(command.replace("$(DEMO_RUN)", str(tmp_path / "run")))
    # Else a busy machine judges a part of the run.
    env = {**os.environ, "SMD_AGENT_VERDICT_SECONDS": "60"}
    done = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, timeout=300, env=env)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^smd_agent: \d+ findings?: loss exploded at step \d+: ", done.stderr, re.M), done.stderr


def test_the_demo_begins_with_the_commands_of_the_readme():
    makefile = (ROOT / "Makefile").read_text().replace("$(DEMO_RUN)", "smd_runs/digits")
    readme = re.findall(r"^\$ python (-m smd_agent .*)$", (ROOT / "README.md").read_text(), re.M)
    demo = re.findall(r"^\t\$\(VENV\)/bin/python (-m smd_agent .*)$", makefile, re.M)
    assert len(readme) >= 3
    assert demo[: len(readme)] == readme


def test_make_targets_that_pages_name_exist():
    makefile = (ROOT / "Makefile").read_text()
    known = set(re.findall(r"^([\w-]+):", makefile, re.M))
    named = {
        target
        for page in [*PAGES, *ABOUT_THE_PROJECT]
        for target in re.findall(r"(?:^|`)make ([a-z]+(?:-[a-z]+)?)", page.read_text(), re.M)
    }
    assert {"test", "docs"} <= named
    assert named - known == set()


def test_the_floors_page_shows_every_floor():
    picture = generator().floors()
    for name in ("cli", "boot", "patches", "core", "formats", "storage", "analysis", "guard", "errors"):
        assert re.search(rf"^│ {name} ", picture, re.M)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_command_lines_can_be_followed(page):
    for block in blocks(page, "sh"):
        for line in block.text.splitlines():
            words = shlex.split(line, comments=True)
            commands = [command for command in cli.COMMANDS if command != "run"]
            if words[:3] == ["python", "-m", "smd_agent"] and words[3] not in commands:
                _, target = launcher.split(words[3:])
                assert target, line


def test_a_page_of_a_rule_shows_a_finding_and_says_what_it_comes_from_and_what_to_do():
    assert {path.stem for path in RULES.glob("*.md")} == {*built_in_rules()}
    for name, rule in built_in_rules().items():
        page = RULES / f"{name}.md"
        assert re.findall(r"^## (.*)$", page.read_text(), re.M) == SECTIONS_OF_A_RULE, name
        (shown,) = blocks(page, "text")
        severities = "|".join(severity.value for severity in Severity)
        assert re.match(rf"({severities})  {name}[:\n]", shown.text), name
        # What the finding says is what the rule says today; of a sentence with numbers in it, the parts around them.
        said = [*texts_in(Path(inspect.getfile(rule)))]
        for label in ("cause", "try"):
            for text in re.findall(rf"^  {label} +(.*)$", shown.text, re.M):
                assert any(one in text or text in one for one in said), (name, text)


def texts_in(file):
    """The texts of a Python file that are sentences."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.count(" ") > 3:
            yield node.value.strip()


def test_the_configuration_in_the_pages_loads_without_a_warning():
    for block in blocks(ROOT / "docs" / "configuration.md", "json"):
        assert load_settings(Source("page", text=block.text)).warnings == ()
    for path in (ROOT / "examples").glob("*.json"):
        assert load_settings(Source(str(path))).warnings == ()


def test_the_page_about_migration_has_every_documented_rule():
    page = (ROOT / "docs" / "migration.md").read_text()
    listed = dict(re.findall(r"^\| `(\w+)` \| \[(\w+)\]\(rules/\2\.md\) \|$", page, re.M))
    assert {*listed.values()} <= {*built_in_rules()}
    words = {name: re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=NLP)", "_", rule).lower() for name, rule in listed.items()}
    assert words == {name: name for name in listed}
    assert len(listed) == 20


def test_files_on_the_pages_are_used_by_their_commands():
    for page in PAGES:
        typed = "".join(block.text for block in blocks(page, "console"))
        files = {block.file for block in blocks(page, "python", "json") if block.file}
        assert {name for name in files if f" {name}" not in typed and f"={name}" not in typed} == set(), page


def test_json_in_the_pages_is_json():
    for page in PAGES:
        for block in blocks(page, "json"):
            json.loads(block.text)


def test_the_site_is_built_without_a_warning(tmp_path):
    (options,) = re.findall(r"^\t.*/sphinx-build (.*) docs build/docs$", (ROOT / "Makefile").read_text(), re.M)
    command = [sys.executable, "-m", "sphinx", *options.split(), "docs", str(tmp_path)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert built.returncode == 0, built.stderr
    assert 'class="py class"' in (tmp_path / "api" / "pytorch.html").read_text()


PROJECT = ROOT / "pyproject.toml"
EXTRAS = {"analysis", "dask", "parquet", "plots", "sns", "stores"}
BUILDS = pytest.mark.skipif(importlib.util.find_spec("hatchling") is None, reason="hatchling is not installed")


@BUILDS
def test_the_sdist_has_what_a_build_needs(tmp_path):
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path)]
    subprocess.run([*build, "-t", "sdist"], cwd=ROOT, capture_output=True, check=True, timeout=120)
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        opened.extractall(tmp_path, filter="data")
    unpacked = tmp_path / archive.name.removesuffix(".tar.gz")
    for name in ("LICENSE", "README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/conf.py", "Makefile"):
        assert (unpacked / name).is_file(), name
    assert not (unpacked / "build").exists()
    without_compiler = {**os.environ, "CC": "no-such-compiler"}
    subprocess.run(
        [*build, "-t", "wheel"], cwd=unpacked, capture_output=True, check=True, timeout=120, env=without_compiler
    )
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        files = opened.namelist()
        metadata = opened.read(next(name for name in files if name.endswith("dist-info/METADATA"))).decode()
    assert {"smd_agent.pth", "smd_agent.start", "smd_agent/_site/sitecustomize.py", "smd_agent/py.typed"} <= set(files)
    assert any(name.endswith("licenses/LICENSE") for name in files)
    assert any(name.endswith("licenses/smd_agent/report/static/uPlot.LICENSE") for name in files)
    assert {"smd_agent/report/static/page.html", "smd_agent/report/static/uPlot.iife.min.js"} <= set(files)
    assert "License-Expression: Apache-2.0 AND MIT" in metadata
    # What is for developers is not published, and links lead somewhere from a package index.
    assert {*re.findall(r"^Provides-Extra: (.+)$", metadata, re.M)} == EXTRAS
    assert "# smd_agent\n" in metadata
    assert re.findall(r"\]\((?!https?:|#)[^)]*\)", metadata) == []


def test_fragments_of_the_changelog_have_names_that_its_sections_are_made_of():
    kinds = [kind["directory"] for kind in generator().tomllib.loads(PROJECT.read_text())["tool"]["towncrier"]["type"]]
    named = re.compile(rf"[\w-]+\.({'|'.join(kinds)})\.md")
    names = {path.name for path in (ROOT / "changelog.d").iterdir()} - {"README.md", "template.md.jinja"}
    assert [name for name in names if not named.fullmatch(name)] == []


SIZE = re.compile(r"\b\d+(?:\.\d+)? k?B\b")
SHARE = re.compile(r"[<>]?\b\d+(?:\.\d+)?%")
BARS = re.compile("[▁▂▃▄▅▆▇█]+")
DECIMAL = re.compile(r"-?\b\d+(?:\.\d+(?:e[+-]?\d+)?|e[+-]?\d+)(?![\w.])")
WITH_COMMANDS = [page for page in PAGES if blocks(page, "console", "pycon")]
SCRIPTS = [(page, number) for page in PAGES for number, one in enumerate(blocks(page, "python")) if not one.file]


def interpreter(needs):
    """The interpreter that a block asks for; its test is skipped where there is none."""
    if not needs:
        return sys.executable
    if not os.environ.get(needs):
        pytest.skip(f"{needs} names no interpreter")
    return os.environ[needs]


def run(command, folder, python):
    """Run a line of shell as a user does; return what appears on the terminal."""
    path = f"{Path(python).parent}:{os.environ['PATH']}"
    # Where much else runs, a second is too short for a verdict.
    patient = {"SMD_AGENT_VERDICT_SECONDS": "60"}
    quiet = {**patient, "PYTHONUNBUFFERED": "1", "PATH": path, "PYTHONWARNINGS": "ignore", "OMP_NUM_THREADS": "1"}
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    done = subprocess.run(
        command, shell=True, cwd=folder, env={**os.environ, **quiet}, timeout=120, check=False, **streams
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}"
    return done.stdout


@pytest.fixture(scope="module")
def launch(tmp_path_factory):
    """Run a command; a training that several pages show is run once, and its folder copied."""
    done = {}

    def once(command, folder, python):
        out = re.match(r"python -m smd_agent --out (\S+) .*examples/", command)
        if not out:
            return run(command, folder, python)
        if command not in done:
            place = tmp_path_factory.mktemp("trained")
            (place / "examples").symlink_to(ROOT / "examples")
            done[command] = run(command, place, python), place
        printed, place = done[command]
        shutil.copytree(place / out[1], folder / out[1], dirs_exist_ok=True)
        return printed

    return once


def plain(text):
    """The text with what differs between releases made alike."""
    text = DECIMAL.sub("#", BARS.sub("▁", SHARE.sub("#%", SIZE.sub("# B", text))))
    return [" ".join(line.split()) for line in text.strip().splitlines()]


def matches(expected, printed):
    pattern = "".join(
        "(?:.*\n)*?" if line == "…" else ".*".join(map(re.escape, line.split("…"))) + "\n" for line in plain(expected)
    )
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in plain(printed))) is not None


def test_a_wrong_output_is_noticed():
    assert matches("a 1.25\n…\nc …/d 3 kB", "a   2.5\nb\nb\nc  /tmp/d 3.7 kB\n")
    assert matches("a ▁▂█ 0%", "a ██▁▁ 12%")
    assert not matches("a ▁▂█×", "a ▁▂█")
    assert not matches("a 1", "a 2")
    assert not matches("a nan", "a 1.5")
    assert not matches("a\n…\nc", "a\nb\n")
    assert not matches("a", "a\nb")


def commands(text):
    """(command, what it prints) of each line that begins with a dollar sign."""
    joined = re.sub(r"\\\n\s*", "", text)
    for part in re.split(r"^\$ ", joined, flags=re.M)[1:]:
        command, _, printed = part.partition("\n")
        yield command, printed


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=name_of)
def test_commands_print_what_the_page_says(page, tmp_path, monkeypatch, launch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for block in blocks(page, "python", "json"):
        if block.file:
            (tmp_path / block.file).write_text(block.text)
    names = {}
    for number, block in enumerate(blocks(page, "console", "pycon")):
        if block.language == "console":
            for command, expected in commands(block.text):
                printed = launch(command, tmp_path, interpreter(block.needs))
                assert matches(expected, printed), f"$ {command}\n{printed}"
        else:
            test = doctest.DocTestParser().get_doctest(block.text, names, f"block {number}", name_of(page), 0)
            said = []
            runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
            assert runner.run(test, out=said.append, clear_globs=False).failed == 0, "".join(said)
            names = test.globs


@pytest.mark.parametrize("page, number", SCRIPTS, ids=lambda value: value if isinstance(value, int) else name_of(value))
def test_scripts_save_a_run(page, number, tmp_path):
    block = blocks(page, "python")[number]
    (tmp_path / "script.py").write_text(block.text)
    run("python script.py", tmp_path, interpreter(block.needs))
    assert create_trial(tmp_path / "smd_runs" / "mine").tensor_names()
