/* Two loops over Python objects, written in C because kernels cannot be translated with objects: records of a
 * batch to rows, and rows to records.
 *
 * `penstock.records.row_format` has both in Python, and is the reference: the functions here return None for every
 * unusual input, and the Python code then handles it. */

enum { FIELDS = 8, BATCH_ROW_FIELDS = 4 };

/* --- records to rows --- */

typedef struct {
    const uint8_t *data;
    int64_t at, end; /* positions of the next byte, and of the record's end */
    int failed;
} reader_t;

static inline int64_t read_number(reader_t *reader, int bits) {
    uint64_t value = 0;
    for (int shift = 0; shift < bits; shift += 7) {
        if (reader->at >= reader->end) break;
        const uint8_t byte = reader->data[reader->at++];
        if (shift == 63 && byte > 1) break;
        value |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80) {
            if (bits <= 35 && value > 0xFFFFFFFFu) break;
            return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
        }
    }
    reader->failed = 1;
    return 0;
}

/* Read a size and its bytes: None for a size of -1, NULL if the bytes do not fit or there is no memory. */
static PyObject *read_bytes(reader_t *reader) {
    const int64_t size = read_number(reader, 35);
    if (reader->failed || size < -1 || size > reader->end - reader->at) {
        reader->failed = 1;
        return NULL;
    }
    if (size < 0) {
        Py_INCREF(Py_None);
        return Py_None;
    }
    reader->at += size;
    return PyBytes_FromStringAndSize((const char *)reader->data + reader->at - size, size);
}

/* Read the headers of a record: a list of pairs, or `nothing` if there are none. */
static PyObject *read_pairs(reader_t *reader, PyObject *nothing) {
    const int64_t count = read_number(reader, 35);
    if (reader->failed || count < 0 || count > (reader->end - reader->at) / 2) {
        reader->failed = 1;
        return NULL;
    }
    if (count == 0) {
        Py_INCREF(nothing);
        return nothing;
    }
    PyObject *pairs = PyList_New(count);
    for (int64_t index = 0; pairs != NULL && index < count; index++) {
        const int64_t size = read_number(reader, 35);
        PyObject *name = NULL, *value = NULL, *pair = NULL;
        if (reader->failed || size < 0 || size > reader->end - reader->at) reader->failed = 1;
        else {
            name = PyUnicode_DecodeUTF8((const char *)reader->data + reader->at, size, "replace");
            reader->at += size;
            value = read_bytes(reader);
        }
        if (name != NULL && value != NULL) pair = PyTuple_Pack(2, name, value);
        Py_XDECREF(name);
        Py_XDECREF(value);
        if (pair == NULL || PyList_SetItem(pairs, index, pair) != 0) {
            Py_DECREF(pairs);
            return NULL;
        }
    }
    return pairs;
}

enum { DATA, POSITION, RECORDS, BASE_OFFSET, BASE_TIME, APPENDED_AT, TOPIC, PARTITION, ROW_CLASS, TIME_TYPE, READS };

/* What rows are made of. `tuple.__new__` copies the fields of `plain`, to which `arguments` holds the only reference,
 * so that they can be replaced from row to row. */
typedef struct {
    PyObject *arguments, *plain;
    newfunc new_row;
    PyTypeObject *row_class;
    int64_t time; /* of the row before */
    int is_untracked;
} maker_t;

enum { TOPIC_FIELD, PARTITION_FIELD, OFFSET_FIELD, TIME_FIELD, TYPE_FIELD, KEY_FIELD, VALUE_FIELD, HEADERS_FIELD };

/* Replace a field of the next row by `object`, whose reference is taken; -1 if it is NULL. */
static inline int put_field(maker_t *maker, int field, PyObject *object) {
    return object == NULL ? -1 : PyTuple_SetItem(maker->plain, field, object);
}

static inline int keep_field(maker_t *maker, int field, PyObject *object) {
    Py_INCREF(object);
    return put_field(maker, field, object);
}

