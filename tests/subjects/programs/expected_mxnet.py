"""What the authors of the Gluon programs expect; see ``harness.programs.Expected``."""

from harness.programs import Expected, Printed

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
}
