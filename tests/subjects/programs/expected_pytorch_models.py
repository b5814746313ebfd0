"""What the authors of the PyTorch programs with models of special kinds expect; see ``harness.programs.Expected``."""

from harness.programs import Expected, Printed

from smd_agent.core.modes import ModeKeys

EVAL = ModeKeys.EVAL
LOSS = "Loss_output_0"


def numbered(name, count):
    return tuple(f"{name}_output_{number}" for number in range(count))


EXPECTED = {
    # Losses of each image; an image without boxes has none of theirs.
    "detection": Expected(
        train=3 * 6,
        evaluations=3 * 3,
        losses=(
            LOSS,
            *numbered("binary_cross_entropy_with_logits_loss", 8),
            *numbered("smooth_l1_loss", 8),
        ),
        trained={"Detector_backbone.": 6, "Detector_head.": 6},
        printed=(Printed(LOSS, r" loss: ([\d.]+)"),),
        files=("detector.pth",),
    ),
    # A coarse network and a fine one, in one step.
    "nerf": Expected(
        train=20,
        evaluations=1,
        losses=(LOSS,),
        trained={"NeRF_2_": 14, "NeRF_": 14},
        printed=(Printed(LOSS, r"Loss: ([\d.]+)"),),
        files=("000020.tar", "view.npy"),
    ),
    # It stops early, after four epochs that are no better; one evaluation in each epoch, and the best one's.
    "graph_attention": Expected(
        train=14,
        evaluations=14 + 1,
        losses=(LOSS,),
        trained={"GAT_": 6},
        printed=(
            Printed(LOSS, r"loss_train: ([\d.]+)"),
            Printed(LOSS, r"loss_val: ([\d.]+)", mode=EVAL),
        ),
        files=("best.pkl",),
        said=("no tensor of biases came up",),
    ),
    "normalizing_flow": Expected(
        train=24,
        evaluations=1,
        losses=(LOSS,),
        trained={"RealNVP_s.": 24, "RealNVP_t.": 24},
        printed=(Printed(LOSS, r"loss = ([\d.]+)"),),
        files=("flow.pt", "moons.npy"),
    ),
    "scheduled_sampling": Expected(
        train=4 * 5,
        evaluations=4 * 2,
        losses=("CrossEntropyLoss_output_0",),
        trained={"Seq2Seq_encoder.": 5, "Seq2Seq_decoder.": 7},
        printed=(
            Printed("CrossEntropyLoss_output_0", r"Train Loss: ([\d.]+)", steps=5),
            Printed("CrossEntropyLoss_output_0", r"Val. Loss: ([\d.]+)", steps=2, mode=EVAL),
        ),
        files=("tut1-model.pt",),
    ),
    # Two calls in a step.
    "siamese": Expected(
        train=4 * 4,
        evaluations=3,
        losses=(LOSS,),
        trained={"SiameseNetwork_": 8},
        printed=(Printed(LOSS, r"Current loss ([\d.]+)"),),
        files=("loss.txt", "siamese.pt"),
    ),
    "tabular_attention": Expected(
        train=5 * 2,
        evaluations=5 + 1,
        losses=(LOSS, "CrossEntropyLoss_output_0"),
        trained={"TabNet_": 33},
        printed=(Printed(LOSS, r"\| loss: ([\d.]+)", steps=2),),
        files=("tabnet.pt",),
    ),
    # The codebook's loss, the encoder's and the reconstruction's.
    "vq_vae": Expected(
        train=20,
        evaluations=1,
        losses=(LOSS, *numbered("mse_loss", 3)),
        trained={"Model__encoder.": 5, "Model__decoder.": 7, "Model__": 3},
        printed=(Printed(LOSS, r"iterations loss: ([\d.]+)"),),
        files=("vq_vae.pt",),
    ),
    # Gradients of embeddings are sparse.
    "word2vec": Expected(
        train=2 * 6,
        losses=(LOSS,),
        trained={"SkipGramModel_": 2},
        printed=(Printed(LOSS, r"Loss: ([\d.]+)"),),
        files=("out.vec",),
        said=("no tensor of biases came up",),
    ),
    "cyclegan": Expected(
        train=15,
        losses=(*numbered("Loss", 3), *numbered("MSELoss", 2 + 4), *numbered("L1Loss", 4)),
        trained={"ResnetGenerator_": 8, "PatchDiscriminator_": 8},
        printed=tuple(Printed(f"Loss_output_{n}", rf"{name}: ([\d.]+)") for n, name in enumerate((" G", "D_A", "D_B"))),
        files=tuple(f"latest_net_{name}.pth" for name in ("D_A", "D_B", "G_A", "G_B")),
    ),
    # Two updates of the critic and one of the generator are a step.
    "wgan_gp": Expected(
        train=3 * 4,
        losses=numbered("Loss", 3),
        trained={"Discriminator_": 4, "Generator_": 8},
        printed=(
            Printed("Loss_output_1", r"Batch [1357]/8\] \[D loss: ([-\d.]+)"),
            Printed("Loss_output_2", r"G loss: ([-\d.]+)"),
        ),
        files=("samples.npy", "wgan_gp.pt"),
    ),
}
