#!/usr/bin/env python3
"""check_text.py: banned functions in src/, and the looks of every text file: blanks at line ends, tabs, invisible characters, names."""
import os
import re
import sys
import unicodedata

import c_source

TEXT = ('.c', '.h', '.inc', '.py', '.sh', '.cmake', '.md', '.txt', '.yml', '.json', '.1', '.allow')
CODE = ('.c', '.h', '.py', '.sh')
# Folders of data, and files that come from elsewhere as they are.
DATA = ('tests/data/', 'tests/golden/', 'tests/fuzz/corpus/', 'tests/unit/data/', 'models/', 'bench/results/', 'LICENSE')
# Names that a folder's role gives, not its content.
ROLE_NAMES = {'room.cmake', 'CMakeLists.txt', 'README.md', '__init__.py', 'conftest.py'}

MEMORY = 'malloc calloc realloc reallocarray strdup strndup aligned_alloc posix_memalign memalign valloc'
# pattern -> why, everywhere in src/
BANNED = {
    r'\b(strcpy|strcat|stpcpy|sprintf|vsprintf|gets|strtok)\s*\(': 'writes or scans without a bound',
    r'\b(atoi|atol|atoll|atof)\s*\(': 'cannot tell an error from 0',
    r'\bstrto(l|ll|ul|ull|f|d|ld|imax|umax)\s*\([^;]*?,\s*NULL\b': 'needs an end pointer that is looked at',
    r'\b(system|popen)\s*\(': 'runs a shell',
    r'\balloca\s*\(': 'grows the stack unchecked',
    r'\b(rand|srand|random)\s*\(': 'is shared state: results must not depend on it',
    r'\b(TODO|FIXME|XXX)\b': 'belongs in an issue',
}
# The library's rooms alone: it neither prints nor exits.
LIBRARY = {
    r'\b(printf|vprintf|puts|putchar|perror)\s*\(': 'a library does not print',
    r'\b(stdout|stderr)\b': 'a library does not print',
    r'\b(exit|_exit|_Exit|abort|quick_exit)\s*\(': 'a library does not end the program',
}
INVISIBLE = {'Cf', 'Zl', 'Zp', 'Co', 'Cn', 'Cs'}


def line_of(text, position):
    return text.count('\n', 0, position) + 1


def banned(path, text):
    """Problems of one file of src/."""
    rules = dict(BANNED)
    library = not path.startswith(('src/cli/', 'src/front/', 'src/serve/', 'src/label/'))
    if library:
        rules.update(LIBRARY)
        if path not in ('src/base/mem.c', 'src/base/mem.h'):
            rules[r'\b(%s)\s*\(' % MEMORY.replace(' ', '|')] = 'goes through base/mem.h'
        if path != 'src/base/cpu.c':
            rules[r'\b(secure_)?getenv\s*\('] = 'only base/cpu.c reads the environment'
    code = c_source.blank(text)
    problems = []
    for pattern, why in rules.items():
        where = text if 'TODO' in pattern else code
        for match in re.finditer(pattern, where):
            found = match.group(0).split('(')[0].strip()
            problems.append('%s:%d: %s: %s' % (path, line_of(where, match.start()), found, why))
    if library and path not in ('src/base/mem.c', 'src/base/mem.h'):
        # What a library handed out goes back to free(), and the line says whose it was.
        lines, originals = code.split('\n'), text.split('\n')
        for number, line in enumerate(lines):
            if re.search(r'(?<![>.\w])free\s*\(', line) and not re.search(r'/\*.*\*/|//', originals[number]):
                problems.append('%s:%d: free: goes through base/mem.h, or a comment says which library allocated' %
                                (path, number + 1))
    return problems


def looks(path, text):
    """Problems of one text file, whatever its language."""
    problems = []
    for number, line in enumerate(text.split('\n'), 1):
        where = '%s:%d' % (path, number)
        if line != line.rstrip():
            problems.append('%s: blank or carriage return at the end of the line' % where)
        if '\t' in line and not path.endswith(('.allow', '.md', '.txt')):
            problems.append('%s: tab' % where)
        for char in line:
            if ord(char) >= 0x7F and unicodedata.category(char) in INVISIBLE | {'Cc'} or '\0' <= char < '\t':
                problems.append('%s: invisible or broken character U+%04X' % (where, ord(char)))
                break
            if char not in ' \t' and unicodedata.category(char) == 'Zs':
                problems.append('%s: a space that is not a space, U+%04X' % (where, ord(char)))
                break
    if text and not text.endswith('\n'):
        problems.append('%s: no line end at the end' % path)
    if text.endswith('\n\n'):
        problems.append('%s: empty lines at the end' % path)
    return problems


def doubles(names):
    """Code files of one name: a name alone must find a file."""
    seen, problems = {}, []
    for name in names:
        base = os.path.basename(name)
        if base in ROLE_NAMES or not name.endswith(CODE):
            continue
        if base in seen:
            problems.append('%s: has the same name as %s' % (name, seen[base]))
        seen.setdefault(base, name)
    return problems


def main():
    names = [n for n in c_source.files() if not n.startswith(DATA)]
    texts = [n for n in names if n.endswith(TEXT) or os.path.basename(n) in ('Makefile', 'CMakeLists.txt')]
    problems = doubles(names)
    for name in texts:
        text = c_source.read(os.path.join(c_source.ROOT, name))
        if os.path.basename(name) != 'Makefile':  # whose recipes are tabs
            problems += looks(name, text)
        if name.startswith('src/') and name.endswith(('.c', '.h', '.inc')):
            problems += banned(name, text)
    return c_source.report('check_text', problems, len(texts))


if __name__ == '__main__':
    sys.exit(main())
