#!/usr/bin/env python3
"""size_test.py PROGRAM [CLASS]: the input size on the command line: what every command makes of --size, and what is refused because it was made at
another one. Python's standard library only. What a model answers at another size is the golden tests' business; here the demo model (224 pixels,
patch 14, window 8) must answer alike wherever it is asked alike."""
import json
import os
import shutil
import sys
import unittest

from cli_test import Case, LOW, MODEL, PICTURE, PROGRAM, run
from click_case import BOX, POINT, Talk, larger_model
from quantize_test import header

SIZES = {'112': 32, '168': 48, '336': 96}  # side of the mask grid
LOOSE = ('--pred-iou-thresh', '0', '--stability-score-thresh', '0', '--points-per-side', '2')


class SizeAnswers(Case):
    def info(self, *arguments, **more):
        return json.loads(self.ok(run('info', '--json', *arguments, **more)))

    def test_info(self):
        own = self.info()
        self.assertEqual((own['input_size'], own['own_input_size'], own['mask_size'], len(own['id'])), (224, 224, 64, 64))
        peaks = [own['plan']['peak_bytes']]
        for size, grid in SIZES.items():
            doc = self.info('--size', size)
            self.assertEqual((doc['input_size'], doc['own_input_size'], doc['mask_size']), (int(size), 224, grid))
            self.assertEqual(doc['id'], own['id'] + '@' + size)
            plan = json.loads(self.ok(run('info', '--json', '--plan', '--size', size)))
            self.assertEqual((plan['input_size'], plan), (int(size), doc['plan']))
            peaks.append(plan['peak_bytes'])
        self.assertEqual(sorted(peaks), [peaks[i] for i in (1, 2, 0, 3)])
        self.assertEqual(self.info('--size', '224'), own)
        self.assertIn('input       168 x 168 pixels (the model\'s own: 224 x 224), masks from 48 x 48', self.ok(run('info', '--size', '168')))
        self.assertTrue(self.ok(run('info', '--plan', '--size=336')).startswith('memory plan, one picture of 336 x 336 pixels and one phrase\n'))
        self.assertNotIn('own: ', self.ok(run('info')))

    def test_segment(self):
        seen = {}
        for size in (None, *SIZES):
            ask = ('--size', size) if size else ()
            doc = self.document(PICTURE, 'fruit', *LOW, *ask)
            self.assertEqual(doc['model']['input_size'], int(size or 224))
            self.assertEqual(doc['model']['id'].partition('@')[2], size or '')
            result = doc['images'][0]['results'][0]
            for found in result['instances']:
                self.assertEqual(found['mask']['size'], [224, 224])  # of the picture, whatever the model reads
            self.assertNotIn(result['presence'], seen.values())
            seen[size] = result['presence']
            again = self.document(PICTURE, 'fruit', *LOW, *ask, '-j', '1')
            self.assertEqual(again, doc)
        self.assertEqual(self.document(PICTURE, 'fruit', *LOW, '--size', '224'), self.document(PICTURE, 'fruit', *LOW))
        coco = json.loads(self.ok(run('segment', PICTURE, 'fruit', *LOW, '--size', '168', '--format', 'coco')))
        self.assertIn('168 pixels', coco['info']['description'])

    def test_a_folder_that_says_so_answers_alike(self):
        # what --size does is what config.json's image_size does
        larger = larger_model(self.path('larger'))
        asked, said = self.document(PICTURE, 'fruit', *LOW, '--size', '448'), self.document(PICTURE, 'fruit', *LOW, model=larger)
        self.assertEqual(asked['images'], said['images'])
        self.assertEqual(asked['model'], {**said['model'], 'id': said['model']['id'] + '@448'})
        self.assertEqual(self.info(model=larger)['own_input_size'], 448)
        back = self.document(PICTURE, 'fruit', *LOW, '--size', '224', model=larger)
        self.assertEqual(back['images'], self.document(PICTURE, 'fruit', *LOW)['images'])

    def test_encode_concept_click_everything(self):
        saved, concept = self.path('a.features'), self.path('a.concept')
        at = ('--size', '168')
        self.ok(run('encode', PICTURE, '--clicks', '-o', saved, *at))
        self.ok(run('concept', 'make', PICTURE, '--box', BOX, '-o', concept, *at))
        shown = json.loads(self.ok(run('concept', 'show', '--json', concept)))
        self.assertEqual((shown['input_size'], shown['model']), (168, self.info(*at)['id']))
        self.assertEqual(self.document('--features', saved, 'fruit', *LOW, *at), self.document(PICTURE, 'fruit', *LOW, *at))
        boxed, kept = (self.document(PICTURE, *how, *LOW, *at)['images'][0]['results'][0]['instances'] for how in (('--box', BOX), ('--concept', concept)))
        self.assertEqual(boxed, kept)
        self.assertTrue(boxed)
        clicked = self.document(PICTURE, '--point', POINT, *at)
        self.assertEqual(clicked['model']['input_size'], 168)
        self.assertEqual(self.document('--features', saved, '--point', POINT, *at), clicked)
        talk = Talk(PICTURE, *at)
        self.addCleanup(talk.stop)
        x, y = map(float, POINT.split(','))
        said = talk.say({'op': 'point', 'x': x, 'y': y})
        self.assertEqual(said['candidates'][0]['mask'], clicked['images'][0]['results'][0]['candidates'][0]['mask'])
        masks = json.loads(self.ok(run('everything', PICTURE, *LOOSE, *at)))
        self.assertEqual(masks['model']['input_size'], 168)
        self.assertTrue(masks['images'][0]['masks'])
        self.assertEqual(json.loads(self.ok(run('everything', '--features', saved, *LOOSE, *at)))['images'][0]['masks'], masks['images'][0]['masks'])

    def test_bench_and_check(self):
        doc = json.loads(self.ok(run('bench', 'picture', '--json', '--runs', '1', '--size', '112')))
        self.assertEqual(doc['model']['input_size'], 112)
        doc = json.loads(self.ok(run('bench', 'click', '--json', '--runs', '1', '--size', '112')))
        self.assertEqual((doc['model']['input_size'], doc['output']['mask_size']), (112, 32))
        own, other = (json.loads(self.ok(run('check', '--json', *at))) for at in ((), ('--size', '168')))
        self.assertEqual((own['model']['input_size'], other['model']['input_size'], other['failed']), (224, 168, 0))
        self.assertEqual({line['what'] for line in own['lines']}, {'max error'})  # the references are of the own size
        self.assertEqual({line['what'] for line in other['lines']}, {'values that are not finite', 'spread'})

    def test_quantize(self):
        files = [self.path('own.safetensors'), self.path('small.safetensors')]
        self.ok(run('quantize', MODEL, '-o', files[0]))
        self.ok(run('quantize', MODEL, '-o', files[1], '--size', '112'))
        for file in files:  # measured at one size, for use at any
            self.assertEqual((self.info('-m', file)['input_size'], self.info('-m', file, '--size', '168')['input_size']), (224, 168))
            self.document(PICTURE, 'fruit', *LOW, '-m', file, '--size', '168')
        self.assertEqual([json.loads(header(file)['__metadata__']['stencil'])['measured_at'] for file in files], [224, 112])


