"""What the authors of the PyTorch programs with ways of training of their own expect; see ``harness.programs``."""

from harness.programs import Expected, Printed

from smd_agent.core.modes import ModeKeys

EVAL = ModeKeys.EVAL
LOSS = "Loss_output_0"
CROSS_ENTROPY = "CrossEntropyLoss_output_0"

EXPECTED = {
    # The adjoint equation calls the dynamics in the backward pass.
    "adjoint_ode": Expected(
        train=4 * 4,
        evaluations=4,
        losses=(CROSS_ENTROPY,),
        trained={"ODENet_": 8},
        printed=(
            Printed(CROSS_ENTROPY, r"\| loss ([\d.]+)"),
            Printed(CROSS_ENTROPY, r"val loss ([\d.]+)", mode=EVAL),
        ),
        files=("model.pth",),
    ),
    # Two samples of the weights in a step; the ensemble has four, and the mean.
    "bayes_by_backprop": Expected(
        train=6 * 4,
        evaluations=5,
        losses=(LOSS, "mse_loss_output_0"),
        trained={"BayesianNetwork_": 8},
        printed=(
            Printed(LOSS, r"epoch \d+ loss ([\d.]+)"),
            Printed("mse_loss_output_0", r"likelihood ([\d.]+)", times=50),
        ),
        files=("bbb.pt",),
    ),
    # Four settings, three folds each, and the best once more.
    "grid_search_net": Expected(
        train=12 * 3 * 4 + 3 * 6,
        evaluations=12 + 1,
        losses=(CROSS_ENTROPY,),
        trained={"Sequential_": 4},
        printed=(Printed(CROSS_ENTROPY, r"hidden=4 .* epoch 0 loss ([\d.]+)", steps=4, every=12),),
        files=("best_net.pt",),
    ),
    # The penalty's calls are not saved, and neither is that of the held-out rows.
    "jacobian_penalty": Expected(
        train=3 * 6,
        evaluations=None,
        losses=(LOSS, CROSS_ENTROPY),
        trained={"Net_": 4},
        printed=(
            Printed(LOSS, r"^loss ([\d.]+)"),
            Printed(CROSS_ENTROPY, r"cross entropy ([\d.]+)"),
        ),
        files=("smooth.pt",),
        said=("a call in which the model is traced or transformed is not saved",),
    ),
    "lookahead": Expected(
        train=6 * 6,
        evaluations=6 * 2,
        losses=("SmoothL1Loss_output_0",),
        trained={"Regressor_": 6},
        printed=(
            Printed("SmoothL1Loss_output_0", r"train loss ([\d.]+)", steps=6),
            Printed("SmoothL1Loss_output_0", r"valid loss ([\d.]+)", steps=2, mode=EVAL),
        ),
        files=("best.pt",),
    ),
    # The queue's first keys are noise, which is told apart easily: the loss rises to that of the guessing.
    "moco": Expected(
        train=4 * 6,
        losses=(CROSS_ENTROPY,),
        trained={"MoCo_encoder_q.": 7},
        printed=(Printed(CROSS_ENTROPY, r"Loss ([\d.]+) "),),
        files=tuple(f"checkpoint_{epoch:04d}.pth.tar" for epoch in range(4)),
        findings=("LossNotDecreasing",),
    ),
    "optimizer_each": Expected(
        train=16,
        evaluations=1,
        losses=(LOSS,),
        trained={"Net_": 16},
        printed=(Printed(LOSS, r"step \d+ loss ([\d.]+)"),),
        files=("fused.pt",),
    ),
    # The teacher is not trained.
    "feature_distillation": Expected(
        train=4 * 6,
        evaluations=4 * 2,
        losses=(LOSS, "KLDivLoss_output_0", "MSELoss_output_0", "cross_entropy_loss_output_0"),
        trained={"ConvNet_": 6, "Conv2d_": 2},
        printed=(
            Printed(LOSS, r", Loss: ([\d.]+)", steps=6),
            Printed("cross_entropy_loss_output_0", r"Test Loss: ([\d.]+)", steps=2, mode=EVAL),
        ),
        files=("student.pth", "teacher.pth"),
    ),
    # An update after each ten proposals; those of the new task are evaluations.
    "learned_optimizer": Expected(
        train=8 * 2,
        evaluations=20,
        losses=(LOSS,),
        trained={"LSTMOptimizer_": 6},
        printed=(Printed(LOSS, r"meta loss ([\d.]+)"),),
        files=("learned_optimizer.pt",),
    ),
    # The weights have parameters of their own.
    "multi_task": Expected(
        train=4 * 5,
        evaluations=4 * 2,
        losses=(LOSS, "MSELoss_output_0", CROSS_ENTROPY),
        trained={"MultiTaskNet_": 8, "UncertaintyWeighting_": 1},
        printed=(
            Printed(LOSS, r"^loss ([\d.]+)"),
            Printed("MSELoss_output_0", r"progress ([\d.]+)"),
            Printed("MSELoss_output_0", r"held out ([\d.]+)", steps=2, mode=EVAL),
        ),
        files=("multi_task.pt",),
    ),
    # What is pruned has other names: three weights, and the same three beneath masks.
    "pruning": Expected(
        train=4 * 10,
        evaluations=4,
        losses=("BCEWithLogitsLoss_output_0",),
        trained={"Sequential_": 3 + 3 + 3},
        printed=(Printed("BCEWithLogitsLoss_output_0", r"mean loss ([\d.]+)", steps=10),),
        files=("ticket.pt",),
    ),
}
