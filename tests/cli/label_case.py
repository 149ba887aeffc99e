"""label_case.py: what the tests of `stencil label` share: small pictures, running the program, folders compared byte for byte. Python's standard
library only."""
import ctypes
import json
import os
import shutil
import struct
import subprocess
import tempfile
import unittest
import zlib

TREE = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
MODEL = os.path.join(TREE, 'models', 'demo')
SCENE = os.path.join(MODEL, 'scene.png')
TIMEOUT_S = 300  # a sanitizer build on a busy machine
PROGRAM = [None]  # set by the test's main
# Files of a job that are about this machine or this process, and no results.
MACHINE = ('root.json', '.lock')


def png(width, height, seed):
    """A PNG of smooth coloured stripes, different for every seed."""
    rows = bytearray()
    for y in range(height):
        rows.append(0)
        for x in range(width):
            rows += bytes(((x * 5 + seed * 37) & 255, (y * 7 + seed * 11) & 255, ((x + y) * 3 + seed * 101) & 255))
    def chunk(kind, body):
        return struct.pack('>I', len(body)) + kind + body + struct.pack('>I', zlib.crc32(kind + body))
    return (b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', width, height, 8, 2, 0, 0, 0)) +
            chunk(b'IDAT', zlib.compress(bytes(rows), 1)) + chunk(b'IEND', b''))


def environment():
    env = {k: v for k, v in os.environ.items() if k != 'STENCIL_MODEL'}
    env['STENCIL_MODEL'] = MODEL
    return env


def label(*arguments, **more):
    return subprocess.run([PROGRAM[0], 'label', *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(),
                          timeout=TIMEOUT_S, stdin=subprocess.DEVNULL, **more)


def like_anybody():
    """For preexec_fn: permissions of files hold for the program even when root runs the tests, as in containers (Linux: without
    CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH). Another user would do as well, but might not reach the program."""
    if os.geteuid() == 0:
        libc, PR_CAPBSET_DROP = ctypes.CDLL(None, use_errno=True), 24
        for capability in (1, 2):
            if libc.prctl(PR_CAPBSET_DROP, *(ctypes.c_ulong(n) for n in (capability, 0, 0, 0))) != 0:
                raise OSError(ctypes.get_errno(), 'prctl(PR_CAPBSET_DROP)')


def tree(folder, without=MACHINE):
    """{path: bytes} of all files below a folder; paths as bytes."""
    found = {}
    folder = os.fsencode(folder)
    for above, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(above, name)
            if os.fsdecode(name) in without:
                continue
            with open(path, 'rb') as f:
                found[os.path.relpath(path, folder)] = f.read()
    return found


class LabelCase(unittest.TestCase):
    maxDiff = 2000

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix='label_test.')
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, name, content=b''):
        """A file below the test's folder; folders are made. Names may be bytes."""
        path = os.path.join(os.fsencode(self.folder), os.fsencode(name))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'wb') as f:
            f.write(content)
        return path

    def pictures(self, n, folder='pictures', size=(40, 30), scene_every=0):
        """n small pictures; every scene_every-th one is a scene in which the demo model finds something."""
        for i in range(n):
            if scene_every and i % scene_every == 0:
                os.makedirs(self.path(folder), exist_ok=True)
                shutil.copy(SCENE, self.path(folder, 'p%03d.png' % i))
            else:
                self.write(os.path.join(folder, 'p%03d.png' % i), png(*size, seed=i))
        return self.path(folder)

    def ok(self, done, code=0):
        self.assertEqual(done.returncode, code, done.stderr.decode(errors='replace'))
        return done.stdout.decode()

    def refused(self, *arguments, says, code=2, **more):
        done = label(*arguments, **more)
        text = done.stderr.decode(errors='replace')
        self.assertEqual(done.returncode, code, text)
        self.assertEqual(done.stdout, b'')
        self.assertIn(says, text)
        self.assertTrue(text.startswith('stencil'), text)
        return text

    def job(self, folder='out'):
        with open(self.path(folder, 'job.json')) as f:
            return json.load(f)

    def records(self, folder='out'):
        """{name: (first line, objects)} of the store; names that are no UTF-8 as bytes."""
        found = {}
        for path, content in tree(self.path(folder, 'store')).items():
            first, *objects = [json.loads(line) for line in content.decode().splitlines()]
            name = first['name'] if isinstance(first['name'], str) else bytes.fromhex(first['name']['bytes'])
            self.assertNotIn(name, found)
            found[name] = (first, objects)
        return found

    def same(self, a, b):
        """Two folders of jobs hold the same results."""
        x, y = tree(a), tree(b)
        self.assertEqual(sorted(x), sorted(y))
        for path in sorted(x):
            self.assertEqual(x[path], y[path], path)


def main(argv, doc):
    if len(argv) < 2:
        raise SystemExit(doc)
    PROGRAM[0] = os.path.abspath(argv[1])
    unittest.main(module='__main__', argv=[argv[0], *argv[2:]])
