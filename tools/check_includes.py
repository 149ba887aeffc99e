#!/usr/bin/env python3
"""check_includes.py: who may look into which room, over the #include lines of src/ (docs/architecture.md)."""
import os
import re
import sys

import c_source

BELOW = {
    'base': set(),
    'kernels': {'base'},
    'weights': {'base'},
    'tensor': {'base', 'kernels', 'weights'},  # a layer's weights as the operations take them
    'picture': {'base'},
    'mask': {'base', 'kernels'},
    'text': {'base', 'kernels', 'tensor', 'weights'},
    'vision': {'base', 'kernels', 'tensor', 'weights'},
    'detect': {'base', 'kernels', 'tensor', 'weights'},
    'click': {'base', 'kernels', 'tensor', 'weights', 'vision'},  # the interactive head has a neck of its own
    'engine': {'base', 'kernels', 'tensor', 'weights', 'picture', 'mask', 'text', 'vision', 'detect', 'click'},
    # The rooms of the program: the public headers and each other's common room, nothing else.
    'front': set(),
    'label': {'front'},
    'cli': {'front', 'label'},
}
# Parts that stay behind one door: header -> folders that may include it.
DOORS = {
    'dnnl.h': ('bench/',),
    'immintrin.h': ('src/kernels/avx2/', 'src/kernels/avx512/', 'src/kernels/amx/'),
    'arm_neon.h': ('src/kernels/neon/',),
    'cpuid.h': ('src/base/',),
}
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">]', re.M)


def check(path, text, exists):
    """Problems of one file. `exists` says whether a path of the tree is there."""
    problems = []
    room = path.split('/')[1]
    if room not in BELOW:
        return ['%s: room %s has no rule in tools/check_includes.py' % (path, room)]
    blanked = c_source.blank(text)
    for match in INCLUDE.finditer(blanked):
        kind, name = match.groups()
        where = '%s:%d' % (path, blanked.count('\n', 0, match.start()) + 1)
        doors = DOORS.get(os.path.basename(name))
        if doors and not path.startswith(doors):
            problems.append('%s: <%s> belongs in %s only' % (where, name, ' or '.join(doors)))
        if kind == '<':
            continue
        target = os.path.normpath('src/' + name)
        if not exists(target):
            target = os.path.normpath(os.path.join(os.path.dirname(path), name))
        if not exists(target):
            problems.append('%s: "%s" is not in the tree; outside headers are included with <>' % (where, name))
        elif not target.startswith('src/'):
            problems.append('%s: "%s" lies outside src/; public headers are included with <>' % (where, name))
        elif target.split('/')[1] not in BELOW[room] | {room}:
            problems.append('%s: room %s may not look into room %s' % (where, room, target.split('/')[1]))
    return problems


def main():
    names = [n for n in c_source.files() if n.startswith('src/') and n.endswith(('.c', '.h', '.inc'))]
    present = set(names)
    problems = []
    for name in names:
        problems += check(name, c_source.read(os.path.join(c_source.ROOT, name)), lambda p: p in present)
    return c_source.report('check_includes', problems, len(names))


if __name__ == '__main__':
    sys.exit(main())
