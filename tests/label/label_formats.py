"""label_formats.py: strict readers of what `stencil label export` writes, from the formats' own texts. Python's standard library only.

A mask is a bytearray of width * height zeros and ones, row by row. Every reader gives {picture name: [object]}, an object being a
dict with class, score (or None), mask (or None) and box (x0, y0, x1, y1, exclusive; or None).
"""
import base64
import json
import os
import struct
import xml.etree.ElementTree as xml
import zlib

# ---------------------------------------------------------------- masks


def from_counts(counts, width, height):
    """COCO's run lengths: columns, zeros first."""
    assert sum(counts) == width * height and all(n > 0 for n in counts[1:]), counts[:8]
    mask, at = bytearray(width * height), 0
    for i, n in enumerate(counts):
        if i % 2:
            for p in range(at, at + n):
                mask[p % height * width + p // height] = 1
        at += n
    return mask


def from_string(text):
    counts, at = [], 0
    while at < len(text):
        value, shift, more = 0, 0, True
        while more:
            c = ord(text[at]) - 48
            assert 0 <= c < 64
            value |= (c & 0x1F) << shift
            more = bool(c & 0x20)
            at += 1
            shift += 5
            if not more and c & 0x10:
                value |= -1 << shift
        counts.append(value + (counts[-2] if len(counts) > 2 else 0))
    return counts


def fill_edges(mask, width, height, xy):
    """Even-odd fill of pixel centres; all sides are level or upright. United with what is there."""
    crossings = [[] for _ in range(height)]
    for i, (x, y) in enumerate(xy):
        u, v = xy[(i + 1) % len(xy)]
        assert x == u or y == v, 'neither level nor upright'
        assert 0 <= x <= width and 0 <= y <= height
        for row in range(min(y, v), max(y, v)):
            crossings[row].append(x)
    for row, xs in enumerate(crossings):
        xs.sort()
        assert len(xs) % 2 == 0
        for a, b in zip(xs[::2], xs[1::2]):
            mask[row * width + a:row * width + b] = b'\1' * (b - a)


def fill_with_border(mask, width, height, xy):
    """As OpenCV's fillPoly and Pillow's polygon with outline: even-odd inside, and the pixels under the sides."""
    inside = [[] for _ in range(height)]
    for i, (x, y) in enumerate(xy):
        u, v = xy[(i + 1) % len(xy)]
        assert 0 <= x < width and 0 <= y < height, 'outside the picture'
        (x0, y0), (x1, y1) = sorted([(x, y), (u, v)], key=lambda p: (p[1], p[0]))
        for row in range(y0, y1):
            inside[row].append(x0 + (row - y0) * (x1 - x0) / (y1 - y0))
        steps = max(abs(u - x), abs(v - y), 1)
        for k in range(steps + 1):
            mask[(y + round(k * (v - y) / steps)) * width + x + round(k * (u - x) / steps)] = 1
    for row, xs in enumerate(inside):
        xs.sort()
        assert len(xs) % 2 == 0
        for a, b in zip(xs[::2], xs[1::2]):
            for x in range(int(a) + 1, int(b) + (b > int(b))):
                mask[row * width + x] = 1


def box_of(mask, width):
    rows = [i // width for i, v in enumerate(mask) if v]
    columns = [i % width for i, v in enumerate(mask) if v]
    return (min(columns), min(rows), max(columns) + 1, max(rows) + 1)


def n_parts(mask, width):
    """8-connected."""
    left, n = {i for i, v in enumerate(mask) if v}, 0
    while left:
        todo, n = [left.pop()], n + 1
        while todo:
            p = todo.pop()
            for q in (p + dy * width + dx for dy in (-1, 0, 1) for dx in (-1, 0, 1) if 0 <= p % width + dx < width):
                if q in left:
                    left.remove(q)
                    todo.append(q)
    return n


def read_png(data):
    """(width, height, depth, samples): gray or palette numbers, 8 or 16 bits."""
    assert data[:8] == b'\x89PNG\r\n\x1a\n'
    at, packed, head = 8, b'', None
    while at < len(data):
        length, kind = struct.unpack('>I4s', data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        assert struct.unpack('>I', data[at + 8 + length:at + 12 + length])[0] == zlib.crc32(kind + body)
        if kind == b'IHDR':
            head = struct.unpack('>IIBBBBB', body)
        if kind == b'IDAT':
            packed += body
        at += 12 + length
    width, height, depth, colour = head[:4]
    assert colour in (0, 3) and depth in (8, 16) and head[6] == 0
    step, raw, rows = depth // 8, zlib.decompress(packed), []
    stride, above = width * step, bytearray(width * step)
    for y in range(height):
        kind, line = raw[y * (stride + 1)], bytearray(raw[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
        for x in range(stride):
            left, corner = (line[x - step], above[x - step]) if x >= step else (0, 0)
            if kind == 1:
                line[x] = line[x] + left & 255
            elif kind == 2:
                line[x] = line[x] + above[x] & 255
            elif kind == 3:
                line[x] = line[x] + (left + above[x]) // 2 & 255
            elif kind == 4:
                p = left + above[x] - corner
                near = min((abs(p - left), 0, left), (abs(p - above[x]), 1, above[x]), (abs(p - corner), 2, corner))
                line[x] = line[x] + near[2] & 255
        rows.append(line)
        above = line
    flat = b''.join(rows)
    return width, height, depth, list(struct.unpack('>%dH' % (len(flat) // 2), flat)) if depth == 16 else list(flat)


def read(path, mode='r'):
    with open(path, mode, **({} if 'b' in mode else {'encoding': 'utf-8'})) as f:
        return f.read()


def png(path):
    return read_png(read(path, 'rb'))


# ---------------------------------------------------------------- formats


def coco(folder):
    doc = json.loads(read(os.path.join(folder, 'instances.json')))
    names = {c['id']: c['name'] for c in doc['categories']}
    images = {i['id']: i for i in doc['images']}
    assert list(images) == list(range(1, len(images) + 1))
    assert [a['id'] for a in doc['annotations']] == list(range(1, len(doc['annotations']) + 1))
    found = {i['file_name']: [] for i in doc['images']}
    for a in doc['annotations']:
        image = images[a['image_id']]
        width, height = image['width'], image['height']
        x, y, w, h = a['bbox']
        assert a['iscrowd'] == 0 and w > 0 and h > 0 and x >= 0 and y >= 0 and x + w <= width and y + h <= height
        mask = None
        if isinstance(a['segmentation'], dict):
            assert a['segmentation']['size'] == [height, width]
            mask = from_counts(from_string(a['segmentation']['counts']), width, height)
        elif a['segmentation']:
            mask = bytearray(width * height)
            for ring in a['segmentation']:
                assert len(ring) >= 8 and len(ring) % 2 == 0
                fill_edges(mask, width, height, list(zip(ring[::2], ring[1::2])))
        if mask is not None:
            assert a['area'] == sum(mask)
        found[image['file_name']].append({'class': names[a['category_id']], 'score': a['score'], 'mask': mask,
                                          'box': (x, y, x + w, y + h)})
    return found


def jsonl(folder):
    found = {}
    for line in read(os.path.join(folder, 'labels.jsonl')).splitlines():
        picture = json.loads(line)
        found[picture['file_name']] = []
        for o in picture['objects']:
            x, y, w, h = o['bbox']
            mask = None
            if 'segmentation' in o:
                mask = from_counts(from_string(o['segmentation']['counts']), picture['width'], picture['height'])
            found[picture['file_name']].append({'class': o['class'], 'score': o['score'], 'mask': mask,
                                                'box': (x, y, x + w, y + h)})
    return found


def yolo_names(folder):
    """The lines under `names:`, whose values are JSON strings."""
    text = read(os.path.join(folder, 'data.yaml'))
    head, tail = text.split('names:\n')
    paths = dict(line.split(': ') for line in head.splitlines())
    names = {}
    for line in tail.splitlines():
        number, name = line.strip().split(': ', 1)
        names[int(number)] = json.loads(name)
    assert list(names) == list(range(len(names)))
    return paths, names


def yolo(folder, stems):
    """stems: {stem: (name, width, height)}."""
    names, found = yolo_names(folder)[1], {}
    for split in sorted(os.listdir(os.path.join(folder, 'labels'))):
        for file in sorted(os.listdir(os.path.join(folder, 'labels', split))):
            name, width, height = stems[file[:-4]]
            objects = found.setdefault(name, [])
            for line in read(os.path.join(folder, 'labels', split, file)).splitlines():
                number, *values = line.split(' ')
                values = [float(v) for v in values]
                assert all(0 <= v <= 1 for v in values)
                if len(values) == 4:
                    cx, cy, w, h = values
                    objects.append({'class': names[int(number)], 'score': None, 'mask': None, 'box': (
                        (cx - w / 2) * width, (cy - h / 2) * height, (cx + w / 2) * width, (cy + h / 2) * height)})
                    continue
                assert len(values) >= 6 and len(values) % 2 == 0
                cut = [(int(x * width), int(y * height)) for x, y in zip(values[::2], values[1::2])]
                rounded = [(round(x * width), round(y * height)) for x, y in zip(values[::2], values[1::2])]
                assert cut == rounded, 'readers that cut and readers that round disagree'
                mask = bytearray(width * height)
                fill_with_border(mask, width, height, cut)
                objects.append({'class': names[int(number)], 'score': None, 'mask': mask, 'box': None})
    return found


def labelme(folder, stems):
    found = {}
    for stem, (name, width, height) in stems.items():
        doc = json.loads(read(os.path.join(folder, stem + '.json')))
        assert (doc['imageWidth'], doc['imageHeight'], doc['imageData']) == (width, height, None)
        assert '/' not in doc['imagePath'] and doc['imagePath'].startswith(os.path.basename(stem) + '.')
        objects, groups = [], {}
        for s in doc['shapes']:
            o = {'class': s['label'], 'score': s['score'], 'mask': bytearray(width * height), 'box': None}
            if s['group_id'] is not None and s['group_id'] in groups:
                o = groups[s['group_id']]
            else:
                objects.append(o)
            if s['group_id'] is not None:
                groups[s['group_id']] = o
            if s['shape_type'] == 'mask':
                (x0, y0), (x1, y1) = s['points']
                w, h, _, samples = read_png(base64.b64decode(s['mask'], validate=True))
                assert (w, h) == (x1 - x0 + 1, y1 - y0 + 1)
                for i, v in enumerate(samples):
                    o['mask'][(y0 + i // w) * width + x0 + i % w] = v != 0
            elif s['shape_type'] == 'rectangle':
                o['mask'], o['box'] = None, tuple(s['points'][0] + s['points'][1])
            else:
                assert s['shape_type'] == 'polygon' and len(s['points']) >= 3
                fill_with_border(o['mask'], width, height, [tuple(p) for p in s['points']])
        found[name] = objects
    return found


def cvat(folder):
    root, found = xml.parse(os.path.join(folder, 'annotations.xml')).getroot(), {}
    assert root.findtext('version') == '1.1'
    labels = {e.text for e in root.findall('meta/task/labels/label/name')}
    for number, image in enumerate(root.findall('image')):
        assert image.get('id') == str(number)
        width, height = int(image.get('width')), int(image.get('height'))
        objects = found.setdefault(image.get('name'), [])
        for e in image:
            assert e.get('label') in labels and e.get('source') == 'auto'
            if e.tag == 'box':
                objects.append({'class': e.get('label'), 'score': None, 'mask': None,
                                'box': tuple(float(e.get(k)) for k in ('xtl', 'ytl', 'xbr', 'ybr'))})
                continue
            left, top, w, h = (int(e.get(k)) for k in ('left', 'top', 'width', 'height'))
            flat = bytearray()
            for i, n in enumerate(int(n) for n in e.get('rle').split(', ')):
                flat += bytes([i % 2]) * n
            assert len(flat) == w * h
            mask = bytearray(width * height)
            for y in range(h):
                mask[(top + y) * width + left:(top + y) * width + left + w] = flat[y * w:(y + 1) * w]
            objects.append({'class': e.get('label'), 'score': None, 'mask': mask, 'box': None})
    return found


def unpack_brush(numbers):
    """rle-pack: bits, highest first; the fourth of each four values."""
    bits = int.from_bytes(bytes(numbers), 'big')
    left = 8 * len(numbers)

    def take(n):
        nonlocal left
        left -= n
        assert left >= 0
        return bits >> left & (1 << n) - 1

    total, word = take(32), take(5) + 1
    sizes = [take(4) + 1 for _ in range(4)]
    values = bytearray()
    while len(values) < total:
        repeated, size = take(1), sizes[take(2)]
        n = take(size) + 1
        if repeated:
            values += bytes([take(word)]) * n
        else:
            values += bytes(take(word) for _ in range(n))
    assert len(values) == total and values[::4] == values[3::4]
    return values[3::4]


def label_studio(folder, prefix='/data/local-files/?d='):
    from urllib.parse import unquote
    root = xml.parse(os.path.join(folder, 'config.xml')).getroot()
    control = root[1]
    labels, found = {e.get('value') for e in control}, {}
    for task in json.loads(read(os.path.join(folder, 'tasks.json'))):
        assert task['data']['image'].startswith(prefix)
        objects = found.setdefault(unquote(task['data']['image'][len(prefix):]), [])
        (prediction,) = task['predictions']
        assert len({r['id'] for r in prediction['result']}) == len(prediction['result'])
        for r in prediction['result']:
            assert (r['from_name'], r['to_name'], len(r['id'])) == (control.get('name'), root[0].get('name'), 10)
            width, height, value = r['original_width'], r['original_height'], r['value']
            o = {'class': value[r['type']][0], 'score': r['score'], 'mask': None, 'box': None}
            assert o['class'] in labels and control.tag.lower() == r['type']
            if r['type'] == 'brushlabels':
                o['mask'] = bytearray(v == 255 for v in unpack_brush(value['rle']))
                assert len(o['mask']) == width * height and value['format'] == 'rle'
            else:
                x, y = value['x'] * width / 100, value['y'] * height / 100
                o['box'] = (x, y, x + value['width'] * width / 100, y + value['height'] * height / 100)
            objects.append(o)
    return found


def masks(folder):
    """{name: (instance map, class map, [class name per number], width)}."""
    classes, found = json.loads(read(os.path.join(folder, 'classes.json'))), {}
    for line in read(os.path.join(folder, 'maps.jsonl')).splitlines():
        picture = json.loads(line)
        width, height, depth, instances = png(os.path.join(folder, 'instance', picture['map'] + '.png'))
        assert depth == 16
        w, h, depth, by_class = png(os.path.join(folder, 'class', picture['map'] + '.png'))
        assert (w, h, depth) == (width, height, 8)
        found[picture['file_name']] = (instances, by_class,
                                       [(classes[str(o['class_id'])], o['class_id'], o['score']) for o in picture['objects']], width)
    return found


def voc(folder, stems):
    """{name: [(class, box)]}, and {name: (object map, class map)}."""
    boxes, maps = {}, {}
    for stem, (name, width, height) in stems.items():
        root = xml.parse(os.path.join(folder, 'Annotations', stem + '.xml')).getroot()
        assert root.findtext('filename').startswith(stem + '.')
        assert (int(root.findtext('size/width')), int(root.findtext('size/height'))) == (width, height)
        boxes[name] = []
        for o in root.findall('object'):
            x0, y0, x1, y1 = (int(o.findtext('bndbox/' + k)) for k in ('xmin', 'ymin', 'xmax', 'ymax'))
            assert 1 <= x0 <= x1 <= width and 1 <= y0 <= y1 <= height
            boxes[name].append((o.findtext('name'), (x0 - 1, y0 - 1, x1, y1)))
        if root.findtext('segmented') == '1':
            maps[name] = tuple(png(os.path.join(folder, 'Segmentation' + kind, stem + '.png'))[3] for kind in ('Object', 'Class'))
    return boxes, maps
