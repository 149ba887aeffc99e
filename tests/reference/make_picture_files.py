#!/usr/bin/env python3
"""Writes tests/data/pictures: small picture files of every format and mode, and the pixels each must give.

The expected pixels are Pillow's: ImageOps.exif_transpose(Image.open(file)).convert("RGB"). Where Pillow refuses a file or has no
useful answer (sensor data), they are computed here with numpy from the rule in docs/preprocessing.md. Needs numpy, pillow, opencv-python-headless
(JPEG samplings that Pillow does not write) and pillow-heif. Not needed to run the tests.

Each line of manifest.txt: file width height format bits bands orientation stretched low high tolerance where-the-pixels-come-from.
"""
import io
import struct
import zlib
from pathlib import Path

import cv2
import numpy as np
import pillow_heif
from PIL import Image, ImageOps

OUT = Path(__file__).resolve().parent.parent / "data" / "pictures"
W, H = 29, 21
lines = []


def scene(h=H, w=W):
    """A smooth, asymmetric colour picture with an edge: [h][w][3] uint8."""
    y, x = np.mgrid[0:h, 0:w].astype(np.float64)
    r = 40 + 200 * x / (w - 1)
    g = 220 - 180 * y / (h - 1) + 20 * np.sin(x / 3)
    b = 128 + 90 * np.cos((x + 2 * y) / 5)
    rgb = np.stack([r, g, b], -1)
    rgb[h // 4:h // 2, w // 5:w // 3] = (250, 20, 30)
    return np.clip(np.round(rgb), 0, 255).astype(np.uint8)


def record(name, expected, fmt, bits, bands, orientation=1, stretched=0, low=0.0, high=None, tolerance=0, source="Pillow"):
    expected = np.ascontiguousarray(expected, np.uint8)
    (OUT / (name + ".rgb")).write_bytes(expected.tobytes())
    if high is None:
        high = 255 if bits <= 8 else (1 << bits) - 1
    lines.append(f"{name} {expected.shape[1]} {expected.shape[0]} {fmt} {bits} {bands} {orientation} {stretched} "
                 f"{low:.9g} {high:.9g} {tolerance} {source}")


def by_pillow(name, data, fmt, bits, bands, orientation=1, **more):
    (OUT / name).write_bytes(data)
    with Image.open(OUT / name) as im:
        rgb = np.asarray(ImageOps.exif_transpose(im).convert("RGB"))
    record(name, rgb, fmt, bits, bands, orientation, **more)
    return rgb


def save(im, fmt, **args):
    f = io.BytesIO()
    im.save(f, fmt, **args)
    return f.getvalue()


def exif_blob(orientation, endian="<"):
    """A bare EXIF block: TIFF header and one IFD with Orientation."""
    head = b"II*\0" if endian == "<" else b"MM\0*"
    value = struct.pack(endian + "HH", orientation, 0)
    return head + struct.pack(endian + "IH", 8, 1) + struct.pack(endian + "HHI", 0x0112, 3, 1) + value + b"\0\0\0\0"


XMP = (b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description '
       b'xmlns:tiff="http://ns.adobe.com/tiff/1.0/" tiff:Orientation="6"/></rdf:RDF></x:xmpmeta>')

# ------------------------------------------------------------------ stretch, as docs/preprocessing.md defines it


def percentiles(a, low=0.5, high=99.5):
    s = np.sort(a[np.isfinite(a)].ravel())
    n = len(s)
    return s[int(np.floor(low / 100 * (n - 1)))], s[int(np.ceil(high / 100 * (n - 1)))]


def stretch(a, lo, hi):
    a = a.astype(np.float64)
    with np.errstate(invalid="ignore"):
        v = np.floor((np.clip(a, lo, hi) - lo) * 255 / (float(hi) - float(lo)) + 0.5)
    v[np.isnan(a)] = 0
    v = v.astype(np.uint8)
    return np.repeat(v[..., None], 3, -1) if v.ndim == 2 else v


def by_stretch(name, data, a, fmt, bits, bands):
    lo, hi = percentiles(a)
    (OUT / name).write_bytes(data)
    record(name, stretch(a, lo, hi), fmt, bits, bands, stretched=1, low=lo, high=hi, source="percentiles")


def gray(v):
    return np.repeat(np.asarray(v, np.uint8)[..., None], 3, -1)


# ------------------------------------------------------------------ JPEG


def jpeg_files():
    rgb = Image.fromarray(scene())
    for name, sub in (("444", "4:4:4"), ("422", "4:2:2"), ("420", "4:2:0")):
        by_pillow(f"jpeg_{name}.jpg", save(rgb, "JPEG", quality=85, subsampling=sub), "jpeg", 8, 3)
    for name, sampling in (("440", 0x121111), ("411", 0x411111)):
        data = cv2.imencode(".jpg", scene()[..., ::-1], [cv2.IMWRITE_JPEG_SAMPLING_FACTOR, sampling, cv2.IMWRITE_JPEG_QUALITY, 85])[1]
        by_pillow(f"jpeg_{name}.jpg", data.tobytes(), "jpeg", 8, 3)
    by_pillow("jpeg_progressive.jpg", save(rgb, "JPEG", quality=80, progressive=True), "jpeg", 8, 3)
    by_pillow("jpeg_restart.jpg", save(rgb, "JPEG", quality=80, restart_marker_blocks=2), "jpeg", 8, 3)
    by_pillow("jpeg_adobe_rgb.jpg", save(rgb, "JPEG", quality=85, keep_rgb=True), "jpeg", 8, 3)
    by_pillow("jpeg_gray.jpg", save(rgb.convert("L"), "JPEG", quality=85), "jpeg", 8, 1)
    by_pillow("jpeg_one_pixel.jpg", save(rgb.crop((3, 3, 4, 4)), "JPEG"), "jpeg", 8, 3)
    cmyk = save(rgb.convert("CMYK"), "JPEG", quality=90)
    at = cmyk.index(b"Adobe")
    by_pillow("jpeg_cmyk_adobe.jpg", cmyk, "jpeg", 8, 4)
    ycck = bytearray(cmyk)
    ycck[at + 11] = 2  # the transform byte: the same samples now mean YCCK
    by_pillow("jpeg_ycck.jpg", bytes(ycck), "jpeg", 8, 4)
    by_pillow("jpeg_cmyk_plain.jpg", cmyk[:at - 4] + cmyk[at + 12:], "jpeg", 8, 4)  # no Adobe marker: Pillow still inverts
    for o in range(1, 9):
        by_pillow(f"jpeg_orientation_{o}.jpg", save(rgb, "JPEG", quality=85, exif=b"Exif\0\0" + exif_blob(o, "<>"[o & 1])), "jpeg", 8, 3, o)
    by_pillow("jpeg_orientation_xmp.jpg", save(rgb, "JPEG", quality=85, xmp=XMP), "jpeg", 8, 3, 6)
    by_pillow("jpeg_orientation_both.jpg", save(rgb, "JPEG", quality=85, xmp=XMP, exif=b"Exif\0\0" + exif_blob(3)), "jpeg", 8, 3, 3)
    by_pillow("jpeg_orientation_9.jpg", save(rgb, "JPEG", quality=85, exif=b"Exif\0\0" + exif_blob(9)), "jpeg", 8, 3)
    by_pillow("jpeg_orientation_long.jpg", save(rgb, "JPEG", quality=85, exif=b"Exif\0\0MM\0*" + struct.pack(
        ">IHHHIII", 8, 1, 0x0112, 4, 1, 8, 0)), "jpeg", 8, 3, 8)
    broken = b"Exif\0\0II*\0" + struct.pack("<IH", 8, 60000) + b"\x12\x01\x03\0"
    data = save(rgb, "JPEG", quality=85)
    (OUT / "jpeg_broken_exif.jpg").write_bytes(data[:2] + b"\xff\xe1" + struct.pack(">H", len(broken) + 2) + broken + data[2:])
    record("jpeg_broken_exif.jpg", np.asarray(Image.open(io.BytesIO(data)).convert("RGB")), "jpeg", 8, 3, source="Pillow, without the EXIF")
    by_pillow("jpeg_junk_after.jpg", data + b"\0" * 50, "jpeg", 8, 3)


# ------------------------------------------------------------------ PNG

ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))


