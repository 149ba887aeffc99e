#!/usr/bin/env python3
"""label_readers.py PROGRAM MAKE_STORE: exported labels read by the tools they are meant for (tests/reference/readers.txt), and turned into
masks again.

What must be equal: pycocotools (polygons and run lengths), supervision (COCO run lengths, VOC boxes), labelme (polygons and masks),
Label Studio's converter (brush), and supervision and Ultralytics on YOLO rows of objects of one part. What a reader fills in another way
is measured: COCO polygons by supervision, which draws the border too, and YOLO rows of several parts, which are joined by lines.
A reader that is not installed fails the run, unless it is named in --without.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np

TREE = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
sys.path.insert(0, os.path.join(TREE, 'tests', 'label'))
import label_formats as formats  # noqa: E402

NAMES = {1: 'forklift', 2: 'worker, "hi-vis" & <co>: #1', 5: 'b\u00e4r'}
failures = []


def check(what, good, detail=''):
    print('%-58s %s%s' % (what, 'ok' if good else 'FAILED', '  ' + detail if detail else ''))
    if not good:
        failures.append(what)


def iou(a, b):
    return (a & b).sum() / max((a | b).sum(), 1)


def n_parts(mask):
    return formats.n_parts(mask.flatten().tolist(), mask.shape[1])


class Set:
    """The store of make_store, and what must come out of it: {name: [(class, score, mask)]}."""

    def __init__(self, program, make_store, folder):
        self.program, self.folder, self.out = program, folder, os.path.join(folder, 'out')
        subprocess.run([make_store, folder, TREE], check=True)
        self.truth = {}
        for line in formats.read(os.path.join(folder, 'truth.jsonl')).splitlines():
            p = json.loads(line)
            masks = [np.frombuffer(bytes(formats.from_counts(o['counts'], p['width'], p['height'])), np.uint8).reshape(p['height'], p['width']).astype(bool)
                     for o in p['objects']]
            self.truth[p['name']] = [(NAMES[o['class_id']], o['score'], m) for o, m in zip(p['objects'], masks)]

    def export(self, name, *options):
        out = os.path.join(self.folder, name)
        subprocess.run([self.program, 'label', 'export', self.out, '-o', out, '-q', *options], check=True)
        return out

    def compare(self, what, found, exact=True):
        """found: {name: [mask]} of some or all pictures. exact: all must be equal; False: those of one part from 1,000 pixels 0.99; None: measured."""
        shares = []
        for name, masks in found.items():
            want = [m for _, _, m in self.truth[name]]
            if len(want) != len(masks):
                check(what, False, '%s: %d objects of %d' % (name, len(masks), len(want)))
                return
            shares += [(iou(a, b), b.sum(), n_parts(b)) for a, b in zip(masks, want)]
        same = sum(s == 1 for s, _, _ in shares)
        large = [s for s, area, parts in shares if area >= 1000 and parts == 1]
        rest = [s for s, area, parts in shares if area < 1000 or parts != 1]
        detail = '%d of %d equal; from 1,000 px in one part: worst IoU %s; rest: worst %.4f' % (
            same, len(shares), '%.4f' % min(large) if large else '-', min(rest) if rest else 1)
        good = {True: same == len(shares), False: not large or min(large) >= 0.99, None: bool(shares)}[exact]
        check(what + (', measured' if exact is None else ''), good, detail)


def pycocotools(data):
    from pycocotools.coco import COCO
    for options in ((), ('--rle',)):
        out = data.export('coco' + ''.join(options), '-f', 'coco', *options)
        coco = COCO(os.path.join(out, 'coco', 'instances.json'))
        found = {}
        for image in coco.loadImgs(coco.getImgIds()):
            found[image['file_name']] = [coco.annToMask(a).astype(bool) for a in coco.loadAnns(coco.getAnnIds(image['id']))]
        check('pycocotools: every picture is listed', list(found) == list(data.truth))
        data.compare('pycocotools: coco %s' % (options[0] if options else 'polygons'), found)


def supervision(data):
    import supervision as sv
    photos, there = os.path.join(data.folder, 'photos'), {n: v for n, v in data.truth.items() if os.path.exists(os.path.join(data.folder, 'photos', n))}
    for options in ((), ('--rle',)):
        out = data.export('sv' + ''.join(options), '-f', 'coco', *options)
        path = os.path.join(out, 'coco', 'instances.json')
        doc = json.loads(formats.read(path))
        gone = {i['id'] for i in doc['images'] if i['file_name'] not in there or i['file_name'] == 'turned.jpg'}
        doc['images'] = [i for i in doc['images'] if i['id'] not in gone]
        doc['annotations'] = [a for a in doc['annotations'] if a['image_id'] not in gone]
        with open(path, 'w') as f:
            json.dump(doc, f)
        loaded = sv.DetectionDataset.from_coco(images_directory_path=photos, annotations_path=path, force_masks=True)
        found = {os.path.relpath(p, os.path.realpath(photos)): list(d.mask) if len(d) else [] for p, d in loaded.annotations.items()}
        data.compare('supervision: coco %s' % (options[0] if options else 'polygons, border drawn'), found, exact=True if options else None)
    out = data.export('sv-yolo', '-f', 'yolo,voc', '--split', '0')
    yolo, by_stem = os.path.join(out, 'yolo'), {'a': 'a.jpg', 'a_png': 'a.png', 'a_png_jpg': 'a_png.jpg', 'big': 'big.png', 'turned': 'turned.jpg'}
    for name in data.truth:
        by_stem.setdefault(os.path.splitext(name.replace('/', '__'))[0], name)
    loaded = sv.DetectionDataset.from_yolo(images_directory_path=os.path.join(yolo, 'images/train'), force_masks=True,
                                           annotations_directory_path=os.path.join(yolo, 'labels/train'), data_yaml_path=os.path.join(yolo, 'data.yaml'))
    check('supervision: yolo class names', loaded.classes == ['forklift', NAMES[2], 'old', 'unused-4', NAMES[5]])
    found = {by_stem[os.path.splitext(os.path.basename(p))[0]]: list(d.mask) if len(d) else [] for p, d in loaded.annotations.items()}
    data.compare('supervision: yolo', found, exact=False)
    one_part = [iou(a, b) for n, masks in found.items() for a, (_, _, b) in zip(masks, data.truth[n]) if n_parts(b) == 1]
    check('supervision: yolo, objects of one part are equal', one_part and min(one_part) == 1, '%d objects' % len(one_part))
    voc = os.path.join(out, 'voc')
    loaded = sv.DetectionDataset.from_pascal_voc(images_directory_path=os.path.join(voc, 'JPEGImages'), annotations_directory_path=os.path.join(voc, 'Annotations'))
    good = 0
    for path, d in loaded.annotations.items():
        want = sorted(tuple(formats.box_of(m.flatten().tolist(), m.shape[1])) for _, _, m in data.truth[by_stem[os.path.splitext(os.path.basename(path))[0]]])
        got = sorted(tuple(int(v) for v in box) for box in d.xyxy)
        good += got == want
    check('supervision: voc boxes', good == len(data.truth) - 1, '%d of %d pictures' % (good, len(data.truth) - 1))  # one is gone


def labelme(data):
    os.environ.setdefault('QT_QPA_PLATFORM', 'offscreen')
    from labelme._label_file import LabelFile
    from labelme.utils import shape_to_mask
    for options in ((), ('--labelme-masks',)):
        out, found = os.path.join(data.export('lm' + ''.join(options), '-f', 'labelme', *options), 'labelme'), {}
        for name, stem in (('a.png', 'a_png'), ('big.png', 'big'), ('turned.jpg', 'turned'), ('a.jpg', 'a')):
            shapes = LabelFile(os.path.join(out, stem + '.json')).shapes
            size, groups, masks = data_size(data, name), {}, []
            for s in shapes:
                if s['shape_type'] == 'mask':
                    (x0, y0), (x1, y1) = np.asarray(s['points']).astype(int)
                    mask = np.zeros(size, bool)
                    mask[y0:y1 + 1, x0:x1 + 1] = s['mask']
                else:
                    mask = shape_to_mask(size, s['points'], s['shape_type'])
                if s['group_id'] is not None and s['group_id'] in groups:
                    groups[s['group_id']] |= mask
                    continue
                masks.append(mask)
                if s['group_id'] is not None:
                    groups[s['group_id']] = mask
            found[name] = masks
        data.compare('labelme: %s' % (options[0][10:] if options else 'polygons'), found)


def data_size(data, name):
    for line in formats.read(os.path.join(data.folder, 'truth.jsonl')).splitlines():
        p = json.loads(line)
        if p['name'] == name:
            return p['height'], p['width']
    raise KeyError(name)


def label_studio(data):
    from label_studio_sdk.converter.brush import decode_rle, mask2rle
    from urllib.parse import unquote
    found, bytes_equal, n = {}, 0, 0
    for task in json.loads(formats.read(os.path.join(data.export('ls', '-f', 'label-studio'), 'label-studio', 'tasks.json'))):
        name = unquote(task['data']['image'].split('?d=')[1])
        found[name] = []
        for r in task['predictions'][0]['result']:
            values = np.asarray(decode_rle(r['value']['rle']), np.uint8).reshape(r['original_height'], r['original_width'], 4)
            found[name].append(values[:, :, 3] > 0)
            bytes_equal += mask2rle(found[name][-1].astype(np.uint8) * 255) == r['value']['rle']
            n += 1
    data.compare('label-studio-sdk: brush', found)
    check('label-studio-sdk: our bytes are those of its encoder', bytes_equal == n, '%d of %d' % (bytes_equal, n))


def ultralytics(data):
    import cv2
    from ultralytics.data.utils import check_det_dataset, polygon2mask, verify_image_label
    yolo = os.path.join(data.export('ul', '-f', 'yolo', '--split', '0'), 'yolo')
    about = check_det_dataset(os.path.join(yolo, 'data.yaml'), autodownload=False)
    check('ultralytics: data.yaml', about['nc'] == 5 and os.path.samefile(about['train'], os.path.join(yolo, 'images/train')), str(list(about['names'].values())))
    found, bad = {}, []
    for file in sorted(os.listdir(os.path.join(yolo, 'images/train'))):
        image = os.path.join(yolo, 'images/train', file)
        label = os.path.splitext(image.replace('/images/', '/labels/'))[0] + '.txt'
        name = {'a.jpg': 'a.jpg', 'a_png.png': 'a.png', 'a_png_jpg.jpg': 'a_png.jpg', 'big.png': 'big.png', 'turned.jpg': 'turned.jpg'}.get(file)
        result = verify_image_label((image, label, '', False, 5, 0, 0, False))
        (im, lb, shape, segments), corrupt, message = result[:4], result[-2], result[-1]
        if im is None or corrupt:
            bad.append(message)
        if name is None or im is None:
            continue
        height, width = cv2.imread(image).shape[:2]
        found[name] = [polygon2mask((height, width), [(np.asarray(s) * [width, height]).reshape(-1)]).astype(bool) for s in segments]
    check('ultralytics: no picture is refused', not bad, '; '.join(bad)[:200])
    rows = {n: v for n, v in found.items() if len(v) == len(data.truth[n])}
    data.compare('ultralytics: yolo (%d of %d pictures, equal rows vanish)' % (len(rows), len(found)), rows, exact=False)


READERS = {'pycocotools': pycocotools, 'supervision': supervision, 'labelme': labelme, 'label-studio-sdk': label_studio, 'ultralytics': ultralytics}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('program')
    parser.add_argument('make_store')
    parser.add_argument('--without', action='append', default=[], choices=sorted(READERS), help='a reader that is not installed here')
    args = parser.parse_args()
    for name, reader in READERS.items():
        if name in args.without:
            print('%-58s NOT RUN' % name)
            continue
        folder = tempfile.mkdtemp(prefix='stencil-readers-')
        try:
            reader(Set(os.path.abspath(args.program), os.path.abspath(args.make_store), folder))
        except Exception as wrong:  # a reader that cannot read it, or is not installed
            check(name, False, '%s: %s' % (type(wrong).__name__, wrong))
        finally:
            shutil.rmtree(folder)
    if failures:
        sys.exit('label_readers: FAILED: %s' % ', '.join(failures))


if __name__ == '__main__':
    main()
