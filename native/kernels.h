/* The array types of kernels, and the primitives to which `tools/generate_kernels.py` translates calls.
 *
 * If compiled with -DCHECK_BOUNDS, every access to an array is checked, and an access outside of it ends the process
 * with the line of the kernel. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { uint8_t *at; int64_t size[3]; } bytes_t;
typedef struct { int32_t *at; int64_t size[3]; } int32s_t;
typedef struct { int64_t *at; int64_t size[3]; } ints_t;
typedef struct { bytes_t *at; int64_t count; } bytes_list_t;
typedef struct { int32s_t *at; int64_t count; } int32s_list_t;
typedef struct { int64_t part[2]; } tuple2_t;
typedef struct { int64_t part[3]; } tuple3_t;
typedef struct { int64_t part[4]; } tuple4_t;

#define COUNT(array) ((array).size[0] * (array).size[1] * (array).size[2])

#ifdef CHECK_BOUNDS
static inline int64_t checked(int64_t index, int64_t count, int line) {
    if (index < 0 || index >= count) {
        fprintf(stderr, "kernels.c:%d: index %lld of %lld\n", line, (long long)index, (long long)count);
        abort();
    }
    return index;
}
#define CHECKED(index, count) checked((index), (count), __LINE__)
#define CHECK_SPAN(array, start, count) \
    do { \
        if ((count) > 0) { \
            checked((start), COUNT(array), __LINE__); \
            checked((start) + (count) - 1, COUNT(array), __LINE__); \
        } \
    } while (0)
#else
#define CHECKED(index, count) (index)
#define CHECK_SPAN(array, start, count) ((void)0)
#endif

static inline bytes_t flat_bytes_t(bytes_t array) { return (bytes_t){array.at, {COUNT(array), 1, 1}}; }
static inline int32s_t flat_int32s_t(int32s_t array) { return (int32s_t){array.at, {COUNT(array), 1, 1}}; }
static inline ints_t flat_ints_t(ints_t array) { return (ints_t){array.at, {COUNT(array), 1, 1}}; }

static inline int64_t min_of(int64_t left, int64_t right) { return left < right ? left : right; }
static inline int64_t max_of(int64_t left, int64_t right) { return left > right ? left : right; }

static inline int64_t floor_quotient(int64_t number, int64_t by) {
    const int64_t quotient = number / by;
    return quotient - (number % by != 0 && (number < 0) != (by < 0));
}

static inline int64_t floor_remainder(int64_t number, int64_t by) {
    const int64_t rest = number % by;
    return rest != 0 && (rest < 0) != (by < 0) ? rest + by : rest;
}

/* Return eight bytes as one little-endian number. */
static inline int64_t load_word(bytes_t data, int64_t position) {
    uint64_t word;
    CHECK_SPAN(data, position, 8);
    memcpy(&word, data.at + position, 8);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return (int64_t)word;
}

static inline int64_t first_marked(int64_t marks) { return __builtin_ctzll((uint64_t)marks) >> 3; }

/* Return the upper 64 bits of the product of two unsigned numbers. */
static inline int64_t high_product(int64_t one, int64_t other) {
#ifdef __SIZEOF_INT128__
    return (int64_t)(uint64_t)(((unsigned __int128)(uint64_t)one * (uint64_t)other) >> 64);
#else
    const uint64_t left = (uint64_t)one, right = (uint64_t)other, mask = 0xFFFFFFFFu;
    const uint64_t middle = (left >> 32) * (right & mask) + (((left & mask) * (right & mask)) >> 32);
    const uint64_t carry = (left & mask) * (right >> 32) + (middle & mask);
    return (int64_t)((left >> 32) * (right >> 32) + (middle >> 32) + (carry >> 32));
#endif
}

static inline int64_t leading_zeros(int64_t number) { return __builtin_clzll((uint64_t)number); }

/* Return the bits of a whole number as a floating-point number of `size` bytes. */
static inline int64_t double_bits(int64_t number, int64_t size) {
    if (size == 8) {
        const double wide = (double)number;
        int64_t bits;
        memcpy(&bits, &wide, 8);
        return bits;
    }
    const float narrow = (float)number;
    uint32_t bits;
    memcpy(&bits, &narrow, 4);
    return (int64_t)bits;
}

/* Return the bits of the double that equals a float, which is given as bits. */
static inline int64_t widened(int64_t bits) {
    const uint32_t narrow_bits = (uint32_t)bits;
    float narrow;
    memcpy(&narrow, &narrow_bits, 4);
    const double wide = (double)narrow;
    int64_t wide_bits;
    memcpy(&wide_bits, &wide, 8);
    return wide_bits;
}

static inline void copy_bytes(bytes_t target, int64_t to, bytes_t source, int64_t start, int64_t size) {
    if (size > 0) {
        CHECK_SPAN(target, to, size);
        CHECK_SPAN(source, start, size);
        memcpy(target.at + to, source.at + start, (size_t)size);
    }
}

static inline void copy_word(bytes_t target, int64_t to, bytes_t source, int64_t start) {
    uint64_t word;
    CHECK_SPAN(target, to, 8);
    CHECK_SPAN(source, start, 8);
    memcpy(&word, source.at + start, 8);
    memcpy(target.at + to, &word, 8);
}

static inline void copy_sixteen(bytes_t target, int64_t to, bytes_t source, int64_t start) {
    uint64_t words[2];
    CHECK_SPAN(target, to, 16);
    CHECK_SPAN(source, start, 16);
    memcpy(words, source.at + start, 16);
    memcpy(target.at + to, words, 16);
}