/* Prepare to make rows; -1 with a Python error set. */
static int begin_rows(maker_t *maker, PyObject *const *given, PyObject *nothing) {
    maker->new_row = (newfunc)PyType_GetSlot(&PyTuple_Type, Py_tp_new);
    maker->row_class = (PyTypeObject *)given[ROW_CLASS];
    maker->time = 0;
    /* A row without a dictionary, whose fields refer to nothing, is in no cycle: the garbage collector need not look. */
    PyObject *at = PyObject_GetAttrString(given[ROW_CLASS], "__dictoffset__");
    if (at == NULL) return -1;
    maker->is_untracked = PyLong_CheckExact(at) && PyLong_AsLong(at) == 0;
    Py_DECREF(at);
    maker->plain = PyTuple_New(FIELDS);
    maker->arguments = PyTuple_New(1);
    if (maker->plain == NULL || maker->arguments == NULL) {
        Py_CLEAR(maker->plain);
        return -1;
    }
    if (PyTuple_SetItem(maker->arguments, 0, maker->plain) != 0) return -1;
    if (given[APPENDED_AT] != Py_None) keep_field(maker, TIME_FIELD, given[APPENDED_AT]);
    else if (put_field(maker, TIME_FIELD, PyLong_FromLong(0))) return -1;
    keep_field(maker, TOPIC_FIELD, given[TOPIC]);
    keep_field(maker, PARTITION_FIELD, given[PARTITION]);
    keep_field(maker, TYPE_FIELD, given[TIME_TYPE]);
    return keep_field(maker, HEADERS_FIELD, nothing);
}

/* Read one row; NULL with a Python error set, or with `failed` set in the reader. */
static PyObject *read_row(
    reader_t *reader, maker_t *maker, int has_time, int64_t base_offset, int64_t base_time, PyObject *nothing
) {
    const int64_t whole = reader->end;
    const int64_t length = read_number(reader, 35);
    if (reader->failed || length < 1 || length > whole - reader->at) {
        reader->failed = 1;
        return NULL;
    }
    reader->end = reader->at + length;
    reader->at++; /* attributes: none are defined */
    const int64_t time_delta = read_number(reader, 70), offset_delta = read_number(reader, 35);
    int64_t time, offset;
    if (__builtin_add_overflow(base_time, time_delta, &time)
        || __builtin_add_overflow(base_offset, offset_delta, &offset) || reader->failed) {
        reader->failed = 1;
        return NULL;
    }
    /* Most records have the time of the one before them. */
    if (has_time && time != maker->time) {
        if (put_field(maker, TIME_FIELD, PyLong_FromLongLong(time))) return NULL;
        maker->time = time;
    }
    if (put_field(maker, OFFSET_FIELD, PyLong_FromLongLong(offset)) || put_field(maker, KEY_FIELD, read_bytes(reader))
        || put_field(maker, VALUE_FIELD, read_bytes(reader)))
        return NULL;
    PyObject *headers = read_pairs(reader, nothing);
    const int is_plain = headers == nothing;
    if (put_field(maker, HEADERS_FIELD, headers)) return NULL;
    if (reader->at != reader->end) {
        reader->failed = 1;
        return NULL;
    }
    reader->end = whole;
    PyObject *row = maker->new_row(maker->row_class, maker->arguments, NULL);
    if (row != NULL && is_plain && maker->is_untracked) PyObject_GC_UnTrack(row);
    return row;
}

/* read_rows(data, position, count, base_offset, base_timestamp, appended_at, topic, partition, class, type): a pair of
 * the rows and the position behind them, or None. */
