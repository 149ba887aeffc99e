"""Draws curve.tsv, how training went, as curve.svg. Needs nothing but Python.

    python3 models/demo/curve.py"""
import csv
import os

HERE = os.path.dirname(os.path.abspath(__file__))
WIDTH, HEIGHT, LEFT, TOP, GAP, FIRST, LAST = 520, 300, 50, 40, 60, 16_000, 54_000
COLOURS = ("#1f6fb4", "#d1601f", "#3a8a3a")
PANELS = (("scored", "held-out scenes, 224 px", ("recall", "precision", "\u201cnothing there\u201d right")),
          ("training", "running means while training", ("mask IoU", "box IoU", "\u201cis it there\u201d right")))


def text(x, y, words, size=12, anchor="start", colour="#333"):
    return f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}" text-anchor="{anchor}" fill="{colour}">{words}</text>'


def line(points, colour, dash=""):
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>'


def panel(left, rows, name, title, labels):
    at = lambda scenes, v: (left + WIDTH * (scenes - FIRST) / (LAST - FIRST), TOP + HEIGHT * (1 - v))
    out = [text(left, TOP - 16, title, 15)]
    for v in (0, .2, .4, .6, .8, 1):
        y = at(FIRST, v)[1]
        out += [f'<line x1="{left}" x2="{left + WIDTH}" y1="{y}" y2="{y}" stroke="#ddd"/>', text(left - 8, y + 4, f"{v:g}", anchor="end")]
    for scenes in range(20_000, LAST, 10_000):
        out.append(text(at(scenes, 0)[0], TOP + HEIGHT + 18, f"{scenes:,}", anchor="middle"))
    out.append(text(left + WIDTH / 2, TOP + HEIGHT + 36, "scenes seen", anchor="middle"))
    for k, (label, colour) in enumerate(zip(labels, COLOURS)):
        for series, dash in ((name, ""), ("given up" if name == "scored" else None, ' stroke-dasharray="3 3"')):
            points = [at(*p) for p in sorted((int(r["scenes"]), float(r[("first", "second", "third")[k]])) for r in rows if r["series"] == series)]
            if points:
                out.append(line(points, colour, dash))
            if points and name == "scored":
                out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points]
        out.append(text(left + 10 + 170 * k, TOP + HEIGHT + 58, f"\u25cf {label}", colour=colour))
    if name == "scored":
        out.append(text(left + 10, TOP + HEIGHT + 76, "bars: recall 0.90, precision 0.90, nothing 0.95; dashed: without place_positions.py, given up", 11))
    return out


def main():
    with open(os.path.join(HERE, "curve.tsv")) as f:
        rows = list(csv.DictReader((row for row in f if not row.startswith("#")), delimiter="\t"))
    width, height = 2 * WIDTH + 2 * LEFT + GAP, TOP + HEIGHT + 90
    body = [panel(LEFT + k * (WIDTH + GAP), rows, *about) for k, about in enumerate(PANELS)]
    with open(os.path.join(HERE, "curve.svg"), "w") as f:
        f.write(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" font-family="sans-serif">\n'
                f'<rect width="{width}" height="{height}" fill="#fff"/>\n' + "\n".join(piece for part in body for piece in part) + "\n</svg>\n")


if __name__ == "__main__":
    main()
