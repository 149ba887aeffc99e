"""A held-out set that is unlike training: crowds of 20 to 60 emoji of 16 to 300 pixels on 1,344-pixel pictures that look more like photographs.

Backgrounds that scenes.py never makes (noise in octaves, a lit relief, wood grain, leaves, lights out of focus, a room), things shaded by the scene's light and
casting shadows, then a camera: colour cast, falling light towards the corners, blur, noise, JPEG. The same kinds of things, masks as exact as scenes.py's.
Everything follows from the seed."""
import io
import math
import random

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

import scenes

SIDE, LEAST, LARGEST = 1344, 16, 300
CROWDS, SIZES = (30, 45), (32, 64, 128)      # where a table's bands begin: objects of a scene, pixels of an object's longer side
LEAST_SHOWN = .3                  # of an object's pixels, or it does not count (scenes.py's rule)
MOST_HIDDEN = .35                 # of any object that a new one may cover


def octaves(noise, n, coarse, fine, fall=.55):
    """Smooth noise in [0, 1], [n, n]: grids of `coarse`, 2 `coarse` ... up to `fine` cells a side, each weaker than the one before."""
    total, weight, cells = np.zeros((n, n), np.float32), 1.0, coarse
    while cells <= fine:
        grid = Image.fromarray(noise.random((cells + 3, cells + 3), dtype=np.float32))
        step = n / cells
        total += weight * np.asarray(grid.resize((n, n), Image.BICUBIC, (1, 1, 1 + n / step, 1 + n / step)))
        weight, cells = weight * fall, 2 * cells
    return (total - total.min()) / (total.max() - total.min() + 1e-6)


def blend(f, low, high):
    return low + (high - low) * f[..., None]


def colour(rng, low=25, high=235):
    return np.array([rng.uniform(low, high) for _ in range(3)], np.float32)


def near(rng, base, by):
    return np.clip(base + np.array([rng.uniform(-by, by) for _ in range(3)], np.float32), 0, 255)


def clouds(rng, noise, n):
    f = octaves(noise, n, rng.randint(2, 4), 128)
    return blend(np.clip(1.6 * f - .3, 0, 1), colour(rng), colour(rng))


def relief(rng, noise, n):
    """A rough surface lit from one side: stone, plaster, sand."""
    height = octaves(noise, n, rng.randint(3, 9), 256, rng.uniform(.5, .72)) * n * rng.uniform(.03, .08)
    gy, gx = np.gradient(height)
    turn = rng.uniform(0, 2 * math.pi)
    light = (1 + math.cos(turn) * gx + math.sin(turn) * gy) / np.sqrt(1 + gx * gx + gy * gy)
    return colour(rng, 70, 190) * np.clip(.25 + .75 * light, .05, 1.6)[..., None]


def wood(rng, noise, n):
    x = np.linspace(0, 1, n, dtype=np.float32)
    bent = x[:, None] + .18 * octaves(noise, n, 2, 16)
    grain = .5 + .5 * np.sin(2 * math.pi * rng.uniform(6, 22) * bent + 3 * octaves(noise, n, 2, 8))
    fine = np.asarray(Image.fromarray(noise.random((n, 48), dtype=np.float32)).resize((n, n), Image.BICUBIC))
    base = np.array([rng.uniform(110, 200), rng.uniform(75, 140), rng.uniform(40, 95)], np.float32)
    out = blend(.7 * grain + .3 * fine, base * rng.uniform(.45, .75), base * 1.15)
    return out if rng.random() < .5 else out.transpose(1, 0, 2)


def leaves(rng, noise, n):
    """Blades, those at the back dark and out of focus."""
    base = np.array([rng.uniform(20, 110), rng.uniform(80, 170), rng.uniform(15, 80)], np.float32)
    im = Image.fromarray(np.broadcast_to(base * .35, (n, n, 3)).astype(np.uint8))
    for layer in range(4):
        d = ImageDraw.Draw(im)
        for _ in range(170):
            x, y, turn = rng.uniform(0, n), rng.uniform(0, n), rng.gauss(-math.pi / 2, .9)
            long, wide = n * rng.uniform(.04, .16), n * rng.uniform(.004, .016)
            c, s = math.cos(turn), math.sin(turn)
            tint = near(rng, base * (.45 + .22 * layer), 28)
            d.polygon([(x, y), (x + .5 * long * c - wide * s, y + .5 * long * s + wide * c), (x + long * c, y + long * s),
                       (x + .5 * long * c + wide * s, y + .5 * long * s - wide * c)], fill=tuple(int(v) for v in tint))
        im = im.filter(ImageFilter.GaussianBlur(n * (.006, .003, .0012, .0004)[layer]))
    return np.asarray(im, np.float32) * (.7 + .6 * octaves(noise, n, 2, 4))[..., None]


