/* pickle.c: a stack machine over plain values (CPython's pickletools.py describes the opcodes,
 * torch/serialization.py what torch.save makes with them).
 *
 * Values live in one array and refer to each other by index, so sharing and cycles need no care and freeing is one
 * call. Containers are chains of cells. Each opcode makes at most one value and each push at most one cell, so
 * memory is linear in the pickle's length, which is capped. Nothing here recurses.
 */
#include "weights/pickle.h"

#include <stdio.h>
#include <string.h>
#include "base/checked.h"
#include "base/error.h"
#include "base/mem.h"
#include "weights/pickle_names.h"

typedef enum kind { NOTHING, BOOLEAN, INTEGER, REAL, TEXT, TUPLE, LIST, DICT, NAME, STORAGE, TENSOR } kind;

static const char *const kind_names[] = {
    "None", "bool", "int", "float", "str", "tuple", "list", "dict", "a class or function", "a storage", "a tensor"
};

typedef struct value {
    kind kind;
    uint32_t n;           /* TEXT: bytes; containers: cells (a dict has two per pair) */
    uint32_t first, last; /* containers: cells, counted from 1; 0 = none */
    union {
        int64_t integer;
        const char *text;
        const st_pickle_name *name;
        uint32_t index; /* of a storage or tensor */
    } as;
} value;

typedef struct cell {
    uint32_t value, next; /* next counts from 1 */
} cell;

typedef struct vector {
    void *data;
    size_t n, room;
} vector;

typedef struct machine {
    const unsigned char *bytes;
    size_t n, at, opcode_at;
    vector values, cells;      /* value, cell */
    vector stack, marks, memo; /* uint32_t: value; stack height; value + 1 or 0 */
    st_pickle *out;
    st_error *err;
    st_status status;
    bool stopped;
} machine;

/* ---------------------------------------------------------------- memory and failure */

static bool fail(machine *m, st_status status, const char *what)
{
    if (m->status == ST_OK) m->status = st_fail(m->err, status, "pickle, byte %zu: %s", m->opcode_at, what);
    return false;
}

/* Room for one more element of `size` bytes, at most `most` elements. NULL after a failure. */
static void *grow(machine *m, vector *v, size_t size, size_t most)
{
    if (v->n >= most) {
        fail(m, ST_ERR_LIMIT, "more values than a state dict has");
        return NULL;
    }
    if (v->n == v->room) {
        const size_t room = v->room ? 2 * v->room : 256;
        void *data = st_realloc_array(v->data, room, size);
        if (!data) {
            fail(m, ST_ERR_NOMEM, "out of memory");
            return NULL;
        }
        v->data = data;
        v->room = room;
    }
    return (char *)v->data + v->n++ * size;
}

static value *at(const machine *m, uint32_t index)
{
    return (value *)m->values.data + index;
}

static bool push_index(machine *m, uint32_t index)
{
    uint32_t *top = grow(m, &m->stack, sizeof *top, ST_MAX_PICKLE_VALUES);
    if (!top) return false;
    *top = index;
    return true;
}

static bool push(machine *m, value v)
{
    const size_t index = m->values.n;
    value *slot = grow(m, &m->values, sizeof *slot, ST_MAX_PICKLE_VALUES);
    if (!slot) return false;
    *slot = v;
    return push_index(m, (uint32_t)index);
}

static bool push_kind(machine *m, kind k)
{
    return push(m, (value){ .kind = k });
}

static bool push_integer(machine *m, int64_t integer)
{
    return push(m, (value){ .kind = INTEGER, .as.integer = integer });
}

/* Height of the stack above the last mark: what an opcode may take. */
static size_t available(const machine *m)
{
    const size_t floor = m->marks.n ? ((const uint32_t *)m->marks.data)[m->marks.n - 1] : 0;
    return m->stack.n - floor;
}

static bool need(machine *m, size_t n)
{
    return available(m) >= n ? true : fail(m, ST_ERR_FORMAT, "the stack has too few values");
}

