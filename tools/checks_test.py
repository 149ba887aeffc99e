#!/usr/bin/env python3
"""checks_test.py: the style checks themselves: each rule fires on what it forbids and stays quiet on what it allows."""
import os
import subprocess
import tempfile
import unittest

import c_source
import check_includes
import check_text


class Blank(unittest.TestCase):
    def test_comments_and_strings_vanish_and_lines_stay(self):
        self.assertEqual(c_source.blank('a /* x\ny */ b "c\\"d" // e\nf'), 'a     \n     b            \nf')
        blanked = c_source.blank('x("strcpy(") /* atoi( */; // gets(\n#include "base/mem.h"\n')
        self.assertNotIn('strcpy', blanked)
        self.assertNotIn('atoi', blanked)
        self.assertNotIn('gets', blanked)
        self.assertIn('#include "base/mem.h"', blanked)
        self.assertEqual(blanked.count('\n'), 2)


class Includes(unittest.TestCase):
    TREE = {'src/base/mem.h', 'src/tensor/tensor.h', 'src/engine/model.h', 'src/front/json.h', 'src/cli/cli.h', 'include/stencil/x.h'}

    def problems(self, path, text):
        return check_includes.check(path, text, lambda p: p in self.TREE)

    def test_down_is_fine(self):
        for path, name in (('src/tensor/a.c', 'base/mem.h'), ('src/tensor/a.c', 'tensor.h'), ('src/engine/a.c', 'tensor/tensor.h'),
                           ('src/cli/a.c', 'front/json.h'), ('src/cli/a.c', 'cli/cli.h')):
            self.assertEqual(self.problems(path, '#include "%s"\n' % name), [], (path, name))
        self.assertEqual(self.problems('src/cli/a.c', '#include <stencil/stencil.h>\n#include <stdio.h>\n'), [])

    def test_up_and_across_are_not(self):
        for path, name in (('src/base/a.c', 'tensor/tensor.h'), ('src/tensor/a.c', 'engine/model.h'), ('src/cli/a.c', 'base/mem.h'),
                           ('src/front/a.c', 'cli/cli.h'), ('src/base/a.c', '../tensor/tensor.h'),
                           ('src/base/a.c', '../../include/stencil/x.h'), ('src/base/a.c', 'missing.h'), ('src/new/a.c', 'base/mem.h')):
            self.assertEqual(len(self.problems(path, 'int x;\n  #  include "%s"\n' % name)), 1, (path, name))

    def test_commented_includes_do_not_count(self):
        self.assertEqual(self.problems('src/base/a.c', '/* #include "tensor/tensor.h" */\n'), [])

    def test_doors(self):
        self.assertEqual(self.problems('src/kernels/amx/a.c', '#include <immintrin.h>\n'), [])
        self.assertEqual(len(self.problems('src/tensor/a.c', '#include <dnnl.h>\n')), 1)
        self.assertEqual(len(self.problems('src/kernels/ref/a.c', '#include <immintrin.h>\n')), 1)


class Banned(unittest.TestCase):
    def test_each_is_found(self):
        for code in ('strcpy(a, b);', 'sprintf (a, b);', 'x = atoi(s);', 'strtol(s, NULL, 10);', 'system(s);', 'alloca(3);', 'rand();',
                     'malloc(3);', 'p = strdup(s);', 'free(p);', 'getenv("X");', 'printf("x");', 'fputs("x", stderr);', 'exit(1);',
                     'abort();', '/* TODO later */'):
            self.assertEqual(len(check_text.banned('src/tensor/a.c', 'int x;\n' + code + '\n')), 1, code)

    def test_what_looks_alike_is_not(self):
        for code in ('st_malloc(3);', 'snprintf(a, n, f);', 'st_free(p);', 'x->free(p);', 'strtol(s, &end, 10);', 'operand(x);',
                     '"malloc(3)";', '/* malloc(3) */', 'fprintf(out.f, f);', 'free(p); /* getline\'s */', 'vsnprintf(a, n, f, v);'):
            self.assertEqual(check_text.banned('src/tensor/a.c', code + '\n'), [], code)

    def test_places_with_a_right(self):
        self.assertEqual(check_text.banned('src/base/mem.c', 'malloc(3); free(p);\n'), [])
        self.assertEqual(check_text.banned('src/base/cpu.c', 'getenv("X");\n'), [])
        self.assertEqual(check_text.banned('src/cli/main.c', 'malloc(3); free(p); printf("x"); exit(1); getenv("X");\n'), [])
        self.assertEqual(len(check_text.banned('src/cli/main.c', 'strcpy(a, b);\n')), 1)


