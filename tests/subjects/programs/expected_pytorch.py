"""What the authors of the PyTorch programs expect; see ``harness.programs.Expected``."""

from harness.programs import Expected, Printed

from smd_agent.core.modes import ModeKeys

EVAL = ModeKeys.EVAL
LOSS = "Loss_output_0"


def numbered(name, count):
    return tuple(f"{name}_output_{number}" for number in range(count))


EXPECTED = {
    # An update after each episode.
    "actor_critic": Expected(
        train=8,
        losses=(LOSS, *numbered("smooth_l1_loss", 16)),
        trained={"Policy_": 6},
        printed=(Printed(LOSS, r"loss of episode \d+: ([\d.]+)"),),
        files=("policy.pth",),
        said=("of the first 16 calls of Policy in a step",),
    ),
    # Two batches for each update; those that the scaler leaves out are steps too.
    "amp_scaler": Expected(
        train=12,
        evaluations=3,
        losses=numbered("BCEWithLogitsLoss", 2),
        trained={"ResidualMLP_": 8},
        printed=(Printed("BCEWithLogitsLoss_output_1", r"update \d+ loss ([\d.]+)"),),
        files=("amp.pt",),
    ),
    # 25 steps, then 10 of the probe, which is called once more after the last of them, with gradients.
    "contrastive": Expected(
        train=36,
        without_loss=(35,),
        without_gradients=(35,),
        losses=(LOSS,),
        trained={"SimCLR_": 11, "Linear_": 2},
        printed=(
            Printed(LOSS, r"contrastive loss ([\d.]+)", steps=5),
            Printed(LOSS, r"probe loss ([\d.]+)", first=25),
        ),
        files=("contrastive.pt",),
    ),
    "diffusion": Expected(
        train=6 * 5,
        losses=(LOSS,),
        trained={"Diffusion_net.": 18},
        printed=(Printed(LOSS, r"\] loss ([\d.]+)", steps=5),),
        files=("diffusion.ckpt",),
    ),
    # The teacher is called in the student's steps too.
    "distillation": Expected(
        train=3 * 5 + 4 * 5,
        evaluations=None,
        losses=("CrossEntropyLoss_output_0", "KLDivLoss_output_0", LOSS),
        trained={"Teacher_": 6, "Student_": 4},
        printed=(
            Printed("CrossEntropyLoss_output_0", r"teacher epoch \d+: loss ([\d.]+)", steps=5),
            Printed(LOSS, r"student epoch \d+: loss ([\d.]+)", steps=5, first=15),
        ),
        files=("student.pth", "teacher.pth"),
    ),
    # Pre-training, then the preferences.
    "dpo": Expected(
        train=6 + 3 * 4,
        losses=(LOSS,),
        trained={"TinyLM_": 6},
        printed=(
            Printed(LOSS, r"sft \d+ loss ([\d.]+)"),
            Printed(LOSS, r"dpo \d+ loss ([\d.]+)", first=6),
        ),
        files=("policy.pt",),
    ),
    # Evaluations are the actions chosen.
    "dqn": Expected(
        train=79,
        evaluations=None,
        losses=("SmoothL1Loss_output_0",),
        trained={"QNetwork_": 6},
        printed=(Printed("SmoothL1Loss_output_0", r"update \d+ loss ([\d.]+)"),),
        files=("dqn.pt",),
    ),
    "ema_teacher": Expected(
        train=5 * 6,
        evaluations=5,
        losses=(LOSS, "cross_entropy_loss_output_0", "mse_loss_output_0"),
        trained={"Sequential_": 6},
        printed=(
            Printed(LOSS, r"epoch \d+: loss ([\d.]+)", steps=6),
            Printed("cross_entropy_loss_output_0", r"classes ([\d.]+)", steps=6),
            Printed("mse_loss_output_0", r"consistency ([\d.]+)", steps=6),
            Printed("cross_entropy_loss_output_0", r"student ([\d.]+)", mode=EVAL),
        ),
        files=("best.pt",),
    ),
    # In each of 3 rounds, 2 clients train for 2 epochs of 2 batches; the server's model is never trained.
    "federated": Expected(
        train=3 * 2 * 2 * 2,
        losses=("CrossEntropyLoss_output_0",),
        trained={"Net_": 4},
        printed=(Printed("CrossEntropyLoss_output_0", r"items\) loss ([\d.]+)", steps=4),),
        files=("global.pt",),
        # The server's.
        said=("Net is evaluated, which nothing trains: its calls are no steps, and its losses are not saved",),
    ),
    # One step has 5 updates of the critic, with 3 backward passes each, and one of the generator.
    "gan": Expected(
        train=8,
        evaluations=None,
        losses=numbered("Loss", 5 * 3 + 1),
        trained={"Generator_": 6, "Discriminator_": 6},
        printed=(Printed("Loss_output_15", r"gen cost ([-\d.]+)", times=-1),),
        files=("netD.pth", "netG.pth"),
    ),
    "gaussian_process": Expected(
        train=25,
        evaluations=1,
        losses=(LOSS,),
        trained={"ExactGPModel_": 4},
        printed=(Printed(LOSS, r"Loss: ([-\d.]+)"),),
        files=("gp_state.pth",),
        said=("no tensor of biases came up",),
    ),
    "graph_net": Expected(
        train=20,
        evaluations=20 + 1,
        losses=(LOSS,),
        trained={"GCN_": 4},
        printed=(
            Printed(LOSS, r"loss_train: ([\d.]+)"),
            Printed(LOSS, r"loss_val: ([\d.]+)", mode=EVAL),
        ),
        files=("gcn.pkl",),
    ),
    # Each fold has a network of its own.
    "kfold": Expected(
        train=3 * 3 * 4,
        evaluations=3 * 2,
        losses=("CrossEntropyLoss_output_0",),
        trained={"SimpleNet_": 4},
        printed=(Printed("CrossEntropyLoss_output_0", r"Loss after epoch \d+: ([\d.]+)", steps=4),),
        files=("folds.csv", "model-fold-0.pth", "model-fold-1.pth", "model-fold-2.pth"),
    ),
    # A step of LBFGS computes the loss several times.
    "lbfgs_pinn": Expected(
        train=20 + 5,
        evaluations=1,
        losses=numbered("Loss", 7),
        trained={"FCN_": 6},
        printed=(
            Printed(LOSS, r"adam \d+: ([\d.]+)"),
            Printed(LOSS, r"lbfgs \d+: ([\d.]+)", first=20),
        ),
        files=("pinn.pt",),
    ),
    # Of the rest of the network nothing is trained.
    "lora_finetune": Expected(
        train=20,
        losses=(LOSS,),
        trained={"SequenceClassifier_backbone.": 8, "SequenceClassifier_classifier.": 2},
        printed=(Printed(LOSS, r"'loss': ([\d.]+)"),),
        files=("adapter.bin", "pretrained.bin"),
    ),
    # 15 updates; adapting afterwards trains nothing, though it calls the model with gradients.
    "maml": Expected(
        train=16,
        losses=(LOSS, *numbered("mse_loss", 4)),
        trained={"Regressor_": 6},
        printed=(Printed(LOSS, r"meta loss ([\d.]+)"),),
        files=("maml.pt",),
        without_loss=(15,),
    ),
    # The loss has a parameter.
    "metric_learning": Expected(
        train=4 * 6,
        evaluations=4,
        losses=("ArcFaceLoss_output_0",),
        trained={"EmbeddingNet_": 7, "ArcFaceLoss_": 1},
        printed=(Printed("ArcFaceLoss_output_0", r"loss = ([\d.]+)"),),
        files=("embedder.pt", "history.json"),
    ),
    "mixture_of_experts": Expected(
        train=24,
        losses=(LOSS, "cross_entropy_loss_output_0"),
        trained={"MoEClassifier_layers.": 2 * (1 + 6 * 4), "MoEClassifier_": 3},
        printed=(
            Printed(LOSS, r"step \d+ loss ([\d.]+)"),
            Printed("cross_entropy_loss_output_0", r"ce ([\d.]+)"),
        ),
        files=("moe.pt",),
    ),
    # The whole curve takes 49 times four evaluations.
    "neural_ode": Expected(
        train=20,
        evaluations=49 * 4,
        losses=(LOSS,),
        trained={"ODEFunc_": 4},
        printed=(Printed(LOSS, r"\| Loss ([\d.]+) \|"),),
        files=("odefunc.pth",),
        said=("of the first 16 calls of ODEFunc in a step",),
    ),
    "own_call": Expected(
        train=20,
        evaluations=3,
        losses=("MSELoss_output_0",),
        trained={"Pipeline_": 5},
        printed=(Printed("MSELoss_output_0", r"^ *\d+ ([\d.]+)$"),),
        files=("pipeline.bin",),
    ),
    # Evaluations are the actions chosen.
    "ppo": Expected(
        train=4 * 3 * 2,
        evaluations=None,
        losses=(LOSS,),
        trained={"Agent_actor.": 4, "Agent_critic.": 4},
        printed=(Printed(LOSS, r"loss=([-\d.]+)"),),
        files=("agent.pt",),
    ),
    # Two optimizers, one for the rows of embeddings.
    "recommender_two_towers": Expected(
        train=3 * 6,
        evaluations=3,
        losses=(LOSS,),
        trained={"UserTower_": 5, "ItemTower_": 5},
        printed=(Printed(LOSS, r"softmax loss ([\d.]+)", steps=6),),
        files=("towers.pt",),
    ),
    # Three epochs, then three by a second model.
    "resume": Expected(
        train=6 * 3,
        losses=(LOSS,),
        trained={"LSTMForecaster_": 10},
        printed=(Printed(LOSS, r"mse ([\d.]+)", steps=3),),
        files=tuple(f"checkpoint_{epoch}.pt" for epoch in range(6)),
    ),
    # It evaluates twice; os._exit ends it in the second one.
    "scripted_rnn": Expected(
        train=15,
        evaluations=1,
        losses=("CrossEntropyLoss_output_0",),
        trained={"ParityRNN_": 5},
        printed=(Printed("CrossEntropyLoss_output_0", r"loss ([\d.]+)"),),
        files=("parity.pt",),
        code=5,
        said=("some layers of ParityRNN are not saved: they are TorchScript",),
    ),
    "seq2seq": Expected(
        train=4 * 5,
        evaluations=4,
        losses=("NLLLoss_output_0",),
        trained={"EncoderRNN_": 5, "AttnDecoderRNN_": 13},
        printed=(Printed("NLLLoss_output_0", r"%\) ([\d.]+)", steps=5),),
        files=("seq2seq.tar",),
    ),
    "speech_ctc": Expected(
        train=4 * 4,
        evaluations=4,
        losses=("CTCLoss_output_0",),
        trained={"Recognizer_": 12},
        printed=(
            Printed("CTCLoss_output_0", r"batch \d+ loss ([\d.]+)"),
            Printed("CTCLoss_output_0", r"val loss ([\d.]+)", mode=EVAL),
        ),
        files=("ctc.pt",),
    ),
    # Three batches for each update. Each letter that it writes is an evaluation.
    "transformer_lm": Expected(
        train=10,
        evaluations=None,
        losses=numbered("Loss", 3),
        trained={"GPT_": 24},
        printed=(Printed("Loss_output_2", r"iter \d+: loss ([\d.]+)", times=3),),
        files=("ckpt.pt",),
    ),
    "unet_segmentation": Expected(
        train=4 * 3,
        evaluations=4 * 2,
        losses=("BCEWithLogitsLoss_output_0", LOSS),
        trained={"UNet_": 22},
        printed=(
            Printed("BCEWithLogitsLoss_output_0", r"bce ([\d.]+)"),
            Printed(LOSS, r" loss ([\d.]+)"),
        ),
        files=("checkpoints/best.pth",),
        code=3,
    ),
    # The loss of the last step is infinite.
    "unstable": Expected(
        train=10,
        losses=("MSELoss_output_0",),
        trained={"Sequential_": 4},
        printed=(Printed("MSELoss_output_0", r"step \d+ loss ([\d.e+]+)"),),
        files=("range_test.pt",),
        code=1,
        findings=("LossExploding", "LossNotFinite"),
        said=("step 9 has gone wrong (the loss is inf): python -m smd_agent replay",),
    ),
    "vae": Expected(
        train=4 * 6,
        evaluations=4,
        losses=(LOSS, "binary_cross_entropy_with_logits_loss_output_0"),
        trained={"VAE_": 14},
        printed=(Printed(LOSS, r"Average loss: ([\d.]+)", steps=6),),
        files=("vae.pkl",),
    ),
    "wrapped_task": Expected(
        train=8 * 5,
        evaluations=8 * 2,
        losses=("HuberLoss_output_0",),
        trained={"Sequential_": 4},
        printed=(
            Printed("HuberLoss_output_0", r"train_loss=([\d.]+)", steps=5),
            Printed("HuberLoss_output_0", r"val_loss=([\d.]+)", steps=2, mode=EVAL),
        ),
        files=("best.ckpt", "history.json"),
    ),
}