static uint32_t pop(machine *m)
{
    return ((const uint32_t *)m->stack.data)[--m->stack.n];
}

static uint32_t top(const machine *m)
{
    return ((const uint32_t *)m->stack.data)[m->stack.n - 1];
}

/* Takes the last mark off; *first is where its values start. */
static bool pop_mark(machine *m, size_t *first)
{
    if (m->marks.n == 0) return fail(m, ST_ERR_FORMAT, "there is no mark on the stack");
    *first = ((const uint32_t *)m->marks.data)[--m->marks.n];
    return true;
}

static bool append(machine *m, uint32_t container, uint32_t item)
{
    cell *c = grow(m, &m->cells, sizeof *c, ST_MAX_PICKLE_VALUES);
    if (!c) return false;
    *c = (cell){ .value = item };
    const uint32_t number = (uint32_t)m->cells.n;
    value *v = at(m, container);
    if (v->last) ((cell *)m->cells.data)[v->last - 1].next = number;
    else v->first = number;
    v->last = number;
    v->n++;
    return true;
}

/* Stack values from `first` up go into the container, in order, and off the stack. */
static bool append_from(machine *m, uint32_t container, size_t first)
{
    for (size_t i = first; i < m->stack.n; i++)
        if (!append(m, container, ((const uint32_t *)m->stack.data)[i])) return false;
    m->stack.n = first;
    return true;
}

/* ---------------------------------------------------------------- bytes */

static const unsigned char *take(machine *m, uint64_t n)
{
    if (!st_range_fits(m->at, n, m->n)) {
        fail(m, ST_ERR_FORMAT, "the pickle ends in the middle of an opcode");
        return NULL;
    }
    const unsigned char *p = m->bytes + m->at;
    m->at += (size_t)n;
    return p;
}

static bool take_number(machine *m, unsigned n_bytes, uint64_t *out)
{
    const unsigned char *p = take(m, n_bytes);
    if (!p) return false;
    *out = 0;
    for (unsigned i = n_bytes; i-- > 0;) *out = *out << 8 | p[i];
    return true;
}

/* ---------------------------------------------------------------- opcodes: plain values */

static bool op_proto(machine *m)
{
    uint64_t version;
    if (!take_number(m, 1, &version)) return false;
    return version >= 2 && version <= 4 ? true : fail(m, ST_ERR_UNSUPPORTED, "expected protocol 2, 3 or 4");
}

static bool op_frame(machine *m)
{
    uint64_t length;
    if (!take_number(m, 8, &length)) return false;
    return st_range_fits(m->at, length, m->n) ? true : fail(m, ST_ERR_FORMAT, "a frame is longer than the pickle");
}

static bool op_none(machine *m) { return push_kind(m, NOTHING); }
static bool op_newtrue(machine *m) { return push_kind(m, BOOLEAN); }
static bool op_newfalse(machine *m) { return push_kind(m, BOOLEAN); }
static bool op_empty_tuple(machine *m) { return push_kind(m, TUPLE); }
static bool op_empty_list(machine *m) { return push_kind(m, LIST); }
static bool op_empty_dict(machine *m) { return push_kind(m, DICT); }
static bool op_binfloat(machine *m) { return take(m, 8) && push_kind(m, REAL); }

static bool op_binint(machine *m)
{
    uint64_t bits;
    return take_number(m, 4, &bits) && push_integer(m, (int32_t)(uint32_t)bits);
}

static bool op_binint1(machine *m)
{
    uint64_t bits;
    return take_number(m, 1, &bits) && push_integer(m, (int64_t)bits);
}

static bool op_binint2(machine *m)
{
    uint64_t bits;
    return take_number(m, 2, &bits) && push_integer(m, (int64_t)bits);
}

