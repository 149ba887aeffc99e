"""Large pictures with small objects for `stencil label --tile`: emoji of one size strewn over a backdrop, none over another.

The same function makes pictures of the model's own size with objects of the same size and density, for comparison. Objects come with
masks of their boxes only: a thousand masks of 16 million pixels would not fit."""
import random

import numpy as np
from PIL import Image

import scenes

NATIVE = 224


def pool(seed, n):
    """Glyphs that a set of pictures is made of."""
    return random.Random(seed).sample(scenes.GLYPHS, n)


def thing(rng, glyph, size):
    """One emoji, turned and tinted as scenes.scene does it, its longer side `size` pixels."""
    s = scenes.sprite(glyph)
    if rng.random() < .5:
        s = s.transpose(Image.FLIP_LEFT_RIGHT)
    s = s.rotate(rng.gauss(0, 18), Image.BICUBIC, expand=True)
    s = s.crop(s.getchannel("A").point(lambda v: 255 if v > 127 else 0).getbbox())
    k = size / max(s.size)
    s = s.resize((max(6, round(s.width * k)), max(6, round(s.height * k))), Image.BILINEAR)
    gain = rng.uniform(.75, 1.2)
    rgb = s.convert("RGB").point(lambda v: min(255, int(v * gain)))
    rgb.putalpha(s.getchannel("A"))
    return rgb


def strew(rng, n, size, count):
    """Corners of `count` squares that do not overlap, inside the picture; fewer when there is no room."""
    cells, corners, side = {}, [], size + 2
    for _ in range(40 * count):
        if len(corners) == count:
            break
        x, y = rng.randint(0, n - size), rng.randint(0, n - size)
        near = (cells.get((x // side + i, y // side + k)) for i in (-1, 0, 1) for k in (-1, 0, 1))
        if any(c and abs(c[0] - x) < side and abs(c[1] - y) < side for c in near):
            continue
        cells[x // side, y // side] = x, y
        corners.append((x, y))
    return corners


def scene(seed, glyphs, n=4000, size=40, density=3.0):
    """(uint8 [n,n,3], [(glyph, (x0, y0, x1, y1), bool mask of the box)]). density: objects per NATIVE x NATIVE pixels."""
    rng = random.Random(seed)
    canvas = Image.fromarray(scenes.background(rng, n))
    objects = []
    for x, y in strew(rng, n, size, max(1, round(density * (n / NATIVE) ** 2))):
        glyph = rng.choice(glyphs)
        s = thing(rng, glyph, size)
        canvas.paste(s.convert("RGB"), (x, y), s.getchannel("A"))
        mask = np.asarray(s.getchannel("A")) > 127
        ys, xs = np.where(mask)
        box = int(xs.min()), int(ys.min()), int(xs.max()) + 1, int(ys.max()) + 1
        objects.append((glyph, (x + box[0], y + box[1], x + box[2], y + box[3]), mask[box[1]:box[3], box[0]:box[2]]))
    return np.asarray(canvas), objects
