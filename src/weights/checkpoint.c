/* checkpoint.c: recognises containers by their first bytes. What a person may point at by mistake (a Git LFS
 * pointer, a GGUF file, a picture of an error page) is named rather than called broken. Symbolic links are
 * followed: a Hugging Face snapshot is a folder of links into a blob store. */
#include "weights/checkpoint.h"

#include <string.h>
#include "base/buf.h"
#include "base/error.h"
#include "base/mem.h"
#include "weights/json_text.h"
#include "weights/pytorch.h"
#include "weights/safetensors.h"

#define MAX_PATH 65536
#define MAX_INDEX_BYTES (64u << 20)

/* dir + "/" + name, or the first n_dir bytes of dir + name where dir already ends the way it should. NULL when out
 * of memory. */
static char *join(const char *dir, size_t n_dir, const char *separator, const char *name)
{
    st_buf b;
    st_buf_init(&b, MAX_PATH);
    st_buf_add(&b, dir, n_dir);
    st_buf_adds(&b, separator);
    st_buf_adds(&b, name);
    char *path = st_buf_take(&b);
    st_buf_free(&b);
    return path;
}

static st_status no_memory(const char *path, st_error *err)
{
    return st_fail(err, ST_ERR_NOMEM, "%s: out of memory for its name", path);
}

/* Length of the folder part with its slash; 0 for a bare name. */
static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

static bool starts_with(const st_map *map, const char *magic, size_t n)
{
    return map->n >= n && memcmp(map->data, magic, n) == 0;
}

/* What an unreadable file seems to be. */
static const char *guess_format(const st_map *map)
{
    if (starts_with(map, "version https://git-lfs", 23))
        return "a Git LFS pointer: the weights themselves were not downloaded";
    if (starts_with(map, "GGUF", 4)) return "a GGUF file";
    if (starts_with(map, "\x89HDF\r\n", 6)) return "an HDF5 file";
    if (starts_with(map, "<!DOCTYPE", 9) || starts_with(map, "<html", 5)) return "a web page";
    if (starts_with(map, "\x1f\x8b", 2)) return "a gzip archive";
    if (starts_with(map, "\x93NUMPY", 6)) return "a NumPy array";
    if (starts_with(map, "\x08", 1)) return "perhaps an ONNX file";
    return NULL;
}

static bool looks_like_safetensors(const st_map *map)
{
    return map->n > 8 && map->data[8] == '{' && map->data[7] == 0 && map->data[6] == 0;
}

/* One data file, whatever its container. */
static st_status read_file(st_catalog *cat, const char *path, bool shard, st_error *err)
{
    st_map map;
    uint32_t index;
    st_status status = st_map_open(&map, path, err);
    if (status == ST_OK) status = st_catalog_add_map(cat, map, path, &index, err);
    if (status != ST_OK) return status;
    const char *guess = guess_format(&map);
    if (map.n == 0) {
        status = st_fail(err, ST_ERR_FORMAT, "the file is empty");
    } else if (starts_with(&map, "PK", 2) && !shard) {
        cat->container = "pytorch zip";
        status = st_pytorch_read(cat, index, err);
    } else if (map.data[0] == 0x80 && !looks_like_safetensors(&map) && !shard) {
        status = st_pytorch_refuse_legacy(&map, err);
    } else if (guess && !looks_like_safetensors(&map)) {
        status = st_fail(err, ST_ERR_UNSUPPORTED, "this is %s, not a safetensors or PyTorch checkpoint", guess);
    } else {
        cat->container = shard ? "safetensors (sharded)" : "safetensors";
        status = st_safetensors_read(cat, index, err);
    }
    if (status != ST_OK) st_error_prefix(err, "%s", path);
    return status;
}

static st_status check_shard_name(const char *index_path, const char *tensor, const char *name, st_error *err)
{
    if (name && *name && !strchr(name, '/') && !strchr(name, '\\') && strcmp(name, ".") != 0 && !strstr(name, ".."))
        return ST_OK;
    return st_fail(err, ST_ERR_FORMAT, "%s: tensor \"%s\" names the file \"%s\": expected a file name without folders",
                   index_path, tensor, name ? name : "(not a string)");
}

static bool find_shard(const st_catalog *cat, const char *name, uint32_t *map)
{
    for (uint32_t i = 0; i < cat->n_maps; i++) {
        if (strcmp(cat->map_names[i], name) != 0) continue;
        *map = i;
        return true;
    }
    return false;
}

/* Opens every file that the index names, once. */
static st_status read_shards(st_catalog *cat, const char *index_path, json_t *weight_map, st_error *err)
{
    const size_t n_folder = folder_length(index_path);
    const char *tensor;
    json_t *value;
    json_object_foreach(weight_map, tensor, value)
    {
        const char *name = json_string_value(value);
        uint32_t map;
        st_status status = check_shard_name(index_path, tensor, name, err);
        if (status != ST_OK) return status;
        if (find_shard(cat, name, &map)) continue;
        if (cat->n_maps >= ST_MAX_SHARDS)
            return st_fail(err, ST_ERR_LIMIT, "%s: more than %d shards", index_path, ST_MAX_SHARDS);
        char *path = join(index_path, n_folder, "", name);
        status = path ? read_file(cat, path, true, err) : no_memory(index_path, err);
        st_free(path);
        if (status != ST_OK) return status;
    }
    return ST_OK;
}

