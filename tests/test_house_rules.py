"""Rules of the source tree that no linter knows."""

import ast
import graphlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = [*sorted((ROOT / "smd_agent").rglob("*.py")), ROOT / "sitecustomize.py"]
WRITTEN = sorted(
    path
    for folder in (
        "smd_agent",
        "tests",
        "benchmarks",
        "docs",
        "examples",
        "distributions",
        "changelog.d",
        ".ci",
        ".github",
    )
    for path in (ROOT / folder).rglob("*")
    if path.is_file() and "__pycache__" not in path.parts and path.suffix not in (".pyc", ".tfevents", ".so")
) + [
    ROOT / name
    for name in (
        "sitecustomize.py",
        "pyproject.toml",
        "Makefile",
        "README.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "RELEASING.md",
        "SECURITY.md",
    )
]
CEILING = 500
LONGEST_CHAIN = 14
MOST_METHODS = 30
MOST_ATTRIBUTES = 12
# What users call has all that they may ask of it.
FACADES = {
    "smd_agent/analysis/trial.py: Trial",
    "smd_agent/core/hook.py: BaseHook",
    "smd_agent/mxnet/hook.py: Hook",
    "smd_agent/pytorch/hook.py: Hook",
}


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def run_python(code: str) -> str:
    """Run code in a fresh interpreter with the agent's variables unset; return its stdout."""
    inherited = {name: text for name, text in os.environ.items() if not name.startswith(("SMD", "USE_SMD"))}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=inherited, timeout=120, check=True
    )
    return done.stdout


def offenders(paths: list[Path], broken: Callable[[Path], object]) -> list[str]:
    """Return which of the files break a rule, and how."""
    return [f"{relative(path)}: {said}" for path in paths if (said := broken(path))]


def test_a_file_fits_on_a_few_screens():
    def broken(path: Path) -> object:
        lines = len(path.read_text().splitlines())
        return lines > CEILING and f"{lines} lines"

    assert offenders([path for path in WRITTEN if path.suffix == ".py"], broken) == []


def attributes_of(method: ast.AST) -> set[str]:
    """Return the names of the attributes that a method sets on its object."""
    set_here = [
        node for node in ast.walk(method) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    ]
    return {node.attr for node in set_here if isinstance(node.value, ast.Name) and node.value.id == "self"}


def test_a_class_has_few_methods_and_attributes():
    large = set()
    for path in SOURCES:
        for kind in (node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)):
            methods = [node for node in kind.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
            attributes = set().union(*map(attributes_of, methods))
            if len(methods) > MOST_METHODS or len(attributes) > MOST_ATTRIBUTES:
                large.add(f"{relative(path)}: {kind.name}")
    assert large == FACADES


# What begins with one of these says what somebody may ask of a thing, not what it is.
ASKING = {"How", "It", "They", "What", "When", "Where", "Whether", "Which", "Who", "Why"}


def asks_first(docstring: str) -> bool:
    return docstring.split()[0].strip(",:;") in ASKING


def test_a_module_says_first_what_it_is():
    def broken(path: Path) -> object:
        docstring = ast.get_docstring(ast.parse(path.read_text()))
        return docstring is None or asks_first(docstring)

    assert offenders(SOURCES, broken) == []


def test_a_function_and_a_class_say_first_what_they_are():
    def broken(path: Path) -> object:
        nodes = ast.walk(ast.parse(path.read_text()))
        named = [node for node in nodes if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))]
        return [node.name for node in named if asks_first(ast.get_docstring(node) or "none")]

    assert offenders(SOURCES, broken) == []


def test_nothing_names_a_developers_machine():
    def broken(path: Path) -> object:
        found = re.findall(r"(?<![\w.$])/(?:work|root|home|Users|usr/local|mnt|tmp/envs)/\S*", path.read_text())
        return [text for text in found if text != "/" + "work/"]

    assert offenders(WRITTEN, broken) == []


def test_the_rules_are_asked_of_files():
    names = {relative(path) for path in WRITTEN}
    assert {"smd_agent/boot.py", "tests/test_house_rules.py", "README.md", ".ci/run", "Makefile"} <= names
    assert {"smd_agent/boot.py", "sitecustomize.py"} <= {relative(path) for path in SOURCES}


def test_the_core_and_the_formats_open_no_file():
    opening = {"open", "read_text", "read_bytes", "write_text", "write_bytes", "mkdir", "unlink", "replace_file"}
    modules = {"io", "os", "shutil", "socket", "subprocess", "tempfile"}
    found = []
    for path in sorted([*(ROOT / "smd_agent/core").rglob("*.py"), *(ROOT / "smd_agent/formats").rglob("*.py")]):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "id", getattr(node.func, "attr", ""))
                found += [(relative(path), name)] * (name in opening)
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                imported = [getattr(node, "module", None) or "", *(alias.name for alias in node.names)]
                found += [(relative(path), name) for name in imported if name.split(".")[0] in modules]
    assert found == []


def test_the_core_names_no_framework():
    frameworks = re.compile("torch|tensorflow|keras|xgboost|mxnet|gluon", re.I)
    # A collection of the old library, whose name old configurations have.
    kept = re.compile("tensorflow_summaries", re.I)
    found = [
        (relative(path), line.strip())
        for path in sorted((ROOT / "smd_agent/core").rglob("*.[pc]*"))
        if path.suffix in (".py", ".c")
        for line in path.read_text().splitlines()
        if frameworks.search(kept.sub("", line))
    ]
    assert found == []


