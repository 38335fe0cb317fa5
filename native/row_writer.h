/* The types RowWriter and Meter: the records of one batch, encoded as they are added. Written in C, since kernels
 * cannot be translated with objects.
 *
 * `PlainRowWriter` and `PlainMeter` of `penstock.records.row_format` are the same in Python, and `PlainKeyLane` of
 * `penstock.client.produce.partitioner`.
 *
 * A change of a writer or a meter runs no Python code in between, so that the GIL makes it atomic. A
 * free-threaded Python has no GIL, and uses the plain classes. */
#ifndef Py_GIL_DISABLED
#include <structmember.h>

enum { RECORD_OVERHEAD = 36, FIRST_ROOM = 256 };

static void free_object(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

/* --- Meter: bytes in use, of all batches of a producer --- */

typedef struct {
    PyObject_HEAD
    long long used, limit;
} meter_t;

static PyObject *new_meter(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    long long limit;
    if (!PyArg_ParseTuple(arguments, "L", &limit)) return NULL;
    meter_t *self = (meter_t *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (self != NULL) self->limit = limit;
    return (PyObject *)self;
}

static PyObject *meter_add(PyObject *self, PyObject *count) {
    const long long more = PyLong_AsLongLong(count);
    if (more == -1 && PyErr_Occurred()) return NULL;
    ((meter_t *)self)->used += more;
    Py_RETURN_NONE;
}

static PyMethodDef METER_METHODS[] = {{"add", meter_add, METH_O, NULL}, {NULL, NULL, 0, NULL}};
static PyMemberDef METER_MEMBERS[] = {
    {"used", T_LONGLONG, offsetof(meter_t, used), READONLY, NULL},
    {"limit", T_LONGLONG, offsetof(meter_t, limit), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot METER_SLOTS[] = {
    {Py_tp_new, new_meter},
    {Py_tp_dealloc, free_object},
    {Py_tp_methods, METER_METHODS},
    {Py_tp_members, METER_MEMBERS},
    {0, NULL},
};
static PyType_Spec METER_SPEC = {
    "penstock._kernels.Meter", sizeof(meter_t), 0, Py_TPFLAGS_DEFAULT, METER_SLOTS
};

/* --- Place: the base class of deliveries --- */

typedef struct {
    PyObject_HEAD
    PyObject *outcome;
    long long index, timestamp;
} place_t;

static int visit_place(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((place_t *)self)->outcome);
    return 0;
}

static int clear_place(PyObject *self) {
    Py_CLEAR(((place_t *)self)->outcome);
    return 0;
}

static void free_place(PyObject *self) {
    PyObject_GC_UnTrack(self);
    clear_place(self);
    free_object(self);
}

static PyMemberDef PLACE_MEMBERS[] = {
    {"_outcome", T_OBJECT_EX, offsetof(place_t, outcome), 0, NULL},
    {"_index", T_LONGLONG, offsetof(place_t, index), 0, NULL},
    {"_timestamp", T_LONGLONG, offsetof(place_t, timestamp), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot PLACE_SLOTS[] = {
    {Py_tp_dealloc, free_place},
    {Py_tp_traverse, visit_place},
    {Py_tp_clear, clear_place},
    {Py_tp_members, PLACE_MEMBERS},
    {0, NULL},
};
static PyType_Spec PLACE_SPEC = {
    "penstock._kernels.Place",
    sizeof(place_t),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    PLACE_SLOTS,
};

/* --- RowWriter --- */

typedef struct {
    PyObject_HEAD
    PyObject *meter, *outcome, *kind; /* `kind` is the class of deliveries, which extends Place */
    PyObject *topics, *topic, *info;  /* of the fast path: `topics[topic]` has to be `info` */
    uint8_t *at;
    int64_t room, written, base_time, latest;
    long long count, size, limit, noted, grant;
    int is_open, is_lane, is_dropped;
} writer_t;

/* The state of the module: the types that a new writer needs. */
typedef struct { PyTypeObject *meter, *place, *writer; } types_t;

static PyObject *new_writer(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    const types_t *types = PyType_GetModuleState(type);
    long long limit;
    PyObject *meter, *outcome, *kind, *lock; /* the plain writer needs the lock */
    if (!PyArg_ParseTuple(arguments, "LO!OO!O", &limit, types->meter, &meter, &outcome, &PyType_Type, &kind, &lock))
        return NULL;
    if (!PyType_IsSubtype((PyTypeObject *)kind, types->place)) {
        PyErr_SetString(PyExc_TypeError, "deliveries are places");
        return NULL;
    }
    writer_t *self = (writer_t *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (self == NULL) return NULL;
    Py_INCREF(self->meter = meter);
    Py_INCREF(self->outcome = outcome);
    Py_INCREF(self->kind = kind);
    self->limit = limit;
    self->is_open = 1;
    return (PyObject *)self;
}

static int visit_writer(PyObject *object, visitproc visit, void *arg) {
    writer_t *self = (writer_t *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->meter);
    Py_VISIT(self->outcome);
    Py_VISIT(self->kind);
    Py_VISIT(self->topics);
    Py_VISIT(self->topic);
    Py_VISIT(self->info);
    return 0;
}

static int clear_writer(PyObject *object) {
    writer_t *self = (writer_t *)object;
    self->is_open = self->is_lane = 0;
    Py_CLEAR(self->meter);
    Py_CLEAR(self->outcome);
    Py_CLEAR(self->kind);
    Py_CLEAR(self->topics);
    Py_CLEAR(self->topic);
    Py_CLEAR(self->info);
    return 0;
}

static void free_writer(PyObject *object) {
    PyObject_GC_UnTrack(object);
    clear_writer(object);
    PyMem_Free(((writer_t *)object)->at);
    free_object(object);
}

/* Append an encoded record; -1 with an error set if there is no memory. */
static int append_row(writer_t *self, const row_t *row, int64_t timestamp, int64_t size_max) {
    const int64_t more = number_size(row->size) + row->size;
    if (more > self->room - self->written) {
        const int64_t doubled = max_of(2 * self->room, FIRST_ROOM), room = max_of(doubled, self->written + more);
        uint8_t *block = PyMem_Realloc(self->at, (size_t)room);
        if (block == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        self->at = block;
        self->room = room;
    }
    self->written = put_row(self->at + self->written, row) - self->at;
    self->latest = self->count ? max_of(self->latest, timestamp) : timestamp;
    self->count++;
    self->size += size_max;
    ((meter_t *)self->meter)->used += size_max;
    return 0;
}

/* Add a record with key, value, headers, timestamp and size; return its index, -1 if it does not fit into the
 * batch, -2 with an error set. */
static int64_t add_row(writer_t *self, PyObject *const *given, Py_ssize_t count) {
    if (count != 5) {
        PyErr_Format(PyExc_TypeError, "a record takes 5 arguments, not %zd", count);
        return -2;
    }
    const int64_t timestamp = PyLong_AsLongLong(given[3]);
    if (timestamp == -1 && PyErr_Occurred()) return -2;
    const int64_t size = PyLong_AsLongLong(given[4]);
    if (size == -1 && PyErr_Occurred()) return -2;
    if (!self->is_open || (self->count && self->size + size > self->limit)) return -1;
    const int64_t base_time = self->count ? self->base_time : timestamp;
    int64_t time_delta;
    if (__builtin_sub_overflow(timestamp, base_time, &time_delta)) return -1;
    row_t row;
    if (take_texts(given[0], given[1], given[2], time_delta, self->count, &row)) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "a record is key, value, headers and a time, as `send` leaves them");
        return -2;
    }
    self->base_time = base_time;
    return append_row(self, &row, timestamp, size) ? -2 : self->count - 1;
}

/* add(key, value, headers, timestamp, size): the index of the record, or -1 if it does not fit into the batch. `size`
 * is an upper bound of its bytes, which the meter counts. The caller has checked the types. */
static PyObject *writer_add(PyObject *object, PyObject *const *given, Py_ssize_t count) {
    const int64_t index = add_row((writer_t *)object, given, count);
    return index < -1 ? NULL : PyLong_FromLongLong(index);
}

/* Return a new, empty delivery. Its allocation may run the garbage collector, and by it any Python code. */
static place_t *new_delivery(writer_t *self) {
    PyTypeObject *kind = (PyTypeObject *)self->kind;
    return (place_t *)((allocfunc)PyType_GetSlot(kind, Py_tp_alloc))(kind, 0);
}

static PyObject *placed(writer_t *self, place_t *place, int64_t timestamp) {
    Py_INCREF(place->outcome = self->outcome);
    place->index = self->count - 1;
    place->timestamp = timestamp;
    return (PyObject *)place;
}

static PyObject *not_placed(place_t *place) {
    Py_DECREF(place);
    if (PyErr_Occurred()) return NULL;
    Py_RETURN_NONE;
}

/* put(key, value, headers, timestamp, size): the record's delivery, or None if it does not fit. */
static PyObject *writer_put(PyObject *object, PyObject *const *given, Py_ssize_t count) {
    writer_t *self = (writer_t *)object;
    if (!self->is_open) Py_RETURN_NONE;
    place_t *place = new_delivery(self);
    if (place == NULL) return NULL;
    if (add_row(self, given, count) < 0) return not_placed(place);
    return placed(self, place, PyLong_AsLongLong(given[3]));
}

/* note(value, timestamp[, headers, size]): the delivery of a record without a key; None if it does not fit, memory
 * is full, or the topic's metadata have changed since `open_lane`. */
static PyObject *writer_note(PyObject *object, PyObject *const *given, Py_ssize_t count) {
    writer_t *self = (writer_t *)object;
    if (count != 2 && count != 4) {
        PyErr_Format(PyExc_TypeError, "note takes 2 or 4 arguments, not %zd", count);
        return NULL;
    }
    text_t value;
    if (!self->is_lane || bytes_text(given[0], &value)) Py_RETURN_NONE;
    const int64_t timestamp = PyLong_AsLongLong(given[1]);
    if (timestamp == -1 && PyErr_Occurred()) return NULL;
    const int64_t size = count == 4 ? PyLong_AsLongLong(given[3]) : RECORD_OVERHEAD + max_of(value.size, 0);
    if (size == -1 && PyErr_Occurred()) return NULL;
    place_t *place = new_delivery(self);
    if (place == NULL) return NULL;
    const meter_t *meter = (meter_t *)self->meter;
    if (!self->is_lane || self->noted >= self->grant || meter->used >= meter->limit || self->size + size > self->limit
        || PyDict_GetItemWithError(self->topics, self->topic) != self->info)
        return not_placed(place);
    if (count == 4) {
        PyObject *whole[] = {Py_None, given[0], given[2], given[1], given[3]};
        if (add_row(self, whole, 5) < 0) return not_placed(place);
    } else {
        const int64_t base_time = self->count ? self->base_time : timestamp;
        int64_t time_delta;
        if (__builtin_sub_overflow(timestamp, base_time, &time_delta)) return not_placed(place);
        row_t row = {{NULL, -1}, value, NULL, 0, time_delta, self->count, 0};
        row.size =
            3 + number_size(time_delta) + number_size(self->count) + number_size(value.size) + max_of(value.size, 0);
        self->base_time = base_time;
        if (append_row(self, &row, timestamp, size)) return not_placed(place);
    }
    self->noted += size;
    return placed(self, place, timestamp);
}

/* open_lane(topics, topic, info, grant): let `note` add `grant` bytes of records while `topics[topic]` is `info`. */
static PyObject *writer_open_lane(PyObject *object, PyObject *arguments) {
    writer_t *self = (writer_t *)object;
    PyObject *topics, *topic, *info;
    long long grant;
    if (!PyArg_ParseTuple(arguments, "O!UOL", &PyDict_Type, &topics, &topic, &info, &grant)) return NULL;
    PyObject *former[] = {self->topics, self->topic, self->info};
    Py_INCREF(self->topics = topics);
    Py_INCREF(self->topic = topic);
    Py_INCREF(self->info = info);
    self->noted = 0;
    self->grant = grant;
    self->is_lane = self->is_open && PyUnicode_CheckExact(topic);
    for (int index = 0; index < 3; index++) Py_XDECREF(former[index]);
    Py_RETURN_NONE;
}

/* close_lane(): the bytes that `note` has added since `open_lane`; it adds no more. */
static PyObject *writer_close_lane(PyObject *object, PyObject *nothing) {
    writer_t *self = (writer_t *)object;
    const long long noted = self->noted;
    self->is_lane = 0;
    self->noted = 0;
    return PyLong_FromLongLong(noted);
}

static PyObject *writer_close(PyObject *object, PyObject *nothing) {
    ((writer_t *)object)->is_open = ((writer_t *)object)->is_lane = 0;
    Py_RETURN_NONE;
}

/* drop(): close, and free the memory of the records. */
static PyObject *writer_drop(PyObject *object, PyObject *nothing) {
    writer_t *self = (writer_t *)object;
    self->is_open = self->is_lane = 0;
    self->is_dropped = 1;
    PyMem_Free(self->at);
    self->at = NULL;
    self->room = self->written = 0;
    Py_RETURN_NONE;
}

/* body(room): the records as a bytearray, behind `room` zeros. */
static PyObject *writer_body(PyObject *object, PyObject *before) {
    const writer_t *self = (writer_t *)object;
    if (self->is_dropped) {
        PyErr_SetString(PyExc_ValueError, "the records have been dropped");
        return NULL;
    }
    const long long room = PyLong_AsLongLong(before);
    if (room == -1 && PyErr_Occurred()) return NULL;
    if (room < 0 || room > FIRST_ROOM) {
        PyErr_SetString(PyExc_ValueError, "room is for a header");
        return NULL;
    }
    PyObject *body = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)(room + self->written));
    if (body == NULL) return NULL;
    char *to = PyByteArray_AsString(body);
    memset(to, 0, (size_t)room);
    if (self->written) memcpy(to + room, self->at, (size_t)self->written);
    return body;
}

static PyMethodDef WRITER_METHODS[] = {
    {"add", (PyCFunction)(void (*)(void))writer_add, METH_FASTCALL, NULL},
    {"put", (PyCFunction)(void (*)(void))writer_put, METH_FASTCALL, NULL},
    {"note", (PyCFunction)(void (*)(void))writer_note, METH_FASTCALL, NULL},
    {"open_lane", writer_open_lane, METH_VARARGS, NULL},
    {"close_lane", writer_close_lane, METH_NOARGS, NULL},
    {"close", writer_close, METH_NOARGS, NULL},
    {"drop", writer_drop, METH_NOARGS, NULL},
    {"body", writer_body, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
static PyMemberDef WRITER_MEMBERS[] = {
    {"count", T_LONGLONG, offsetof(writer_t, count), READONLY, NULL},
    {"size", T_LONGLONG, offsetof(writer_t, size), READONLY, NULL},
    {"limit", T_LONGLONG, offsetof(writer_t, limit), 0, NULL},
    {"base_timestamp", T_LONGLONG, offsetof(writer_t, base_time), READONLY, NULL},
    {"max_timestamp", T_LONGLONG, offsetof(writer_t, latest), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot WRITER_SLOTS[] = {
    {Py_tp_new, new_writer},
    {Py_tp_dealloc, free_writer},
    {Py_tp_traverse, visit_writer},
    {Py_tp_clear, clear_writer},
    {Py_tp_methods, WRITER_METHODS},
    {Py_tp_members, WRITER_MEMBERS},
    {0, NULL},
};
static PyType_Spec WRITER_SPEC = {
    "penstock._kernels.RowWriter", sizeof(writer_t), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, WRITER_SLOTS
};

/* --- KeyLane --- */

typedef struct {
    PyObject_HEAD
    PyObject *writers, *topics, *topic, *info, *meter; /* `topics[topic]` has to be `info` */
    PyTypeObject *writer_type;
} key_lane_t;

static PyObject *new_key_lane(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    const types_t *types = PyType_GetModuleState(type);
    PyObject *writers, *topics, *topic, *info, *meter;
    if (!PyArg_ParseTuple(
            arguments, "O!O!UOO!", &PyList_Type, &writers, &PyDict_Type, &topics, &topic, &info, types->meter, &meter
        ))
        return NULL;
    key_lane_t *self = (key_lane_t *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (self == NULL) return NULL;
    Py_INCREF(self->writers = writers);
    Py_INCREF(self->topics = topics);
    Py_INCREF(self->topic = topic);
    Py_INCREF(self->info = info);
    Py_INCREF(self->meter = meter);
    self->writer_type = types->writer;
    Py_INCREF((PyObject *)self->writer_type);
    return (PyObject *)self;
}

static int visit_key_lane(PyObject *object, visitproc visit, void *arg) {
    key_lane_t *self = (key_lane_t *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->writers);
    Py_VISIT(self->topics);
    Py_VISIT(self->topic);
    Py_VISIT(self->info);
    Py_VISIT(self->meter);
    Py_VISIT(self->writer_type);
    return 0;
}

static int clear_key_lane(PyObject *object) {
    key_lane_t *self = (key_lane_t *)object;
    Py_CLEAR(self->writers);
    Py_CLEAR(self->topics);
    Py_CLEAR(self->topic);
    Py_CLEAR(self->info);
    Py_CLEAR(self->meter);
    Py_CLEAR(self->writer_type);
    return 0;
}

static void free_key_lane(PyObject *object) {
    PyObject_GC_UnTrack(object);
    clear_key_lane(object);
    free_object(object);
}

/* The writer of the partition of a key's hash, borrowed; NULL if it cannot take a record of `size` bytes. */
static writer_t *writer_for(const key_lane_t *self, int32_t hash, int64_t size) {
    if (self->writers == NULL) return NULL;
    const meter_t *meter = (meter_t *)self->meter;
    if (meter->used >= meter->limit || PyDict_GetItemWithError(self->topics, self->topic) != self->info) return NULL;
    const Py_ssize_t partitions = PyList_Size(self->writers);
    if (partitions < 1) return NULL;
    PyObject *found = PyList_GetItem(self->writers, (hash & 0x7FFFFFFF) % partitions);
    if (found == NULL || Py_TYPE(found) != self->writer_type) return NULL;
    writer_t *writer = (writer_t *)found;
    return !writer->is_open || (writer->count && writer->size + size > writer->limit) ? NULL : writer;
}

/* note(key, value, timestamp): the delivery of a record in the partition of its key; None if the batch of that partition
 * has no room, memory is full, or the topic's metadata have changed since the lane was made. */
static PyObject *key_lane_note(PyObject *object, PyObject *const *given, Py_ssize_t count) {
    const key_lane_t *self = (key_lane_t *)object;
    if (count != 3) {
        PyErr_Format(PyExc_TypeError, "note takes 3 arguments, not %zd", count);
        return NULL;
    }
    row_t row = {{NULL, -1}, {NULL, -1}, NULL, 0, 0, 0, 0};
    if (bytes_text(given[0], &row.key) || row.key.at == NULL || bytes_text(given[1], &row.value)) Py_RETURN_NONE;
    const int64_t timestamp = PyLong_AsLongLong(given[2]);
    if (timestamp == -1 && PyErr_Occurred()) return NULL;
    const int64_t bytes = row.key.size + max_of(row.value.size, 0), size = RECORD_OVERHEAD + bytes;
    const int32_t hash = murmur2_of((const uint8_t *)row.key.at, row.key.size);
    writer_t *writer = size > INT32_MAX ? NULL : writer_for(self, hash, size);
    place_t *place = NULL;
    if (writer != NULL && (place = new_delivery(writer)) == NULL) return NULL;
    if (place == NULL) {
        if (PyErr_Occurred()) return NULL;
        Py_RETURN_NONE;
    }
    writer = writer_for(self, hash, size); /* Python may have run since */
    if (writer == NULL) return not_placed(place);
    const int64_t base_time = writer->count ? writer->base_time : timestamp;
    if (__builtin_sub_overflow(timestamp, base_time, &row.time_delta)) return not_placed(place);
    row.offset_delta = writer->count;
    row.size = 2 + number_size(row.time_delta) + number_size(row.offset_delta) + number_size(row.key.size)
        + number_size(row.value.size) + bytes;
    writer->base_time = base_time;
    if (append_row(writer, &row, timestamp, size)) return not_placed(place);
    return placed(writer, place, timestamp);
}

static PyMethodDef KEY_LANE_METHODS[] = {
    {"note", (PyCFunction)(void (*)(void))key_lane_note, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot KEY_LANE_SLOTS[] = {
    {Py_tp_new, new_key_lane},
    {Py_tp_dealloc, free_key_lane},
    {Py_tp_traverse, visit_key_lane},
    {Py_tp_clear, clear_key_lane},
    {Py_tp_methods, KEY_LANE_METHODS},
    {0, NULL},
};
static PyType_Spec KEY_LANE_SPEC = {
    "penstock._kernels.KeyLane", sizeof(key_lane_t), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, KEY_LANE_SLOTS
};

static PyTypeObject *added_type(PyObject *module, const char *name, PyType_Spec *spec) {
    PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);
    if (type != NULL && PyModule_AddObjectRef(module, name, type)) Py_CLEAR(type);
    return (PyTypeObject *)type;
}

static int add_types(PyObject *module) {
    types_t *types = PyModule_GetState(module);
    if ((types->meter = added_type(module, "Meter", &METER_SPEC)) == NULL) return -1;
    if ((types->place = added_type(module, "Place", &PLACE_SPEC)) == NULL) return -1;
    if ((types->writer = added_type(module, "RowWriter", &WRITER_SPEC)) == NULL) return -1;
    PyObject *lane = (PyObject *)added_type(module, "KeyLane", &KEY_LANE_SPEC);
    Py_XDECREF(lane);
    return lane == NULL ? -1 : 0;
}

static int visit_types(PyObject *module, visitproc visit, void *arg) {
    const types_t *types = PyModule_GetState(module);
    Py_VISIT(types->meter);
    Py_VISIT(types->place);
    Py_VISIT(types->writer);
    return 0;
}

static int clear_types(PyObject *module) {
    types_t *types = PyModule_GetState(module);
    Py_CLEAR(types->meter);
    Py_CLEAR(types->place);
    Py_CLEAR(types->writer);
    return 0;
}
#else
typedef struct { int none; } types_t;
static int add_types(PyObject *module) { return 0; }
static int visit_types(PyObject *module, visitproc visit, void *arg) { return 0; }
static int clear_types(PyObject *module) { return 0; }
#endif
