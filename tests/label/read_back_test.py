#!/usr/bin/env python3
"""read_back_test.py PROGRAM MAKE_STORE: every format that `stencil label export` writes is read back and turned into masks again.

The store is made of known masks: holes, several parts, at the border, one pixel, one pixel wide, the whole picture, none. Formats
that hold masks exactly must give them back exactly; so must polygons, filled the way their readers fill, but for the lines that
join parts where a format has one outline per object: those are measured. Python's standard library only.
"""
import base64
import html.parser
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import label_formats as formats

PROGRAM, MAKE_STORE = (os.path.abspath(p) for p in sys.argv[1:3])
TREE = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
ALL = 'coco,yolo,labelme,cvat,label-studio,voc,masks,jsonl'
NAMES = {1: 'forklift', 2: 'worker, "hi-vis" & <co>: #1', 5: 'b\u00e4r'}
X = 'R\u00e4ume & <Flur>/images/x "1"'
FLAT = 'R\u00e4ume & <Flur>__images__x "1"'
# What the pictures are called in folders where only the name without its suffix counts; in order of names, first come, first served.
STEMS = {X + '.PNG': X, 'a.jpg': 'a', 'a.png': 'a_png', 'a_png.jpg': 'a_png_jpg', 'big.png': 'big', 'b%FFd.png': 'b%FFd', 'gone.png': 'gone', 'turned.jpg': 'turned'}


