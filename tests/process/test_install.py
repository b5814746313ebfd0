"""The command install: it makes a Python start the agent, says whether one does, and takes away what it wrote."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import pytest

from smd_agent.image import start_files

ROOT = Path(__file__).resolve().parents[2]
LIBRARIES = sysconfig.get_path("purelib")
ARMED = "import sys; print(any(type(finder).__name__ == '_FrameworkFinder' for finder in sys.meta_path))"
INSTALL = ("-m", "smd_agent", "install")
SYSTEM = Path("/usr/bin/python3")
SOMEBODY = 65533


def content(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def install(python, *words, **variables):
    """Run the command in a folder that holds nothing."""
    return python.run(*INSTALL, *words, cwd=python.root, **variables)


def verdict(done):
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("Verdict")]
    return line.removeprefix("Verdict").strip()


def rows(done):
    return {line.split()[0]: line[9:] for line in done.stdout.splitlines()}


def test_the_written_line_is_that_of_the_wheel():
    assert (ROOT / "smd_agent.pth").read_text() == start_files.PTH_TEXT
    assert (ROOT / "smd_agent.start").read_text() == start_files.START_TEXT


def test_a_folder_is_made_known_to_a_python_and_forgotten_again(fresh, copied, hook, tmp_path):
    by_path = {"PYTHONPATH": str(copied), "PYTHONDONTWRITEBYTECODE": "1"}
    before = content(fresh.site_packages), content(copied)
    unknown = install(fresh, "--check", **by_path)
    assert unknown.returncode == 1
    assert verdict(unknown).endswith(f"there is no smd_agent.pth in {fresh.site_packages}")
    done = install(fresh, **by_path)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert f"wrote {fresh.site_packages / 'smd_agent.pth'}\n" in done.stdout
    # From here on without the variable that named the folder.
    again = install(fresh)
    assert (again.returncode, again.stdout.splitlines()[0]) == (0, "there is nothing to do")
    shown = rows(install(fresh, "--check"))
    assert shown["Verdict"] == "this Python starts the agent"
    assert shown["Started"] == f"by {fresh.site_packages / 'smd_agent.pth'}, with -I too"
    assert shown["Package"].endswith(str(copied / "smd_agent"))
    assert shown["Bytecode"].startswith("of all ")
    # Libraries of the site folder come before those of the folder; nothing is compiled when an interpreter starts.
    code = f"{ARMED}; print(sys.path.index({str(copied)!r}) > sys.path.index({str(fresh.site_packages)!r}))"
    verbose = fresh.run("-I", "-v", "-c", code, cwd=tmp_path, SMD_AGENT_HOOK=hook)
    assert verbose.stdout.split() == ["True", "True"]
    assert f"{copied / 'smd_agent' / 'boot.py'}\n" in verbose.stderr
    assert "wrote" not in verbose.stderr
    assert f"code object from {copied}" not in verbose.stderr
    gone = install(fresh, "--uninstall")
    assert (gone.returncode, gone.stderr) == (0, "")
    assert (content(fresh.site_packages), content(copied)) == before
    assert not list(copied.rglob("__pycache__"))
    assert install(fresh, "--check", **by_path).returncode == 1


def test_a_start_up_file_of_others_is_not_overwritten_and_a_changed_one_is_left(fresh, volume):
    path = fresh.site_packages / "smd_agent.pth"
    path.write_text("# mine\n")
    done = install(fresh, PYTHONPATH=str(volume), USE_SMDEBUG="1")
    assert done.returncode == 1
    assert (
        done.stderr
        == f"smd_agent: {path} is there already, but the agent is not started by it: remove it, and try again\n"
    )
    assert path.read_text() == "# mine\n"
    assert sorted(os.listdir(fresh.site_packages)) == ["smd_agent.pth", "zz_libraries.pth"]
    path.unlink()
    assert install(fresh, PYTHONPATH=str(volume)).returncode == 0
    path.write_text(path.read_text() + "# mine\n")
    gone = install(fresh, "--uninstall")
    assert gone.returncode == 0
    assert gone.stderr == f"smd_agent: 1 file changed since, left as they are: {path}\n"
    assert sorted(os.listdir(fresh.site_packages)) == ["smd_agent.pth", "zz_libraries.pth"]


def test_what_keeps_the_agent_from_starting_is_named(fresh, installed, volume, tmp_path):
    by_path = {"PYTHONPATH": str(volume)}
    found = install(fresh, "--check", **by_path)
    assert (found.returncode, verdict(found)) == (0, "this Python starts the agent")
    assert rows(found)["Started"] == "by PYTHONPATH; not with -I and -E, which ignore it"
    off = install(fresh, "--check", **by_path, USE_SMDEBUG="no")
    assert off.returncode == 1
    assert verdict(off).endswith("USE_SMDEBUG=no switches the agent off")
    ignored = fresh.run("-E", *INSTALL, "--check", cwd=tmp_path, **by_path)
    assert ignored.returncode == 1
    assert verdict(ignored).endswith("it is started by PYTHONPATH, which -E ignores")
    bare = installed.run("-S", *INSTALL, "--check", cwd=tmp_path, PYTHONPATH=os.pathsep.join([str(volume), LIBRARIES]))
    assert bare.returncode == 1
    assert verdict(bare).endswith("-S skips all start-up files")
    # One that exits ends every interpreter, whatever else there is.
    (fresh.site_packages / "a.pth").write_text(
        "import sys; 'pip' in sys.orig_argv[-1] or len(sys.orig_argv) < 5 and sys.exit(7)"
    )
    ended = install(fresh, "--check", **by_path)
    assert ended.returncode == 1
    assert "it does not come to run a program (exit code " in verdict(ended)


def test_a_sitecustomize_that_does_not_run_ours_is_named(fresh, volume, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "sitecustomize.py").write_text("")
    hidden = install(fresh, "--check", PYTHONPATH=f"{other}:{volume}")
    assert hidden.returncode == 1
    assert f"{other / 'sitecustomize.py'} comes first and does not run the next sitecustomize.py" in verdict(hidden)
    behind = install(fresh, "--check", PYTHONPATH=f"{volume}:{other}")
    assert behind.returncode == 0
    assert str(other / "sitecustomize.py") in rows(behind)["Beside"]
    # A start-up file of the site folder is not in its way.
    assert install(fresh, PYTHONPATH=f"{other}:{volume}").returncode == 0
    assert install(fresh, "--check", PYTHONPATH=f"{other}:{volume}").returncode == 0


def test_a_library_that_is_missing_or_too_old_is_named(fresh, volume, tmp_path):
    (fresh.site_packages / "zz_libraries.pth").unlink()
    missing = install(fresh, "--check", PYTHONPATH=str(volume))
    assert missing.returncode == 1
    assert "numpy cannot be imported (ModuleNotFoundError: No module named 'numpy')" in verdict(missing)
    (volume / "crc32c.py").write_text("__version__ = '1.5'\n")
    (fresh.site_packages / "zz_libraries.pth").write_text(f"{LIBRARIES}\n")
    (fresh.site_packages / "crc32c.py").write_text("__version__ = '1.5'\n")
    old = install(fresh, "--check", PYTHONPATH=str(volume))
    assert old.returncode == 1
    assert verdict(old).endswith("crc32c 1.5 is too old, 2.3 is needed")


def test_a_kernel_that_cannot_be_loaded_is_said_and_no_obstacle(fresh, copied):
    (copied / "smd_agent" / "core" / "reductions" / "kernel.so").write_bytes(b"not for this machine")
    (fresh.site_packages / "smd_agent.pth").write_text(f"{copied}\n{start_files.PTH_TEXT}")
    found = install(fresh, "--check")
    assert found.returncode == 0
    assert rows(found)["Kernel"].startswith("kernel.so cannot be loaded (")
    assert rows(found)["Kernel"].endswith("; NumPy does it")


@pytest.fixture
def conda(tmp_path):
    """A Python as conda lays it out: a folder with its own library, and no pyvenv.cfg."""
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    library = tmp_path / "conda" / "lib" / version
    (library / "site-packages").mkdir(parents=True)
    (tmp_path / "conda" / "conda-meta").mkdir()
    (tmp_path / "conda" / "conda-meta" / "history").write_text("")
    (tmp_path / "conda" / "bin").mkdir()
    shutil.copy(os.path.realpath(sys.executable), tmp_path / "conda" / "bin" / "python")
    for path in Path(sysconfig.get_path("stdlib")).iterdir():
        if path.name != "site-packages":
            (library / path.name).symlink_to(path)
    (library / "site-packages" / "zz_libraries.pth").write_text(f"{LIBRARIES}\n")
    return tmp_path / "conda"


def test_a_conda_prefix_is_prepared(conda, fresh, volume):
    python = type(fresh)(conda)
    if python.run("-c", "import sys; print(sys.prefix)", cwd=conda).stdout != f"{conda}\n":
        pytest.skip("this Python cannot be copied")
    done = install(python, PYTHONPATH=str(volume))
    assert done.returncode == 0, done.stdout + done.stderr
    assert rows(install(python, "--check"))["Started"] == f"by {python.site_packages / 'smd_agent.pth'}, with -I too"


@pytest.fixture
def shared():
    """A folder that all users may go to, with a copy of the package; pytest's own are for one user."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    shutil.copytree(
        Path(start_files.__file__).parents[1], folder / "smd_agent", ignore=shutil.ignore_patterns("__pycache__")
    )
    (folder / "home").mkdir()
    os.chown(folder / "home", SOMEBODY, SOMEBODY) if os.getuid() == 0 else None
    yield folder
    shutil.rmtree(folder)


