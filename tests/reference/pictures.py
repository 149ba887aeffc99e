"""Synthetic test pictures from a seed: gradients, discs, stripes, noise and hard edges, so that resizing and attention have something to do."""
import numpy as np


def synthetic(seed, width, height):
    """uint8 [height, width, 3]."""
    stream = np.random.Generator(np.random.PCG64(seed))
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    u, v = x / max(width, 2), y / max(height, 2)
    out = np.zeros((height, width, 3))
    for c in range(3):
        a, b, offset = stream.uniform(-120, 120, 3)
        out[..., c] = 128 + a * (u - .5) + b * (v - .5) + offset / 4
    for _ in range(6):
        cx, cy, r = stream.uniform(0, 1, 2).tolist() + [stream.uniform(.05, .3)]
        out[(u - cx) ** 2 + (v - cy) ** 2 < r * r] = stream.uniform(0, 255, 3)
    period = stream.uniform(2.5, 9)
    stripes = (np.floor((x + 2 * y) / period) % 2 == 0) & (u > .6) & (v < .45)
    out[stripes] = stream.uniform(0, 255, 3)
    out += stream.normal(0, 6, out.shape)
    return np.clip(np.rint(out), 0, 255).astype(np.uint8)
