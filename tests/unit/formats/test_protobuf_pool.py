import subprocess
import sys

import pytest

# What another library in the same process may do: messages of the same names, with other fields, in the default pool.
OTHERS = """
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

def register():
    classes = []
    for package in ("smdebug", "tensorflow"):
        file = descriptor_pb2.FileDescriptorProto(name=package + "/event.proto", package=package, syntax="proto3")
        for name in ("Event", "Summary", "TensorProto", "HistogramProto"):
            message = file.message_type.add(name=name)
            message.field.add(name="other", number=2, type=9, label=1)
        pool = descriptor_pool.Default()
        pool.AddSerializedFile(file.SerializeToString())
        classes.append(message_factory.GetMessageClass(pool.FindMessageTypeByName(package + ".Event")))
    return classes

def use(theirs):
    for other in theirs:
        assert other.FromString(other(other="text").SerializeToString()).other == "text"
    from smd_agent.formats.messages import Event
    event = Event(wall_time=1.5, step=3)
    event.summary.value.add(tag="t").tensor.dtype = 1
    back = Event.FromString(event.SerializeToString())
    assert (back.wall_time, back.step, back.summary.value[0].tag) == (1.5, 3, "t")
"""
BEFORE = "theirs = register()\nimport smd_agent.formats.messages\nuse(theirs)"
AFTER = "import smd_agent.formats.messages\nuse(register())"
NOTHING_REGISTERED = """
import smd_agent.formats.messages
from google.protobuf import descriptor_pool
for find in (descriptor_pool.Default().FindMessageTypeByName, descriptor_pool.Default().FindFileByName):
    for name in ("smdebug.Event", "smd_agent/event.proto"):
        try:
            find(name)
        except KeyError:
            continue
        raise SystemExit(name + " is in the default pool")
"""
BESIDE_TENSORBOARD = """
import smd_agent.formats.messages as ours
from tensorboard.compat.proto.event_pb2 import Event
for message in (Event, ours.Event):
    assert message.FromString(message(step=3).SerializeToString()).step == 3
"""


@pytest.mark.parametrize(
    "code", [OTHERS + BEFORE, OTHERS + AFTER, NOTHING_REGISTERED], ids=["before", "after", "default pool"]
)
def test_our_messages_live_beside_others_of_the_same_name(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_tensorboard_in_the_same_process_is_not_disturbed():
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    done = subprocess.run([sys.executable, "-c", BESIDE_TENSORBOARD], capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
