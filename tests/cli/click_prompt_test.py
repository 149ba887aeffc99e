#!/usr/bin/env python3
"""click_prompt_test.py PROGRAM [CLASS]: the prompts of `stencil segment` that are no phrase: points, regions, masks, concepts, saved pictures."""
import filecmp
import json
import os
import shutil
import struct
import sys
import unittest

from click_case import (BESIDE, BOX, ClickCase, FIRST, GRID, NO_CLICKS, OTHER_MODEL, POINT, REGION, SECOND, SIDE, compressed, larger_model, region, square, without, write_gray,
                        write_npy)
from cli_test import LOW, MODEL, PICTURE, PROGRAM, read_png, run, runs


class Objects(ClickCase):
    """Points, regions and masks cut out one object each."""

    def test_keys(self):
        result = self.one(PICTURE, '--point', POINT)
        self.assertEqual(list(result), ['prompt', 'object_score', 'candidates', 'multimask', 'hole_area', 'hf'])
        self.assertEqual(result['prompt'], {'points': [{'x': 140.0, 'y': 175.0, 'label': 1}], 'region': None, 'mask': None})
        self.assertEqual((result['multimask'], result['hole_area'], result['hf'], len(result['candidates'])), (True, 13, False, 3))
        for rank, c in enumerate(result['candidates']):
            self.assertEqual(list(c), ['rank', 'index', 'predicted_iou', 'box', 'area', 'mask'])
            self.assertEqual(c['rank'], rank)
            counts = runs(c['mask']['counts'])
            self.assertEqual((sum(counts), sum(counts[1::2])), (SIDE * SIDE, c['area']))

    def test_one_region_and_points_are_one_object(self):
        result = self.one(PICTURE, '--region', REGION, '--point', POINT, '--point', BESIDE)
        self.assertEqual(result['prompt'], {'points': [{'x': 140.0, 'y': 175.0, 'label': 1}, {'x': 90.0, 'y': 120.0, 'label': 0}], 'region': [113, 151, 162, 203], 'mask': None})

    def test_several_regions_are_several_objects(self):
        regions = (REGION, '10,20,90,80.5', '0,0,224,224')
        together = self.objects(PICTURE, *[w for r in regions for w in ('--region', r)])
        self.assertEqual([r['prompt']['region'] for r in together], [[113, 151, 162, 203], [10, 20, 90, 80.5], [0, 0, 224, 224]])
        for words, result in zip(regions, together):
            self.assertEqual([result], self.objects(PICTURE, '--region', words))

    def test_several_points_and_several_regions_at_once(self):
        """Which region would a point belong to? Not guessed. Conversations keep them apart: interleaved, each object gives what it gives alone."""
        several = ('--region', REGION, '--region', '10,20,90,80')
        self.refused('segment', PICTURE, *several, '--point', POINT, '--point', BESIDE, says='--point with 2 regions: several regions are several objects')
        self.refused('segment', PICTURE, *several, '--mask', write_gray(self.path('m.png'), square), says='--mask with 2 regions')
        said = [[region(113, 151, 162, 203), FIRST, SECOND], [region(10, 20, 90, 80), {'op': 'point', 'x': 50, 'y': 50}, {'op': 'point', 'x': 12, 'y': 70, 'label': 0}]]
        alone = [self.good(self.talk(), *verbs) for verbs in said]
        talks = [self.talk(), self.talk()]
        for step in range(3):
            for k in (0, 1):
                self.assertEqual(self.good(talks[k], said[k][step]), alone[k][step:step + 1])
        self.assertNotEqual(alone[0][2]['candidates'], alone[1][2]['candidates'])

    def test_a_phrase_does_not_mix_with_points(self):
        concept = self.path('c.concept')
        self.ok(run('concept', 'make', PICTURE, '--box', BOX, '-o', concept))
        for one in (('--point', POINT), ('--region', REGION), ('--mask', 'm.png')):
            for other, name in ((('fruit',), 'a phrase'), (('--box', BOX), '--box'), (('--concept', concept), '--concept')):
                said = self.refused('segment', PICTURE, *one, *other, says='%s and %s in one command' % (name, one[0]))
                self.assertIn('stencil segment PICTURE PHRASE', said)
                self.assertIn('stencil segment PICTURE --point X,Y', said)
        for option in (('--threshold', '0.3'), ('--mask-threshold', '0.3'), ('--max-detections', '3'), ('--boxes-only',), ('--hf-text-only',)):
            self.refused('segment', PICTURE, '--point', POINT, *option, says='%s belongs to phrases' % option[0])
        for option in (('--multimask', 'on'), ('--hole-area', '3'), ('--hf',)):
            self.refused('segment', PICTURE, 'fruit', *option, says='%s belongs to --point' % option[0])
        self.refused('segment', PICTURE, PICTURE, '--point', POINT, says='--point belongs to one picture')

    def test_formats(self):
        asked = (PICTURE, '--region', REGION, '--region', '10,20,90,80')
        plain = self.objects(*asked)
        coco = self.document(*asked, '--format', 'coco')
        self.assertEqual(coco['categories'], [{'id': 1, 'name': 'object'}])
        self.assertEqual([(a['score'], a['area'], a['segmentation']) for a in coco['annotations']],
                         [(c['predicted_iou'], c['area'], c['mask']) for r in plain for c in r['candidates'][:1]])
        out = self.path('masks')
        self.assertEqual(self.ok(run('segment', *asked, '--format', 'png', '-o', out)), '')
        with open(os.path.join(out, 'results.json')) as f:
            candidates = [c for r in json.load(f)['images'][0]['results'] for c in r['candidates']]
        self.assertEqual(len(candidates), sum(len(r['candidates']) for r in plain))
        for c in candidates:
            self.assertEqual(sum(row.count(255) for row in read_png(c['mask_file'])[3]), c['area'])
        self.assertIn('check_object-1_001.png', os.listdir(out))
        self.assertIn('object 2 (region): object score', self.ok(run('segment', *asked, '--format', 'table')))
        self.ok(run('segment', *asked, '--overlay', self.path('o.png')))
        self.assertNotEqual(read_png(self.path('o.png'))[3], read_png(PICTURE)[3])

    def test_threads_do_not_matter(self):
        asked = ('segment', PICTURE, '--region', REGION, '--point', POINT)
        texts = {self.ok(run(*asked, '-j', n)) for n in '1123'}
        self.assertEqual(len(texts), 1)

    def test_a_model_without_the_head(self):
        self.refused('segment', PICTURE, '--point', POINT, says='', code=3, model=NO_CLICKS)
        self.refused('encode', PICTURE, '--clicks', '-o', self.path('x'), says='', code=3, model=NO_CLICKS)