/* --- from Python and back --- */

#define ARGUMENTS_MAX 32

/* The present call: its arguments, and the buffers that are open until it ends. */
typedef struct {
    PyObject *const *given;
    int failed;
    int opened;
    Py_buffer views[ARGUMENTS_MAX];
    int lists;
    void *blocks[4];
    Py_buffer *list_views[4];
    Py_ssize_t list_sizes[4];
} call_t;

static inline void begin_call(call_t *call, const char *name, PyObject *const *given, Py_ssize_t count, int wanted) {
    call->given = given;
    call->opened = call->lists = call->failed = 0;
    if (count != wanted) {
        PyErr_Format(PyExc_TypeError, "%s takes %d arguments, not %zd", name, wanted, count);
        call->failed = 1;
    }
}

static int end_call(call_t *call) {
    for (int index = 0; index < call->opened; index++) PyBuffer_Release(&call->views[index]);
    for (int list = 0; list < call->lists; list++) {
        for (Py_ssize_t index = 0; index < call->list_sizes[list]; index++)
            PyBuffer_Release(&call->list_views[list][index]);
        PyMem_Free(call->list_views[list]);
        PyMem_Free(call->blocks[list]);
    }
    return call->failed;
}

/* Open the buffer of an array whose elements have `width` bytes each. */
static int open_array(PyObject *object, Py_buffer *view, int width, int writes, int64_t size[3]) {
    const int flags = PyBUF_C_CONTIGUOUS | (writes ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(object, view, flags) != 0) return -1;
    if (view->itemsize != width || view->ndim > 3) {
        PyErr_Format(
            PyExc_TypeError,
            "an array of %d bytes an element is needed, of at most 3 dimensions, not %zd bytes and %d",
            width,
            view->itemsize,
            view->ndim
        );
        PyBuffer_Release(view);
        return -1;
    }
    size[0] = size[1] = size[2] = 1;
    if (view->ndim == 0 || view->shape == NULL) size[0] = view->len / width;
    else for (int axis = 0; axis < view->ndim; axis++) size[axis] = view->shape[axis];
    return 0;
}

#define TAKE_ARRAY(kind, element, width) \
    static inline kind take_##kind(call_t *call, int index, int writes) { \
        kind array = {NULL, {0, 1, 1}}; \
        if (call->failed) return array; \
        Py_buffer *view = &call->views[call->opened]; \
        if (open_array(call->given[index], view, width, writes, array.size) != 0) { \
            call->failed = 1; \
        } else { \
            array.at = (element *)view->buf; \
            call->opened++; \
        } \
        return array; \
    }

TAKE_ARRAY(bytes_t, uint8_t, 1)
TAKE_ARRAY(int32s_t, int32_t, 4)
TAKE_ARRAY(ints_t, int64_t, 8)

#define TAKE_LIST(kind, array_kind, element, width) \
    static kind take_##kind(call_t *call, int index) { \
        kind list = {NULL, 0}; \
        if (call->failed) return list; \
        PyObject *given = call->given[index]; \
        const Py_ssize_t count = PySequence_Size(given); \
        array_kind *arrays = count < 0 ? NULL : PyMem_Calloc((size_t)count + 1, sizeof(array_kind)); \
        Py_buffer *views = count < 0 ? NULL : PyMem_Calloc((size_t)count + 1, sizeof(Py_buffer)); \
        if (arrays == NULL || views == NULL) { \
            if (!PyErr_Occurred()) PyErr_NoMemory(); \
            PyMem_Free(arrays); \
            PyMem_Free(views); \
            call->failed = 1; \
            return list; \
        } \
        const int number = call->lists++; \
        call->blocks[number] = arrays; \
        call->list_views[number] = views; \
        call->list_sizes[number] = 0; \
        for (Py_ssize_t each = 0; each < count && !call->failed; each++) { \
            PyObject *item = PySequence_GetItem(given, each); \
            if (item == NULL || open_array(item, &views[each], width, 0, arrays[each].size) != 0) call->failed = 1; \
            else { \
                arrays[each].at = (element *)views[each].buf; \
                call->list_sizes[number]++; \
            } \
            Py_XDECREF(item); \
        } \
        list.at = arrays; \
        list.count = count; \
        return list; \
    }

TAKE_LIST(bytes_list_t, bytes_t, uint8_t, 1)
TAKE_LIST(int32s_list_t, int32s_t, int32_t, 4)

static inline int64_t take_int64_t(call_t *call, int index) {
    if (call->failed) return 0;
    PyObject *number = PyNumber_Index(call->given[index]);
    const int64_t value = number == NULL ? -1 : PyLong_AsLongLong(number);
    Py_XDECREF(number);
    if (value == -1 && PyErr_Occurred()) call->failed = 1;
    return value;
}

static inline bool take_bool(call_t *call, int index) {
    if (call->failed) return false;
    const int value = PyObject_IsTrue(call->given[index]);
    if (value < 0) call->failed = 1;
    return value > 0;
}

static PyObject *tuple_of(const int64_t *part, int count) {
    PyObject *tuple = PyTuple_New(count);
    for (int index = 0; tuple != NULL && index < count; index++) {
        PyObject *number = PyLong_FromLongLong(part[index]);
        if (number == NULL || PyTuple_SetItem(tuple, index, number) != 0) {
            Py_DECREF(tuple);
            return NULL;
        }
    }
    return tuple;
}