/* A number of up to 255 bytes; beyond 64 bits it can be no size, and stands as a REAL. */
static bool op_long1(machine *m)
{
    uint64_t n, bits = 0;
    if (!take_number(m, 1, &n)) return false;
    const unsigned char *p = take(m, n);
    if (!p) return false;
    if (n > 8) return push_kind(m, REAL);
    for (uint64_t i = n; i-- > 0;) bits = bits << 8 | p[i];
    if (n > 0 && n < 8 && (p[n - 1] & 0x80)) bits |= UINT64_MAX << 8 * n;
    return push_integer(m, (int64_t)bits);
}

static bool push_text(machine *m, uint64_t n)
{
    const unsigned char *p = take(m, n);
    return p && push(m, (value){ .kind = TEXT, .n = (uint32_t)n, .as.text = (const char *)p });
}

static bool op_binunicode(machine *m)
{
    uint64_t n;
    return take_number(m, 4, &n) && push_text(m, n);
}

static bool op_short_binunicode(machine *m)
{
    uint64_t n;
    return take_number(m, 1, &n) && push_text(m, n);
}

/* ---------------------------------------------------------------- opcodes: stack, memo, containers */

static bool op_mark(machine *m)
{
    uint32_t *mark = grow(m, &m->marks, sizeof *mark, ST_MAX_PICKLE_VALUES);
    if (mark) *mark = (uint32_t)m->stack.n;
    return mark != NULL;
}

static bool remember(machine *m, uint64_t slot)
{
    if (!need(m, 1)) return false;
    if (slot >= ST_MAX_PICKLE_VALUES) return fail(m, ST_ERR_LIMIT, "the memo has more places than a state dict needs");
    if (slot > 2 * m->values.n + 65536) return fail(m, ST_ERR_FORMAT, "a memo place far beyond what was made so far");
    while (m->memo.n <= slot) {
        uint32_t *place = grow(m, &m->memo, sizeof *place, ST_MAX_PICKLE_VALUES);
        if (!place) return false;
        *place = 0;
    }
    ((uint32_t *)m->memo.data)[slot] = top(m) + 1;
    return true;
}

static bool recall(machine *m, uint64_t slot)
{
    const uint32_t found = slot < m->memo.n ? ((const uint32_t *)m->memo.data)[slot] : 0;
    return found ? push_index(m, found - 1) : fail(m, ST_ERR_FORMAT, "a memo place that was never filled");
}

static bool op_binput(machine *m)
{
    uint64_t slot;
    return take_number(m, 1, &slot) && remember(m, slot);
}

static bool op_long_binput(machine *m)
{
    uint64_t slot;
    return take_number(m, 4, &slot) && remember(m, slot);
}

static bool op_memoize(machine *m) { return remember(m, m->memo.n); }

static bool op_binget(machine *m)
{
    uint64_t slot;
    return take_number(m, 1, &slot) && recall(m, slot);
}

static bool op_long_binget(machine *m)
{
    uint64_t slot;
    return take_number(m, 4, &slot) && recall(m, slot);
}

static bool make_tuple(machine *m, size_t first)
{
    const uint32_t tuple = (uint32_t)m->values.n;
    value *slot = grow(m, &m->values, sizeof *slot, ST_MAX_PICKLE_VALUES);
    if (!slot) return false;
    *slot = (value){ .kind = TUPLE };
    return append_from(m, tuple, first) && push_index(m, tuple);
}

static bool op_tuple(machine *m)
{
    size_t first;
    return pop_mark(m, &first) && make_tuple(m, first);
}

static bool op_tuple1(machine *m) { return need(m, 1) && make_tuple(m, m->stack.n - 1); }
static bool op_tuple2(machine *m) { return need(m, 2) && make_tuple(m, m->stack.n - 2); }
static bool op_tuple3(machine *m) { return need(m, 3) && make_tuple(m, m->stack.n - 3); }