class SizeRefused(Case):
    def test_sizes_that_are_none(self):
        range_ = 'expected 112 (one attention window) to 7168, in steps of 14 (the model\'s patch); its own is 224'
        commands = (('segment', PICTURE, 'fruit'), ('click', PICTURE), ('everything', PICTURE), ('encode', PICTURE, '-o', self.path('x')),
                    ('concept', 'make', PICTURE, '--box', BOX, '-o', self.path('x')), ('label', PICTURE, '-c', 'apple', '-o', self.path('out')),
                    ('quantize', MODEL, '-o', self.path('x')), ('info',), ('check',), ('bench', 'picture'), ('bench', 'click'))
        for command in commands:
            self.refused(*command, '--size', '225', says='input size 225: no multiple of the model\'s patch of 14 pixels; next to it are 224 and 238')
            self.refused(*command, '--size', 'big', says='--size: expected a side in pixels such as 504, 672 or 1344, got "big"')
        for size in ('98', '1', '111', '7182', '65536'):
            self.refused('segment', PICTURE, 'fruit', '--size', size, says=range_)
        for size in ('0', '-224', '224.5', '', '0x100', '99999999999', '224px'):
            self.refused('segment', PICTURE, 'fruit', '--size', size, says='--size: expected a side in pixels')
        self.refused('info', '--size', says='--size needs a value')
        self.refused('concept', 'show', '--size', '224', self.path('x'), says='--size belongs to make')
        self.assertEqual(os.listdir(self.folder), [])

    def test_what_was_made_at_another_size(self):
        saved, concept = self.path('a.features'), self.path('a.concept')
        self.ok(run('encode', PICTURE, '--clicks', '-o', saved, '--size', '168'))
        self.ok(run('concept', 'make', PICTURE, '--box', BOX, '-o', concept, '--size', '168'))
        for at, reads in ((), 224), (('--size', '336'), 336):
            says = 'made at an input size of 168 pixels, this model reads %d' % reads
            self.assertIn(says, self.document('--features', saved, 'fruit', *at, code=1)['images'][0]['error'])
            self.refused('click', '--features', saved, *at, says=says, code=1)
            self.refused('everything', '--features', saved, *at, says=says, code=1)
            self.refused('concept', 'make', '--features', saved, '--box', BOX, '-o', self.path('b'), *at, says=says, code=1)
            self.refused('segment', PICTURE, '--concept', concept, *at, says='at 168 pixels, this one is')
        talk = Talk(PICTURE)
        self.addCleanup(talk.stop)
        reply = talk.say({'op': 'open', 'features': saved})
        self.assertEqual(reply['ok'], False)
        self.assertIn('made at an input size of 168 pixels, this model reads 224', json.dumps(reply))

    def test_the_size_tells_apart_not_the_name(self):
        # a folder whose config.json says 448, and the same weights asked for 448: one and the same
        larger, saved, concept = larger_model(self.path('larger')), self.path('a.features'), self.path('a.concept')
        self.ok(run('encode', PICTURE, '-o', saved, model=larger))
        self.ok(run('concept', 'make', PICTURE, '--box', BOX, '-o', concept, '--size', '448'))
        self.ok(run('segment', '--features', saved, 'fruit', '--size', '448'))
        self.ok(run('segment', PICTURE, '--concept', concept, model=larger))


