"""The table of all cases."""

from __future__ import annotations

import json
from collections.abc import Mapping

from accuracy.case import TESTS, Case

_PROGRAMS = "accuracy/programs"

# Trainings that other tests have: those that each rule is tested with, and whole programs.
_SMALL = {
    "sgd": "SGD with momentum",
    "adamw_loss_module": "AdamW and a loss module",
    "epochs_without_shuffling": "four batches, over and over",
    "until_it_is_learned": "three batches, until the loss is 0",
    "frozen_backbone": "a frozen backbone in eval mode",
    "frozen_by_a_rate_of_0": "a group frozen by a learning rate of 0",
    "gradual_unfreezing": "a layer that the optimizer is given later",
    "bias_before_normalisation": "biases before batch normalisation",
    "residual_from_zero": "residual branches that begin at 0",
    "gan": "a GAN of points",
    "accumulation": "gradients accumulated over four batches",
    "tied_weights": "tied weights of a language model",
    "large_embedding": "a large embedding with few rows used",
    "warm_up_and_decay": "warm-up from 0 and decay to 0",
    "masked_attention": "attention with a mask of minus infinity",
    "overflow_of_a_scaled_loss": "a scaled loss that overflows at first",
    "recurrent": "an LSTM",
    "regression_of_a_noisy_target": "a target that is noise",
    "all_data_in_one_batch": "all data in one batch",
    "bfloat16_autocast": "autocast in bfloat16",
    "low_rank_adapters": "low-rank adapters",
    "evaluation_in_between": "evaluations in between, with dropout",
}
_WHOLE = {
    "PyTorch": {
        "actor_critic": "actor-critic, an update for each episode",
        "amp_scaler": "mixed precision with a gradient scaler, and accumulation",
        "contrastive": "contrastive learning, then a linear probe",
        "diffusion": "a denoising diffusion model, with averaged weights",
        "distillation": "a large network teaches a small one",
        "dpo": "direct preference optimization of a language model",
        "dqn": "deep Q-learning with a replay buffer",
        "ema_teacher": "a mean teacher with few labels",
        "federated": "federated averaging of three clients",
        "gan": "a Wasserstein GAN with gradient penalty",
        "gaussian_process": "exact Gaussian process regression",
        "graph_net": "a graph network, all nodes in one batch",
        "kfold": "cross-validation, a network for each fold",
        "lbfgs_pinn": "a differential equation, by Adam and then LBFGS",
        "lora_finetune": "fine-tuning by low-rank adapters",
        "maml": "model-agnostic meta-learning",
        "metric_learning": "embeddings with an angular margin, two optimizers",
        "mixture_of_experts": "a sparse mixture of experts",
        "neural_ode": "a neural differential equation",
        "own_call": "networks with a call of their own",
        "ppo": "proximal policy optimization",
        "recommender_two_towers": "two towers with sparse embeddings",
        "resume": "a training that goes on from its checkpoint",
        "scripted_rnn": "a scripted recurrent classifier",
        "seq2seq": "encoder and decoder with teacher forcing",
        "speech_ctc": "connectionist temporal classification",
        "transformer_lm": "a small GPT, accumulated, compiled",
        "unet_segmentation": "segmentation by a U-Net",
        "vae": "a variational autoencoder with KL warm-up",
        "wrapped_task": "a small framework of tasks and callbacks",
    },
    "Keras": {
        "adversarial_fit": "a GAN as a Keras model",
        "custom_train_step": "an autoencoder with a train_step of its own",
        "fit_callbacks": "two outputs, fit with callbacks",
        "tape_loop": "regression by a compiled GradientTape loop",
    },
    "Gluon": {
        "dcgan": "a GAN with two Trainers",
        "image_classifier": "a hybridized convolutional network",
        "matrix_factorization": "collaborative filtering with sparse embeddings",
        "text_generator": "a recurrent language model of characters",
    },
    "XGBoost": {
        "continued_training": "a booster trained in chunks",
        "cross_validation": "rounds chosen by cross-validation",
        "custom_objective": "an objective of one's own",
        "grid_search": "a grid search over a pipeline",
        "train_with_evals": "two evaluation sets and early stopping",
    },
}
# Written for this page, by framework: name, training, and the script with its arguments where they are not the name's.
_CLEAN = {
    "PyTorch": (
        ("digits-sgd", "a convolutional net by SGD", "digits_cnn"),
        ("digits-adamw-onecycle", "one cycle of AdamW's rate", "digits_cnn --optimizer adamw --schedule onecycle"),
        ("digits-rmsprop", "RMSprop, a wider net", "digits_cnn --optimizer rmsprop --width 16 --seed 1 --epochs 3"),
        ("digits-adagrad", "Adagrad, a narrow net", "digits_cnn --optimizer adagrad --width 4 --seed 2"),
        ("digits-restarts", "cosine with restarts", "digits_cnn --schedule restarts --seed 3"),
        ("digits-warmup", "warm-up, then cosine to 0", "digits_cnn --optimizer adamw --schedule warmup --seed 4"),
        ("cancer-0", "weighted classes, early stopping", "cancer_early_stopping 0"),
        ("cancer-1", "the same with another seed", "cancer_early_stopping 1"),
        ("diabetes", "regression, rate lowered on a plateau", "diabetes_regression"),
        ("fine-tuning", "frozen trunk and new head, then unfrozen"),
        ("digits-gan", "a GAN of digits"),
        ("reinforce", "REINFORCE with a baseline"),
        ("bfloat16", "autocast in bfloat16", "half_precision bfloat16"),
        ("float16", "autocast in float16 with a gradient scaler", "half_precision float16"),
        ("sine-gru", "a GRU of two layers"),
        ("char-transformer", "a transformer of characters"),
        ("autoencoder", "a denoising autoencoder"),
        ("simclr", "contrastive views of digits"),
        ("iris-kfold", "five folds, NAdam"),
        ("wine-lbfgs", "LBFGS on all data, then SGD"),
        ("ratings", "sparse embeddings, two optimizers, averaged weights", "ratings_two_optimizers"),
        ("multi-task", "two tasks, accumulated, and a head that is not used", "multi_task_accumulation"),
    ),
    "Keras": (
        ("keras-digits-adam", "a convolutional net by fit", "keras_digits"),
        ("keras-digits-sgd", "SGD with warm-up and cosine", "keras_digits --optimizer sgd --seed 1"),
        ("keras-diabetes", "regression with callbacks and L2"),
        ("keras-fine-tuning", "a frozen trunk and a new head"),
        ("keras-lstm", "an LSTM of waves", "keras_sequences lstm"),
        ("keras-attention", "attention and a convolution", "keras_sequences attention"),
        ("keras-bfloat16", "mixed bfloat16, two inputs and outputs", "keras_half_precision"),
        ("keras-batches", "three folds by train_on_batch"),
        ("tape-autoencoder", "a compiled tape, clipped gradients"),
        ("tape-autoencoder-eager", "the same, eager", "tape_autoencoder eager"),
        ("tape-gan", "a GAN with two tapes"),
    ),
    "Gluon": (
        ("gluon-digits", "a hybridized convolutional net"),
        ("gluon-wine", "Adam with a cosine schedule"),
        ("gluon-diabetes", "regression by RMSprop"),
        ("gluon-waves", "an LSTM, clipped gradients"),
        ("gluon-autoencoder", "an autoencoder"),
        ("gluon-frozen", "a frozen trunk and a new head"),
        ("gluon-accumulated", "gradients accumulated over four batches"),
    ),
    "XGBoost": (
        ("xgboost-binary", "two classes, early stopping"),
        ("xgboost-multiclass", "ten classes by XGBClassifier"),
        ("xgboost-regression", "regression by XGBRegressor"),
        ("xgboost-folds", "three folds"),
        ("xgboost-dart", "DART"),
        ("xgboost-ranking", "ranking"),
        ("xgboost-forest", "a random forest in one round"),
        ("xgboost-linear", "a linear booster"),
        ("xgboost-rare", "a rare class with its weight"),
        ("xgboost-stopping-estimator", "an estimator that stops early"),
        ("xgboost-stopping-callback", "early stopping by a set that is not the last"),
        ("xgboost-stopped-folds", "folds that stop early"),
        ("xgboost-survival", "survival times, some cut off"),
        ("xgboost-outputs", "three targets"),
        ("xgboost-oversampled", "rows of a rare class drawn again"),
        ("xgboost-common-positives", "a common class with its weight"),
    ),
}
# Faults, by framework: name, fault, and the rules that describe it.
_PLANTED = {
    "PyTorch": (
        (
            "head-after-optimizer",
            "a head replaced after the optimizer was made",
            "ParameterNotOptimized OptimizerNotOfModel",
        ),
        ("schedule-by-batch", "a schedule of epochs stepped by batch, down to 0", "LearningRateZero"),
        (
            "rate-too-high",
            "a learning rate far too high",
            "LossNotDecreasing WeightUpdateRatio LossNotFinite LossExploding ExplodingTensor",
        ),
        ("wrong-sign", "the loss is made larger", "LossNotDecreasing LossExploding"),
        ("log-of-zero", "an own loss takes the logarithm of 0", "LossNotFinite"),
        ("missing-value", "a NaN in the data", "UnusualInputs LossNotFinite ExplodingTensor"),
        ("units-that-die", "an update kills the units of a ReLU", "DeadRelu"),
        ("saturated-tanh", "tanh at its ends from the start", "SaturatedActivation PoorWeightInitialization"),
        ("deep-sigmoids", "twelve layers of sigmoids", "VanishingGradient"),
        ("detached-encoder", "an encoder whose output is detached", "NoGradient AllZero"),
        ("bfloat16-weights", "updates lost in bfloat16 weights", "NotMoving WeightUpdateRatio"),
        ("first-batch-only", "the same batch in each step", "RepeatedBatch"),
        ("zero-weights", "all weights begin at 0", "AllZero PoorWeightInitialization"),
        ("learned-by-heart", "forty examples learned by heart", "Overfit"),
        ("gradients-not-cleared", "no zero_grad()", "GradientNotCleared"),
        ("left-in-eval-mode", "trained in eval mode after the first evaluation", "TrainingInEvaluationMode"),
        ("softmax-twice", "a softmax before the cross-entropy", "DoubleActivation"),
        ("raw-table", "columns of very different scales", "UnusualInputs"),
        ("one-label", "all labels are the same", "ConstantLabels"),
        ("scaler-skips", "a scaler that skips every update", "UpdatesSkipped ExplodingTensor"),
        ("rate-too-low", "a learning rate of 1e-9", "WeightUpdateRatio NotMoving"),
        ("loss-of-labels", "a loss that does not depend on the output", "UnchangedTensor AllZero"),
    ),
    "Keras": (
        ("keras-softmax-twice", "a softmax for a loss that wants logits", "DoubleActivation"),
        (
            "keras-rate-too-high",
            "a learning rate far too high",
            "LossNotFinite LossExploding LossNotDecreasing WeightUpdateRatio ExplodingTensor",
        ),
        ("tape-forgotten-layer", "a layer that the optimizer is not given", "ParameterNotOptimized"),
        ("keras-schedule-at-zero", "a schedule that ends at 0 too early", "LearningRateZero"),
        ("keras-dead-layer", "a bias that keeps all units at 0", "DeadRelu AllZero"),
    ),
    "Gluon": (
        ("gluon-forgotten-block", "a block that the Trainer is not given", "ParameterNotOptimized"),
        ("gluon-rate-ends-at-0", "a schedule that ends at 0 too early", "LearningRateZero"),
        (
            "gluon-batch-size-of-1",
            "gradients that are not divided by the batch size",
            "LossNotDecreasing WeightUpdateRatio LossNotFinite LossExploding ExplodingTensor DeadRelu",
        ),
        ("gluon-zero-weights", "all weights begin at 0", "AllZero PoorWeightInitialization"),
    ),
    "XGBoost": (
        ("xgboost-leak", "a column made of the label", "LeakingFeature FeatureImportanceOverweight"),
        ("xgboost-learned-by-heart", "deep trees learn noise by heart", "Overfit"),
        ("xgboost-rare-class", "a rare class that is never predicted", "ClassImbalance"),
        (
            "xgboost-evaluated-on-itself",
            "early stopping by the rows that are trained",
            "SameEvaluationData StoppingByTrainingData",
        ),
        ("xgboost-rate-too-high", "an eta of 2.5", "LossNotDecreasing"),
    ),
}
# Of the faults that were planted blind, the rules that describe them, decided by what their author says is wrong.
_REPORTED = {
    "batchnorm_images": "TrainingInEvaluationMode",
    "cancer_epochs": "LossAtGuessing",
    "cancer_objective": "UnchangedTensor",
    "char_transformer": "FutureVisible",
    "clinics_accumulate": "GradientDiscarded",
    "corridor_reinforce": "LossNotDecreasing",
    "deep_tanh_gluon": "SaturatedActivation PoorWeightInitialization",
    "diabetes_regression": "LossOfOtherShape",
    "diabetes_stopping": "StoppingByTrainingData Overfit",
    "digits_autoencoder": "SaturatedActivation TargetOutOfReach",
    "digits_mlp": "DoubleActivation",
    "digits_standardised": "UnusualInputs LossNotFinite ExplodingTensor",
    "digits_two_heads": "NoGradient AllZero",
    "digits_vae": "PosteriorCollapse LossAtGuessing",
    "forecast_keras": "DeadRelu AllZero TargetOutOfReach",
    "fraud_xgboost": "WeightOfRareClass ClassImbalance",
    "gestures_gru": "ConstantLabels",
    "flowers_validation": "ConstantLabels",
    "memory_rnn": "LossNotFinite ExplodingTensor",
    "moons_custom_init": "EqualUnits PoorWeightInitialization",
    "patches_transfer": "NothingLoaded",
    "plateau_parity": "LearningRateVanished",
    "ratings_gluon": "LabelOutOfRange",
    "residual_blocks": "ParameterNotOptimized",
    "reverse_seq2seq": "DominantLabel",
    "ring_gan": "OptimizerNotOfModel NoGradient AllZero",
    "sensors_gluon": "LossNotDecreasing WeightUpdateRatio LossNotFinite LossExploding ExplodingTensor DeadRelu",
    "shapes_convnet": "GradientNotCleared",
    "spirals_decay": "NotMoving WeightUpdateRatio LearningRateVanished",
    "tabular_dropout": "DropoutTooLarge",
    "tape_convnet": "BatchNormNotUpdated TrainingInEvaluationMode",
    "two_workers": "ReplicasDiffer",
    "views_contrastive": "LossAtGuessing",
    "wave_lstm": "RecurrentOverBatch LossAtGuessing",
    "wine_finetune": "ParameterNotOptimized OptimizerNotOfModel",
    "cultivars_keras": "ActivationMissing",
    # Held out until a rule was made for it.
    "keras_cancer": "SoftmaxOverOne UnchangedTensor AllZero",
}
# The same of those that are held out; decided before they were judged.
_HELD_OUT = {
    "cancer_early_stop": "NothingLoaded",
    "char_transformer": "FutureVisible",
    "deep_tabular": "ParameterNotOptimized",
    "diabetes_regressor": "LossOfOtherShape",
    "digits_bn": "EvaluationInTrainingMode",
    "digits_cnn": "GradientNotCleared",
    "digits_metric": "LossNotFinite ExplodingTensor",
    "digits_mlp": "DoubleActivation",
    "digits_vae": "PosteriorCollapse LossAtGuessing",
    "gluon_digits": "BatchDividedTwice WeightUpdateRatio",
    "gluon_kfold": "",
    "keras_iris": "ConstantLabels",
    "keras_tape": "BatchNormNotUpdated TrainingInEvaluationMode",
    "moons_resnet": "LearningRateVanished LearningRateZero NotMoving WeightUpdateRatio",
    "transfer_head": "ParameterNotOptimized OptimizerNotOfModel",
    "wave_lstm": "RecurrentOverBatch LossAtGuessing",
    "wine_net": "UnusualInputs",
    "xgb_early": "StoppingByTrainingData Overfit",
    "xgb_fraud": "SameEvaluationData",
}
_TOLD = {"pytorch": "PyTorch", "keras": "Keras", "tensorflow": "Keras", "mxnet": "Gluon", "xgboost": "XGBoost"}
_SHORT = {"reported": "reported", "held_out": "held-out"}
_FOLDERS = {"PyTorch": "pytorch", "Keras": "keras", "Gluon": "mxnet", "XGBoost": "xgboost"}


