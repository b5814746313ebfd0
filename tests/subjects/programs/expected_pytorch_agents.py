"""What the authors of the PyTorch programs of reinforcement learning expect; see ``harness.programs.Expected``."""

from harness.programs import Expected, Printed

LOSS = "Loss_output_0"

EXPECTED = {
    # Two updates for each group of answers. Evaluations are the tokens drawn: the reference model is never trained.
    "grpo": Expected(
        train=8 * 2,
        evaluations=None,
        losses=(LOSS,),
        trained={"LanguageModel_blocks.": 12, "LanguageModel_": 3},
        printed=(Printed(LOSS, r"'loss': ([-\d.e]+)"),),
        files=("policy.bin", "trainer_state.json"),
    ),
    # The old policy chooses the actions, which is never trained.
    "ppo_growing_values": Expected(
        train=12 * 8,
        losses=(LOSS, "MSELoss_output_0"),
        trained={"ActorCritic_actor.": 4, "ActorCritic_critic.": 4},
        printed=(
            Printed(LOSS, r"\t loss ([-\d.]+)", first=7, every=8),
            Printed("MSELoss_output_0", r"value loss ([\d.]+)", first=7, every=8),
        ),
        files=("PPO_log.csv", "PPO_pole.pth"),
    ),
    # Two batches for each update.
    "reward_model": Expected(
        train=3 * 4,
        evaluations=3 * 2,
        losses=(LOSS, "Loss_output_1"),
        trained={"RewardModel_transformer.": 25, "RewardModel_v_head.": 1},
        printed=(Printed("Loss_output_1", r"'loss': ([\d.]+)", times=2),),
        files=("pytorch_model.bin", "trainer_state.json"),
        said=(
            "inputs and outputs of some layers of RewardModel are not saved: in evaluation a TransformerEncoderLayer",
        ),
    ),
    # Five calls in a step; the value of the last observation is an evaluation.
    "a2c": Expected(
        train=15,
        evaluations=15,
        losses=(LOSS,),
        trained={"Policy_": 6},
        printed=(Printed(LOSS, r", loss ([-\d.]+)"),),
        files=("grid.pt",),
    ),
}
