"""What the authors of the programs of Lightning expect; see ``harness.programs.Expected``."""

from harness.programs import Expected, Printed

EXPECTED = {
    # The generator is called once more after the last update, with gradients.
    "toggled_gan": Expected(
        train=3 * 5 + 1,
        without_loss=(15,),
        without_gradients=(15,),
        losses=("Loss_output_0", "Loss_output_1", *(f"binary_cross_entropy_loss_output_{n}" for n in range(2))),
        trained={"GAN_generator.": 4, "GAN_discriminator.": 4},
        printed=(
            Printed("Loss_output_0", r"g_loss ([\d.]+)"),
            Printed("Loss_output_1", r"d_loss ([\d.]+)"),
        ),
        files=("gan.ckpt",),
    ),
}