/* Every listed tensor is in the shard that the index says, and no shard holds one that is not listed. */
static st_status check_shards(const st_catalog *cat, const char *index_path, json_t *weight_map, st_error *err)
{
    const char *tensor;
    json_t *value;
    json_object_foreach(weight_map, tensor, value)
    {
        const char *name = json_string_value(value);
        const st_entry *e = st_catalog_find(cat, tensor);
        if (!e)
            return st_fail(err, ST_ERR_FORMAT, "%s: tensor \"%s\" is in no shard, expected in %s", index_path, tensor,
                           name);
        const char *home = cat->map_names[cat->blobs[e->blob].map];
        if (strcmp(home, name) != 0)
            return st_fail(err, ST_ERR_FORMAT, "%s: tensor \"%s\" is in %s, expected in %s", index_path, tensor, home,
                           name);
    }
    for (size_t i = 0; i < cat->n; i++)
        if (!json_object_get(weight_map, cat->entries[i].name))
            return st_fail(err, ST_ERR_FORMAT, "%s: tensor \"%s\" is in %s but not in the index", index_path,
                           cat->entries[i].name, cat->map_names[cat->blobs[cat->entries[i].blob].map]);
    return ST_OK;
}

static st_status read_index(st_catalog *cat, const char *path, st_error *err)
{
    json_t *root;
    st_status status = st_json_object_file(&root, path, MAX_INDEX_BYTES, err);
    if (status != ST_OK) return status;
    json_t *weight_map = json_object_get(root, "weight_map");
    if (!json_is_object(weight_map) || json_object_size(weight_map) == 0) {
        status = st_fail(err, ST_ERR_FORMAT, "%s: \"weight_map\" is missing or no object with entries", path);
    } else {
        status = read_shards(cat, path, weight_map, err);
        if (status == ST_OK) {
            status = st_catalog_finish(cat, err);
            if (status != ST_OK) st_error_prefix(err, "%s", path);
        }
        if (status == ST_OK) status = check_shards(cat, path, weight_map, err);
    }
    json_decref(root);
    return status;
}

/* A JSON file is an index of shards. */
static bool is_json_text(const char *path)
{
    char *text;
    size_t n;
    const size_t length = strlen(path);
    if (length < 5 || strcmp(path + length - 5, ".json") != 0) return false;
    if (st_file_read(&text, &n, path, MAX_INDEX_BYTES, NULL) != ST_OK) return false;
    size_t i = 0;
    while (i < n && (text[i] == ' ' || text[i] == '\n' || text[i] == '\r' || text[i] == '\t')) i++;
    const bool json = i < n && text[i] == '{';
    st_free(text);
    return json;
}

/* Sets *out to the path when such a file exists. */
static st_status find_beside(char **out, const char *path, size_t n, const char *separator, const char *name,
                             st_error *err)
{
    char *candidate = join(path, n, separator, name);
    if (!candidate) return no_memory(path, err);
    if (st_file_exists(candidate)) {
        st_free(*out);
        *out = candidate;
    } else {
        st_free(candidate);
    }
    return ST_OK;
}

/* NAME.json beside NAME.safetensors, and config.json beside files that have Hugging Face's own names. */
static st_status find_descriptions(st_checkpoint *c, const char *path, st_error *err)
{
    const size_t n_folder = folder_length(path);
    const char *file = path + n_folder, *dot = strrchr(file, '.');
    st_status status = ST_OK;
    const bool index = dot && strcmp(dot, ".json") == 0;
    if (!index && dot && dot != file) status = find_beside(&c->side, path, (size_t)(dot - path), "", ".json", err);
    if (status == ST_OK && strncmp(file, "model", 5) == 0)
        status = find_beside(&c->config, path, n_folder, "", "config.json", err);
    return status;
}

static st_status open_file(st_checkpoint *c, const char *path, st_error *err)
{
    st_status status;
    if (is_json_text(path)) {
        status = read_index(&c->catalog, path, err);
    } else {
        status = read_file(&c->catalog, path, false, err);
        if (status == ST_OK) {
            status = st_catalog_finish(&c->catalog, err);
            if (status != ST_OK) st_error_prefix(err, "%s", path);
        }
    }
    if (status == ST_OK) status = find_descriptions(c, path, err);
    return status;
}

static st_status open_folder(st_checkpoint *c, const char *path, st_error *err)
{
    static const char *const names[] = { "model.safetensors", "model.safetensors.index.json", "sam3.pt",
                                         "sam3.1_multiplex.pt" };
    const size_t n = strlen(path);
    const char *separator = n && path[n - 1] == '/' ? "" : "/";
    char *file = NULL;
    st_status status = ST_OK;
    for (size_t i = 0; i < sizeof names / sizeof *names && !file && status == ST_OK; i++)
        status = find_beside(&file, path, n, separator, names[i], err);
    if (status == ST_OK && !file)
        status = st_fail(
            err, ST_ERR_IO,
            "%s: the folder holds no model.safetensors, model.safetensors.index.json, sam3.pt or sam3.1_multiplex.pt",
            path);
    if (status == ST_OK) status = open_file(c, file, err);
    st_free(file);
    return status;
}

st_status st_checkpoint_open(st_checkpoint *out, const char *path, st_error *err)
{
    *out = (st_checkpoint){ 0 };
    const st_status status = st_dir_exists(path) ? open_folder(out, path, err) : open_file(out, path, err);
    if (status != ST_OK) st_checkpoint_free(out);
    return status;
}

void st_checkpoint_free(st_checkpoint *c)
{
    if (!c) return;
    st_catalog_free(&c->catalog);
    st_free(c->config);
    st_free(c->side);
    *c = (st_checkpoint){ 0 };
}