/* Values from `first` up go into the container just below them. */
static bool fill(machine *m, size_t first, kind wanted)
{
    const size_t floor = m->marks.n ? ((const uint32_t *)m->marks.data)[m->marks.n - 1] : 0;
    if (first <= floor) return fail(m, ST_ERR_FORMAT, "the stack has too few values");
    const uint32_t container = ((const uint32_t *)m->stack.data)[first - 1];
    if (at(m, container)->kind != wanted)
        return fail(m, ST_ERR_FORMAT,
                    wanted == LIST ? "items are added to what is no list" : "pairs are set in what is no dict");
    if (wanted == DICT && (m->stack.n - first) % 2) return fail(m, ST_ERR_FORMAT, "a key without a value");
    return append_from(m, container, first);
}

static bool op_append(machine *m) { return need(m, 2) && fill(m, m->stack.n - 1, LIST); }
static bool op_setitem(machine *m) { return need(m, 3) && fill(m, m->stack.n - 2, DICT); }

static bool op_appends(machine *m)
{
    size_t first;
    return pop_mark(m, &first) && fill(m, first, LIST);
}

static bool op_setitems(machine *m)
{
    size_t first;
    return pop_mark(m, &first) && fill(m, first, DICT);
}

/* ---------------------------------------------------------------- opcodes: names, storages, tensors */

static bool take_line(machine *m, const char **line, size_t *n)
{
    const unsigned char *start = m->bytes + m->at, *end = memchr(start, '\n', m->n - m->at);
    if (!end) return fail(m, ST_ERR_FORMAT, "a name without its end of line");
    *line = (const char *)start;
    *n = (size_t)(end - start);
    m->at += *n + 1;
    return true;
}

static int shown(size_t n)
{
    return n > 128 ? 128 : (int)n;
}

static bool refuse_name(machine *m, const char *module, size_t n_module, const char *name, size_t n_name)
{
    if (m->status == ST_OK)
        m->status =
            st_fail(m->err, ST_ERR_UNSUPPORTED,
                    "pickle, byte %zu: it names \"%.*s %.*s\", which no state dict needs; nothing was loaded or run",
                    m->opcode_at, shown(n_module), module, shown(n_name), name);
    return false;
}

static bool op_global(machine *m)
{
    const char *module, *name;
    size_t n_module, n_name;
    if (!take_line(m, &module, &n_module) || !take_line(m, &name, &n_name)) return false;
    const st_pickle_name *found = st_pickle_name_find(module, n_module, name, n_name);
    return found ? push(m, (value){ .kind = NAME, .as.name = found }) : refuse_name(m, module, n_module, name, n_name);
}

/* The i-th item of a tuple; NULL beyond its end. Tuples asked here are short. */
static const value *item(const machine *m, const value *tuple, uint32_t i)
{
    uint32_t number = i < tuple->n ? tuple->first : 0;
    while (number && i-- > 0) number = ((const cell *)m->cells.data)[number - 1].next;
    return number ? at(m, ((const cell *)m->cells.data)[number - 1].value) : NULL;
}

static bool is_kind(const value *v, kind k)
{
    return v && v->kind == k;
}

/* ("storage", type, key, location, number of elements) */
static bool op_binpersid(machine *m)
{
    if (!need(m, 1)) return false;
    const value *id = at(m, pop(m));
    if (id->kind != TUPLE || id->n != 5) return fail(m, ST_ERR_FORMAT, "a persistent id that is no tuple of 5");
    const value *word = item(m, id, 0), *type = item(m, id, 1), *key = item(m, id, 2), *location = item(m, id, 3),
                *count = item(m, id, 4);
    if (!is_kind(word, TEXT) || word->n != 7 || memcmp(word->as.text, "storage", 7) != 0)
        return fail(m, ST_ERR_FORMAT, "a persistent id that is no \"storage\"");
    if (!is_kind(type, NAME) || type->as.name->what != ST_PICKLE_STORAGE)
        return fail(m, ST_ERR_FORMAT, "a storage of a type that is none");
    if (!is_kind(key, TEXT) || key->n == 0 || key->n > 64 || memchr(key->as.text, '/', key->n))
        return fail(m, ST_ERR_FORMAT, "a storage without a usable key");
    if (!is_kind(location, TEXT) || !is_kind(count, INTEGER) || count->as.integer < 0)
        return fail(m, ST_ERR_FORMAT, "a storage without a location or size");
    vector storages = { m->out->storages, m->out->n_storages, m->out->storage_room };
    st_pickle_storage *s = grow(m, &storages, sizeof *s, ST_MAX_PICKLE_TENSORS);
    m->out->storages = storages.data;
    m->out->storage_room = storages.room;
    if (!s) return false;
    m->out->n_storages = storages.n;
    *s = (st_pickle_storage){
        .dtype = type->as.name->dtype, .key = key->as.text, .n_key = key->n, .n_elements = (uint64_t)count->as.integer
    };
    return push(m, (value){ .kind = STORAGE, .as.index = (uint32_t)(storages.n - 1) });
}

