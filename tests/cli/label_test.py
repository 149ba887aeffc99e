#!/usr/bin/env python3
"""label_test.py PROGRAM [CLASS]: `stencil label` as a person or a script meets it: what it stores, what it refuses, and
that a run that was stopped goes on. Python's standard library only; label_kill_test.py kills it.
"""
import glob
import json
import os
import pty
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import time
import zlib

import label_case
from label_case import TIMEOUT_S, environment, label, like_anybody, png

ASKED = ('-c', 'food', '-c', 'thing=fruit', '-c', 'thing=vehicle', '--floor', '0.05')


def write(path, data):
    if os.path.dirname(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'wb') as f:
        f.write(data)


def contents(folder, without=label_case.MACHINE):
    return {os.fsdecode(k): v for k, v in label_case.tree(folder, without).items()}


def stored(folder):
    """{name: [first line, objects...]} of a store."""
    found = {}
    for path in glob.glob(os.path.join(folder, 'store', '*', '*.jsonl')):
        with open(path, encoding='utf-8') as f:
            lines = [json.loads(line) for line in f]
        found[lines[0]['name'] if isinstance(lines[0]['name'], str) else lines[0]['name']['bytes']] = lines
    return found


class Case(label_case.LabelCase):
    """Paths are seen from the test's folder."""

    def setUp(self):
        super().setUp()
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)

    def photos(self, n=4):
        """In two folders, with names that both have; the first is a scene in which the demo model finds something."""
        with open(label_case.SCENE, 'rb') as f:
            scene = f.read()
        for i in range(n):
            write('photos/%s/img_%d.png' % ('ab'[i % 2], i // 2), png(160, 128, i) if i % 4 else scene)

    def label(self, *arguments, code=0, asked=ASKED, sources=('photos',), out='out', **more):
        done = label(*sources, *asked, '-o', out, *arguments, **more)
        self.said = done.stderr.decode(errors='replace')
        self.assertEqual(done.returncode, code, self.said)
        return done.stdout.decode()

    def start(self):
        """A run in the background that has finished a picture."""
        running = subprocess.Popen([label_case.PROGRAM[0], 'label', 'photos', *ASKED, '-o', 'out'], stderr=subprocess.PIPE, env=environment())
        self.addCleanup(running.stderr.close)
        self.addCleanup(running.wait)
        self.addCleanup(running.kill)
        deadline = time.monotonic() + TIMEOUT_S
        while not glob.glob('out/store/*/*.jsonl') and time.monotonic() < deadline:
            time.sleep(0.002)
        return running


class Store(Case):
    def test_holds_what_was_found(self):
        self.photos()
        self.label()
        with open('out/job.json', encoding='utf-8') as f:
            job = json.load(f)
        self.assertEqual(job['pictures'], ['a/img_0.png', 'a/img_1.png', 'b/img_0.png', 'b/img_1.png'])
        self.assertEqual([(c['id'], c['name'], [p['phrase'] for p in c['phrases']]) for c in job['classes']],
                         [(1, 'food', ['food']), (2, 'thing', ['fruit', 'vehicle'])])
        store = stored('out')
        self.assertEqual(sorted(store), job['pictures'])
        self.assertGreater(sum(len(lines) - 1 for lines in store.values()), 0, 'nothing found: the test shows nothing')
        for first, *objects in store.values():
            self.assertEqual((first['width'], first['height'], first['recipe']), (*((448, 448) if first['name'] == 'a/img_0.png' else (160, 128)), job['recipe']))
            self.assertEqual([(a['class'], a['phrase']) for a in first['answers']], [(1, 0), (2, 0), (2, 1)])
            self.assertEqual(first['objects'], len(objects))
            order = [(o['class'], o['phrase'], -o['score']) for o in objects]
            self.assertEqual(order, sorted(order))
            self.assertTrue(all(o['score'] > 0.05 and o['area'] > 0 for o in objects))

    def test_agrees_with_segment(self):
        self.photos(1)
        self.label(asked=('-c', 'food', '--floor', '0.05', '--duplicates', 'off'))
        done = subprocess.run([label_case.PROGRAM[0], 'segment', 'photos/a/img_0.png', 'food', '--threshold', '0.05', '--format', 'json'],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment(), check=True)
        instances = json.loads(done.stdout)['images'][0]['results'][0]['instances']
        objects = stored('out')['a/img_0.png'][1:]
        self.assertTrue(objects)
        self.assertEqual([(o['score'], o['box'], o['area'], o['mask']) for o in objects],
                         [(i['score'], i['box'], i['area'], i['mask']['counts']) for i in instances if i['area']])

    def test_says_nothing_of_time_and_place(self):
        self.photos()
        self.label()
        shutil.move('photos', 'elsewhere')
        self.label(sources=('elsewhere',), out='again')
        self.assertEqual(contents('out'), contents('again'))
        everything = b''.join(contents('out').values())
        self.assertNotIn(os.fsencode(self.folder), everything)
        self.assertNotIn(os.uname().nodename.encode(), everything)
        with open('again/root.json', encoding='utf-8') as f:
            self.assertEqual(json.load(f), {'root': '../elsewhere'})

    def test_does_not_depend_on_threads(self):
        self.photos()
        self.label('-j', '1')
        self.label('-j', '3', out='three')
        self.assertEqual(contents('out'), contents('three'))

    def test_boxes_only(self):
        self.photos(1)
        self.label('--boxes-only')
        objects = stored('out')['a/img_0.png'][1:]
        self.assertTrue(objects)
        self.assertTrue(all('mask' not in o and o['area'] > 0 for o in objects))

    def test_limit_takes_the_first(self):
        self.photos()
        self.label('--limit', '2')
        self.assertEqual(sorted(stored('out')), ['a/img_0.png', 'a/img_1.png'])
        self.label('--limit', '2')  # the same command does the same
        self.assertEqual(len(stored('out')), 2)
        self.label()
        self.assertEqual(len(stored('out')), 4)


class Sources(Case):
    def test_bad_pictures_are_entries(self):
        self.photos(2)
        write('photos/zero.png', b'')
        write('photos/text.jpg', b'no picture')
        write('photos/cut.png', png(160, 128, 1)[:2000])
        os.symlink('nowhere.png', 'photos/broken.png')
        write('photos/notes.txt', b'not meant')
        self.label(code=1)
        with open('out/errors.jsonl', encoding='utf-8') as f:
            errors = [json.loads(line) for line in f]
        self.assertEqual([e['name'] for e in errors], ['broken.png', 'cut.png', 'text.jpg', 'zero.png'])
        for e in errors:
            self.assertTrue(e['error'].startswith(e['name'] + ':'), e)
        self.assertEqual(sum('objects' in lines[0] for lines in stored('out').values()), 2)
        write('photos/zero.png', png(160, 128, 5))  # mended: only what failed is tried again
        before = {n: os.stat(n).st_mtime_ns for n in glob.glob('out/store/*/*img*')}
        self.label(code=1)
        self.assertIn('objects', stored('out')['zero.png'][0])
        self.assertEqual(before, {n: os.stat(n).st_mtime_ns for n in glob.glob('out/store/*/*img*')})
        self.assertEqual(len(contents('out')['errors.jsonl'].splitlines()), 3)

    def test_pictures_that_may_not_be_read(self):
        self.photos(3)
        os.chmod('photos/b/img_0.png', 0)
        self.label(code=1, preexec_fn=like_anybody)
        with open('out/errors.jsonl', encoding='utf-8') as f:
            errors = [json.loads(line) for line in f]
        self.assertEqual([e['name'] for e in errors], ['b/img_0.png'])
        self.assertIn('Permission denied', errors[0]['error'])
        os.chmod('photos/b/img_0.png', 0o600)
        self.label(preexec_fn=like_anybody)
        self.label(out='fresh')
        self.assertEqual(contents('out'), contents('fresh'))
        # What lies in a folder that may not be read is not known: that is no reason to label the rest as if it were all.
        os.chmod('photos/b', 0)
        self.addCleanup(os.chmod, 'photos/b', 0o700)
        self.label(code=2, out='rest', preexec_fn=like_anybody)
        self.assertIn('photos/b: this folder cannot be read: Permission denied', self.said)
        self.assertFalse(os.path.exists('rest'))

    def test_names_of_any_bytes_and_length(self):
        self.photos(1)
        names = [b'caf\xe9.png', b'line\nbreak.png', b'quote".png', b'x' * 251 + b'.png', 'ünï.png'.encode()]
        for name in names:
            with open(os.path.join(b'photos', name), 'wb') as f:
                f.write(png(40, 30, 3))
        deep = os.path.join('photos', *['d' * 200] * 12)
        os.makedirs(deep)
        write(os.path.join(deep, 'deep.png'), png(40, 30, 4))
        self.label('--format', 'coco')
        with open('out/job.json', encoding='utf-8') as f:
            pictures = json.load(f)['pictures']
        self.assertIn({'bytes': b'caf\xe9.png'.hex()}, pictures)
        self.assertEqual(len(pictures), 7)
        self.assertEqual(len(stored('out')), 7)
        with open('out/coco/instances.json', encoding='utf-8') as f:
            self.assertIn('caf%E9.png', [i['file_name'] for i in json.load(f)['images']])
        before = contents('out')
        self.label('--format', 'coco')
        self.assertEqual(before, contents('out'))

    def test_lists_patterns_and_several_folders(self):
        self.photos()
        self.label()
        write('list.txt', b'photos/a/img_0.png\nphotos/b/img_1.png\n')
        self.label(sources=('@list.txt',), out='listed')
        self.assertEqual(sorted(stored('listed')), ['a/img_0.png', 'b/img_1.png'])
        self.label(sources=('photos/*/img_0.png',), out='matched')
        self.assertEqual(sorted(stored('matched')), ['a/img_0.png', 'b/img_0.png'])
        self.label(sources=('photos/a', 'photos/b'), out='two')
        self.assertEqual(contents('out'), contents('two'))

    def test_sources_that_are_not_there(self):
        self.label(code=2, sources=('nothing',))
        os.mkdir('empty')
        self.label(code=2, sources=('empty',))
        self.assertFalse(os.path.exists('out'))

    def test_output_inside_the_pictures(self):
        self.photos()
        self.label('--format', 'yolo', out='photos/out')
        before = contents('photos/out')
        self.label('--format', 'yolo', out='photos/out')
        self.assertEqual(before, contents('photos/out'))

    def test_renamed_and_changed(self):
        self.photos()
        self.label()
        os.rename('photos/a/img_0.png', 'photos/a/renamed.png')
        write('photos/b/img_1.png', png(200, 100, 9))
        self.label()
        self.assertIn('a/img_0.png: is no longer among the sources', self.said)
        self.assertIn('changed since', self.said)
        self.label(out='fresh')
        old, fresh = contents('out'), contents('fresh')
        self.assertEqual(len(set(old) - set(fresh)), 1)  # what was found under the old name
        self.assertEqual({k: v for k, v in old.items() if k in fresh}, fresh)


class Progress(Case):
    def test_on_a_terminal(self):
        self.photos(24)
        master, slave = pty.openpty()
        running = subprocess.Popen([label_case.PROGRAM[0], 'label', 'photos', *ASKED, '-o', 'out'], stderr=slave, env=environment())
        os.close(slave)
        shown = b''
        while True:
            try:
                data = os.read(master, 65536)
            except OSError:  # the other side is closed
                break
            if not data:
                break
            shown += data
        os.close(master)
        self.assertEqual(running.wait(TIMEOUT_S), 0)
        lines = [line for line in shown.decode().replace('\r\n', '\n').replace('\r\x1b[K', '\n').split('\n') if line.startswith('[')]
        counted = [re.match(r'\[(\d+)/24\] \d+\.\d(/s| s each), \d+ s left; food \d+, thing \d+ ', line) for line in lines]
        self.assertTrue(any(counted), shown)
        self.assertGreater(max(int(m.group(1)) for m in counted if m), 1)

    def test_not_elsewhere(self):
        self.photos(2)
        self.label()
        self.assertNotIn('[', self.said)
        self.label('-q', out='quiet')
        self.assertEqual(self.said, '')


class Changes(Case):
    def test_other_options_are_refused(self):
        self.photos(2)
        self.label()
        before = contents('out')
        for other, why in ((('--floor', '0.06'), 'floor was 0.05 and is now 0.06'), (('--boxes-only',), 'boxes_only'),
                           (('--tile',), 'tiles'), (('-c', 'key'), 'class "key" is new'),
                           (('-c', 'food=pizza'), 'class "food" is asked for by other phrases')):
            self.label(*other, code=2)
            self.assertIn(why, self.said)
            self.assertEqual(before, contents('out'))
        self.label('--threshold', '0.9', '--min-area', '0.1')  # decides exports only
        self.label('--boxes-only', '--redo')
        self.label('--boxes-only', out='fresh')
        self.assertEqual(contents('out'), contents('fresh'))

    def test_changed_picture_of_the_same_size(self):
        """A PNG's text is no part of it: the pixels are the same, the file is not."""
        self.photos()
        with open('photos/b/img_1.png', 'rb') as f:
            data = bytearray(f.read())
        def chunk(text):
            body = b'tEXtnote\0' + text
            return struct.pack('>I', len(body) - 4) + body + struct.pack('>I', zlib.crc32(body))
        write('photos/b/img_1.png', data[:33] + chunk(b'one') + data[33:])
        self.label()
        before = contents('out')
        write('photos/b/img_1.png', data[:33] + chunk(b'two') + data[33:])
        self.label()
        self.assertEqual(before, contents('out'))  # noticed by size only
        self.assertEqual(json.loads(self.label('--check-pictures', '--dry-run', '--json'))['changed'], 1)
        self.assertEqual(before, contents('out'))
        self.label('--check-pictures')
        self.assertIn('1 pictures changed since', self.said)
        self.label(out='fresh')
        self.assertEqual(contents('out'), contents('fresh'))
        self.assertEqual(len([p for p in before if before[p] != contents('out')[p]]), 1)
        self.label('--check-pictures')
        self.assertNotIn('changed', self.said)
        os.remove('photos/a/img_1.png')  # not named any more: nothing to compare with
        self.label('--check-pictures')

    def test_ids_stay(self):
        self.photos(1)
        self.label(asked=('-c', 'apple', '-c', 'cat'))
        self.label('--redo', asked=('-c', 'key', '-c', 'cat'))
        with open('out/job.json', encoding='utf-8') as f:
            job = json.load(f)
        self.assertEqual([(c['id'], c['name']) for c in job['classes']], [(2, 'cat'), (3, 'key')])
        self.assertEqual(job['retired'], [{'id': 1, 'name': 'apple'}])
        self.label('--redo', asked=('-c', 'cat', '-c', 'apple'))
        with open('out/job.json', encoding='utf-8') as f:
            job = json.load(f)
        self.assertEqual([(c['id'], c['name']) for c in job['classes']], [(1, 'apple'), (2, 'cat')])
        self.assertEqual(job['retired'], [{'id': 3, 'name': 'key'}])

    def test_redo_that_was_stopped_goes_on(self):
        self.photos()
        self.label()
        self.label('--boxes-only', '--redo', '--limit', '2')
        self.assertEqual(sum('mask' in o for lines in stored('out').values() for o in lines[1:]) > 0, True)
        self.label('--boxes-only')  # no --redo: the folder is this job's already
        self.label('--boxes-only', out='fresh')
        self.assertEqual(contents('out'), contents('fresh'))

    def test_broken_files(self):
        self.photos(2)
        self.label()
        before = contents('out')
        for path in glob.glob('out/store/*/*.jsonl')[:1]:
            write(path, b'{"recipe": 3')
        self.label()
        self.assertIn('cannot be read', self.said)
        self.assertEqual(before, contents('out'))
        write('out/job.json', b'{}')
        self.label(code=4)
        self.assertIn('job.json', self.said)

    def test_doubts(self):
        self.photos(1)
        self.label('-c', 'car or truck', '-c', 'find all cars', '-c', 'apples')
        for why in ('two things at once', 'an instruction', 'is a plural'):
            self.assertIn(why, self.said)


class DryRun(Case):
    def test_writes_nothing(self):
        self.photos()
        text = self.label('--dry-run')
        self.assertIn('to do      4', text)
        self.assertIn('a picture', text)
        self.assertFalse(os.path.exists('out'))
        self.label('--limit', '1')
        before = contents('out', ())
        doc = json.loads(self.label('--dry-run', '--json'))
        self.assertEqual((doc['pictures'], doc['done'], doc['to_do']), (4, 1, 3))
        self.assertGreater(doc['seconds_per_picture'], 0)
        self.assertEqual(doc['classes'][1], {'id': 2, 'name': 'thing', 'phrases': ['fruit', 'vehicle']})
        self.assertEqual(before, contents('out', ()))


class Shards(Case):
    def merge(self, *parts, code=0, out='all'):
        done = label('--merge', *parts, '-o', out)
        self.said = done.stderr.decode(errors='replace')
        self.assertEqual(done.returncode, code, self.said)

    def test_merged_equal_a_whole_run(self):
        self.photos(9)
        write('photos/zero.png', b'')
        codes = [label('photos', *ASKED, '-o', 'part%d' % i, '--shard', '%d/3' % i).returncode for i in (1, 2, 3)]
        self.assertEqual(sorted(codes), [0, 0, 1])
        self.assertTrue(all(stored('part%d' % i) for i in (1, 2, 3)))
        self.label(code=1)
        self.merge('part3', 'part1', 'part2')
        self.assertEqual(contents('out'), contents('all'))
        self.merge('part1', 'part2', 'part3')  # again: nothing changes
        self.assertEqual(contents('out'), contents('all'))
        self.label(out='all', code=1)  # and the merged folder is a job like any other
        self.assertEqual(contents('out'), contents('all'))

    def test_refuses_what_does_not_belong_together(self):
        self.photos(6)
        self.label('--shard', '1/2', out='one')
        self.label('--shard', '2/2', out='two')
        self.label('--shard', '2/2', '--boxes-only', out='boxes')
        self.label('--shard', '2/3', out='third')
        self.merge('one', code=2)
        self.assertIn('shard 2/2 is missing', self.said)
        self.merge('one', 'one', code=2)
        self.merge('one', 'boxes', code=2)
        self.assertIn('boxes_only', self.said)
        self.merge('one', 'third', code=2)
        self.label('--shard', '1/2', out='two', code=2)
        os.remove(glob.glob('two/store/*/*.jsonl')[0])
        self.merge('one', 'two', code=2)
        self.assertIn('is not complete', self.said)
        self.assertFalse(os.path.exists('all/job.json'))


class Folder(Case):
    def test_two_runs_at_once(self):
        self.photos(8)
        first = self.start()
        first.send_signal(signal.SIGSTOP)
        self.label(code=4)
        self.assertIn('another run', self.said)
        first.kill()
        first.wait()
        self.label()  # the lock died with its process
        self.label(out='fresh')
        self.assertEqual(contents('out'), contents('fresh'))

    def test_full_disk(self):
        self.photos(4)

        def little_room():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))

        self.label('--floor', '0', code=4, preexec_fn=little_room)
        self.assertIn('File too large', self.said)
        self.assertIn('the same command goes on', self.said)
        self.assertEqual(glob.glob('out/store/*/*.tmp') + glob.glob('out/*.tmp'), [])
        self.label('--floor', '0')
        self.label('--floor', '0', out='fresh')
        self.assertEqual(contents('out'), contents('fresh'))

    def test_folders_that_cannot_be_written(self):
        self.photos(1)
        write('file', b'')
        self.label(out='file', code=4)
        self.label(out='no/such/folder', code=4)
        self.label(out='photos', code=2)
        os.mkdir('closed', 0o500)
        self.label(out='closed', code=4, preexec_fn=like_anybody)
        self.assertIn('Permission denied', self.said)
        self.assertEqual(os.listdir('closed'), [])
        self.label(out='closed/new', code=4, preexec_fn=like_anybody)

    def closed(self, *folders):
        """They can be looked into and not be written to until the test is over."""
        for folder in folders:
            self.addCleanup(os.chmod, folder, 0o700)
            os.chmod(folder, 0o500)

    def test_store_that_cannot_be_written(self):
        self.photos(2)
        self.label('--limit', '1')
        before = contents('out')
        self.closed('out/store', *glob.glob('out/store/*'))
        self.label(code=4, preexec_fn=like_anybody)
        self.assertIn('Permission denied', self.said)
        self.assertIn('the same command goes on', self.said)
        self.assertEqual({k: v for k, v in contents('out').items() if k.startswith('store')}, {k: v for k, v in before.items() if k.startswith('store')})
        for folder in ['out/store', *glob.glob('out/store/*')]:
            os.chmod(folder, 0o700)
        self.label()
        self.label(out='fresh')
        self.assertEqual(contents('out'), contents('fresh'))

    def test_job_that_cannot_be_written(self):
        """It is refused; what only reads goes on, with another folder for what it writes."""
        self.photos(2)
        self.label()
        before = contents('out', ())
        self.closed(*(above for above, _, _ in os.walk('out')))
        self.label('--floor', '0.06', '--redo', code=4, preexec_fn=like_anybody)
        for verb, code in ((('sweep', 'out'), 0), (('export', 'out', '-f', 'coco'), 4), (('sheet', 'out'), 4),
                           (('export', 'out', '-f', 'coco', '-o', 'here'), 0), (('sheet', 'out', '-o', 'here'), 0)):
            done = label(*verb, preexec_fn=like_anybody)
            self.assertEqual(done.returncode, code, (verb, done.stderr))
            self.assertTrue(code == 0 or b'Permission denied' in done.stderr, done.stderr)
        self.assertEqual(before, contents('out', ()))

    def test_interrupted_run_goes_on(self):
        self.photos(16)
        running = self.start()
        running.send_signal(signal.SIGINT)
        said = running.communicate(timeout=TIMEOUT_S)[1].decode()
        self.assertEqual(running.returncode, 130, said)
        self.assertIn('the same command goes on', said)
        self.assertEqual(glob.glob('out/store/*/*.tmp'), [])
        self.label()
        self.label(out='fresh')
        self.assertEqual(contents('out'), contents('fresh'))


if __name__ == '__main__':
    label_case.main(sys.argv, __doc__)