def bokeh(rng, noise, n):
    """Lights far out of focus before a dim gradient."""
    out = blend(octaves(noise, n, 1, 4), colour(rng, 10, 80), colour(rng, 30, 120))
    for _ in range(rng.randint(25, 60)):
        r, x, y = n * rng.uniform(.015, .07), rng.uniform(0, n), rng.uniform(0, n)
        x0, y0, x1, y1 = (int(max(0, min(n, v))) for v in (x - r - 2, y - r - 2, x + r + 2, y + r + 2))
        if x0 >= x1 or y0 >= y1:
            continue
        yy, xx = np.mgrid[y0:y1, x0:x1].astype(np.float32)
        far = np.hypot(xx - x, yy - y) / r
        disc = np.clip((1 - far) * r / 2 + .5, 0, 1) * (.6 + .4 * np.clip(far, 0, 1) ** 4)
        out[y0:y1, x0:x1] += disc[..., None] * near(rng, colour(rng, 60, 220), 20) * rng.uniform(.25, .7)
    return out


def room(rng, noise, n):
    """A wall and a table's top, each with its own grain, the light falling off from one side."""
    edge = int(n * rng.uniform(.2, .6))
    wall = near(rng, np.full(3, rng.uniform(90, 220), np.float32), 25) * (.92 + .08 * octaves(noise, n, 32, 256))[..., None]
    top = wood(rng, noise, n) if rng.random() < .5 else near(rng, np.full(3, rng.uniform(50, 210), np.float32), 40) * (.85 + .15 * octaves(noise, n, 16, 512))[..., None]
    y, x = np.mgrid[0:n, 0:n].astype(np.float32) / n
    out = np.where((y * n < edge)[..., None], wall, top)
    out *= (1 - .35 * np.exp(-np.abs(y * n - edge) / (n * .02)))[..., None]              # darker where they meet
    away = np.hypot(x - rng.uniform(-.2, 1.2), y - rng.uniform(-.3, .4))
    return out * (1.25 - rng.uniform(.3, .75) * np.clip(away, 0, 1.3))[..., None]


BACKGROUNDS = {"clouds": clouds, "relief": relief, "wood": wood, "leaves": leaves, "bokeh": bokeh, "room": room}


def thing(rng, glyph, size, light):
    """An emoji, turned, its longer side `size` pixels, brighter towards the light and darker away from it. RGBA."""
    s = scenes.sprite(glyph)
    if rng.random() < .5:
        s = s.transpose(Image.FLIP_LEFT_RIGHT)
    s = s.rotate(rng.gauss(0, 18), Image.BICUBIC, expand=True)
    s = s.crop(s.getchannel("A").point(lambda v: 255 if v > 127 else 0).getbbox())
    k = size / max(s.size)
    s = s.resize((max(6, round(s.width * k)), max(6, round(s.height * k))), Image.BICUBIC if k > 1 else Image.BOX)
    a = np.asarray(s, np.float32)
    y, x = np.mgrid[-1:1:a.shape[0] * 1j, -1:1:a.shape[1] * 1j].astype(np.float32)
    shade = rng.uniform(.7, 1.1) * (1 - rng.uniform(.1, .35) * (math.cos(light) * x + math.sin(light) * y))
    return np.dstack([np.clip(a[..., :3] * shade[..., None], 0, 255), a[..., 3]])


def paste(canvas, rgba, x, y):
    """Draws into float [n,n,3]; parts outside are cut."""
    n, (h, w) = canvas.shape[0], rgba.shape[:2]
    x0, y0, x1, y1 = max(x, 0), max(y, 0), min(x + w, n), min(y + h, n)
    part = rgba[y0 - y:y1 - y, x0 - x:x1 - x]
    alpha = part[..., 3:] / 255
    canvas[y0:y1, x0:x1] += alpha * (part[..., :3] - canvas[y0:y1, x0:x1])
    return (y0, y1, x0, x1), part[..., 3] > 127


def shadow(canvas, rgba, x, y, size, light, depth):
    """What a thing casts away from the light, soft."""
    soft = max(1, round(size * .08))
    alpha = Image.fromarray(np.pad(rgba[..., 3].astype(np.uint8), 3 * soft)).filter(ImageFilter.GaussianBlur(soft))
    dark = np.zeros((*alpha.size[::-1], 4), np.float32)
    dark[..., 3] = np.asarray(alpha, np.float32) * depth
    sx, sy = x - 3 * soft + round(.09 * size * math.cos(light)), y - 3 * soft + round(.09 * size * math.sin(light))
    n = canvas.shape[0]
    if sx < n and sy < n and sx + dark.shape[1] > 0 and sy + dark.shape[0] > 0:
        paste(canvas, dark, sx, sy)