def png_chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png_rows(a, bits):
    """a: [h][w][c] of samples, to filter-0 rows."""
    h, w, c = a.shape
    if bits == 16:
        rows = a.astype(">u2").tobytes()
        n = w * c * 2
    elif bits == 8:
        rows = a.astype(np.uint8).tobytes()
        n = w * c
    else:
        per = 8 // bits
        pad = np.zeros((h, -w % per), np.uint8)
        p = np.concatenate([a[..., 0].astype(np.uint8), pad], 1).reshape(h, -1, per)
        rows = (p << np.arange(8 - bits, -1, -bits, dtype=np.uint8)).sum(-1).astype(np.uint8).tobytes()
        n = (w + per - 1) // per
    return b"".join(b"\0" + rows[i * n:(i + 1) * n] for i in range(h))


def png(a, bits, colour, interlace=0, before=b"", after=b""):
    a = a[..., None] if a.ndim == 2 else a
    if interlace:
        raw = b"".join(png_rows(a[y::dy, x::dx], bits) for x, y, dx, dy in ADAM7 if a[y::dy, x::dx].size)
    else:
        raw = png_rows(a, bits)
    head = struct.pack(">IIBBBBB", a.shape[1], a.shape[0], bits, colour, 0, 0, interlace)
    return (b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", head) + before + png_chunk(b"IDAT", zlib.compress(raw, 9)) + after +
            png_chunk(b"IEND", b""))


