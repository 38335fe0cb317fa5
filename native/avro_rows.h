/* Encode rows (Python dictionaries) as Avro by a program of nested tuples. Written in C, since kernels cannot be
 * translated with objects.
 *
 * `penstock.registry.avro.row_program` makes the program. The function returns None for every unusual row: another
 * type, a missing field, a number out of its range. fastavro then encodes it or raises the error. */

enum {
    AVRO_NULL, AVRO_BOOLEAN, AVRO_INT, AVRO_LONG, AVRO_FLOAT, AVRO_DOUBLE, AVRO_STRING, AVRO_BYTES, AVRO_FIXED,
    AVRO_ENUM, AVRO_RECORD, AVRO_ARRAY, AVRO_MAP, AVRO_OPTION, AVRO_LOGICAL
};
enum { AVRO_DEPTH_MAX = 64, AVRO_FIRST_BYTES = 1024, AVRO_ROW_BYTES_MAX = 1 << 30 };

/* The output of a row: in `first` while it is short, then in a block of its own. */
typedef struct {
    uint8_t first[AVRO_FIRST_BYTES];
    uint8_t *at;
    int64_t size, room;
} out_t;

/* Return room for `count` more bytes, or NULL if there is none. */
static inline uint8_t *more_room(out_t *out, int64_t count) {
    if (count > AVRO_ROW_BYTES_MAX - out->size) return NULL;
    if (count > out->room - out->size) {
        const int64_t room = max_of(2 * out->room, out->size + count);
        uint8_t *block = PyMem_Realloc(out->at == out->first ? NULL : out->at, (size_t)room);
        if (block == NULL) return NULL;
        if (out->at == out->first) memcpy(block, out->first, (size_t)out->size);
        out->at = block;
        out->room = room;
    }
    uint8_t *to = out->at + out->size;
    out->size += count;
    return to;
}

static inline int put_avro_number(out_t *out, int64_t number) {
    uint8_t *to = more_room(out, number_size(number));
    if (to == NULL) return -1;
    put_number(to, number);
    return 0;
}

static inline int put_avro_bytes(out_t *out, const char *data, int64_t size, int has_size) {
    if (data == NULL || (has_size && put_avro_number(out, size))) return -1;
    uint8_t *to = more_room(out, size);
    if (to == NULL) return -1;
    memcpy(to, data, (size_t)size);
    return 0;
}

static inline int put_little(out_t *out, uint64_t bits, int size) {
    uint8_t *to = more_room(out, size);
    if (to == NULL) return -1;
    for (int step = 0; step < size; step++) to[step] = (uint8_t)(bits >> (8 * step));
    return 0;
}

static int put_avro_text(out_t *out, PyObject *text) {
    if (!PyUnicode_CheckExact(text)) return -1;
    Py_ssize_t size = 0;
    const char *data = PyUnicode_AsUTF8AndSize(text, &size);
    return put_avro_bytes(out, data, size, 1);
}

static int put_avro(out_t *out, PyObject *node, PyObject *value, int depth);

static int put_avro_record(out_t *out, PyObject *node, PyObject *value, int depth) {
    PyObject *names = PyTuple_GetItem(node, 1), *children = PyTuple_GetItem(node, 2), *may_miss = PyTuple_GetItem(node, 3);
    if (!PyDict_CheckExact(value)) return -1;
    const Py_ssize_t count = PyTuple_Size(names);
    for (Py_ssize_t index = 0; index < count; index++) {
        PyObject *found = PyDict_GetItemWithError(value, PyTuple_GetItem(names, index));
        if (found == NULL) {
            if (PyErr_Occurred() || PyTuple_GetItem(may_miss, index) != Py_True) return -1;
            found = Py_None;
        }
        Py_INCREF(found); /* the function of a logical type may run, and remove it from the dictionary */
        const int failed = put_avro(out, PyTuple_GetItem(children, index), found, depth + 1);
        Py_DECREF(found);
        if (failed) return -1;
    }
    return 0;
}

static int put_avro_list(out_t *out, PyObject *child, PyObject *value, int depth) {
    if (!PyList_CheckExact(value)) return -1;
    const Py_ssize_t count = PyList_Size(value);
    if (count && put_avro_number(out, count)) return -1;
    for (Py_ssize_t index = 0; index < count; index++) {
        PyObject *item = PyList_GetItem(value, index);
        if (item == NULL) return -1;
        Py_INCREF(item);
        const int failed = put_avro(out, child, item, depth + 1);
        Py_DECREF(item);
        if (failed) return -1;
    }
    return put_avro_number(out, 0);
}

static int put_avro_map(out_t *out, PyObject *child, PyObject *value, int depth) {
    if (!PyDict_CheckExact(value)) return -1;
    const Py_ssize_t count = PyDict_Size(value);
    if (count && put_avro_number(out, count)) return -1;
    Py_ssize_t place = 0, written = 0;
    PyObject *key = NULL, *item = NULL;
    while (written <= count && PyDict_Next(value, &place, &key, &item)) {
        Py_INCREF(key);
        Py_INCREF(item);
        const int failed = put_avro_text(out, key) || put_avro(out, child, item, depth + 1);
        Py_DECREF(key);
        Py_DECREF(item);
        if (failed) return -1;
        written++;
    }
    return written == count ? put_avro_number(out, 0) : -1;
}

