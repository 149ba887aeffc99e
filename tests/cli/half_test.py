#!/usr/bin/env python3
"""half_test.py PROGRAM [CLASS]: files of 16-bit weights. Matrices of linear layers stay in 16 bits and become floats on their way into a product, so such a
file must answer with the bits of an fp32 file of the same values, in less memory. Python's standard library only."""
import json
import os
import shutil
import struct
import sys
import unittest

from cli_test import Case, PROGRAM, run

SET = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'golden', 'data', 'tiny-meta')
PICTURE = os.path.join(SET, 'picture.png')


def rounded(value, dtype):
    """The bytes of a float in 16 bits, and the float that they stand for."""
    if dtype == 'F16':
        short = struct.pack('<e', value)
        return short, struct.unpack('<e', short)[0]
    short = struct.pack('<f', value)[2:]
    return short, struct.unpack('<f', b'\0\0' + short)[0]


def write(path, header, blobs):
    at = 0
    for name in blobs:
        header[name]['data_offsets'] = [at, at + len(blobs[name])]
        at += len(blobs[name])
    text = json.dumps(header).encode()
    text += b' ' * (-len(text) % 8)
    with open(path, 'wb') as f:
        f.write(struct.pack('<Q', len(text)) + text + b''.join(blobs.values()))


def convert(folder, dtype, spoil=None):
    """Writes the tiny model in `dtype` and in fp32 with the same values: (short, whole). `spoil`: a tensor whose last number becomes infinite."""
    with open(os.path.join(SET, 'model.safetensors'), 'rb') as f:
        data = f.read()
    size, = struct.unpack('<Q', data[:8])
    header = json.loads(data[8:8 + size])
    metadata = header.pop('__metadata__', None)
    short, whole, heads = {}, {}, ({}, {})
    for name in sorted(header, key=lambda n: header[n]['data_offsets']):
        begin, end = (8 + size + at for at in header[name]['data_offsets'])
        values = data[begin:end]
        for head in heads:
            head[name] = dict(header[name])
        if header[name]['dtype'] == 'F32':
            pairs = [rounded(v, dtype) for v in struct.unpack('<%df' % (len(values) // 4), values)]
            heads[0][name]['dtype'] = dtype
            short[name] = b''.join(p[0] for p in pairs)
            whole[name] = struct.pack('<%df' % len(pairs), *(p[1] for p in pairs))
            if name == spoil:
                short[name] = short[name][:-2] + (b'\0\x7c' if dtype == 'F16' else b'\x80\x7f')
        else:
            short[name] = whole[name] = values
    paths = []
    for kind, head, blobs in (('short', heads[0], short), ('whole', heads[1], whole)):
        paths.append(os.path.join(folder, f'{dtype}-{kind}.safetensors'))
        write(paths[-1], {**head, **({'__metadata__': metadata} if metadata else {})}, blobs)
        shutil.copy(os.path.join(SET, 'model.json'), paths[-1].replace('.safetensors', '.json'))
    return paths


class Half(Case):
    def answer(self, model, *more):
        doc = json.loads(self.ok(run('segment', PICTURE, 'a cat', '-m', model, '--threshold', '0', '--format', 'json', *more)))
        self.assertGreater(len(doc['images'][0]['results'][0]['instances']), 0)
        return doc['images'], doc['model']['id']

    def test_the_bits_of_fp32(self):
        for dtype in ('F16', 'BF16'):
            short, whole = convert(self.folder, dtype)
            info = [json.loads(self.ok(run('info', '--json', '-m', m))) for m in (short, whole)]
            self.assertIn(dtype, info[0]['dtypes'])
            self.assertEqual(info[0]['precision'], 'fp32')
            for more in ((), ('--box', '10,10,60,60'), ('-j', '3')):
                self.assertEqual(self.answer(short, *more), self.answer(whole, *more))

    def test_in_less_memory(self):
        short, whole = convert(self.folder, 'BF16')
        parts = [{p['name']: p['bytes'] for p in json.loads(self.ok(run('info', '--json', '--plan', '-m', m)))['lines']} for m in (short, whole)]
        kept = [sum(n for name, n in p.items() if name.startswith('weights')) for p in parts]
        self.assertLess(kept[0], 0.8 * kept[1])

    def test_a_number_that_is_none(self):
        name = 'detector.backbone.vision_backbone.trunk.blocks.0.mlp.fc1.weight'
        for dtype in ('F16', 'BF16'):
            short, _ = convert(self.folder, dtype, name)
            done = run('segment', PICTURE, 'a cat', '-m', short)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(name, done.stderr.decode())
            self.assertIn('NaN, infinite', done.stderr.decode())


if __name__ == '__main__':
    if not PROGRAM:
        raise SystemExit(__doc__)
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
