"""c_source.py: what the style checks share: which files the tree holds, and C text without its comments and strings.

Only the standard library is used, so that the checks run on any machine with Python 3.
"""
import os
import re
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# A comment, a string or a character constant, whichever begins first.
TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def files(root=ROOT):
    """Paths of the tree's files, relative to root: what git knows or would take in; every file where there is no git."""
    try:
        out = subprocess.run(['git', '-C', root, 'ls-files', '-z', '-co', '--exclude-standard'],
                             capture_output=True, check=True).stdout.decode('utf-8', 'surrogateescape')
        names = [name for name in out.split('\0') if name]
    except (OSError, subprocess.CalledProcessError):
        names = []
        for folder, folders, entries in os.walk(root):
            folders[:] = [f for f in folders if f != '.git' and f != 'build' and not f.startswith('build-')]
            names += [os.path.relpath(os.path.join(folder, e), root) for e in entries]
    return sorted(n for n in set(names) if os.path.isfile(os.path.join(root, n)))


def read(path):
    with open(path, encoding='utf-8', errors='surrogateescape', newline='') as f:
        return f.read()


def blank(text):
    """The text with comments, strings and characters blanked, line numbers kept. Lines of #include are left as they are."""
    def gap(match):
        token = match.group(0)
        line = text[text.rfind('\n', 0, match.start()) + 1:match.start()]
        if token[0] == '"' and re.match(r'\s*#\s*include\b', line):
            return token
        return re.sub(r'[^\n]', ' ', token)
    return TOKEN.sub(gap, text)


def report(name, problems, n_checked):
    """Prints the problems and returns the exit status. Nothing checked is a broken check, not a pass."""
    for problem in problems:
        print('%s: %s' % (name, problem))
    if not n_checked:
        print('%s: found nothing to check' % name)
        return 1
    if not problems:
        print('%s: %d files, nothing to complain about' % (name, n_checked))
    return 1 if problems else 0