static PyObject *read_rows(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call;
    begin_call(&call, "read_rows", given, count, READS);
    const bytes_t data = take_bytes_t(&call, DATA, 0);
    const int64_t position = take_int64_t(&call, POSITION), wanted = take_int64_t(&call, RECORDS);
    const int64_t base_offset = take_int64_t(&call, BASE_OFFSET), base_time = take_int64_t(&call, BASE_TIME);
    if (!call.failed && (!PyType_Check(given[ROW_CLASS])
        || !PyType_IsSubtype((PyTypeObject *)given[ROW_CLASS], &PyTuple_Type))) {
        PyErr_SetString(PyExc_TypeError, "rows are tuples");
        call.failed = 1;
    }
    PyObject *result = NULL;
    if (!call.failed && (position < 0 || wanted < 0 || wanted > COUNT(data) - position)) {
        Py_INCREF(result = Py_None);
    } else if (!call.failed) {
        reader_t reader = {data.at, position, COUNT(data), 0};
        maker_t maker = {NULL, NULL};
        const int has_time = given[APPENDED_AT] == Py_None;
        /* The garbage collector would run after every 700 rows. */
        const int was_collecting = PyGC_Disable();
        PyObject *nothing = PyTuple_New(0);
        PyObject *rows = nothing == NULL || begin_rows(&maker, given, nothing) ? NULL : PyList_New(wanted);
        for (int64_t row = 0; rows != NULL && row < wanted; row++) {
            PyObject *record = read_row(&reader, &maker, has_time, base_offset, base_time, nothing);
            if (record == NULL || PyList_SetItem(rows, row, record) != 0) Py_CLEAR(rows);
        }
        if (was_collecting) PyGC_Enable();
        Py_XDECREF(maker.arguments);
        Py_XDECREF(nothing);
        if (rows != NULL) result = Py_BuildValue("NL", rows, (long long)reader.at);
        else if (reader.failed) {
            PyErr_Clear();
            Py_INCREF(result = Py_None);
        }
    }
    if (result == NULL) call.failed = 1;
    return end_call(&call) ? NULL : result;
}

/* --- rows to records --- */

static inline int number_size(int64_t number) {
    uint64_t value = ((uint64_t)number << 1) ^ (uint64_t)(number >> 63);
    int size = 1;
    while (value >= 0x80) {
        value >>= 7;
        size++;
    }
    return size;
}

