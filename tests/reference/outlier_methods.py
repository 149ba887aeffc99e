#!/usr/bin/env python3
"""outlier_methods.py: what becomes of a linear layer's output in int8 when a few input channels are far larger than the rest, by method.

    python outlier_methods.py          (needs numpy; prints the table of docs/SPEED.md, "Outlier channels")

One layer of 1,024 by 1,024, 2,048 rows; weights s8 with a scale per output, inputs u8 with a scale and a zero point per row, as src/tensor/linear_int8.c
has them. The figure is the RMS of what is wrong over the RMS of the exact output.
"""
import numpy

ROWS, N_IN, N_OUT, N_LARGE = 2048, 1024, 1024, 8


def quantised_inputs(x):
    low, high = numpy.minimum(x.min(1, keepdims=True), 0), numpy.maximum(x.max(1, keepdims=True), 0)
    step = (high - low) / 255
    zero = numpy.round(-low / step)
    return (numpy.clip(numpy.round(x / step) + zero, 0, 255) - zero) * step


def quantised_weights(w):
    step = numpy.abs(w).max(1, keepdims=True) / 127
    return numpy.round(w / step) * step


def product(x, w):
    return quantised_inputs(x) @ quantised_weights(w).T


def smoothed(x, w, strength):
    """SmoothQuant: the inputs' channels give size to the weights' columns."""
    s = numpy.abs(x).max(0) ** strength / numpy.abs(w).max(0) ** (1 - strength)
    return x / s, w * s


def apart(x, w):
    """LLM.int8(): the largest channels stay in fp32."""
    large = numpy.argsort(-numpy.abs(x).max(0))[:N_LARGE]
    rest = numpy.setdiff1d(numpy.arange(N_IN), large)
    return product(x[:, rest], w[:, rest]) + x[:, large] @ w[:, large].T


def rotation():
    """QuaRot: a Hadamard matrix spreads every channel over all."""
    h = numpy.ones((1, 1))
    while len(h) < N_IN:
        h = numpy.block([[h, h], [h, -h]])
    return h / numpy.sqrt(N_IN)


def main():
    rng, h = numpy.random.default_rng(1), rotation()
    for name, factor, heavy in ('no large channel', 1, False), ('8 channels x 50', 50, False), ('8 channels x 50, weights with heavy tails', 50, True):
        x = rng.standard_normal((ROWS, N_IN)) * numpy.exp(0.3 * rng.standard_normal(N_IN))
        x[:, rng.choice(N_IN, N_LARGE, False)] *= factor
        w = (rng.standard_t(4, (N_OUT, N_IN)) if heavy else rng.standard_normal((N_OUT, N_IN))) * 0.02
        exact = x @ w.T
        outputs = {'as it is': product(x, w), 'smoothed, the best of 0.3, 0.5, 0.7': None, 'large channels apart': apart(x, w), 'rotated': product(x @ h, w @ h)}
        tried = [product(*smoothed(x, w, a)) for a in (0.3, 0.5, 0.7)]
        outputs['smoothed, the best of 0.3, 0.5, 0.7'] = min(tried, key=lambda y: ((y - exact) ** 2).mean())
        print(name)
        for method, y in outputs.items():
            print(f'  {method:40} {numpy.sqrt(((y - exact) ** 2).mean() / (exact ** 2).mean()):.4f}')


if __name__ == '__main__':
    main()