def png_files():
    s = scene()
    g = s[..., 1]
    alpha = np.linspace(0, 255, W * H).reshape(H, W, 1).astype(np.uint8)
    for bits in (1, 2, 4, 8):
        by_pillow(f"png_gray{bits}.png", png(g >> (8 - bits), bits, 0), "png", bits, 1)
    by_pillow("png_gray_alpha.png", png(np.concatenate([g[..., None], alpha], -1), 8, 4), "png", 8, 2)
    by_pillow("png_rgb.png", png(s, 8, 2), "png", 8, 3)
    by_pillow("png_rgb_adam7.png", png(s, 8, 2, 1), "png", 8, 3)
    by_pillow("png_rgba.png", png(np.concatenate([s, alpha], -1), 8, 6), "png", 8, 4)
    by_pillow("png_rgb_filters.png", save(Image.fromarray(s), "PNG", optimize=True), "png", 8, 3)
    by_pillow("png_rgb_trns.png", png(s, 8, 2, before=png_chunk(b"tRNS", struct.pack(">HHH", *map(int, s[0, 0])))), "png", 8, 3)
    by_pillow("png_rgb_gama.png", png(s, 8, 2, before=png_chunk(b"gAMA", struct.pack(">I", 100000))), "png", 8, 3)
    table = (np.arange(768) * 37 % 256).astype(np.uint8).tobytes()
    for bits in (1, 2, 4, 8):
        plte = png_chunk(b"PLTE", table[:3 << bits])
        by_pillow(f"png_palette{bits}.png", png(g >> (8 - bits), bits, 3, before=plte), "png", bits, 1)
    trns = png_chunk(b"tRNS", bytes(range(0, 250, 2)))
    by_pillow("png_palette_trns.png", png(g, 8, 3, before=png_chunk(b"PLTE", table) + trns), "png", 8, 1)
    by_pillow("png_palette_short.png", png(g >> 3, 8, 3, before=png_chunk(b"PLTE", table[:60])), "png", 8, 1)  # some indices beyond
    by_pillow("png_palette_adam7.png", png(g >> 6, 2, 3, 1, before=png_chunk(b"PLTE", table[:12])), "png", 2, 1)
    # 16-bit: the low bytes are not a copy of the high ones, so that >> 8 and / 257 differ
    s16 = s.astype(np.uint16) * 256 + (s[..., ::-1].astype(np.uint16) * 7 & 255)
    a16 = alpha.astype(np.uint16) * 257
    by_pillow("png_rgb16.png", png(s16, 16, 2), "png", 16, 3)
    by_pillow("png_rgba16.png", png(np.concatenate([s16, a16], -1), 16, 6), "png", 16, 4)
    by_pillow("png_rgb16_adam7.png", png(s16, 16, 2, 1), "png", 16, 3)
    by_pillow("png_rgb16_times257.png", png(s.astype(np.uint16) * 257, 16, 2), "png", 16, 3)
    wide = np.linspace(0, 65535, W * H).reshape(H, W).astype(np.uint16)  # uses the whole range: a photograph
    by_pillow("png_gray_alpha16.png", png(np.concatenate([wide[..., None], a16], -1), 16, 4), "png", 16, 2)
    name = "png_gray16_wide.png"
    (OUT / name).write_bytes(png(wide, 16, 0))
    record(name, gray(wide >> 8), "png", 16, 1, source="high byte")
    name = "png_gray16_times257.png"  # a narrow range, but 8-bit data in a 16-bit file
    narrow = (60 + g // 8).astype(np.uint16)
    (OUT / name).write_bytes(png(narrow * 257, 16, 0))
    record(name, gray(narrow), "png", 16, 1, source="high byte")
    sensor = 700 + (g.astype(np.uint16) * 12)
    sensor[3, 4], sensor[10, 10] = 65535, 0  # hot and dead pixels
    by_stretch("png_gray16_sensor.png", png(sensor, 16, 0), sensor, "png", 16, 1)
    by_stretch("png_gray16_sensor_adam7.png", png(sensor, 16, 0, 1), sensor, "png", 16, 1)
    for o in range(1, 9):
        by_pillow(f"png_orientation_{o}.png", png(s, 8, 2, before=png_chunk(b"eXIf", exif_blob(o, ">"))), "png", 8, 3, o)
    by_pillow("png_orientation_late.png", png(s, 8, 2, after=png_chunk(b"eXIf", exif_blob(6))), "png", 8, 3, 6)
    by_pillow("png_orientation_xmp.png", png(s, 8, 2, before=png_chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + XMP)), "png", 8, 3, 6)
    by_pillow("png_orientation_zxmp.png", png(s, 8, 2, before=png_chunk(
        b"iTXt", b"XML:com.adobe.xmp\0\1\0\0\0" + zlib.compress(XMP))), "png", 8, 3, 6)
    blob = b"Exif\0\0" + exif_blob(8)
    profile = b"\nexif\n%8d\n" % len(blob) + b"\n".join(blob.hex()[i:i + 72].encode() for i in range(0, 2 * len(blob), 72)) + b"\n"
    by_pillow("png_orientation_profile.png", png(s, 8, 2, before=png_chunk(
        b"zTXt", b"Raw profile type exif\0\0" + zlib.compress(profile))), "png", 8, 3, 8)
    by_pillow("png_one_pixel.png", png(s[:1, :1], 8, 2), "png", 8, 3)