class Looks(unittest.TestCase):
    def test_each_is_found(self):
        for text in ('a \n', 'a\r\n', 'a\tb\n', 'a\u200bb\n', 'a\u202eb\n', '\ufeffa\n', 'a\u00a0b\n', 'a', 'a\n\n', 'a\x01b\n', 'a\x7fb\n'):
            self.assertEqual(len(check_text.looks('x.c', text)), 1, repr(text))

    def test_good_text_passes(self):
        self.assertEqual(check_text.looks('x.c', 'a\n\n  b \u00b7 \u00e9 \u2190 \u65e5\n'), [])
        self.assertEqual(check_text.looks('x.c', ''), [])

    def test_doubles(self):
        self.assertEqual(len(check_text.doubles(['src/a/x.c', 'src/b/x.c', 'a/room.cmake', 'b/room.cmake', 'y.bin', 'z/y.bin'])), 1)


class Shell(unittest.TestCase):
    def gate(self, source, allow=''):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'a.c')
            listed = os.path.join(folder, 'allow')
            with open(path, 'w') as f:
                f.write(source)
            with open(listed, 'w') as f:
                f.write(allow.replace('@', path))
            return subprocess.run([os.path.join(c_source.ROOT, 'tools/size_gate.sh'), path], capture_output=True, text=True,
                                  env=dict(os.environ, SIZE_GATE_ALLOW=listed))

    def test_size_gate(self):
        small = 'int f(int x)\n{\n    return x;\n}\n'
        long = 'int f(int x)\n{\n' + '    x++;\n' * 130 + '    return x;\n}\n'
        knotty = 'int f(int x)\n{\n' + '    if (x > 3) x++;\n' * 30 + '    return x;\n}\n'
        self.assertEqual(self.gate(small).returncode, 0)
        self.assertIn('f: 134 lines', self.gate(long).stdout)
        self.assertEqual(self.gate(long).returncode, 1)
        self.assertEqual(self.gate(knotty).returncode, 1)
        self.assertEqual(self.gate(small * 201).returncode, 1)
        self.assertEqual(self.gate(long, '@:f a table in code\n').returncode, 0)
        self.assertEqual(self.gate(long, '@:f\n').returncode, 1)
        self.assertEqual(self.gate(long, '@:g another one\n').returncode, 1)

    def test_commit_subjects(self):
        def subject(text):
            with tempfile.TemporaryDirectory() as folder:
                os.mkdir(os.path.join(folder, 'tools'))
                script = os.path.join(folder, 'tools/check_commits.sh')
                with open(os.path.join(c_source.ROOT, 'tools/check_commits.sh')) as f, open(script, 'w') as g:
                    g.write(f.read())
                env = dict(os.environ, GIT_AUTHOR_NAME='a', GIT_AUTHOR_EMAIL='a@b', GIT_COMMITTER_NAME='a', GIT_COMMITTER_EMAIL='a@b')
                subprocess.run(['git', 'init', '-q', folder], check=True)
                subprocess.run(['git', '-C', folder, '-c', 'core.hooksPath=/dev/null', 'commit', '-q', '--allow-empty', '-m', text],
                               check=True, env=env)
                return subprocess.run(['bash', script], capture_output=True, env=env).returncode
        self.assertEqual(subject('weights: refuse overlapping tensors'), 0)
        self.assertEqual(subject('kernels: AVX2 tails without masks'), 0)
        for wrong in ('Weights: refuse', 'refuse overlapping tensors', 'weights: Refuse', 'weights: refuse.', 'weights:refuse',
                      'weights: ' + 'x' * 100):
            self.assertEqual(subject(wrong), 1, wrong)


if __name__ == '__main__':
    unittest.main()