def _existing() -> list[Case]:
    small = f"{_PROGRAMS}/clean/small_training.py"
    cases = [Case("clean", f"small-{key}", "PyTorch", small, words, (key,)) for key, words in _SMALL.items()]
    for framework, programs in _WHOLE.items():
        folder = _FOLDERS[framework]
        for key, words in programs.items():
            script = f"subjects/programs/{folder}/{key}.py"
            cases.append(Case("clean", f"{framework.lower()}-{key}", framework, script, words))
    return cases


def _clean() -> list[Case]:
    cases = []
    for framework, rows in _CLEAN.items():
        for name, words, *command in rows:
            script, *args = (command or [_command(name, framework, "training")])[0].split()
            path = f"{_PROGRAMS}/clean/{script}.py"
            cases.append(Case("clean", name, framework, path, words, tuple(args)))
    return cases


def _planted() -> list[Case]:
    cases = []
    for framework, rows in _PLANTED.items():
        for name, words, *rules in rows:
            script, *args = _command(name, framework, "faults").split()
            path = f"{_PROGRAMS}/planted/{script}.py"
            cases.append(Case("planted", name, framework, path, words, tuple(args), tuple(" ".join(rules).split())))
    return cases


def _command(name: str, framework: str, suffix: str) -> str:
    """Return the script of a case and its arguments; those of some frameworks are functions of one script."""
    start, _, rest = name.replace("-", "_").partition("_")
    return f"{start}_{suffix} {rest}" if framework in ("Gluon", "XGBoost") else f"{start}_{rest}".rstrip("_")


