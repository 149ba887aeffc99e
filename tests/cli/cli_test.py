#!/usr/bin/env python3
"""cli_test.py PROGRAM [CLASS]: the program as a person or a script meets it: output, messages, exit codes. Python's standard library only.

The demo model answers; nothing here depends on how good its answers are, but that it finds something at a low threshold.
"""
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import zlib

PROGRAM = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else None
TREE = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
MODEL = os.path.join(TREE, 'models', 'demo')
PICTURE = os.path.join(MODEL, 'check.png')
PICTURES = os.path.join(TREE, 'tests', 'data', 'pictures')
LOW = ('--threshold', '0.2')
COMMANDS = ('segment', 'label', 'click', 'concept', 'everything', 'encode', 'quantize', 'info', 'check', 'bench', 'version', 'help')
TIMEOUT_S = 240  # a sanitizer build on a busy machine


def run(*arguments, model=MODEL, env=None, **more):
    """Runs the program; the model is given by the environment, so that every argument is the test's own."""
    environment = {k: v for k, v in os.environ.items() if k != 'STENCIL_MODEL'}
    if model:
        environment['STENCIL_MODEL'] = model
    environment.update(env or {})
    return subprocess.run([PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, timeout=TIMEOUT_S,
                          stdin=subprocess.DEVNULL, **more)


def runs(areas, value=None):
    """Run lengths of a COCO compressed string."""
    counts, at = [], 0
    while at < len(areas):
        value, shift, more = 0, 0, True
        while more:
            c = ord(areas[at]) - 48
            value |= (c & 0x1F) << shift
            more = bool(c & 0x20)
            at += 1
            shift += 5
            if not more and c & 0x10:
                value |= -1 << shift
        if len(counts) > 2:
            value += counts[-2]
        counts.append(value)
    return counts


def read_png(path):
    """(width, height, channels, rows) of an 8-bit PNG without interlace."""
    with open(path, 'rb') as f:
        data = f.read()
    assert data[:8] == b'\x89PNG\r\n\x1a\n', path
    at, packed, head = 8, b'', None
    while at < len(data):
        length, kind = struct.unpack('>I4s', data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        if kind == b'IHDR':
            head = struct.unpack('>IIBBBBB', body)
        if kind == b'IDAT':
            packed += body
        at += 12 + length
    width, height, depth, colour = head[:4]
    assert depth == 8 and head[6] == 0
    channels = {0: 1, 2: 3, 4: 2, 6: 4}[colour]
    raw, stride, rows, above = zlib.decompress(packed), width * channels, [], bytearray(width * channels)
    for y in range(height):
        kind, line = raw[y * (stride + 1)], bytearray(raw[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
        for x in range(stride):
            a = line[x - channels] if x >= channels else 0
            b, c = above[x], above[x - channels] if x >= channels else 0
            if kind == 4:
                p = a + b - c
                predicted = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
            else:
                predicted = (0, a, b, (a + b) // 2)[kind]
            line[x] = (line[x] + predicted) & 255
        rows.append(bytes(line))
        above = line
    return width, height, channels, rows


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix='cli_test.')
        self.addCleanup(shutil.rmtree, self.folder)
        empty = tempfile.mkdtemp(prefix='cli_test.')  # a word must not happen to be a file
        self.addCleanup(os.rmdir, empty)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(empty)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def ok(self, done, code=0):
        self.assertEqual(done.returncode, code, done.stderr.decode(errors='replace'))
        return done.stdout.decode()

    def document(self, *arguments, code=0, **more):
        return json.loads(self.ok(run('segment', *arguments, **more), code))

    def refused(self, *arguments, says, code=2, **more):
        """Nothing on standard output, the sentence on stderr, the exit code."""
        done = run(*arguments, **more)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stdout, b'')
        self.assertIn(says, done.stderr.decode(errors='replace'))
        self.assertTrue(done.stderr.startswith(b'stencil'), done.stderr)
        return done.stderr.decode(errors='replace')


class Usage(Case):
    def test_no_command(self):
        done = run()
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stdout, b'')
        for command in COMMANDS:
            self.assertIn(command, done.stderr.decode())

    def test_help(self):
        for form in (('help',), ('--help',), ('-h',)):
            text = self.ok(run(*form))
            for command in COMMANDS:
                self.assertRegex(text, r'(?m)^  %s ' % command)
        for command in COMMANDS:
            text = self.ok(run('help', command))
            self.assertTrue(text.startswith('usage: stencil %s' % command))
            self.assertIn('example', text)
            for option in ('--help', '-h'):
                self.assertEqual(self.ok(run(command, option)), text)

    def test_version(self):
        for form in ('version', '--version', '-V'):
            self.assertRegex(self.ok(run(form)), r'^stencil \d+\.\d+\.\d+, commit ([0-9a-f]{7,40}(-dirty)?|unknown)\nreads: jpeg png webp tiff')

    def test_suggestions(self):
        self.refused('segmnet', says='did you mean "segment"?')
        self.refused('zebra', says='unknown command "zebra"')
        self.refused('help', 'inof', says='did you mean "info"?')
        self.refused('segment', '--treshold', '0.5', says='did you mean --threshold?')
        self.refused('info', '--jsn', says='did you mean --json?')
        self.refused('check', '-Z', says='unknown option -Z')
        self.refused('version', 'x', says='takes no words')
        self.refused('check', 'x', says='takes no words')
        self.refused('info', 'a', 'b', says='describes one model')

    def test_words(self):
        os.mkdir(self.path('folder'))
        for arguments, says in (
                ((), 'no picture given'),
                (('cat',), '"cat" is no file'),
                ((PICTURE,), 'nothing to look for'),
                (('nowhere.jpg', 'cat'), '"nowhere.jpg": no such file'),
                (('nowhere.HEIC', 'cat'), 'no such file'),
                (('some/where', 'cat'), 'no such file'),
                ((self.path('folder'), 'cat'), 'is a folder'),
                (('-', 'cat'), 'standard input'),
                ((PICTURE, ''), 'an empty phrase'),
                ((PICTURE, ' \t'), 'an empty phrase'),
                ((PICTURE, '--phrase', ''), 'an empty phrase'),
                ((PICTURE, b'ca\xfft'), 'not UTF-8 at byte 2'),
                ((PICTURE, 'x' * 70000), 'at most 65536')):
            self.refused('segment', *arguments, says=says)

    def test_options(self):
        good = (PICTURE, 'cat')
        for arguments, says in (
                (('--box', '1,2,3'), 'four numbers'),
                (('--box', '1,2,3,4,5'), 'four numbers'),
                (('--box', '1,2,x,4'), 'four numbers'),
                (('--box', '-1,2,3,4'), 'none negative'),
                (('--box', '3,2,1,4'), 'X0 < X1'),
                (('--box', '1,4,3,4'), 'Y0 < Y1'),
                (('--box', '1,2,3,4:no'), ':neg or :pos'),
                (('--box', 'nan,2,3,4'), 'four numbers'),
                (('--box', '1,2,3,4', PICTURE), 'belongs to one picture'),
                (('--threshold', '1.5'), 'from 0 to 1'),
                (('--threshold', 'cat=x'), 'PHRASE=V'),
                (('--threshold', 'dog=0.5'), '"dog" is none of the phrases'),
                (('--threshold', ''), 'from 0 to 1'),
                (('--mask-threshold', '0'), 'above 0 and below 1'),
                (('--mask-threshold', '1'), 'above 0 and below 1'),
                (('--max-detections', '0'), 'a whole number from 1'),
                (('--max-detections', '1.5'), 'a whole number from 1'),
                (('--threads', '0'), 'from 1 to 1024'),
                (('--threads', 'many'), 'from 1 to 1024'),
                (('--format', 'xml'), 'json, coco, png or table'),
                (('--stretch', 'yes'), 'auto, never or always'),
                (('--resize', 'tpu'), 'gpu or cpu'),
                (('--format', 'png'), 'needs a folder'),
                (('--format', 'png', '-o', '-'), 'needs a folder'),
                (('--format', 'png', '-o', self.folder, '--boxes-only'), '--boxes-only makes none'),
                (('--overlay', 'x.gif'), '.png or .jpg'),
                (('--overlay', 'x.png', PICTURE), 'need a folder'),
                (('--boxes-only=1',), 'takes no value'),
                (('-o',), 'needs a value')):
            self.refused('segment', *good, *arguments, says=says)
        self.refused('segment', PICTURE, '--box', '1,2,3,4:neg', says='only negative boxes')
        self.refused('info', '-j', 'x', says='from 1 to 1024')

    def test_a_picture_is_never_overwritten(self):
        mine = self.path('mine.png')
        shutil.copy(PICTURE, mine)
        os.symlink(mine, self.path('alias.png'))
        with open(mine, 'rb') as f:
            before = f.read()
        self.refused('segment', mine, 'cat', '-o', mine, says='would overwrite the picture')
        self.refused('segment', mine, 'cat', '--overlay', self.path('alias.png'), says='would overwrite the picture')
        self.refused('segment', mine, 'cat', '-o', 'x.png', '--overlay', 'x.png', says='the same file')
        with open(mine, 'rb') as f:
            self.assertEqual(f.read(), before)


class Documents(Case):
    """The JSON that scripts rely on."""

    def test_keys(self):
        doc = self.document(PICTURE, 'fruit', *LOW)
        self.assertEqual(list(doc), ['stencil', 'model', 'images'])
        self.assertEqual(list(doc['model']), ['id', 'version', 'precision', 'input_size'])
        self.assertRegex(doc['model']['id'], '^[0-9a-f]{64}$')
        image, = doc['images']
        self.assertEqual(list(image), ['file', 'width', 'height', 'orientation', 'preprocess', 'results'])
        self.assertEqual((image['file'], image['width'], image['height'], image['orientation']), (PICTURE, 224, 224, 1))
        self.assertEqual(list(image['preprocess']), ['format', 'bits', 'float', 'bands', 'scale', 'damaged', 'resize'])
        self.assertEqual(image['preprocess']['scale'], {'low': 0.0, 'high': 255.0, 'stretched': False})
        result, = image['results']
        self.assertEqual(list(result), ['prompt', 'presence', 'instances', 'warnings', 'threshold', 'mask_threshold'])
        self.assertEqual(result['prompt'], {'phrase': 'fruit', 'boxes': []})
        self.assertTrue(0 < result['presence'] < 1)
        self.assertGreaterEqual(len(result['instances']), 1)
        for instance in result['instances']:
            self.assertEqual(list(instance), ['score', 'box', 'area', 'mask'])
            self.assertEqual(list(instance['mask']), ['size', 'counts'])
            self.assertEqual(instance['mask']['size'], [224, 224])
            counts = runs(instance['mask']['counts'])
            self.assertEqual(sum(counts), 224 * 224)
            self.assertEqual(sum(counts[1::2]), instance['area'])
            self.assertGreater(instance['score'], 0.2)
        scores = [i['score'] for i in result['instances']]
        self.assertEqual(scores, sorted(scores, reverse=True))

    def test_several_phrases_equal_each_alone(self):
        together = self.document(PICTURE, 'fruit', 'gift', 'orange', *LOW)['images'][0]['results']
        self.assertEqual([r['prompt']['phrase'] for r in together], ['fruit', 'gift', 'orange'])
        for result in together:
            alone = self.document(PICTURE, result['prompt']['phrase'], *LOW)['images'][0]['results']
            self.assertEqual([result], alone)

    def test_threads_do_not_matter(self):
        texts = {self.ok(run('segment', PICTURE, 'fruit', 'gift', '-j', n, *LOW)) for n in '123'}
        self.assertEqual(len(texts), 1)

    def test_pictures_in_order(self):
        other = self.path('other.png')
        shutil.copy(PICTURE, other)
        doc = self.document(other, 'fruit', PICTURE, *LOW)
        self.assertEqual([i['file'] for i in doc['images']], [other, PICTURE])
        self.assertEqual(doc['images'][0]['results'], doc['images'][1]['results'])

    def test_thresholds(self):
        results = self.document(PICTURE, 'fruit', 'a=b', 'a', '--threshold', 'fruit=0.9', '--threshold', '0.25', '--threshold', 'a=b=0.125')['images'][0]['results']
        self.assertEqual([r['threshold'] for r in results], [0.9, 0.125, 0.25])
        low, high = (len(self.document(PICTURE, 'fruit', '--threshold', t)['images'][0]['results'][0]['instances']) for t in ('0.0', '1.0'))
        self.assertGreater(low, 1)
        self.assertEqual(high, 0)

    def test_warnings(self):
        def warnings(*arguments):
            done = run('segment', PICTURE, *arguments)
            return json.loads(self.ok(done))['images'][0]['results'][0]['warnings'], done.stderr.decode()
        for arguments, name, says in ((('fruit', '--threshold', '1'), 'nothing_found', 'nothing found'),
                                      (('cat ' * 40, *LOW), 'prompt_cut', 'more tokens than the model reads'),
                                      (('fruit', '--threshold', '0', '--max-detections', '1'), 'detection_cap', '--max-detections'),
                                      (('fruit', '--threshold', '0'), 'query_limit', 'every query')):
            names, stderr = warnings(*arguments)
            self.assertIn(name, names)
            self.assertIn('stencil: warning: ', stderr)
            self.assertIn(says, stderr)
            names, stderr = warnings(*arguments, '-q')
            self.assertIn(name, names)
            self.assertEqual(stderr, '')

    def test_max_detections(self):
        every = self.document(PICTURE, 'fruit', '--threshold', '0')['images'][0]['results'][0]['instances']
        best = self.document(PICTURE, 'fruit', '--threshold', '0', '--max-detections', '3')['images'][0]['results'][0]['instances']
        self.assertEqual(len(best), 3)
        self.assertEqual(best, every[:3])

    def test_boxes_only(self):
        full = self.document(PICTURE, 'fruit', *LOW)['images'][0]['results'][0]['instances']
        boxes = self.document(PICTURE, 'fruit', '--boxes-only', *LOW)['images'][0]['results'][0]['instances']
        self.assertEqual(boxes, [{'score': i['score'], 'box': i['box']} for i in full])

    def test_mask_threshold(self):
        areas = [sum(i['area'] for i in self.document(PICTURE, 'fruit', *LOW, '--mask-threshold', p)['images'][0]['results'][0]['instances'])
                 for p in ('0.05', '0.5', '0.95')]
        self.assertTrue(areas[0] > areas[1] > areas[2], areas)


class Answers(Case):
    """Prompts that are more than a phrase."""

    def test_boxes(self):
        box = '60,80,130,155'
        both = self.document(PICTURE, 'fruit', '--box', box, '--box=10,10,30,30:neg', *LOW)['images'][0]['results'][0]
        self.assertEqual(both['prompt'], {'phrase': 'fruit', 'boxes': [{'box': [60.0, 80.0, 130.0, 155.0], 'negative': False},
                                                                       {'box': [10.0, 10.0, 30.0, 30.0], 'negative': True}]})
        alone = self.document(PICTURE, '--box', box, '--threshold', '0')['images'][0]['results'][0]
        self.assertEqual(alone['prompt']['phrase'], 'visual')
        self.assertGreater(len(alone['instances']), 0)
        named = self.document(PICTURE, 'visual', '--box', box, '--threshold', '0')['images'][0]['results'][0]
        self.assertEqual(alone, named)
        phrase = self.document(PICTURE, 'fruit', *LOW)['images'][0]['results'][0]
        self.assertNotEqual(phrase['presence'], both['presence'])

    def test_box_belongs_to_every_phrase(self):
        results = self.document(PICTURE, 'fruit', 'gift', '--box', '60,80,130,155')['images'][0]['results']
        self.assertEqual([len(r['prompt']['boxes']) for r in results], [1, 1])

    def test_box_outside(self):
        doc = self.document(PICTURE, 'fruit', '--box', '10,10,900,20', code=1)
        self.assertIn('inside the picture of 224 x 224', doc['images'][0]['error'])

    def test_switches_change_the_answer(self):
        base = self.document(PICTURE, 'fruit', *LOW)['images'][0]['results'][0]
        hf = self.document(PICTURE, 'fruit', '--hf-text-only', *LOW)['images'][0]['results'][0]
        self.assertNotEqual(base['presence'], hf['presence'])
        cpu = self.document(PICTURE, 'fruit', '--resize', 'cpu', *LOW)['images'][0]
        self.assertEqual(cpu['preprocess']['resize'], 'cpu')


class Pictures(Case):
    """What is a picture, and pictures that fail."""

    def test_words_that_are_files(self):
        shutil.copy(PICTURE, self.path('fruit'))
        doc = self.document('fruit', '--phrase', 'fruit', *LOW, cwd=self.folder)
        self.assertEqual(doc['images'][0]['file'], 'fruit')
        self.assertEqual(doc['images'][0]['results'][0]['prompt']['phrase'], 'fruit')

    def test_after_two_dashes(self):
        doc = self.document(*LOW, '--', PICTURE, '--fruit')
        self.assertEqual(doc['images'][0]['results'][0]['prompt']['phrase'], '--fruit')

    def test_failures_are_entries(self):
        with open(self.path('text.png'), 'w') as f:
            f.write('no picture at all')
        with open(self.path('cut.png'), 'wb') as f, open(PICTURE, 'rb') as whole:
            f.write(whole.read()[:5000])
        open(self.path('empty.jpg'), 'w').close()
        bad = [self.path('text.png'), self.path('cut.png'), self.path('empty.jpg')]
        done = run('segment', bad[0], PICTURE, *bad[1:], 'fruit', '--picture', self.path('none.png'), *LOW)
        doc = json.loads(self.ok(done, 1))
        self.assertEqual([i['file'] for i in doc['images']], [bad[0], PICTURE, *bad[1:], self.path('none.png')])
        for entry in doc['images'][:1] + doc['images'][2:]:
            self.assertEqual(list(entry), ['file', 'error'])
            self.assertIn(entry['error'], done.stderr.decode())
        self.assertEqual(doc['images'][1]['results'], self.document(PICTURE, 'fruit', *LOW)['images'][0]['results'])

    def test_name_that_is_not_utf8(self):
        name = os.fsencode(self.folder) + b'/caf\xe9.png'
        shutil.copy(PICTURE, name)
        doc = self.document(name, 'fruit', *LOW)
        self.assertTrue(doc['images'][0]['file'].endswith('caf\ufffd.png'))

    def test_size_cap(self):
        doc = self.document(PICTURE, 'fruit', '--max-pixels', '1000', code=1)
        self.assertIn('1000', doc['images'][0]['error'])

    def test_orientation(self):
        upright = self.document(os.path.join(PICTURES, 'jpeg_orientation_1.jpg'), 'fruit', '--threshold', '1', '-q')['images'][0]
        turned = self.document(os.path.join(PICTURES, 'jpeg_orientation_6.jpg'), 'fruit', '--threshold', '1', '-q')['images'][0]
        self.assertEqual((upright['orientation'], turned['orientation']), (1, 6))

    def test_hostile_name(self):
        name = self.path('a\x1b[2Jb.png')
        with open(name, 'w') as f:
            f.write('no picture')
        done = run('segment', name, 'fruit')
        self.assertEqual(done.returncode, 1)
        self.assertNotIn(b'\x1b', done.stderr)


class Formats(Case):
    def test_coco(self):
        bad = self.path('bad.png')
        open(bad, 'w').close()
        plain = self.document(PICTURE, 'fruit', 'gift', *LOW)['images'][0]['results']
        doc = self.document(bad, PICTURE, 'fruit', 'gift', '--format', 'coco', *LOW, code=1)
        self.assertEqual(doc['images'], [{'id': 2, 'file_name': PICTURE, 'width': 224, 'height': 224}])
        self.assertEqual(doc['categories'], [{'id': 1, 'name': 'fruit'}, {'id': 2, 'name': 'gift'}])
        self.assertEqual(doc['errors'][0]['file_name'], bad)
        found = [(k + 1, i) for k, r in enumerate(plain) for i in r['instances']]
        self.assertEqual(len(doc['annotations']), len(found))
        for n, (annotation, (category, instance)) in enumerate(zip(doc['annotations'], found), 1):
            self.assertEqual((annotation['id'], annotation['image_id'], annotation['category_id'], annotation['iscrowd']), (n, 2, category, 0))
            self.assertEqual((annotation['score'], annotation['area'], annotation['segmentation']), (instance['score'], instance['area'], instance['mask']))
            x0, y0, x1, y1 = (min(max(v, 0), 224) for v in instance['box'])
            for got, expected in zip(annotation['bbox'], (x0, y0, x1 - x0, y1 - y0)):
                self.assertAlmostEqual(got, expected, places=3)

    def test_png(self):
        out = self.path('masks')
        self.assertEqual(self.ok(run('segment', PICTURE, 'fruit', 'gift', '--format', 'png', '-o', out, *LOW)), '')
        with open(os.path.join(out, 'results.json')) as f:
            doc = json.load(f)
        files = []
        for result in doc['images'][0]['results']:
            for instance in result['instances']:
                files.append(instance['mask_file'])
                width, height, channels, rows = read_png(instance['mask_file'])
                self.assertEqual((width, height, channels), (224, 224, 1))
                self.assertEqual(set(b''.join(rows)) - {0, 255}, set())
                self.assertEqual(sum(row.count(255) for row in rows), instance['area'])
                column_major = b''.join(bytes(row[x] for row in rows) for x in range(width))
                at = 0
                for k, n in enumerate(runs(instance['mask']['counts'])):
                    self.assertEqual(column_major[at:at + n], bytes([255 * (k % 2)]) * n)
                    at += n
        self.assertGreaterEqual(len(files), 1)
        self.assertEqual(len(files), len(set(files)))
        self.assertEqual(sorted(os.listdir(out)), sorted([os.path.basename(f) for f in files] + ['results.json']))
        self.assertIn('check_fruit_001.png', os.listdir(out))

    def test_table(self):
        text = self.ok(run('segment', PICTURE, 'fruit', '--format', 'table', *LOW))
        self.assertIn('224 x 224 pixels', text)
        self.assertRegex(text, r'(?m)^  "fruit": \d+ found, presence 0\.\d+$')
        out = self.path('table.txt')
        self.assertEqual(self.ok(run('segment', PICTURE, 'fruit', '--format', 'table', '-o', out, *LOW)), '')
        with open(out) as f:
            self.assertEqual(f.read(), text)

    def test_output_file_is_what_is_printed(self):
        out = self.path('out.json')
        printed = self.ok(run('segment', PICTURE, 'fruit', *LOW))
        self.assertEqual(self.ok(run('segment', PICTURE, 'fruit', '-o', out, *LOW)), '')
        with open(out) as f:
            self.assertEqual(f.read(), printed)
        self.assertEqual(self.ok(run('segment', PICTURE, 'fruit', '-o', '-', *LOW)), printed)
        self.assertEqual(os.listdir(self.folder), ['out.json'])


class Outputs(Case):
    def test_overlay_file(self):
        for name in ('o.png', 'o.jpg'):
            self.ok(run('segment', PICTURE, 'fruit', '--overlay', self.path(name), *LOW))
        width, height, channels, rows = read_png(self.path('o.png'))
        original = read_png(PICTURE)
        self.assertEqual((width, height, channels), original[:3])
        changed = sum(a != b for a, b in zip(b''.join(rows), b''.join(original[3])))
        self.assertGreater(changed, 100)
        with open(self.path('o.jpg'), 'rb') as f:
            self.assertEqual(f.read(2), b'\xff\xd8')
        self.assertEqual(sorted(os.listdir(self.folder)), ['o.jpg', 'o.png'])

    def test_overlay_folder(self):
        for folder in ('a', 'b'):
            os.mkdir(self.path(folder))
            shutil.copy(PICTURE, self.path(folder, 'x.png'))
        with open(self.path('b', 'y.png'), 'w') as f:
            f.write('broken')
        pictures = [self.path('a', 'x.png'), self.path('b', 'x.png'), self.path('b', 'y.png')]
        self.ok(run('segment', *pictures, 'fruit', '--overlay', self.path('drawn'), *LOW), 1)
        self.assertEqual(sorted(os.listdir(self.path('drawn'))), ['x-2.overlay.png', 'x.overlay.png'])
        os.mkdir(self.path('there'))
        self.ok(run('segment', PICTURE, 'fruit', '--overlay', self.path('there'), *LOW))
        self.assertEqual(os.listdir(self.path('there')), ['check.overlay.png'])

    def test_overlay_beside_the_pictures(self):
        shutil.copy(PICTURE, self.path('x.png'))
        shutil.copy(PICTURE, self.path('x.overlay.png'))
        with open(PICTURE, 'rb') as f:
            original = f.read()
        self.refused('segment', self.path('x.png'), self.path('x.overlay.png'), 'fruit', '--overlay', self.folder, '-o', self.path('out.json'), *LOW,
                     says='would overwrite this picture', code=4)
        for name in ('x.png', 'x.overlay.png'):
            with open(self.path(name), 'rb') as f:
                self.assertEqual(f.read(), original)
        self.assertTrue(os.path.exists(self.path('out.json')))  # results are not lost with an overlay
        self.assertTrue(os.path.exists(self.path('x.overlay.overlay.png')))

    def test_places_that_cannot_be_written(self):
        with open(self.path('file'), 'w'):
            pass
        for arguments, says in (
                (('-o', self.path('none', 'out.json')), 'the folder'),
                (('-o', self.folder), 'is a folder, expected a file name'),
                (('-o', self.path('file'), '--format', 'png'), 'is a file, expected a folder'),
                (('-o', self.path('no', 'no'), '--format', 'png'), 'cannot make this folder'),
                (('--overlay', self.path('none', 'o.png')), 'the folder'),
                (('-o', '/dev/full'), 'No space left')):
            self.refused('segment', PICTURE, 'fruit', *LOW, *arguments, says=says, code=4)
        self.assertEqual(os.listdir(self.folder), ['file'])

    def test_standard_output_that_is_full(self):
        for arguments in (('segment', PICTURE, 'fruit', *LOW), ('segment', PICTURE, 'fruit', '--format', 'table', '-o', '-', *LOW), ('info', '--json')):
            with open('/dev/full', 'wb') as full:
                done = subprocess.run([PROGRAM, *arguments], stdout=full, stderr=subprocess.PIPE, env={**os.environ, 'STENCIL_MODEL': MODEL}, timeout=TIMEOUT_S)
            self.assertEqual(done.returncode, 4, arguments)
            self.assertIn(b'No space left', done.stderr)

    def test_text_that_is_lost(self):
        # also what is printed piece by piece, and a closed output, into whose place no other file may come
        concept = self.path('a.concept')
        self.ok(run('concept', 'make', PICTURE, '--box', '1,1,50,50', '-o', concept))
        for arguments in (('help',), ('help', 'segment'), ('segment', '--help'), ('version',), ('info',), ('check',), ('concept', 'show', concept)):
            for redirect in ('>/dev/full', '>&-'):
                done = subprocess.run(['sh', '-c', f'exec "$@" {redirect}', 'sh', PROGRAM, *arguments], stderr=subprocess.PIPE,
                                      env={**os.environ, 'STENCIL_MODEL': MODEL}, timeout=TIMEOUT_S)
                self.assertEqual(done.returncode, 4, (arguments, redirect))
                self.assertIn(b'standard output: cannot be written', done.stderr)

    def test_closed_streams_do_not_spoil_files(self):
        out = self.path('out.json')
        done = subprocess.run(['sh', '-c', 'exec "$@" <&- >&- 2>&-', 'sh', PROGRAM, 'segment', PICTURE, 'fruit', '-v', '-o', out, '--overlay', self.path('o.png'), *LOW],
                              env={**os.environ, 'STENCIL_MODEL': MODEL}, timeout=TIMEOUT_S)
        self.assertEqual(done.returncode, 0)
        with open(out) as f:
            self.assertGreater(len(json.load(f)['images'][0]['results'][0]['instances']), 0)
        self.assertEqual(read_png(self.path('o.png'))[:3], read_png(PICTURE)[:3])

    def test_a_pipe_that_nobody_reads(self):
        os.mkfifo(self.path('pipe'))
        self.refused('segment', PICTURE, 'fruit', *LOW, '-o', self.path('pipe'), says='pipe', code=4)
        self.assertEqual(os.listdir(self.folder), ['pipe'])


class Models(Case):
    def test_model_that_cannot_be_opened(self):
        with open(self.path('bad.safetensors'), 'wb') as f:
            f.write(b'\xff' * 100)
        self.refused('segment', PICTURE, 'fruit', '-m', self.path('none.pt'), says='none.pt', code=3)
        self.refused('segment', PICTURE, 'fruit', '-m', self.path('bad.safetensors'), says='bad.safetensors', code=3)
        self.refused('segment', PICTURE, 'fruit', '-m', '', says='empty model path', code=3)
        self.refused('info', self.path('none.pt'), says='none.pt', code=3)
        self.refused('check', '-m', self.path('none.pt'), says='none.pt', code=3)

    def test_which_model(self):
        base = run('segment', PICTURE, 'fruit', *LOW)
        self.assertEqual(base.stderr, b'')  # STENCIL_MODEL says which: nothing to mention
        given = run('segment', PICTURE, 'fruit', '-m', MODEL, *LOW, model=self.path('none'))
        self.assertEqual(base.stdout, given.stdout)

    def test_demo_model_beside_the_program(self):
        for program, model in (('build', 'models/demo'), ('bin', 'share/stencil/models/demo')):
            top = self.path(program + '-tree')
            os.makedirs(os.path.join(top, program))
            os.makedirs(os.path.join(top, os.path.dirname(model)))
            os.symlink(MODEL, os.path.join(top, model))
            copy = os.path.join(top, program, 'stencil')
            shutil.copy(PROGRAM, copy)
            environment = {k: v for k, v in os.environ.items() if k != 'STENCIL_MODEL'}
            done = subprocess.run([copy, 'segment', PICTURE, 'fruit', *LOW], capture_output=True, env=environment, timeout=TIMEOUT_S)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn('using the demo model ' + os.path.join(top, model), done.stderr.decode())
            self.assertEqual(len(json.loads(done.stdout)['images']), 1)
        alone = self.path('alone', 'deep', 'stencil')
        os.makedirs(os.path.dirname(alone))
        shutil.copy(PROGRAM, alone)
        done = subprocess.run([alone, 'segment', PICTURE, 'fruit'], capture_output=True, env=environment, timeout=TIMEOUT_S)
        self.assertEqual(done.returncode, 3)
        self.assertIn(b'no model: give one with -m, or set STENCIL_MODEL', done.stderr)

    def test_info(self):
        text = self.ok(run('info', MODEL))
        for part in ('model       sam3', 'layout      hf', 'ViT trunk', 'phrases and example boxes: yes', 'known but unused here: ', 'memory plan', 'peak'):
            self.assertIn(part, text)
        self.assertIn('tracker', self.ok(run('info', '-v', MODEL)))
        plan = self.ok(run('info', '--plan', '-m', MODEL))
        self.assertTrue(plan.startswith('memory plan') and text.endswith(plan))

    def test_memory_limit(self):
        tiny = os.path.join(TREE, 'tests', 'golden', 'data', 'tiny-meta', 'model.safetensors')
        whole = json.loads(self.ok(run('info', '--json', '-m', tiny)))['plan']['peak_bytes']
        small = json.loads(self.ok(run('info', '--json', '-m', tiny, '--memory-limit', f'{(whole - 1) / 1024:.3f}K')))['plan']
        self.assertLess(small['peak_bytes'], whole)
        self.assertIn('weights mapped from the file, a block at a time', [x['name'] for x in small['lines']])
        for ask in ('info',), ('segment', PICTURE, 'apple'), ('bench', 'picture', '--runs', '1'):
            r = run(*ask, '-m', tiny, '--memory-limit', '3M')
            self.assertEqual(r.returncode, 3, r.stderr)
            self.assertRegex(r.stderr.decode(), r'memory limit: 3\.0 MiB, the smallest plan needs \d+\.\d MiB \(\d+\.\d MiB with all weights in memory\)')
        for wrong in '3', 'G', '2X', '-1G', '0K', '1e999G', '2 G', 'nanG', '':
            r = run('segment', PICTURE, 'apple', '--memory-limit', wrong)
            self.assertEqual(r.returncode, 2, wrong)
            self.assertIn('--memory-limit: expected an amount of memory such as 800M or 2.5G', r.stderr.decode())

    def test_info_json(self):
        doc = json.loads(self.ok(run('info', '--json')))
        self.assertEqual(list(doc), ['stencil', 'id', 'version', 'layout', 'container', 'precision', 'dtypes', 'input_size', 'own_input_size', 'mask_size', 'queries', 'parts',
                                     'unused', 'can', 'plan', 'cpu_level', 'gemm', 'threads'])
        self.assertEqual(doc['can'], {'segment': True, 'click': True, 'track': True})
        self.assertEqual(doc['id'], self.document(PICTURE, 'fruit')['model']['id'])
        plan = json.loads(self.ok(run('info', '--json', '--plan', '-j', '1')))
        self.assertEqual(list(plan), ['lines', 'peak_bytes', 'input_size'])
        self.assertGreater(plan['peak_bytes'], 1 << 20)
        self.assertEqual(json.loads(self.ok(run('info', '--json', '-j', '1')))['threads'], 1)

    def test_check(self):
        text = self.ok(run('check'))
        last = text.strip().split('\n')[-1]
        match = re.match(r'(\d+) of (\d+) lines passed: sam3, ', last)
        self.assertTrue(match, last)
        self.assertEqual(match.group(1), match.group(2))
        self.assertGreater(int(match.group(1)), 5)
        doc = json.loads(self.ok(run('check', '--json', '-j', '2')))
        self.assertEqual(doc['failed'], 0)
        self.assertEqual(len(doc['lines']), int(match.group(1)))
        self.assertEqual(list(doc['lines'][0]), ['stage', 'what', 'value', 'bound', 'passed'])
        self.assertEqual(self.ok(run('check', '-q')), '')

    def test_check_finds_a_broken_stage(self):
        # One matrix forgets everything: the stage that it belongs to is the first to fail, whatever came before is right, and so is what does not depend on it.
        broken = self.path('broken')
        for tensor, stage, sound in (
                ('detector_model.vision_encoder.backbone.layers.3.mlp.fc1.weight', 'vit.block.3', 'text.out'),
                ('detector_model.text_encoder.text_model.encoder.layers.1.mlp.fc1.weight', 'text.block.1', 'neck.2'),
                ('detector_model.detr_decoder.layers.0.vision_cross_attn.k_proj.weight', 'dec.layer.0', 'fusion.layer.2')):
            shutil.copytree(MODEL, broken)
            with open(os.path.join(broken, 'model.safetensors'), 'r+b') as f:
                size, = struct.unpack('<Q', f.read(8))
                begin, end = json.loads(f.read(size))[tensor]['data_offsets']
                f.seek(8 + size + begin)
                f.write(bytes(end - begin))
            lines = json.loads(self.ok(run('check', '--json', '-m', broken), 1))['lines']
            self.assertGreater(len(lines), 30)
            self.assertEqual({line['what'] for line in lines}, {'max error'})  # compared with the stored references
            self.assertEqual(next(line['stage'] for line in lines if not line['passed']), stage)
            self.assertEqual([line['passed'] for line in lines if line['stage'] == sound], [True])
            self.assertEqual([line['passed'] for line in lines if line['stage'] == 'logits'], [False])
            shutil.rmtree(broken)


    def test_outputs_spare_the_model(self):
        # also when the environment names it, and when it is a folder
        model = self.path('m')
        shutil.copytree(MODEL, model)
        before = {name: os.stat(os.path.join(model, name)).st_mtime_ns for name in os.listdir(model)}
        for name in ('model.safetensors', 'config.json'):
            path = os.path.join(model, name)
            for arguments in (('segment', PICTURE, 'fruit', '-o', path), ('encode', PICTURE, '-o', path), ('everything', PICTURE, '-o', path),
                              ('concept', 'make', PICTURE, '--box', '1,1,50,50', '-o', path)):
                self.refused(*arguments, model=model, says='would overwrite the model')
                self.refused(*arguments, '-m', model, says='would overwrite the model')
        self.refused('encode', PICTURE, '-o', os.path.join(model, 'model.safetensors'), '-m', os.path.join(model, 'model.safetensors'), says='would overwrite the model')
        self.assertEqual(before, {name: os.stat(os.path.join(model, name)).st_mtime_ns for name in os.listdir(model)})
        for _ in range(2):  # a result of ours beside the model's files is no file of the model
            self.ok(run('segment', PICTURE, 'fruit', '-o', os.path.join(model, 'out.json'), model=model))

    def test_check_counts_what_it_compared(self):
        # References that are damaged, or of a stage that never comes by: nothing was compared there, and that is no pass.
        path = self.path('m', 'check.safetensors')
        shutil.copytree(MODEL, self.path('m'))
        with open(path, 'rb') as f:
            whole = f.read()
        size, = struct.unpack('<Q', whole[:8])
        begin = 8 + size + json.loads(whole[8:8 + size])['neck.1']['data_offsets'][0]
        for changed, stage, what in ((whole[:begin] + struct.pack('<f', float('nan')) + whole[begin + 4:], 'neck.1', 'stored samples that can be read'),
                                     (whole.replace(b'"logits/about"', b'"logitz/about"'), 'all', 'stages compared')):
            self.assertNotEqual(changed, whole)
            with open(path, 'wb') as f:
                f.write(changed)
            lines = json.loads(self.ok(run('check', '--json', '-m', self.path('m')), 1))['lines']
            self.assertEqual([(line['stage'], line['what']) for line in lines if not line['passed']], [(stage, what)])


class Bench(Case):
    """The shape of the receipts, and that they are about real work. What was measured is nobody's business here."""

    def receipt(self, *arguments, **more):
        return json.loads(self.ok(run('bench', *arguments, '--json', **more)))

    def samples(self, s, n):
        self.assertEqual(list(s), ['median', 'best', 'samples'])
        self.assertEqual(len(s['samples']), n)
        ordered = sorted(s['samples'])
        self.assertEqual(s['best'], ordered[0])
        self.assertAlmostEqual(s['median'], (ordered[(n - 1) // 2] + ordered[n // 2]) / 2)
        self.assertGreater(ordered[0], 0)

    def test_masks(self):
        asked = ('masks', '--instances', '3', '--size', '400', '--runs', '4')
        doc = self.receipt(*asked)
        self.assertEqual(list(doc), ['bench', 'stencil', 'cpu', 'threads', 'kind', 'instances', 'logits', 'size', 'warm_up', 'runs', 'seconds',
                                     'cpu_seconds_per_mask', 'peak_growth_bytes', 'output'])
        self.assertEqual([doc[k] for k in ('bench', 'threads', 'kind', 'instances', 'logits', 'size', 'warm_up', 'runs')],
                         ['masks', 2, 'blobs', 3, [288, 288], 400, 1, 4])
        self.samples(doc['seconds'], 4)
        self.assertGreater(doc['cpu_seconds_per_mask'], 0)
        self.assertEqual(list(doc['output']), ['hash', 'runs', 'area'])
        self.assertRegex(doc['output']['hash'], '^fnv1a64:[0-9a-f]{16}$')
        self.assertTrue(3 * 1000 < doc['output']['area'] < 3 * 400 * 400 // 2, doc['output'])
        self.assertEqual(self.receipt(*asked, '-j', '3')['output'], doc['output'])
        noise = self.receipt(*asked, '--noise')
        self.assertEqual(noise['kind'], 'noise')
        self.assertGreater(noise['output']['runs'], 10 * doc['output']['runs'])
        self.assertIn(doc['output']['hash'], self.ok(run('bench', *asked)))

    def test_picture(self):
        doc = self.receipt('picture', PICTURE, 'animal', '--runs', '2', '-j', '2')
        self.assertEqual(list(doc), ['bench', 'stencil', 'commit', 'cpu', 'level', 'gemm', 'threads', 'model', 'picture', 'phrase', 'warm_up', 'runs', 'start', 'first',
                                     'encode', 'same_phrase', 'further_phrase', 'stages', 'rate', 'output', 'check', 'memory'])
        self.assertRegex(doc['commit'], r'^([0-9a-f]{7,40}(-dirty)?|unknown)$')
        self.assertEqual(list(doc['stages']), ['trunk', 'neck', 'prompt', 'fusion', 'decoder', 'masks'])
        for stage in doc['stages'].values():
            self.samples(stage, 2)
        for whole, parts in (('encode', ('trunk', 'neck')), ('further_phrase', ('prompt', 'fusion', 'decoder', 'masks'))):
            for i, seconds in enumerate(doc[whole]['samples']):
                split = sum(doc['stages'][part]['samples'][i] for part in parts)
                self.assertLessEqual(split, seconds)
                self.assertGreater(split, 0.5 * seconds)
        rate = doc['rate']
        self.assertEqual(list(rate), ['fp32_gflops', 'int8_gops', 'encode_gflop', 'encode_share', 'phrase_gflop', 'further_phrase_share'])
        self.assertIsNone(rate['int8_gops'])
        self.assertAlmostEqual(rate['encode_share'], rate['encode_gflop'] / doc['encode']['median'] / rate['fp32_gflops'], 6)
        self.assertAlmostEqual(rate['further_phrase_share'], rate['phrase_gflop'] / doc['further_phrase']['median'] / rate['fp32_gflops'], 6)
        self.assertEqual(doc['check']['failed'], 0)
        self.assertGreater(doc['check']['lines'], 20)
        info = json.loads(self.ok(run('info', '--json', '-j', '2')))
        self.assertEqual(doc['model'], {k: info[k] for k in ('id', 'version', 'precision', 'dtypes', 'container', 'input_size')})
        self.assertEqual([doc[k] for k in ('bench', 'level', 'gemm', 'threads', 'phrase', 'warm_up', 'runs')],
                         ['picture', info['cpu_level'], info['gemm'], 2, 'animal', 1, 2])
        self.assertEqual(doc['picture'], {'file': PICTURE, 'width': 224, 'height': 224})
        for figure in ('encode', 'same_phrase', 'further_phrase'):
            self.samples(doc[figure], 2)
        self.assertEqual(list(doc['start']), ['open_seconds', 'accepted_seconds'])
        self.assertEqual(list(doc['first']), ['encode_seconds', 'phrase_seconds', 'peak_resident_bytes'])
        self.assertEqual(doc['memory']['plan_peak_bytes'], info['plan']['peak_bytes'])
        self.assertGreaterEqual(doc['memory']['peak_resident_bytes'], doc['first']['peak_resident_bytes'])
        self.assertGreater(doc['first']['peak_resident_bytes'], 1 << 20)
        self.assertEqual(doc['output']['instances'], 20)

    def test_picture_output_is_of_what_was_asked(self):
        one = self.receipt('picture', PICTURE, 'animal', '--runs', '1', '-j', '1')['output']
        self.assertEqual(self.receipt('picture', PICTURE, 'animal', '--runs', '1', '-j', '2')['output'], one)
        other = self.receipt('picture', PICTURE, 'fruit', '--runs', '1')['output']
        self.assertNotEqual(other['hash'], one['hash'])
        self.assertEqual(other['further_hash'], one['further_hash'])
        twice = self.receipt('picture', PICTURE, 'animal', '--runs', '2')['output']
        self.assertEqual(twice['hash'], one['hash'])
        self.assertNotEqual(twice['further_hash'], one['further_hash'])

    def test_drawn_picture(self):
        doc = self.receipt('picture', '--runs', '1')
        self.assertEqual(doc['picture'], {'file': None, 'width': 1008, 'height': 1008})
        text = self.ok(run('bench', 'picture', '--runs', '1'))
        for part in ('model ', 'runs on ', 'picture          drawn, 1008 x 1008', 'accepted', 'further phrase', 'planned', doc['output']['hash']):
            self.assertIn(part, text)

    def test_refused(self):
        for arguments, says in (
                ((), 'expected masks, picture or click'),
                (('zebra',), 'expected masks, picture or click, got "zebra"'),
                (('masks', 'word'), 'masks takes no words, got "word"'),
                (('masks', '-m', MODEL), '--model belongs to picture'),
                (('picture', '--noise'), '--noise belongs to masks'),
                (('picture', '--size', '10'), 'input size 10: expected 112'),
                (('click', '--size', 'x'), '--size: expected a side in pixels such as 504, 672 or 1344, got "x"'),
                (('picture', PICTURE, PICTURE), 'measures one picture'),
                (('picture', 'cat', 'dog'), 'asks for one phrase'),
                (('picture', 'none.png'), '"none.png": no such file'),
                (('masks', '--runs', '0'), '--runs: expected a whole number from 1 to 1000, got "0"'),
                (('masks', '--size', '65536'), '--size: expected a whole number from 1 to 65535'),
                (('masks', '--instances', 'x'), '--instances: expected'),
                (('masks', '-j', '65'), 'at most 64 threads'),
                (('masks', '--jsn'), 'did you mean --json?')):
            self.refused('bench', *arguments, says=says)
        self.refused('bench', 'picture', '-m', self.path('none.pt'), says='none.pt', code=3)
        with open(self.path('broken.png'), 'w') as f:
            f.write('broken')
        self.refused('bench', 'picture', self.path('broken.png'), says='broken.png', code=1)


class Everything(Case):
    """Masks without a prompt. The demo model's clicks may be trained little: thresholds are low."""
    LOW = ('--pred-iou-thresh', '0', '--stability-score-thresh', '0', '--points-per-side', '3')

    def everything(self, *arguments, code=0, **more):
        return json.loads(self.ok(run('everything', *arguments, **more), code))

    def test_keys(self):
        doc = self.everything(PICTURE, *self.LOW, '--crop-n-layers', '1', '--box-nms-thresh', '1', '--crop-nms-thresh', '1', '--crop-overlap-ratio', '0.25')
        self.assertEqual(list(doc), ['stencil', 'model', 'images'])
        image, = doc['images']
        self.assertEqual(list(image), ['file', 'width', 'height', 'orientation', 'preprocess', 'masks', 'points', 'passed', 'warnings', 'options'])
        self.assertEqual((image['file'], image['width'], image['height'], image['points']), (PICTURE, 224, 224, 45))
        self.assertGreaterEqual(len(image['masks']), 9)
        self.assertEqual(image['passed'], len(image['masks']))
        self.assertEqual(image['warnings'], [])
        for mask in image['masks']:
            self.assertEqual(list(mask), ['predicted_iou', 'stability', 'box', 'area', 'point', 'crop', 'mask'])
            self.assertEqual(mask['mask']['size'], [224, 224])
            counts = runs(mask['mask']['counts'])
            self.assertEqual(sum(counts), 224 * 224)
            self.assertEqual(sum(counts[1::2]), mask['area'])
            x0, y0, x1, y1 = mask['crop']
            self.assertTrue(x0 <= mask['box'][0] < mask['box'][2] <= x1 and y0 <= mask['box'][1] < mask['box'][3] <= y1)
            self.assertTrue(x0 < mask['point'][0] < x1 and y0 < mask['point'][1] < y1)
        ious = [m['predicted_iou'] for m in image['masks']]
        self.assertEqual(ious, sorted(ious, reverse=True))
        self.assertEqual(image['options'], {
            'points_per_side': 3, 'pred_iou_thresh': 0.0, 'stability_score_thresh': 0.0, 'stability_score_offset': 1.0, 'box_nms_thresh': 1.0, 'crop_n_layers': 1,
            'crop_nms_thresh': 1.0, 'crop_overlap_ratio': 0.25, 'crop_n_points_downscale_factor': 1, 'min_mask_region_area': 0, 'overlap_thresh': 0.0, 'max_masks': 0,
            'hf': False})

    def test_defaults(self):
        options = self.everything(PICTURE, '-q')['images'][0]['options']
        self.assertEqual(options, {
            'points_per_side': 32, 'pred_iou_thresh': 0.88, 'stability_score_thresh': 0.95, 'stability_score_offset': 1.0, 'box_nms_thresh': 0.7, 'crop_n_layers': 0,
            'crop_nms_thresh': 0.7, 'crop_overlap_ratio': 0.341333333, 'crop_n_points_downscale_factor': 1, 'min_mask_region_area': 0, 'overlap_thresh': 0.0,
            'max_masks': 0, 'hf': False})

    def test_options_arrive(self):
        given = {'points_per_side': 4, 'pred_iou_thresh': 0.01, 'stability_score_thresh': 0.001, 'stability_score_offset': 0.5, 'box_nms_thresh': 0.6, 'crop_n_layers': 1,
                 'crop_nms_thresh': 0.8, 'crop_overlap_ratio': 0.2, 'crop_n_points_downscale_factor': 2, 'min_mask_region_area': 5, 'overlap_thresh': 0.75, 'max_masks': 3}
        words = [w for name, value in given.items() for w in ('--' + name.replace('_', '-'), str(value))]
        image, = self.everything(PICTURE, *words, '--points-per-batch', '5', '--hf', '-q')['images']
        self.assertEqual(image['options'], {**given, 'hf': True})
        self.assertEqual(image['points'], 16 + 4 * 4)
        self.assertLessEqual(len(image['masks']), 3)

    def test_threads_do_not_matter(self):
        texts = {self.ok(run('everything', PICTURE, *self.LOW, '-j', n)) for n in '123'}
        self.assertEqual(len(texts), 1)

    def test_saved_encoding(self):
        saved = self.path('p.features')
        self.ok(run('encode', PICTURE, '--clicks', '--resize', 'cpu', '-o', saved))
        plain = self.everything(PICTURE, *self.LOW, '--resize', 'cpu')
        self.assertEqual(self.everything('--features', saved, *self.LOW), plain)
        crops = ('--crop-n-layers', '1')
        self.assertEqual(self.everything('--features', saved, PICTURE, *self.LOW, *crops), self.everything(PICTURE, *self.LOW, *crops, '--resize', 'cpu'))
        self.refused('everything', '--features', saved, *crops, says='name the picture beside --features')
        self.refused('everything', '--features', saved, '--overlay', 'x.png', says='name the picture beside --features')
        self.refused('everything', '--features', saved, '--resize', 'gpu', says='encoded already')
        self.refused('everything', '--features', saved, '--max-pixels', '10', says='no picture is read')
        self.ok(run('encode', PICTURE, '-o', saved))
        self.refused('everything', '--features', saved, says='stencil encode --clicks', code=1)

    def test_formats(self):
        masks = self.everything(PICTURE, *self.LOW)['images'][0]['masks']
        coco = self.everything(PICTURE, *self.LOW, '--format', 'coco')
        self.assertEqual(coco['categories'], [{'id': 1, 'name': 'object'}])
        self.assertEqual([(a['score'], a['area'], a['segmentation']) for a in coco['annotations']], [(m['predicted_iou'], m['area'], m['mask']) for m in masks])
        out = self.path('masks')
        self.assertEqual(self.ok(run('everything', PICTURE, *self.LOW, '--format', 'png', '-o', out)), '')
        with open(os.path.join(out, 'results.json')) as f:
            written = json.load(f)['images'][0]['masks']
        self.assertEqual([{k: v for k, v in m.items() if k != 'mask_file'} for m in written], masks)
        self.assertEqual(os.path.basename(written[0]['mask_file']), 'check_mask_0001.png')
        for mask in written:
            self.assertEqual(sum(row.count(255) for row in read_png(mask['mask_file'])[3]), mask['area'])
        self.assertEqual(len(os.listdir(out)), len(masks) + 1)
        table = self.ok(run('everything', PICTURE, *self.LOW, '--format', 'table'))
        self.assertRegex(table, r'(?m)^  %d masks?: 9 clicks, \d+ candidates passed$' % len(masks))
        self.assertEqual(len(re.findall(r'(?m)^ +\d+  +0\.\d{3} ', table)), len(masks))

    def test_overlay(self):
        os.mkdir(self.path('drawn'))
        done = self.ok(run('everything', PICTURE, *self.LOW, '--overlay', self.path('o.png'), '-o', self.path('o.json')))
        self.assertEqual(done, '')
        self.ok(run('everything', PICTURE, *self.LOW, '--overlay', self.path('drawn')))
        self.assertEqual(os.listdir(self.path('drawn')), ['check.overlay.png'])
        drawn, original = read_png(self.path('o.png')), read_png(PICTURE)
        self.assertEqual(drawn[:3], original[:3])
        self.assertGreater(sum(a != b for a, b in zip(b''.join(drawn[3]), b''.join(original[3]))), 100)
        self.assertEqual(drawn, read_png(self.path('drawn', 'check.overlay.png')))

    def test_nothing_found(self):
        done = run('everything', PICTURE, *self.LOW, '--pred-iou-thresh', '1')
        self.assertEqual(json.loads(self.ok(done))['images'][0]['warnings'], ['nothing_found'])
        self.assertIn('stencil: warning: ', done.stderr.decode())
        self.assertIn('lower --pred-iou-thresh', done.stderr.decode())

    def test_refused(self):
        mine = self.path('mine.png')
        shutil.copy(PICTURE, mine)
        with open(self.path('broken.png'), 'w') as f:
            f.write('broken')
        for arguments, says in (
                ((), 'no picture given'),
                ((PICTURE, PICTURE), 'takes one picture'),
                ((PICTURE, '--points-per-side', '0'), 'from 1 to 256'),
                ((PICTURE, '--points-per-side', '257'), 'from 1 to 256'),
                ((PICTURE, '--points-per-batch', '0'), 'from 1'),
                ((PICTURE, '--pred-iou-thresh', '1.1'), 'from 0 to 1'),
                ((PICTURE, '--stability-score-thresh', 'x'), 'from 0 to 1'),
                ((PICTURE, '--stability-score-offset', '-1'), 'from 0 to 1000'),
                ((PICTURE, '--box-nms-thresh', ''), 'from 0 to 1'),
                ((PICTURE, '--crop-n-layers', '5'), 'from 0 to 4'),
                ((PICTURE, '--crop-nms-thresh', 'nan'), 'from 0 to 1'),
                ((PICTURE, '--crop-overlap-ratio', '1'), 'less than 1'),
                ((PICTURE, '--crop-n-points-downscale-factor', '0'), 'from 1 to 256'),
                ((PICTURE, '--crop-n-points-downscale-factor', '33', '--crop-n-layers', '1'), 'leaves no point'),
                ((PICTURE, '--min-mask-region-area', '-5'), 'a whole number from 0'),
                ((PICTURE, '--overlap-thresh', '2'), 'from 0 to 1'),
                ((PICTURE, '--max-masks', '0'), 'a whole number from 1'),
                ((PICTURE, '--format', 'xml'), 'json, coco, png or table'),
                ((PICTURE, '--format', 'png'), 'needs a folder'),
                ((PICTURE, '--overlay', 'x.gif'), '.png or .jpg'),
                ((PICTURE, '-o', 'a.png', '--overlay', 'a.png'), 'the same file'),
                ((mine, '-o', mine), 'would overwrite the picture'),
                ((mine, '--overlay', mine), 'would overwrite the picture'),
                ((PICTURE, '--point-per-side', '3'), 'did you mean --points-per-side?')):
            self.refused('everything', *arguments, says=says)
        self.refused('everything', self.path('none.png'), says='none.png', code=1)
        self.refused('everything', self.path('broken.png'), says='broken.png', code=1)
        self.refused('everything', PICTURE, '-m', self.path('none.pt'), says='none.pt', code=3)
        self.refused('everything', PICTURE, '-o', self.path('none', 'out.json'), says='the folder', code=4)
        self.refused('everything', PICTURE, '-o', '/dev/full', *self.LOW, says='No space left', code=4)

    def test_cancel(self):
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            process = subprocess.Popen([PROGRAM, 'everything', PICTURE, '--points-per-side', '256', '--crop-n-layers', '2', '-v', '-o', self.path('out.json'),
                                        '--overlay', self.path('o.png')], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       env={**os.environ, 'STENCIL_MODEL': MODEL})
            try:
                for line in process.stderr:
                    if b'encoded in' in line:
                        break
                process.send_signal(number)
                sent = time.monotonic()
                rest, errors = process.communicate(timeout=TIMEOUT_S)
                took = time.monotonic() - sent
            finally:
                process.kill()
            self.assertEqual((process.returncode, rest), (code, b''))
            self.assertIn(b'stencil: cancelled; no results were written', errors)
            self.assertLess(took, 20)
            self.assertEqual(os.listdir(self.folder), [])


class Terminal(Case):
    def in_terminal(self, *arguments, stderr_too=True):
        """Output of the program on a pseudo-terminal."""
        master, slave = pty.openpty()
        environment = {**os.environ, 'STENCIL_MODEL': MODEL}
        process = subprocess.Popen([PROGRAM, *arguments], stdin=subprocess.DEVNULL, stdout=slave, stderr=slave if stderr_too else subprocess.PIPE, env=environment)
        os.close(slave)
        output, end = b'', time.monotonic() + TIMEOUT_S
        while time.monotonic() < end:
            ready, _, _ = select.select([master], [], [], 1)
            if not ready:
                continue
            try:
                piece = os.read(master, 65536)
            except OSError:
                break
            if not piece:
                break
            output += piece
        process.wait(timeout=TIMEOUT_S)
        os.close(master)
        if process.stderr:
            process.stderr.close()
        return output.decode(), process.returncode

    def test_table(self):
        text, code = self.in_terminal('segment', PICTURE, 'fruit', '--threshold', '1', stderr_too=False)
        self.assertEqual(code, 0)
        self.assertIn('"fruit": 0 found', text)
        self.assertIn('note: nothing found', text)
        self.assertNotIn('{', text)

    def test_json_when_asked(self):
        text, code = self.in_terminal('segment', PICTURE, 'fruit', '--format', 'json', *LOW, stderr_too=False)
        self.assertEqual(code, 0)
        self.assertEqual(len(json.loads(text)['images']), 1)

    def test_table_and_file(self):
        text, code = self.in_terminal('segment', PICTURE, 'fruit', '-o', self.path('out.json'), *LOW, stderr_too=False)
        self.assertEqual(code, 0)
        self.assertIn('"fruit"', text)
        with open(self.path('out.json')) as f:
            self.assertEqual(len(json.load(f)['images']), 1)

    def test_progress(self):
        many = [PICTURE] * 24
        arguments = [a for p in many for a in ('--picture', p)]
        text, code = self.in_terminal('segment', *arguments, 'fruit', 'gift', '-j', '1', *LOW)
        self.assertEqual(code, 0)
        self.assertRegex(text, r'\r\x1b\[K\[\d+/24\] check\.png  (picture|phrase) \d+/\d+')
        self.assertTrue(re.search(r'\r\x1b\[K[^\x1b]*check\.png  224 x 224', text.replace('\r\n', '\n')[-6000:]) or '\r\x1b[K' + PICTURE in text)
        quiet, code = self.in_terminal('segment', *arguments, 'fruit', '-q', *LOW)
        self.assertEqual(code, 0)
        self.assertNotIn('\x1b', quiet)

    def test_progress_of_everything(self):
        text, code = self.in_terminal('everything', PICTURE, '--points-per-side', '48', '--points-per-batch', '16')
        self.assertEqual(code, 0)
        self.assertRegex(text, r'\r\x1b\[Kcheck\.png  points \d+/2304')
        quiet, code = self.in_terminal('everything', PICTURE, '--points-per-side', '48', '-q')
        self.assertEqual((code, '\x1b' in quiet), (0, False))

    def test_no_progress_in_a_pipe(self):
        done = run('segment', *[a for p in [PICTURE] * 6 for a in ('--picture', p)], 'fruit', *LOW)
        self.assertEqual(done.stderr, b'')


class Cancel(Case):
    def cancelled(self, number, code):
        arguments = [a for p in [PICTURE] * 2000 for a in ('--picture', p)]
        out = self.path('out.json')
        process = subprocess.Popen([PROGRAM, 'segment', *arguments, '--phrase', 'fruit', '-v', '-o', out, '--overlay', self.path('drawn'), *LOW],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, 'STENCIL_MODEL': MODEL})
        try:
            for line in process.stderr:
                if b'found in' in line:
                    break
            process.send_signal(number)
            sent = time.monotonic()
            rest, errors = process.communicate(timeout=TIMEOUT_S)
            took = time.monotonic() - sent
        finally:
            process.kill()
        self.assertEqual(process.returncode, code)
        self.assertEqual(rest, b'')
        self.assertIn(b'stencil: cancelled; no results were written', errors)
        self.assertLess(took, 20)  # the library promises a second; a busy machine and a sanitizer take longer
        self.assertEqual(os.listdir(self.folder), ['drawn'])
        for name in os.listdir(self.path('drawn')):
            self.assertTrue(name.endswith('.overlay.png'), name)
            self.assertEqual(read_png(self.path('drawn', name))[:2], (224, 224))

    def test_interrupt(self):
        self.cancelled(signal.SIGINT, 130)

    def test_terminate(self):
        self.cancelled(signal.SIGTERM, 143)


class Manual(Case):
    """Man page, completions and docs/cli.md name what the program has."""

    def texts(self):
        for name in ('docs/stencil.1', 'docs/cli.md', 'docs/completions/stencil.bash', 'docs/completions/_stencil', 'docs/completions/stencil.fish'):
            with open(os.path.join(TREE, name)) as f:
                yield name, f.read()

    def options(self, command):
        texts = [self.ok(run('help', command))]
        if command == 'label':
            texts += [self.ok(run(command, verb, '--help')) for verb in ('sweep', 'export', 'sheet')]
        return re.findall(r'(?m)^  (?:-(\w), |    )--([a-z-]+)', '\n'.join(texts))

    def test_every_option_is_there(self):
        for command in ('segment', 'label', 'click', 'concept', 'everything', 'encode', 'quantize', 'info', 'check', 'bench'):
            found = self.options(command)
            self.assertGreater(len(found), 4)
            for name, text in self.texts():
                plain = text.replace('\\-', '-').replace('\\', '')
                for letter, option in found:
                    if name.endswith('.fish'):
                        self.assertRegex(plain, r'-l %s\b' % option, (name, command))
                    else:
                        self.assertRegex(plain, r'--%s\b' % option, (name, command))

    def test_no_option_that_is_not(self):
        every = {option for command in ('segment', 'label', 'click', 'concept', 'everything', 'encode', 'quantize', 'info', 'check', 'bench') for _, option in self.options(command)} | {'version'}
        for name, text in self.texts():
            plain = text.replace('\\-', '-')
            for option in re.findall(r'(?<![\w-])--([a-z][a-z-]+)', plain):
                self.assertIn(option, every, name)

    def test_commands(self):
        for name, text in self.texts():
            for command in COMMANDS:
                self.assertRegex(text, r'\b%s\b' % command, name)

    def test_exit_codes(self):
        with open(os.path.join(TREE, 'src', 'cli', 'cli.h')) as f:
            codes = dict(re.findall(r'ST_EXIT_(\w+) = (\d+)', f.read()))
        self.assertEqual(codes, {'OK': '0', 'PARTLY': '1', 'USAGE': '2', 'MODEL': '3', 'OUTPUT': '4', 'INTERNAL': '5', 'SIGNAL': '128'})
        for name, text in list(self.texts())[:2]:
            for code in ('0', '1', '2', '3', '4', '5', '130', '143'):
                self.assertRegex(text, r'(?m)^(\.B|\|) %s\b' % code, name)

    def test_man_page_formats(self):
        done = subprocess.run(['groff', '-man', '-Tutf8', '-ww', os.path.join(TREE, 'docs', 'stencil.1')], capture_output=True)
        self.assertEqual((done.returncode, done.stderr), (0, b''))

    def test_completions_parse(self):
        for shell, name in (('bash', 'stencil.bash'), ('zsh', '_stencil'), ('fish', 'stencil.fish')):
            done = subprocess.run([shell, '-n', os.path.join(TREE, 'docs', 'completions', name)], capture_output=True)
            self.assertEqual((done.returncode, done.stderr), (0, b''), shell)

    def test_bash_completion_works(self):
        script = '''
            source %s
            complete_words() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _stencil; printf '%%s\\n' "${COMPREPLY[@]}"; }
            complete_words stencil se; echo --; complete_words stencil segment --max; echo --; complete_words stencil segment --format c
            echo --; complete_words stencil help in
        ''' % os.path.join(TREE, 'docs', 'completions', 'stencil.bash')
        done = subprocess.run(['bash', '-c', script], capture_output=True, text=True)
        self.assertEqual(done.stderr, '')
        self.assertEqual([set(p.split()) for p in done.stdout.split('--\n')][0], {'segment'})
        self.assertIn('--max-detections', done.stdout)
        self.assertIn('\ncoco\n', done.stdout)
        self.assertTrue(done.stdout.endswith('info\n'))


if __name__ == '__main__':
    if not PROGRAM:
        raise SystemExit(__doc__)
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