class SizeLabel(Case):
    def label(self, *arguments, code=0, says='', model=MODEL, out='out'):
        done = run('label', self.path('photos'), '-c', 'apple', '--floor', '0.05', '-o', self.path(out), *arguments, model=model)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(says, done.stderr.decode())

    def job(self, out='out'):
        with open(self.path(out, 'job.json'), encoding='utf-8') as f:
            return json.load(f)

    def setUp(self):
        super().setUp()
        os.mkdir(self.path('photos'))
        shutil.copy(PICTURE, self.path('photos', 'a.png'))

    def test_a_job_has_one_size(self):
        self.label('--size', '168')
        job = self.job()
        self.assertEqual(job['model']['input_size'], 168)
        self.assertTrue(job['model']['id'].endswith('@168'))
        self.label('--size', '168')  # goes on
        self.label(code=2, says='the input size was 168 and is now 224; --redo labels again')
        self.label('--size', '336', code=2, says='the input size was 168 and is now 336')
        self.assertEqual(self.job(), job)
        self.label('--redo')
        self.assertEqual(self.job()['model']['input_size'], 224)
        self.label(out='fresh')
        self.assertEqual(self.job()['recipe'], self.job('fresh')['recipe'])

    def test_the_same_recipe_at_another_size(self):
        # config.json was edited: ids are equal, sizes are not
        self.label()
        self.label(model=larger_model(self.path('larger')), code=2, says='was labelled at an input size of 224 pixels, this model reads 448')

    def test_shards_and_concepts(self):
        concept = self.path('a.concept')
        self.label('--shard', '1/2', out='one')
        self.label('--shard', '2/2', '--size', '168', out='two')
        self.refused('label', '--merge', self.path('one'), self.path('two'), '-o', self.path('all'), says='the input size was 224 and is now 168')
        self.refused('label', '--merge', self.path('one'), '-o', self.path('all'), '--size', '168', says='--merge joins what is labelled already')
        self.ok(run('concept', 'make', PICTURE, '--box', BOX, '-o', concept, '--size', '168'))
        done = run('label', self.path('photos'), '-c', 'fruit=@' + concept, '-o', self.path('out'))
        self.assertNotEqual(done.returncode, 0)
        self.assertIn('made at an input size of 168 pixels, this model reads 224', done.stderr.decode())


if __name__ == '__main__':
    if not PROGRAM:
        raise SystemExit(__doc__)
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
