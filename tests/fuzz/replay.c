/* replay.c: runs a fuzz target over files and folders of inputs, without a fuzzing engine: corpora are ordinary tests.
 * Each input is copied to a heap block of its exact size, so that a sanitizer sees one byte too far. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);

static int replay_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END) != 0) { perror(path); exit(2); }
    const long n = ftell(f);
    rewind(f);
    unsigned char *data = malloc(n > 0 ? (size_t)n : 1);
    if (!data || fread(data, 1, (size_t)n, f) != (size_t)n) { perror(path); exit(2); }
    fclose(f);
    LLVMFuzzerTestOneInput(data, (size_t)n);
    free(data);
    return 1;
}

static int replay(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0) { perror(path); exit(2); }
    if (!S_ISDIR(st.st_mode)) return replay_file(path);
    DIR *dir = opendir(path);
    if (!dir) { perror(path); exit(2); }
    int n = 0;
    for (struct dirent *e; (e = readdir(dir)) != NULL;) {
        if (e->d_name[0] == '.') continue;
        char *child = malloc(strlen(path) + strlen(e->d_name) + 2);
        if (!child) exit(2);
        sprintf(child, "%s/%s", path, e->d_name);
        n += replay(child);
        free(child);
    }
    closedir(dir);
    return n;
}

int main(int argc, char **argv)
{
    int n = 0;
    for (int i = 1; i < argc; i++) n += replay(argv[i]);
    printf("replayed %d inputs\n", n);
    return n > 0 ? 0 : 2; /* an empty corpus is a failure, not a pass */
}