def camera(rng, noise, a, about):
    """Cast, vignette, blur, noise, JPEG: float [n,n,3] -> uint8."""
    n = a.shape[0]
    y, x = np.mgrid[-1:1:n * 1j, -1:1:n * 1j].astype(np.float32)
    a = a * np.array([rng.uniform(.85, 1.12), 1, rng.uniform(.85, 1.12)], np.float32) * (1 - rng.uniform(0, .45) * (x * x + y * y) / 2)[..., None]
    about["blur"] = rng.choice([0, 0, .6, 1.2, 2]) * n / SIDE
    im = Image.fromarray(np.clip(a, 0, 255).astype(np.uint8)).filter(ImageFilter.GaussianBlur(about["blur"]))
    a = np.asarray(im, np.float32) + noise.normal(0, rng.uniform(0, 9), (n, n, 3)).astype(np.float32)
    about["jpeg"] = rng.randint(30, 92)
    file = io.BytesIO()
    Image.fromarray(np.clip(a, 0, 255).astype(np.uint8)).save(file, "JPEG", quality=about["jpeg"])
    return np.asarray(Image.open(file).convert("RGB"))


def scene(seed, n=SIDE, crowd=(20, 60), sizes=(LEAST, LARGEST), even=False):
    """(uint8 [n,n,3], objects, about). objects as scenes.scene gives them, (glyph, bool mask [n,n], box); `about`: background, objects drawn, blur, JPEG quality.
    Sizes are drawn evenly in their logarithm (even=False), so that small things are as many as large ones; things may hide parts of others."""
    rng, noise = random.Random(seed), np.random.default_rng(seed)
    about = {"background": sorted(BACKGROUNDS)[seed % len(BACKGROUNDS)]}
    canvas = np.ascontiguousarray(BACKGROUNDS[about["background"]](rng, noise, n), np.float32)
    light, depth = rng.uniform(0, 2 * math.pi), rng.uniform(.15, .6)
    pool = rng.sample(scenes.GLYPHS, rng.randint(3, 9) if crowd[1] >= 20 else rng.randint(1, 5))
    owner, full, glyphs = np.full((n, n), -1, np.int16), [], []
    wanted = rng.randint(*crowd)
    for _ in range(60 * wanted):
        if len(full) == wanted:
            break
        size = rng.uniform(*sizes) if even else math.exp(rng.uniform(*(math.log(v) for v in sizes)))
        glyph = rng.choice(pool)
        rgba = thing(rng, glyph, round(size), light)
        h, w = rgba.shape[:2]
        x, y = rng.randint(-w // 6, n - 5 * w // 6), rng.randint(-h // 6, n - 5 * h // 6)
        y0, y1, x0, x1 = max(y, 0), min(y + h, n), max(x, 0), min(x + w, n)
        mask = rgba[y0 - y:y1 - y, x0 - x:x1 - x, 3] > 127
        under = owner[y0:y1, x0:x1][mask]
        hidden = np.bincount(under[under >= 0], minlength=len(full))
        if mask.sum() < 40 or any(hidden[i] >= MOST_HIDDEN * min(full[i], mask.sum()) for i in np.flatnonzero(hidden)):
            continue
        shadow(canvas, rgba, x, y, size, light, depth)
        paste(canvas, rgba, x, y)
        owner[y0:y1, x0:x1][mask] = len(full)
        full.append(int(mask.sum()))
        glyphs.append(glyph)
    objects, shown = [], np.bincount(owner[owner >= 0], minlength=len(full))
    for i, glyph in enumerate(glyphs):
        if shown[i] < max(30, LEAST_SHOWN * full[i]):
            continue
        mask = owner == i
        ys, xs = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
        objects.append((glyph, mask, (int(xs[0]), int(ys[0]), int(xs[-1]) + 1, int(ys[-1]) + 1)))
    about["objects"] = len(full)
    return camera(rng, noise, canvas, about), objects, about


def like_training(seed, n=224):
    """As many and as large things as in training, on these backgrounds and through this camera: what the looks alone cost."""
    return scene(seed, n, (1, 8), (.12 * n, .42 * n), True)


def band(limits, v):
    """Which of the bands between these limits v is in, as text."""
    k = sum(v >= limit for limit in limits)
    return f"under {limits[0]}" if k == 0 else f"{limits[-1]} and up" if k == len(limits) else f"{limits[k - 1]} to {limits[k] - 1}"