/* Encode a value of a logical type; its function first converts it to a number or text of Avro. */
static int put_avro_logical(out_t *out, PyObject *node, PyObject *value, int depth) {
    PyObject *child = PyTuple_GetItem(node, 3);
    if (!PyLong_CheckExact(value) && !PyUnicode_CheckExact(value) && !PyBytes_CheckExact(value)) {
        PyObject *made = PyObject_CallFunctionObjArgs(PyTuple_GetItem(node, 1), value, PyTuple_GetItem(node, 2), NULL);
        if (made == NULL) return -1;
        const int failed = put_avro(out, child, made, depth + 1);
        Py_DECREF(made);
        return failed;
    }
    return put_avro(out, child, value, depth + 1);
}

/* Encode one value; -1 if fastavro must handle it, perhaps with a Python error set. */
static int put_avro(out_t *out, PyObject *node, PyObject *value, int depth) {
    if (depth > AVRO_DEPTH_MAX) return -1;
    switch (PyLong_AsLong(PyTuple_GetItem(node, 0))) {
    case AVRO_NULL: return value == Py_None ? 0 : -1;
    case AVRO_BOOLEAN: return value == Py_True || value == Py_False ? put_little(out, value == Py_True, 1) : -1;
    case AVRO_INT:
    case AVRO_LONG: {
        if (!PyLong_CheckExact(value)) return -1;
        const int64_t number = PyLong_AsLongLong(value);
        if (number == -1 && PyErr_Occurred()) return -1;
        const int is_int = PyLong_AsLong(PyTuple_GetItem(node, 0)) == AVRO_INT;
        return is_int && number != (int32_t)number ? -1 : put_avro_number(out, number);
    }
    case AVRO_FLOAT: {
        if (!PyFloat_CheckExact(value)) return -1;
        const double wide = PyFloat_AsDouble(value);
        if (!__builtin_isinf(wide) && (wide > 3.4e38 || wide < -3.4e38)) return -1;
        const float narrow = (float)wide;
        uint32_t bits;
        memcpy(&bits, &narrow, 4);
        return put_little(out, bits, 4);
    }
    case AVRO_DOUBLE: {
        if (!PyFloat_CheckExact(value)) return -1;
        const double number = PyFloat_AsDouble(value);
        uint64_t bits;
        memcpy(&bits, &number, 8);
        return put_little(out, bits, 8);
    }
    case AVRO_STRING: return put_avro_text(out, value);
    case AVRO_BYTES:
        return PyBytes_CheckExact(value) ? put_avro_bytes(out, PyBytes_AsString(value), PyBytes_Size(value), 1) : -1;
    case AVRO_FIXED:
        if (!PyBytes_CheckExact(value) || PyBytes_Size(value) != PyLong_AsSsize_t(PyTuple_GetItem(node, 1))) return -1;
        return put_avro_bytes(out, PyBytes_AsString(value), PyBytes_Size(value), 0);
    case AVRO_ENUM: {
        if (!PyUnicode_CheckExact(value)) return -1;
        PyObject *number = PyDict_GetItemWithError(PyTuple_GetItem(node, 1), value);
        return number == NULL ? -1 : put_avro_number(out, PyLong_AsLongLong(number));
    }
    case AVRO_RECORD: return put_avro_record(out, node, value, depth);
    case AVRO_ARRAY: return put_avro_list(out, PyTuple_GetItem(node, 1), value, depth);
    case AVRO_MAP: return put_avro_map(out, PyTuple_GetItem(node, 1), value, depth);
    case AVRO_OPTION: {
        const int64_t null_branch = PyLong_AsLong(PyTuple_GetItem(node, 1));
        if (value == Py_None) return put_avro_number(out, null_branch);
        if (put_avro_number(out, 1 - null_branch)) return -1;
        return put_avro(out, PyTuple_GetItem(node, 2), value, depth + 1);
    }
    case AVRO_LOGICAL: return put_avro_logical(out, node, value, depth);
    default: return -1;
    }
}

enum { AVRO_PROGRAM, AVRO_ROW, AVRO_PREFIX, AVRO_WRITES };

/* write_avro_row(program, row, prefix): the prefix and the row as bytes, or None. */
static PyObject *write_avro_row(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call;
    begin_call(&call, "write_avro_row", given, count, AVRO_WRITES);
    if (end_call(&call)) return NULL;
    if (!PyTuple_CheckExact(given[AVRO_PROGRAM]) || !PyBytes_CheckExact(given[AVRO_PREFIX])) {
        PyErr_SetString(PyExc_TypeError, "a program is a tuple, and a prefix is bytes");
        return NULL;
    }
    out_t out;
    out.at = out.first;
    out.size = 0;
    out.room = AVRO_FIRST_BYTES;
    PyObject *result = NULL;
    const char *prefix = PyBytes_AsString(given[AVRO_PREFIX]);
    if (!put_avro_bytes(&out, prefix, PyBytes_Size(given[AVRO_PREFIX]), 0)
        && !put_avro(&out, given[AVRO_PROGRAM], given[AVRO_ROW], 0))
        result = PyBytes_FromStringAndSize((const char *)out.at, out.size);
    if (out.at != out.first) PyMem_Free(out.at);
    if (result == NULL) {
        /* Errors that are not the row's end the call: no memory, and signals such as Control-C. */
        if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception)) return NULL;
        if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_MemoryError)) return NULL;
        PyErr_Clear();
        Py_INCREF(result = Py_None);
    }
    return result;
}
