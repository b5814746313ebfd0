"""Values of all kinds as the hook reads them, while a variable goes on changing. Usage: values.py"""

import json

import numpy as np
import tensorflow as tf

from smd_agent.tensorflow.arrays import Rows, to_array
from smd_agent.tensorflow.loss_scaling import unscaled

variable = tf.Variable([1.0, 2.0])
held = to_array(variable)[0]
tensor = tf.constant([[1, 2], [3, 4]])
kept = to_array(tensor)[0]
same = np.shares_memory(kept, to_array(tensor)[0]), np.shares_memory(held, to_array(variable)[0])
variable.assign_add([10.0, 10.0])
with tf.distribute.MirroredStrategy(["/cpu:0"]).scope():
    mirrored = tf.Variable([5.0])
layer = tf.keras.layers.Dense(2, kernel_initializer="ones")
layer.build((None, 1))
created = []


@tf.function
def traced(symbol):
    before = len(symbol.graph.get_operations())
    created.extend([to_array(symbol), to_array(variable), len(symbol.graph.get_operations()) - before])
    return symbol


traced(tensor)
kinds = {
    "variable": variable,
    "mirrored": mirrored,
    "of a layer": layer.kernel,
    "half": tf.constant([0.5], tf.float16),
    "bfloat16": tf.Variable(tf.constant([0.5], tf.bfloat16)),
    "complex": tf.constant([1 + 2j]).numpy().imag,
    "text": tf.Variable(["a", "ä"]),
    "number": tf.constant(7),
    "empty": tf.zeros((0, 3)),
    "rows": tf.IndexedSlices(tf.constant([[1.0], [2.0], [3.0]]), tf.constant([2, 0, 2]), tf.constant([3, 1])),
    "resource": variable.handle,
    "bytes": b"abc",
    "none": None,
}
coarse = tf.constant([[1.0], [256.0], [1.0]], tf.bfloat16)
rows = Rows(coarse, tf.constant([0, 2, 2]), (3, 1))
# Read only if it is saved, as the recorder does; sums and quotients are those of the wider type.
kinds["coarse rows"] = rows.read()
kinds["scaled"] = unscaled(tf.constant([8.0], tf.float16), 4.0).read()
kinds["scaled rows"] = unscaled(rows, 3.0).read()
kinds["not scaled"] = unscaled(tensor, 1.0)
kinds["unreadable"] = unscaled(variable.handle, 2.0).read()
found = {}
for kind, value in kinds.items():
    read = to_array(value)
    found[kind] = read and [str(read[0].dtype), list(read[0].shape), read[0].tolist(), read[1]]
print(json.dumps({"found": found, "held": held.tolist(), "same": [bool(s) for s in same], "traced": created}))
