#!/usr/bin/env python3
"""label_readers.py PROGRAM MAKE_STORE READER...: exported labels read by the tools they are meant for (readers.txt, readers_more.txt), and
turned into masks again.

What must be equal: pycocotools (polygons and run lengths of coco, jsonl), supervision (COCO run lengths, VOC boxes), labelme (polygons and
masks), Label Studio's converter (brush), Pillow (pictures of masks), datumaro (CVAT, VOC, COCO, boxes of YOLO), and supervision and
Ultralytics on YOLO rows of objects of one part. What a reader fills in another way is measured: COCO polygons by supervision, which draws the
border too, and YOLO rows of several parts, which are joined by lines. A reader that is not installed fails the run.
"""
import argparse
import contextlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import types
import xml.etree.ElementTree as xml

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
    return (a & b).sum() / (a | b).sum() if (a | b).any() else 1


def n_parts(mask):
    return formats.n_parts(mask.flatten().tolist(), mask.shape[1])


class Set:
    """The store of make_store, and what must come out of it: {name: [(class, score, mask)]}."""

    def __init__(self, program, make_store, folder):
        self.program, self.folder, self.out = program, folder, os.path.join(folder, 'out')
        subprocess.run([make_store, folder, TREE], check=True)
        self.truth, self.sizes = {}, {}
        for line in formats.read(os.path.join(folder, 'truth.jsonl')).splitlines():
            p = json.loads(line)
            self.sizes[p['name']] = p['height'], p['width']
            masks = [np.frombuffer(bytes(formats.from_counts(o['counts'], p['width'], p['height'])), np.uint8).reshape(p['height'], p['width']).astype(bool)
                     for o in p['objects']]
            self.truth[p['name']] = [(NAMES[o['class_id']], o['score'], m) for o, m in zip(p['objects'], masks)]

    def export(self, name, *options):
        out = os.path.join(self.folder, name)
        subprocess.run([self.program, 'label', 'export', self.out, '-o', out, '-q', *options], check=True)
        return out

    def seen(self, name, covered):
        """What is visible of each object when better ones lie on top of worse ones, the best first; `covered`: also those that are not visible."""
        taken, out = np.zeros(self.size(name), bool), []
        for cls, score, mask in sorted(self.truth[name], key=lambda o: -o[1]):
            if covered or (mask & ~taken).any():
                out.append((cls, score, mask & ~taken))
            taken = taken | mask
        return out

    def boxes(self, name):
        return [(cls, formats.box_of(m.flatten().tolist(), m.shape[1])) for cls, _, m in self.truth[name]]

    def size(self, name):
        return self.sizes[name]

    def compare(self, what, found, exact=True, want=None):
        """found: {name: [mask]} of some or all pictures; want: the same, else the store's. exact: all must be equal; False: those of one part from 1,000 pixels 0.99; None: measured."""
        shares = []
        for name, masks in found.items():
            true = want[name] if want else [m for _, _, m in self.truth[name]]
            if len(true) != len(masks):
                check(what, False, '%s: %d objects of %d' % (name, len(masks), len(true)))
                return
            shares += [(iou(a, b), b.sum(), n_parts(b)) for a, b in zip(masks, true)]
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
        with contextlib.redirect_stdout(None):
            coco = COCO(os.path.join(out, 'coco', 'instances.json'))
        found = {}
        for image in coco.loadImgs(coco.getImgIds()):
            found[image['file_name']] = [coco.annToMask(a).astype(bool) for a in coco.loadAnns(coco.getAnnIds(image['id']))]
        check('pycocotools: every picture is listed', list(found) == list(data.truth))
        data.compare('pycocotools: coco %s' % (options[0] if options else 'polygons'), found)
    from pycocotools import mask
    found = {}
    for line in formats.read(os.path.join(data.export('jsonl', '-f', 'jsonl'), 'jsonl', 'labels.jsonl')).splitlines():
        doc = json.loads(line)
        found[doc['file_name']] = [mask.decode(o['segmentation']).astype(bool) for o in doc['objects']]
    data.compare('pycocotools: jsonl', found)


def pillow(data):
    from PIL import Image
    out = os.path.join(data.export('masks', '-f', 'masks'), 'masks')
    names, found, classes = json.loads(formats.read(os.path.join(out, 'classes.json'))), {}, True
    for line in formats.read(os.path.join(out, 'maps.jsonl')).splitlines():
        doc = json.loads(line)
        instance, by_class = (np.asarray(Image.open(os.path.join(out, kind, doc['map'] + '.png'))) for kind in ('instance', 'class'))
        found[doc['file_name']] = [instance == o['instance'] for o in doc['objects']]
        for mask, (name, _, _) in zip(found[doc['file_name']], data.seen(doc['file_name'], True)):
            classes &= all(names[str(v)] == name for v in np.unique(by_class[mask]))
        classes &= not by_class[instance == 0].any()
    data.compare('Pillow: masks, instances', found, want={n: [m for _, _, m in data.seen(n, True)] for n in data.truth})
    check('Pillow: masks, classes', classes)


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