/* A tuple of whole numbers that are not negative. */
static bool read_numbers(machine *m, uint64_t out[ST_MAX_RANK], const value *tuple, const char *what)
{
    if (!is_kind(tuple, TUPLE) || tuple->n > ST_MAX_RANK) return fail(m, ST_ERR_FORMAT, what);
    uint32_t number = tuple->first;
    for (uint32_t i = 0; i < tuple->n; i++) {
        const cell *c = (const cell *)m->cells.data + number - 1;
        const value *v = at(m, c->value);
        if (v->kind != INTEGER || v->as.integer < 0) return fail(m, ST_ERR_FORMAT, what);
        out[i] = (uint64_t)v->as.integer;
        number = c->next;
    }
    return true;
}

/* Every element inside the storage, and no more elements than the storage has (a repeated view could ask for any
 * amount of memory). */
static bool check_view(machine *m, const st_pickle_tensor *t)
{
    const uint64_t n = m->out->storages[t->storage].n_elements;
    uint64_t product, last = t->offset;
    if (!st_shape_product(&product, t->shape, t->rank) || product > n)
        return fail(m, ST_ERR_FORMAT, "a tensor with more elements than its storage");
    if (product == 0) return t->offset <= n ? true : fail(m, ST_ERR_FORMAT, "a tensor that starts beyond its storage");
    for (uint32_t i = 0; i < t->rank; i++) {
        uint64_t span;
        if (__builtin_mul_overflow(t->shape[i] - 1, t->stride[i], &span) || __builtin_add_overflow(last, span, &last))
            return fail(m, ST_ERR_FORMAT, "a tensor that reaches beyond its storage");
    }
    return last < n ? true : fail(m, ST_ERR_FORMAT, "a tensor that reaches beyond its storage");
}

/* (storage, offset, size, stride, requires_grad, hooks[, metadata]) */
static bool rebuild_tensor(machine *m, const value *args)
{
    const value *storage = item(m, args, 0), *offset = item(m, args, 1), *size = item(m, args, 2),
                *stride = item(m, args, 3);
    if (args->n < 6 || args->n > 7 || !is_kind(storage, STORAGE))
        return fail(m, ST_ERR_FORMAT, "_rebuild_tensor_v2 without a storage or with the wrong number of arguments");
    if (!is_kind(offset, INTEGER) || offset->as.integer < 0)
        return fail(m, ST_ERR_FORMAT, "a tensor's offset is no whole number of 0 or more");
    if (!is_kind(item(m, args, 4), BOOLEAN) || !is_kind(item(m, args, 5), DICT))
        return fail(m, ST_ERR_FORMAT, "_rebuild_tensor_v2 with arguments of the wrong kind");
    st_pickle_tensor t = { .storage = storage->as.index, .offset = (uint64_t)offset->as.integer };
    if (!read_numbers(m, t.shape, size, "a tensor's size is no tuple of at most 8 whole numbers")) return false;
    if (!read_numbers(m, t.stride, stride, "a tensor's stride is no tuple of at most 8 whole numbers")) return false;
    if (size->n != stride->n) return fail(m, ST_ERR_FORMAT, "a tensor's size and stride differ in length");
    t.rank = size->n;
    if (!check_view(m, &t)) return false;
    vector tensors = { m->out->tensors, m->out->n_tensors, m->out->tensor_room };
    st_pickle_tensor *slot = grow(m, &tensors, sizeof *slot, ST_MAX_PICKLE_TENSORS);
    m->out->tensors = tensors.data;
    m->out->tensor_room = tensors.room;
    if (!slot) return false;
    m->out->n_tensors = tensors.n;
    *slot = t;
    return push(m, (value){ .kind = TENSOR, .as.index = (uint32_t)(tensors.n - 1) });
}

