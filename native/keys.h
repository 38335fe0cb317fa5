/* Hashes of one key, which choose the partition of a single record; `penstock.client.produce.partitioner` has them in
 * Python. A kernel hashes whole columns of keys. */

static int32_t murmur2_of(const uint8_t *at, int64_t size) {
    const uint32_t factor = 0x5BD1E995u;
    uint32_t hash = 0x9747B28Cu ^ (uint32_t)size;
    for (; size >= 4; size -= 4, at += 4) {
        uint32_t word = (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
        word *= factor;
        word = (word ^ word >> 24) * factor;
        hash = hash * factor ^ word;
    }
    if (size > 0) {
        for (int64_t index = 0; index < size; index++) hash ^= (uint32_t)at[index] << 8 * index;
        hash *= factor;
    }
    hash = (hash ^ hash >> 13) * factor;
    return (int32_t)(hash ^ hash >> 15);
}

static PyObject *murmur2(PyObject *self, PyObject *key) {
    char *data;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(key, &data, &size)) return NULL;
    return PyLong_FromLong(murmur2_of((const uint8_t *)data, size));
}

static PyObject *fnv1a(PyObject *self, PyObject *key) {
    char *data;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(key, &data, &size)) return NULL;
    uint32_t hash = 0x811C9DC5u;
    for (Py_ssize_t index = 0; index < size; index++) hash = (hash ^ (uint8_t)data[index]) * 0x01000193u;
    return PyLong_FromLongLong(hash < 1u << 31 ? (int64_t)hash : (1LL << 32) - (int64_t)hash);
}
