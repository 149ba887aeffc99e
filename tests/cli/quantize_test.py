#!/usr/bin/env python3
"""quantize_test.py PROGRAM [CLASS]: `stencil quantize` and what its files are good for. The demo model is quantised; Python's standard library only."""
import filecmp
import json
import os
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import unittest

from cli_test import Case, MODEL, PICTURE, PROGRAM, TIMEOUT_S, TREE, run, runs

SCENE = os.path.join(MODEL, 'scene.png')
WEIGHTS = os.path.join(MODEL, 'model.safetensors')
PHRASES = ('food', 'pizza', 'slice of pizza', 'hamburger', 'umbrella', 'flower', 'tulip')
FAINT = ('--threshold', '0.1')  # for more instances than the few that are there
SEEN = 0.2                      # above it, an instance of one model must be one of the other's, which may have it a little below
LAYERS = ('vit.blocks.', 'text.blocks.', 'text.proj', 'fusion.layers.', 'dec.layers.')


def header(path):
    with open(path, 'rb') as f:
        return json.loads(f.read(struct.unpack('<Q', f.read(8))[0]))


class QuantizeCase(Case):
    """The demo model in int8, made once."""

    @classmethod
    def setUpClass(cls):
        cls.own = tempfile.mkdtemp(prefix='quantize_test.')
        cls.addClassCleanup(shutil.rmtree, cls.own)
        cls.int8 = os.path.join(cls.own, 'int8.safetensors')
        cls.made = run('quantize', MODEL, '-o', cls.int8, '--json', '-j', '2', model=None)
        if cls.made.returncode:
            raise AssertionError(cls.made.stderr)

    def info(self, model):
        return json.loads(self.ok(run('info', '--json', '-j', '2', model=model)))


def bits(mask):
    """A mask as one long number, and its area."""
    value, ink = 0, 0
    for count in runs(mask['counts']):
        value = (value << count) | ((1 << count) - 1 if ink else 0)
        ink ^= 1
    return value


def iou(a, b):
    a, b = bits(a), bits(b)
    return bin(a & b).count('1') / bin(a | b).count('1') if a | b else None