/* The four things that a state dict calls, done by hand. */
static bool op_reduce(machine *m)
{
    if (!need(m, 2)) return false;
    const uint32_t args_index = pop(m), callee_index = pop(m);
    const value *args = at(m, args_index), *callee = at(m, callee_index);
    if (callee->kind != NAME || args->kind != TUPLE)
        return fail(m, ST_ERR_FORMAT, "a call of what is no function, or without a tuple of arguments");
    switch (callee->as.name->what) {
    case ST_PICKLE_DICT:
        return args->n == 0 ? push_kind(m, DICT) : fail(m, ST_ERR_UNSUPPORTED, "an OrderedDict made from arguments");
    case ST_PICKLE_SIZE:
        if (args->n != 1 || !is_kind(item(m, args, 0), TUPLE))
            return fail(m, ST_ERR_FORMAT, "a torch Size of what is no tuple");
        return push_index(m, ((const cell *)m->cells.data)[args->first - 1].value);
    case ST_PICKLE_TENSOR: return rebuild_tensor(m, args);
    case ST_PICKLE_PARAMETER: {
        const value *tensor = item(m, args, 0);
        if (args->n != 3 || !is_kind(tensor, TENSOR)) return fail(m, ST_ERR_FORMAT, "a parameter of what is no tensor");
        return push_index(m, ((const cell *)m->cells.data)[args->first - 1].value);
    }
    case ST_PICKLE_STORAGE:
    case ST_PICKLE_DTYPE: break;
    }
    return fail(m, ST_ERR_FORMAT, "a call of a type that a state dict only names");
}

/* Attributes set on a dict (its metadata) or on a tensor: of no use here. */
static bool op_build(machine *m)
{
    if (!need(m, 2)) return false;
    const value *state = at(m, pop(m)), *object = at(m, top(m));
    if (state->kind != DICT || (object->kind != DICT && object->kind != TENSOR))
        return fail(m, ST_ERR_UNSUPPORTED, "BUILD of something other than a dict's or tensor's attributes");
    return true;
}

static bool op_stop(machine *m)
{
    if (m->stack.n != 1 || m->marks.n != 0)
        return fail(m, ST_ERR_FORMAT, "the stack does not hold exactly one value at the end");
    if (m->at != m->n) return fail(m, ST_ERR_FORMAT, "bytes follow the end of the pickle");
    m->stopped = true;
    return true;
}

/* ---------------------------------------------------------------- the table of opcodes */

typedef struct opcode {
    unsigned char code;
    const char *name;
    bool (*run)(machine *m); /* NULL: refused by name */
} opcode;

