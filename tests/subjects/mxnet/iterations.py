"""Training loops whose iteration is more than one call of one block; each step here is an iteration of the author's.

usage: python iterations.py [NOTES.npz]
"""

import mxnet as mx
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn
from nets import dense, sgd
from notes import batch, note, parameters, play, rng


def gan():
    return adversaries("", 1, 3)


def gan_with_five_critics():
    return adversaries("five", 5, 3)


def adversaries(prefix, turns, iterations):
    generator, judge = (nn.Dense(o, in_units=i, prefix=prefix + p) for o, i, p in ((6, 4, "gen_"), (1, 6, "dis_")))
    generator.initialize(mx.init.Xavier())
    judge.initialize(mx.init.Xavier())
    loss_fn = gluon.loss.SigmoidBinaryCrossEntropyLoss(prefix=f"{prefix}bceloss0_")
    trainers = [gluon.Trainer(net.collect_params(), "adam") for net in (generator, judge)]
    for k in range(iterations):
        note(f"{prefix}gen_weight", k, generator.weight.data())
        note(f"{prefix}dis_weight", k, judge.weight.data())
        for turn in range(turns):
            real, z = batch()[0], nd.array(rng.rand(8, 4))
            with autograd.record():
                on_real = loss_fn(judge(real), nd.ones(8))
                both = on_real + loss_fn(judge(generator(z).detach()), nd.zeros(8))
            both.backward()
            if turn == 0:
                note(f"gradient/{prefix}dis_weight", k, judge.weight.grad())
            note(f"{prefix}bceloss0_output_{2 * turn}", k, on_real)
            note(f"loss0_output_{turn}", k, both)
            trainers[1].step(8)
        with autograd.record():
            fake = generator(z)
            fool = loss_fn(judge(fake), nd.ones(8))
        fool.backward()
        note(f"{prefix}gen_output_{turns}", k, fake)
        note(f"gradient/{prefix}gen_weight", k, generator.weight.grad())
        note(f"{prefix}bceloss0_output_{2 * turns}", k, fool)
        trainers[0].step(8)
    return [generator, judge], iterations, 0


def actor_critic():
    net = dense("act_")
    trainer = sgd(net)
    for k in range(3):
        with autograd.record():
            outputs = [net(batch()[0]) for _ in range(20)]
            loss = sum((output**2).sum() for output in outputs)
        note("act_output_0", k, outputs[0])
        note("act_output_15", k, outputs[15])
        loss.backward()
        note("loss0_output_0", k, loss)
        note("gradient/act_weight", k, net.weight.grad())
        trainer.step(8)
    return [net], 3, 0


def evaluated_before_its_update():
    net = dense("target_")
    loss_fn = gluon.loss.L2Loss(prefix="targetloss0_")
    trainer = sgd(net)
    for k in range(3):
        with autograd.record():
            out = net(batch()[0])
        note("target_output_0", k, out)
        for i in range(2):
            target = net(batch()[0])
            note("target_output_0", 2 * k + i, target, "EVAL")
        with autograd.record():
            loss = loss_fn(out, target)
        loss.backward()
        note("targetloss0_output_0", k, loss)
        note("gradient/target_weight", k, net.weight.grad())
        trainer.step(8)
    return [net], 3, 6


def trainer_that_never_updates():
    net = dense("idle_")
    sgd(net)
    for k in range(3):
        note("idle_weight", k, net.weight.data())
        with autograd.record():
            loss = ((net(batch()[0]) - 1) ** 2).mean()
        loss.backward()
        note("loss0_output_0", k, loss)
        for name, parameter in parameters(net):
            note("gradient/" + name, k, parameter.grad())
            parameter.set_data(parameter.data() - 0.1 * parameter.grad())
    return [net], 3, 0


def by_hand_on_several_contexts():
    contexts = [mx.cpu(0), mx.cpu(1)]
    net = nn.Dense(3, in_units=6, prefix="own_")
    net.initialize(mx.init.Xavier(), ctx=contexts)
    for k in range(3):
        note("own_weight", k, net.weight.data(contexts[0]))
        for i, context in enumerate(contexts):
            with autograd.record():
                loss = (net(batch()[0].as_in_context(context)) ** 2).sum()
            loss.backward()
            note(f"loss0_output_{i}", k, loss)
        gradient = sum(array.asnumpy() for array in net.weight.list_grad())
        note("gradient/own_weight", k, gradient)
        net.weight.set_data(net.weight.list_data()[0] - 0.1 * nd.array(gradient))
    return [net], 3, 0


def trainer_after_updates_by_hand():
    net = dense("late_")
    trainer = None
    for k in range(6):
        note("late_weight", k, net.weight.data())
        with autograd.record():
            loss = (net(batch()[0]) ** 2).sum()
        loss.backward()
        note("gradient/late_weight", k, net.weight.grad())
        if k == 2:
            trainer = sgd(net)
        if trainer is None:
            net.weight.set_data(net.weight.data() - 0.1 * net.weight.grad())
        else:
            trainer.step(8)
    return [net], 6, 0


def clipped_and_accumulated():
    net = dense("clip_")
    for _, parameter in parameters(net):
        parameter.grad_req = "add"
    loss_fn = gluon.loss.L2Loss(prefix="cliploss0_")
    trainer = sgd(net)
    for k in range(2):
        for part in range(3):
            x, _ = batch()
            with autograd.record():
                loss = loss_fn(net(x), nd.ones((8, 3)))
            loss.backward()
            note(f"cliploss0_output_{part}", k, loss)
        gluon.utils.clip_global_norm([parameter.grad() for _, parameter in parameters(net)], 0.1)
        for name, parameter in parameters(net):
            note("gradient/" + name, k, parameter.grad())
        trainer.step(8)
        for _, parameter in parameters(net):
            parameter.zero_grad()
    return [net], 2, 0


SCENES = [
    # Before there is a Trainer: what is found without one is not looked for later.
    by_hand_on_several_contexts,
    trainer_after_updates_by_hand,
    gan,
    gan_with_five_critics,
    actor_critic,
    evaluated_before_its_update,
    trainer_that_never_updates,
    clipped_and_accumulated,
]

if __name__ == "__main__":
    play(SCENES)
