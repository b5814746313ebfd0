"""What models have learned, and by which gradients, as NumPy arrays."""


def gradients(*models):
    """The models' gradients, by the names of classes and parameters."""
    return {
        f"{type(model).__name__}_{name}": parameter.grad.numpy()
        for model in models
        for name, parameter in model.named_parameters()
    }


def weights(*models):
    """All that the models have learned."""
    return [value.numpy() for model in models for value in model.state_dict().values()]