static const opcode opcodes[] = {
    { 0x80, "PROTO", op_proto }, { 0x95, "FRAME", op_frame }, { '.', "STOP", op_stop }, { '(', "MARK", op_mark },
    { 'N', "NONE", op_none }, { 0x88, "NEWTRUE", op_newtrue }, { 0x89, "NEWFALSE", op_newfalse },
    { 'J', "BININT", op_binint }, { 'K', "BININT1", op_binint1 }, { 'M', "BININT2", op_binint2 },
    { 0x8a, "LONG1", op_long1 }, { 'G', "BINFLOAT", op_binfloat }, { 'X', "BINUNICODE", op_binunicode },
    { 0x8c, "SHORT_BINUNICODE", op_short_binunicode }, { ']', "EMPTY_LIST", op_empty_list },
    { ')', "EMPTY_TUPLE", op_empty_tuple }, { '}', "EMPTY_DICT", op_empty_dict }, { 't', "TUPLE", op_tuple },
    { 0x85, "TUPLE1", op_tuple1 }, { 0x86, "TUPLE2", op_tuple2 }, { 0x87, "TUPLE3", op_tuple3 },
    { 's', "SETITEM", op_setitem }, { 'u', "SETITEMS", op_setitems }, { 'a', "APPEND", op_append }, { 'e', "APPENDS", op_appends },
    { 'q', "BINPUT", op_binput }, { 'r', "LONG_BINPUT", op_long_binput }, { 0x94, "MEMOIZE", op_memoize },
    { 'h', "BINGET", op_binget }, { 'j', "LONG_BINGET", op_long_binget }, { 'c', "GLOBAL", op_global },
    { 'R', "REDUCE", op_reduce }, { 'b', "BUILD", op_build }, { 'Q', "BINPERSID", op_binpersid }, { '0', "POP", NULL },
    { '1', "POP_MARK", NULL }, { '2', "DUP", NULL }, { 'F', "FLOAT", NULL }, { 'I', "INT", NULL },
    { 'L', "LONG", NULL }, { 'P', "PERSID", NULL }, { 'S', "STRING", NULL }, { 'T', "BINSTRING", NULL },
    { 'U', "SHORT_BINSTRING", NULL }, { 'V', "UNICODE", NULL }, { 'd', "DICT", NULL }, { 'g', "GET", NULL },
    { 'i', "INST", NULL }, { 'l', "LIST", NULL }, { 'o', "OBJ", NULL }, { 'p', "PUT", NULL }, { 'B', "BINBYTES", NULL },
    { 'C', "SHORT_BINBYTES", NULL }, { 0x81, "NEWOBJ", NULL }, { 0x82, "EXT1", NULL }, { 0x83, "EXT2", NULL },
    { 0x84, "EXT4", NULL }, { 0x8b, "LONG4", NULL }, { 0x8d, "BINUNICODE8", NULL }, { 0x8e, "BINBYTES8", NULL },
    { 0x8f, "EMPTY_SET", NULL }, { 0x90, "ADDITEMS", NULL }, { 0x91, "FROZENSET", NULL }, { 0x92, "NEWOBJ_EX", NULL },
    { 0x93, "STACK_GLOBAL", NULL }, { 0x96, "BYTEARRAY8", NULL }, { 0x97, "NEXT_BUFFER", NULL },
    { 0x98, "READONLY_BUFFER", NULL },
};

static bool refuse_opcode(machine *m, unsigned char code, const char *name)
{
    if (code == 0x93 && available(m) >= 2) { /* module and name lie on the stack: say which */
        const value *attribute = at(m, pop(m)), *module = at(m, pop(m));
        if (attribute->kind == TEXT && module->kind == TEXT)
            return refuse_name(m, module->as.text, module->n, attribute->as.text, attribute->n);
    }
    if (code == 'i') {
        const char *module, *attribute;
        size_t n_module, n_attribute;
        if (!take_line(m, &module, &n_module) || !take_line(m, &attribute, &n_attribute)) return false;
        return refuse_name(m, module, n_module, attribute, n_attribute);
    }
    if (m->status == ST_OK)
        m->status =
            st_fail(m->err, ST_ERR_UNSUPPORTED,
                    "pickle, byte %zu: opcode %s (0x%02x), which no state dict needs; nothing was loaded or run",
                    m->opcode_at, name, code);
    return false;
}

static bool step(machine *m)
{
    m->opcode_at = m->at;
    const unsigned char *code = take(m, 1);
    if (!code) return false;
    for (size_t i = 0; i < sizeof opcodes / sizeof *opcodes; i++) {
        if (opcodes[i].code != *code) continue;
        return opcodes[i].run ? opcodes[i].run(m) : refuse_opcode(m, *code, opcodes[i].name);
    }
    return refuse_opcode(m, *code, "unknown");
}