def as_somebody(*words, folder, **variables):
    """Run the system's Python, into whose site folders this user may not write."""
    path = os.pathsep.join([str(folder), LIBRARIES])
    return subprocess.run(
        [str(SYSTEM), *words],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": path, **variables},
        cwd=folder / "home",
        user=SOMEBODY,
        group=SOMEBODY,
        extra_groups=[],
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.fixture(scope="module")
def somebody():
    """Skips a test where no other user can run the system's Python with the libraries of this one."""
    code = f"import sys, numpy; sys.exit(sys.version_info[:2] != {sys.version_info[:2]})"
    words = {"env": {"PYTHONPATH": LIBRARIES}, "user": SOMEBODY, "group": SOMEBODY, "extra_groups": []}
    if (
        os.getuid()
        or not SYSTEM.exists()
        or subprocess.run([SYSTEM, "-c", code], capture_output=True, **words).returncode
    ):
        pytest.skip("it takes root, and a system's Python of this version that other users can use")


@pytest.mark.usefixtures("somebody")
def test_a_user_without_write_access_and_home_is_told_in_one_line(shared):
    done = as_somebody(*INSTALL, folder=shared)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("smd_agent: smd_agent.pth cannot be written: Permission denied: ")
    assert "~" not in line
    assert os.listdir(shared / "home") == []
    assert as_somebody(*INSTALL, "--uninstall", folder=shared).returncode == 0


@pytest.mark.usefixtures("somebody")
def test_a_user_without_write_access_gets_the_line_at_home(shared):
    home = {"HOME": str(shared / "home"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = as_somebody(*INSTALL, folder=shared, **home)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("smd_agent: byte code cannot be written (Permission denied: ")
    (path,) = shared.glob("home/.local/lib/python*/site-packages/smd_agent.pth")
    shown = rows(as_somebody(*INSTALL, "--check", folder=shared, **home))
    assert shown["Started"] == f"by {path}; not with -I and -s, which leave a user's own folder out"
    assert "of 0 of " in shown["Bytecode"] or "python -m smd_agent install writes it" in shown["Bytecode"]
    assert as_somebody(*INSTALL, "--uninstall", folder=shared, **home).returncode == 0
    assert os.listdir(shared / "home") == []


@pytest.mark.usefixtures("somebody")
def test_a_line_that_a_user_may_not_read_is_named(shared):
    site = shared / "home" / ".local" / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    site.mkdir(parents=True)
    (site / "smd_agent.pth").write_text(start_files.PTH_TEXT)
    (site / "smd_agent.pth").chmod(0o600)
    found = as_somebody(*INSTALL, "--check", folder=shared, HOME=str(shared / "home"))
    assert found.returncode == 1
    assert verdict(found).endswith(f"{site / 'smd_agent.pth'} is there, but this user may not read it")
