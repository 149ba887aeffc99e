"""click_case.py: what the tests of clicks share: a conversation with `stencil click`, and files of masks. Python's standard library only.

The demo model answers. Nothing depends on how good its clicks are: what is compared is one way of asking with another, to the byte.
"""
import json
import os
import select
import shutil
import struct
import subprocess
import zlib

from cli_test import Case, MODEL, PICTURE, PROGRAM, TIMEOUT_S, TREE

OTHER_MODEL = os.path.join(TREE, 'tests', 'golden', 'data', 'tiny-hf-click')
NO_CLICKS = os.path.join(TREE, 'tests', 'golden', 'data', 'tiny-hf')  # has no interactive head
SIDE, GRID = 224, 64  # of PICTURE; of the demo model's mask grid
POINT, BESIDE, REGION = ('140,175', '90,120:neg', '113,151,162,203')
FIRST, SECOND = {'op': 'point', 'x': 140, 'y': 175}, {'op': 'point', 'x': 90, 'y': 120, 'label': 0}
BOX = '60,80,130,155'
STATE = ['ok', 'op', 'verbs', 'prompt', 'object_score', 'multimask', 'hole_area', 'chosen', 'candidates']
NOTHING = {'verbs': 0, 'prompt': {'points': [], 'region': None, 'mask': None, 'refines': None}, 'object_score': None, 'multimask': None, 'hole_area': None,
           'chosen': None, 'candidates': []}


def region(*box):
    return {'op': 'region', 'box': list(box)}


def write_gray(path, pixel, width=SIDE, height=SIDE):
    """An 8-bit gray PNG of pixel(x, y)."""
    rows = b''.join(b'\0' + bytes(pixel(x, y) for x in range(width)) for y in range(height))
    with open(path, 'wb') as f:
        f.write(b'\x89PNG\r\n\x1a\n')
        for kind, body in ((b'IHDR', struct.pack('>IIBBBBB', width, height, 8, 0, 0, 0, 0)), (b'IDAT', zlib.compress(rows)), (b'IEND', b'')):
            f.write(struct.pack('>I', len(body)) + kind + body + struct.pack('>I', zlib.crc32(kind + body)))
    return path


def write_npy(path, values, shape=(GRID, GRID)):
    head = ("{'descr': '<f4', 'fortran_order': False, 'shape': %r, }" % (shape,)).ljust(117) + '\n'
    with open(path, 'wb') as f:
        f.write(b'\x93NUMPY\x01\x00' + struct.pack('<H', len(head)) + head.encode() + struct.pack('<%df' % len(values), *values))
    return path


def compressed(counts):
    """COCO's string of run lengths."""
    text = ''
    for i, count in enumerate(counts):
        value, more = count - counts[i - 2] if i > 2 else count, True
        while more:
            low, value = value & 0x1F, value >> 5
            more = value != (-1 if low & 0x10 else 0)
            text += chr((low | 0x20 if more else low) + 48)
    return text


def square(x, y):
    return 255 if 113 <= x < 162 and 151 <= y < 203 else 0


def larger_model(folder):
    """The demo model's weights, told to read 448 x 448 pixels: the same id at another input size."""
    shutil.copytree(MODEL, folder)
    with open(os.path.join(MODEL, 'config.json')) as f:
        text = f.read()
    with open(os.path.join(folder, 'config.json'), 'w') as f:
        f.write(text.replace('"image_size": 224', '"image_size": 448'))
    return folder


def without(reply, *keys):
    return {k: v for k, v in reply.items() if k not in keys}


class Talk:
    """A conversation with `stencil click`."""

    def __init__(self, *arguments, model=MODEL):
        self.process = subprocess.Popen([PROGRAM, 'click', *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        env={**os.environ, 'STENCIL_MODEL': model})
        self.opened = self.hear()

    def hear(self):
        """The next line, whole: a reply must not wait for the next command."""
        ready, _, _ = select.select([self.process.stdout], [], [], TIMEOUT_S)
        assert ready, 'no reply'
        line = self.process.stdout.readline()
        assert line.endswith(b'\n'), (line, self.process.stderr.read())
        return json.loads(line)

    def say(self, command):
        """A command (an object, or bytes as they are) and its reply."""
        line = command if isinstance(command, bytes) else json.dumps(command).encode()
        self.process.stdin.write(line + b'\n')
        self.process.stdin.flush()
        return self.hear()

    def end(self):
        """No more input: (exit code, what else was said, messages)."""
        rest, errors = self.process.communicate(timeout=TIMEOUT_S)
        return self.process.returncode, rest, errors

    def stop(self):
        self.process.kill()
        self.process.communicate()


class ClickCase(Case):
    def talk(self, *arguments, **more):
        talk = Talk(*(arguments or (PICTURE,)), **more)
        self.addCleanup(talk.stop)
        self.assertTrue(talk.opened['ok'], talk.opened)
        return talk

    def good(self, talk, *commands):
        """Replies to commands that go well."""
        replies = [talk.say(c) for c in commands]
        for command, reply in zip(commands, replies):
            self.assertTrue(reply['ok'], (command, reply))
            self.assertEqual(reply['op'], command['op'])
        return replies

    def objects(self, *arguments, **more):
        return self.document(*arguments, **more)['images'][0]['results']

    def one(self, *arguments, **more):
        result, = self.objects(*arguments, **more)
        return result

    def all_differ(self, answers):
        seen = {}
        for name, answer in answers.items():
            text = json.dumps(answer, sort_keys=True)
            self.assertNotIn(text, seen, '%s gives what %s gives' % (name, seen.get(text)))
            seen[text] = name
