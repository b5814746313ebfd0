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
OURS = {"self", "tracked", "position", "plain_access", "sys"}
ALLOWED = {
    # A module that stands there by its name.
    ("smd_agent/pytorch/plain_access.py", "torch.nn.modules"),
    # In every call, where it has been seen before that nothing of the class is run by it.
    ("smd_agent/pytorch/model/step_counter.py", "flags.training"),
    # Another model that is tracked, an object of ours.
    ("smd_agent/pytorch/hook.py", "other.parameters"),
    # A class of PyTorch's, which keeps it where only its own attribute access finds it.
    ("smd_agent/pytorch/plain_access.py", "module.training"),
}
# Objects of ours, asked whether they are of a class of ours, or of Python's.
KNOWN_KINDS = {"str", "CodeType", "SavedStep", "Collection", "Hook"}
KNOWN_KINDS |= {"ast.Attribute", "ast.Call", "ast.Name", "ast.Starred"}


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


# Gluon and XGBoost, whose blocks, parameters, Trainers, matrices and boosters may be of any class too.
OF_GLUON = {
    *("collect_params", "apply", "params", "grad_req", "list_data", "list_grad", "list_ctx", "lr_mult", "wd_mult"),
    *("_params", "_children", "_cached_op", "_cached_graph", "_active", "_callback", "prefix", "_fresh_grad"),
}
ASKED = {
    # Objects of ours.
    "isinstance(capture, SavedStep)",
    "isinstance(other, Hook)",
    "isinstance(place, NodeOutput)",
    "getattr(depth, 'level', 0)",
    # A class of MXNet's, by its name.
    "hasattr(HybridBlock, '_get_graph')",
    # What a script hands to a hook of ours, which is no matrix, and what JSON was read as.
    "isinstance(data, tuple)",
    "isinstance(data[0], str)",
    "isinstance(condition, list)",
    # A matrix that ``plain`` has given.
    "getattr(data, 'data_split_mode', None)",
}
# Keras and TensorFlow, whose models, layers, optimizers, losses, graphs and functions may be of any class, too.
OF_KERAS = ("framework/keras", "tensorflow", "pytorch/keras_fit")
NOT_OF_PROGRAMS = {
    # Modules and classes of Keras's.
    "smd_agent/framework/keras/environment.py",
    "smd_agent/pytorch/keras_fit/backend.py",
    "smd_agent/tensorflow/keras_fit/packages.py",
    "smd_agent/tensorflow/keras_fit/versions.py",
    # What a script hands to a hook of ours.
    "smd_agent/tensorflow/collection.py",
    "smd_agent/tensorflow/keras_fit/legacy_values.py",
}
ASKED_OF_KERAS = {
    # Objects of ours.
    "isinstance(collection, Collection)",
    "isinstance(key, TracedSide)",
    "isinstance(key, TracedGiven)",
    "isinstance(key, TracedRate)",
    "isinstance(key, TracedValue)",
    "isinstance(self.value, Deferred)",
    "isinstance(steps, int)",
    "isinstance(key, TracedInput)",
    "isinstance(tap.key, (TracedGiven, TracedInput, TracedSide))",
    "isinstance(value, Converted)",
    # A class of Keras's, and what TensorFlow's estimators have made themselves.
    "getattr(trainer, _maker(kind))",
    "getattr(built, 'loss', None)",
    # The program asks its model's function, in whose place ours stands.
    "getattr(self.function, name)",
}
WEAK = {
    # By what is tracked, an object of ours.
    "smd_agent/framework/weights_or_biases.py",
    # By names, which are texts of TensorFlow's; what is held is ours.
    "smd_agent/tensorflow/tape/compiled_step.py",
}


def nodes_of(*folders: str) -> Iterator[tuple[str, ast.AST]]:
    for folder in folders:
        for path in sorted((ROOT / "smd_agent" / folder).rglob("*.py")):
            if path.name != "observed.py":
                for node in ast.walk(ast.parse(path.read_text())):
                    yield relative(path), node


def test_blocks_and_trainers_of_gluon_are_read_by_the_room_for_that_only():
    found = [(path, ast.unparse(node)) for path, node in nodes_of("mxnet") if isinstance(node, ast.Attribute)
             and node.attr in OF_GLUON]  # fmt: skip
    assert found == []


def test_no_object_of_gluon_or_xgboost_is_asked_for_its_class_or_an_attribute():
    calls = [node for _, node in nodes_of("mxnet", "xgboost") if isinstance(node, ast.Call)]
    asked = {ast.unparse(node) for node in calls if ast.unparse(node.func) in ("isinstance", "getattr", "hasattr")}
    assert asked == ASKED


def test_no_object_of_keras_or_tensorflow_is_asked_for_its_class_or_an_attribute():
    calls = [node for path, node in nodes_of(*OF_KERAS) if isinstance(node, ast.Call) and path not in NOT_OF_PROGRAMS]
    asked = {ast.unparse(node) for node in calls if ast.unparse(node.func) in ("isinstance", "getattr", "hasattr")}
    assert asked == ASKED_OF_KERAS


def test_no_object_of_any_framework_is_asked_for_its_hash():
    weak = {"WeakKeyDictionary", "WeakSet", "WeakValueDictionary"}
    rooms = nodes_of("mxnet", "xgboost", "tensorflow", "framework")
    assert {path for path, node in rooms if isinstance(node, ast.Attribute) and node.attr in weak} == WEAK
