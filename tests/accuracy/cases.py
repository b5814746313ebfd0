"""The table of all cases."""

from __future__ import annotations

import json

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
# Written for this page: name, framework, script, words, arguments.
_CLEAN = (
    ("digits-sgd", "PyTorch", "digits_cnn", "a convolutional net by SGD"),
    ("digits-adamw-onecycle", "PyTorch", "digits_cnn", "one cycle of AdamW's rate", "--optimizer adamw --schedule onecycle"),
    ("digits-rmsprop", "PyTorch", "digits_cnn", "RMSprop, a wider net", "--optimizer rmsprop --width 16 --seed 1 --epochs 3"),
    ("digits-adagrad", "PyTorch", "digits_cnn", "Adagrad, a narrow net", "--optimizer adagrad --width 4 --seed 2"),
    ("digits-restarts", "PyTorch", "digits_cnn", "cosine with restarts", "--schedule restarts --seed 3"),
    ("digits-warmup", "PyTorch", "digits_cnn", "warm-up, then cosine to 0", "--optimizer adamw --schedule warmup --seed 4"),
    ("cancer-0", "PyTorch", "cancer_early_stopping", "weighted classes, early stopping", "0"),
    ("cancer-1", "PyTorch", "cancer_early_stopping", "the same with another seed", "1"),
    ("diabetes", "PyTorch", "diabetes_regression", "regression, rate lowered on a plateau"),
    ("fine-tuning", "PyTorch", "fine_tuning", "frozen trunk and new head, then unfrozen"),
    ("digits-gan", "PyTorch", "digits_gan", "a GAN of digits"),
    ("reinforce", "PyTorch", "reinforce", "REINFORCE with a baseline"),
    ("bfloat16", "PyTorch", "half_precision", "autocast in bfloat16", "bfloat16"),
    ("float16", "PyTorch", "half_precision", "autocast in float16 with a gradient scaler", "float16"),
    ("sine-gru", "PyTorch", "sine_gru", "a GRU of two layers"),
    ("char-transformer", "PyTorch", "char_transformer", "a transformer of characters"),
    ("autoencoder", "PyTorch", "autoencoder", "a denoising autoencoder"),
    ("simclr", "PyTorch", "simclr", "contrastive views of digits"),
    ("iris-kfold", "PyTorch", "iris_kfold", "five folds, NAdam"),
    ("wine-lbfgs", "PyTorch", "wine_lbfgs", "LBFGS on all data, then SGD"),
    ("ratings", "PyTorch", "ratings_two_optimizers", "sparse embeddings, two optimizers, averaged weights"),
    ("multi-task", "PyTorch", "multi_task_accumulation", "two tasks, accumulated, and a head that is not used"),
    ("keras-digits-adam", "Keras", "keras_digits", "a convolutional net by fit"),
    ("keras-digits-sgd", "Keras", "keras_digits", "SGD with warm-up and cosine", "--optimizer sgd --seed 1"),
    ("keras-diabetes", "Keras", "keras_diabetes", "regression with callbacks and L2"),
    ("keras-fine-tuning", "Keras", "keras_fine_tuning", "a frozen trunk and a new head"),
    ("keras-lstm", "Keras", "keras_sequences", "an LSTM of waves", "lstm"),
    ("keras-attention", "Keras", "keras_sequences", "attention and a convolution", "attention"),
    ("keras-bfloat16", "Keras", "keras_half_precision", "mixed bfloat16, two inputs and outputs"),
    ("keras-batches", "Keras", "keras_batches", "three folds by train_on_batch"),
    ("tape-autoencoder", "Keras", "tape_autoencoder", "a compiled tape, clipped gradients"),
    ("tape-autoencoder-eager", "Keras", "tape_autoencoder", "the same, eager", "eager"),
    ("tape-gan", "Keras", "tape_gan", "a GAN with two tapes"),
    ("gluon-digits", "Gluon", "gluon_training", "a hybridized convolutional net", "digits"),
    ("gluon-wine", "Gluon", "gluon_training", "Adam with a cosine schedule", "wine"),
    ("gluon-diabetes", "Gluon", "gluon_training", "regression by RMSprop", "diabetes"),
    ("gluon-waves", "Gluon", "gluon_training", "an LSTM, clipped gradients", "waves"),
    ("gluon-autoencoder", "Gluon", "gluon_training", "an autoencoder", "autoencoder"),
    ("gluon-frozen", "Gluon", "gluon_training", "a frozen trunk and a new head", "frozen"),
    ("gluon-accumulated", "Gluon", "gluon_training", "gradients accumulated over four batches", "accumulated"),
    ("xgboost-binary", "XGBoost", "xgboost_training", "two classes, early stopping", "binary"),
    ("xgboost-multiclass", "XGBoost", "xgboost_training", "ten classes by XGBClassifier", "multiclass"),
    ("xgboost-regression", "XGBoost", "xgboost_training", "regression by XGBRegressor", "regression"),
    ("xgboost-folds", "XGBoost", "xgboost_training", "three folds", "folds"),
    ("xgboost-dart", "XGBoost", "xgboost_training", "DART", "dart"),
    ("xgboost-ranking", "XGBoost", "xgboost_training", "ranking", "ranking"),
    ("xgboost-forest", "XGBoost", "xgboost_training", "a random forest in one round", "forest"),
    ("xgboost-linear", "XGBoost", "xgboost_training", "a linear booster", "linear"),
    ("xgboost-rare", "XGBoost", "xgboost_training", "a rare class with its weight", "rare"),
)
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


def _clean(name: str, framework: str, script: str, words: str, args: str = "") -> Case:
    return Case("clean", name, framework, f"{_PROGRAMS}/clean/{script}.py", words, tuple(args.split()))


CASES = {case.name: case for case in [*_existing(), *(_clean(*row) for row in _CLEAN)]}
