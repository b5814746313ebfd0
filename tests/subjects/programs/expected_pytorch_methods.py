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
    # The best one is another object, which is tested after the last validation.
    "best_model": Expected(
        train=6 * 6,
        evaluations=6 + 2,
        losses=(CROSS_ENTROPY,),
        trained={"CNN_": 4},
        printed=(
            Printed(CROSS_ENTROPY, r"\| loss ([\d.]+) \|"),
            Printed(CROSS_ENTROPY, r"valid loss ([\d.]+)", mode=EVAL),
            Printed(CROSS_ENTROPY, r"test batch \| loss ([\d.]+)", first=6, mode=EVAL),
        ),
        files=("model.pt",),
        said=("CNN is evaluated, which nothing trains: its calls are no steps",),
        deviations={
            "steps": "calls of a model that was loaded again, and that nothing trains, are no steps, which a line says",
            "printed": "losses of a model that was loaded again, and that nothing trains, are not saved",
        },
    ),
    # The encoder's last layer comes after the one that is read.
    "byol": Expected(
        train=20,
        losses=(LOSS,),
        trained={"BYOL_online_encoder.": 10, "BYOL_online_predictor.": 6},
        unused=("BYOL_online_encoder.net.fc.1.bias", "BYOL_online_encoder.net.fc.1.weight"),
        printed=(Printed(LOSS, r"loss ([\d.]+)"),),
        files=("improved-net.pt", "learner.pt"),
    ),
    # The last layer is not updated in the first epoch: its gradients are taken away. The loss rises from that of a
    # teacher that is the student to that of a target which is centred.
    "dino": Expected(
        train=3 * 6,
        losses=(LOSS,),
        trained={"MultiCropWrapper_backbone.": 9, "MultiCropWrapper_head.": 5},
        printed=(Printed(LOSS, r"loss: ([\d.]+)"),),
        files=("checkpoint.pth", "log.txt"),
        findings=("LossNotDecreasing",),
        deviations={
            "parameters": "of a layer that is trained all is saved, the fixed scale of the weight normalisation too",
        },
    ),
    # The encoder belongs to both; the swapped faces are an evaluation.
    "face_swap": Expected(
        train=18,
        evaluations=1,
        losses=("L1Loss_output_0", "L1Loss_output_1"),
        trained={"Autoencoder_encoder.": 8, "Autoencoder_decoder.": 6, "Autoencoder_2_decoder.": 6},
        printed=(
            Printed("L1Loss_output_0", r"loss_A ([\d.]+)"),
            Printed("L1Loss_output_1", r"loss_B ([\d.]+)"),
        ),
        files=("decoder_A.h5", "decoder_B.h5", "encoder.h5", "swapped.npy"),
        deviations={"parameters": "what two models share has a name in each of them"},
    ),
    # The loss over all chunks, then a surrogate of each of them; their first pass is without gradients.
    "grad_cache": Expected(
        train=15,
        losses=tuple(f"Loss_output_{number}" for number in range(1 + 6)),
        trained={"Tower_": 8},
        printed=(Printed(LOSS, r"loss ([\d.]+)"),),
        files=("towers.pt",),
    ),
    # Fine-tuning trains copies, without an optimizer. The loss is the sum of those of three tasks; losses of inner
    # updates, whose gradients autograd.grad takes, are no parts of it.
    "maml_learner": Expected(
        train=12,
        evaluations=None,
        losses=(LOSS, *(f"cross_entropy_loss_output_{number}" for number in range(3))),
        trained={"Learner_": 4},
        printed=(Printed(LOSS, r"training loss: ([\d.]+)"),),
        files=("learner.pt",),
        said=("no tensor of biases came up in a step that was saved",),
    ),
    # Gradients of samples are taken by torch.func, and put where an optimizer looks for them.
    "private_sgd": Expected(
        train=3 * 12,
        evaluations=3,
        without_loss=tuple(range(3 * 12)),
        trained={"Classifier_": 6},
        printed=(Printed(CROSS_ENTROPY, r"held out ([\d.]+)", mode=EVAL),),
        files=("private.pt",),
        said=("gradients taken by torch.func cannot be seen",),
        deviations={
            "steps": "gradients by torch.func are not seen",
            "losses": "gradients by torch.func are not seen",
            "parameters": "gradients by torch.func are not seen",
            "printed": "gradients by torch.func are not seen",
            "findings": "gradients by torch.func are not seen",
        },
    ),
    # The network is trained, and then one that rounds; both are evaluated beside each other.
    "quantization_aware": Expected(
        train=2 * 8 + 2 * 8,
        evaluations=1,
        losses=(LOSS,),
        trained={"Classifier_": 4 + 4},
        printed=(
            Printed(LOSS, r"float loss ([\d.]+)"),
            Printed(LOSS, r"qat loss ([\d.]+)", first=16),
        ),
        files=("quantized.pt",),
    ),
    # Both passes are one step.
    "sam": Expected(
        train=5 * 4,
        evaluations=5 * 2,
        losses=(LOSS, "Loss_output_1"),
        trained={"Sequential_": 6},
        printed=(
            Printed(LOSS, r": loss ([\d.]+)"),
            Printed("Loss_output_1", r"edge ([\d.]+)"),
        ),
        files=("sam.pt",),
    ),
    # The Jacobian's call is not saved; each step of the sampling is an evaluation.
    "score_matching": Expected(
        train=18,
        evaluations=10,
        losses=(LOSS,),
        trained={"ScoreNet_": 6},
        printed=(Printed(LOSS, r"^\d+ ([-\d.]+)"),),
        files=("samples.txt", "score.pt"),
        said=("a call in which the model is traced or transformed is not saved",),
    ),
    # What is trained belongs to a new wrapper in each iteration.
    "solver_wrapper": Expected(
        train=5 * 3,
        evaluations=None,
        losses=(LOSS,),
        trained={"PerturbFunc_func.": 5},
        printed=(Printed(LOSS, r"epoch \d+ loss ([\d.]+)"),),
        files=("pendulum.pt",),
    ),
}