class Fields(ClickCase):
    """Every field of a prompt arrives: the answer depends on it. Nothing is guessed, wrapped or clamped."""

    def test_points_and_regions(self):
        mask, other = write_gray(self.path('m.png'), square), write_gray(self.path('n.png'), lambda x, y: square(x, y - 8))
        base = ('--point', '140,175', '--point', '90,120:neg', '--region', '100,140,180,210', '--multimask', 'on')
        change = lambda old, new: tuple(new if w == old else w for w in base)
        corners = '100,140,180,210'
        asked = {
            'base': base, 'x': change('140,175', '143,175'), 'y': change('140,175', '140,171'), 'label': change('140,175', '140,175:neg'), 'second x': change('90,120:neg', '94,120:neg'),
            'second y': change('90,120:neg', '90,124:neg'), 'second label': change('90,120:neg', '90,120'), 'one point less': ('--point', '140,175') + base[4:], 'no region': base[:4] + base[6:],
            'x0': change(corners, '104,140,180,210'), 'y0': change(corners, '100,144,180,210'), 'x1': change(corners, '100,140,184,210'), 'y1': change(corners, '100,140,180,214'),
            'mask': base + ('--mask', mask), 'other mask': base + ('--mask', other), 'multimask off': base[:-1] + ('off',), 'multimask auto': base[:-2], 'a point more': base + ('--point', '150,150'),
            'hf': base + ('--hf',)}
        answers = {name: without(self.one(PICTURE, *words), 'prompt', 'hf', 'hole_area', 'multimask') for name, words in asked.items()}
        self.assertEqual(answers.pop('multimask auto'), answers['multimask off'])  # two points and a region
        self.all_differ(answers)
        self.assertNotEqual(*[self.one(PICTURE, *base, '--hole-area', n)['candidates'] for n in ('0', '4000')])
        self.assertEqual(self.one(PICTURE, *change('140,175', '140,175:pos')), self.one(PICTURE, *base))

    def test_conversation(self):
        mask, other = write_gray(self.path('m.png'), square), write_gray(self.path('n.png'), lambda x, y: square(x, y - 8))
        rle = lambda n: {'op': 'mask', 'mask': {'size': [SIDE, SIDE], 'counts': compressed([20000, n, SIDE * SIDE - 20000 - n])}}
        asked = {'point': [FIRST], 'x': [{**FIRST, 'x': 143}], 'y': [{**FIRST, 'y': 171}], 'label': [{**FIRST, 'label': 0}], 'region': [region(100, 140, 180, 210)],
                 'x0': [region(104, 140, 180, 210)], 'y0': [region(100, 144, 180, 210)], 'x1': [region(100, 140, 184, 210)], 'y1': [region(100, 140, 180, 214)],
                 'mask file': [{'op': 'mask', 'file': mask}], 'other mask file': [{'op': 'mask', 'file': other}], 'runs': [rle(5000)], 'other runs': [rle(9000)],
                 'two points': [FIRST, SECOND], 'in another order': [SECOND, FIRST], 'chosen': [FIRST, {'op': 'choose', 'rank': 1}, SECOND],
                 'region, then point': [region(100, 140, 180, 210), FIRST]}
        talk = self.talk()
        last = {name: self.good(talk, {'op': 'reset'}, *verbs)[-1] for name, verbs in asked.items()}
        self.all_differ({name: (r['object_score'], r['candidates']) for name, r in last.items()})
        self.all_differ({name: r['prompt'] for name, r in last.items() if 'runs' not in name})  # the echo, too
        twice = self.good(talk, {'op': 'reset'}, region(10, 10, 60, 60), region(100, 140, 180, 210))[-1]  # replaces the one before
        self.assertEqual((twice['verbs'], twice['prompt']['region']), (2, [100, 140, 180, 210]))
        self.assertEqual(self.good(talk, {'op': 'reset'}, FIRST), self.good(talk, {'op': 'reset'}, {**FIRST, 'label': 1}))  # the label that is meant when there is none

    def test_examples(self):
        base = ('--phrase', 'fruit', '--box', '60,80,130,155', '--box', '10,10,40,50:neg')
        change = lambda old, new: tuple(new if w == old else w for w in base)
        box, negative = base[3], base[5]
        asked = {'base': base, 'phrase': change('fruit', 'gift'), 'no phrase': base[2:], 'x0': change(box, '66,80,130,155'), 'y0': change(box, '60,86,130,155'), 'x1': change(box, '60,80,138,155'),
                 'y1': change(box, '60,80,130,163'), 'sign': change(box, box + ':neg'), 'other sign': change(negative, '10,10,40,50'), 'other box': change(negative, '10,10,48,50:neg'),
                 'one box': base[:4], 'no box': base[:2], 'a box more': base + ('--box', '100,20,150,60')}
        results = {name: self.one(PICTURE, *words, '--threshold', '0') for name, words in asked.items()}
        self.all_differ({name: without(r, 'prompt') for name, r in results.items()})
        self.all_differ({name: r['prompt'] for name, r in results.items()})
        every = ('--threshold', '0')  # all queries: more than a threshold or a limit leaves
        options = {'base': every, 'threshold': ('--threshold', '0.4'), 'mask threshold': every + ('--mask-threshold', '0.7'), 'max detections': every + ('--max-detections', '1'), 'boxes only': every + ('--boxes-only',)}
        self.all_differ({name: self.one(PICTURE, 'fruit', *words)['instances'] for name, words in options.items()})
        self.assertNotEqual(*[self.one(PICTURE, 'fruit', *LOW, *w)['presence'] for w in ((), ('--hf-text-only',))])

    def test_concepts(self):
        asked = {}
        for name, words in {'a': ('--box', BOX), 'b': ('--box', '10,10,40,50'), 'negative': ('--box', BOX, '--box', '10,10,40,50:neg'), 'positive': ('--box', BOX, '--box', '10,10,40,50'),
                            'phrase': ('--box', BOX, '--phrase', 'fruit')}.items():
            self.ok(run('concept', 'make', PICTURE, *words, '-o', self.path(name)))
            asked[name] = ('--concept', self.path(name))
        asked['a and b'] = asked['a'] + asked['b']
        asked['a twice'] = asked['a'] + asked['a']
        results = {name: self.one(PICTURE, *words, '--threshold', '0') for name, words in asked.items()}
        self.all_differ({name: without(r, 'prompt') for name, r in results.items()})
        self.all_differ({name: r['prompt'] for name, r in results.items()})

    def test_an_example_is_not_a_region(self):
        """The same four numbers under two words are two questions, and the reply says which one was asked."""
        example, this = self.one(PICTURE, '--box', REGION, '--threshold', '0'), self.one(PICTURE, '--region', REGION)
        self.assertEqual(example['prompt'], {'phrase': 'visual', 'boxes': [{'box': [113, 151, 162, 203], 'negative': False}]})
        self.assertEqual(this['prompt'], {'points': [], 'region': [113, 151, 162, 203], 'mask': None})
        self.refused('segment', PICTURE, '--region', REGION + ':neg', says='a region is the object itself')

    def test_pixels_are_not_fractions(self):
        """0.5,0.5 is a place in the first pixel, not the middle."""
        small, middle = (self.one(PICTURE, '--point', p) for p in ('0.5,0.5', '112,112'))
        self.assertEqual(small['prompt']['points'], [{'x': 0.5, 'y': 0.5, 'label': 1}])
        self.assertNotEqual(small['object_score'], middle['object_score'])
        first, whole = (self.one(PICTURE, '--region', r) for r in ('0,0,1,1', '0,0,224,224'))
        self.assertEqual(first['prompt']['region'], [0, 0, 1, 1])
        self.assertNotEqual(first['object_score'], whole['object_score'])

    def test_out_of_range(self):
        for option, value in (('--point', '225,10'), ('--point', '10,224.01'), ('--point', '1000000,5:neg'), ('--region', '10,10,225,20'), ('--region', '10,10,20,225'), ('--box', '10,10,225,20'),
                              ('--box', '10,10,20,224.5:neg')):
            image, = self.document(PICTURE, option, value, *(('fruit',) if option == '--box' else ()), code=1)['images']
            self.assertEqual(list(image), ['file', 'error'])
            self.assertIn('picture of 224 x 224', image['error'], (option, value))
        for option, value in (('--point', '-1,5'), ('--point', '5,-0.5'), ('--point', 'nan,5'), ('--point', '5,inf'), ('--point', '5'), ('--point', '5,6,7'), ('--point', '5,6:no'), ('--point', ''),
                              ('--region', '-1,2,3,4'), ('--region', '1,2,3'), ('--region', '1,2,3,1e99'), ('--box', '-1,2,3,4')):
            self.refused('segment', PICTURE, option + '=' + value, says=option)
        self.refused('concept', 'make', PICTURE, '--box', '10,10,300,20', '-o', self.path('x'), says='picture of 224 x 224', code=1)

    def test_swapped_corners(self):
        for value, says in (('60,10,20,50', 'X0 < X1'), ('10,60,50,20', 'Y0 < Y1'), ('10,10,10,50', 'X0 < X1'), ('10,10,50,10', 'Y0 < Y1')):
            for command in (('segment', PICTURE, '--region', value), ('segment', PICTURE, '--box', value), ('concept', 'make', PICTURE, '--box', value, '-o', self.path('c'))):
                self.refused(*command, says=says)

    def test_masks(self):
        png = write_gray(self.path('m.png'), square)
        logits = write_npy(self.path('m.npy'), [9.0 if square(3.5 * (i % GRID) + 1.75, 3.5 * (i // GRID) + 1.75) else -9.0 for i in range(GRID * GRID)])
        self.assertNotEqual(self.one(PICTURE, '--mask', png)['candidates'], self.one(PICTURE, '--mask', logits)['candidates'])
        self.refused('segment', PICTURE, '--mask', png, '--mask', logits, says='--mask: expected one file')
        for file, says in ((PICTURE, 'coloured'), (write_gray(self.path('small.png'), square, 40, 224), '40 x 224'), (write_gray(self.path('dark.png'), lambda x, y: square(x, y) and 1), 'brightest'),
                           (self.path('none.png'), 'none.png'), (write_npy(self.path('shape.npy'), [0.0] * 9, (3, 3)), '3 x 3, expected 64 x 64'),
                           (write_npy(self.path('inf.npy'), [1.0, float('inf')] * (GRID * GRID // 2)), 'value 1 is inf')):
            self.assertIn(says, self.document(PICTURE, '--mask', file, code=1)['images'][0]['error'])


class Encodings(ClickCase):
    """`stencil encode` and --features."""

    def setUp(self):
        super().setUp()
        self.saved, self.half, self.plain = (self.path(n + '.features') for n in ('saved', 'half', 'plain'))
        for path, words in ((self.saved, ('--clicks',)), (self.half, ('--clicks', '--half')), (self.plain, ())):
            self.assertEqual(self.ok(run('encode', PICTURE, *words, '-o', path)), '')

    def test_the_same_bits_as_the_picture(self):
        for words in (('fruit', 'gift', *LOW), ('fruit', '--box', BOX, *LOW), ('--point', POINT), ('--region', REGION, '--point', BESIDE), ('fruit', *LOW, '--format', 'coco')):
            self.assertEqual(self.ok(run('segment', '--features', self.saved, *words)), self.ok(run('segment', PICTURE, *words)), words)
        self.assertEqual(self.ok(run('segment', '--features', self.plain, 'fruit', *LOW)), self.ok(run('segment', PICTURE, 'fruit', *LOW)))
        said = (FIRST, SECOND, {'op': 'candidates'})
        self.assertEqual(self.good(self.talk('--features', self.saved), *said), self.good(self.talk(), *said))
        made = [self.path('a.concept'), self.path('b.concept')]
        for path, words in zip(made, ((PICTURE,), ('--features', self.saved))):
            self.ok(run('concept', 'make', *words, '--box', BOX, '-o', path))
        self.assertTrue(filecmp.cmp(*made, shallow=False))

    def test_the_picture_beside_it(self):
        self.ok(run('segment', '--features', self.saved, PICTURE, 'fruit', *LOW, '--overlay', self.path('a.png')))
        self.ok(run('segment', PICTURE, 'fruit', *LOW, '--overlay', self.path('b.png')))
        self.assertEqual(read_png(self.path('a.png')), read_png(self.path('b.png')))
        small = write_gray(self.path('small.png'), square, 40, 50)
        self.assertIn('40 x 50', self.document('--features', self.saved, small, 'fruit', code=1)['images'][0]['error'])

    def test_how_the_picture_was_read_is_kept(self):
        self.ok(run('encode', PICTURE, '--resize', 'cpu', '-o', self.plain))
        self.assertEqual(self.document('--features', self.plain, 'fruit', *LOW), self.document(PICTURE, 'fruit', *LOW, '--resize', 'cpu'))

    def test_an_encoding_that_says_nothing(self):
        """One that the library wrote without a text on where the pixels came from."""
        with open(self.plain, 'rb') as f:
            size, = struct.unpack('<Q', f.read(8))
            head, rest = json.loads(f.read(size)), f.read()
        about = json.loads(head['__metadata__']['stencil'])
        del about['source']
        head['__metadata__']['stencil'] = json.dumps(about)
        text = json.dumps(head).encode()
        with open(self.plain, 'wb') as f:
            f.write(struct.pack('<Q', len(text)) + text + rest)
        image, = self.document('--features', self.plain, 'fruit', *LOW)['images']
        direct, = self.document(PICTURE, 'fruit', *LOW)['images']
        self.assertEqual(image, {**direct, 'file': self.plain, 'orientation': None, 'preprocess': None})

    def test_half_is_close(self):
        self.assertLess(os.path.getsize(self.half), 0.52 * os.path.getsize(self.saved))
        whole, half = (self.document('--features', f, 'fruit', '--threshold', '0')['images'][0] for f in (self.saved, self.half))
        self.assertEqual(half['preprocess'], {**whole['preprocess'], 'saved_as': 'fp16'})
        a, b = whole['results'][0], half['results'][0]
        self.assertNotEqual(a['presence'], b['presence'])
        self.assertAlmostEqual(a['presence'], b['presence'], delta=5e-3)
        self.assertEqual(len(a['instances']), len(b['instances']))
        for x, y in zip(a['instances'][:3], b['instances'][:3]):
            self.assertAlmostEqual(x['score'], y['score'], delta=5e-3)
        a, b = (self.one('--features', f, '--point', POINT) for f in (self.saved, self.half))
        self.assertAlmostEqual(a['object_score'], b['object_score'], delta=5e-2)
        self.assertAlmostEqual(a['candidates'][0]['predicted_iou'], b['candidates'][0]['predicted_iou'], delta=5e-3)

    def test_refused(self):
        larger, concept, cut = larger_model(self.path('larger')), self.path('c.concept'), self.path('cut.features')
        for model, says in ((OTHER_MODEL, 'made by model'), (larger, 'made at an input size of 224 pixels, this model reads 448')):
            self.assertIn(says, self.document('--features', self.saved, 'fruit', code=1, model=model)['images'][0]['error'])
            self.refused('click', '--features', self.saved, says=says, code=1, model=model)
        self.refused('click', '--features', self.plain, says='saved without --clicks', code=1)
        self.assertIn('saved without --clicks', self.document('--features', self.plain, '--point', POINT, code=1)['images'][0]['error'])
        self.ok(run('concept', 'make', PICTURE, '--box', BOX, '-o', concept))
        self.assertIn('c.concept', self.document('--features', concept, 'fruit', code=1)['images'][0]['error'])
        with open(self.saved, 'rb') as f:
            data = f.read()
        for n in (0, 5, 8, 700, 5000, len(data) // 2, len(data) - 1):
            with open(cut, 'wb') as f:
                f.write(data[:n])
            self.assertIn('cut.features', self.document('--features', cut, 'fruit', code=1)['images'][0]['error'])
            self.refused('click', '--features', cut, says='cut.features', code=1)

    def test_command_line(self):
        self.refused('encode', says='expected a picture')
        self.refused('encode', PICTURE, says='expected -o FILE')
        self.refused('encode', PICTURE, PICTURE, '-o', 'x', says='takes one picture')
        self.refused('encode', self.path('none.png'), '-o', self.path('x'), says='none.png', code=1)
        self.refused('encode', PICTURE, '-o', self.path('none', 'x'), says='the folder', code=4)
        mine = self.path('mine.png')
        shutil.copy(PICTURE, mine)
        self.refused('encode', mine, '-o', mine, says='would overwrite the picture')
        self.refused('segment', '--features', self.saved, 'fruit', '--resize', 'cpu', says='encoded already')
        self.refused('segment', '--features', self.saved, 'fruit', '--overlay', 'x.png', says='name the picture beside --features')
        self.refused('segment', '--features', self.saved, '--features', self.saved, 'fruit', says='expected one file')
        self.refused('segment', '--features', self.saved, 'fruit', '-o', self.saved, says=self.saved)
        self.assertTrue(self.document('--features', self.saved, 'fruit', *LOW))  # still there


class Concepts(ClickCase):
    """Examples that travel between pictures."""

    def make(self, name, *arguments):
        self.assertEqual(self.ok(run('concept', 'make', PICTURE, *arguments, '-o', self.path(name))), '')
        return self.path(name)

    def test_the_same_bits_as_the_boxes(self):
        negative = '10,10,40,50:neg'
        for boxes, phrase in (((BOX,), 'visual'), ((BOX,), 'fruit'), ((BOX, negative), 'visual'), ((BOX, negative), 'fruit'), ((negative,), 'fruit')):
            words = [w for b in boxes for w in ('--box', b)] + (['--phrase', phrase] if phrase != 'visual' else [])
            file = self.make('c.concept', *words)
            direct, asked = self.one(PICTURE, *words, '--threshold', '0'), self.one(PICTURE, '--concept', file, '--threshold', '0')
            self.assertGreater(len(direct['instances']), 0)
            self.assertEqual(without(asked, 'prompt'), without(direct, 'prompt'))
            self.assertEqual(asked['prompt'], {'phrase': phrase, 'boxes': [], 'concepts': [{'file': file, 'phrase': phrase, 'tokens': len(boxes) + 1}]})
            self.assertEqual(self.one(PICTURE, phrase, '--concept', file, '--threshold', '0'), asked)

    def test_other_pictures(self):
        other, file = os.path.join(MODEL, 'scene.png'), self.make('c.concept', '--box', BOX, '--phrase', 'fruit')
        doc = self.document(PICTURE, other, '--concept', file, '--threshold', '0')
        self.assertEqual([i['file'] for i in doc['images']], [PICTURE, other])
        alone, = self.document(other, '--concept', file, '--threshold', '0')['images']
        self.assertEqual(alone, doc['images'][1])
        self.assertNotEqual(alone['results'][0]['presence'], self.one(other, 'fruit', '--threshold', '0')['presence'])

    def test_several_are_combined(self):
        a = self.make('a.concept', '--box', BOX, '--phrase', 'fruit')
        b = self.make('b.concept', '--box', '10,10,40,50:neg', '--box', '100,20,150,60', '--phrase', 'fruit')
        ask = lambda *files: self.one(PICTURE, *[w for f in files for w in ('--concept', f)], '--threshold', '0')
        both, turned = ask(a, b), ask(b, a)
        self.assertEqual(both['prompt'], {'phrase': 'fruit', 'boxes': [], 'concepts': [{'file': a, 'phrase': 'fruit', 'tokens': 2}, {'file': b, 'phrase': 'fruit', 'tokens': 3}]})
        self.all_differ({'both': without(both, 'prompt'), 'a': without(ask(a), 'prompt'), 'b': without(ask(b), 'prompt')})
        self.assertAlmostEqual(turned['presence'], both['presence'], places=4)  # a prompt is a set: its order moves last bits only
        unlike = self.make('c.concept', '--box', BOX, '--phrase', 'gift')
        self.refused('segment', PICTURE, '--concept', a, '--concept', unlike, says='does not agree')
        self.refused('segment', PICTURE, 'gift', '--concept', a, says='does not agree with "gift"')
        self.refused('segment', PICTURE, '--box', BOX, '--concept', a, says='save the boxes as a concept, too')
        self.refused('segment', PICTURE, *['--concept', a] * 65, says='at most')

    def test_show(self):
        file = self.make('c.concept', '--box', BOX, '--box', '10,10,40,50:neg', '--phrase', 'red fruit')
        shown, info = json.loads(self.ok(run('concept', 'show', file, '--json', model=None))), json.loads(self.ok(run('info', '--json')))
        self.assertEqual(without(shown, 'stencil'), {
            'phrase': 'red fruit', 'tokens': 3, 'token_width': 128, 'model': info['id'], 'input_size': 224, 'source': PICTURE, 'picture_width': 224, 'picture_height': 224,
            'boxes': [{'box': [60, 80, 130, 155], 'negative': False}, {'box': [10, 10, 40, 50], 'negative': True}]})
        text = self.ok(run('concept', 'show', file, model=None))
        for part in ('"red fruit"', info['id'], 'made on     ' + PICTURE, '224 x 224', 'not like    10,10,40,50'):
            self.assertIn(part, text)
        with open(file, 'rb') as f:
            data = f.read()
        about = json.loads(json.loads(data[8:8 + struct.unpack('<Q', data[:8])[0]])['__metadata__']['stencil'])
        self.assertEqual((about['kind'], about['format'], about['model'], about['phrase']), ('concept', 1, info['id'], 'red fruit'))
        self.assertRegex(about['stencil'], r'^\d+\.\d+\.\d+$')

    def test_refused(self):
        file, cut = self.make('c.concept', '--box', BOX), self.path('cut.concept')
        for model, says in ((OTHER_MODEL, 'this one is'), (larger_model(self.path('larger')), 'at 448')):
            self.refused('segment', PICTURE, '--concept', file, says=says, model=model)
        self.ok(run('encode', PICTURE, '-o', self.path('p.features')))
        self.refused('segment', PICTURE, '--concept', self.path('p.features'), says='p.features')
        self.refused('segment', PICTURE, '--concept', self.path('none.concept'), says='none.concept')
        with open(file, 'rb') as f:
            data = f.read()
        for n in (0, 7, 100, len(data) - 1):
            with open(cut, 'wb') as f:
                f.write(data[:n])
            self.refused('segment', PICTURE, '--concept', cut, says='cut.concept')
            self.refused('concept', 'show', cut, says='cut.concept', code=1)

    def test_command_line(self):
        make = ('concept', 'make', PICTURE)
        for arguments, says in (
                (('concept',), 'expected make or show'), (('concept', 'list'), 'expected make or show, got "list"'), (make, 'expected -o FILE'), (make + ('-o', 'x'), 'give examples with --box'),
                (make + ('--box', BOX), 'expected -o FILE'), (make + ('--box', BOX + ':neg', '-o', 'x'), 'only negative boxes'), (make + ('--box', BOX, '--phrase', ' ', '-o', 'x'), 'an empty phrase'),
                (make + ('--box', '1,2', '-o', 'x'), 'four numbers'), (make + (PICTURE, '--box', BOX, '-o', 'x'), 'takes one file'), (make + ('--box', BOX, '-o', PICTURE), 'would overwrite'),
                (make + ('--box', BOX, '-o', 'x', '--json'), '--json belongs to show'), (('concept', 'show'), 'expected the file of a concept'),
                (('concept', 'show', 'x', '--box', BOX), '--box belongs to make')):
            self.refused(*arguments, says=says)
        self.refused(*make, '--box', BOX, '-o', self.path('none', 'x'), says='the folder', code=4)
        self.refused('concept', 'make', self.path('none.png'), '--box', BOX, '-o', self.path('x'), says='none.png', code=1)


class ClickBench(ClickCase):
    """The shape of the receipt, and that it is about real work."""

    def test_receipt(self):
        asked = ('bench', 'click', PICTURE, '--runs', '3', '--json')
        doc, info = json.loads(self.ok(run(*asked))), json.loads(self.ok(run('info', '--json', '-j', '2')))
        self.assertEqual(list(doc), ['bench', 'stencil', 'cpu', 'level', 'gemm', 'threads', 'model', 'picture', 'warm_up', 'runs', 'encode_seconds', 'first_click', 'next_click', 'output',
                                     'peak_resident_bytes'])
        self.assertEqual([doc[k] for k in ('bench', 'level', 'gemm', 'threads', 'warm_up', 'runs')], ['click', info['cpu_level'], info['gemm'], 2, 1, 3])
        self.assertEqual(doc['model'], {k: info[k] for k in ('id', 'version', 'precision', 'dtypes', 'container', 'input_size')})
        self.assertEqual(doc['picture'], {'file': PICTURE, 'width': SIDE, 'height': SIDE})
        for figure in ('first_click', 'next_click'):
            samples = sorted(doc[figure]['samples'])
            self.assertEqual((list(doc[figure]), len(samples), doc[figure]['best'], doc[figure]['median']), (['median', 'best', 'samples'], 3, samples[0], samples[1]))
            self.assertGreater(samples[0], 0)
        self.assertEqual((list(doc['output']), doc['output']['candidates'], doc['output']['mask_size']), (['candidates', 'mask_size', 'hash', 'runs', 'area'], 3, GRID))
        self.assertRegex(doc['output']['hash'], '^fnv1a64:[0-9a-f]{16}$')
        self.assertGreater(doc['output']['runs'], 1)
        self.assertGreater(doc['encode_seconds'], 0)
        self.assertGreater(doc['peak_resident_bytes'], 1 << 20)
        self.assertEqual(json.loads(self.ok(run(*asked, '-j', '1')))['output'], doc['output'])
        other = json.loads(self.ok(run('bench', 'click', os.path.join(MODEL, 'scene.png'), '--runs', '1', '--json')))
        self.assertNotEqual(other['output']['hash'], doc['output']['hash'])
        self.assertIn(doc['output']['hash'], self.ok(run('bench', 'click', PICTURE, '--runs', '1')))

    def test_refused(self):
        self.refused('bench', 'click', PICTURE, 'fruit', says='click')
        self.refused('bench', 'click', PICTURE, '--noise', says='--noise belongs to masks')
        self.refused('bench', 'click', '-m', NO_CLICKS, says='', code=3)


if __name__ == '__main__':
    if not PROGRAM:
        raise SystemExit(__doc__)
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