def imports_between(asked: Callable[[ast.AST], Iterator[ast.ImportFrom]]) -> dict[str, set[str]]:
    """Return, for each module, the modules of the package that it imports by these statements."""
    names = {path: relative(path).removesuffix(".py").removesuffix("/__init__").replace("/", ".") for path in SOURCES}
    modules = {*names.values()}
    imports: dict[str, set[str]] = {}
    for path, name in names.items():
        statements = asked(ast.parse(path.read_text()))
        found = [(node.module or "", f"{node.module}.{alias.name}") for node in statements for alias in node.names]
        imports[name] = {part if part in modules else module for module, part in found} & modules
    return imports


def all_imports(tree: ast.AST) -> Iterator[ast.ImportFrom]:
    """Yield those for types, and those inside of functions, too."""
    return (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))


def imports_at_once(tree: ast.AST) -> Iterator[ast.ImportFrom]:
    """Yield those that are made when the module is."""
    for node in ast.iter_child_nodes(tree):
        is_later = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        if is_later or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)):
            continue
        if isinstance(node, ast.ImportFrom):
            yield node
        yield from imports_at_once(node)


def test_no_imports_run_in_a_circle():
    circle: list[str] = []
    try:
        graphlib.TopologicalSorter(imports_between(all_imports)).prepare()
    except graphlib.CycleError as error:
        circle = error.args[1]
    assert circle == []


def test_no_chain_of_imports_is_long():
    imports = imports_between(imports_at_once)
    chains: dict[str, list[str]] = {}
    for name in graphlib.TopologicalSorter(imports).static_order():
        chains[name] = [name, *max((chains[below] for below in imports[name]), key=len, default=[])]
    assert len(longest := max(chains.values(), key=len)) <= LONGEST_CHAIN, " > ".join(longest)


def test_functions_of_frameworks_are_replaced_by_the_register_only():
    # Decorators of our own methods, the tape that a program has handed over, which is its own, and the observer, which
    # runs where the register must not be.
    own = {
        *("smd_agent/core/locking.py", "smd_agent/framework/step_events.py"),
        *("smd_agent/tensorflow/tape/tape_loops.py", "smd_agent/framework/observer.py"),
    }
    register = "smd_agent/framework/replaced_functions.py"

    def broken(path: Path) -> object:
        text = path.read_text()
        found = re.findall(r'functools\.wraps|\b(?:setattr|delattr)\((?!self|KerasHook|cls, "__bases__")', text)
        return relative(path) not in {register, *own} and found

    rooms = [
        path
        for path in SOURCES
        if re.match("smd_agent/(framework|pytorch|tensorflow|mxnet|xgboost|patches)/", relative(path))
    ]
    assert offenders(rooms, broken) == []


def test_what_depends_on_cpythons_insides_stands_in_one_folder():
    # These import nothing of the package.
    own = {*(f"smd_agent/{name}/observed.py" for name in ("framework/keras", "mxnet", "pytorch"))}
    tricks = re.compile(
        r"\b(?:getrefcount|_getframe|pythonapi|co_code|co_positions|setrecursionlimit)\b|\bgc\.get_|\.replace\(co_"
        r"|^(?:import|from) (?:_thread|dis|opcode)\b",
        re.M,
    )

    def broken(path: Path) -> object:
        return relative(path) not in own and tricks.findall(path.read_text())

    outside = [path for path in SOURCES if not relative(path).startswith("smd_agent/interpreter/")]
    assert offenders(outside, broken) == []
    assert len(offenders(SOURCES, broken)) > 5


def test_importing_the_package_loads_nothing_heavy():
    heavy = ["numpy", "wrapt", "google.protobuf", "crc32c", "torch", "logging", "json", "threading"]
    code = "import sys; before = set(sys.modules); import smd_agent; print(*(set(sys.modules) - before))"
    assert set(run_python(code).split()) & set(heavy) == set()


def test_reading_a_run_needs_no_framework():
    code = "import sys; from smd_agent import create_trial; print('torch' in sys.modules, 'wrapt' in sys.modules)"
    assert run_python(code).strip() == "False False"


def test_every_exported_name_exists():
    code = "import json, smd_agent; print(json.dumps([n for n in smd_agent.__all__ if not hasattr(smd_agent, n)]))"
    assert json.loads(run_python(code)) == []


def test_the_version_is_the_packaged_one():
    assert run_python("import smd_agent; print(smd_agent.__version__)").strip() == metadata.version("smd-agent")


def test_commands_print_by_one_printer():
    # What a command says of itself is text of ours.
    found = re.compile(r"\bprint\((?!__doc__|metadata|\(__doc__)|sys\.stdout\.write")
    commands = sorted((ROOT / "smd_agent/cli").rglob("*.py"))
    printing = {relative(path) for path in commands if found.search(path.read_text())}
    assert printing == {"smd_agent/cli/output.py"}


def test_tests_of_a_framework_that_one_environment_has_are_run_there():
    for package, environment in (("mxnet", "mxnet"), ("lightning", "trainers")):
        listed = (ROOT / "tests" / "environments" / f"{environment}.txt").read_text().partition("# tests: ")[2]
        run = {path for pattern in listed.splitlines()[0].split() for path in ROOT.glob(pattern)}
        # At the start of a line: the whole file is left out elsewhere.
        skips = re.compile(rf"^(\w+ = )?pytest\.importorskip\(\"{package}\"\)", re.MULTILINE)
        needing = {path for path in (ROOT / "tests").rglob("test_*.py") if skips.search(path.read_text("utf-8"))}
        assert sorted(map(relative, needing - run)) == []
