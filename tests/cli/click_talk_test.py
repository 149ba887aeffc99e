#!/usr/bin/env python3
"""click_talk_test.py PROGRAM [CLASS]: the line protocol of `stencil click` (docs/click.md), as an editor meets it: one process, one reply to each line."""
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import unittest

from click_case import BESIDE, ClickCase, FIRST, GRID, NO_CLICKS, NOTHING, OTHER_MODEL, POINT, SECOND, SIDE, STATE, compressed, region, square, without, write_gray, write_npy
from cli_test import MODEL, PICTURE, PROGRAM, TIMEOUT_S, read_png, run, runs


class Conversation(ClickCase):
    def test_replies(self):
        talk = self.talk()
        self.assertEqual(talk.opened, {'ok': True, 'op': 'open', 'file': PICTURE, 'width': SIDE, 'height': SIDE})
        first, second = self.good(talk, FIRST, {**SECOND, 'id': {'any': [1, 'thing']}})
        self.assertEqual(list(first), STATE)
        self.assertEqual(second.pop('id'), {'any': [1, 'thing']})
        self.assertEqual(first['prompt'], {'points': [{'x': 140.0, 'y': 175.0, 'label': 1}], 'region': None, 'mask': None, 'refines': None})
        self.assertEqual(second['prompt']['points'], [{'x': 140.0, 'y': 175.0, 'label': 1}, {'x': 90.0, 'y': 120.0, 'label': 0}])
        self.assertEqual((first['verbs'], second['verbs'], second['prompt']['refines']), (1, 2, 0))
        self.assertEqual((first['multimask'], len(first['candidates']), second['multimask'], len(second['candidates'])), (True, 3, False, 1))
        self.assertEqual([c['rank'] for c in first['candidates']], [0, 1, 2])
        self.assertEqual(sorted(c['index'] for c in first['candidates']), [1, 2, 3])
        ious = [c['predicted_iou'] for c in first['candidates']]
        self.assertEqual(ious, sorted(ious, reverse=True))
        for reply in (first, second):
            best, others = reply['candidates'][0], reply['candidates'][1:]
            self.assertEqual(list(best), ['rank', 'index', 'predicted_iou', 'box', 'area', 'mask'])
            counts = runs(best['mask']['counts'])
            self.assertEqual((best['mask']['size'], sum(counts), sum(counts[1::2])), ([SIDE, SIDE], SIDE * SIDE, best['area']))
            for other in others:
                self.assertEqual(list(other), ['rank', 'index', 'predicted_iou'])
        self.assertEqual(talk.end(), (0, b'', b''))

    def test_a_click_is_what_segment_gives(self):
        first, = self.good(self.talk(), FIRST)
        direct = self.one(PICTURE, '--point', POINT)
        self.assertEqual(first['candidates'][0], direct['candidates'][0])
        self.assertEqual(first['object_score'], direct['object_score'])
        self.assertEqual([c['predicted_iou'] for c in first['candidates']], [c['predicted_iou'] for c in direct['candidates']])

    def test_the_second_click_refines_the_first(self):
        talk, saved = self.talk(), self.path('first.npy')
        second = self.good(talk, FIRST, {'op': 'save', 'file': saved}, SECOND)[-1]
        refined = self.one(PICTURE, '--point', POINT, '--point', BESIDE, '--mask', saved)
        anew = self.one(PICTURE, '--point', POINT, '--point', BESIDE)
        self.assertEqual((second['candidates'], second['object_score']), (refined['candidates'], refined['object_score']))
        self.assertNotEqual(second['object_score'], anew['object_score'])

    def test_candidates(self):
        first, every = self.good(self.talk(), FIRST, {'op': 'candidates'})
        self.assertEqual([list(c) for c in every['candidates']], [['rank', 'index', 'predicted_iou', 'box', 'area', 'mask']] * 3)
        self.assertEqual(every['candidates'][0], first['candidates'][0])
        self.assertEqual(len({c['mask']['counts'] for c in every['candidates']}), 3)
        self.assertEqual(every['candidates'], self.one(PICTURE, '--point', POINT)['candidates'])
        self.assertEqual(without(every, 'op', 'candidates'), without(first, 'op', 'candidates'))

    def test_choose(self):
        talk, saved = self.talk(), self.path('third.npy')
        every, chosen = self.good(talk, FIRST, {'op': 'candidates'}, {'op': 'choose', 'rank': 2})[1:]
        self.assertEqual((chosen['chosen'], chosen['verbs']), (2, 1))
        self.assertEqual(chosen['candidates'][2], every['candidates'][2])
        self.assertEqual(list(chosen['candidates'][0]), ['rank', 'index', 'predicted_iou'])
        on, = self.good(talk, SECOND)
        self.assertEqual(on['prompt']['refines'], 2)
        plain = self.good(self.talk(), FIRST, SECOND)[1]
        self.assertNotEqual(on['object_score'], plain['object_score'])
        self.good(talk, {'op': 'undo'}, {'op': 'choose', 'rank': 2}, {'op': 'save', 'file': saved})
        self.assertEqual(on['candidates'], self.one(PICTURE, '--point', POINT, '--point', BESIDE, '--mask', saved)['candidates'])

    def test_undo_shows_every_step_again(self):
        talk = self.talk()
        verbs = [FIRST, SECOND, region(113, 151, 162, 203), {'op': 'point', 'x': 150, 'y': 190}]
        steps = self.good(talk, *verbs)
        for step in reversed(steps[:-1]):
            self.assertEqual(without(self.good(talk, {'op': 'undo'})[0], 'op'), without(step, 'op'))
        self.assertEqual(self.good(talk, verbs[1]), steps[1:2])

    def test_undo_to_zero_equals_a_fresh_session(self):
        used, fresh = self.talk(), self.talk()
        self.good(used, region(10, 10, 80, 90), FIRST, {'op': 'choose', 'rank': 0}, SECOND, *[{'op': 'undo'}] * 3)
        self.assertEqual(without(self.good(used, {'op': 'candidates'})[0], 'op', 'ok'), NOTHING)
        self.assertEqual(used.say({'op': 'undo'})['error']['code'], 'invalid_argument')
        for verb in (FIRST, SECOND, region(113, 151, 162, 203)):
            self.assertEqual(self.good(used, verb), self.good(fresh, verb))

    def test_reset_keeps_the_picture(self):
        used, fresh = self.talk(), self.talk()
        self.assertEqual(without(self.good(used, FIRST, SECOND, {'op': 'reset'})[-1], 'op', 'ok'), NOTHING)
        self.assertEqual(self.good(used, SECOND, FIRST), self.good(fresh, SECOND, FIRST))

    def test_twenty_clicks_keep_their_order(self):
        said = [{'x': float(20 + 9 * i), 'y': float(200 - 7 * i), 'label': int(i % 3 != 0)} for i in range(20)]
        replies = self.good(self.talk(), *[{'op': 'point', **p} for p in said])
        for i, reply in enumerate(replies):
            self.assertEqual((reply['verbs'], reply['prompt']['points']), (i + 1, said[:i + 1]))
        self.assertEqual(len({r['object_score'] for r in replies}), 20)
        words = [w for p in said for w in ('--point', '%g,%g%s' % (p['x'], p['y'], '' if p['label'] else ':neg'))]
        self.assertEqual(self.one(PICTURE, *words)['prompt']['points'], said)

    def test_clicks_on_the_last_row_and_column(self):
        answers = {}
        for x, y in ((223, 100), (100, 223), (223, 223), (224, 224), (224, 0), (0, 224), (0, 0), (223.5, 223.5)):
            reply, = self.good(self.talk(), {'op': 'point', 'x': x, 'y': y})
            self.assertEqual(reply['prompt']['points'], [{'x': x, 'y': y, 'label': 1}])
            self.assertEqual(len(reply['candidates']), 3)
            answers[x, y] = (reply['object_score'], reply['candidates'])
        self.all_differ(answers)
        reply, = self.good(self.talk(), region(0, 0, SIDE, SIDE))
        self.assertEqual(reply['prompt']['region'], [0, 0, SIDE, SIDE])

    def test_the_same_again_gives_the_same_bits(self):
        said = (FIRST, SECOND, region(113, 151, 162, 203), {'op': 'candidates'})
        replies = self.good(self.talk(), *said)
        self.assertEqual(self.good(self.talk(PICTURE, '-j', '1'), *said), replies)
        self.assertEqual(self.good(self.talk(PICTURE, '-j', '3'), *said), replies)

    def test_two_conversations_do_not_touch_each_other(self):
        saved = self.path('p.features')
        self.ok(run('encode', PICTURE, '--clicks', '-o', saved))
        alone = self.good(self.talk('--features', saved), FIRST, SECOND)
        a, b = self.talk('--features', saved), self.talk('--features', saved)
        self.assertEqual(self.good(a, FIRST), alone[:1])
        self.good(b, SECOND, region(5, 5, 60, 60))
        self.assertEqual(self.good(a, SECOND), alone[1:])

    def test_multimask_and_holes(self):
        for arguments, n, multimask, holes in (
                ((), [3, 1], [True, False], 13), (('--multimask', 'on'), [3, 3], [True, True], 13), (('--multimask', 'off'), [1, 1], [False, False], 13),
                (('--hole-area', '0'), [3, 1], [True, False], 0), (('--hole-area', '40'), [3, 1], [True, False], 40), (('--hf',), [3, 1], [True, False], 0)):
            replies = self.good(self.talk(PICTURE, *arguments), FIRST, SECOND)
            self.assertEqual([len(r['candidates']) for r in replies], n, arguments)
            self.assertEqual([r['multimask'] for r in replies], multimask, arguments)
            self.assertEqual({r['hole_area'] for r in replies}, {holes}, arguments)

    def test_input_as_editors_send_it(self):
        """Blank lines, line ends of Windows, a last line without an end."""
        lines = b'\n  \r\n' + json.dumps(FIRST).encode() + b'\r\n\n' + json.dumps(SECOND).encode()
        done = subprocess.run([PROGRAM, 'click', PICTURE], input=lines, capture_output=True, env={**os.environ, 'STENCIL_MODEL': MODEL}, timeout=TIMEOUT_S)
        replies = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual((done.returncode, done.stderr), (0, b''))
        self.assertEqual(replies[1:], self.good(self.talk(), FIRST, SECOND))