class StandIn(types.ModuleType):
    """A module that can be imported, whose names are empty classes."""
    __path__ = []

    def __getattr__(self, name):
        if name.startswith('__'):
            raise AttributeError(name)
        return type(name, (), {})


def stand_in(package, *modules):
    """LabelMe is imported whole: where its window (Qt) and its models are not installed, which reading a file takes nothing from, this does."""
    if importlib.util.find_spec(package) is None:
        for name in (package, *(package + '.' + m for m in modules)):
            sys.modules[name] = StandIn(name)


def labelme(data):
    os.environ.setdefault('QT_QPA_PLATFORM', 'offscreen')
    stand_in('onnxruntime')
    stand_in('PyQt5', 'QtCore', 'QtGui', 'QtWidgets')
    from labelme._label_file import LabelFile
    from labelme.utils import shape_to_mask
    from loguru import logger
    logger.remove()
    for options in ((), ('--labelme-masks',)):
        out, found = os.path.join(data.export('lm' + ''.join(options), '-f', 'labelme', *options), 'labelme'), {}
        for name, stem in (('a.png', 'a_png'), ('big.png', 'big'), ('turned.jpg', 'turned'), ('a.jpg', 'a')):
            shapes = LabelFile(os.path.join(out, stem + '.json')).shapes
            size, groups, masks = data.size(name), {}, []
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


def label_studio(data):
    from label_studio_sdk.converter import Converter
    from label_studio_sdk.converter.brush import mask2rle
    from urllib.parse import unquote
    out = os.path.join(data.export('ls', '-f', 'label-studio'), 'label-studio')
    tasks, bytes_equal, n = json.loads(formats.read(os.path.join(out, 'tasks.json'))), 0, 0
    for i, task in enumerate(tasks):  # as Label Studio gives them out again, once somebody has accepted the predictions
        task.update(id=i + 1, annotations=[{'id': 1, 'completed_by': 1, 'result': p['result']} for p in task.pop('predictions')])
    accepted, arrays = os.path.join(out, 'accepted.json'), os.path.join(out, 'arrays')
    os.mkdir(arrays)
    with open(accepted, 'w') as f:
        json.dump(tasks, f)
    Converter(config=os.path.join(out, 'config.xml'), project_dir=out, download_resources=False).convert(accepted, arrays, 'BRUSH_TO_NUMPY', is_dir=False)
    found, files = {}, sorted(os.listdir(arrays))
    for task in tasks:
        name, counted = unquote(task['data']['image'].split('?d=')[1]), {}
        found[name] = []
        for r in task['annotations'][0]['result']:
            label = r['from_name'] + '-' + '-'.join(r['value']['brushlabels'])
            counted[label] = counted.get(label, -1) + 1
            file = 'task-%d-annotation-1-by-1-%s-%d.npy' % (task['id'], label.replace('/', '-'), counted[label])
            files.remove(file)
            found[name].append(np.load(os.path.join(arrays, file)) > 0)
            bytes_equal += mask2rle(found[name][-1].astype(np.uint8) * 255) == r['value']['rle']
            n += 1
    data.compare('label-studio-sdk: brush, by its converter', found)
    check('label-studio-sdk: nothing else was converted', not files, ', '.join(files))
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


# Datumaro takes a picture's name without its suffix for its id (so a.png cannot stand beside a.jpg), wants every picture to be there, reads only
# boxes from YOLO's files, and VOC's numbers, which count pixels from 1, as they stand. A colon ends a name in labelmap.txt.


def dm_items(data, what, kind, folder, subset, ids):
    """{name: [(class, annotation)]} of what datumaro reads; ids: {name: id}."""
    from datumaro import Dataset
    from datumaro.components.annotation import AnnotationType
    loaded = Dataset.import_from(folder, kind)
    labels = [c.name for c in loaded.categories()[AnnotationType.label]]
    found = {item.id: [(labels[a.label], a) for a in item.annotations] for item in loaded if item.subset == subset}
    check('datumaro: %s, every picture and no other' % what, sorted(found) == sorted(ids.values()), '%d' % len(found))
    return {name: found[i] for name, i in ids.items()}


def dm_masks(found, data, by_id):
    """{name: [mask]}: masks as they are, polygons of one object together."""
    from datumaro.components.annotation import AnnotationType
    from datumaro.util.mask_tools import rles_to_mask
    out = {}
    for name, annotations in found.items():
        (height, width), masks = data.size(name), {}
        for _, a in annotations:
            key = a.id if by_id else len(masks)
            if a.type == AnnotationType.mask:
                masks[key] = a.image.astype(bool)
            elif a.type == AnnotationType.polygon:
                masks[key] = masks.get(key, np.zeros((height, width), bool)) | rles_to_mask([a.points], width, height).astype(bool)
        out[name] = [masks[k] for k in sorted(masks)]
    return out


