#!/usr/bin/env python3
"""label_tile_test.py PROGRAM [CLASS]: `stencil label --tile`, duplicates, `stencil label sweep` and --negatives with the demo model. What
the program says is counted again here from the results store. Python's standard library only.
"""
import json
import os
import shutil
import struct
import sys
import unittest
import zlib

from label_case import SCENE, LabelCase, label, main, png, tree

INPUT = 224  # the demo model's
ASKED = ('-c', 'thing=food', '-c', 'thing=fruit', '-c', 'animal', '--floor', '0.1')


# ---- pictures ----

def scene():
    """The demo scene at half its size, 224 x 224: rows of RGB bytes."""
    with open(SCENE, 'rb') as f:
        data = f.read()
    at, packed, side = 8, b'', 448
    while at < len(data):
        length, kind = struct.unpack('>I4s', data[at:at + 8])
        packed += data[at + 8:at + 8 + length] if kind == b'IDAT' else b''
        at += 12 + length
    raw, stride, rows, above = zlib.decompress(packed), side * 3, [], bytes(side * 3)
    for y in range(side):
        kind, line = raw[y * (stride + 1)], bytearray(raw[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
        for x in range(stride):
            a, b, c = (line[x - 3], above[x], above[x - 3]) if x >= 3 else (0, above[x], 0)
            if kind == 4:
                p = a + b - c
                line[x] = (line[x] + min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]) & 255
            elif kind:
                line[x] = (line[x] + (a, b, (a + b) // 2)[kind - 1]) & 255
        rows.append(bytes(line))
        above = line
    return [b''.join(rows[y][6 * x:6 * x + 3] for x in range(side // 2)) for y in range(0, side, 2)]


def encode(rows):
    def chunk(kind, body):
        return struct.pack('>I', len(body)) + kind + body + struct.pack('>I', zlib.crc32(kind + body))
    head = struct.pack('>IIBBBBB', len(rows[0]) // 3, len(rows), 8, 2, 0, 0, 0)
    body = zlib.compress(b''.join(b'\0' + row for row in rows), 1)
    return b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', head) + chunk(b'IDAT', body) + chunk(b'IEND', b'')


def canvas(width, height, *corners):
    """Gray, with the scene at each corner."""
    rows = [bytearray(b'\x70\x78\x80' * width) for _ in range(height)]
    small = scene()
    for x, y in corners:
        for k, line in enumerate(small[:height - y]):
            part = line[:3 * (width - x)]
            rows[y + k][3 * x:3 * x + len(part)] = part
    return [bytes(r) for r in rows]


def crop(rows, x0, y0, x1, y1):
    return encode([row[3 * x0:3 * x1] for row in rows[y0:y1]])


# ---- masks ----

def pixels(text, height):
    """Pixels of a mask as (x, y), from COCO's compressed run lengths; and how many the runs cover."""
    counts, value, shift = [], 0, 0
    for c in text.encode():
        c -= 48
        value |= (c & 31) << shift
        shift += 5
        if not c & 32:
            if c & 16:
                value -= 1 << shift
            counts.append(value + counts[-2] if len(counts) > 2 else value)
            value, shift = 0, 0
    at, inside = 0, set()
    for i, n in enumerate(counts):
        if i % 2:
            inside.update((p // height, p % height) for p in range(at, at + n))
        at += n
    return inside, at


def masks(record):
    first, objects = record
    return [pixels(o['mask'], first['height'])[0] for o in objects]


class Tiles(LabelCase):
    def run_tiles(self, out, *options, folder='pictures', code=0):
        self.ok(label(self.path(folder), '-o', self.path(out), *ASKED, *options), code)
        return self.records(out)

    def test_tiles_are_the_crops(self):
        """Two tiles find what the two crops hold as pictures of their own; what is seen in both is joined."""
        rows = canvas(400, INPUT, (0, 0), (190, 0))
        self.write('pictures/wide.png', encode(rows))
        self.write('crops/left.png', crop(rows, 0, 0, INPUT, INPUT))
        self.write('crops/right.png', crop(rows, 176, 0, 400, INPUT))
        record = self.run_tiles('tiles', '--tile', '--tiles-only', '--tile-overlap', '48', '--duplicates', 'off')['wide.png']
        crops = self.run_tiles('plain', '--duplicates', 'off', folder='crops')
        wanted = []
        for name, x0 in (('left.png', 0), ('right.png', 176)):
            for o, mask in zip(crops[name][1], masks(crops[name])):
                box = [o['box'][0] + x0, o['box'][1], o['box'][2] + x0, o['box'][3]]
                wanted.append((o['class'], o['phrase'], o['score'], box, {(x + x0, y) for x, y in mask}))
        self.assertGreater(len(wanted), 3)
        pieces = 0
        for o, mask in zip(record[1], masks(record)):
            pieces += o.get('pieces', 1)
            of = [w for w in wanted if w[0] == o['class'] and w[1] == o['phrase'] and w[4] <= mask]
            if o.get('pieces', 1) == 1:
                same = [w for w in of if w[2] == o['score'] and w[4] == mask]
                self.assertEqual(len(same), 1)
                for a, b in zip(same[0][3], o['box']):
                    self.assertAlmostEqual(a, b, delta=1e-3)
            else:
                self.assertIn(o['score'], [w[2] for w in of])
                self.assertEqual(set().union(*(w[4] for w in of)), mask)
                self.assertEqual(o['box'][0], min(x for x, _ in mask))
        self.assertEqual(pieces, len(wanted))

    def test_tiles_find_more(self):
        rows = canvas(1000, 500, (500, 130))
        self.write('pictures/large.png', encode(rows))
        plain, tiled = self.run_tiles('plain')['large.png'], self.run_tiles('tiled', '--tile')['large.png']
        best = lambda record: max((o['score'] for o in record[1] if o['class'] == 1), default=0)
        self.assertGreater(best(tiled), 0.5)
        self.assertGreater(best(tiled), best(plain))
        self.assertTrue(any(o.get('pieces', 1) > 1 for o in tiled[1]))
        for o in tiled[1]:
            inside, total = pixels(o['mask'], 500)
            self.assertEqual((len(inside), total), (o['area'], 500000))
        order = [(o['class'], o['phrase'], -o['score']) for o in tiled[1]]
        self.assertEqual(order, sorted(order))
        again = self.run_tiles('again', '--tile', '-j', '1')['large.png']
        self.assertEqual(again, tiled)

    def test_small_pictures_are_as_without(self):
        self.write('pictures/small.png', encode(scene()))
        self.assertEqual(self.run_tiles('tiled', '--tile')['small.png'][1], self.run_tiles('plain')['small.png'][1])

    def test_boxes_only(self):
        self.write('pictures/wide.png', encode(canvas(400, INPUT, (0, 0), (190, 0))))
        first, objects = self.run_tiles('boxes', '--tile', '--boxes-only')['wide.png']
        self.assertGreater(len(objects), 3)
        for o in objects:
            self.assertNotIn('mask', o)
            self.assertGreater(o['area'], 0)

    def test_refused(self):
        self.write('pictures/small.png', encode(scene()))
        words = (self.path('pictures'), '-o', self.path('out'), '-c', 'food')
        self.refused(*words, '--tile', '--tile-overlap', '113', says='at most half, 112')
        self.refused(*words, '--tile', '--tile-size', '31', says='--tile-size')
        self.refused(*words, '--tile-size', '300', says='belongs to --tile')


class Duplicates(LabelCase):
    def run_job(self, out, *options):
        if not os.path.exists(self.path('pictures')):
            self.write('pictures/scene.png', encode(scene()))
        self.ok(label(self.path('pictures'), '-o', self.path(out), '-c', 'thing=pizza', '-c', 'thing=slice of pizza', '-c', 'meal=food',
                      '--floor', '0.05', *options))
        return self.records(out)['scene.png']

    def check(self, record, measure, threshold, across):
        """The rule of the manual, over sets of pixels."""
        objects, inside = record[1], masks(record)
        settled = {}
        for i in sorted(range(len(objects)), key=lambda i: (-objects[i]['score'], i)):
            a, by = objects[i], None
            for k in settled:
                b = objects[k]
                if settled[k] is not None or (a['phrase'] == b['phrase'] if a['class'] == b['class'] else not across):
                    continue
                both = len(inside[i] & inside[k])
                if both > threshold * (min(len(inside[i]), len(inside[k])) if measure == 'smaller' else len(inside[i] | inside[k])):
                    by = k if by is None else by
            settled[i] = by
        self.assertEqual([o.get('displaced_by') for o in objects], [settled[i] for i in range(len(objects))])
        return sum(v is not None for v in settled.values())

    def test_rules(self):
        off = self.run_job('off', '--duplicates', 'off')
        self.assertTrue(all('displaced_by' not in o for o in off[1]))
        n = self.check(self.run_job('iou'), 'iou', .7, False)
        self.assertGreater(self.check(self.run_job('across', '--across-classes'), 'iou', .7, True), n)
        self.check(self.run_job('low', '--duplicate-threshold', '0.3', '--across-classes'), 'iou', .3, True)
        self.assertGreater(self.check(self.run_job('smaller', '--duplicates', 'smaller', '--duplicate-threshold', '0.5'), 'smaller', .5, False), 0)


class Sweep(LabelCase):
    def setUp(self):
        super().setUp()
        self.write('pictures/a.png', encode(scene()))
        self.write('pictures/b.png', encode(canvas(448, 300, (100, 40))))
        self.write('pictures/broken.png', b'no picture')
        self.write('pictures/c.png', png(60, 50, seed=1))
        self.write('none/x.png', encode(scene()))
        self.write('none/y.png', png(60, 50, seed=2))

    def run_job(self, *more, code=1):
        done = label(self.path('pictures'), '-o', self.path('out'), *ASKED, *more)
        self.ok(done, code)
        return done.stderr.decode()

    def sweep(self, *more):
        return json.loads(self.ok(label('sweep', self.path('out'), '--json', *more)))

    def test_counts(self):
        self.run_job('--threshold', 'animal=0.2')
        thresholds = [.1, .3, .5, .7, .9]
        said = self.sweep('--thresholds', ','.join(map(str, thresholds)), '--speck', '500')
        records = {k: v for k, v in self.records('out').items() if 'error' not in v[0]}
        self.assertEqual((said['pictures'], said['failed'], said['missing'], said['speck_pixels']), (3, 1, 0, 500))
        self.assertEqual([c['name'] for c in said['classes']], ['thing', 'animal'])
        self.assertEqual([c['own']['threshold'] for c in said['classes']], [.5, .2])
        for c in said['classes']:
            for row, t in zip(c['thresholds'], thresholds):
                kept = [[o['area'] / (first['width'] * first['height']) for o in objects
                         if o['class'] == c['id'] and o['score'] > t and 'displaced_by' not in o] for first, objects in records.values()]
                specks = sum(o['class'] == c['id'] and o['score'] > t and 'displaced_by' not in o and o['area'] < 500
                             for _, objects in records.values() for o in objects)
                every = sorted(share for k in kept for share in k)
                self.assertEqual((row['threshold'], row['instances'], row['pictures_without'], row['specks']),
                                 (t, len(every), sum(not k for k in kept), specks))
                if every:
                    self.assertAlmostEqual(row['median_area_share'] / every[(len(every) - 1) // 2], 1, delta=.01)
        self.assertGreater(said['classes'][0]['thresholds'][0]['instances'], 1)
        self.assertEqual(said['negatives'], {'pictures': 0, 'failed': 0, 'phrases': []})
        table = self.ok(label('sweep', self.path('out')))
        self.assertIn('3 pictures, 1 more could not be read', table)
        self.assertNotIn('false positives', table)

    def test_negatives(self):
        text = self.run_job('--negatives', self.path('none'))
        self.assertIn('"food" fires on 50.0 % of 2 pictures without any', text)
        self.assertEqual(sorted(self.records('out')), ['a.png', 'b.png', 'broken.png', 'c.png'])
        self.assertEqual(sorted(self.records('out/negatives')), ['x.png', 'y.png'])
        said = self.sweep('--thresholds', '0.1,0.5,0.99')['negatives']
        self.assertEqual((said['pictures'], [p['phrase'] for p in said['phrases']]), (2, ['food', 'fruit', 'animal']))
        records = self.records('out/negatives')
        for k, p in enumerate(said['phrases']):
            for row in p['thresholds']:
                fired = sum(any(o['class'] == k // 2 + 1 and o['phrase'] == k % 2 and o['score'] > row['threshold'] for o in objects)
                            for _, objects in records.values())
                self.assertEqual(row['rate'], fired / 2)
            self.assertEqual(p['too_often'], p['rate'] > .02)
        self.assertTrue(said['phrases'][0]['too_often'])
        self.assertIn('warning: fires on more than 2 %', self.ok(label('sweep', self.path('out'))))
        before = tree(self.path('out', 'negatives'))
        self.assertIn('2 pictures are done, 0 are left', self.run_job('--negatives', self.path('none')))
        self.assertEqual(before, tree(self.path('out', 'negatives')))

    def test_negatives_of_other_options(self):
        self.run_job('--negatives', self.path('none'))
        self.run_job('--threshold', '0.99')  # decides nothing that is stored: the present thresholds count for negatives, too
        said = self.sweep('--thresholds', '0.5')['negatives']['phrases'][0]
        self.assertEqual((said['threshold'], said['rate'], said['thresholds'][0]['rate']), (.99, 0, .5))
        self.run_job('--redo', '--resize', 'cpu')
        done = label('sweep', self.path('out'), '--json')
        self.assertIn('labelled in another way', done.stderr.decode())
        self.assertEqual(len(json.loads(self.ok(done))['negatives']['phrases']), 3)
        self.assertIn('labelling again', self.run_job('--redo', '--resize', 'cpu', '--negatives', self.path('none')))
        self.assertEqual(label('sweep', self.path('out'), '--json', '-q').stderr, b'')

    def test_refused(self):
        self.refused('sweep', says='which folder')
        self.refused('sweep', self.path('pictures'), says='job.json', code=1)
        self.refused('sweep', self.path('out'), '--thresholds', '0.5,0.4', says='rising')
        self.refused('sweep', self.path('out'), '--thresholds', '', says='rising')
        self.refused('sweep', self.path('out'), '--speck', '-1', says='whole number')
        shutil.rmtree(self.path('pictures'))


if __name__ == '__main__':
    main(sys.argv, __doc__)
