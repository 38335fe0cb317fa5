/* Rows out of columns: the one loop that makes Python objects, so it is written in C and not translated.
 *
 * `penstock.records.rows` has the same in Python. */

/* A column of byte strings; without bits of validity nothing in it is null. */
typedef struct {
    bytes_t data;
    int32s_t ends;
    bytes_t validity;
} column_t;

static int is_column_whole(const column_t *column, int64_t first, int64_t last) {
    const int64_t bits = COUNT(column->validity) * 8;
    if (COUNT(column->ends) <= last || (bits != 0 && bits < last)) return 0;
    int64_t before = first < last ? column->ends.at[first] : 0;
    if (before < 0) return 0;
    for (int64_t row = first; row < last; row++) {
        if (column->ends.at[row + 1] < before) return 0;
        before = column->ends.at[row + 1];
    }
    return before <= COUNT(column->data);
}

/* The bytes of a row, or None. */
static PyObject *bytes_in(const column_t *column, int64_t row) {
    if (COUNT(column->validity) != 0 && !((column->validity.at[row >> 3] >> (row & 7)) & 1)) {
        Py_INCREF(Py_None);
        return Py_None;
    }
    const int64_t start = column->ends.at[row];
    return PyBytes_FromStringAndSize((const char *)column->data.at + start, column->ends.at[row + 1] - start);
}

/* The headers of a row: a list of pairs, or the empty tuple. */
static PyObject *headers_in(
    const int32s_t *ends, const column_t *names, const column_t *values, int64_t row, PyObject *nothing
) {
    const int64_t first = ends->at[row], last = ends->at[row + 1];
    if (first == last) {
        Py_INCREF(nothing);
        return nothing;
    }
    PyObject *list = PyList_New(last - first);
    for (int64_t header = first; list != NULL && header < last; header++) {
        const int64_t start = names->ends.at[header];
        PyObject *name =
            PyUnicode_DecodeUTF8((const char *)names->data.at + start, names->ends.at[header + 1] - start, NULL);
        PyObject *value = bytes_in(values, header);
        PyObject *pair = name == NULL || value == NULL ? NULL : PyTuple_Pack(2, name, value);
        Py_XDECREF(name);
        Py_XDECREF(value);
        if (pair == NULL || PyList_SetItem(list, header - first, pair) != 0) {
            Py_DECREF(list);
            return NULL;
        }
    }
    return list;
}

enum { ROW_CLASS, TOPIC, PARTITION, KINDS, FIRST, LAST, OFFSETS, TIMES, TYPES, COLUMNS, ROW_ARGUMENTS = COLUMNS + 13 };
enum { FIELDS = 8 };

/* Take three arguments as a column. */
static column_t take_column(call_t *call, int index) {
    const bytes_t data = take_bytes_t(call, index, 0);
    const int32s_t ends = take_int32s_t(call, index + 1, 0);
    return (column_t){data, ends, take_bytes_t(call, index + 2, 0)};
}

/* records_of(class, topic, partition, kinds, first, last, offsets, times, types, key ×3, value ×3, header ends,
 * header names ×3, header values ×3): the list of rows `first` to before `last`. A type is the index of its kind,
 * less one. */
static PyObject *records_of(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call;
    begin_call(&call, "records_of", given, count, ROW_ARGUMENTS);
    const int64_t first = take_int64_t(&call, FIRST), last = take_int64_t(&call, LAST);
    const ints_t offsets = take_ints_t(&call, OFFSETS, 0), times = take_ints_t(&call, TIMES, 0);
    const int32s_t types = take_int32s_t(&call, TYPES, 0);
    const column_t key = take_column(&call, COLUMNS), value = take_column(&call, COLUMNS + 3);
    const int32s_t header_ends = take_int32s_t(&call, COLUMNS + 6, 0);
    const column_t names = take_column(&call, COLUMNS + 7), contents = take_column(&call, COLUMNS + 10);
    newfunc new_tuple = (newfunc)PyType_GetSlot(&PyTuple_Type, Py_tp_new);
    PyObject *rows = NULL, *nothing = NULL;
    if (call.failed) goto end;
    const int64_t headers = COUNT(header_ends) > last && last >= 0 ? header_ends.at[last] : -1;
    if (first < 0 || last < first || COUNT(offsets) < last || COUNT(times) < last || COUNT(types) < last
        || !is_column_whole(&key, first, last) || !is_column_whole(&value, first, last) || headers < 0
        || COUNT(names.ends) <= headers || COUNT(contents.ends) <= headers || header_ends.at[first] < 0
        || !is_column_whole(&names, header_ends.at[first], headers)
        || !is_column_whole(&contents, header_ends.at[first], headers)) {
        PyErr_SetString(PyExc_ValueError, "columns of different lengths, or offsets that do not ascend");
        goto end;
    }
    /* Every record is an object that the garbage collector watches: it would run for each 700 of them. */
    const int was_collecting = PyGC_Disable();
    nothing = PyTuple_New(0);
    rows = nothing == NULL ? NULL : PyList_New(last - first);
    for (int64_t row = first; rows != NULL && row < last; row++) {
        PyObject *fields[FIELDS] = {
            given[TOPIC],
            given[PARTITION],
            PyLong_FromLongLong(offsets.at[row]),
            PyLong_FromLongLong(times.at[row]),
            PySequence_GetItem(given[KINDS], types.at[row] + 1),
            bytes_in(&key, row),
            bytes_in(&value, row),
            headers_in(&header_ends, &names, &contents, row, nothing),
        };
        Py_INCREF(fields[0]);
        Py_INCREF(fields[1]);
        PyObject *plain = PyTuple_New(FIELDS);
        int failed = plain == NULL;
        for (int field = 0; field < FIELDS; field++) {
            if (fields[field] == NULL) failed = 1;
            else if (plain == NULL) Py_DECREF(fields[field]);
            else PyTuple_SetItem(plain, field, fields[field]);
        }
        PyObject *arguments = failed ? NULL : PyTuple_Pack(1, plain);
        PyObject *record = arguments == NULL ? NULL : new_tuple((PyTypeObject *)given[ROW_CLASS], arguments, NULL);
        Py_XDECREF(arguments);
        Py_XDECREF(plain);
        if (record == NULL || PyList_SetItem(rows, row - first, record) != 0) {
            Py_DECREF(rows);
            rows = NULL;
        }
    }
    Py_XDECREF(nothing);
    if (was_collecting) PyGC_Enable();
end:
    if (rows == NULL) call.failed = 1;
    return end_call(&call) ? NULL : rows;
}
