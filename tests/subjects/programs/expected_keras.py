"""What the authors of the Keras and TensorFlow programs expect; see ``harness.programs.Expected``."""

from importlib.metadata import version

from harness.programs import Expected, Printed

from smd_agent.core.modes import ModeKeys

EVAL = ModeKeys.EVAL
KERAS_2 = version("keras").startswith("2.")
NOT_OF_THE_MODEL = (
    "no tensor of inputs, outputs, input_digests came up in a step that was saved: a step of fit does not"
)
NO_BIASES = "no tensor of biases came up in a step that was saved"
NO_USAGE = "no tensor of usage came up in a step that was saved: of "
NO_MODEL = "no tensor of inputs, outputs, layers, input_digests came up in a step that was saved: of a loop with a"

EXPECTED = {
    "adversarial_fit": Expected(
        train=2 * 4,
        losses=("d_loss", "g_loss"),
        trained={"dense": 8},
        printed=(
            Printed("d_loss", r"d_loss ([\d.]+)"),
            Printed("g_loss", r"g_loss ([\d.]+)"),
        ),
        files=("generator.weights.h5",),
        code=1,
        said=(NOT_OF_THE_MODEL,),
    ),
    # What Keras logs is the mean of an epoch so far.
    "custom_train_step": Expected(
        train=3 * 6,
        evaluations=2,
        losses=("sparsity_loss", "total_loss"),
        trained={"code/": 2, "decoded/": 2},
        printed=(Printed("total_loss", r"total loss ([\d.]+)", first=5, every=6),),
        files=("decoder.npy",),
        code=9,
        said=(NOT_OF_THE_MODEL, NO_USAGE),
        deviations={"parameters": "what a model's metrics count is in weights"} if KERAS_2 else {},
    ),
    "fit_callbacks": Expected(
        train=4 * 5,
        evaluations=4 * 2,
        losses=("amount_loss", "batch_loss", "kind_loss", "loss"),
        trained={"amount/": 2, "hidden/": 2, "kind/": 2},
        printed=(
            Printed("loss", r" loss=([\d.]+)", first=4, every=5),
            Printed("kind_loss", r" kind_loss=([\d.]+)", first=4, every=5),
            Printed("val_loss", r"val_loss=([\d.]+)", first=1, every=2, mode=EVAL),
        ),
        files=("best.weights.h5", "log.csv", "weights.npz"),
    ),
    # Variables that are called b0 are in weights here.
    "tape_loop": Expected(
        train=4 * 4,
        losses=("loss",),
        trained={"weights/": 4},
        printed=(Printed("loss", r"step \d+ loss ([\d.]+)"),),
        files=("mlp.ckpt.data-00000-of-00001", "mlp.ckpt.index"),
        said=(NO_BIASES, NO_MODEL, "no tensor of optimizer_variables came up in a step that was saved: of a"),
    ),
    # It also asks for predictions.
    "anomalies": Expected(
        train=4 * 4,
        evaluations=4,
        losses=("batch_loss", "loss"),
        trained={"dense": 8},
        printed=(
            Printed("loss", r" loss: ([\d.]+)", first=3, every=4),
            Printed("val_loss", r"val_loss: ([\d.]+)", mode=EVAL),
        ),
        files=("detector.weights.h5", "scores.npz"),
    ),
    "attention_seq2seq": Expected(
        train=3 * 4,
        evaluations=3,
        losses=("batch_loss", "loss"),
        trained={
            **{"attention/": 1, "chars/": 2, "gru_cell/": 3, "mix/": 2, "source_": 1, "target_": 1},
            "model/" if KERAS_2 else "functional/": 3,
        },
        printed=(
            Printed("loss", r" loss ([\d.]+)", first=3, every=4),
            Printed("val_loss", r"val_loss ([\d.]+)", mode=EVAL),
        ),
        files=("dates.weights.h5",),
    ),
    # Neither its layers nor its optimizer are of Keras.
    "own_optimizer": Expected(
        train=3 * 6,
        losses=("loss",),
        trained={"weights/": 4},
        printed=(Printed("loss", r"batch \d loss ([\d.]+)"),),
        files=("mlp.npz",),
        said=(
            NO_BIASES,
            NO_MODEL,
            "no tensor of optimizer_variables, updates, optimizer, parameters came up in a step that was saved: no opt",
        ),
    ),
    # It also asks for the distances of a batch.
    "triplets": Expected(
        train=3 * 4,
        evaluations=3 * 2,
        losses=("loss",),
        trained={"dense": 4},
        printed=(
            Printed("loss", r"^loss: ([\d.]+)", first=3, every=4),
            Printed("val_loss", r"val_loss: ([\d.]+)", first=1, every=2, mode=EVAL),
        ),
        files=("embedding.weights.h5",),
        deviations={"parameters": "what a model's metrics count is in weights"} if KERAS_2 else {},
    ),
    # Gradients of the critic's second and third update have a number.
    "wgan_train_step": Expected(
        train=2 * 4,
        losses=("d_loss", "g_loss"),
        trained={"dense": 8},
        printed=(
            Printed("d_loss", r"d_loss ([-\d.]+)"),
            Printed("g_loss", r"g_loss ([-\d.]+)"),
        ),
        files=("generator_0.weights.h5", "generator_1.weights.h5"),
        said=(NOT_OF_THE_MODEL, NO_USAGE),
    ),
}