class QuantizeConvert(QuantizeCase):
    def test_report(self):
        doc = json.loads(self.made.stdout)
        self.assertEqual(list(doc), ['file', 'int8', 'kept', 'mean_error', 'largest_error', 'layers'])
        self.assertEqual((doc['file'], doc['int8'] + doc['kept']), (self.int8, len(doc['layers'])))
        self.assertGreater(doc['int8'], 100)
        self.assertTrue(0 < doc['mean_error'] < doc['largest_error'] <= 0.05, doc)
        self.assertEqual(len({layer['layer'] for layer in doc['layers']}), len(doc['layers']))
        for layer in doc['layers']:
            self.assertTrue(layer['layer'].startswith(LAYERS) and layer['layer'].endswith('.weight'), layer)
            self.assertEqual(set(layer) - {'error'}, {'layer', 'kept'} if 'kept' in layer else {'layer', 'smoothing'})
        used = [layer for layer in doc['layers'] if 'kept' not in layer]
        self.assertEqual(len(used), doc['int8'])
        self.assertAlmostEqual(max(layer['error'] for layer in used), doc['largest_error'], 6)
        self.assertGreater(len({layer['smoothing'] for layer in used}), 1)
        self.assertRegex(self.made.stderr.decode(), r'^stencil: wrote .*int8\.safetensors: %d layers in int8, mean error 0\.\d+, largest 0\.\d+; %d stay as they are\n$' % (doc['int8'], doc['kept']))

    def test_file(self):
        source, copy = header(WEIGHTS), header(self.int8)
        about = json.loads(copy.pop('__metadata__')['stencil'])
        doc = json.loads(self.made.stdout)
        self.assertEqual((about['kind'], about['made_from']), ('int8 weights', self.info(MODEL)['id']))
        self.assertEqual([layer['layer'] for layer in about['int8']], [layer['layer'] for layer in doc['layers'] if 'kept' not in layer])
        self.assertEqual({layer['layer']: layer['why'] for layer in about['kept']}, {layer['layer']: layer['kept'] for layer in doc['layers'] if 'kept' in layer})
        with open(os.path.join(MODEL, 'config.json')) as f:
            self.assertEqual(about['config'], json.load(f))
        source.pop('__metadata__', None)
        matrices = {name for name, tensor in copy.items() if tensor['dtype'] == 'I8' and source[name]['dtype'] != 'I8'}
        self.assertEqual(len(matrices), doc['int8'])  # in this layout a layer is a tensor
        for name in matrices:
            rows, columns = source[name]['shape']
            self.assertEqual(copy.pop(name)['shape'], [rows, columns])
            scale = copy.pop(name + '_scale')
            self.assertEqual((scale['dtype'], scale['shape']), ('F32', [rows]))
            smooth = copy.pop(name + '_smooth', None)
            self.assertTrue(smooth is None or (smooth['dtype'], smooth['shape']) == ('F32', [1, columns]), smooth)
        self.assertEqual({k: (v['dtype'], v['shape']) for k, v in copy.items()}, {k: (v['dtype'], v['shape']) for k, v in source.items() if k not in matrices})
        self.assertLess(os.path.getsize(self.int8), 0.9 * os.path.getsize(WEIGHTS))  # most of it is fp16 embeddings

    def test_info(self):
        doc, before = self.info(self.int8), self.info(MODEL)
        self.assertEqual((doc['precision'], before['precision']), ('int8', 'fp32'))
        self.assertEqual(set(doc['dtypes'].split(' + ')), {'F16', 'F32', 'I8'} | set(before['dtypes'].split(' + ')))
        self.assertNotEqual(doc['id'], before['id'])
        self.assertEqual([doc[k] for k in ('version', 'layout', 'input_size')], [before[k] for k in ('version', 'layout', 'input_size')])
        text = self.ok(run('info', model=self.int8))
        self.assertRegex(text, r'(?m)^computes +int8$')
        self.assertRegex(text, r'(?m)^stored .*\bI8\b')

    def test_check(self):
        doc = json.loads(self.ok(run('check', '--json', model=self.int8)))
        self.assertEqual(doc['failed'], 0)
        self.assertGreater(len(doc['lines']), 30)

    def test_threads_and_an_older_file_do_not_matter(self):
        out = self.path('again.safetensors')
        with open(out, 'w') as f:
            f.write('older')
        self.assertEqual(self.ok(run('quantize', '-m', MODEL, '--output', out, '-j', '1', '-q', model=None)), '')
        self.assertTrue(filecmp.cmp(out, self.int8, shallow=False))
        self.assertEqual(os.listdir(self.folder), ['again.safetensors'])

    def test_calibrate(self):
        """On pictures and phrases of one's own; what is no picture is passed over."""
        os.mkdir(self.path('photos'))
        for i, name in enumerate(('b.png', 'c.png', 'd.png')):
            shutil.copy(SCENE if i else PICTURE, self.path('photos', name))
        with open(self.path('photos', 'a.txt'), 'w') as f:
            f.write('no picture')
        out = self.path('out.safetensors')
        done = run('quantize', MODEL, '-o', out, '--calibrate', self.path('photos'), '--pictures', '2', '--phrase', 'fruit', '--phrase', 'animal', '-v', '--json', model=None)
        doc = json.loads(self.ok(done))
        says = done.stderr.decode()
        for part in ('passed over: ', 'a.txt', 'measuring on %s' % self.path('photos', 'b.png'), 'measuring on %s' % self.path('photos', 'c.png')):
            self.assertIn(part, says)
        self.assertNotIn('d.png', says)
        self.assertEqual(json.loads(header(out)['__metadata__']['stencil'])['pictures'], 2)
        self.assertNotEqual([layer.get('error') for layer in doc['layers']], [layer.get('error') for layer in json.loads(self.made.stdout)['layers']])

    def test_no_smooth(self):
        out = self.path('out.safetensors')
        doc = json.loads(self.ok(run('quantize', MODEL, '-o', out, '--no-smooth', '--json', model=None)))
        self.assertEqual({layer.get('smoothing') for layer in doc['layers']} - {None}, {0})
        self.assertFalse([name for name in header(out) if name.endswith('_smooth')])
        self.assertGreater(doc['mean_error'], json.loads(self.made.stdout)['mean_error'])

    def test_nothing_good_enough(self):
        """Then the copy is its source, bit for bit: it has the same id."""
        out = self.path('out.safetensors')
        doc = json.loads(self.ok(run('quantize', MODEL, '-o', out, '--max-error', '0', '--json', '-q', model=None)))
        self.assertEqual((doc['int8'], doc['kept'], doc['mean_error']), (0, len(doc['layers']), 0))
        self.assertTrue(all('bar 0' in layer['kept'] or 'never used' in layer['kept'] or 'too small' in layer['kept'] for layer in doc['layers']), doc['layers'][:3])
        self.assertEqual(self.info(out)['id'], self.info(MODEL)['id'])
        self.assertEqual(self.info(out)['precision'], 'fp32')

    def test_packed_layers(self):
        """In Meta's layout q, k and v are one tensor: they are listed as what became of it."""
        tiny = os.path.join(TREE, 'tests', 'golden', 'data', 'tiny-meta', 'model.safetensors')
        out = self.path('out.safetensors')
        bars = sorted(layer['error'] for layer in json.loads(self.ok(run('quantize', tiny, '-o', out, '--json', '-q', model=None)))['layers'] if layer.get('error'))
        doc = json.loads(self.ok(run('quantize', tiny, '-o', out, '--max-error', str(bars[len(bars) // 2]), '--json', '-q', model=None)))
        self.assertTrue(doc['int8'] and doc['kept'])
        tensors = header(out)
        self.assertTrue(any(layer.get('kept') == 'stored in one tensor with a layer that stays as it is' for layer in doc['layers']))
        for block in range(4):
            name = 'detector.backbone.vision_backbone.trunk.blocks.%d.attn.qkv.weight' % block
            fates = {'kept' not in layer for layer in doc['layers'] if layer['layer'] in ['vit.blocks.%d.attn.%s.weight' % (block, part) for part in 'qkv']}
            self.assertEqual(fates, {tensors[name]['dtype'] == 'I8'} if name in tensors else set())


class QuantizeAnswers(QuantizeCase):
    def segment(self, model, *arguments):
        return json.loads(self.ok(run('segment', *arguments, model=model)))['images'][0]['results']

    def test_the_same_instances(self):
        ious, apart = [], []
        for plain, small in zip(self.segment(MODEL, SCENE, *PHRASES, *FAINT), self.segment(self.int8, SCENE, *PHRASES, *FAINT)):
            for these, those in ((plain, small), (small, plain)):
                left = list(those['instances'])
                for instance in (i for i in these['instances'] if i['score'] > SEEN):  # those whose scores are about equal may change places
                    other = min(left, key=lambda o: max(abs(a - b) for a, b in zip(o['box'], instance['box'])))
                    left.remove(other)
                    self.assertLess(max(abs(a - b) for a, b in zip(other['box'], instance['box'])), 4.5)  # pixels of 448: 1 %
                    apart.append(abs(other['score'] - instance['score']))
                    overlap = iou(instance['mask'], other['mask'])
                    ious += [] if overlap is None else [overlap]
        self.assertGreater(len(apart), 60)  # each counts from both sides
        self.assertGreater(len(ious), 60)
        self.assertLess(statistics.median(apart), 0.01)
        self.assertLess(max(apart), 0.1)  # of a score that is undecided
        self.assertGreaterEqual(statistics.median(ious), 0.98)
        self.assertGreater(min(ious), 0.9)

    def test_threads_and_company_do_not_matter(self):
        together = self.segment(self.int8, SCENE, *PHRASES, *FAINT, '-j', '1')
        self.assertEqual(together, self.segment(self.int8, SCENE, *PHRASES, *FAINT, '-j', '3'))
        for phrase, result in zip(PHRASES, together):
            self.assertEqual([result], self.segment(self.int8, SCENE, phrase, *FAINT, '-j', '2'))

    def test_files_of_one_model_are_not_the_others(self):
        boxes = ('--box', '113,151,162,203')
        for model, name in ((MODEL, 'fp32'), (self.int8, 'int8')):
            self.ok(run('concept', 'make', PICTURE, *boxes, '-o', self.path(name + '.concept'), model=model))
            self.ok(run('encode', PICTURE, '-o', self.path(name + '.features'), model=model))
        for model, own, other in ((MODEL, 'fp32', 'int8'), (self.int8, 'int8', 'fp32')):
            self.ok(run('segment', SCENE, '--concept', self.path(own + '.concept'), model=model))
            self.ok(run('segment', '--features', self.path(own + '.features'), 'fruit', model=model))
            ids = [self.info(m)['id'][:8] for m in (MODEL, self.int8)]
            for arguments in ((SCENE, '--concept', self.path(other + '.concept')), ('--features', self.path(other + '.features'), 'fruit')):
                done = run('segment', *arguments, model=model)
                self.assertNotEqual(done.returncode, 0)
                self.assertNotIn(b'instances', done.stdout)
                for part in [*ids, other]:
                    self.assertIn(part, done.stderr.decode())

    def test_clicks_and_everything(self):
        for words in (('segment', PICTURE, '--point', '140,175'), ('everything', PICTURE, '--points-per-side', '3', '--pred-iou-thresh', '0', '--stability-score-thresh', '0')):
            image, = json.loads(self.ok(run(*words, model=self.int8)))['images']
            self.assertTrue(image.get('objects') or image.get('results') or image.get('masks'), image)


class QuantizeRefused(QuantizeCase):
    def refuse(self, *arguments, says, code=2, **more):
        more.setdefault('model', None)
        self.refused('quantize', *arguments, says=says, code=code, **more)
        self.assertEqual(os.listdir(self.folder), [])

    def test_usage(self):
        out = self.path('out.safetensors')
        for arguments, says in (
                (('-o', out), 'expected a model'),
                ((MODEL,), 'expected -o FILE'),
                ((MODEL, MODEL, '-o', out), 'takes one model'),
                ((MODEL, '-m', MODEL, '-o', out), 'takes one model'),
                ((MODEL, '-o', out, '--pictures', '0'), 'expected 1 to 64'),
                ((MODEL, '-o', out, '--pictures', '65'), 'expected 1 to 64'),
                ((MODEL, '-o', out, '--max-error', '1.5'), 'from 0 to 1'),
                ((MODEL, '-o', out, '--max-error', 'nan'), 'from 0 to 1'),
                ((MODEL, '-o', out, '-j', '0'), 'from 1 to 1024'),
                ((MODEL, '-o', out, '--calibrat', 'x'), 'did you mean --calibrate?'),
                ((MODEL, '-o', out, *['--phrase', 'cat'] * 65), 'at most 64 phrases')):
            self.refuse(*arguments, says=says)

    def test_model(self):
        out = self.path('out.safetensors')
        self.refuse(self.int8, '-o', out, says='quantised already; start from the published weights', code=3)
        self.refuse('none.pt', '-o', out, says='none.pt', code=3)
        self.refuse(PICTURE, '-o', out, says='check.png', code=3)

    def test_pictures(self):
        out, empty = self.path('out.safetensors'), tempfile.mkdtemp(prefix='quantize_test.')
        self.addCleanup(shutil.rmtree, empty)
        for folder in (empty, os.path.join(empty, 'none'), PICTURE):
            self.refuse(MODEL, '-o', out, '--calibrate', folder, says='no folder with a picture in it')
        with open(os.path.join(empty, 'text.png'), 'w') as f:
            f.write('no picture')
        self.refuse(MODEL, '-o', out, '--calibrate', empty, says='no folder with a picture in it')

    def test_the_model_is_never_overwritten(self):
        model = os.path.join(self.own, 'copy')
        shutil.copytree(MODEL, model)
        self.addCleanup(shutil.rmtree, model)
        weights = os.path.join(model, 'model.safetensors')
        os.symlink(weights, os.path.join(model, 'alias'))
        before = os.stat(weights).st_mtime_ns
        for given, output in ((model, weights), (weights, weights), (weights, os.path.join(model, 'alias')), (model, os.path.join(model, 'config.json'))):
            self.refuse(given, '-o', output, says='would overwrite the model')
        self.assertEqual(os.stat(weights).st_mtime_ns, before)
        self.assertTrue(filecmp.cmp(weights, WEIGHTS, shallow=False))

    def test_places_that_cannot_be_written(self):
        self.refuse(MODEL, '-o', self.path('none', 'out.safetensors'), says='none', code=4)
        self.refuse(MODEL, '-o', self.own, says=self.own, code=4)
        if os.path.exists('/dev/full'):
            self.refuse(MODEL, '-o', '/dev/full', says='/dev/full', code=4)
            with open('/dev/full', 'w') as full:
                process = subprocess.run([PROGRAM, 'quantize', MODEL, '-o', self.path('out.safetensors'), '--json'], stdout=full, stderr=subprocess.PIPE, timeout=TIMEOUT_S)
            self.assertEqual(process.returncode, 4)
            self.assertIn(b'stencil', process.stderr)


class QuantizeCancel(QuantizeCase):
    def cancelled(self, number, code):
        photos = self.path('photos')
        os.mkdir(photos)
        for i in range(64):
            os.symlink(PICTURE, os.path.join(photos, '%02d.png' % i))
        arguments = ['quantize', MODEL, '-o', self.path('out.safetensors'), '--calibrate', photos, '--pictures', '64', '-v']
        for i in range(64):
            arguments += ['--phrase', 'phrase %d' % i]
        process = subprocess.Popen([PROGRAM, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            for line in process.stderr:
                if b'layout hf' in line:  # the model is open: 4,096 questions begin
                    break
            process.send_signal(number)
            out, errors = process.communicate(timeout=TIMEOUT_S)
        finally:
            process.kill()
        self.assertEqual((process.returncode, out), (code, b''), errors)
        self.assertIn(b'cancelled', errors)
        self.assertEqual(os.listdir(self.folder), ['photos'])

    def test_interrupt(self):
        self.cancelled(signal.SIGINT, 130)

    def test_terminate(self):
        self.cancelled(signal.SIGTERM, 143)


if __name__ == '__main__':
    if not PROGRAM:
        raise SystemExit(__doc__)
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