def dm_check_boxes(what, found, data, names, start):
    """The first pixel has the number `start`."""
    from datumaro.components.annotation import AnnotationType
    wrong = []
    for name, annotations in found.items():
        got = sorted((c, *(round(v) for v in a.get_bbox())) for c, a in annotations if a.type == AnnotationType.bbox)
        want = sorted((names[c], x0 + start, y0 + start, x1 - x0 - start, y1 - y0 - start) for c, (x0, y0, x1, y1) in data.boxes(name))
        wrong += [] if got == want else ['%s: %r %r' % (name, got, want)]
    check('datumaro: %s, boxes and classes' % what, not wrong, '; '.join(wrong)[:300])


def datumaro(data):
    from PIL import Image

    def put_pictures(folder, names):
        for name, new in names.items():
            os.makedirs(os.path.dirname(os.path.join(folder, new)), exist_ok=True)
            Image.new('RGB', data.size(name)[::-1]).save(os.path.join(folder, new))

    renamed = {n: 'a_2.png' if n == 'a.png' else n for n in data.truth}
    ids = {n: os.path.splitext(r)[0] for n, r in renamed.items()}
    for options in ((), ('--rle',)):
        out, what = data.export('dm' + ''.join(options), '-f', 'coco', *options), 'coco %s' % (options[0] if options else 'polygons')
        doc = json.loads(formats.read(os.path.join(out, 'coco', 'instances.json')))
        for image in doc['images']:
            image['file_name'] = renamed[image['file_name']]
        os.makedirs(os.path.join(out, 'there', 'annotations'))
        with open(os.path.join(out, 'there', 'annotations', 'instances_all.json'), 'w') as f:
            json.dump(doc, f)
        put_pictures(os.path.join(out, 'there', 'images'), renamed)
        data.compare('datumaro: ' + what, dm_masks(dm_items(data, what, 'coco', os.path.join(out, 'there'), 'all', ids), data, True))
    out = os.path.join(data.export('dm-cvat', '-f', 'cvat'), 'cvat')
    text = formats.read(os.path.join(out, 'annotations.xml')).replace('name="a.png"', 'name="a_2.png"')
    with open(os.path.join(out, 'annotations.xml'), 'w') as f:
        f.write(text)
    put_pictures(os.path.join(out, 'images'), renamed)
    found = dm_items(data, 'cvat', 'cvat', out, 'annotations', ids)
    data.compare('datumaro: cvat', dm_masks(found, data, False))
    check('datumaro: cvat, classes', all([c for c, _ in found[n]] == [c for c, _, _ in data.truth[n]] for n in found))
    datumaro_voc_yolo(data, put_pictures)


def datumaro_voc_yolo(data, put_pictures):
    flat = {n: os.path.splitext(n.replace('/', '__'))[0] for n in data.truth}
    flat.update({'a.png': 'a_png', 'a_png.jpg': 'a_png_jpg'})
    same = {c: c for c in NAMES.values()}
    out = data.export('dm-voc', '-f', 'voc', '--split', '0')
    for stem in flat.values():
        path = os.path.join(out, 'voc', 'Annotations', stem + '.xml')
        tree = xml.parse(path)
        for e in tree.iter('name'):
            e.text = 'worker' if e.text == NAMES[2] else e.text
        tree.write(path)
    with open(os.path.join(out, 'voc', 'labelmap.txt'), 'a') as f:
        f.write('worker:0,128,0::\n')
    found = dm_items(data, 'voc', 'voc', os.path.join(out, 'voc'), 'train', flat)
    dm_check_boxes('voc', found, data, {**same, NAMES[2]: 'worker'}, 1)
    data.compare('datumaro: voc, instances', dm_masks(found, data, False), want={n: [m for _, _, m in data.seen(n, False)] for n in flat})
    out = data.export('dm-yolo', '-f', 'yolo', '--split', '0', '--boxes-only')
    put_pictures(os.path.join(out, 'yolo', 'images', 'train'), {'gone.png': 'gone.png'})
    dm_check_boxes('yolo', dm_items(data, 'yolo', 'yolo', os.path.join(out, 'yolo'), 'train', flat), data, same, 0)


READERS = {'pycocotools': pycocotools, 'pillow': pillow, 'supervision': supervision, 'labelme': labelme, 'label-studio-sdk': label_studio,
           'datumaro': datumaro, 'ultralytics': ultralytics}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('program')
    parser.add_argument('make_store')
    parser.add_argument('readers', nargs='+', choices=READERS)
    args = parser.parse_args()
    if len(args.readers) > 1:  # a process each: some cannot stand what another one imported
        failed = [r for r in args.readers if subprocess.run([sys.executable, '-W', 'ignore', __file__, args.program, args.make_store, r]).returncode]
        sys.exit('label_readers: FAILED: %s' % ', '.join(failed) if failed else 0)
    name, folder = args.readers[0], tempfile.mkdtemp(prefix='stencil-readers-')
    try:
        READERS[name](Set(os.path.abspath(args.program), os.path.abspath(args.make_store), folder))
    except Exception as wrong:  # a reader that cannot read it, or is not installed
        check(name, False, '%s: %s' % (type(wrong).__name__, wrong))
    finally:
        shutil.rmtree(folder)
    sys.exit(1 if failures else 0)


if __name__ == '__main__':
    main()