# ------------------------------------------------------------------ WebP


def riff(chunks):
    body = b"".join(k + struct.pack("<I", len(d)) + d + b"\0" * (len(d) & 1) for k, d in chunks)
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WEBP" + body


def webp_frame(im, **args):
    """The picture chunk(s) of a still WebP, without the RIFF header and VP8X."""
    data = save(im, "WEBP", **args)[12:]
    out = b""
    while data:
        n = struct.unpack("<I", data[4:8])[0]
        n += n & 1
        if data[:4] in (b"VP8 ", b"VP8L", b"ALPH"):
            out += data[:8 + n]
        data = data[8 + n:]
    return out


def webp_files():
    s = scene()
    rgb = Image.fromarray(s)
    alpha = np.linspace(0, 255, W * H).reshape(H, W, 1).astype(np.uint8)
    rgba = Image.fromarray(np.concatenate([s, alpha], -1))
    by_pillow("webp_lossy.webp", save(rgb, "WEBP", quality=80), "webp", 8, 3)
    by_pillow("webp_lossless.webp", save(rgb, "WEBP", lossless=True), "webp", 8, 3)
    by_pillow("webp_lossy_alpha.webp", save(rgba, "WEBP", quality=80, exact=True), "webp", 8, 4)
    by_pillow("webp_lossless_alpha.webp", save(rgba, "WEBP", lossless=True, exact=True), "webp", 8, 4)
    for o in (1, 3, 6, 8):
        by_pillow(f"webp_orientation_{o}.webp", save(rgb, "WEBP", quality=80, exif=exif_blob(o)), "webp", 8, 3, o)
    by_pillow("webp_orientation_prefixed.webp", save(rgb, "WEBP", lossless=True, exif=b"Exif\0\0" + exif_blob(5)), "webp", 8, 3, 5)
    by_pillow("webp_orientation_xmp.webp", save(rgb, "WEBP", lossless=True, xmp=XMP), "webp", 8, 3, 6)
    by_pillow("webp_animated.webp", save(rgb, "WEBP", lossless=True, save_all=True, duration=50,
                                         append_images=[Image.fromarray(255 - s), Image.fromarray(s[::-1])]), "webp", 8, 3)
    # the first frame covers only a part of the canvas
    part = webp_frame(rgb.crop((0, 0, 13, 9)), lossless=True)
    anmf = struct.pack("<I", 6 // 2)[:3] + struct.pack("<I", 4 // 2)[:3] + struct.pack("<I", 12)[:3] + struct.pack("<I", 8)[:3] + \
        struct.pack("<I", 40)[:3] + b"\2" + part
    vp8x = struct.pack("<I", 2) + struct.pack("<I", W - 1)[:3] + struct.pack("<I", H - 1)[:3]
    by_pillow("webp_animated_offset.webp", riff([(b"VP8X", vp8x), (b"ANIM", b"\xff\x80\x40\xff\0\0"), (b"ANMF", anmf)]), "webp", 8, 3)


# ------------------------------------------------------------------ TIFF

KIND = {"u": 1, "i": 2, "f": 3}


def pack_bits(rows, bits):
    """[n][w*c] samples to rows of packed bits, most significant first; every row starts on a byte."""
    if bits in (8, 16, 32, 64):
        return None
    sh = np.arange(bits - 1, -1, -1)
    return np.packbits((rows.astype(np.uint32)[..., None] >> sh & 1).reshape(len(rows), -1).astype(np.uint8), axis=1).tobytes()


def tiff(a, photometric, bits=None, endian="<", compress=False, tile=None, planar=1, rows=None, extra=(), table=None, orientation=None,
         big=False, kind=None, fill=1, more=()):
    """A TIFF writer small enough to be read: a is [h][w] or [h][w][c]."""
    a = a[..., None] if a.ndim == 2 else a
    h, w, c = a.shape
    bits = bits or a.dtype.itemsize * 8
    kind = kind or KIND[a.dtype.kind]

    def encode(block):  # [rows][w][c]
        flat = block.reshape(len(block), -1)
        data = pack_bits(flat, bits)
        if data is None:
            data = flat.astype(flat.dtype.newbyteorder(endian)).tobytes()
        if fill == 2:
            data = bytes(int(f"{b:08b}"[::-1], 2) for b in data)
        return zlib.compress(data) if compress else data

    planes = [a] if planar == 1 else [a[..., i:i + 1] for i in range(c)]
    blocks = []
    for p in planes:
        if tile:
            tw, th = tile
            p = np.pad(p, ((0, -h % th), (0, -w % tw), (0, 0)), mode="constant", constant_values=77)
            blocks += [encode(p[y:y + th, x:x + tw]) for y in range(0, h, th) for x in range(0, w, tw)]
        else:
            r = rows or h
            blocks += [encode(p[y:y + r]) for y in range(0, h, r)]
    tags = [(256, 4, [w]), (257, 4, [h]), (258, 3, [bits] * c), (259, 3, [8 if compress else 1]), (262, 3, [photometric]),
            (277, 3, [c]), (284, 3, [planar]), (339, 3, [kind] * c)]
    if fill != 1:
        tags.append((266, 3, [fill]))
    if extra:
        tags.append((338, 3, list(extra)))
    if table is not None:
        tags.append((320, 3, [int(v) for v in table]))
    if orientation:
        tags.append((274, 3, [orientation]))
    tags += list(more)
    tags += [(322, 4, [tile[0]]), (323, 4, [tile[1]])] if tile else [(278, 4, [rows or h])]
    at, count = (324, 325) if tile else (273, 279)
    tags += [(at, 16 if big else 4, [0] * len(blocks)), (count, 16 if big else 4, [len(b) for b in blocks])]
    tags.sort()
    size, fmt = {3: 2, 4: 4, 16: 8}, {3: "H", 4: "I", 16: "Q"}
    word, room = ("Q", 8) if big else ("I", 4)
    entry = 12 if not big else 20
    head = 16 if big else 8
    ifd_size = (8 if big else 2) + entry * len(tags) + room
    free = head + ifd_size
    spots = {}
    for t, k, v in tags:
        n = len(v) * size[k]
        if n > room:
            spots[t] = free
            free += n + (n & 1)
    offsets = []
    for b in blocks:
        offsets.append(free)
        free += len(b) + (len(b) & 1)
    out = (b"II" if endian == "<" else b"MM") + (struct.pack(endian + "HHHQ", 43, 8, 0, 16) if big else struct.pack(endian + "HI", 42, 8))
    out += struct.pack(endian + ("Q" if big else "H"), len(tags))
    tail = b""
    for t, k, v in tags:
        v = offsets if t == at else v
        data = struct.pack(endian + fmt[k] * len(v), *v)
        out += struct.pack(endian + "HH" + word, t, k, len(v))
        if t in spots:
            out += struct.pack(endian + word, spots[t])
            tail += data + b"\0" * (len(data) & 1)
        else:
            out += data + b"\0" * (room - len(data))
    out += struct.pack(endian + word, 0) + tail
    return out + b"".join(b + b"\0" * (len(b) & 1) for b in blocks)


def tiff_colour_files():
    s = scene()
    im = Image.fromarray(s)
    alpha = np.linspace(0, 255, W * H).reshape(H, W, 1).astype(np.uint8)
    rgba = np.concatenate([s, alpha], -1)
    by_pillow("tiff_rgb_strips.tif", tiff(s, 2, rows=5), "tiff", 8, 3)
    by_pillow("tiff_rgb_big_endian.tif", tiff(s, 2, endian=">", rows=8, compress=True), "tiff", 8, 3)
    by_pillow("tiff_rgb_tiles.tif", tiff(s, 2, tile=(16, 16)), "tiff", 8, 3)
    by_pillow("tiff_rgb_tiles_deflate.tif", tiff(s, 2, tile=(16, 16), compress=True), "tiff", 8, 3)
    by_pillow("tiff_rgb_planar.tif", tiff(s, 2, planar=2, rows=6), "tiff", 8, 3)
    by_pillow("tiff_rgb_planar_deflate.tif", tiff(s, 2, planar=2, rows=6, compress=True), "tiff", 8, 3)
    by_pillow("tiff_rgb_planar_tiles.tif", tiff(s, 2, planar=2, tile=(16, 16), compress=True), "tiff", 8, 3)
    by_pillow("tiff_rgb_bigtiff.tif", tiff(s, 2, rows=6, big=True), "tiff", 8, 3)
    by_pillow("tiff_rgba.tif", tiff(rgba, 2, extra=(2,)), "tiff", 8, 4)
    by_pillow("tiff_rgb_unnamed_alpha.tif", tiff(rgba, 2), "tiff", 8, 4)
    by_pillow("tiff_rgba_associated.tif", tiff(rgba, 2, extra=(1,), compress=True), "tiff", 8, 4)
    by_pillow("tiff_rgb_extra2.tif", tiff(np.concatenate([rgba, alpha], -1), 2, extra=(0, 0), compress=True), "tiff", 8, 5)
    for name in ("tiff_lzw", "tiff_adobe_deflate", "packbits"):
        by_pillow(f"tiff_rgb_{name.replace('tiff_', '')}.tif", save(im, "TIFF", compression=name), "tiff", 8, 3)
    by_pillow("tiff_rgb_predictor.tif", save(im, "TIFF", compression="tiff_lzw", tiffinfo={317: 2}), "tiff", 8, 3)
    by_pillow("tiff_jpeg.tif", save(im, "TIFF", compression="jpeg", quality=90), "tiff", 8, 3)
    by_pillow("tiff_jpeg_gray.tif", save(im.convert("L"), "TIFF", compression="jpeg", quality=90), "tiff", 8, 1)
    by_pillow("tiff_ycbcr.tif", tiff(np.asarray(im.convert("YCbCr")), 6, compress=True, more=[(530, 3, [1, 1])]), "tiff", 8, 3)
    by_pillow("tiff_ycbcr_orientation_6.tif", tiff(
        np.asarray(im.convert("YCbCr")), 6, compress=True, orientation=6, more=[(530, 3, [1, 1])]), "tiff", 8, 3, 6)
    by_pillow("tiff_jpeg_ycbcr.tif", save(im.convert("YCbCr"), "TIFF", compression="jpeg", quality=90), "tiff", 8, 3)
    by_pillow("tiff_orientation_xmp.tif", save(im, "TIFF", compression="tiff_lzw", tiffinfo={700: XMP}), "tiff", 8, 3, 6)
    name = "tiff_black_5bands.tif"  # as satellite pictures come: gray by its tag, five bands of no meaning
    (OUT / name).write_bytes(tiff(np.concatenate([s, alpha, alpha], -1), 1, extra=(0, 0, 0, 0), compress=True))
    record(name, s, "tiff", 8, 5, source="first three bands")
    cmyk = np.asarray(im.convert("CMYK")).copy()
    cmyk[..., 3] = alpha[..., 0] // 3
    by_pillow("tiff_cmyk.tif", tiff(cmyk, 5, compress=True), "tiff", 8, 4)
    by_pillow("tiff_cmyk_planar.tif", tiff(cmyk, 5, planar=2, compress=True), "tiff", 8, 4)
    s16 = s.astype(np.uint16) * 256 + (s[..., ::-1].astype(np.uint16) * 7 & 255)
    a16 = alpha.astype(np.uint16) * 257
    for endian in "<>":
        name = "little" if endian == "<" else "big"
        by_pillow(f"tiff_rgb16_{name}.tif", tiff(s16, 2, endian=endian, compress=True), "tiff", 16, 3)
    by_pillow("tiff_rgb16_tiles.tif", tiff(s16, 2, tile=(16, 32)), "tiff", 16, 3)
    by_pillow("tiff_rgba16.tif", tiff(np.concatenate([s16, a16], -1), 2, extra=(2,), compress=True), "tiff", 16, 4)
    by_pillow("tiff_rgba16_associated.tif", tiff(np.concatenate([s16, a16], -1), 2, extra=(1,), compress=True), "tiff", 16, 4)
    cmyk16 = cmyk.astype(np.uint16) * 256 + 99
    by_pillow("tiff_cmyk16.tif", tiff(cmyk16, 5, compress=True), "tiff", 16, 4)
    by_pillow("tiff_rgb16_planar.tif", tiff(s16, 2, planar=2, rows=7, compress=True), "tiff", 16, 3)
    for o in range(1, 9):
        by_pillow(f"tiff_orientation_{o}.tif", tiff(s, 2, compress=True, orientation=o), "tiff", 8, 3, o)
    by_pillow("tiff_two_pages.tif", save(im, "TIFF", save_all=True, append_images=[Image.fromarray(255 - s)]), "tiff", 8, 3)


def tiff_gray_files():
    s = scene()
    g = s[..., 1]
    for bits in (1, 2, 4, 8):
        by_pillow(f"tiff_gray{bits}.tif", tiff(g >> (8 - bits), 1, bits), "tiff", bits, 1)
        by_pillow(f"tiff_white{bits}.tif", tiff(g >> (8 - bits), 0, bits), "tiff", bits, 1)
        table = (np.arange(3 << bits) * 9973 % 65536)
        by_pillow(f"tiff_palette{bits}.tif", tiff(g >> (8 - bits), 3, bits, table=table), "tiff", bits, 1)
    by_pillow("tiff_gray4_lsb.tif", tiff(g >> 4, 1, 4, fill=2), "tiff", 4, 1)
    by_pillow("tiff_gray4_tiles.tif", tiff(g >> 4, 1, 4, tile=(16, 16), compress=True), "tiff", 4, 1)
    by_pillow("tiff_group4.tif", save(Image.fromarray(g).convert("1"), "TIFF", compression="group4"), "tiff", 1, 1)
    alpha = np.linspace(0, 255, W * H).reshape(H, W, 1).astype(np.uint8)
    by_pillow("tiff_gray_alpha.tif", tiff(np.concatenate([g[..., None], alpha], -1), 1, extra=(2,), compress=True), "tiff", 8, 2)
    wide = np.linspace(0, 65535, W * H).reshape(H, W).astype(np.uint16)
    for name, photo, want in (("tiff_gray16_wide.tif", 1, wide >> 8), ("tiff_white16_wide.tif", 0, (65535 - wide) >> 8)):
        (OUT / name).write_bytes(tiff(wide, photo, rows=5, compress=True))
        record(name, gray(want), "tiff", 16, 1, source="high byte")
    sensor = 700 + (g.astype(np.uint16) * 12)
    sensor[3, 4], sensor[10, 10] = 65535, 0
    by_stretch("tiff_gray16_sensor.tif", tiff(sensor, 1, endian=">", tile=(16, 16), compress=True), sensor, "tiff", 16, 1)
    g12 = (g.astype(np.uint16) * 16 + 5)
    name = "tiff_gray12_wide.tif"
    (OUT / name).write_bytes(tiff(g12, 1, 12))
    record(name, gray(g12 >> 4), "tiff", 12, 1, source="high byte")
    by_stretch("tiff_gray12_sensor.tif", tiff(g12 // 8 + 100, 1, 12), g12 // 8 + 100, "tiff", 12, 1)
    signed = g.astype(np.int16) * 20 - 1500
    by_stretch("tiff_int16.tif", tiff(signed, 1), signed, "tiff", 16, 1)
    by_stretch("tiff_uint32.tif", tiff(g.astype(np.uint32) * 1000 + 7, 1, endian=">"), g.astype(np.uint32) * 1000 + 7, "tiff", 32, 1)
    by_stretch("tiff_int32.tif", tiff(g.astype(np.int32) * 1000 - 70007, 1), g.astype(np.int32) * 1000 - 70007, "tiff", 32, 1)
    f = (g.astype(np.float32) * 3.7 - 100).astype(np.float32)
    f[0, :3] = np.nan, np.inf, -np.inf
    f[5, 5] = 1e30
    by_stretch("tiff_float_sensor.tif", tiff(f, 1, compress=True), f, "tiff", 32, 1)
    by_stretch("tiff_float_big_endian.tif", tiff(f, 1, endian=">", tile=(16, 16)), f, "tiff", 32, 1)
    d = f.astype(np.float64)
    by_stretch("tiff_double.tif", tiff(d, 1), f, "tiff", 64, 1)
    half = np.where(np.isfinite(f), np.minimum(f, 60000), f).astype(np.float16)
    half[7, 7] = 1e-7  # a subnormal
    by_stretch("tiff_half.tif", tiff(half, 1), half.astype(np.float32), "tiff", 16, 1)
    unit = np.linspace(0, 1, W * H).reshape(H, W).astype(np.float32)
    name = "tiff_float_unit.tif"
    (OUT / name).write_bytes(tiff(unit, 1))
    record(name, stretch(unit, 0, 1), "tiff", 32, 1, high=1, source="0..1")
    fc = (s.astype(np.float32) * 0.01 - 0.3).astype(np.float32)
    by_stretch("tiff_float_rgb.tif", tiff(fc, 2, compress=True), fc, "tiff", 32, 3)
    by_stretch("tiff_float_rgb_planar.tif", tiff(fc, 2, planar=2, rows=4), fc, "tiff", 32, 3)


# ------------------------------------------------------------------ HEIF


def heif_files():
    pillow_heif.register_heif_opener()
    s = scene(48, 64)
    im = Image.fromarray(s)
    # Two releases of libheif turn YCbCr into RGB with roundings that differ by 1.
    by_pillow("heif_420.heic", save(im, "HEIF", quality=80), "heif", 8, 3, tolerance=1)
    by_pillow("heif_444.heic", save(im, "HEIF", quality=90, chroma=444), "heif", 8, 3, tolerance=1)
    for o in (3, 5, 6, 7, 8):  # pillow-heif writes the turn as the file's own transform and sets the EXIF tag to 1
        data = save(im, "HEIF", quality=80, exif=b"Exif\0\0" + exif_blob(o))
        by_pillow(f"heif_rotated_{o}.heic", data, "heif", 8, 3, tolerance=1)
        if o == 6:  # as phones write it: the transform and the EXIF tag both say 6; the picture turns once
            tag = struct.pack("<HHI", 0x0112, 3, 1)
            assert data.count(tag) == 1
            at = data.index(tag) + 8
            expected = np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
            (OUT / "heif_rotated_twice.heic").write_bytes(data[:at] + struct.pack("<H", 6) + data[at + 2:])
            record("heif_rotated_twice.heic", expected, "heif", 8, 3, tolerance=1, source="Pillow, of the file with EXIF 1")


# ------------------------------------------------------------------ seeds of tests/fuzz/picture_fuzz.c

SEEDS = """jpeg_420 jpeg_progressive jpeg_restart jpeg_gray jpeg_cmyk_adobe jpeg_ycck jpeg_orientation_6 jpeg_orientation_xmp png_gray1
png_gray_alpha png_rgb png_rgb_adam7 png_palette4 png_palette_trns png_rgb16 png_gray16_sensor png_gray16_sensor_adam7 png_orientation_3
png_orientation_zxmp png_orientation_profile webp_lossy webp_lossless webp_lossy_alpha webp_lossless_alpha webp_animated webp_animated_offset
webp_orientation_6 tiff_rgb_strips tiff_rgb_tiles_deflate tiff_rgb_planar tiff_rgb_planar_tiles tiff_rgb_bigtiff tiff_rgba_associated
tiff_rgb_lzw tiff_rgb_predictor tiff_rgb_packbits tiff_jpeg tiff_ycbcr tiff_cmyk_planar tiff_rgb16_big tiff_rgba16_associated tiff_group4
tiff_palette4 tiff_gray4_lsb tiff_white2 tiff_gray12_sensor tiff_int16 tiff_uint32 tiff_half tiff_double tiff_float_rgb_planar
tiff_float_big_endian tiff_orientation_5 tiff_two_pages heif_420 heif_rotated_6""".split()


def fuzz_seeds():
    """A byte for the stretch, then the file; smaller pictures than the tests use would be better, but these reach every branch."""
    out = OUT.parent.parent / "fuzz" / "corpus" / "picture"
    out.mkdir(parents=True, exist_ok=True)
    for i, seed in enumerate(SEEDS):
        data = next(p for p in OUT.glob(seed + ".*") if p.suffix != ".rgb").read_bytes()
        (out / seed).write_bytes(bytes([i % 3]) + data)


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    jpeg_files()
    png_files()
    webp_files()
    tiff_colour_files()
    tiff_gray_files()
    heif_files()
    fuzz_seeds()
    (OUT / "manifest.txt").write_text("\n".join(lines) + "\n")
    print(len(lines), "files")


if __name__ == "__main__":
    main()
