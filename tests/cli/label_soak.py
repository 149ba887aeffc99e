#!/usr/bin/env python3
"""label_soak.py PROGRAM [N]: one `stencil label` over N (2,000) pictures of many sizes: resident memory must stay within 2 % from the second tenth of
the run to the last, and the number of open files must not grow. Linux only (/proc)."""
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import label_case

ALLOWED = 0.02


def resident_kb(pid):
    with open('/proc/%d/status' % pid) as f:
        return next(int(line.split()[1]) for line in f if line.startswith('VmRSS:'))


def done(out):
    return sum(len(files) for _, _, files in os.walk(os.path.join(out, 'store')))


def watch(process, out, n):
    """[(pictures done, resident kB, open files)] while it runs."""
    seen = []
    while process.poll() is None:
        try:
            seen.append((done(out), resident_kb(process.pid), len(os.listdir('/proc/%d/fd' % process.pid))))
        except (OSError, StopIteration):  # it just ended
            break
        time.sleep(0.25)
    return [s for s in seen if s[0] < n]


def main():
    label_case.PROGRAM[0] = os.path.abspath(sys.argv[1])
    n = int(sys.argv[2]) if len(sys.argv) > 2 else 2000
    folder = tempfile.mkdtemp(prefix='label_soak.')
    try:
        chance, pictures, out = random.Random(1), os.path.join(folder, 'pictures'), os.path.join(folder, 'out')
        os.makedirs(pictures)
        kinds = []
        for i in range(24):
            kinds.append(os.path.join(folder, 'kind%d.png' % i))
            if i % 8 == 0:
                shutil.copy(label_case.SCENE, kinds[i])
            else:
                with open(kinds[i], 'wb') as f:
                    f.write(label_case.png(chance.randrange(20, 400), chance.randrange(20, 400), i))
        for i in range(n):
            os.link(kinds[chance.randrange(len(kinds))], os.path.join(pictures, '%05d.png' % i))
        process = subprocess.Popen([label_case.PROGRAM[0], 'label', pictures, '-c', 'food', '-c', 'animal', '--floor', '0.1', '-o', out, '-q'],
                                   env=label_case.environment())
        seen = watch(process, out, n)
        if process.wait() != 0:
            raise SystemExit('label_soak: the run ended with %d' % process.returncode)
        if done(out) != n:
            raise SystemExit('label_soak: %d of %d pictures are in the store' % (done(out), n))
    finally:
        shutil.rmtree(folder)
    part = [[s for s in seen if n * k // 10 <= s[0] < n * (k + 1) // 10] for k in range(10)]
    if min(len(part[1]), len(part[9])) < 4:
        raise SystemExit('label_soak: too quick to watch: %d looks; take more pictures' % len(seen))
    memory = [statistics.median(s[1] for s in p) for p in part if p]
    files = [max(s[2] for s in p) for p in part if p]
    grown = memory[-1] / memory[1] - 1
    print('label_soak: %d pictures; resident kB by tenths of the run: %s; open files: %s; from the second tenth to the last %+.2f %%' %
          (n, ' '.join('%d' % m for m in memory), ' '.join(map(str, files)), 100 * grown))
    if abs(grown) > ALLOWED:
        raise SystemExit('label_soak: memory moves by more than %g %%' % (100 * ALLOWED))
    if files[-1] > files[1]:
        raise SystemExit('label_soak: open files grow')


if __name__ == '__main__':
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    main()
