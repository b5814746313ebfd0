"""What the authors of the PyTorch programs of reinforcement learning expect; see ``harness.programs.Expected``."""

from harness.programs import Expected, Printed

LOSS = "Loss_output_0"


def numbered(name, count):
    return tuple(f"{name}_output_{number}" for number in range(count))


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
    # 36 updates of the critics; those of the actor and of the temperature are two in every second of them.
    # Evaluations are what the actor is asked without gradients.
    "sac": Expected(
        train=None,
        evaluations=None,
        losses=(*numbered("Loss", 3), *numbered("mse_loss", 4)),
        trained={"Actor_": 6, "SoftQNetwork_": 12},
        printed=(
            Printed(numbered("Loss", 3), r"qf_loss=([-\d.]+)", anywhere=True),
            Printed(numbered("Loss", 3), r"actor_loss=([-\d.]+)", anywhere=True),
        ),
        files=("sac.pt",),
        said=("trained parameters that belong to no module are not saved (1)", "optimizers take uneven turns"),
    ),
    # Two updates of the critic and one of the actor; evaluations are the actions chosen, the targets are never trained.
    "td3": Expected(
        train=15,
        evaluations=None,
        losses=(*numbered("Loss", 3), *numbered("mse_loss", 4)),
        trained={"Actor_": 6, "Critic_": 8},
        printed=(
            Printed(numbered("Loss", 3), r"critic ([\d.]+)", anywhere=True),
            Printed("Loss_output_2", r"actor ([-\d.]+)"),
        ),
        files=("TD3_pendulum_actor", "TD3_pendulum_critic", "evaluations.npy"),
    ),
    # The world's model, the actor and the critic take turns, in this order.
    "world_model": Expected(
        train=12,
        losses=(*numbered("Loss", 3), "mse_loss_output_0"),
        trained={"WorldModel_": 14, "Actor_": 4, "Sequential_": 4},
        printed=(
            Printed("Loss_output_0", r"world ([\d.]+)"),
            Printed("Loss_output_1", r"actor ([-\d.]+)"),
        ),
        files=("dreamer.pt",),
    ),
}
