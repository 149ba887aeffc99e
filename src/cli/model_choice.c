/* model_choice.c: which model a command uses, and opening it with sentences for people. The only place of the program
 * that reads the environment. */
#include "cli/cli.h"
#include "front/save.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* FOLDER/../<tail>, where FOLDER holds the running program; NULL when that is not there. */
static char *beside_program(const char *tail)
{
    char program[4096];
    const ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    if (n <= 0) return NULL;
    program[n] = '\0';
    char *slash = strrchr(program, '/');
    if (!slash) return NULL;
    *slash = '\0';
    slash = strrchr(program, '/'); /* the folder above: nicer than "..", and the same */
    if (!slash) return NULL;
    *slash = '\0';
    char *path = NULL;
    if (asprintf(&path, "%s/%s", program, tail) < 0) return NULL;
    if (st_is_folder(path)) return path;
    free(path);
    return NULL;
}

/* From malloc; NULL when there is none. *is_demo: nobody named it. */
static char *find_model(const char *given, bool *is_demo)
{
    static const char *const places[] = { "models/demo", "share/stencil/models/demo" };
    const char *named = given ? given : getenv("STENCIL_MODEL");
    *is_demo = false;
    if (named && named[0]) return strdup(named);
    if (given) return NULL;
    *is_demo = true;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        char *path = beside_program(places[i]);
        if (path) return path;
    }
    return NULL;
}

char *st_model_choice(st_console *console, const char *given)
{
    bool is_demo;
    char *path = find_model(given, &is_demo);
    if (path && is_demo)
        st_console_say(console,
                       "no -m and no STENCIL_MODEL: using the demo model %s, which knows emoji and little else", path);
    if (!path && given) st_console_error(console, "-m: an empty model path");
    else if (!path) st_console_error(console, "no model: give one with -m, or set STENCIL_MODEL");
    return path;
}

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), n_end = strlen(end);
    return n >= n_end && strcmp(text + n - n_end, end) == 0;
}

/* The model itself, or a file that it is read from: of its folder, or of the folder of its list of shards. */
static bool belongs_to_model(const char *output, const char *model)
{
    static const char *const ends[] = { ".safetensors", ".index.json", ".pt", "config.json" };
    if (st_same_file(output, model)) return true;
    if (!st_exists(output) || (!st_is_folder(model) && !ends_with(model, ".index.json"))) return false;
    bool same = false;
    char *of_output = st_folder_of(output), *of_list = st_folder_of(model);
    if (of_output && of_list) same = st_same_file(of_output, st_is_folder(model) ? model : of_list);
    free(of_output);
    free(of_list);
    for (size_t i = 0; same && i < sizeof ends / sizeof ends[0]; i++)
        if (ends_with(output, ends[i])) return true;
    return false;
}

int st_model_spared(st_console *console, const char *given, const char *const *outputs, size_t n)
{
    bool is_demo;
    int code = ST_EXIT_OK;
    char *model = find_model(given, &is_demo);
    for (size_t i = 0; model && code == ST_EXIT_OK && i < n; i++) {
        if (!outputs[i] || st_is_folder(outputs[i]) || !belongs_to_model(outputs[i], model)) continue;
        st_console_error(console, "%s: the output would overwrite the model %s", outputs[i], model);
        code = ST_EXIT_USAGE;
    }
    free(model);
    return code;
}

int st_model_start(st_model **out, st_console *console, const char *given, const st_model_wish *wish)
{
    *out = NULL;
    char *path = st_model_choice(console, given);
    if (!path) return ST_EXIT_MODEL;
    st_model_options options = ST_MODEL_OPTIONS_INIT;
    options.n_threads = wish->n_threads;
    options.memory_limit = wish->memory_limit;
    options.input_size = wish->input_size;
    options.log = st_console_log;
    options.log_user = console;
    st_error err;
    const st_status status = st_model_open(out, path, &options, &err);
    if (status != ST_OK) st_console_error(console, "%s", err.message);
    free(path);
    if (status == ST_ERR_INVALID_ARG && wish->input_size) return ST_EXIT_USAGE;
    return status == ST_OK ? ST_EXIT_OK : ST_EXIT_MODEL;
}

int st_model_for_clicks(const st_model *model, st_console *console)
{
    st_model_info info = ST_MODEL_INFO_INIT;
    st_error err;
    const st_status status = st_model_get_info(model, &info, &err);
    if (status == ST_OK && info.can_click) return ST_EXIT_OK;
    st_console_error(console, "%s",
                     status == ST_OK ? "this model finds phrases and boxes only: its weights hold no interactive part, "
                                       "which points, regions and masks need"
                                     : err.message);
    return ST_EXIT_MODEL;
}