class Errors(ClickCase):
    """Every line that makes no sense gets a code and a sentence; nothing else happens."""

    # (line, code, a part of the message)
    LINES = [
        (b'not JSON', 'parse', 'not JSON'), (b'[1, 2]', 'parse', '"op"'), (b'"point"', 'parse', 'not JSON'), (b'{}', 'parse', '"op"'), (b'{"op": 5}', 'parse', '"op"'),
        (b'{"op": "point", "x": 1, "x": 2, "y": 3}', 'parse', 'not JSON'), (b'{"op": "undo"} {"op": "undo"}', 'parse', 'not JSON'), (b'{"op": "undo"\0}', 'parse', 'not JSON'),
        (b'{"op": "\xff"}', 'parse', 'not JSON'), (b'[' * 5000, 'parse', 'not JSON'), (b'{"op": "point", "x": 1e999, "y": 1}', 'parse', 'not JSON'),
        (b' ' * 5 + b'x' * (1 << 20), 'limit', '1048576'), (b'{"op": "save", "file": "' + b'y' * (2 << 20) + b'"}', 'limit', '1048576'),
        ({'op': 'pont'}, 'unknown_op', '"pont" is no command'), ({'op': 'z' * 5000}, 'unknown_op', 'is no command'), ({'op': ''}, 'unknown_op', 'is no command')]
    # Verbs and questions: all of them invalid_argument.
    WRONG = [
        ({'op': 'point'}, '"x" and "y"'), ({'op': 'point', 'x': 3}, '"x" and "y"'), ({'op': 'point', 'x': '3', 'y': 4}, '"x" and "y"'), ({'op': 'point', 'x': 1e39, 'y': 4}, '"x" and "y"'),
        ({'op': 'point', 'x': None, 'y': True}, '"x" and "y"'), ({**FIRST, 'label': 2}, '"label"'), ({**FIRST, 'label': -1}, '"label"'), ({**FIRST, 'label': True}, '"label"'),
        ({**FIRST, 'label': 0.5}, '"label"'), ({**FIRST, 'label': None}, '"label"'), ({**FIRST, 'lable': 0}, '"lable" is none of its keys'), ({**FIRST, 'normalized': True}, '"normalized" is none'),
        ({**FIRST, 'box': [1, 2, 3, 4]}, '"box" is none of its keys'), ({'op': 'point', 'x': -1, 'y': 4}, 'picture of 224 x 224'), ({'op': 'point', 'x': 4, 'y': 224.5}, 'picture of 224 x 224'),
        ({'op': 'point', 'x': 4, 'y': 1e30}, 'picture of 224 x 224'), ({'op': 'region'}, '"box"'), (region(1, 2, 3), '"box"'), (region(1, 2, 3, 4, 5), '"box"'), (region(1, 2, '3', 4), '"box"'),
        ({'op': 'region', 'box': {'x0': 1}}, '"box"'), ({'op': 'region', 'x': 1, 'y': 2}, 'none of its keys'), (region(30, 2, 3, 40), 'region'), (region(3, 40, 30, 4), 'region'),
        (region(3, 4, 3, 40), 'region'), (region(-1, 4, 30, 40), 'region'), (region(3, 4, 225, 40), 'region'), ({'op': 'mask'}, 'either "file"'), ({'op': 'mask', 'file': 5}, 'either "file"'),
        ({'op': 'mask', 'mask': {'size': [SIDE, SIDE]}}, '"counts"'), ({'op': 'mask', 'mask': {'size': [10, SIDE], 'counts': '0'}}, 'size [10, 224]'), ({'op': 'mask', 'mask': 7}, '"counts"'),
        ({'op': 'mask', 'file': PICTURE, 'mask': {}}, 'either "file"'), ({'op': 'mask', 'file': PICTURE}, 'coloured'), ({'op': 'undo', 'steps': 2}, '"steps" is none of its keys'),
        ({'op': 'reset', 'x': 1}, 'none of its keys'), ({'op': 'choose'}, '"rank"'), ({'op': 'choose', 'rank': 3}, '3'), ({'op': 'choose', 'rank': -1}, '"rank"'),
        ({'op': 'choose', 'rank': '1'}, '"rank"'), ({'op': 'save'}, '.png'), ({'op': 'save', 'file': 'x.jpg'}, '.png'), ({'op': 'save', 'file': 7}, '.png'), ({'op': 'open'}, 'either "file"'),
        ({'op': 'open', 'file': 'a', 'features': 'b'}, 'either "file"'), ({'op': 'open', 'picture': 'a'}, '"picture" is none of its keys')]

    def files(self):
        """Commands about files that are not what they should be."""
        p, nowhere = self.path, self.path('none', 'x.png')
        for name in ('text.npy', 'text.png', 'text.features'):
            with open(p(name), 'w') as f:
                f.write('no such thing')
        self.ok(run('encode', PICTURE, '-o', p('plain.features')))
        self.ok(run('encode', PICTURE, '--clicks', '-o', p('other.features'), model=OTHER_MODEL))
        mask = lambda file: {'op': 'mask', 'file': file}
        features = lambda file: {'op': 'open', 'features': file}
        return [
            (mask(nowhere), 'io', 'x.png'), (mask(p('text.png')), 'format', 'text.png'), (mask(p('text.npy')), 'format', 'text.npy'),
            (mask(write_gray(p('small.png'), square, 100, 100)), 'invalid_argument', '100 x 100'), (mask(write_gray(p('dark.png'), lambda x, y: square(x, y) // 255)), 'invalid_argument', 'brightest'),
            (mask(write_npy(p('shape.npy'), [0.0] * 100, (10, 10))), 'invalid_argument', '10 x 10, expected 64 x 64'),
            (mask(write_npy(p('nan.npy'), [float('nan')] + [0.0] * (GRID * GRID - 1))), 'invalid_argument', 'value 0 is'),
            ({'op': 'mask', 'mask': {'size': [SIDE, SIDE], 'counts': '000000000'}}, 'format', ''), ({'op': 'save', 'file': nowhere}, 'io', 'the folder'),
            ({'op': 'save', 'file': p('mine.png')}, 'invalid_argument', 'picture itself'), ({'op': 'open', 'file': nowhere}, 'io', 'x.png'),
            ({'op': 'open', 'file': p('text.png')}, 'format', 'text.png'), (features(nowhere), 'io', 'x.png'), (features(p('text.features')), 'limit', 'text.features'),
            (features(p('plain.features')), 'invalid_argument', 'saved without --clicks'), (features(p('other.features')), 'invalid_argument', 'made by model')]

    def test_the_session_survives_every_error(self):
        mine = self.path('mine.png')
        shutil.copy(PICTURE, mine)
        bad = self.LINES + [(command, 'invalid_argument', says) for command, says in self.WRONG] + self.files()
        self.assertGreater(len(bad), 75)
        before_all = sorted(os.listdir(self.folder))
        talk, verbs, state = self.talk(mine), [FIRST, SECOND, {'op': 'point', 'x': 150, 'y': 190}], None
        every = -(-len(bad) // len(verbs))
        for n, (command, code, says) in enumerate(bad):
            if n % every == 0:  # the object goes on in between
                self.good(talk, verbs[n // every])
                state = self.good(talk, {'op': 'candidates'})
            reply = talk.say(command)
            self.assertEqual((list(reply), reply['ok'], list(reply['error'])), (['ok', 'error'], False, ['code', 'message']), (command, reply))
            self.assertEqual(reply['error']['code'], code, (command, reply))
            self.assertIn(says, reply['error']['message'], command)
            self.assertGreater(len(reply['error']['message']), 10)
            self.assertEqual(self.good(talk, {'op': 'candidates'}), state, command)
        self.assertEqual(state, self.good(self.talk(), *verbs, {'op': 'candidates'})[-1:])
        self.assertEqual(talk.say({'op': 'choose', 'rank': 1, 'id': 9})['id'], 9)  # an error has its command's id, too
        self.assertEqual(sorted(os.listdir(self.folder)), before_all)
        self.assertEqual(talk.end()[0], 0)

    def test_errors_before_the_first_click(self):
        talk = self.talk()
        for command, says in (({'op': 'undo'}, 'undo'), ({'op': 'choose', 'rank': 0}, ''), ({'op': 'save', 'file': self.path('x.png')}, 'nothing was clicked yet')):
            reply = talk.say(command)
            self.assertEqual(reply['error']['code'], 'invalid_argument', command)
            self.assertIn(says, reply['error']['message'])
        self.assertEqual(self.good(talk, FIRST), self.good(self.talk(), FIRST))

    def test_more_clicks_than_fit(self):
        talk = self.talk()
        point = lambda i: {'op': 'point', 'x': i % 224, 'y': 3 * i % 224, 'label': i % 2}
        last = self.good(talk, *[point(i) for i in range(256)])[-1]
        reply = talk.say(point(256))
        self.assertEqual(reply['error']['code'], 'limit')
        self.assertIn('256', reply['error']['message'])
        self.assertEqual(without(self.good(talk, {'op': 'candidates'})[0], 'op'), without(last, 'op'))
        self.good(talk, {'op': 'undo'}, point(256))

    def test_command_line(self):
        for arguments, says in (((), 'expected a picture'), ((PICTURE, PICTURE), 'takes one picture'), ((PICTURE, '--features', 'x'), 'stands in place of the picture'),
                                ((PICTURE, '--phrase', 'cat'), 'unknown option --phrase'), ((PICTURE, '--multimask', 'yes'), 'auto'), ((PICTURE, '--hole-area', '-1'), '--hole-area'),
                                ((PICTURE, '-j', '0'), 'from 1 to 1024')):
            self.refused('click', *arguments, says=says)
        self.refused('click', self.path('none.png'), says='none.png', code=1)
        self.refused('click', '--features', self.path('none.features'), says='none.features', code=1)
        self.refused('click', PICTURE, '-m', self.path('none.pt'), says='none.pt', code=3)
        self.refused('click', PICTURE, says='', code=3, model=NO_CLICKS)

    def test_signals(self):
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            talk = self.talk()
            self.good(talk, FIRST)
            talk.process.send_signal(number)
            self.assertEqual(talk.process.wait(timeout=TIMEOUT_S), code)

    def test_a_reader_that_is_gone(self):
        with open('/dev/full', 'wb') as full:
            done = subprocess.run([PROGRAM, 'click', PICTURE], stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE, env={**os.environ, 'STENCIL_MODEL': MODEL}, timeout=TIMEOUT_S)
        self.assertEqual(done.returncode, 4, done.stderr)


class Files(ClickCase):
    """Masks that go into a conversation and come out of it, and other pictures."""

    def test_save(self):
        talk, png, npy = self.talk(), self.path('m.png'), self.path('m.npy')
        first, saved, logits = self.good(talk, FIRST, {'op': 'save', 'file': png}, {'op': 'save', 'file': npy})
        best = first['candidates'][0]
        self.assertEqual(saved, {'ok': True, 'op': 'save', 'file': png, 'area': best['area']})
        self.assertEqual(logits, {**saved, 'file': npy})
        width, height, channels, rows = read_png(png)
        self.assertEqual((width, height, channels), (SIDE, SIDE, 1))
        column_major, at = b''.join(bytes(row[x] for row in rows) for x in range(width)), 0
        for k, n in enumerate(runs(best['mask']['counts'])):
            self.assertEqual(column_major[at:at + n], bytes([255 * (k % 2)]) * n)
            at += n
        with open(npy, 'rb') as f:
            data = f.read()
        self.assertEqual(data[:8], b'\x93NUMPY\x01\x00')
        head = 10 + struct.unpack('<H', data[8:10])[0]
        self.assertEqual(head % 64, 0)
        self.assertIn("'descr': '<f4'", data[10:head].decode())
        self.assertIn("'shape': (64, 64)", data[10:head].decode())
        values = struct.unpack('<4096f', data[head:])
        self.assertTrue(all(-32 <= v <= 32 for v in values) and min(values) < 0 < max(values))
        self.good(talk, {'op': 'choose', 'rank': 1}, {'op': 'save', 'file': png})  # the chosen one, over the file before
        self.assertNotEqual(read_png(png)[3], rows)
        self.assertEqual(sorted(os.listdir(self.folder)), ['m.npy', 'm.png'])

    def test_a_mask_as_picture_and_as_runs(self):
        png, talk = write_gray(self.path('m.png'), square), self.talk()
        by_file, = self.good(talk, {'op': 'mask', 'file': png})
        self.assertEqual((by_file['prompt']['mask'], by_file['verbs']), (png, 1))
        counts = [113 * SIDE + 151] + [52, SIDE - 52] * 49
        counts[-1] = SIDE * SIDE - sum(counts[:-1])
        by_runs = self.good(talk, {'op': 'reset'}, {'op': 'mask', 'mask': {'size': [SIDE, SIDE], 'counts': compressed(counts)}})[1]
        self.assertEqual(by_runs['prompt']['mask'], '')
        self.assertEqual(by_runs['candidates'], by_file['candidates'])
        by_segment = self.one(PICTURE, '--mask', png)
        self.assertEqual(by_segment['candidates'], by_file['candidates'])
        self.assertEqual(by_segment['prompt'], {'points': [], 'region': None, 'mask': png})

    def test_a_mask_replaces_the_one_before(self):
        png, npy, talk = write_gray(self.path('m.png'), square), self.path('s.npy'), self.talk()
        first, = self.good(talk, {'op': 'mask', 'file': png})
        self.good(talk, {'op': 'save', 'file': npy})
        on = self.good(talk, {'op': 'mask', 'file': npy}, {'op': 'reset'}, {'op': 'mask', 'file': npy})
        self.assertEqual(on[0]['candidates'], on[2]['candidates'])  # and nothing else is refined
        self.assertNotEqual(on[0]['candidates'], first['candidates'])
        self.assertEqual((on[0]['verbs'], on[0]['prompt']['refines']), (2, None))

    def test_open_another_picture(self):
        other, saved = write_gray(self.path('other.png'), lambda x, y: (x * 3 + y * 5) % 256, 90, 60), self.path('p.features')
        self.ok(run('encode', PICTURE, '--clicks', '-o', saved))
        os.symlink(saved, self.path('alias.npy'))
        talk, small = self.talk(), {'op': 'point', 'x': 40, 'y': 30}
        first = self.good(talk, FIRST)
        self.assertEqual(self.good(talk, {'op': 'open', 'file': other}), [{'ok': True, 'op': 'open', 'file': other, 'width': 90, 'height': 60}])
        self.assertEqual(without(self.good(talk, {'op': 'candidates'})[0], 'op', 'ok'), NOTHING)
        self.assertIn('90 x 60', talk.say(FIRST)['error']['message'])
        reply, = self.good(talk, small)
        self.assertEqual([reply], self.good(self.talk(other), small))
        self.assertEqual(reply['candidates'][0]['mask']['size'], [60, 90])
        self.assertFalse(talk.say({'op': 'open', 'file': self.path('none.png')})['ok'])  # the picture stays, and what was said about it
        self.assertEqual(without(self.good(talk, {'op': 'candidates'})[0], 'op', 'candidates'), without(reply, 'op', 'candidates'))
        self.assertEqual(self.good(talk, {'op': 'open', 'features': saved}), [{'ok': True, 'op': 'open', 'file': PICTURE, 'width': SIDE, 'height': SIDE, 'features': saved}])
        self.assertEqual(self.good(talk, FIRST), first)
        self.assertIn('picture itself', talk.say({'op': 'save', 'file': self.path('alias.npy')})['error']['message'])


if __name__ == '__main__':
    if not PROGRAM:
        raise SystemExit(__doc__)
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