def _told(kind: str, rules: Mapping[str, str]) -> list[Case]:
    """Return the cases of faults that were planted blind, with what their author says of them."""
    cases = []
    for each in json.loads((TESTS / _PROGRAMS / kind / "faults.json").read_text()):
        key = each["script"].removesuffix(".py")
        path = f"{_PROGRAMS}/{kind}/{key}.py"
        name = f"{_SHORT[kind]}-{key.replace('_', '-')}"
        cases.append(Case(kind, name, _TOLD[each["framework"]], path, each["fault"], (), tuple(rules[key].split())))
    return cases


def _sound() -> list[Case]:
    """Return the cases of clean trainings that look odd, by the author of the faults that were planted blind."""
    cases = []
    for each in json.loads((TESTS / _PROGRAMS / "odd_but_right" / "sound.json").read_text()):
        name = f"odd-{each['script'].removesuffix('.py').replace('_', '-')}"
        path = f"{_PROGRAMS}/odd_but_right/{each['script']}"
        cases.append(Case("clean", name, _TOLD[each["framework"]], path, each["words"]))
    return cases


CASES = {
    case.name: case
    for case in [
        *_existing(),
        *_clean(),
        *_sound(),
        *_planted(),
        *_told("reported", _REPORTED),
        *_told("held_out", _HELD_OUT),
    ]
}
