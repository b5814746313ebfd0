"""The protobuf messages of event files, as classes of a pool of their own.

They have the names and field numbers of the package ``smdebug``. The default pool may already hold messages
of these names (the original library's, in the same process), so nothing is registered there, and no generated
code is used: that would tie us to one protobuf release. Differences to TensorFlow's messages: ``plugin_data``
of ``SummaryMetadata`` is repeated, its ``content`` is text, and ``Event`` has a checksum of its own bytes as
field 100 and filler as field 101, which others skip.
"""

from __future__ import annotations

from typing import Any

from smd_agent.own_libraries import own_library

_protobuf = own_library("google.protobuf", "descriptor_pb2", "descriptor_pool", "message", "message_factory")
DecodeError = _protobuf.message.DecodeError

PACKAGE = "smdebug"
CHECKSUM_FIELD = 100
FILLER_FIELD = 101

# Message: {field: (number, type)}; "*" marks a repeated field, "?" the members of the message's one choice.
_SCHEMA: dict[str, dict[str, tuple[int, str]]] = {
    "Event": {
        "wall_time": (1, "double"),
        "step": (2, "int64"),
        "file_version": (3, "?string"),
        "graph_def": (4, "?bytes"),
        "summary": (5, "?Summary"),
        "payload_crc32c": (CHECKSUM_FIELD, "fixed32"),
        "filler": (FILLER_FIELD, "bytes"),
    },
    "Summary": {"value": (1, "*Value")},
    "Value": {
        "tag": (1, "string"),
        "simple_value": (2, "?float"),
        "histo": (5, "?HistogramProto"),
        "node_name": (7, "string"),
        "tensor": (8, "?TensorProto"),
        "metadata": (9, "SummaryMetadata"),
    },
    "SummaryMetadata": {"plugin_data": (1, "*PluginData")},
    "PluginData": {"plugin_name": (1, "string"), "content": (2, "string")},
    "HistogramProto": {
        "min": (1, "double"),
        "max": (2, "double"),
        "num": (3, "double"),
        "sum": (4, "double"),
        "sum_squares": (5, "double"),
        "bucket_limit": (6, "*double"),
        "bucket": (7, "*double"),
    },
    # TensorFlow's dtype is an enumeration, which has the wire form of an int32.
    "TensorProto": {
        "dtype": (1, "int32"),
        "tensor_shape": (2, "TensorShapeProto"),
        "version_number": (3, "int32"),
        "tensor_content": (4, "bytes"),
        "float_val": (5, "*float"),
        "double_val": (6, "*double"),
        "int_val": (7, "*int32"),
        "string_val": (8, "*bytes"),
        "scomplex_val": (9, "*float"),
        "int64_val": (10, "*int64"),
        "bool_val": (11, "*bool"),
        "dcomplex_val": (12, "*double"),
        "half_val": (13, "*int32"),
        "uint32_val": (16, "*uint32"),
        "uint64_val": (17, "*uint64"),
    },
    "TensorShapeProto": {"dim": (2, "*Dim"), "unknown_rank": (3, "bool")},
    "Dim": {"size": (1, "int64"), "name": (2, "string")},
}


def _file() -> Any:
    file = _protobuf.descriptor_pb2.FileDescriptorProto(name="smd_agent/event.proto", package=PACKAGE, syntax="proto3")
    for name, fields in _SCHEMA.items():
        message = file.message_type.add(name=name)
        for field, (number, kind) in fields.items():
            _add_field(message, field, number, kind)
    return file


def _add_field(message: Any, name: str, number: int, kind: str) -> None:
    types = _protobuf.descriptor_pb2.FieldDescriptorProto
    field = message.field.add(name=name, number=number, label=types.LABEL_OPTIONAL)
    if kind.startswith("*"):
        field.label = types.LABEL_REPEATED
    if kind.startswith("?"):
        if not message.oneof_decl:
            message.oneof_decl.add(name="what" if message.name == "Event" else "value")
        field.oneof_index = 0
    kind = kind.lstrip("*?")
    if kind in _SCHEMA:
        field.type = types.TYPE_MESSAGE
        field.type_name = f".{PACKAGE}.{kind}"
    else:
        field.type = getattr(types, f"TYPE_{kind.upper()}")


def _class(pool: Any, name: str) -> Any:
    descriptor = pool.FindMessageTypeByName(f"{PACKAGE}.{name}")
    if hasattr(_protobuf.message_factory, "GetMessageClass"):
        return _protobuf.message_factory.GetMessageClass(descriptor)
    return _protobuf.message_factory.MessageFactory(pool).GetPrototype(descriptor)


def _classes(*names: str) -> tuple[Any, ...]:
    pool = _protobuf.descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(_file().SerializeToString())
    return (*(_class(pool, name) for name in names),)


Event, Summary, TensorProto, HistogramProto = _classes("Event", "Summary", "TensorProto", "HistogramProto")
