"""Rules of the source tree by which nothing is called that a class of the program's can override."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted((ROOT / "smd_agent/pytorch").rglob("*.py"))
LEFT_OUT = {
    # The observer, which runs where the package is not imported.
    "smd_agent/pytorch/observed.py",
}

# What modules, optimizers and scalers of PyTorch have, and a class may have in another way.
FORBIDDEN = {
    *("parameters", "named_parameters", "modules", "named_modules", "children", "named_children", "buffers"),
    *("named_buffers", "state_dict", "training", "eval", "param_groups", "is_enabled", "get_scale", "__dict__"),
}
# Names of what is ours, or a module of Python's, whatever it has.
OURS = {"self", "tracked", "position", "structure", "sys"}
ALLOWED = {
    # Modules that stand there by their name.
    ("smd_agent/pytorch/capture/losses.py", "torch.nn.modules"),
    ("smd_agent/pytorch/capture/persistent_hooks.py", "torch.nn.modules"),
    # In every call, where it has been seen before that nothing of the class is run by it.
    ("smd_agent/pytorch/model/step_counter.py", "flags.training"),
    # A class of PyTorch's, which keeps it where only its own attribute access finds it.
    ("smd_agent/pytorch/structure.py", "module.training"),
}
# Objects of ours, asked whether they are of a class of ours, or of Python's.
KNOWN_KINDS = {"str", "CodeType", "SavedStep", "Collection", "Hook"}


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def nodes() -> Iterator[tuple[str, ast.AST]]:
    for path in SOURCES:
        # Models of Keras are known by what Keras tells of them.
        if relative(path) not in LEFT_OUT and "keras_fit" not in path.parts:
            for node in ast.walk(ast.parse(path.read_text())):
                yield relative(path), node


def test_modules_and_optimizers_are_read_by_the_rooms_for_that_only():
    asked = [(path, node) for path, node in nodes() if isinstance(node, ast.Attribute) and node.attr in FORBIDDEN]
    found = {(path, ast.unparse(node)) for path, node in asked if ast.unparse(node.value) not in OURS}
    assert found == ALLOWED


def test_no_object_is_asked_for_its_class():
    calls = [(path, node) for path, node in nodes() if isinstance(node, ast.Call)]
    asked = [(path, node) for path, node in calls if ast.unparse(node.func) == "isinstance"]
    assert [(path, ast.unparse(node)) for path, node in asked if ast.unparse(node.args[1]) not in KNOWN_KINDS] == []


def test_no_object_is_asked_for_its_hash():
    weak = {"WeakKeyDictionary", "WeakSet", "WeakValueDictionary"}
    rooms = [(path, node) for path, node in nodes() if isinstance(node, ast.Attribute)]
    assert [(path, ast.unparse(node)) for path, node in rooms if node.attr in weak] == []


def test_no_iterable_or_mapping_is_asked_what_it_is():
    # Abstract classes look at more than the type, and what they stand for is overridden.
    abstract = {"Iterable", "Mapping", "Sequence", "Sized", "Iterator"}
    asked = [
        node for _, node in nodes() if isinstance(node, ast.Call) and ast.unparse(node.func) in ("is_a", "isinstance")
    ]
    assert not abstract & {name.id for node in asked for name in ast.walk(node.args[1]) if isinstance(name, ast.Name)}
