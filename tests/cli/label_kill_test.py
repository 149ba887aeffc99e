#!/usr/bin/env python3
"""label_kill_test.py PROGRAM [CLASS]: `stencil label` killed with SIGKILL at 50 moments of runs over 60 pictures and started again with the same
command: what it leaves in the end is byte for byte what an undisturbed run leaves. Linux only (inotify).

Where a kill landed is told by what it left and by what had just happened:
  write    a temporary file lies in the store: a result was being written
  export   a data set lies half-written, under its temporary name
  between  one file had just been put in place (job.json, a picture's, errors.jsonl), the next one had not been begun
  compute  none of these, and pictures were left to do
"""
import ctypes
import os
import random
import select
import shutil
import signal
import struct
import subprocess
import sys
import time

import label_case

N_PICTURES, N_KILLS = 60, 50
ASKED = ('--class', 'food', '--class', 'thing=fruit', '--floor', '0.1', '--threads', '1', '--format', 'coco,yolo', '-q')
IN_MODIFY, IN_MOVED_TO, IN_CREATE = 0x2, 0x80, 0x100


class Watch:
    """Events in folders: (folder, name, kind) as they come."""

    def __init__(self, folders):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.fd = self.libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        assert self.fd >= 0
        self.folders = {}
        for folder in folders:
            number = self.libc.inotify_add_watch(self.fd, os.fsencode(folder), IN_MODIFY | IN_MOVED_TO | IN_CREATE)
            assert number >= 0, folder
            self.folders[number] = folder

    def wait(self, seconds):
        if not select.select([self.fd], [], [], max(seconds, 0))[0]:
            return []
        data, at, events = os.read(self.fd, 65536), 0, []
        while at < len(data):
            number, mask, _, length = struct.unpack_from('iIII', data, at)
            events.append((self.folders[number], os.fsdecode(data[at + 16:at + 16 + length].rstrip(b'\0')), mask))
            at += 16 + length
        return events

    def close(self):
        os.close(self.fd)


def is_tmp(name):
    return name.endswith('.tmp')


class Kill(label_case.LabelCase):
    def command(self, out):
        return [label_case.PROGRAM[0], 'label', self.path('pictures'), *ASKED, '-o', out]

    def start(self, out):
        return subprocess.Popen(self.command(out), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                                env=label_case.environment())

    def left(self, out, ending):
        return [os.path.join(above, n) for above, folders, files in os.walk(out) for n in folders + files if n.endswith(ending)]

    def fresh(self, out):
        """An empty job, with the store's folders made so that they can be watched."""
        shutil.rmtree(out, ignore_errors=True)
        for folder in self.folders:
            os.makedirs(os.path.join(out, 'store', folder))

    def one_kill(self, out, aim, skip, delay):
        """Runs until what `aim` waits for has happened `skip` times and kills; where it landed, or None when the run ended first."""
        watch = Watch([out, os.path.join(out, 'store')] + [os.path.join(out, 'store', f) for f in self.folders])
        process = self.start(out)
        end = time.monotonic() + (delay if aim == 'compute' else label_case.TIMEOUT_S)
        hit = False
        while process.poll() is None and not hit and time.monotonic() < end:
            for folder, name, kind in watch.wait(min(0.05, end - time.monotonic())):
                meant = {'write': kind & IN_CREATE and is_tmp(name) and folder != out,
                         'between': kind & IN_MOVED_TO and not is_tmp(name),
                         'export': kind & IN_CREATE and name.endswith('.partial')}.get(aim)
                if meant and skip == 0:
                    hit = True
                    break
                skip -= bool(meant)
        if aim == 'export' and hit:
            time.sleep(delay / 20)
        process.send_signal(signal.SIGKILL)
        code = process.wait()
        error = process.stderr.read().decode(errors='replace')
        process.stderr.close()
        watch.close()
        if code != -signal.SIGKILL:
            self.assertEqual(code, 0, error)
            return None
        if self.left(out, '.partial'):
            return 'export'
        if any('store' in p for p in self.left(out, '.tmp')):
            return 'write'
        if aim == 'between' and hit:
            return 'between'
        n_done = sum(n.endswith('.jsonl') for _, _, names in os.walk(os.path.join(out, 'store')) for n in names)
        return 'compute' if os.path.exists(os.path.join(out, 'job.json')) and n_done < N_PICTURES else 'other'

    def finish(self, out):
        """What anybody would do: the same command again, until it has nothing to complain about."""
        done = subprocess.run(self.command(out), capture_output=True, env=label_case.environment(), timeout=label_case.TIMEOUT_S)
        self.assertEqual(done.returncode, 0, done.stderr.decode(errors='replace'))
        self.assertEqual(self.left(out, '.tmp') + self.left(out, '.partial'), [])
        self.same(self.path('whole'), out)

    def test_killed_anywhere(self):
        seed = int(os.environ.get('SEED', time.time_ns() & 0xFFFFFF))
        chance = random.Random(seed)
        self.pictures(N_PICTURES, scene_every=7)
        started = time.monotonic()
        self.ok(subprocess.run(self.command(self.path('whole')), capture_output=True, env=label_case.environment()))
        whole = time.monotonic() - started
        self.assertEqual(len(self.records('whole')), N_PICTURES)
        self.assertGreater(sum(len(objects) for _, objects in self.records('whole').values()), 20)
        self.folders = sorted({os.fsdecode(p).split('/')[0] for p in label_case.tree(self.path('whole', 'store'))})

        out, landed, n_jobs, tries, where = self.path('out'), {}, 0, 0, None
        wanted = ['compute'] * 18 + ['write'] * 16 + ['between'] * 11 + ['export'] * 5
        chance.shuffle(wanted)
        self.fresh(out)
        while sum(landed.values()) < N_KILLS or min(landed.get(k, 0) for k in ('compute', 'write', 'between', 'export')) == 0:
            tries += 1
            self.assertLess(tries, 6 * N_KILLS, 'seed %d: %r' % (seed, landed))
            # Behind a kill in an export only the export is left: a second one there is cheap.
            aim = 'export' if where == 'export' and chance.random() < 0.6 else wanted[tries % len(wanted)]
            where = self.one_kill(out, aim, 0 if aim == 'export' else chance.randrange(0, 4), chance.uniform(0.02, 0.3) * min(whole, 4))
            if where:
                landed[where] = landed.get(where, 0) + 1
            else:  # it ran to its end
                n_jobs += 1
                self.finish(out)
                self.fresh(out)
        self.finish(out)
        print('label_kill_test: seed %d, %d kills: %s; %d runs of %d pictures, %.1f s each undisturbed' %
              (seed, sum(landed.values()), ', '.join('%s %d' % p for p in sorted(landed.items())), n_jobs + 1, N_PICTURES, whole))


if __name__ == '__main__':
    label_case.main(sys.argv, __doc__)