/* ---------------------------------------------------------------- the state dict */

/* The next pair of a dict; *number starts as dict->first and ends as 0. */
static bool next_pair(const machine *m, uint32_t *number, const value **key, const value **val)
{
    if (!*number) return false;
    const cell *k = (const cell *)m->cells.data + *number - 1, *v = (const cell *)m->cells.data + k->next - 1;
    *key = at(m, k->value);
    *val = at(m, v->value);
    *number = v->next;
    return true;
}

static const value *state_dict(const machine *m, const value *root)
{
    const value *key, *val, *model = root;
    for (uint32_t number = root->first; next_pair(m, &number, &key, &val);)
        if (key->kind == TEXT && key->n == 5 && memcmp(key->as.text, "model", 5) == 0 && val->kind == DICT) model = val;
    return model;
}

/* Copies the named tensors into a list of their own; one tensor may have two names. */
static bool name_tensors(machine *m, const value *dict)
{
    const value *key, *val;
    size_t n = 0;
    for (uint32_t number = dict->first; next_pair(m, &number, &key, &val);) n += val->kind == TENSOR;
    if (n == 0) {
        const bool keyed = dict->n && next_pair(m, &(uint32_t){ dict->first }, &key, &val) && key->kind == TEXT;
        m->status = st_fail(m->err, ST_ERR_FORMAT,
                            "the pickle holds no tensors at its top or under \"model\"; its first key is \"%.*s\"",
                            keyed ? shown(key->n) : 0, keyed ? key->as.text : "");
        return false;
    }
    if (n > ST_MAX_TENSORS) return fail(m, ST_ERR_LIMIT, "more tensors than a checkpoint may have");
    st_pickle_tensor *named = st_calloc(n, sizeof *named);
    if (!named) return fail(m, ST_ERR_NOMEM, "out of memory");
    size_t i = 0;
    for (uint32_t number = dict->first; next_pair(m, &number, &key, &val);) {
        if (val->kind != TENSOR) continue;
        if (key->kind != TEXT) {
            st_free(named);
            return fail(m, ST_ERR_FORMAT, "a tensor's name is no text");
        }
        named[i] = m->out->tensors[val->as.index];
        named[i].name = key->as.text;
        named[i++].n_name = key->n;
    }
    st_free(m->out->tensors);
    m->out->tensors = named;
    m->out->n_tensors = n;
    m->out->tensor_room = n;
    return true;
}

static void run(machine *m)
{
    while (!m->stopped)
        if (!step(m)) return;
    const value *root = at(m, top(m));
    if (root->kind != DICT) {
        m->status = st_fail(m->err, ST_ERR_UNSUPPORTED, "the pickle holds %s, expected a dict of tensors",
                            kind_names[root->kind]);
        return;
    }
    (void)name_tensors(m, state_dict(m, root));
}

st_status st_pickle_read(st_pickle *out, const unsigned char *bytes, size_t n, st_error *err)
{
    *out = (st_pickle){ 0 };
    if (n > ST_MAX_PICKLE_BYTES)
        return st_fail(err, ST_ERR_LIMIT, "the pickle has %zu bytes, expected at most %u", n, ST_MAX_PICKLE_BYTES);
    machine m = { .bytes = bytes, .n = n, .out = out, .err = err, .status = ST_OK };
    run(&m);
    st_free(m.values.data);
    st_free(m.cells.data);
    st_free(m.stack.data);
    st_free(m.marks.data);
    st_free(m.memo.data);
    if (m.status != ST_OK) st_pickle_free(out);
    return m.status;
}

void st_pickle_free(st_pickle *p)
{
    if (!p) return;
    st_free(p->storages);
    st_free(p->tensors);
    *p = (st_pickle){ 0 };
}