static inline uint8_t *put_number(uint8_t *to, int64_t number) {
    uint64_t value = ((uint64_t)number << 1) ^ (uint64_t)(number >> 63);
    while (value >= 0x80) {
        *to++ = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    *to++ = (uint8_t)value;
    return to;
}

/* Take bytes or None; None is the format's null, with size -1. */
typedef struct { const char *at; int64_t size; } text_t;

static inline int bytes_text(PyObject *object, text_t *text) {
    *text = (text_t){NULL, -1};
    if (object == Py_None) return 0;
    if (object == NULL || !PyBytes_CheckExact(object)) return -1;
    *text = (text_t){PyBytes_AsString(object), PyBytes_Size(object)};
    return text->size > INT32_MAX ? -1 : 0;
}

/* Take the name and value of a header, which is a pair of str and bytes. */
static int header_texts(PyObject *headers, Py_ssize_t index, text_t *name, text_t *value) {
    PyObject *pair = PyList_CheckExact(headers) ? PyList_GetItem(headers, index) : PyTuple_GetItem(headers, index);
    if (pair == NULL || !PyTuple_Check(pair) || PyTuple_Size(pair) != 2) return -1;
    PyObject *text = PyTuple_GetItem(pair, 0);
    if (!PyUnicode_CheckExact(text)) return -1;
    Py_ssize_t size = 0;
    *name = (text_t){PyUnicode_AsUTF8AndSize(text, &size), 0};
    name->size = size;
    return name->at == NULL || size > INT32_MAX ? -1 : bytes_text(PyTuple_GetItem(pair, 1), value);
}

/* The parts of a row. `size` is the size of its record, without the varint of the size. */
typedef struct {
    text_t key, value;
    PyObject *headers;
    Py_ssize_t header_count;
    int64_t time_delta, offset_delta, size;
} row_t;

/* Check and take key, value and headers; -1 if the Python code must handle them. */
static int take_texts(
    PyObject *key, PyObject *value, PyObject *headers, int64_t time_delta, int64_t offset_delta, row_t *row
) {
    if (bytes_text(key, &row->key) || bytes_text(value, &row->value)) return -1;
    row->headers = headers;
    if (headers == NULL) return -1;
    if (PyTuple_CheckExact(headers)) row->header_count = PyTuple_Size(headers);
    else if (PyList_CheckExact(headers)) row->header_count = PyList_Size(headers);
    else return -1;
    row->time_delta = time_delta;
    row->offset_delta = offset_delta;
    row->size = 1 + number_size(row->time_delta) + number_size(offset_delta) + number_size(row->key.size)
        + max_of(row->key.size, 0) + number_size(row->value.size) + max_of(row->value.size, 0)
        + number_size(row->header_count);
    for (Py_ssize_t index = 0; index < row->header_count; index++) {
        text_t name, text;
        if (header_texts(headers, index, &name, &text)) return -1;
        row->size += number_size(name.size) + name.size + number_size(text.size) + max_of(text.size, 0);
    }
    return row->size > INT32_MAX ? -1 : 0;
}

/* Check and take a row; -1 if the Python code must handle it. */
static int take_row(PyObject *object, int64_t base_time, int64_t offset_delta, row_t *row) {
    if (object == NULL || !PyTuple_Check(object) || PyTuple_Size(object) != BATCH_ROW_FIELDS) return -1;
    PyObject *time = PyTuple_GetItem(object, 3);
    if (!PyLong_CheckExact(time)) return -1;
    const int64_t milliseconds = PyLong_AsLongLong(time);
    if (milliseconds == -1 && PyErr_Occurred()) return -1;
    int64_t time_delta;
    if (__builtin_sub_overflow(milliseconds, base_time, &time_delta)) return -1;
    PyObject *key = PyTuple_GetItem(object, 0), *value = PyTuple_GetItem(object, 1);
    return take_texts(key, value, PyTuple_GetItem(object, 2), time_delta, offset_delta, row);
}

static inline uint8_t *put_text(uint8_t *to, text_t text) {
    to = put_number(to, text.size);
    if (text.size > 0) {
        memcpy(to, text.at, (size_t)text.size);
        to += text.size;
    }
    return to;
}

static uint8_t *put_row(uint8_t *to, const row_t *row) {
    to = put_number(to, row->size);
    *to++ = 0;
    to = put_number(put_number(to, row->time_delta), row->offset_delta);
    to = put_text(put_text(to, row->key), row->value);
    to = put_number(to, row->header_count);
    for (Py_ssize_t index = 0; index < row->header_count; index++) {
        text_t name, value;
        header_texts(row->headers, index, &name, &value);
        to = put_text(put_text(to, name), value);
    }
    return to;
}

enum { ROWS, TIME_OF_BATCH, DELTAS, WRITES };

/* write_rows(rows, base_timestamp, offset_deltas): the records back to back as bytes, or None. */
static PyObject *write_rows(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call;
    begin_call(&call, "write_rows", given, count, WRITES);
    if (end_call(&call)) return NULL;
    PyObject *result = NULL;
    const int64_t base_time = PyLong_CheckExact(given[TIME_OF_BATCH]) ? PyLong_AsLongLong(given[TIME_OF_BATCH]) : -1;
    const int is_number = PyLong_CheckExact(given[TIME_OF_BATCH]) && !PyErr_Occurred();
    if (is_number && PyList_CheckExact(given[ROWS]) && given[DELTAS] == Py_None) {
        const Py_ssize_t rows = PyList_Size(given[ROWS]);
        int64_t size = 0;
        row_t row;
        Py_ssize_t index = 0;
        for (; index < rows; index++) {
            if (take_row(PyList_GetItem(given[ROWS], index), base_time, index, &row)) break;
            size += number_size(row.size) + row.size;
        }
        if (index == rows && (result = PyBytes_FromStringAndSize(NULL, size)) != NULL) {
            uint8_t *to = (uint8_t *)PyBytes_AsString(result);
            for (index = 0; index < rows; index++) {
                take_row(PyList_GetItem(given[ROWS], index), base_time, index, &row);
                to = put_row(to, &row);
            }
        }
    }
    if (result == NULL) {
        if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_MemoryError)) return NULL;
        PyErr_Clear();
        Py_INCREF(result = Py_None);
    }
    return result;
}
