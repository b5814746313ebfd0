"""What the authors of the Gluon programs expect; see ``harness.programs.Expected``."""

from harness.programs import Expected, Printed

from smd_agent.core.modes import ModeKeys

SOFTMAX = "softmaxcrossentropyloss0_output_0"
SIGMOID = "sigmoidbinarycrossentropyloss0_output_"
L2 = ("l2loss0_output_0", "l2loss0_output_1")

EXPECTED = {
    # Both nets in one step; samples are drawn once.
    "dcgan": Expected(
        train=12,
        evaluations=1,
        losses=("loss0_output_0", *(f"{SIGMOID}{number}" for number in range(3))),
        trained={"discriminator_": 4, "generator_": 6},
        printed=(
            Printed("loss0_output_0", r"discriminator ([\d.]+)"),
            Printed(f"{SIGMOID}2", r"generator ([\d.]+)"),
        ),
        files=("netD-0000.params", "netD-symbol.json", "netG.params", "samples.npy"),
    ),
    "image_classifier": Expected(
        train=4 * 5,
        evaluations=4 * 2,
        losses=(SOFTMAX,),
        trained={"net_": 6},
        printed=(Printed(SOFTMAX, r"train loss ([\d.]+)", steps=5),),
        files=("best.params", "best.states"),
    ),
    # Two contexts.
    "matrix_factorization": Expected(
        train=6 * 4,
        evaluations=6,
        losses=L2,
        trained={"mf_": 3},
        printed=(Printed(L2, r"loss ([\d.]+)", steps=4),),
        files=("mf.params",),
        code=1,
    ),
    # Each letter that it writes is an evaluation.
    "text_generator": Expected(
        train=3 * 6,
        evaluations=10,
        losses=(SOFTMAX,),
        trained={"lm_": 7},
        printed=(Printed(SOFTMAX, r"step \d+ loss ([\d.]+)"),),
        files=("lm.pkl",),
        code=4,
    ),
    # Anchors that count for nothing are labelled -1, which the loss takes for 0.
    "ssd": Expected(
        train=12,
        evaluations=1,
        losses=("loss0_output_0", "smoothl1loss0_output_0", SOFTMAX),
        trained={"toyssd_": 20},
        printed=(
            Printed(SOFTMAX, r"class loss ([\d.]+)"),
            Printed("smoothl1loss0_output_0", r"box loss ([\d.]+)"),
        ),
        files=("ssd.params",),
        findings=("LabelOutOfRange",),
    ),
    # Only the image is trained.
    "style_transfer": Expected(
        train=15,
        losses=("loss0_output_0",),
        trained={"image_": 1},
        printed=(Printed("loss0_output_0", r"loss ([\d.]+)"),),
        files=("painting.npy",),
        said=("no tensor of biases",),
    ),
    "word_language_model": Expected(
        train=3 * 6,
        evaluations=3 * 2,
        losses=(SOFTMAX,),
        trained={"model_": 7},
        printed=(
            Printed(SOFTMAX, r"\] loss ([\d.]+)"),
            Printed(SOFTMAX, r"valid loss ([\d.]+)", steps=2, mode=ModeKeys.EVAL),
        ),
        files=("model.params",),
    ),
}
