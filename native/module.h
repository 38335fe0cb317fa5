/* The module `penstock._kernels`: the table METHODS, the types of `row_writer.h`, and the digest of the sources from
 * which it was translated. */
static int fill(PyObject *module) {
    return add_types(module) ? -1 : PyModule_AddStringConstant(module, "DIGEST", DIGEST);
}

static PyModuleDef_Slot SLOTS[] = {
    {Py_mod_exec, (void *)fill},
#if !defined(Py_LIMITED_API) && PY_VERSION_HEX >= 0x030D0000
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_kernels",
    .m_doc = "The kernels of Penstock, compiled.",
    .m_size = sizeof(types_t),
    .m_methods = METHODS,
    .m_slots = SLOTS,
    .m_traverse = visit_types,
    .m_clear = clear_types,
};

PyMODINIT_FUNC PyInit__kernels(void) { return PyModuleDef_Init(&MODULE); }