def run(*arguments, code=0):
    done = subprocess.run([PROGRAM, 'label', *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=240)
    text = done.stderr.decode()
    assert done.returncode == code, '%s: exit code %d, expected %d\n%s' % (arguments, done.returncode, code, text)
    return text


def tree(folder):
    """{path: bytes}, of links what they point at."""
    found = {}
    for path, _, files in os.walk(folder):
        for name in files:
            with open(os.path.join(path, name), 'rb') as f:
                found[os.path.relpath(os.path.join(path, name), folder)] = f.read()
    return found


def iou(a, b):
    both, any_ = sum(x & y for x, y in zip(a, b)), sum(x | y for x, y in zip(a, b))
    return both / any_ if any_ else 1.0


class Exports(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix='stencil-test-')
        subprocess.run([MAKE_STORE, cls.folder, TREE], check=True)
        cls.out, cls.photos = os.path.join(cls.folder, 'out'), os.path.join(cls.folder, 'photos')
        cls.truth, cls.sizes = {}, {}
        for line in formats.read(os.path.join(cls.folder, 'truth.jsonl')).splitlines():
            p = json.loads(line)
            cls.sizes[p['name']] = p['width'], p['height']
            cls.truth[p['name']] = [{'class': NAMES[o['class_id']], 'id': o['class_id'], 'score': o['score'],
                                     'mask': formats.from_counts(o['counts'], p['width'], p['height'])} for o in p['objects']]
        cls.text = run('export', cls.out, '-f', ALL)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def fresh(self, name):
        """A folder for another export."""
        path = os.path.join(self.folder, name)
        shutil.rmtree(path, ignore_errors=True)
        return path

    def stems(self, flat):
        return {(s.replace('/', '__') if flat else s): (n, *self.sizes[n]) for n, s in STEMS.items()}

    def in_order(self, found):
        return {name: found[name] for name in sorted(found, key=list(self.truth).index)}

    def same(self, found, exact=True, scores=True):
        self.assertEqual(list(found), list(self.truth))
        for name, objects in self.truth.items():
            self.assertEqual([o['class'] for o in found[name]], [o['class'] for o in objects], name)
            for i, (got, want) in enumerate(zip(found[name], objects)):
                if scores:
                    self.assertAlmostEqual(got['score'], want['score'], places=6)
                if exact:
                    self.assertEqual(got['mask'], want['mask'], '%s, object %d' % (name, i))
                if got['box']:
                    self.assertEqual(tuple(got['box']), formats.box_of(want['mask'], self.sizes[name][0]))

    def test_the_store_is_what_it_should_be(self):
        self.assertEqual({n: len(o) for n, o in self.truth.items()}, {X + '.PNG': 5, 'a.jpg': 0, 'a.png': 12, 'a_png.jpg': 0,
                                                                      'big.png': 6, 'b%FFd.png': 1, 'gone.png': 1, 'turned.jpg': 1})
        self.assertIn('8 pictures (2 of them without objects), 26 objects', self.text)
        self.assertIn('1 pictures could not be read', self.text)
        self.assertIn('1 pictures are not labelled yet', self.text)

    def test_coco_polygons(self):
        self.same(formats.coco(os.path.join(self.out, 'coco')))

    def test_coco_runs(self):
        out = self.fresh('rle')
        run('export', self.out, '-f', 'coco', '--rle', '-o', out)
        self.same(formats.coco(os.path.join(out, 'coco')))

    def test_jsonl(self):
        self.same(formats.jsonl(os.path.join(self.out, 'jsonl')))

    def test_cvat(self):
        self.same(formats.cvat(os.path.join(self.out, 'cvat')), scores=False)

    def test_label_studio(self):
        self.same(formats.label_studio(os.path.join(self.out, 'label-studio')))

    def test_labelme(self):
        self.same(formats.labelme(os.path.join(self.out, 'labelme'), self.stems(False)))
        out = self.fresh('lm')
        run('export', self.out, '-f', 'labelme', '--labelme-masks', '-o', out)
        self.same(formats.labelme(os.path.join(out, 'labelme'), self.stems(False)))

    def test_yolo(self):
        """Parts are joined by lines one pixel wide: all of the mask is there, and little more."""
        found = self.in_order(formats.yolo(os.path.join(self.out, 'yolo'), self.stems(True)))
        self.same(found, exact=False, scores=False)
        joined, large, worst = 0, 0, 1.0
        for name, objects in self.truth.items():
            for got, want in zip(found[name], objects):
                self.assertTrue(all(g >= w for g, w in zip(got['mask'], want['mask'])), name)
                if formats.n_parts(want['mask'], self.sizes[name][0]) == 1:
                    self.assertEqual(got['mask'], want['mask'])
                    continue
                joined += 1
                if sum(want['mask']) >= 1000:
                    large += 1
                    worst = min(worst, iou(got['mask'], want['mask']))
        print('yolo: %d of 26 objects have joined parts, all others are exact; of %d of 1,000 pixels and more the worst IoU is %.4f' % (joined, large, worst))
        self.assertLess(joined, 15)
        self.assertIn('yolo: %d objects of several parts: joined' % joined, self.text)

    def test_yolo_without_joined_parts(self):
        """Objects of one part come back exactly; with split every part is a row, and together they are the masks."""
        out = self.fresh('split')
        run('export', self.out, '-f', 'yolo', '--parts', 'split', '-o', out)
        found = formats.yolo(os.path.join(out, 'yolo'), self.stems(True))
        for name, objects in self.truth.items():
            for cls in NAMES.values():
                union = [o['mask'] for o in objects if o['class'] == cls]
                rows = [o['mask'] for o in found[name] if o['class'] == cls]
                self.assertGreaterEqual(len(rows), len(union))
                self.assertEqual([any(c) for c in zip(*union)], [any(c) for c in zip(*rows)])
        text = run('export', self.out, '-f', 'yolo', '--parts', 'largest', '-o', out, '--overwrite')
        self.assertIn('the largest is kept', text)
        found = formats.yolo(os.path.join(out, 'yolo'), self.stems(True))
        for name, objects in self.truth.items():
            self.assertEqual(len(found[name]), len(objects))
            for got, want in zip(found[name], objects):
                self.assertTrue(all(g <= w for g, w in zip(got['mask'], want['mask'])), name)
                self.assertEqual(got['mask'] == want['mask'], formats.n_parts(want['mask'], self.sizes[name][0]) == 1)

    def test_filled_holes(self):
        out = self.fresh('filled')
        text = run('export', self.out, '-f', 'labelme,yolo', '--holes', 'fill', '-o', out)
        self.assertRegex(text, 'labelme: [0-9]+ objects with holes: the holes are filled')
        found = formats.labelme(os.path.join(out, 'labelme'), self.stems(False))
        ring = found['a.png'][1]['mask']
        self.assertGreater(sum(ring), sum(self.truth['a.png'][1]['mask']))

    def expected_maps(self, name):
        objects = sorted(enumerate(self.truth[name]), key=lambda p: (-p[1]['score'], p[0]))
        instances = [0] * (self.sizes[name][0] * self.sizes[name][1])
        for k, (_, o) in reversed(list(enumerate(objects, 1))):
            for i, v in enumerate(o['mask']):
                if v:
                    instances[i] = k
        classes = [0] + [o['id'] for _, o in objects]
        return instances, [classes[k] for k in instances], [o for _, o in objects]

    def test_mask_pictures(self):
        found = formats.masks(os.path.join(self.out, 'masks'))
        self.assertEqual(list(found), list(self.truth))
        for name, (instances, by_class, objects, _) in found.items():
            want = self.expected_maps(name)
            self.assertEqual(instances, want[0])
            self.assertEqual(by_class, want[1])
            self.assertEqual([o[1] for o in objects], [o['id'] for o in want[2]])
        self.assertRegex(self.text, 'masks: [0-9]+ objects are partly or wholly covered')

    def test_voc(self):
        boxes, maps = formats.voc(os.path.join(self.out, 'voc'), self.stems(True))
        for name in self.truth:
            instances, by_class, objects = self.expected_maps(name)
            self.assertEqual(maps[name], (instances, by_class))
            self.assertEqual(boxes[name], [(o['class'], formats.box_of(o['mask'], self.sizes[name][0])) for o in objects])
        sets = {k: formats.read(os.path.join(self.out, 'voc/ImageSets/Main', k + '.txt')).splitlines() for k in ('train', 'val', 'test', 'trainval')}
        self.assertEqual(sorted(sets['train'] + sets['val']), sorted(sets['trainval']))
        self.assertEqual(sorted(sets['trainval']), sorted(self.stems(True)))
        # Classes and their colours; a name with a colon cannot stand there.
        colours = [line.rsplit(':', 3)[:2] for line in formats.read(os.path.join(self.out, 'voc', 'labelmap.txt')).splitlines()[1:]]
        self.assertEqual(colours, [['background', '0,0,0'], ['forklift', '128,0,0'], ['b\u00e4r', '128,0,128']])

    def test_boxes_only(self):
        out = self.fresh('boxes')
        run('export', self.out, '-f', 'coco,yolo,labelme,cvat,label-studio,voc,jsonl', '--boxes-only', '-o', out)
        stems = self.stems(True)
        found = [formats.coco(os.path.join(out, 'coco')), formats.yolo(os.path.join(out, 'yolo'), stems),
                 formats.labelme(os.path.join(out, 'labelme'), self.stems(False)), formats.cvat(os.path.join(out, 'cvat')),
                 formats.label_studio(os.path.join(out, 'label-studio')), formats.jsonl(os.path.join(out, 'jsonl'))]
        for one in found:
            for name, objects in self.truth.items():
                self.assertEqual(len(one[name]), len(objects))
                for got, want in zip(one[name], objects):
                    self.assertIsNone(got['mask'])
                    for a, b in zip(got['box'], formats.box_of(want['mask'], self.sizes[name][0])):
                        self.assertAlmostEqual(a, b, delta=0.001)
        self.assertFalse(os.path.exists(os.path.join(out, 'voc', 'SegmentationClass')))
        self.assertIn('holds masks only', run('export', self.out, '-f', 'masks', '--boxes-only', '-o', out, code=2))

    def test_pictures(self):
        yolo = os.path.join(self.out, 'yolo')
        paths, names = formats.yolo_names(yolo)
        self.assertEqual(names, {0: NAMES[1], 1: NAMES[2], 2: 'old', 3: 'unused-4', 4: NAMES[5]})
        self.assertEqual(paths, {'train': 'images/train', 'val': 'images/val'})
        pictures, labels = ({os.path.splitext(p)[0] for p in tree(os.path.join(yolo, kind))} for kind in ('images', 'labels'))
        self.assertEqual(labels - pictures, {'train/gone'} & labels or {'val/gone'})
        inode = {os.stat(os.path.join(self.photos, n)).st_ino for n in ('a.png', 'a.jpg', 'big.png')}
        linked = {os.stat(os.path.join(path, f)).st_ino for path, _, files in os.walk(os.path.join(yolo, 'images')) for f in files}
        self.assertTrue(inode <= linked)
        # The turned one was written anew: as tall as it is shown, and without EXIF.
        for data in (tree(yolo)[p] for p in tree(yolo) if p.endswith('turned.jpg')):
            self.assertNotIn(b'Exif', data)
            at = data.index(b'\xff\xc0')
            self.assertEqual((int.from_bytes(data[at + 7:at + 9], 'big'), int.from_bytes(data[at + 5:at + 7], 'big')), self.sizes['turned.jpg'])
        # To another file system there are no hard links.
        here = os.stat(self.folder).st_dev
        other = [f for f in ('/dev/shm', '/tmp', '/var/tmp', os.path.dirname(PROGRAM)) if os.access(f, os.W_OK) and os.stat(f).st_dev != here]
        self.assertTrue(other, 'no folder on a second file system can be written to')
        out = tempfile.mkdtemp(dir=other[0], prefix='stencil-test-')
        self.addCleanup(shutil.rmtree, out)
        self.assertIn('yolo: 6 pictures copied', run('export', self.out, '-f', 'yolo', '-o', out))
        for kind in ('symlink', 'copy', 'none'):
            out = self.fresh(kind)
            run('export', self.out, '-f', 'yolo,labelme', '--images', kind, '-o', out)
            big = [os.path.join(p, f) for p, _, files in os.walk(out) for f in files if f == 'big.png']
            self.assertEqual(len(big), 0 if kind == 'none' else 2)
            for path in big:
                self.assertEqual(os.path.islink(path), kind == 'symlink')
                self.assertEqual(formats.read(path, 'rb'), formats.read(os.path.join(self.photos, 'big.png'), 'rb'))
                self.assertFalse(os.path.islink(path) and os.readlink(path).startswith('/'))
                self.assertEqual(os.stat(path).st_ino == os.stat(os.path.join(self.photos, 'big.png')).st_ino, kind == 'symlink')

    def test_thresholds_and_areas(self):
        out = self.fresh('strict')
        run('export', self.out, '-f', 'jsonl', '--threshold', '0.85', '--threshold', 'forklift=0.945', '--min-area', '2', '--max-area', '0.5', '-o', out)
        found = formats.jsonl(os.path.join(out, 'jsonl'))
        for name, objects in self.truth.items():
            width, height = self.sizes[name]
            want = [o for o in objects if o['score'] > (0.945 if o['id'] == 1 else 0.85) and 2 <= sum(o['mask']) <= 0.5 * width * height]
            self.assertEqual([o['mask'] for o in found[name]], [o['mask'] for o in want], name)
        self.assertIn('nobody', run('export', self.out, '-f', 'jsonl', '--threshold', 'nobody=0.5', '-o', out, code=2))

    def test_split(self):
        """A seed gives one split, another one another; a picture's place depends on no other picture."""
        seen = set()
        for seed in range(12):
            out = self.fresh('seeds')
            run('export', self.out, '-f', 'yolo', '--split', '0.4,0.3', '--seed', str(seed), '--images', 'none', '-o', out)
            seen.add(frozenset(tree(os.path.join(out, 'yolo', 'labels'))))
        self.assertGreater(len(seen), 3)
        run('export', self.out, '-f', 'yolo', '--split', '1.5', '-o', out, code=2)

    def test_nothing_is_overwritten(self):
        before = tree(self.out)
        self.assertIn('as it was', run('export', self.out, '-f', ALL))
        self.assertEqual(tree(self.out), before)
        text = run('export', self.out, '-f', 'coco,cvat', '--threshold', '0.9', code=4)
        self.assertIn('--overwrite', text)
        self.assertEqual(tree(self.out), before)
        out = self.fresh('mine')
        run('export', self.out, '-f', 'cvat', '-o', out)
        with open(os.path.join(out, 'cvat', 'annotations.xml'), 'a') as f:
            f.write('<!-- mine -->')
        run('export', self.out, '-f', 'cvat', '-o', out, code=4)
        self.assertIn('mine', formats.read(os.path.join(out, 'cvat', 'annotations.xml')))
        run('export', self.out, '-f', 'cvat', '-o', out, '--overwrite')
        self.assertEqual(formats.read(os.path.join(out, 'cvat', 'annotations.xml'), 'rb'), before['cvat/annotations.xml'])

    def test_two_exports_are_equal(self):
        out = self.fresh('again')
        run('export', self.out, '-f', ALL, '-o', out)
        again, first = tree(out), tree(self.out)
        for path in again:
            if path != '.lock':
                self.assertEqual(again[path], first[path], path)
        for path, data in again.items():
            if not path.endswith(('.png', '.jpg', '.PNG')):
                self.assertNotIn(self.folder.encode(), data, path)

    def kill_when(self, out, seen, delay):
        """Starts an export and kills it once `seen` holds of the folder, and `delay` later."""
        shutil.rmtree(out, ignore_errors=True)
        child = subprocess.Popen([PROGRAM, 'label', 'export', self.out, '-f', ALL, '-o', out, '-q'])
        while child.poll() is None and not (os.path.isdir(out) and seen(os.listdir(out))):
            time.sleep(0.0005)
        time.sleep(delay)
        child.send_signal(signal.SIGKILL)
        return child.wait() == -signal.SIGKILL

    def test_killed_at_any_moment(self):
        """A format's folder is complete or not there; the next run leaves nothing of the killed one behind."""
        generator, out, landed = random.Random(3), self.fresh('killed'), {'at the start': 0, 'writing': 0, 'between formats': 0}
        whole = {p: d for p, d in tree(self.out).items() if p.split('/')[0] in ALL.split(',')}
        for where, seen, delay in [('at the start', lambda names: True, 0), ('writing', lambda names: '.jsonl.partial' in names, 0),
                                   ('writing', lambda names: '.jsonl.partial' in names, 0.02), ('between formats', lambda names: 'coco' in names, 0)] * 2:
            landed[where] += self.kill_when(out, seen, delay * generator.random())
            for f in (f for f in ALL.split(',') if os.path.exists(os.path.join(out, f))):
                self.assertEqual(tree(os.path.join(out, f)), {p.split('/', 1)[1]: d for p, d in whole.items() if p.split('/')[0] == f})
            run('export', self.out, '-f', ALL, '-o', out, '-q')
            self.assertEqual({p: d for p, d in tree(out).items() if p != '.lock'}, whole)
            self.assertEqual(sorted(e for e in os.listdir(out) if e != '.lock'), sorted(ALL.split(',')))
        print('killed: %s' % landed)
        self.assertTrue(landed['at the start'] and landed['writing'], landed)
        # The moment between two formats is short: made by hand.
        for f in ALL.split(',')[1:]:
            os.rename(os.path.join(out, f), os.path.join(out, '.%s.partial' % f))
        with open(os.path.join(out, '.yolo.partial', 'more'), 'w') as f:
            f.write('left over')
        run('export', self.out, '-f', ALL, '-o', out, '-q')
        self.assertEqual({p: d for p, d in tree(out).items() if p != '.lock'}, whole)
        # Killed between the two renames of --overwrite: the old labels come back.
        os.rename(os.path.join(out, 'coco'), os.path.join(out, '.coco.old'))
        os.mkdir(os.path.join(out, '.coco.partial'))
        run('export', self.out, '-f', 'coco', '--threshold', '0.9', '-o', out, code=4)
        self.assertEqual(sorted(e for e in os.listdir(out) if e.startswith('.')), ['.lock'])
        self.assertEqual(formats.read(os.path.join(out, 'coco', 'instances.json'), 'rb'), whole['coco/instances.json'])

    def test_nothing_can_be_written(self):
        """A full disk, here a limit on the size of files: a sentence, and nothing is left behind."""
        out = self.fresh('full')
        for formats_, limit in (('coco', 4096), ('cvat,jsonl', 20000), ('masks', 500)):
            done = subprocess.run([PROGRAM, 'label', 'export', self.out, '-f', formats_, '-o', out], stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                                  restore_signals=False, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
            self.assertEqual(done.returncode, 4, done.stderr)
            self.assertIn(b'cannot be written', done.stderr)
            self.assertEqual([e for e in os.listdir(out) if e != '.lock'], [])
        run('export', self.out, '-f', 'coco', '-o', os.path.join(self.photos, 'a.png'), code=4)
        run('export', self.out, '-f', 'coco', '-o', os.path.join(self.folder, 'no', 'such'), code=4)

    def test_usage(self):
        self.assertIn('which folder', run('export', '-f', 'coco', code=2))
        self.assertIn('which format', run('export', self.out, code=2))
        self.assertIn('label-studio', run('export', self.out, '-f', 'coca', code=2))
        self.assertIn('link, symlink, copy or none', run('export', self.out, '-f', 'coco', '--images', 'move', code=2))
        run('export', self.photos, '-f', 'coco', code=1)

    def test_sheets(self):
        """All objects an export holds, least sure first, in one file that asks for nothing."""
        out = self.fresh('look')
        run('sheet', self.out, '-o', out)
        before = tree(out)
        self.assertEqual(sorted(os.listdir(os.path.join(out, 'sheets'))), ['sheet-b\u00e4r.png', 'sheet-forklift.png', 'sheet-worker-hi-vis-co-1.png', 'sheet.html'])
        page = Page()
        text = formats.read(os.path.join(out, 'sheets', 'sheet.html'))
        page.feed(text)
        self.assertEqual(page.open, [])
        self.assertNotRegex(text, 'https?://|src="[^d]|href=')
        want = sorted(round(o['score'], 6) for objects in self.truth.values() for o in objects)
        self.assertEqual([round(f[1], 6) for f in page.figures], want)
        self.assertEqual(sorted(f[0] for f in page.figures), sorted(str(o['id']) for objects in self.truth.values() for o in objects))
        for picture in page.pictures:
            self.assertEqual(base64.b64decode(picture, validate=True)[:3], b'\xff\xd8\xff')
        self.assertEqual({text for text in page.options if '(' in text}, {'forklift (20)', NAMES[2] + ' (3)', NAMES[5] + ' (3)'})
        run('sheet', self.out, '-o', out)
        self.assertEqual(tree(out), before)
        run('sheet', self.out, '-o', out, '--most', '2', '--side', '64', '--threshold', 'forklift=0.9')
        page = Page()
        page.feed(formats.read(os.path.join(out, 'sheets', 'sheet.html')))
        least = {n: sorted(o['score'] for objects in self.truth.values() for o in objects if o['id'] == n and (n > 1 or o['score'] > 0.9))[:2] for n in NAMES}
        self.assertEqual(sorted(round(f[1], 6) for f in page.figures), sorted(round(s, 6) for scores in least.values() for s in scores))

    def test_overlays(self):
        out = self.fresh('look')
        self.assertIn('1 pictures are no longer', run('sheet', self.out, '--overlays', '-o', out))
        self.assertEqual(sorted(tree(os.path.join(out, 'overlays'))), [X + '.jpg', 'a.jpg', 'b%FFd.jpg', 'big.jpg', 'turned.jpg'])
        self.assertIn('64 to 512', run('sheet', self.out, '--side', '9', code=2))


class Page(html.parser.HTMLParser):
    """What stands on a sheet.html."""

    def __init__(self):
        super().__init__()
        self.open, self.figures, self.pictures, self.options = [], [], [], []

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if tag not in ('meta', 'img', 'input', 'br'):
            self.open.append(tag)
        if tag == 'figure':
            self.figures.append((values['data-class'], float(values['data-score'])))
        if tag == 'img':
            kind, data = values['src'].split(',')
            assert kind == 'data:image/jpeg;base64'
            self.pictures.append(data)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        if self.open and self.open[-1] == 'option':
            self.options.append(text)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
