/* The kernels of Penstock in C, translated from their Python. Generated: do not edit. */

#include "kernels.h"

static const uint8_t table_0_data[] = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 56, 0,
    8, 56, 8, 56, 56, 48, 48, 56, 120, 48, 120, 120, 0, 126, 126, 126, 126, 126, 126, 126, 126, 126, 126, 32,
    48, 0, 48, 0, 0, 32, 125, 125, 125, 125, 125, 125, 121, 121, 121, 121, 121, 121, 121, 121, 121, 121, 121,
    121, 121, 121, 121, 121, 121, 121, 121, 121, 0, 0, 0, 8, 56, 8, 125, 125, 125, 125, 125, 125, 121, 121,
    121, 121, 121, 121, 121, 121, 121, 121, 121, 121, 121, 121, 121, 121, 121, 121, 121, 121, 8, 8, 8, 56, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
};
static const bytes_t table_0 = {(uint8_t *)table_0_data, {256, 1, 1}};
static const uint8_t table_1_data[] = {
    106, 115, 111, 110
};
static const bytes_t table_1 = {(uint8_t *)table_1_data, {4, 1, 1}};
static const int32_t table_2_data[] = {
    0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334
};
static const int32s_t table_2 = {(int32_t *)table_2_data, {12, 1, 1}};
static const uint8_t table_3_data[] = {
    105, 100, 115, 111, 117, 114, 99, 101, 115, 112, 101, 99, 118, 101, 114, 115, 105, 111, 110, 116, 121,
    112, 101, 116, 105, 109, 101, 115, 117, 98, 106, 101, 99, 116, 100, 97, 116, 97, 115, 99, 104, 101, 109,
    97, 100, 97, 116, 97, 99, 111, 110, 116, 101, 110, 116, 116, 121, 112, 101, 100, 97, 116, 97, 100, 97,
    116, 97, 95, 98, 97, 115, 101, 54, 52
};
static const bytes_t table_3 = {(uint8_t *)table_3_data, {74, 1, 1}};
static const int32_t table_4_data[] = {
    0, 2, 8, 19, 23, 27, 34, 44, 59, 63, 74
};
static const int32s_t table_4 = {(int32_t *)table_4_data, {11, 1, 1}};
static const int32_t table_5_data[] = {
    0, 1, 2, 3, 5, 4, 7, -2, -2, -2
};
static const int32s_t table_5 = {(int32_t *)table_5_data, {10, 1, 1}};
static const uint8_t table_6_data[] = {
    97, 112, 112, 108, 105, 99, 97, 116, 105, 111, 110, 47, 99, 108, 111, 117, 100, 101, 118, 101, 110, 116,
    115, 43, 106, 115, 111, 110
};
static const bytes_t table_6 = {(uint8_t *)table_6_data, {28, 1, 1}};
static const uint8_t table_7_data[] = {
    99, 111, 110, 116, 101, 110, 116, 45, 116, 121, 112, 101
};
static const bytes_t table_7 = {(uint8_t *)table_7_data, {12, 1, 1}};
static const uint8_t table_8_data[] = {
    116, 114, 117, 101, 102, 97, 108, 115, 101, 110, 117, 108, 108
};
static const bytes_t table_8 = {(uint8_t *)table_8_data, {13, 1, 1}};
static const uint8_t table_9_data[] = {
    99, 104, 97, 114, 115, 101, 116, 61, 117, 116, 102, 45, 56
};
static const bytes_t table_9 = {(uint8_t *)table_9_data, {13, 1, 1}};
static const uint8_t table_10_data[] = {
    98, 116, 110, 0, 102, 114
};
static const bytes_t table_10 = {(uint8_t *)table_10_data, {6, 1, 1}};
static const uint8_t table_11_data[] = {
    48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 97, 98, 99, 100, 101, 102
};
static const bytes_t table_11 = {(uint8_t *)table_11_data, {16, 1, 1}};
static const uint8_t table_12_data[] = {
    65, 66, 67, 68, 69, 70, 71, 72, 73, 74, 75, 76, 77, 78, 79, 80, 81, 82, 83, 84, 85, 86, 87, 88, 89, 90,
    97, 98, 99, 100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112, 113, 114, 115, 116, 117, 118,
    119, 120, 121, 122, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 43, 47
};
static const bytes_t table_12 = {(uint8_t *)table_12_data, {64, 1, 1}};
static const uint8_t table_13_data[] = {
    44, 34, 100, 97, 116, 97, 95, 98, 97, 115, 101, 54, 52, 34, 58, 34
};
static const bytes_t table_13 = {(uint8_t *)table_13_data, {16, 1, 1}};
static const uint8_t table_14_data[] = {
    44, 34, 100, 97, 116, 97, 34, 58
};
static const bytes_t table_14 = {(uint8_t *)table_14_data, {8, 1, 1}};
static const uint8_t table_15_data[] = {
    99, 101, 95
};
static const bytes_t table_15 = {(uint8_t *)table_15_data, {3, 1, 1}};
static const uint8_t table_16_data[] = {
    2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 0, 0, 1,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3,
    3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3,
    3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3,
    3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3,
    3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 98, 116, 110, 0, 102, 114, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 34, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 92, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
};
static const bytes_t table_16 = {(uint8_t *)table_16_data, {512, 1, 1}};
static const uint8_t table_17_data[] = {
    48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 97, 98, 99, 100, 101, 102
};
static const bytes_t table_17 = {(uint8_t *)table_17_data, {16, 1, 1}};
static const uint8_t table_18_data[] = {
    65, 66, 67, 68, 69, 70, 71, 72, 73, 74, 75, 76, 77, 78, 79, 80, 81, 82, 83, 84, 85, 86, 87, 88, 89, 90,
    97, 98, 99, 100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112, 113, 114, 115, 116, 117, 118,
    119, 120, 121, 122, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 43, 47
};
static const bytes_t table_18 = {(uint8_t *)table_18_data, {64, 1, 1}};
static const uint8_t table_19_data[] = {
    110, 117, 108, 108
};
static const bytes_t table_19 = {(uint8_t *)table_19_data, {4, 1, 1}};
static const uint8_t table_20_data[] = {
    44, 34, 104, 101, 97, 100, 101, 114, 115, 34, 58, 91
};
static const bytes_t table_20 = {(uint8_t *)table_20_data, {12, 1, 1}};
static const uint8_t table_21_data[] = {
    93, 44, 34, 104, 101, 97, 100, 101, 114, 115, 95, 98, 97, 115, 101, 54, 52, 34, 58, 91
};
static const bytes_t table_21 = {(uint8_t *)table_21_data, {20, 1, 1}};
static const uint8_t table_22_data[] = {
    44, 34, 107, 101, 121, 34, 58
};
static const bytes_t table_22 = {(uint8_t *)table_22_data, {7, 1, 1}};
static const uint8_t table_23_data[] = {
    44, 34, 107, 101, 121, 95, 98, 97, 115, 101, 54, 52, 34, 58
};
static const bytes_t table_23 = {(uint8_t *)table_23_data, {14, 1, 1}};
static const uint8_t table_24_data[] = {
    44, 34, 112, 97, 121, 108, 111, 97, 100, 34, 58
};
static const bytes_t table_24 = {(uint8_t *)table_24_data, {11, 1, 1}};
static const uint8_t table_25_data[] = {
    44, 34, 112, 97, 121, 108, 111, 97, 100, 95, 98, 97, 115, 101, 54, 52, 34, 58
};
static const bytes_t table_25 = {(uint8_t *)table_25_data, {18, 1, 1}};

/* client.produce.partitioner_columns._murmur2_partitions */
static inline void client_produce_partitioner_columns___murmur2_partitions(bytes_t data, int32s_t ends, bytes_t validity, int64_t first_bit, int64_t count, int32s_t partitions) {
    int64_t row = 0;
    int64_t bit = 0;
    int64_t position = 0;
    int64_t end = 0;
    int64_t h = 0;
    int64_t k = 0;
    int64_t shift = 0;
    for (int64_t t1 = 0, t2 = partitions.size[0]; t1 < t2; t1 += 1) {
        row = t1;
        if ((validity.size[0] != 0)) {
            bit = (row + first_bit);
            if (((((int64_t)validity.at[CHECKED((bit >> 3LL), COUNT(validity))] >> (bit & 7LL)) & 1LL) == 0LL)) {
                partitions.at[CHECKED(row, COUNT(partitions))] = (int32_t)((-1LL));
                continue;
            }
        }
        position = ((int64_t)ends.at[CHECKED(row, COUNT(ends))]);
        end = ((int64_t)ends.at[CHECKED((row + 1LL), COUNT(ends))]);
        h = (2538058380LL ^ (end - position));
        while (((end - position) >= 4LL)) {
            k = ((((int64_t)data.at[CHECKED(position, COUNT(data))] | ((int64_t)data.at[CHECKED((position + 1LL), COUNT(data))] << 8LL)) | ((int64_t)data.at[CHECKED((position + 2LL), COUNT(data))] << 16LL)) | ((int64_t)data.at[CHECKED((position + 3LL), COUNT(data))] << 24LL));
            k = ((k * 1540483477LL) & 4294967295LL);
            k = (((k ^ (k >> 24LL)) * 1540483477LL) & 4294967295LL);
            h = (((h * 1540483477LL) & 4294967295LL) ^ k);
            position = (position + 4LL);
        }
        if ((position < end)) {
            shift = 0LL;
            while ((position < end)) {
                h = (h ^ ((int64_t)data.at[CHECKED(position, COUNT(data))] << shift));
                shift = (shift + 8LL);
                position = (position + 1LL);
            }
            h = ((h * 1540483477LL) & 4294967295LL);
        }
        h = (((h ^ (h >> 13LL)) * 1540483477LL) & 4294967295LL);
        h = (h ^ (h >> 15LL));
        partitions.at[CHECKED(row, COUNT(partitions))] = (int32_t)(floor_remainder((h & 2147483647LL), count));
    }
}

/* cloudevents.columnar.kernels.texts.class_of */
static inline int64_t cloudevents_columnar_kernels_texts__class_of(int64_t byte) {
    return (int64_t)flat_bytes_t(table_0).at[CHECKED(byte, COUNT(flat_bytes_t(table_0)))];
}

/* cloudevents.columnar.kernels.texts.same_bytes */
static inline bool cloudevents_columnar_kernels_texts__same_bytes(bytes_t left, int64_t at, bytes_t right, int64_t start, int64_t size) {
    int64_t index = 0;
    index = 0LL;
    while (((index + 8LL) <= size)) {
        if ((load_word(left, (at + index)) != load_word(right, (start + index)))) {
            return 0LL;
        }
        index = (index + 8LL);
    }
    while (((index < size) && ((int64_t)left.at[CHECKED((at + index), COUNT(left))] == (int64_t)right.at[CHECKED((start + index), COUNT(right))]))) {
        index = (index + 1LL);
    }
    return (index == size);
}

/* cloudevents.columnar.kernels.texts.is_plain */
static inline bool cloudevents_columnar_kernels_texts__is_plain(int64_t word) {
    if (((word & (-9187201950435737472LL)) != 0)) {
        return 0LL;
    }
    return ((((word - 2314885530818453536LL) | ((word ^ 9187201950435737471LL) - 72340172838076673LL)) & (-9187201950435737472LL)) == 0LL);
}

/* cloudevents.columnar.kernels.texts.has_no */
static inline bool cloudevents_columnar_kernels_texts__has_no(int64_t byte_eight_times, int64_t plain_word) {
    return ((((plain_word ^ byte_eight_times) - 72340172838076673LL) & (-9187201950435737472LL)) == 0LL);
}

/* cloudevents.columnar.kernels.texts.skip_plain */
static inline int64_t cloudevents_columnar_kernels_texts__skip_plain(bytes_t data, int64_t at, int64_t end) {
    while ((((at + 8LL) <= end) && cloudevents_columnar_kernels_texts__is_plain(load_word(data, at)))) {
        at = (at + 8LL);
    }
    return at;
}

/* cloudevents.columnar.kernels.texts.character */
static inline tuple2_t cloudevents_columnar_kernels_texts__character(bytes_t data, int64_t at, int64_t end) {
    int64_t lead = 0;
    int64_t size = 0;
    int64_t code = 0;
    int64_t index = 0;
    int64_t byte = 0;
    int64_t too_long = 0;
    lead = (int64_t)data.at[CHECKED(at, COUNT(data))];
    if (((lead < 194LL) || (lead > 244LL))) {
        return (tuple2_t){{(-1LL), 0LL}};
    }
    size = ((lead < 224LL) ? 2LL : ((lead < 240LL) ? 3LL : 4LL));
    if (((at + size) > end)) {
        return (tuple2_t){{(-1LL), 0LL}};
    }
    code = (lead & (127LL >> size));
    for (int64_t t1 = 1LL, t2 = size; t1 < t2; t1 += 1) {
        index = t1;
        byte = (int64_t)data.at[CHECKED((at + index), COUNT(data))];
        if (((byte & 192LL) != 128LL)) {
            return (tuple2_t){{(-1LL), 0LL}};
        }
        code = ((code << 6LL) | (byte & 63LL));
    }
    too_long = (((size == 3LL) && (code < 2048LL)) || ((size == 4LL) && (code < 65536LL)));
    if (((too_long != 0) || ((55296LL <= code) && (code < 57344LL)) || (code > 1114111LL))) {
        return (tuple2_t){{(-1LL), 0LL}};
    }
    return (tuple2_t){{code, size}};
}

/* cloudevents.columnar.kernels.texts.is_string */
static inline bool cloudevents_columnar_kernels_texts__is_string(bytes_t data, int64_t at, int64_t end) {
    int64_t byte = 0;
    int64_t code = 0;
    int64_t size = 0;
    at = cloudevents_columnar_kernels_texts__skip_plain(data, at, end);
    while ((at < end)) {
        byte = (int64_t)data.at[CHECKED(at, COUNT(data))];
        if ((byte < 128LL)) {
            if (((byte < 32LL) || (byte == 127LL))) {
                return 0LL;
            }
            at = (at + 1LL);
        } else {
            const tuple2_t t1 = cloudevents_columnar_kernels_texts__character(data, at, end);
            code = t1.part[0];
            size = t1.part[1];
            if (((code < 160LL) || ((64976LL <= code) && (code <= 65007LL)) || ((code & 65534LL) == 65534LL))) {
                return 0LL;
            }
            at = (at + size);
        }
    }
    return 1LL;
}

/* cloudevents.columnar.kernels.texts.skip_class */
static inline int64_t cloudevents_columnar_kernels_texts__skip_class(bytes_t data, int64_t at, int64_t end, int64_t bit) {
    while (((at < end) && ((cloudevents_columnar_kernels_texts__class_of((int64_t)data.at[CHECKED(at, COUNT(data))]) & bit) != 0))) {
        at = (at + 1LL);
    }
    return at;
}

/* cloudevents.columnar.kernels.texts.skip_uri_part */
static inline int64_t cloudevents_columnar_kernels_texts__skip_uri_part(bytes_t data, int64_t at, int64_t end, int64_t bit) {
    int64_t byte = 0;
    while ((at < end)) {
        byte = (int64_t)data.at[CHECKED(at, COUNT(data))];
        if ((byte == 37LL)) {
            if (((at + 2LL) >= end)) {
                return (-1LL);
            }
            if ((!(((cloudevents_columnar_kernels_texts__class_of((int64_t)data.at[CHECKED((at + 1LL), COUNT(data))]) & 4LL) != 0) && ((cloudevents_columnar_kernels_texts__class_of((int64_t)data.at[CHECKED((at + 2LL), COUNT(data))]) & 4LL) != 0)))) {
                return (-1LL);
            }
            at = (at + 3LL);
        } else {
            if (((cloudevents_columnar_kernels_texts__class_of(byte) & bit) != 0)) {
                at = (at + 1LL);
            } else {
                break;
            }
        }
    }
    return at;
}

/* cloudevents.columnar.kernels.texts.skip_authority */
static inline int64_t cloudevents_columnar_kernels_texts__skip_authority(bytes_t data, int64_t at, int64_t end) {
    int64_t users = 0;
    int64_t mark = 0;
    int64_t port = 0;
    users = 0LL;
    while (1LL) {
        at = cloudevents_columnar_kernels_texts__skip_uri_part(data, at, end, 16LL);
        if ((at < 0LL)) {
            return (-1LL);
        }
        if (((at == end) || ((int64_t)data.at[CHECKED(at, COUNT(data))] == 47LL || (int64_t)data.at[CHECKED(at, COUNT(data))] == 63LL || (int64_t)data.at[CHECKED(at, COUNT(data))] == 35LL))) {
            return at;
        }
        mark = (int64_t)data.at[CHECKED(at, COUNT(data))];
        if (((mark == 64LL) && (users == 0LL))) {
            users = 1LL;
            at = (at + 1LL);
            continue;
        }
        if ((mark != 58LL)) {
            return (-1LL);
        }
        port = cloudevents_columnar_kernels_texts__skip_class(data, (at + 1LL), end, 2LL);
        if (((port == end) || ((int64_t)data.at[CHECKED(port, COUNT(data))] == 47LL || (int64_t)data.at[CHECKED(port, COUNT(data))] == 63LL || (int64_t)data.at[CHECKED(port, COUNT(data))] == 35LL))) {
            return port;
        }
        while (((at < end) && (at >= 0LL) && ((int64_t)data.at[CHECKED(at, COUNT(data))] == 58LL))) {
            at = cloudevents_columnar_kernels_texts__skip_uri_part(data, (at + 1LL), end, 16LL);
        }
        if (((at < 0LL) || (at == end) || ((int64_t)data.at[CHECKED(at, COUNT(data))] != 64LL) || (users != 0))) {
            return (-1LL);
        }
        users = 1LL;
        at = (at + 1LL);
    }
}

/* cloudevents.columnar.kernels.texts.skip_query */
static inline int64_t cloudevents_columnar_kernels_texts__skip_query(bytes_t data, int64_t at, int64_t end) {
    while ((at < end)) {
        at = cloudevents_columnar_kernels_texts__skip_uri_part(data, at, end, 32LL);
        if (((at < 0LL) || (at == end) || (!((int64_t)data.at[CHECKED(at, COUNT(data))] == 47LL || (int64_t)data.at[CHECKED(at, COUNT(data))] == 63LL)))) {
            break;
        }
        at = (at + 1LL);
    }
    return at;
}

/* cloudevents.columnar.kernels.texts.is_uri */
static inline bool cloudevents_columnar_kernels_texts__is_uri(bytes_t data, int64_t at, int64_t end, bool absolute) {
    int64_t scheme = 0;
    int64_t colon = 0;
    int64_t first_segment = 0;
    int64_t start = 0;
    int64_t place = 0;
    scheme = 0LL;
    if (((at < end) && ((cloudevents_columnar_kernels_texts__class_of((int64_t)data.at[CHECKED(at, COUNT(data))]) & 1LL) != 0))) {
        colon = cloudevents_columnar_kernels_texts__skip_class(data, at, end, 64LL);
        if (((colon < end) && ((int64_t)data.at[CHECKED(colon, COUNT(data))] == 58LL))) {
            scheme = 1LL;
            at = (colon + 1LL);
        }
    }
    if ((absolute && (!scheme))) {
        return 0LL;
    }
    if ((((at + 1LL) < end) && ((int64_t)data.at[CHECKED(at, COUNT(data))] == 47LL) && ((int64_t)data.at[CHECKED((at + 1LL), COUNT(data))] == 47LL))) {
        at = cloudevents_columnar_kernels_texts__skip_authority(data, (at + 2LL), end);
        if ((at < 0LL)) {
            return 0LL;
        }
    }
    first_segment = (!scheme);
    while ((at < end)) {
        start = at;
        at = cloudevents_columnar_kernels_texts__skip_uri_part(data, at, end, 32LL);
        if ((at < 0LL)) {
            return 0LL;
        }
        if ((first_segment != 0)) {
            for (int64_t t1 = start, t2 = at; t1 < t2; t1 += 1) {
                place = t1;
                if (((int64_t)data.at[CHECKED(place, COUNT(data))] == 58LL)) {
                    return 0LL;
                }
            }
            first_segment = 0LL;
        }
        if (((at == end) || ((int64_t)data.at[CHECKED(at, COUNT(data))] != 47LL))) {
            break;
        }
        at = (at + 1LL);
    }
    if (((at < end) && ((int64_t)data.at[CHECKED(at, COUNT(data))] == 63LL))) {
        at = cloudevents_columnar_kernels_texts__skip_query(data, (at + 1LL), end);
    }
    if ((((0LL <= at) && (at < end)) && ((int64_t)data.at[CHECKED(at, COUNT(data))] == 35LL))) {
        at = cloudevents_columnar_kernels_texts__skip_query(data, (at + 1LL), end);
    }
    return (at == end);
}

/* cloudevents.columnar.kernels.texts.skip_blanks */
static inline int64_t cloudevents_columnar_kernels_texts__skip_blanks(bytes_t data, int64_t at, int64_t end) {
    while (((at < end) && (((int64_t)data.at[CHECKED(at, COUNT(data))] == 32LL) || ((int64_t)data.at[CHECKED(at, COUNT(data))] == 9LL)))) {
        at = (at + 1LL);
    }
    return at;
}

/* cloudevents.columnar.kernels.texts.is_media_type */
static inline bool cloudevents_columnar_kernels_texts__is_media_type(bytes_t data, int64_t at, int64_t end) {
    int64_t place = 0;
    place = cloudevents_columnar_kernels_texts__skip_class(data, at, end, 8LL);
    if (((place == at || place == end) || ((int64_t)data.at[CHECKED(place, COUNT(data))] != 47LL))) {
        return 0LL;
    }
    at = (place + 1LL);
    place = cloudevents_columnar_kernels_texts__skip_class(data, at, end, 8LL);
    if ((place == at)) {
        return 0LL;
    }
    at = place;
    while ((at < end)) {
        at = cloudevents_columnar_kernels_texts__skip_blanks(data, at, end);
        if ((at == end)) {
            return 1LL;
        }
        if (((int64_t)data.at[CHECKED(at, COUNT(data))] != 59LL)) {
            return 0LL;
        }
        at = cloudevents_columnar_kernels_texts__skip_blanks(data, (at + 1LL), end);
        place = cloudevents_columnar_kernels_texts__skip_class(data, at, end, 8LL);
        if (((place == at || place == end) || ((int64_t)data.at[CHECKED(place, COUNT(data))] != 61LL))) {
            return 0LL;
        }
        at = (place + 1LL);
        place = cloudevents_columnar_kernels_texts__skip_class(data, at, end, 8LL);
        if ((place == at)) {
            return 0LL;
        }
        at = place;
    }
    return 1LL;
}

/* cloudevents.columnar.kernels.texts.lower */
static inline int64_t cloudevents_columnar_kernels_texts__lower(int64_t byte) {
    if (((65LL <= byte) && (byte <= 90LL))) {
        return (byte + 32LL);
    }
    return byte;
}

/* cloudevents.columnar.kernels.texts.same_letters */
static inline bool cloudevents_columnar_kernels_texts__same_letters(bytes_t data, int64_t at, bytes_t known, int64_t size) {
    int64_t index = 0;
    index = 0LL;
    while (((index < size) && (cloudevents_columnar_kernels_texts__lower((int64_t)data.at[CHECKED((at + index), COUNT(data))]) == (int64_t)known.at[CHECKED(index, COUNT(known))]))) {
        index = (index + 1LL);
    }
    return (index == size);
}

/* cloudevents.columnar.kernels.texts.is_json_type */
static inline bool cloudevents_columnar_kernels_texts__is_json_type(bytes_t data, int64_t at, int64_t end) {
    int64_t stop = 0;
    int64_t before = 0;
    stop = at;
    while (((stop < end) && ((int64_t)data.at[CHECKED(stop, COUNT(data))] != 59LL))) {
        stop = (stop + 1LL);
    }
    while (((stop > at) && (((int64_t)data.at[CHECKED((stop - 1LL), COUNT(data))] == 32LL) || ((int64_t)data.at[CHECKED((stop - 1LL), COUNT(data))] == 9LL)))) {
        stop = (stop - 1LL);
    }
    if (((stop - at) < 6LL)) {
        return 0LL;
    }
    before = (int64_t)data.at[CHECKED((stop - 5LL), COUNT(data))];
    return ((before == 47LL || before == 43LL) && cloudevents_columnar_kernels_texts__same_letters(data, (stop - 4LL), flat_bytes_t(table_1), 4LL));
}

/* cloudevents.columnar.kernels.texts.is_integer */
static inline bool cloudevents_columnar_kernels_texts__is_integer(bytes_t data, int64_t at, int64_t end) {
    int64_t size = 0;
    if (((at < end) && ((int64_t)data.at[CHECKED(at, COUNT(data))] == 45LL))) {
        at = (at + 1LL);
        if (((at < end) && ((int64_t)data.at[CHECKED(at, COUNT(data))] == 48LL))) {
            return 0LL;
        }
    }
    size = (end - at);
    if (((size < 1LL) || (size > 9LL) || ((size > 1LL) && ((int64_t)data.at[CHECKED(at, COUNT(data))] == 48LL)))) {
        return 0LL;
    }
    return (cloudevents_columnar_kernels_texts__skip_class(data, at, end, 2LL) == end);
}

/* cloudevents.columnar.kernels.texts.is_boolean */
static inline bool cloudevents_columnar_kernels_texts__is_boolean(bytes_t data, int64_t at, int64_t end) {
    int64_t word = 0;
    if (((end - at) == 4LL)) {
        word = (((int64_t)data.at[CHECKED(at, COUNT(data))] << 24LL) | ((int64_t)data.at[CHECKED((at + 1LL), COUNT(data))] << 16LL));
        return (((word | ((int64_t)data.at[CHECKED((at + 2LL), COUNT(data))] << 8LL)) | (int64_t)data.at[CHECKED((at + 3LL), COUNT(data))]) == 1953658213LL);
    }
    if ((((end - at) != 5LL) || ((int64_t)data.at[CHECKED(at, COUNT(data))] != 102LL))) {
        return 0LL;
    }
    word = (((int64_t)data.at[CHECKED((at + 1LL), COUNT(data))] << 24LL) | ((int64_t)data.at[CHECKED((at + 2LL), COUNT(data))] << 16LL));
    return (((word | ((int64_t)data.at[CHECKED((at + 3LL), COUNT(data))] << 8LL)) | (int64_t)data.at[CHECKED((at + 4LL), COUNT(data))]) == 1634497381LL);
}

/* cloudevents.columnar.kernels.texts.base64_digit */
static inline int64_t cloudevents_columnar_kernels_texts__base64_digit(int64_t byte) {
    if (((65LL <= byte) && (byte <= 90LL))) {
        return (byte - 65LL);
    }
    if (((97LL <= byte) && (byte <= 122LL))) {
        return ((byte - 97LL) + 26LL);
    }
    if (((48LL <= byte) && (byte <= 57LL))) {
        return ((byte - 48LL) + 52LL);
    }
    if ((byte == 43LL)) {
        return 62LL;
    }
    if ((byte == 47LL)) {
        return 63LL;
    }
    return (-1LL);
}

/* cloudevents.columnar.kernels.texts.is_base64 */
static inline bool cloudevents_columnar_kernels_texts__is_base64(bytes_t data, int64_t at, int64_t end) {
    int64_t padding = 0;
    int64_t digit = 0;
    int64_t place = 0;
    int64_t stray = 0;
    if ((floor_remainder((end - at), 4LL) != 0)) {
        return 0LL;
    }
    if ((at == end)) {
        return 1LL;
    }
    padding = 0LL;
    if (((int64_t)data.at[CHECKED((end - 1LL), COUNT(data))] == 61LL)) {
        padding = (((int64_t)data.at[CHECKED((end - 2LL), COUNT(data))] == 61LL) ? 2LL : 1LL);
    }
    digit = 0LL;
    for (int64_t t1 = at, t2 = (end - padding); t1 < t2; t1 += 1) {
        place = t1;
        digit = cloudevents_columnar_kernels_texts__base64_digit((int64_t)data.at[CHECKED(place, COUNT(data))]);
        if ((digit < 0LL)) {
            return 0LL;
        }
    }
    stray = ((padding == 0LL) ? 0LL : ((padding == 1LL) ? 3LL : 15LL));
    return ((digit & stray) == 0LL);
}

/* cloudevents.columnar.kernels.texts.known_place */
static inline int64_t cloudevents_columnar_kernels_texts__known_place(bytes_t data, int64_t at, int64_t size) {
    int64_t word = 0;
    int64_t mixed = 0;
    word = ((size >= 8LL) ? load_word(data, ((at + size) - 8LL)) : ((size > 0LL) ? (int64_t)data.at[CHECKED(((at + size) - 1LL), COUNT(data))] : 0LL));
    mixed = ((((word >> 56LL) ^ (((word >> 48LL) & 255LL) << 4LL)) ^ (((word >> 40LL) & 255LL) << 2LL)) ^ (((word >> 32LL) & 255LL) << 1LL));
    return ((mixed ^ size) & (512LL - 1LL));
}

/* cloudevents.columnar.kernels.texts.is_known */
static inline bool cloudevents_columnar_kernels_texts__is_known(int32s_t known, int64_t table, bytes_t data, int64_t at, int64_t size) {
    int64_t place = 0;
    place = (((table * 512LL) + cloudevents_columnar_kernels_texts__known_place(data, at, size)) * 2LL);
    return (((int64_t)known.at[CHECKED((place + 1LL), COUNT(known))] == size) && cloudevents_columnar_kernels_texts__same_bytes(data, at, data, (int64_t)known.at[CHECKED(place, COUNT(known))], size));
}

/* cloudevents.columnar.kernels.texts.remember */
static inline void cloudevents_columnar_kernels_texts__remember(int32s_t known, int64_t table, bytes_t data, int64_t at, int64_t size) {
    int64_t place = 0;
    place = (((table * 512LL) + cloudevents_columnar_kernels_texts__known_place(data, at, size)) * 2LL);
    known.at[CHECKED(place, COUNT(known))] = (int32_t)(at);
    known.at[CHECKED((place + 1LL), COUNT(known))] = (int32_t)(size);
}

/* cloudevents.columnar.kernels.spans.lay_out */
static inline int64_t cloudevents_columnar_kernels_spans__lay_out(int32s_t sizes, int32s_t ends, bytes_t valid) {
    int64_t total = 0;
    int64_t nulls = 0;
    int64_t row = 0;
    int64_t size = 0;
    total = 0LL;
    nulls = 0LL;
    for (int64_t t1 = 0, t2 = sizes.size[0]; t1 < t2; t1 += 1) {
        row = t1;
        size = ((int64_t)sizes.at[CHECKED(row, COUNT(sizes))]);
        if ((size >= 0LL)) {
            total = (total + size);
            valid.at[CHECKED((row >> 3LL), COUNT(valid))] = (uint8_t)(((int64_t)valid.at[CHECKED((row >> 3LL), COUNT(valid))] | (1LL << (row & 7LL))));
        } else {
            nulls = (nulls + 1LL);
        }
        ends.at[CHECKED((row + 1LL), COUNT(ends))] = (int32_t)(total);
    }
    return nulls;
}

/* cloudevents.columnar.kernels.spans.copy_short */
static inline void cloudevents_columnar_kernels_spans__copy_short(bytes_t target, int64_t to, bytes_t source, int64_t start, int64_t size) {
    int64_t last = 0;
    int64_t index = 0;
    if ((size > 64LL)) {
        copy_bytes(target, to, source, start, size);
    } else {
        if ((size >= 8LL)) {
            last = (size - 8LL);
            for (int64_t t1 = 0LL, t2 = last; t1 < t2; t1 += 8LL) {
                index = t1;
                copy_word(target, (to + index), source, (start + index));
            }
            copy_word(target, (to + last), source, (start + last));
        } else {
            for (int64_t t3 = 0, t4 = size; t3 < t4; t3 += 1) {
                index = t3;
                target.at[CHECKED((to + index), COUNT(target))] = (uint8_t)((int64_t)source.at[CHECKED((start + index), COUNT(source))]);
            }
        }
    }
}

/* cloudevents.columnar.kernels.spans.gather */
static inline void cloudevents_columnar_kernels_spans__gather(bytes_t headers, bytes_t values, bytes_t side, bytes_t places, int32s_t starts, int32s_t ends, bytes_t target) {
    bytes_t to_target;
    int32s_t start_at;
    int32s_t end_at;
    bytes_t from_headers;
    bytes_t from_values;
    bytes_t from_side;
    int64_t row = 0;
    int64_t to = 0;
    int64_t size = 0;
    int64_t start = 0;
    int64_t place = 0;
    const bytes_t t1 = flat_bytes_t(target);
    const int32s_t t2 = flat_int32s_t(starts);
    const int32s_t t3 = flat_int32s_t(ends);
    to_target = t1;
    start_at = t2;
    end_at = t3;
    const bytes_t t4 = flat_bytes_t(headers);
    const bytes_t t5 = flat_bytes_t(values);
    const bytes_t t6 = flat_bytes_t(side);
    from_headers = t4;
    from_values = t5;
    from_side = t6;
    for (int64_t t7 = 0, t8 = starts.size[0]; t7 < t8; t7 += 1) {
        row = t7;
        to = (int64_t)end_at.at[CHECKED(row, COUNT(end_at))];
        size = ((int64_t)end_at.at[CHECKED((row + 1LL), COUNT(end_at))] - to);
        if ((size == 0LL)) {
            continue;
        }
        start = (int64_t)start_at.at[CHECKED(row, COUNT(start_at))];
        place = (int64_t)places.at[CHECKED(row, COUNT(places))];
        if ((place == 0LL)) {
            cloudevents_columnar_kernels_spans__copy_short(to_target, to, from_headers, start, size);
        } else {
            if ((place == 1LL)) {
                cloudevents_columnar_kernels_spans__copy_short(to_target, to, from_values, start, size);
            } else {
                cloudevents_columnar_kernels_spans__copy_short(to_target, to, from_side, start, size);
            }
        }
    }
}

/* cloudevents.columnar.kernels.spans.field */
static inline int64_t cloudevents_columnar_kernels_spans__field(int32s_t entries, int64_t entry, int64_t number) {
    return (int64_t)entries.at[CHECKED(((entry * 4LL) + number), COUNT(entries))];
}

/* cloudevents.columnar.kernels.spans.lay_out_entries */
static inline void cloudevents_columnar_kernels_spans__lay_out_entries(ints_t firsts, int32s_t counts, int32s_t table, int32s_t ends, int32s_t name_ends, int32s_t value_ends) {
    int32s_t entries;
    int32s_t count_at;
    int64_t total = 0;
    int64_t names = 0;
    int64_t values = 0;
    int64_t row = 0;
    int64_t first = 0;
    int64_t entry = 0;
    const int32s_t t1 = flat_int32s_t(table);
    const int32s_t t2 = flat_int32s_t(counts);
    entries = t1;
    count_at = t2;
    total = 0LL;
    names = 0LL;
    values = 0LL;
    for (int64_t t3 = 0, t4 = counts.size[0]; t3 < t4; t3 += 1) {
        row = t3;
        first = (int64_t)firsts.at[CHECKED(row, COUNT(firsts))];
        for (int64_t t5 = first, t6 = (first + (int64_t)count_at.at[CHECKED(row, COUNT(count_at))]); t5 < t6; t5 += 1) {
            entry = t5;
            names = (names + cloudevents_columnar_kernels_spans__field(entries, entry, 1LL));
            values = (values + cloudevents_columnar_kernels_spans__field(entries, entry, 3LL));
            total = (total + 1LL);
            name_ends.at[CHECKED(total, COUNT(name_ends))] = (int32_t)(names);
            value_ends.at[CHECKED(total, COUNT(value_ends))] = (int32_t)(values);
        }
        ends.at[CHECKED((row + 1LL), COUNT(ends))] = (int32_t)(total);
    }
}

/* cloudevents.columnar.kernels.spans.gather_entries */
static inline void cloudevents_columnar_kernels_spans__gather_entries(bytes_t header_names, bytes_t headers, bytes_t values, bytes_t side, bytes_t places, ints_t firsts, int32s_t counts, int32s_t table, bytes_t names, bytes_t texts) {
    bytes_t to_names;
    bytes_t to_texts;
    bytes_t from_names;
    bytes_t from_headers;
    bytes_t from_values;
    bytes_t from_side;
    int32s_t entries;
    int32s_t count_at;
    int64_t name_to = 0;
    int64_t to = 0;
    int64_t row = 0;
    int64_t place = 0;
    int64_t first = 0;
    int64_t entry = 0;
    int64_t name_at = 0;
    int64_t name_size = 0;
    int64_t start = 0;
    int64_t size = 0;
    const bytes_t t1 = flat_bytes_t(names);
    const bytes_t t2 = flat_bytes_t(texts);
    to_names = t1;
    to_texts = t2;
    const bytes_t t3 = flat_bytes_t(header_names);
    const bytes_t t4 = flat_bytes_t(headers);
    from_names = t3;
    from_headers = t4;
    const bytes_t t5 = flat_bytes_t(values);
    const bytes_t t6 = flat_bytes_t(side);
    from_values = t5;
    from_side = t6;
    const int32s_t t7 = flat_int32s_t(table);
    const int32s_t t8 = flat_int32s_t(counts);
    entries = t7;
    count_at = t8;
    name_to = 0LL;
    to = 0LL;
    for (int64_t t9 = 0, t10 = counts.size[0]; t9 < t10; t9 += 1) {
        row = t9;
        place = (int64_t)places.at[CHECKED(row, COUNT(places))];
        first = (int64_t)firsts.at[CHECKED(row, COUNT(firsts))];
        for (int64_t t11 = first, t12 = (first + (int64_t)count_at.at[CHECKED(row, COUNT(count_at))]); t11 < t12; t11 += 1) {
            entry = t11;
            const int64_t t13 = cloudevents_columnar_kernels_spans__field(entries, entry, 0LL);
            const int64_t t14 = cloudevents_columnar_kernels_spans__field(entries, entry, 1LL);
            name_at = t13;
            name_size = t14;
            const int64_t t15 = cloudevents_columnar_kernels_spans__field(entries, entry, 2LL);
            const int64_t t16 = cloudevents_columnar_kernels_spans__field(entries, entry, 3LL);
            start = t15;
            size = t16;
            if ((place == 0LL)) {
                cloudevents_columnar_kernels_spans__copy_short(to_names, name_to, from_names, name_at, name_size);
                cloudevents_columnar_kernels_spans__copy_short(to_texts, to, from_headers, start, size);
            } else {
                if ((place == 1LL)) {
                    cloudevents_columnar_kernels_spans__copy_short(to_names, name_to, from_values, name_at, name_size);
                    cloudevents_columnar_kernels_spans__copy_short(to_texts, to, from_values, start, size);
                } else {
                    cloudevents_columnar_kernels_spans__copy_short(to_names, name_to, from_side, name_at, name_size);
                    cloudevents_columnar_kernels_spans__copy_short(to_texts, to, from_side, start, size);
                }
            }
            name_to = (name_to + name_size);
            to = (to + size);
        }
    }
}

/* cloudevents.columnar.kernels.spans.find_entries */
static inline void cloudevents_columnar_kernels_spans__find_entries(bytes_t header_names, bytes_t values, bytes_t side, bytes_t places, ints_t firsts, int32s_t counts, int32s_t table, bytes_t wanted, int32s_t starts, int32s_t sizes) {
    bytes_t in_headers;
    bytes_t in_values;
    bytes_t in_side;
    int32s_t entries;
    int32s_t count_at;
    bytes_t name;
    int64_t size = 0;
    int64_t row = 0;
    int64_t first = 0;
    int64_t entry = 0;
    int64_t at = 0;
    int64_t found = 0;
    const bytes_t t1 = flat_bytes_t(header_names);
    const bytes_t t2 = flat_bytes_t(values);
    const bytes_t t3 = flat_bytes_t(side);
    in_headers = t1;
    in_values = t2;
    in_side = t3;
    const int32s_t t4 = flat_int32s_t(table);
    const int32s_t t5 = flat_int32s_t(counts);
    const bytes_t t6 = flat_bytes_t(wanted);
    entries = t4;
    count_at = t5;
    name = t6;
    size = wanted.size[0];
    for (int64_t t7 = 0, t8 = counts.size[0]; t7 < t8; t7 += 1) {
        row = t7;
        first = (int64_t)firsts.at[CHECKED(row, COUNT(firsts))];
        for (int64_t t9 = first, t10 = (first + (int64_t)count_at.at[CHECKED(row, COUNT(count_at))]); t9 < t10; t9 += 1) {
            entry = t9;
            if ((cloudevents_columnar_kernels_spans__field(entries, entry, 1LL) != size)) {
                continue;
            }
            at = cloudevents_columnar_kernels_spans__field(entries, entry, 0LL);
            if (((int64_t)places.at[CHECKED(row, COUNT(places))] == 0LL)) {
                found = cloudevents_columnar_kernels_texts__same_bytes(in_headers, at, name, 0LL, size);
            } else {
                if (((int64_t)places.at[CHECKED(row, COUNT(places))] == 1LL)) {
                    found = cloudevents_columnar_kernels_texts__same_bytes(in_values, at, name, 0LL, size);
                } else {
                    found = cloudevents_columnar_kernels_texts__same_bytes(in_side, at, name, 0LL, size);
                }
            }
            if ((found != 0)) {
                starts.at[CHECKED(row, COUNT(starts))] = (int32_t)(cloudevents_columnar_kernels_spans__field(entries, entry, 2LL));
                sizes.at[CHECKED(row, COUNT(sizes))] = (int32_t)(cloudevents_columnar_kernels_spans__field(entries, entry, 3LL));
            }
        }
    }
}

/* cloudevents.columnar.kernels.timestamp_kernels.number_at */
static inline int64_t cloudevents_columnar_kernels_timestamp_kernels__number_at(bytes_t data, int64_t at, int64_t size) {
    int64_t value = 0;
    int64_t index = 0;
    int64_t digit = 0;
    value = 0LL;
    for (int64_t t1 = 0, t2 = size; t1 < t2; t1 += 1) {
        index = t1;
        digit = ((int64_t)data.at[CHECKED((at + index), COUNT(data))] - 48LL);
        if (((digit < 0LL) || (digit > 9LL))) {
            return (-1LL);
        }
        value = ((value * 10LL) + digit);
    }
    return value;
}

/* cloudevents.columnar.kernels.timestamp_kernels.days_since_1970 */
static inline int64_t cloudevents_columnar_kernels_timestamp_kernels__days_since_1970(int64_t year, int64_t month, int64_t day) {
    int64_t leap = 0;
    int64_t length = 0;
    int64_t before = 0;
    int64_t days = 0;
    leap = ((floor_remainder(year, 4LL) == 0LL) && ((floor_remainder(year, 100LL) != 0LL) || (floor_remainder(year, 400LL) == 0LL)));
    if (((month < 1LL) || (month > 12LL) || (day < 1LL))) {
        return (-4611686018427387904LL);
    }
    length = 31LL;
    if ((month == 2LL)) {
        length = (leap ? 29LL : 28LL);
    } else {
        if ((month == 4LL || month == 6LL || month == 9LL || month == 11LL)) {
            length = 30LL;
        }
    }
    if ((day > length)) {
        return (-4611686018427387904LL);
    }
    before = (year - 1LL);
    days = ((((((before * 365LL) + floor_quotient(before, 4LL)) - floor_quotient(before, 100LL)) + floor_quotient(before, 400LL)) + (int64_t)flat_int32s_t(table_2).at[CHECKED((month - 1LL), COUNT(flat_int32s_t(table_2)))]) + day);
    if (((leap != 0) && (month > 2LL))) {
        days = (days + 1LL);
    }
    return (days - 719163LL);
}

/* cloudevents.columnar.kernels.timestamp_kernels.read_time */
static tuple2_t cloudevents_columnar_kernels_timestamp_kernels__read_time(bytes_t data, int64_t at, int64_t end) {
    int64_t size = 0;
    int64_t year = 0;
    int64_t month = 0;
    int64_t day = 0;
    int64_t hour = 0;
    int64_t minute = 0;
    int64_t second = 0;
    int64_t days = 0;
    int64_t micros = 0;
    int64_t exact = 0;
    int64_t stop = 0;
    int64_t digits = 0;
    int64_t kept = 0;
    int64_t seconds = 0;
    int64_t sign = 0;
    int64_t offset = 0;
    size = (end - at);
    if ((size < 20LL)) {
        return (tuple2_t){{(-4611686018427387904LL), 0LL}};
    }
    const int64_t t1 = cloudevents_columnar_kernels_timestamp_kernels__number_at(data, at, 4LL);
    const int64_t t2 = cloudevents_columnar_kernels_timestamp_kernels__number_at(data, (at + 5LL), 2LL);
    const int64_t t3 = cloudevents_columnar_kernels_timestamp_kernels__number_at(data, (at + 8LL), 2LL);
    year = t1;
    month = t2;
    day = t3;
    const int64_t t4 = cloudevents_columnar_kernels_timestamp_kernels__number_at(data, (at + 11LL), 2LL);
    const int64_t t5 = cloudevents_columnar_kernels_timestamp_kernels__number_at(data, (at + 14LL), 2LL);
    const int64_t t6 = cloudevents_columnar_kernels_timestamp_kernels__number_at(data, (at + 17LL), 2LL);
    hour = t4;
    minute = t5;
    second = t6;
    if ((((int64_t)data.at[CHECKED((at + 4LL), COUNT(data))] != 45LL) || ((int64_t)data.at[CHECKED((at + 7LL), COUNT(data))] != 45LL) || ((int64_t)data.at[CHECKED((at + 10LL), COUNT(data))] != 84LL))) {
        return (tuple2_t){{(-4611686018427387904LL), 0LL}};
    }
    if ((((int64_t)data.at[CHECKED((at + 13LL), COUNT(data))] != 58LL) || ((int64_t)data.at[CHECKED((at + 16LL), COUNT(data))] != 58LL))) {
        return (tuple2_t){{(-4611686018427387904LL), 0LL}};
    }
    if (((year < 2LL) || (year > 9998LL) || (month < 0LL) || (day < 0LL))) {
        return (tuple2_t){{(-4611686018427387904LL), 0LL}};
    }
    if (((hour < 0LL) || (hour > 23LL) || (minute < 0LL) || (minute > 59LL) || (second < 0LL) || (second > 59LL))) {
        return (tuple2_t){{(-4611686018427387904LL), 0LL}};
    }
    days = cloudevents_columnar_kernels_timestamp_kernels__days_since_1970(year, month, day);
    if ((days == (-4611686018427387904LL))) {
        return (tuple2_t){{(-4611686018427387904LL), 0LL}};
    }
    at = (at + 19LL);
    micros = 0LL;
    exact = 1LL;
    if (((int64_t)data.at[CHECKED(at, COUNT(data))] == 46LL)) {
        stop = cloudevents_columnar_kernels_texts__skip_class(data, (at + 1LL), end, 2LL);
        digits = ((stop - at) - 1LL);
        if ((digits == 0LL)) {
            return (tuple2_t){{(-4611686018427387904LL), 0LL}};
        }
        kept = min_of(digits, 6LL);
        micros = cloudevents_columnar_kernels_timestamp_kernels__number_at(data, (at + 1LL), kept);
        for (int64_t t7 = kept, t8 = 6LL; t7 < t8; t7 += 1) {
            micros = (micros * 10LL);
        }
        exact = (((digits == 3LL) && (micros != 0LL)) || ((digits == 6LL) && (floor_remainder(micros, 1000LL) != 0LL)));
        at = stop;
    }
    seconds = ((((days * 86400LL) + (hour * 3600LL)) + (minute * 60LL)) + second);
    if ((((at + 1LL) == end) && ((int64_t)data.at[CHECKED(at, COUNT(data))] == 90LL))) {
        return (tuple2_t){{((seconds * 1000000LL) + micros), (exact ? 1LL : 2LL)}};
    }
    if ((((end - at) != 6LL) || ((int64_t)data.at[CHECKED((at + 3LL), COUNT(data))] != 58LL))) {
        return (tuple2_t){{(-4611686018427387904LL), 0LL}};
    }
    sign = (int64_t)data.at[CHECKED(at, COUNT(data))];
    const int64_t t9 = cloudevents_columnar_kernels_timestamp_kernels__number_at(data, (at + 1LL), 2LL);
    const int64_t t10 = cloudevents_columnar_kernels_timestamp_kernels__number_at(data, (at + 4LL), 2LL);
    hour = t9;
    minute = t10;
    if ((((sign != 43LL) && (sign != 45LL)) || (hour < 0LL) || (hour > 23LL) || (minute < 0LL) || (minute > 59LL))) {
        return (tuple2_t){{(-4611686018427387904LL), 0LL}};
    }
    offset = ((hour * 3600LL) + (minute * 60LL));
    seconds = (seconds + ((sign == 45LL) ? offset : (-offset)));
    return (tuple2_t){{((seconds * 1000000LL) + micros), 2LL}};
}

/* cloudevents.columnar.kernels.header_read_kernels.core_slot */
static inline int64_t cloudevents_columnar_kernels_header_read_kernels__core_slot(bytes_t names, int64_t at, int64_t size) {
    bytes_t known;
    int32s_t ends;
    int64_t index = 0;
    int64_t start = 0;
    const bytes_t t1 = flat_bytes_t(table_3);
    const int32s_t t2 = flat_int32s_t(table_4);
    known = t1;
    ends = t2;
    for (int64_t t3 = 0, t4 = table_5.size[0]; t3 < t4; t3 += 1) {
        index = t3;
        start = (int64_t)ends.at[CHECKED(index, COUNT(ends))];
        if (((((int64_t)ends.at[CHECKED((index + 1LL), COUNT(ends))] - start) == size) && cloudevents_columnar_kernels_texts__same_bytes(names, at, known, start, size))) {
            return (int64_t)flat_int32s_t(table_5).at[CHECKED(index, COUNT(flat_int32s_t(table_5)))];
        }
    }
    return (-1LL);
}

/* cloudevents.columnar.kernels.header_read_kernels.is_one_zero */
static inline bool cloudevents_columnar_kernels_header_read_kernels__is_one_zero(bytes_t data, int64_t at) {
    return (((((int64_t)data.at[CHECKED(at, COUNT(data))] << 16LL) | ((int64_t)data.at[CHECKED((at + 1LL), COUNT(data))] << 8LL)) | (int64_t)data.at[CHECKED((at + 2LL), COUNT(data))]) == 3223088LL);
}

/* cloudevents.columnar.kernels.header_read_kernels.is_valid_core */
static inline bool cloudevents_columnar_kernels_header_read_kernels__is_valid_core(int64_t slot, bytes_t data, int64_t at, int64_t end) {
    if ((at == end)) {
        return 0LL;
    }
    if ((slot == 1LL || slot == 7LL)) {
        return cloudevents_columnar_kernels_texts__is_uri(data, at, end, (slot == 7LL));
    }
    if ((slot == 2LL)) {
        return (((end - at) == 3LL) && cloudevents_columnar_kernels_header_read_kernels__is_one_zero(data, at));
    }
    if ((slot == 6LL)) {
        return cloudevents_columnar_kernels_texts__is_media_type(data, at, end);
    }
    return cloudevents_columnar_kernels_texts__is_string(data, at, end);
}

/* cloudevents.columnar.kernels.header_read_kernels.is_extension_name */
static inline bool cloudevents_columnar_kernels_header_read_kernels__is_extension_name(bytes_t names, int64_t at, int64_t size) {
    int64_t place = 0;
    int64_t byte = 0;
    for (int64_t t1 = at, t2 = (at + size); t1 < t2; t1 += 1) {
        place = t1;
        byte = (int64_t)names.at[CHECKED(place, COUNT(names))];
        if ((!(((97LL <= byte) && (byte <= 122LL)) || ((48LL <= byte) && (byte <= 57LL))))) {
            return 0LL;
        }
    }
    return (size > 0LL);
}

/* cloudevents.columnar.kernels.header_read_kernels.kind_of */
static inline int64_t cloudevents_columnar_kernels_header_read_kernels__kind_of(bytes_t names, int64_t at, int64_t size, bytes_t declared, int32s_t ends, int32s_t kinds, int64_t count) {
    int64_t index = 0;
    int64_t start = 0;
    for (int64_t t1 = 0, t2 = count; t1 < t2; t1 += 1) {
        index = t1;
        start = (int64_t)ends.at[CHECKED(index, COUNT(ends))];
        if (((((int64_t)ends.at[CHECKED((index + 1LL), COUNT(ends))] - start) == size) && cloudevents_columnar_kernels_texts__same_bytes(names, at, declared, start, size))) {
            return (int64_t)kinds.at[CHECKED(index, COUNT(kinds))];
        }
    }
    return 8LL;
}

/* cloudevents.columnar.kernels.header_read_kernels.is_valid_extension */
static inline bool cloudevents_columnar_kernels_header_read_kernels__is_valid_extension(int64_t kind, bytes_t data, int64_t at, int64_t end) {
    if ((kind == 0LL || kind == 8LL)) {
        return cloudevents_columnar_kernels_texts__is_string(data, at, end);
    }
    if ((kind == 1LL)) {
        return cloudevents_columnar_kernels_texts__is_integer(data, at, end);
    }
    if ((kind == 2LL)) {
        return cloudevents_columnar_kernels_texts__is_boolean(data, at, end);
    }
    if ((kind == 3LL)) {
        return cloudevents_columnar_kernels_texts__is_base64(data, at, end);
    }
    if ((kind == 6LL)) {
        return (cloudevents_columnar_kernels_timestamp_kernels__read_time(data, at, end).part[0LL] != (-4611686018427387904LL));
    }
    if ((kind == 7LL)) {
        return ((at < end) && cloudevents_columnar_kernels_texts__is_string(data, at, end));
    }
    return cloudevents_columnar_kernels_texts__is_uri(data, at, end, (kind == 4LL));
}

/* cloudevents.columnar.kernels.header_read_kernels.is_new_name */
static inline bool cloudevents_columnar_kernels_header_read_kernels__is_new_name(int32s_t entries, int64_t first, int64_t last, bytes_t names, int64_t at, int64_t size) {
    int64_t entry = 0;
    int64_t other = 0;
    for (int64_t t1 = (first * 4LL), t2 = (last * 4LL); t1 < t2; t1 += 4LL) {
        entry = t1;
        if (((int64_t)entries.at[CHECKED((entry + 1LL), COUNT(entries))] == size)) {
            other = (int64_t)entries.at[CHECKED((entry + 0LL), COUNT(entries))];
            if (cloudevents_columnar_kernels_texts__same_bytes(names, other, names, at, size)) {
                return 0LL;
            }
        }
    }
    return 1LL;
}

/* cloudevents.columnar.kernels.header_read_kernels.put_entry */
static inline void cloudevents_columnar_kernels_header_read_kernels__put_entry(int32s_t entries, int64_t entry, int64_t name, int64_t name_size, int64_t value, int64_t value_size) {
    int64_t base = 0;
    base = (entry * 4LL);
    entries.at[CHECKED((base + 0LL), COUNT(entries))] = (int32_t)(name);
    entries.at[CHECKED((base + 1LL), COUNT(entries))] = (int32_t)(name_size);
    entries.at[CHECKED((base + 2LL), COUNT(entries))] = (int32_t)(value);
    entries.at[CHECKED((base + 3LL), COUNT(entries))] = (int32_t)(value_size);
}

/* cloudevents.columnar.kernels.header_read_kernels.is_structured */
static inline bool cloudevents_columnar_kernels_header_read_kernels__is_structured(bytes_t data, int64_t at, int64_t end) {
    return (((end - at) >= 23LL) && cloudevents_columnar_kernels_texts__same_letters(data, at, flat_bytes_t(table_6), 23LL));
}

/* cloudevents.columnar.kernels.header_read_kernels.is_json_format */
static inline bool cloudevents_columnar_kernels_header_read_kernels__is_json_format(bytes_t data, int64_t at, int64_t end) {
    if ((((end - at) < 28LL) || (!cloudevents_columnar_kernels_texts__same_letters(data, at, flat_bytes_t(table_6), 28LL)))) {
        return 0LL;
    }
    at = cloudevents_columnar_kernels_texts__skip_blanks(data, (at + 28LL), end);
    return ((at == end) || ((int64_t)data.at[CHECKED(at, COUNT(data))] == 59LL));
}

/* cloudevents.columnar.kernels.header_read_kernels.is_prefixed */
static inline bool cloudevents_columnar_kernels_header_read_kernels__is_prefixed(bytes_t names, int64_t at, int64_t size) {
    if (((size < 3LL) || ((int64_t)names.at[CHECKED(at, COUNT(names))] != 99LL))) {
        return 0LL;
    }
    return (((int64_t)names.at[CHECKED((at + 1LL), COUNT(names))] == 101LL) && ((int64_t)names.at[CHECKED((at + 2LL), COUNT(names))] == 95LL));
}

/* cloudevents.columnar.kernels.header_read_kernels.is_prefixed_loosely */
static inline bool cloudevents_columnar_kernels_header_read_kernels__is_prefixed_loosely(bytes_t names, int64_t at, int64_t size) {
    if (((size < 3LL) || (cloudevents_columnar_kernels_texts__lower((int64_t)names.at[CHECKED(at, COUNT(names))]) != 99LL))) {
        return 0LL;
    }
    return ((cloudevents_columnar_kernels_texts__lower((int64_t)names.at[CHECKED((at + 1LL), COUNT(names))]) == 101LL) && ((int64_t)names.at[CHECKED((at + 2LL), COUNT(names))] == 95LL));
}

/* cloudevents.columnar.kernels.header_read_kernels.find_attributes */
static void cloudevents_columnar_kernels_header_read_kernels__find_attributes(int32s_t firsts, int32s_t lasts, int32s_t name_ends, bytes_t all_names, int32s_t value_ends, bytes_t all_values, bytes_t null_values, int32s_t record_ends, bytes_t null_records, bytes_t all_declared, int32s_t all_declared_ends, int32s_t all_kinds, int64_t options, int32s_t known_texts, bytes_t rows, int32s_t spans, ints_t times, bytes_t time_states, ints_t entry_firsts, int32s_t entry_counts, int32s_t all_entries, ints_t state) {
    bytes_t names;
    bytes_t values;
    int32s_t entries;
    int32s_t first_at;
    int32s_t last_at;
    int32s_t name_at;
    int32s_t value_at;
    int32s_t record_at;
    bytes_t declared;
    int32s_t declared_ends;
    int32s_t kinds;
    int64_t has_nulls = 0;
    int64_t has_null_records = 0;
    int32s_t known;
    int64_t entry = 0;
    int64_t row = 0;
    int64_t slot = 0;
    int64_t first_entry = 0;
    int64_t ask = 0;
    int64_t structured = 0;
    int64_t readable = 0;
    int64_t content_types = 0;
    int64_t required = 0;
    int64_t time_state = 0;
    int64_t header = 0;
    int64_t name = 0;
    int64_t size = 0;
    int64_t at = 0;
    int64_t end = 0;
    int64_t kind = 0;
    int64_t micros = 0;
    int64_t outcome = 0;
    int64_t wanted = 0;
    int64_t start = 0;
    const bytes_t t1 = flat_bytes_t(all_names);
    const bytes_t t2 = flat_bytes_t(all_values);
    const int32s_t t3 = flat_int32s_t(all_entries);
    names = t1;
    values = t2;
    entries = t3;
    const int32s_t t4 = flat_int32s_t(firsts);
    const int32s_t t5 = flat_int32s_t(lasts);
    first_at = t4;
    last_at = t5;
    const int32s_t t6 = flat_int32s_t(name_ends);
    const int32s_t t7 = flat_int32s_t(value_ends);
    const int32s_t t8 = flat_int32s_t(record_ends);
    name_at = t6;
    value_at = t7;
    record_at = t8;
    const bytes_t t9 = flat_bytes_t(all_declared);
    const int32s_t t10 = flat_int32s_t(all_declared_ends);
    const int32s_t t11 = flat_int32s_t(all_kinds);
    declared = t9;
    declared_ends = t10;
    kinds = t11;
    const bool t12 = (null_values.size[0] > 0LL);
    const bool t13 = (null_records.size[0] > 0LL);
    has_nulls = t12;
    has_null_records = t13;
    known = flat_int32s_t(known_texts);
    entry = 0LL;
    for (int64_t t14 = 0, t15 = rows.size[0]; t14 < t15; t14 += 1) {
        row = t14;
        for (int64_t t16 = 0, t17 = 9LL; t16 < t17; t16 += 1) {
            slot = t16;
            spans.at[CHECKED(((slot) * spans.size[1] + 1LL) * spans.size[2] + row, COUNT(spans))] = (int32_t)((-1LL));
        }
        first_entry = entry;
        ask = 0LL;
        structured = 0LL;
        readable = 0LL;
        content_types = 0LL;
        required = 0LL;
        time_state = 0LL;
        for (int64_t t18 = (int64_t)first_at.at[CHECKED(row, COUNT(first_at))], t19 = (int64_t)last_at.at[CHECKED(row, COUNT(last_at))]; t18 < t19; t18 += 1) {
            header = t18;
            name = (int64_t)name_at.at[CHECKED(header, COUNT(name_at))];
            size = ((int64_t)name_at.at[CHECKED((header + 1LL), COUNT(name_at))] - name);
            at = (int64_t)value_at.at[CHECKED(header, COUNT(value_at))];
            end = (int64_t)value_at.at[CHECKED((header + 1LL), COUNT(value_at))];
            if ((!cloudevents_columnar_kernels_header_read_kernels__is_prefixed(names, name, size))) {
                if (((size == 12LL) && cloudevents_columnar_kernels_texts__same_letters(names, name, flat_bytes_t(table_7), 12LL))) {
                    content_types = (content_types + (((has_nulls != 0) && ((int64_t)null_values.at[CHECKED(header, COUNT(null_values))] != 0)) ? 2LL : 1LL));
                    spans.at[CHECKED(((6LL) * spans.size[1] + 0LL) * spans.size[2] + row, COUNT(spans))] = (int32_t)(at);
                    spans.at[CHECKED(((6LL) * spans.size[1] + 1LL) * spans.size[2] + row, COUNT(spans))] = (int32_t)((end - at));
                    if (cloudevents_columnar_kernels_texts__is_known(known, 1LL, values, at, (end - at))) {
                        continue;
                    }
                    structured = cloudevents_columnar_kernels_header_read_kernels__is_structured(values, at, end);
                    if ((structured != 0)) {
                        readable = cloudevents_columnar_kernels_header_read_kernels__is_json_format(values, at, end);
                    } else {
                        if (cloudevents_columnar_kernels_header_read_kernels__is_valid_core(6LL, values, at, end)) {
                            cloudevents_columnar_kernels_texts__remember(known, 1LL, values, at, (end - at));
                        } else {
                            ask = 1LL;
                        }
                    }
                } else {
                    if ((((options & 1LL) != 0) && cloudevents_columnar_kernels_header_read_kernels__is_prefixed_loosely(names, name, size))) {
                        ask = 1LL;
                    }
                }
                continue;
            }
            if (((ask != 0) || ((has_nulls != 0) && ((int64_t)null_values.at[CHECKED(header, COUNT(null_values))] != 0)))) {
                ask = 1LL;
                continue;
            }
            name = (name + 3LL);
            size = (size - 3LL);
            slot = ((size > 0LL) ? cloudevents_columnar_kernels_header_read_kernels__core_slot(names, name, size) : (-2LL));
            if ((slot == (-1LL))) {
                kind = cloudevents_columnar_kernels_header_read_kernels__kind_of(names, name, size, declared, declared_ends, kinds, all_kinds.size[0]);
                ask = (!(cloudevents_columnar_kernels_header_read_kernels__is_extension_name(names, name, size) && cloudevents_columnar_kernels_header_read_kernels__is_new_name(entries, first_entry, entry, names, name, size) && cloudevents_columnar_kernels_header_read_kernels__is_valid_extension(kind, values, at, end)));
                cloudevents_columnar_kernels_header_read_kernels__put_entry(entries, entry, name, size, at, (end - at));
                entry = (entry + 1LL);
                continue;
            }
            if (((slot == (-2LL)) || ((int64_t)spans.at[CHECKED(((slot) * spans.size[1] + 1LL) * spans.size[2] + row, COUNT(spans))] >= 0LL))) {
                ask = 1LL;
                continue;
            }
            spans.at[CHECKED(((slot) * spans.size[1] + 0LL) * spans.size[2] + row, COUNT(spans))] = (int32_t)(at);
            spans.at[CHECKED(((slot) * spans.size[1] + 1LL) * spans.size[2] + row, COUNT(spans))] = (int32_t)((end - at));
            if ((slot == 5LL)) {
                const tuple2_t t20 = cloudevents_columnar_kernels_timestamp_kernels__read_time(values, at, end);
                micros = t20.part[0];
                time_state = t20.part[1];
                times.at[CHECKED(row, COUNT(times))] = (int64_t)(micros);
                ask = (micros == (-4611686018427387904LL));
                continue;
            }
            if ((slot == 1LL)) {
                required = (required + 1LL);
                if ((!cloudevents_columnar_kernels_texts__is_known(known, 0LL, values, at, (end - at)))) {
                    ask = (!cloudevents_columnar_kernels_header_read_kernels__is_valid_core(slot, values, at, end));
                    if ((!ask)) {
                        cloudevents_columnar_kernels_texts__remember(known, 0LL, values, at, (end - at));
                    }
                }
                continue;
            }
            if ((slot == 0LL || slot == 2LL || slot == 3LL)) {
                required = (required + 1LL);
            }
            ask = (!cloudevents_columnar_kernels_header_read_kernels__is_valid_core(slot, values, at, end));
        }
        outcome = 0LL;
        if ((content_types <= 1LL)) {
            if ((structured != 0)) {
                if (((readable != 0) && (!((has_null_records != 0) && ((int64_t)null_records.at[CHECKED(row, COUNT(null_records))] != 0))))) {
                    outcome = 2LL;
                }
            } else {
                if (((required == 4LL) && (!ask))) {
                    outcome = 1LL;
                } else {
                    if (((required == 0LL) && (!ask))) {
                        wanted = (content_types ? (options & 1LL) : (options & 2LL));
                        outcome = (wanted ? 0LL : 3LL);
                    }
                }
            }
        }
        if ((outcome == 1LL)) {
            start = (int64_t)record_at.at[CHECKED(row, COUNT(record_at))];
            spans.at[CHECKED(((8LL) * spans.size[1] + 0LL) * spans.size[2] + row, COUNT(spans))] = (int32_t)(start);
            if ((!((has_null_records != 0) && ((int64_t)null_records.at[CHECKED(row, COUNT(null_records))] != 0)))) {
                spans.at[CHECKED(((8LL) * spans.size[1] + 1LL) * spans.size[2] + row, COUNT(spans))] = (int32_t)(((int64_t)record_at.at[CHECKED((row + 1LL), COUNT(record_at))] - start));
            }
            time_states.at[CHECKED(row, COUNT(time_states))] = (uint8_t)(time_state);
        } else {
            entry = first_entry;
            for (int64_t t21 = 0, t22 = 9LL; t21 < t22; t21 += 1) {
                slot = t21;
                spans.at[CHECKED(((slot) * spans.size[1] + 1LL) * spans.size[2] + row, COUNT(spans))] = (int32_t)((-1LL));
            }
            state.at[CHECKED(1LL, COUNT(state))] = (int64_t)(((int64_t)state.at[CHECKED(1LL, COUNT(state))] + (outcome == 2LL)));
        }
        rows.at[CHECKED(row, COUNT(rows))] = (uint8_t)(outcome);
        entry_firsts.at[CHECKED(row, COUNT(entry_firsts))] = (int64_t)(first_entry);
        entry_counts.at[CHECKED(row, COUNT(entry_counts))] = (int32_t)((entry - first_entry));
    }
    state.at[CHECKED(0LL, COUNT(state))] = (int64_t)(entry);
}

/* cloudevents.columnar.kernels.data_decode_kernels.decoded_size */
static inline int64_t cloudevents_columnar_kernels_data_decode_kernels__decoded_size(bytes_t data, int64_t at, int64_t end) {
    int64_t size = 0;
    size = (floor_quotient((end - at), 4LL) * 3LL);
    if (((size > 0LL) && ((int64_t)data.at[CHECKED((end - 1LL), COUNT(data))] == 61LL))) {
        size = (size - 1LL);
        if (((int64_t)data.at[CHECKED((end - 2LL), COUNT(data))] == 61LL)) {
            size = (size - 1LL);
        }
    }
    return size;
}

/* cloudevents.columnar.kernels.data_decode_kernels.put_decoded */
static inline void cloudevents_columnar_kernels_data_decode_kernels__put_decoded(bytes_t target, int64_t to, bytes_t data, int64_t at, int64_t size) {
    int64_t end = 0;
    int64_t word = 0;
    end = (to + size);
    while ((to < end)) {
        word = ((cloudevents_columnar_kernels_texts__base64_digit((int64_t)data.at[CHECKED(at, COUNT(data))]) << 18LL) | (cloudevents_columnar_kernels_texts__base64_digit((int64_t)data.at[CHECKED((at + 1LL), COUNT(data))]) << 12LL));
        target.at[CHECKED(to, COUNT(target))] = (uint8_t)((word >> 16LL));
        if (((to + 1LL) < end)) {
            word = (word | (cloudevents_columnar_kernels_texts__base64_digit((int64_t)data.at[CHECKED((at + 2LL), COUNT(data))]) << 6LL));
            target.at[CHECKED((to + 1LL), COUNT(target))] = (uint8_t)(((word >> 8LL) & 255LL));
        }
        if (((to + 2LL) < end)) {
            word = (word | cloudevents_columnar_kernels_texts__base64_digit((int64_t)data.at[CHECKED((at + 3LL), COUNT(data))]));
            target.at[CHECKED((to + 2LL), COUNT(target))] = (uint8_t)((word & 255LL));
        }
        at = (at + 4LL);
        to = (to + 3LL);
    }
}

/* cloudevents.columnar.kernels.data_decode_kernels.hex_at */
static inline int64_t cloudevents_columnar_kernels_data_decode_kernels__hex_at(bytes_t data, int64_t at) {
    int64_t value = 0;
    int64_t place = 0;
    int64_t byte = 0;
    value = 0LL;
    for (int64_t t1 = at, t2 = (at + 4LL); t1 < t2; t1 += 1) {
        place = t1;
        byte = (int64_t)data.at[CHECKED(place, COUNT(data))];
        value = ((value << 4LL) | ((byte < 65LL) ? (byte - 48LL) : ((byte & 95LL) - 55LL)));
    }
    return value;
}

/* cloudevents.columnar.kernels.data_decode_kernels.escape_at */
static inline tuple2_t cloudevents_columnar_kernels_data_decode_kernels__escape_at(bytes_t data, int64_t at, int64_t end) {
    int64_t byte = 0;
    int64_t code = 0;
    int64_t low = 0;
    byte = (int64_t)data.at[CHECKED(at, COUNT(data))];
    if ((byte != 117LL)) {
        if ((byte == 98LL)) {
            return (tuple2_t){{8LL, (at + 1LL)}};
        }
        if ((byte == 102LL)) {
            return (tuple2_t){{12LL, (at + 1LL)}};
        }
        if ((byte == 110LL)) {
            return (tuple2_t){{10LL, (at + 1LL)}};
        }
        if ((byte == 114LL)) {
            return (tuple2_t){{13LL, (at + 1LL)}};
        }
        if ((byte == 116LL)) {
            return (tuple2_t){{9LL, (at + 1LL)}};
        }
        return (tuple2_t){{byte, (at + 1LL)}};
    }
    code = cloudevents_columnar_kernels_data_decode_kernels__hex_at(data, (at + 1LL));
    at = (at + 5LL);
    if (((code < 55296LL) || (code > 57343LL))) {
        return (tuple2_t){{code, at}};
    }
    if (((code > 56319LL) || ((at + 6LL) > end) || ((int64_t)data.at[CHECKED(at, COUNT(data))] != 92LL) || ((int64_t)data.at[CHECKED((at + 1LL), COUNT(data))] != 117LL))) {
        return (tuple2_t){{(-1LL), at}};
    }
    low = cloudevents_columnar_kernels_data_decode_kernels__hex_at(data, (at + 2LL));
    if (((low < 56320LL) || (low > 57343LL))) {
        return (tuple2_t){{(-1LL), at}};
    }
    return (tuple2_t){{((65536LL + ((code & 1023LL) << 10LL)) + (low & 1023LL)), (at + 6LL)}};
}

/* cloudevents.columnar.kernels.data_decode_kernels.utf8_size */
static inline int64_t cloudevents_columnar_kernels_data_decode_kernels__utf8_size(int64_t code) {
    return ((code < 128LL) ? 1LL : ((code < 2048LL) ? 2LL : ((code < 65536LL) ? 3LL : 4LL)));
}

/* cloudevents.columnar.kernels.data_decode_kernels.unescaped_size */
static inline int64_t cloudevents_columnar_kernels_data_decode_kernels__unescaped_size(bytes_t data, int64_t at, int64_t end) {
    int64_t size = 0;
    int64_t code = 0;
    size = 0LL;
    while ((at < end)) {
        if (((int64_t)data.at[CHECKED(at, COUNT(data))] != 92LL)) {
            at = (at + 1LL);
            size = (size + 1LL);
            continue;
        }
        const tuple2_t t1 = cloudevents_columnar_kernels_data_decode_kernels__escape_at(data, (at + 1LL), end);
        code = t1.part[0];
        at = t1.part[1];
        if ((code < 0LL)) {
            return (-1LL);
        }
        size = (size + cloudevents_columnar_kernels_data_decode_kernels__utf8_size(code));
    }
    return size;
}

/* cloudevents.columnar.kernels.data_decode_kernels.put_unescaped */
static inline void cloudevents_columnar_kernels_data_decode_kernels__put_unescaped(bytes_t target, int64_t to, bytes_t data, int64_t at, int64_t size) {
    int64_t end = 0;
    int64_t byte = 0;
    int64_t code = 0;
    int64_t width = 0;
    int64_t place = 0;
    end = (to + size);
    while ((to < end)) {
        byte = (int64_t)data.at[CHECKED(at, COUNT(data))];
        at = (at + 1LL);
        if ((byte != 92LL)) {
            target.at[CHECKED(to, COUNT(target))] = (uint8_t)(byte);
            to = (to + 1LL);
            continue;
        }
        const tuple2_t t1 = cloudevents_columnar_kernels_data_decode_kernels__escape_at(data, at, ((at + (6LL * (end - to))) + 6LL));
        code = t1.part[0];
        at = t1.part[1];
        width = cloudevents_columnar_kernels_data_decode_kernels__utf8_size(code);
        if ((width == 1LL)) {
            target.at[CHECKED(to, COUNT(target))] = (uint8_t)(code);
        } else {
            for (int64_t t2 = ((to + width) - 1LL), t3 = to; t2 > t3; t2 += (-1LL)) {
                place = t2;
                target.at[CHECKED(place, COUNT(target))] = (uint8_t)((128LL | (code & 63LL)));
                code = (code >> 6LL);
            }
            target.at[CHECKED(to, COUNT(target))] = (uint8_t)((((3840LL >> width) & 255LL) | code));
        }
        to = (to + width);
    }
}

/* cloudevents.columnar.kernels.data_decode_kernels.gather_data */
static inline void cloudevents_columnar_kernels_data_decode_kernels__gather_data(bytes_t records, bytes_t side, bytes_t places, bytes_t flags, int32s_t starts, int32s_t ends, bytes_t target) {
    bytes_t to_target;
    int32s_t start_at;
    int32s_t end_at;
    bytes_t from_records;
    bytes_t from_side;
    int64_t row = 0;
    int64_t to = 0;
    int64_t size = 0;
    int64_t start = 0;
    const bytes_t t1 = flat_bytes_t(target);
    const int32s_t t2 = flat_int32s_t(starts);
    const int32s_t t3 = flat_int32s_t(ends);
    to_target = t1;
    start_at = t2;
    end_at = t3;
    const bytes_t t4 = flat_bytes_t(records);
    const bytes_t t5 = flat_bytes_t(side);
    from_records = t4;
    from_side = t5;
    for (int64_t t6 = 0, t7 = starts.size[0]; t6 < t7; t6 += 1) {
        row = t6;
        to = (int64_t)end_at.at[CHECKED(row, COUNT(end_at))];
        size = ((int64_t)end_at.at[CHECKED((row + 1LL), COUNT(end_at))] - to);
        start = (int64_t)start_at.at[CHECKED(row, COUNT(start_at))];
        if (((int64_t)places.at[CHECKED(row, COUNT(places))] == 2LL)) {
            cloudevents_columnar_kernels_spans__copy_short(to_target, to, from_side, start, size);
        } else {
            if ((((int64_t)flags.at[CHECKED(row, COUNT(flags))] & 2LL) != 0)) {
                cloudevents_columnar_kernels_data_decode_kernels__put_decoded(to_target, to, from_records, start, size);
            } else {
                if ((((int64_t)flags.at[CHECKED(row, COUNT(flags))] & 4LL) != 0)) {
                    cloudevents_columnar_kernels_data_decode_kernels__put_unescaped(to_target, to, from_records, start, size);
                } else {
                    cloudevents_columnar_kernels_spans__copy_short(to_target, to, from_records, start, size);
                }
            }
        }
    }
}

/* cloudevents.columnar.kernels.json_scan_kernels.marked */
static inline int64_t cloudevents_columnar_kernels_json_scan_kernels__marked(int64_t word) {
    int64_t low = 0;
    int64_t marks = 0;
    low = (word & 9187201950435737471LL);
    marks = ((((low ^ 2459565876494606882LL) - 72340172838076673LL) | ((low ^ 6655295901103053916LL) - 72340172838076673LL)) | ((low ^ 9187201950435737471LL) - 72340172838076673LL));
    return (((marks | (low - 2314885530818453536LL)) | word) & (-9187201950435737472LL));
}

/* cloudevents.columnar.kernels.json_scan_kernels.skip_spaces */
static inline int64_t cloudevents_columnar_kernels_json_scan_kernels__skip_spaces(bytes_t data, int64_t at, int64_t end) {
    int64_t byte = 0;
    while ((at < end)) {
        byte = (int64_t)data.at[CHECKED(at, COUNT(data))];
        if (((byte > 32LL) || ((byte != 32LL) && (byte != 10LL) && (byte != 13LL) && (byte != 9LL)))) {
            break;
        }
        at = (at + 1LL);
    }
    return at;
}

/* cloudevents.columnar.kernels.json_scan_kernels.skip_escape */
static inline int64_t cloudevents_columnar_kernels_json_scan_kernels__skip_escape(bytes_t data, int64_t at, int64_t end) {
    int64_t byte = 0;
    if ((at >= end)) {
        return (-1LL);
    }
    byte = (int64_t)data.at[CHECKED(at, COUNT(data))];
    if ((byte == 117LL)) {
        if ((((at + 5LL) > end) || (cloudevents_columnar_kernels_texts__skip_class(data, (at + 1LL), (at + 5LL), 4LL) != (at + 5LL)))) {
            return (-1LL);
        }
        return (at + 5LL);
    }
    return ((byte == 34LL || byte == 92LL || byte == 47LL || byte == 98LL || byte == 102LL || byte == 110LL || byte == 114LL || byte == 116LL) ? (at + 1LL) : (-1LL));
}

/* cloudevents.columnar.kernels.json_scan_kernels.skip_string */
static inline tuple2_t cloudevents_columnar_kernels_json_scan_kernels__skip_string(bytes_t data, int64_t at, int64_t end) {
    int64_t made_of = 0;
    int64_t marks = 0;
    int64_t byte = 0;
    int64_t size = 0;
    int64_t code = 0;
    made_of = 0LL;
    while ((at < end)) {
        if (((at + 8LL) <= end)) {
            marks = cloudevents_columnar_kernels_json_scan_kernels__marked(load_word(data, at));
            if ((marks == 0LL)) {
                at = (at + 8LL);
                continue;
            }
            at = (at + first_marked(marks));
        }
        byte = (int64_t)data.at[CHECKED(at, COUNT(data))];
        if ((byte >= 127LL)) {
            made_of = (made_of | 1LL);
            size = 1LL;
            if ((byte > 127LL)) {
                const tuple2_t t1 = cloudevents_columnar_kernels_texts__character(data, at, end);
                code = t1.part[0];
                size = t1.part[1];
                if ((code < 0LL)) {
                    return (tuple2_t){{(-1LL), made_of}};
                }
            }
            at = (at + size);
        } else {
            if ((byte == 34LL)) {
                return (tuple2_t){{(at + 1LL), made_of}};
            } else {
                if ((byte == 92LL)) {
                    made_of = (made_of | 2LL);
                    at = cloudevents_columnar_kernels_json_scan_kernels__skip_escape(data, (at + 1LL), end);
                    if ((at < 0LL)) {
                        return (tuple2_t){{(-1LL), made_of}};
                    }
                } else {
                    if ((byte < 32LL)) {
                        return (tuple2_t){{(-1LL), made_of}};
                    } else {
                        at = (at + 1LL);
                    }
                }
            }
        }
    }
    return (tuple2_t){{(-1LL), made_of}};
}

/* cloudevents.columnar.kernels.json_scan_kernels.skip_number */
static inline int64_t cloudevents_columnar_kernels_json_scan_kernels__skip_number(bytes_t data, int64_t at, int64_t end) {
    int64_t start = 0;
    if (((int64_t)data.at[CHECKED(at, COUNT(data))] == 45LL)) {
        at = (at + 1LL);
    }
    start = at;
    at = cloudevents_columnar_kernels_texts__skip_class(data, at, end, 2LL);
    if (((at == start) || (((at - start) > 1LL) && ((int64_t)data.at[CHECKED(start, COUNT(data))] == 48LL)))) {
        return (-1LL);
    }
    if (((at < end) && ((int64_t)data.at[CHECKED(at, COUNT(data))] == 46LL))) {
        start = (at + 1LL);
        at = cloudevents_columnar_kernels_texts__skip_class(data, start, end, 2LL);
        if ((at == start)) {
            return (-1LL);
        }
    }
    if (((at < end) && (cloudevents_columnar_kernels_texts__lower((int64_t)data.at[CHECKED(at, COUNT(data))]) == 101LL))) {
        at = (at + 1LL);
        if (((at < end) && (((int64_t)data.at[CHECKED(at, COUNT(data))] == 43LL) || ((int64_t)data.at[CHECKED(at, COUNT(data))] == 45LL)))) {
            at = (at + 1LL);
        }
        start = at;
        at = cloudevents_columnar_kernels_texts__skip_class(data, start, end, 2LL);
        if ((at == start)) {
            return (-1LL);
        }
    }
    return at;
}

/* cloudevents.columnar.kernels.json_scan_kernels.skip_scalar */
static inline tuple2_t cloudevents_columnar_kernels_json_scan_kernels__skip_scalar(bytes_t data, int64_t at, int64_t end) {
    int64_t byte = 0;
    int64_t word = 0;
    int64_t size = 0;
    int64_t kind = 0;
    byte = (int64_t)data.at[CHECKED(at, COUNT(data))];
    if ((byte == 34LL)) {
        return (tuple2_t){{cloudevents_columnar_kernels_json_scan_kernels__skip_string(data, (at + 1LL), end).part[0LL], 0LL}};
    }
    const int64_t t1 = 0LL;
    const int64_t t2 = 4LL;
    const int64_t t3 = 2LL;
    word = t1;
    size = t2;
    kind = t3;
    if ((byte == 102LL)) {
        const int64_t t4 = 4LL;
        const int64_t t5 = 5LL;
        const int64_t t6 = 3LL;
        word = t4;
        size = t5;
        kind = t6;
    } else {
        if ((byte == 110LL)) {
            const int64_t t7 = 9LL;
            const int64_t t8 = 4LL;
            const int64_t t9 = 4LL;
            word = t7;
            size = t8;
            kind = t9;
        } else {
            if ((byte != 116LL)) {
                return (tuple2_t){{cloudevents_columnar_kernels_json_scan_kernels__skip_number(data, at, end), 1LL}};
            }
        }
    }
    if ((((at + size) > end) || (!cloudevents_columnar_kernels_texts__same_bytes(data, at, flat_bytes_t(table_8), word, size)))) {
        return (tuple2_t){{(-1LL), kind}};
    }
    return (tuple2_t){{(at + size), kind}};
}

/* cloudevents.columnar.kernels.json_scan_kernels.skip_name */
static inline int64_t cloudevents_columnar_kernels_json_scan_kernels__skip_name(bytes_t data, int64_t at, int64_t end) {
    if (((at >= end) || ((int64_t)data.at[CHECKED(at, COUNT(data))] != 34LL))) {
        return (-1LL);
    }
    const tuple2_t t1 = cloudevents_columnar_kernels_json_scan_kernels__skip_string(data, (at + 1LL), end);
    at = t1.part[0];
    (void)(t1.part[1]);
    if ((at < 0LL)) {
        return (-1LL);
    }
    at = cloudevents_columnar_kernels_json_scan_kernels__skip_spaces(data, at, end);
    if (((at >= end) || ((int64_t)data.at[CHECKED(at, COUNT(data))] != 58LL))) {
        return (-1LL);
    }
    return cloudevents_columnar_kernels_json_scan_kernels__skip_spaces(data, (at + 1LL), end);
}

/* cloudevents.columnar.kernels.json_scan_kernels.skip_value */
static tuple2_t cloudevents_columnar_kernels_json_scan_kernels__skip_value(bytes_t data, int64_t at, int64_t end) {
    int64_t byte = 0;
    int64_t objects = 0;
    int64_t depth = 0;
    if ((at >= end)) {
        return (tuple2_t){{(-1LL), 5LL}};
    }
    byte = (int64_t)data.at[CHECKED(at, COUNT(data))];
    if (((byte != 123LL) && (byte != 91LL))) {
        return cloudevents_columnar_kernels_json_scan_kernels__skip_scalar(data, at, end);
    }
    objects = 0LL;
    depth = 0LL;
    while (1LL) {
        byte = (int64_t)data.at[CHECKED(at, COUNT(data))];
        if (((byte == 123LL) || (byte == 91LL))) {
            if ((depth == 60LL)) {
                return (tuple2_t){{(-1LL), 5LL}};
            }
            depth = (depth + 1LL);
            objects = ((objects << 1LL) | (byte == 123LL));
            at = cloudevents_columnar_kernels_json_scan_kernels__skip_spaces(data, (at + 1LL), end);
            if (((at < end) && ((int64_t)data.at[CHECKED(at, COUNT(data))] == ((objects & 1LL) ? 125LL : 93LL)))) {
                at = (at + 1LL);
                depth = (depth - 1LL);
                objects = (objects >> 1LL);
            } else {
                if (((objects & 1LL) != 0)) {
                    at = cloudevents_columnar_kernels_json_scan_kernels__skip_name(data, at, end);
                }
                if (((at < 0LL) || (at >= end))) {
                    return (tuple2_t){{(-1LL), 5LL}};
                }
                continue;
            }
        } else {
            const tuple2_t t1 = cloudevents_columnar_kernels_json_scan_kernels__skip_scalar(data, at, end);
            at = t1.part[0];
            (void)(t1.part[1]);
            if ((at < 0LL)) {
                return (tuple2_t){{(-1LL), 5LL}};
            }
        }
        while (1LL) {
            if ((depth == 0LL)) {
                return (tuple2_t){{at, 5LL}};
            }
            at = cloudevents_columnar_kernels_json_scan_kernels__skip_spaces(data, at, end);
            if ((at >= end)) {
                return (tuple2_t){{(-1LL), 5LL}};
            }
            byte = (int64_t)data.at[CHECKED(at, COUNT(data))];
            at = (at + 1LL);
            if ((byte == 44LL)) {
                break;
            }
            if ((byte != ((objects & 1LL) ? 125LL : 93LL))) {
                return (tuple2_t){{(-1LL), 5LL}};
            }
            depth = (depth - 1LL);
            objects = (objects >> 1LL);
        }
        at = cloudevents_columnar_kernels_json_scan_kernels__skip_spaces(data, at, end);
        if (((objects & 1LL) != 0)) {
            at = cloudevents_columnar_kernels_json_scan_kernels__skip_name(data, at, end);
        }
        if (((at < 0LL) || (at >= end))) {
            return (tuple2_t){{(-1LL), 5LL}};
        }
    }
}

/* cloudevents.columnar.kernels.envelope_read_kernels.is_utf8_charset */
static inline bool cloudevents_columnar_kernels_envelope_read_kernels__is_utf8_charset(bytes_t data, int64_t at, int64_t end) {
    int64_t semicolon = 0;
    int64_t start = 0;
    semicolon = at;
    while (((semicolon < end) && ((int64_t)data.at[CHECKED(semicolon, COUNT(data))] != 59LL))) {
        semicolon = (semicolon + 1LL);
    }
    if ((semicolon == end)) {
        return 1LL;
    }
    start = cloudevents_columnar_kernels_json_scan_kernels__skip_spaces(data, (semicolon + 1LL), end);
    return (((end - start) == 13LL) && cloudevents_columnar_kernels_texts__same_letters(data, start, flat_bytes_t(table_9), 13LL));
}

/* cloudevents.columnar.kernels.envelope_read_kernels.fits_json_kind */
static inline bool cloudevents_columnar_kernels_envelope_read_kernels__fits_json_kind(int64_t kind, int64_t declared_kind) {
    if ((kind == 0LL)) {
        return (!(declared_kind == 1LL || declared_kind == 2LL));
    }
    if ((kind == 1LL)) {
        return (declared_kind == 1LL || declared_kind == 8LL);
    }
    return ((kind == 2LL || kind == 3LL) && (declared_kind == 2LL || declared_kind == 8LL));
}

/* cloudevents.columnar.kernels.envelope_read_kernels.is_extension */
static inline bool cloudevents_columnar_kernels_envelope_read_kernels__is_extension(bytes_t data, int64_t name, int64_t size, int64_t kind, int64_t at, int64_t end, bytes_t declared, int32s_t ends, int32s_t kinds, int64_t count) {
    int64_t declared_kind = 0;
    declared_kind = cloudevents_columnar_kernels_header_read_kernels__kind_of(data, name, size, declared, ends, kinds, count);
    if (((!cloudevents_columnar_kernels_envelope_read_kernels__fits_json_kind(kind, declared_kind)) || (!cloudevents_columnar_kernels_header_read_kernels__is_extension_name(data, name, size)))) {
        return 0LL;
    }
    if ((kind == 1LL)) {
        declared_kind = 1LL;
    } else {
        if ((kind != 0LL)) {
            declared_kind = 2LL;
        }
    }
    return cloudevents_columnar_kernels_header_read_kernels__is_valid_extension(declared_kind, data, at, end);
}

/* cloudevents.columnar.kernels.envelope_read_kernels.is_valid_member */
static inline bool cloudevents_columnar_kernels_envelope_read_kernels__is_valid_member(int64_t slot, bytes_t data, int64_t at, int64_t end, int64_t made_of, int32s_t known) {
    int64_t size = 0;
    int64_t table = 0;
    size = (end - at);
    if (((made_of == 0LL) && (slot == 0LL || slot == 3LL || slot == 4LL))) {
        return (size > 0LL);
    }
    if ((slot == 2LL)) {
        return ((size == 3LL) && cloudevents_columnar_kernels_header_read_kernels__is_one_zero(data, at));
    }
    if ((slot == 1LL || slot == 6LL)) {
        table = ((slot == 1LL) ? 0LL : 1LL);
        if (cloudevents_columnar_kernels_texts__is_known(known, table, data, at, size)) {
            return 1LL;
        }
        if ((((made_of & 2LL) != 0) || (!cloudevents_columnar_kernels_header_read_kernels__is_valid_core(slot, data, at, end)))) {
            return 0LL;
        }
        cloudevents_columnar_kernels_texts__remember(known, table, data, at, size);
        return 1LL;
    }
    return ((!(made_of & 2LL)) && cloudevents_columnar_kernels_header_read_kernels__is_valid_core(slot, data, at, end));
}

/* cloudevents.columnar.kernels.envelope_read_kernels.expected_name */
static inline tuple2_t cloudevents_columnar_kernels_envelope_read_kernels__expected_name(bytes_t data, int64_t name, int64_t end, int32s_t shape, int64_t member) {
    int64_t size = 0;
    if ((member >= 32LL)) {
        return (tuple2_t){{(-1LL), 0LL}};
    }
    size = (int64_t)shape.at[CHECKED(((member * 3LL) + 1LL), COUNT(shape))];
    if (((size < 0LL) || ((name + size) >= end))) {
        return (tuple2_t){{(-1LL), 0LL}};
    }
    if ((!cloudevents_columnar_kernels_texts__same_bytes(data, name, data, (int64_t)shape.at[CHECKED((member * 3LL), COUNT(shape))], (size + 1LL)))) {
        return (tuple2_t){{(-1LL), 0LL}};
    }
    return (tuple2_t){{size, (int64_t)shape.at[CHECKED(((member * 3LL) + 2LL), COUNT(shape))]}};
}

/* cloudevents.columnar.kernels.envelope_read_kernels.remember_name */
static inline void cloudevents_columnar_kernels_envelope_read_kernels__remember_name(int32s_t shape, int64_t member, int64_t name, int64_t size, int64_t slot) {
    if ((member < 32LL)) {
        shape.at[CHECKED((member * 3LL), COUNT(shape))] = (int32_t)(name);
        shape.at[CHECKED(((member * 3LL) + 1LL), COUNT(shape))] = (int32_t)(size);
        shape.at[CHECKED(((member * 3LL) + 2LL), COUNT(shape))] = (int32_t)(slot);
    }
}

/* cloudevents.columnar.kernels.envelope_read_kernels.place_data */
static inline tuple3_t cloudevents_columnar_kernels_envelope_read_kernels__place_data(bytes_t data, int64_t at, int64_t end, int64_t kind, int64_t media_at, int64_t media_end) {
    int64_t size = 0;
    if ((kind < 0LL)) {
        return (tuple3_t){{0LL, at, end}};
    }
    if ((kind == 7LL)) {
        return (tuple3_t){{2LL, (at + 1LL), ((at + 1LL) + cloudevents_columnar_kernels_data_decode_kernels__decoded_size(data, (at + 1LL), (end - 1LL)))}};
    }
    if ((media_end == 0LL)) {
        return (tuple3_t){{1LL, at, end}};
    }
    if (cloudevents_columnar_kernels_texts__is_json_type(data, media_at, media_end)) {
        return (tuple3_t){{0LL, at, end}};
    }
    if (((!(kind == 0LL || kind == 6LL)) || (!cloudevents_columnar_kernels_envelope_read_kernels__is_utf8_charset(data, media_at, media_end)))) {
        return (tuple3_t){{(-1LL), at, end}};
    }
    if ((kind == 0LL)) {
        return (tuple3_t){{0LL, (at + 1LL), (end - 1LL)}};
    }
    size = cloudevents_columnar_kernels_data_decode_kernels__unescaped_size(data, (at + 1LL), (end - 1LL));
    return (tuple3_t){{((size >= 0LL) ? 4LL : (-1LL)), (at + 1LL), ((at + 1LL) + size)}};
}

/* cloudevents.columnar.kernels.envelope_read_kernels.read_envelope */
static tuple4_t cloudevents_columnar_kernels_envelope_read_kernels__read_envelope(bytes_t data, int64_t at, int64_t end, int32s_t spans, int64_t row, int64_t rows, int32s_t known, int32s_t shape, int32s_t entries, int64_t first_entry, int64_t entries_max, bytes_t declared, int32s_t declared_ends, int32s_t kinds, int64_t count) {
    int64_t entry = 0;
    int64_t seen = 0;
    int64_t micros = 0;
    int64_t time_state = 0;
    int64_t data_at = 0;
    int64_t data_end = 0;
    int64_t data_kind = 0;
    int64_t media_at = 0;
    int64_t media_end = 0;
    int64_t member = 0;
    int64_t name = 0;
    int64_t size = 0;
    int64_t slot = 0;
    int64_t made_of = 0;
    int64_t start = 0;
    int64_t kind = 0;
    int64_t first = 0;
    int64_t last = 0;
    int64_t flags = 0;
    entry = first_entry;
    seen = 0LL;
    const int64_t t1 = 0LL;
    const int64_t t2 = 0LL;
    micros = t1;
    time_state = t2;
    const int64_t t3 = 0LL;
    const int64_t t4 = 0LL;
    const int64_t t5 = (-1LL);
    data_at = t3;
    data_end = t4;
    data_kind = t5;
    const int64_t t6 = 0LL;
    const int64_t t7 = 0LL;
    media_at = t6;
    media_end = t7;
    member = 0LL;
    at = cloudevents_columnar_kernels_json_scan_kernels__skip_spaces(data, at, end);
    if (((at >= end) || ((int64_t)data.at[CHECKED(at, COUNT(data))] != 123LL))) {
        return (tuple4_t){{(-1LL), 0LL, 0LL, 0LL}};
    }
    while (1LL) {
        at = cloudevents_columnar_kernels_json_scan_kernels__skip_spaces(data, (at + 1LL), end);
        if (((at >= end) || ((int64_t)data.at[CHECKED(at, COUNT(data))] != 34LL))) {
            return (tuple4_t){{(-1LL), 0LL, 0LL, 0LL}};
        }
        name = (at + 1LL);
        const tuple2_t t8 = cloudevents_columnar_kernels_envelope_read_kernels__expected_name(data, name, end, shape, member);
        size = t8.part[0];
        slot = t8.part[1];
        if ((size < 0LL)) {
            const tuple2_t t9 = cloudevents_columnar_kernels_json_scan_kernels__skip_string(data, name, end);
            at = t9.part[0];
            made_of = t9.part[1];
            size = ((at - 1LL) - name);
            if (((at < 0LL) || (made_of != 0) || (size == 0LL))) {
                return (tuple4_t){{(-1LL), 0LL, 0LL, 0LL}};
            }
            slot = cloudevents_columnar_kernels_header_read_kernels__core_slot(data, name, size);
            cloudevents_columnar_kernels_envelope_read_kernels__remember_name(shape, member, name, size, slot);
        }
        member = (member + 1LL);
        at = cloudevents_columnar_kernels_json_scan_kernels__skip_spaces(data, ((name + size) + 1LL), end);
        if (((at >= end) || ((int64_t)data.at[CHECKED(at, COUNT(data))] != 58LL))) {
            return (tuple4_t){{(-1LL), 0LL, 0LL, 0LL}};
        }
        start = cloudevents_columnar_kernels_json_scan_kernels__skip_spaces(data, (at + 1LL), end);
        made_of = 0LL;
        if (((start < end) && ((int64_t)data.at[CHECKED(start, COUNT(data))] == 34LL))) {
            kind = 0LL;
            const tuple2_t t10 = cloudevents_columnar_kernels_json_scan_kernels__skip_string(data, (start + 1LL), end);
            at = t10.part[0];
            made_of = t10.part[1];
            const int64_t t11 = (start + 1LL);
            const int64_t t12 = (at - 1LL);
            first = t11;
            last = t12;
        } else {
            const tuple2_t t13 = cloudevents_columnar_kernels_json_scan_kernels__skip_value(data, start, end);
            at = t13.part[0];
            kind = t13.part[1];
            const int64_t t14 = start;
            const int64_t t15 = at;
            first = t14;
            last = t15;
        }
        if ((at < 0LL)) {
            return (tuple4_t){{(-1LL), 0LL, 0LL, 0LL}};
        }
        if ((slot == (-2LL))) {
            slot = ((size == 15LL) ? 6LL : 8LL);
        }
        if ((slot == (-1LL))) {
            if ((((made_of & 2LL) != 0) || (entry == entries_max))) {
                return (tuple4_t){{(-1LL), 0LL, 0LL, 0LL}};
            }
            if ((!cloudevents_columnar_kernels_header_read_kernels__is_new_name(entries, first_entry, entry, data, name, size))) {
                return (tuple4_t){{(-1LL), 0LL, 0LL, 0LL}};
            }
            if ((!cloudevents_columnar_kernels_envelope_read_kernels__is_extension(data, name, size, kind, first, last, declared, declared_ends, kinds, count))) {
                return (tuple4_t){{(-1LL), 0LL, 0LL, 0LL}};
            }
            cloudevents_columnar_kernels_header_read_kernels__put_entry(entries, entry, name, size, first, (last - first));
            entry = (entry + 1LL);
        } else {
            if (((seen & (1LL << slot)) != 0)) {
                return (tuple4_t){{(-1LL), 0LL, 0LL, 0LL}};
            }
            seen = (seen | (1LL << slot));
            if ((slot == 8LL)) {
                if ((size == 11LL)) {
                    if (((kind != 0LL) || (!cloudevents_columnar_kernels_texts__is_base64(data, first, last)))) {
                        return (tuple4_t){{(-1LL), 0LL, 0LL, 0LL}};
                    }
                    kind = 7LL;
                } else {
                    if (((made_of & 2LL) != 0)) {
                        kind = 6LL;
                    }
                }
                const int64_t t16 = start;
                const int64_t t17 = at;
                const int64_t t18 = kind;
                data_at = t16;
                data_end = t17;
                data_kind = t18;
            } else {
                if ((kind == 0LL)) {
                    spans.at[CHECKED((row + ((slot * 2LL) * rows)), COUNT(spans))] = (int32_t)(first);
                    spans.at[CHECKED((row + (((slot * 2LL) + 1LL) * rows)), COUNT(spans))] = (int32_t)((last - first));
                    if ((slot == 5LL)) {
                        const tuple2_t t19 = cloudevents_columnar_kernels_timestamp_kernels__read_time(data, first, last);
                        micros = t19.part[0];
                        time_state = t19.part[1];
                        if ((micros == (-4611686018427387904LL))) {
                            return (tuple4_t){{(-1LL), 0LL, 0LL, 0LL}};
                        }
                    } else {
                        if ((!cloudevents_columnar_kernels_envelope_read_kernels__is_valid_member(slot, data, first, last, made_of, known))) {
                            return (tuple4_t){{(-1LL), 0LL, 0LL, 0LL}};
                        }
                    }
                    if ((slot == 6LL)) {
                        const int64_t t20 = first;
                        const int64_t t21 = last;
                        media_at = t20;
                        media_end = t21;
                    }
                } else {
                    if (((kind != 4LL) || (slot == 0LL || slot == 1LL || slot == 2LL || slot == 3LL))) {
                        return (tuple4_t){{(-1LL), 0LL, 0LL, 0LL}};
                    }
                }
            }
        }
        at = cloudevents_columnar_kernels_json_scan_kernels__skip_spaces(data, at, end);
        if ((at >= end)) {
            return (tuple4_t){{(-1LL), 0LL, 0LL, 0LL}};
        }
        if (((int64_t)data.at[CHECKED(at, COUNT(data))] == 125LL)) {
            break;
        }
        if (((int64_t)data.at[CHECKED(at, COUNT(data))] != 44LL)) {
            return (tuple4_t){{(-1LL), 0LL, 0LL, 0LL}};
        }
    }
    if (((cloudevents_columnar_kernels_json_scan_kernels__skip_spaces(data, (at + 1LL), end) != end) || ((seen & 15LL) != 15LL))) {
        return (tuple4_t){{(-1LL), 0LL, 0LL, 0LL}};
    }
    const tuple3_t t22 = cloudevents_columnar_kernels_envelope_read_kernels__place_data(data, data_at, data_end, data_kind, media_at, media_end);
    flags = t22.part[0];
    data_at = t22.part[1];
    data_end = t22.part[2];
    if ((flags < 0LL)) {
        return (tuple4_t){{(-1LL), 0LL, 0LL, 0LL}};
    }
    if ((data_kind >= 0LL)) {
        spans.at[CHECKED((row + ((8LL * 2LL) * rows)), COUNT(spans))] = (int32_t)(data_at);
        spans.at[CHECKED((row + (((8LL * 2LL) + 1LL) * rows)), COUNT(spans))] = (int32_t)((data_end - data_at));
    }
    return (tuple4_t){{entry, micros, time_state, flags}};
}

/* cloudevents.columnar.kernels.envelope_read_kernels.read_envelopes */
static inline void cloudevents_columnar_kernels_envelope_read_kernels__read_envelopes(int32s_t record_ends, bytes_t all_records, bytes_t all_declared, int32s_t all_declared_ends, int32s_t all_kinds, int32s_t known_texts, int32s_t last_shape, bytes_t rows, int32s_t spans, ints_t times, bytes_t time_states, bytes_t data_flags, ints_t entry_firsts, int32s_t entry_counts, int32s_t all_entries, ints_t state) {
    bytes_t records;
    int32s_t entries;
    int32s_t record_at;
    int32s_t span_at;
    bytes_t declared;
    int32s_t declared_ends;
    int32s_t kinds;
    int32s_t known;
    int32s_t shape;
    int64_t entry = 0;
    int64_t row = 0;
    int64_t start = 0;
    int64_t end = 0;
    int64_t next_entry = 0;
    int64_t micros = 0;
    int64_t time_state = 0;
    int64_t flags = 0;
    int64_t slot = 0;
    const bytes_t t1 = flat_bytes_t(all_records);
    const int32s_t t2 = flat_int32s_t(all_entries);
    const int32s_t t3 = flat_int32s_t(record_ends);
    records = t1;
    entries = t2;
    record_at = t3;
    span_at = flat_int32s_t(spans);
    const bytes_t t4 = flat_bytes_t(all_declared);
    const int32s_t t5 = flat_int32s_t(all_declared_ends);
    const int32s_t t6 = flat_int32s_t(all_kinds);
    declared = t4;
    declared_ends = t5;
    kinds = t6;
    const int32s_t t7 = flat_int32s_t(known_texts);
    const int32s_t t8 = flat_int32s_t(last_shape);
    known = t7;
    shape = t8;
    entry = ((int64_t)state.at[CHECKED(0LL, COUNT(state))]);
    for (int64_t t9 = 0, t10 = rows.size[0]; t9 < t10; t9 += 1) {
        row = t9;
        if (((int64_t)rows.at[CHECKED(row, COUNT(rows))] != 2LL)) {
            continue;
        }
        const int64_t t11 = (int64_t)record_at.at[CHECKED(row, COUNT(record_at))];
        const int64_t t12 = (int64_t)record_at.at[CHECKED((row + 1LL), COUNT(record_at))];
        start = t11;
        end = t12;
        const tuple4_t t13 = cloudevents_columnar_kernels_envelope_read_kernels__read_envelope(records, start, end, span_at, row, rows.size[0], known, shape, entries, entry, all_entries.size[0], declared, declared_ends, kinds, all_kinds.size[0]);
        next_entry = t13.part[0];
        micros = t13.part[1];
        time_state = t13.part[2];
        flags = t13.part[3];
        if ((next_entry < 0LL)) {
            rows.at[CHECKED(row, COUNT(rows))] = (uint8_t)(0LL);
            for (int64_t t14 = 0, t15 = 9LL; t14 < t15; t14 += 1) {
                slot = t14;
                spans.at[CHECKED(((slot) * spans.size[1] + 1LL) * spans.size[2] + row, COUNT(spans))] = (int32_t)((-1LL));
            }
            continue;
        }
        times.at[CHECKED(row, COUNT(times))] = (int64_t)(micros);
        time_states.at[CHECKED(row, COUNT(time_states))] = (uint8_t)(time_state);
        data_flags.at[CHECKED(row, COUNT(data_flags))] = (uint8_t)(flags);
        entry_firsts.at[CHECKED(row, COUNT(entry_firsts))] = (int64_t)(entry);
        entry_counts.at[CHECKED(row, COUNT(entry_counts))] = (int32_t)((next_entry - entry));
        entry = next_entry;
    }
    state.at[CHECKED(0LL, COUNT(state))] = (int64_t)(entry);
}

/* cloudevents.columnar.kernels.validate_kernels.is_ordinary */
static inline bool cloudevents_columnar_kernels_validate_kernels__is_ordinary(int32s_t ends, bytes_t all_data) {
    bytes_t data;
    int64_t at = 0;
    int64_t end = 0;
    int64_t words = 0;
    int64_t marks = 0;
    int64_t index = 0;
    int64_t place = 0;
    int64_t byte = 0;
    const bytes_t t1 = flat_bytes_t(all_data);
    const int64_t t2 = ((int64_t)ends.at[CHECKED(0LL, COUNT(ends))]);
    const int64_t t3 = ((int64_t)ends.at[CHECKED((ends.size[0] - 1LL), COUNT(ends))]);
    data = t1;
    at = t2;
    end = t3;
    words = floor_quotient((end - at), 8LL);
    marks = 0LL;
    for (int64_t t4 = 0, t5 = words; t4 < t5; t4 += 1) {
        index = t4;
        marks = (marks | cloudevents_columnar_kernels_json_scan_kernels__marked(load_word(data, (at + (index * 8LL)))));
    }
    for (int64_t t6 = (at + (words * 8LL)), t7 = end; t6 < t7; t6 += 1) {
        place = t6;
        byte = (int64_t)data.at[CHECKED(place, COUNT(data))];
        if (((byte < 32LL) || (byte >= 127LL) || (byte == 34LL) || (byte == 92LL))) {
            return 0LL;
        }
    }
    return (marks == 0LL);
}

/* cloudevents.columnar.kernels.validate_kernels.is_all_plain */
static inline bool cloudevents_columnar_kernels_validate_kernels__is_all_plain(bytes_t data, int64_t at, int64_t end) {
    at = cloudevents_columnar_kernels_texts__skip_plain(data, at, end);
    while (((at < end) && ((32LL <= (int64_t)data.at[CHECKED(at, COUNT(data))]) && ((int64_t)data.at[CHECKED(at, COUNT(data))] < 127LL)))) {
        at = (at + 1LL);
    }
    return (at == end);
}

/* cloudevents.columnar.kernels.validate_kernels.check_texts */
static inline void cloudevents_columnar_kernels_validate_kernels__check_texts(int64_t slot, int32s_t ends, bytes_t all_data, bytes_t nulls, bool ordinary, int32s_t known_texts, bytes_t doubts) {
    bytes_t data;
    int32s_t end_at;
    int32s_t known;
    int64_t plain = 0;
    int64_t row = 0;
    int64_t at = 0;
    int64_t end = 0;
    int64_t structured = 0;
    const bytes_t t1 = flat_bytes_t(all_data);
    const int32s_t t2 = flat_int32s_t(ends);
    data = t1;
    end_at = t2;
    known = flat_int32s_t(known_texts);
    plain = ((slot == 0LL || slot == 3LL || slot == 4LL) && (ordinary || cloudevents_columnar_kernels_validate_kernels__is_all_plain(data, (int64_t)end_at.at[CHECKED(0LL, COUNT(end_at))], (int64_t)end_at.at[CHECKED(doubts.size[0], COUNT(end_at))])));
    for (int64_t t3 = 0, t4 = doubts.size[0]; t3 < t4; t3 += 1) {
        row = t3;
        if (((nulls.size[0] > 0LL) && ((int64_t)nulls.at[CHECKED(row, COUNT(nulls))] != 0))) {
            continue;
        }
        const int64_t t5 = (int64_t)end_at.at[CHECKED(row, COUNT(end_at))];
        const int64_t t6 = (int64_t)end_at.at[CHECKED((row + 1LL), COUNT(end_at))];
        at = t5;
        end = t6;
        if ((plain != 0)) {
            if ((at == end)) {
                doubts.at[CHECKED(row, COUNT(doubts))] = (uint8_t)(1LL);
            }
        } else {
            if ((slot == 0LL || slot == 4LL || slot == 2LL)) {
                if ((!cloudevents_columnar_kernels_header_read_kernels__is_valid_core(slot, data, at, end))) {
                    doubts.at[CHECKED(row, COUNT(doubts))] = (uint8_t)(1LL);
                }
            } else {
                if ((slot == 5LL)) {
                    if ((cloudevents_columnar_kernels_timestamp_kernels__read_time(data, at, end).part[0LL] == (-4611686018427387904LL))) {
                        doubts.at[CHECKED(row, COUNT(doubts))] = (uint8_t)(1LL);
                    }
                } else {
                    if ((!cloudevents_columnar_kernels_texts__is_known(known, 0LL, data, at, (end - at)))) {
                        structured = ((slot == 6LL) && cloudevents_columnar_kernels_header_read_kernels__is_structured(data, at, end));
                        if ((cloudevents_columnar_kernels_header_read_kernels__is_valid_core(slot, data, at, end) && (!structured))) {
                            cloudevents_columnar_kernels_texts__remember(known, 0LL, data, at, (end - at));
                        } else {
                            doubts.at[CHECKED(row, COUNT(doubts))] = (uint8_t)(1LL);
                        }
                    }
                }
            }
        }
    }
}

/* cloudevents.columnar.kernels.validate_kernels.is_before */
static inline bool cloudevents_columnar_kernels_validate_kernels__is_before(bytes_t data, int64_t left, int64_t left_end, int64_t right, int64_t right_end) {
    int64_t difference = 0;
    while (((left < left_end) && (right < right_end))) {
        difference = ((int64_t)data.at[CHECKED(left, COUNT(data))] - (int64_t)data.at[CHECKED(right, COUNT(data))]);
        if ((difference != 0LL)) {
            return (difference < 0LL);
        }
        left = (left + 1LL);
        right = (right + 1LL);
    }
    return (right < right_end);
}

/* cloudevents.columnar.kernels.validate_kernels.check_entries */
static inline void cloudevents_columnar_kernels_validate_kernels__check_entries(int32s_t ends, int32s_t name_ends, bytes_t all_names, int32s_t value_ends, bytes_t all_values, bytes_t value_nulls, bytes_t all_declared, int32s_t all_declared_ends, int32s_t all_kinds, int32s_t order, bytes_t doubts) {
    bytes_t names;
    bytes_t values;
    bytes_t declared;
    int32s_t declared_ends;
    int32s_t kinds;
    int32s_t end_at;
    int32s_t name_at;
    int32s_t value_at;
    int32s_t place_at;
    int64_t row = 0;
    int64_t first = 0;
    int64_t entry = 0;
    int64_t name = 0;
    int64_t name_end = 0;
    int64_t size = 0;
    int64_t place = 0;
    int64_t other = 0;
    int64_t other_at = 0;
    int64_t other_end = 0;
    int64_t kind = 0;
    const bytes_t t1 = flat_bytes_t(all_names);
    const bytes_t t2 = flat_bytes_t(all_values);
    names = t1;
    values = t2;
    const bytes_t t3 = flat_bytes_t(all_declared);
    const int32s_t t4 = flat_int32s_t(all_declared_ends);
    const int32s_t t5 = flat_int32s_t(all_kinds);
    declared = t3;
    declared_ends = t4;
    kinds = t5;
    const int32s_t t6 = flat_int32s_t(ends);
    const int32s_t t7 = flat_int32s_t(name_ends);
    const int32s_t t8 = flat_int32s_t(value_ends);
    const int32s_t t9 = flat_int32s_t(order);
    end_at = t6;
    name_at = t7;
    value_at = t8;
    place_at = t9;
    for (int64_t t10 = 0, t11 = doubts.size[0]; t10 < t11; t10 += 1) {
        row = t10;
        first = (int64_t)end_at.at[CHECKED(row, COUNT(end_at))];
        for (int64_t t12 = first, t13 = (int64_t)end_at.at[CHECKED((row + 1LL), COUNT(end_at))]; t12 < t13; t12 += 1) {
            entry = t12;
            const int64_t t14 = (int64_t)name_at.at[CHECKED(entry, COUNT(name_at))];
            const int64_t t15 = (int64_t)name_at.at[CHECKED((entry + 1LL), COUNT(name_at))];
            name = t14;
            name_end = t15;
            size = (name_end - name);
            place = entry;
            while ((place > first)) {
                other = (int64_t)place_at.at[CHECKED((place - 1LL), COUNT(place_at))];
                const int64_t t16 = (int64_t)name_at.at[CHECKED(other, COUNT(name_at))];
                const int64_t t17 = (int64_t)name_at.at[CHECKED((other + 1LL), COUNT(name_at))];
                other_at = t16;
                other_end = t17;
                if ((((other_end - other_at) == size) && cloudevents_columnar_kernels_texts__same_bytes(names, name, names, other_at, size))) {
                    doubts.at[CHECKED(row, COUNT(doubts))] = (uint8_t)(1LL);
                }
                if (cloudevents_columnar_kernels_validate_kernels__is_before(names, other_at, other_end, name, name_end)) {
                    break;
                }
                place_at.at[CHECKED(place, COUNT(place_at))] = (int32_t)(other);
                place = (place - 1LL);
            }
            place_at.at[CHECKED(place, COUNT(place_at))] = (int32_t)(entry);
            if (((size == 0LL) || (cloudevents_columnar_kernels_header_read_kernels__core_slot(names, name, size) != (-1LL)) || (!cloudevents_columnar_kernels_header_read_kernels__is_extension_name(names, name, size)))) {
                doubts.at[CHECKED(row, COUNT(doubts))] = (uint8_t)(1LL);
            }
            if (((value_nulls.size[0] > 0LL) && ((int64_t)value_nulls.at[CHECKED(entry, COUNT(value_nulls))] != 0))) {
                continue;
            }
            kind = cloudevents_columnar_kernels_header_read_kernels__kind_of(names, name, size, declared, declared_ends, kinds, all_kinds.size[0]);
            if ((!cloudevents_columnar_kernels_header_read_kernels__is_valid_extension(kind, values, (int64_t)value_at.at[CHECKED(entry, COUNT(value_at))], (int64_t)value_at.at[CHECKED((entry + 1LL), COUNT(value_at))]))) {
                doubts.at[CHECKED(row, COUNT(doubts))] = (uint8_t)(1LL);
            }
        }
    }
}

/* cloudevents.columnar.kernels.validate_kernels.is_utf8 */
static inline bool cloudevents_columnar_kernels_validate_kernels__is_utf8(bytes_t data, int64_t at, int64_t end) {
    int64_t code = 0;
    int64_t size = 0;
    at = cloudevents_columnar_kernels_texts__skip_plain(data, at, end);
    while ((at < end)) {
        if (((int64_t)data.at[CHECKED(at, COUNT(data))] < 128LL)) {
            at = (at + 1LL);
        } else {
            const tuple2_t t1 = cloudevents_columnar_kernels_texts__character(data, at, end);
            code = t1.part[0];
            size = t1.part[1];
            if ((code < 0LL)) {
                return 0LL;
            }
            at = (at + size);
        }
    }
    return 1LL;
}

/* cloudevents.columnar.kernels.validate_kernels.judge_data */
static inline void cloudevents_columnar_kernels_validate_kernels__judge_data(int32s_t ends, bytes_t all_data, bytes_t nulls, int32s_t type_ends, bytes_t all_types, bytes_t type_nulls, bool text_data, bytes_t choices) {
    bytes_t data;
    bytes_t types;
    int32s_t end_at;
    int32s_t type_at;
    int64_t known_at = 0;
    int64_t known_size = 0;
    int64_t is_json = 0;
    int64_t row = 0;
    int64_t at = 0;
    int64_t end = 0;
    int64_t first = 0;
    int64_t last = 0;
    const bytes_t t1 = flat_bytes_t(all_data);
    const bytes_t t2 = flat_bytes_t(all_types);
    const int32s_t t3 = flat_int32s_t(ends);
    const int32s_t t4 = flat_int32s_t(type_ends);
    data = t1;
    types = t2;
    end_at = t3;
    type_at = t4;
    const int64_t t5 = 0LL;
    const int64_t t6 = (-1LL);
    const bool t7 = 0LL;
    known_at = t5;
    known_size = t6;
    is_json = t7;
    for (int64_t t8 = 0, t9 = choices.size[0]; t8 < t9; t8 += 1) {
        row = t8;
        if (((nulls.size[0] > 0LL) && ((int64_t)nulls.at[CHECKED(row, COUNT(nulls))] != 0))) {
            choices.at[CHECKED(row, COUNT(choices))] = (uint8_t)(0LL);
            continue;
        }
        choices.at[CHECKED(row, COUNT(choices))] = (uint8_t)(2LL);
        if (((type_nulls.size[0] > 0LL) && ((int64_t)type_nulls.at[CHECKED(row, COUNT(type_nulls))] != 0))) {
            continue;
        }
        const int64_t t10 = (int64_t)end_at.at[CHECKED(row, COUNT(end_at))];
        const int64_t t11 = (int64_t)end_at.at[CHECKED((row + 1LL), COUNT(end_at))];
        at = t10;
        end = t11;
        const int64_t t12 = (int64_t)type_at.at[CHECKED(row, COUNT(type_at))];
        const int64_t t13 = (int64_t)type_at.at[CHECKED((row + 1LL), COUNT(type_at))];
        first = t12;
        last = t13;
        if (((known_size != (last - first)) || (!cloudevents_columnar_kernels_texts__same_bytes(types, first, types, known_at, known_size)))) {
            const int64_t t14 = first;
            const int64_t t15 = (last - first);
            known_at = t14;
            known_size = t15;
            is_json = cloudevents_columnar_kernels_texts__is_json_type(types, first, last);
        }
        if ((is_json != 0)) {
            choices.at[CHECKED(row, COUNT(choices))] = (uint8_t)(((cloudevents_columnar_kernels_json_scan_kernels__skip_value(data, at, end).part[0LL] == end) ? 1LL : 4LL));
        } else {
            if (text_data) {
                choices.at[CHECKED(row, COUNT(choices))] = (uint8_t)((cloudevents_columnar_kernels_validate_kernels__is_utf8(data, at, end) ? 4LL : 2LL));
            }
        }
    }
}

/* cloudevents.columnar.kernels.validate_kernels.as_null_flags */
static inline void cloudevents_columnar_kernels_validate_kernels__as_null_flags(bytes_t wrong, bytes_t nulls, bytes_t result) {
    int64_t row = 0;
    for (int64_t t1 = 0, t2 = wrong.size[0]; t1 < t2; t1 += 1) {
        row = t1;
        result.at[CHECKED(row, COUNT(result))] = (uint8_t)(((int64_t)wrong.at[CHECKED(row, COUNT(wrong))] | ((nulls.size[0] > 0LL) ? (int64_t)nulls.at[CHECKED(row, COUNT(nulls))] : 0LL)));
    }
}

/* cloudevents.columnar.kernels.envelope_write_kernels.skip_unquoted */
static inline int64_t cloudevents_columnar_kernels_envelope_write_kernels__skip_unquoted(bytes_t data, int64_t at, int64_t end) {
    int64_t word = 0;
    while (((at + 8LL) <= end)) {
        word = load_word(data, at);
        if ((!(cloudevents_columnar_kernels_texts__is_plain(word) && cloudevents_columnar_kernels_texts__has_no(2459565876494606882LL, word) && cloudevents_columnar_kernels_texts__has_no(6655295901103053916LL, word)))) {
            break;
        }
        at = (at + 8LL);
    }
    return at;
}

/* cloudevents.columnar.kernels.envelope_write_kernels.quoted_size */
static inline int64_t cloudevents_columnar_kernels_envelope_write_kernels__quoted_size(bytes_t data, int64_t at, int64_t end) {
    int64_t size = 0;
    int64_t byte = 0;
    size = (end - at);
    while ((at < end)) {
        at = cloudevents_columnar_kernels_envelope_write_kernels__skip_unquoted(data, at, end);
        if ((at == end)) {
            break;
        }
        byte = (int64_t)data.at[CHECKED(at, COUNT(data))];
        if ((byte < 32LL)) {
            size = (size + ((((8LL <= byte) && (byte <= 13LL)) && (byte != 11LL)) ? 1LL : 5LL));
        } else {
            if ((byte == 34LL || byte == 92LL)) {
                size = (size + 1LL);
            }
        }
        at = (at + 1LL);
    }
    return size;
}

/* cloudevents.columnar.kernels.envelope_write_kernels.put_quoted */
static inline int64_t cloudevents_columnar_kernels_envelope_write_kernels__put_quoted(bytes_t target, int64_t to, bytes_t data, int64_t at, int64_t end) {
    int64_t word = 0;
    int64_t byte = 0;
    while ((at < end)) {
        while (((at + 8LL) <= end)) {
            word = load_word(data, at);
            if ((!(cloudevents_columnar_kernels_texts__is_plain(word) && cloudevents_columnar_kernels_texts__has_no(2459565876494606882LL, word) && cloudevents_columnar_kernels_texts__has_no(6655295901103053916LL, word)))) {
                break;
            }
            copy_word(target, to, data, at);
            at = (at + 8LL);
            to = (to + 8LL);
        }
        if ((at == end)) {
            break;
        }
        byte = (int64_t)data.at[CHECKED(at, COUNT(data))];
        at = (at + 1LL);
        if (((byte >= 32LL) && (byte != 34LL) && (byte != 92LL))) {
            target.at[CHECKED(to, COUNT(target))] = (uint8_t)(byte);
            to = (to + 1LL);
            continue;
        }
        target.at[CHECKED(to, COUNT(target))] = (uint8_t)(92LL);
        if ((byte >= 32LL)) {
            target.at[CHECKED((to + 1LL), COUNT(target))] = (uint8_t)(byte);
            to = (to + 2LL);
        } else {
            if ((((8LL <= byte) && (byte <= 13LL)) && (byte != 11LL))) {
                target.at[CHECKED((to + 1LL), COUNT(target))] = (uint8_t)((int64_t)flat_bytes_t(table_10).at[CHECKED((byte - 8LL), COUNT(flat_bytes_t(table_10)))]);
                to = (to + 2LL);
            } else {
                target.at[CHECKED((to + 1LL), COUNT(target))] = (uint8_t)(117LL);
                target.at[CHECKED((to + 2LL), COUNT(target))] = (uint8_t)(48LL);
                target.at[CHECKED((to + 3LL), COUNT(target))] = (uint8_t)(48LL);
                target.at[CHECKED((to + 4LL), COUNT(target))] = (uint8_t)((48LL + (byte >> 4LL)));
                target.at[CHECKED((to + 5LL), COUNT(target))] = (uint8_t)((int64_t)flat_bytes_t(table_11).at[CHECKED((byte & 15LL), COUNT(flat_bytes_t(table_11)))]);
                to = (to + 6LL);
            }
        }
    }
    return to;
}

/* cloudevents.columnar.kernels.envelope_write_kernels.put_base64 */
static inline int64_t cloudevents_columnar_kernels_envelope_write_kernels__put_base64(bytes_t target, int64_t to, bytes_t data, int64_t at, int64_t end) {
    bytes_t alphabet;
    int64_t left = 0;
    int64_t word = 0;
    alphabet = flat_bytes_t(table_12);
    while ((at < end)) {
        left = (end - at);
        word = ((int64_t)data.at[CHECKED(at, COUNT(data))] << 16LL);
        if ((left > 1LL)) {
            word = (word | ((int64_t)data.at[CHECKED((at + 1LL), COUNT(data))] << 8LL));
        }
        if ((left > 2LL)) {
            word = (word | (int64_t)data.at[CHECKED((at + 2LL), COUNT(data))]);
        }
        target.at[CHECKED(to, COUNT(target))] = (uint8_t)((int64_t)alphabet.at[CHECKED((word >> 18LL), COUNT(alphabet))]);
        target.at[CHECKED((to + 1LL), COUNT(target))] = (uint8_t)((int64_t)alphabet.at[CHECKED(((word >> 12LL) & 63LL), COUNT(alphabet))]);
        target.at[CHECKED((to + 2LL), COUNT(target))] = (uint8_t)(((left > 1LL) ? (int64_t)alphabet.at[CHECKED(((word >> 6LL) & 63LL), COUNT(alphabet))] : 61LL));
        target.at[CHECKED((to + 3LL), COUNT(target))] = (uint8_t)(((left > 2LL) ? (int64_t)alphabet.at[CHECKED((word & 63LL), COUNT(alphabet))] : 61LL));
        at = (at + 3LL);
        to = (to + 4LL);
    }
    return to;
}

/* cloudevents.columnar.kernels.envelope_write_kernels.quoted_column_size */
static inline int64_t cloudevents_columnar_kernels_envelope_write_kernels__quoted_column_size(int32s_t ends, bytes_t data) {
    return cloudevents_columnar_kernels_envelope_write_kernels__quoted_size(flat_bytes_t(data), ((int64_t)ends.at[CHECKED(0LL, COUNT(ends))]), ((int64_t)ends.at[CHECKED((ends.size[0] - 1LL), COUNT(ends))]));
}

/* cloudevents.columnar.kernels.envelope_write_kernels.entries_size */
static inline int64_t cloudevents_columnar_kernels_envelope_write_kernels__entries_size(int32s_t ends, int32s_t name_ends, bytes_t names, int32s_t value_ends, bytes_t values, bytes_t value_nulls, bytes_t wrong, bytes_t declared, int32s_t declared_ends, int32s_t kinds, bytes_t bare) {
    int32s_t end_at;
    int32s_t name_at;
    int32s_t value_at;
    bytes_t from_names;
    bytes_t from_values;
    bytes_t declared_at;
    int32s_t declared_end_at;
    int32s_t kind_at;
    int64_t total = 0;
    int64_t row = 0;
    int64_t entry = 0;
    int64_t name = 0;
    int64_t size = 0;
    int64_t at = 0;
    int64_t end = 0;
    int64_t kind = 0;
    const int32s_t t1 = flat_int32s_t(ends);
    const int32s_t t2 = flat_int32s_t(name_ends);
    const int32s_t t3 = flat_int32s_t(value_ends);
    end_at = t1;
    name_at = t2;
    value_at = t3;
    const bytes_t t4 = flat_bytes_t(names);
    const bytes_t t5 = flat_bytes_t(values);
    from_names = t4;
    from_values = t5;
    const bytes_t t6 = flat_bytes_t(declared);
    const int32s_t t7 = flat_int32s_t(declared_ends);
    const int32s_t t8 = flat_int32s_t(kinds);
    declared_at = t6;
    declared_end_at = t7;
    kind_at = t8;
    total = 0LL;
    for (int64_t t9 = 0, t10 = wrong.size[0]; t9 < t10; t9 += 1) {
        row = t9;
        if (((int64_t)wrong.at[CHECKED(row, COUNT(wrong))] != 0)) {
            continue;
        }
        for (int64_t t11 = (int64_t)end_at.at[CHECKED(row, COUNT(end_at))], t12 = (int64_t)end_at.at[CHECKED((row + 1LL), COUNT(end_at))]; t11 < t12; t11 += 1) {
            entry = t11;
            if (((value_nulls.size[0] > 0LL) && ((int64_t)value_nulls.at[CHECKED(entry, COUNT(value_nulls))] != 0))) {
                continue;
            }
            name = (int64_t)name_at.at[CHECKED(entry, COUNT(name_at))];
            size = ((int64_t)name_at.at[CHECKED((entry + 1LL), COUNT(name_at))] - name);
            const int64_t t13 = (int64_t)value_at.at[CHECKED(entry, COUNT(value_at))];
            const int64_t t14 = (int64_t)value_at.at[CHECKED((entry + 1LL), COUNT(value_at))];
            at = t13;
            end = t14;
            kind = cloudevents_columnar_kernels_header_read_kernels__kind_of(from_names, name, size, declared_at, declared_end_at, kind_at, kinds.size[0]);
            if ((kind == 1LL || kind == 2LL)) {
                bare.at[CHECKED(entry, COUNT(bare))] = (uint8_t)(1LL);
                total = (total + (((size + 4LL) + end) - at));
            } else {
                total = (total + ((size + 6LL) + cloudevents_columnar_kernels_envelope_write_kernels__quoted_size(from_values, at, end)));
            }
        }
    }
    return total;
}

/* cloudevents.columnar.kernels.envelope_write_kernels.data_size */
static inline int64_t cloudevents_columnar_kernels_envelope_write_kernels__data_size(bytes_t choices, int32s_t ends, bytes_t data) {
    bytes_t source;
    int32s_t end_at;
    int64_t total = 0;
    int64_t row = 0;
    int64_t choice = 0;
    int64_t at = 0;
    int64_t end = 0;
    const bytes_t t1 = flat_bytes_t(data);
    const int32s_t t2 = flat_int32s_t(ends);
    source = t1;
    end_at = t2;
    total = 0LL;
    for (int64_t t3 = 0, t4 = choices.size[0]; t3 < t4; t3 += 1) {
        row = t3;
        choice = (int64_t)choices.at[CHECKED(row, COUNT(choices))];
        const int64_t t5 = (int64_t)end_at.at[CHECKED(row, COUNT(end_at))];
        const int64_t t6 = (int64_t)end_at.at[CHECKED((row + 1LL), COUNT(end_at))];
        at = t5;
        end = t6;
        if ((choice == 1LL)) {
            total = (total + ((8LL + end) - at));
        } else {
            if ((choice == 2LL)) {
                total = (total + (17LL + (floor_quotient(((end - at) + 2LL), 3LL) * 4LL)));
            } else {
                if ((choice == 3LL)) {
                    total = (total + (10LL + cloudevents_columnar_kernels_envelope_write_kernels__quoted_size(source, at, end)));
                }
            }
        }
    }
    return total;
}

/* cloudevents.columnar.kernels.envelope_write_kernels.put_text */
static inline int64_t cloudevents_columnar_kernels_envelope_write_kernels__put_text(bytes_t target, int64_t to, bytes_t source, int64_t at, int64_t size, int64_t buffer_size) {
    int64_t index = 0;
    if ((((at + 32LL) <= buffer_size) && (size <= 32LL))) {
        copy_sixteen(target, to, source, at);
        copy_sixteen(target, (to + 16LL), source, (at + 16LL));
    } else {
        if (((((at + size) + 16LL) <= buffer_size) && (size <= 256LL))) {
            for (int64_t t1 = 0LL, t2 = size; t1 < t2; t1 += 16LL) {
                index = t1;
                copy_sixteen(target, (to + index), source, (at + index));
            }
        } else {
            copy_bytes(target, to, source, at, size);
        }
    }
    return (to + size);
}

/* cloudevents.columnar.kernels.envelope_write_kernels.put_entry_member */
static inline int64_t cloudevents_columnar_kernels_envelope_write_kernels__put_entry_member(bytes_t target, int64_t to, bytes_t names, int64_t name, int64_t name_end, bytes_t values, int64_t at, int64_t end, bool bare) {
    target.at[CHECKED(to, COUNT(target))] = (uint8_t)(44LL);
    target.at[CHECKED((to + 1LL), COUNT(target))] = (uint8_t)(34LL);
    cloudevents_columnar_kernels_spans__copy_short(target, (to + 2LL), names, name, (name_end - name));
    to = (to + ((name_end - name) + 2LL));
    target.at[CHECKED(to, COUNT(target))] = (uint8_t)(34LL);
    target.at[CHECKED((to + 1LL), COUNT(target))] = (uint8_t)(58LL);
    to = (to + 2LL);
    if (bare) {
        cloudevents_columnar_kernels_spans__copy_short(target, to, values, at, (end - at));
        return ((to + end) - at);
    }
    target.at[CHECKED(to, COUNT(target))] = (uint8_t)(34LL);
    to = cloudevents_columnar_kernels_envelope_write_kernels__put_quoted(target, (to + 1LL), values, at, end);
    target.at[CHECKED(to, COUNT(target))] = (uint8_t)(34LL);
    return (to + 1LL);
}

/* cloudevents.columnar.kernels.envelope_write_kernels.put_data */
static inline int64_t cloudevents_columnar_kernels_envelope_write_kernels__put_data(bytes_t target, int64_t to, int64_t choice, bytes_t source, int64_t at, int64_t end, int64_t buffer_size) {
    if ((choice == 2LL)) {
        copy_sixteen(target, to, flat_bytes_t(table_13), 0LL);
        to = cloudevents_columnar_kernels_envelope_write_kernels__put_base64(target, (to + 16LL), source, at, end);
    } else {
        copy_word(target, to, flat_bytes_t(table_14), 0LL);
        to = (to + 8LL);
        if ((choice == 1LL)) {
            return cloudevents_columnar_kernels_envelope_write_kernels__put_text(target, to, source, at, (end - at), buffer_size);
        }
        target.at[CHECKED(to, COUNT(target))] = (uint8_t)(34LL);
        to = cloudevents_columnar_kernels_envelope_write_kernels__put_quoted(target, (to + 1LL), source, at, end);
    }
    target.at[CHECKED(to, COUNT(target))] = (uint8_t)(34LL);
    return (to + 1LL);
}

/* cloudevents.columnar.kernels.envelope_write_kernels.write_envelopes */
static inline void cloudevents_columnar_kernels_envelope_write_kernels__write_envelopes(bytes_t prefixes, bytes_list_t texts_of, int32s_list_t ends_of, bytes_list_t nulls_of, int32s_t facts, int32s_t entry_ends, int32s_t name_ends, bytes_t names, int32s_t value_ends, bytes_t values, bytes_t value_nulls, int32s_t order, bytes_t bare, bytes_t choices, int32s_t data_ends, bytes_t data, bytes_t wrong, bytes_t target, int32s_t row_ends) {
    bytes_t to_target;
    bytes_t from_prefixes;
    int32s_t fact_at;
    int32s_t end_at;
    int32s_t name_at;
    int32s_t value_at;
    bytes_t from_names;
    bytes_t from_values;
    int32s_t order_at;
    bytes_t from_data;
    int32s_t data_at;
    int64_t to = 0;
    int64_t row = 0;
    int64_t column = 0;
    int64_t fact = 0;
    int32s_t text_ends;
    bytes_t texts;
    int64_t at = 0;
    int64_t end = 0;
    int64_t place = 0;
    int64_t entry = 0;
    int64_t name = 0;
    int64_t name_end = 0;
    int64_t is_bare = 0;
    const bytes_t t1 = flat_bytes_t(target);
    const bytes_t t2 = flat_bytes_t(prefixes);
    const int32s_t t3 = flat_int32s_t(facts);
    to_target = t1;
    from_prefixes = t2;
    fact_at = t3;
    const int32s_t t4 = flat_int32s_t(entry_ends);
    const int32s_t t5 = flat_int32s_t(name_ends);
    const int32s_t t6 = flat_int32s_t(value_ends);
    end_at = t4;
    name_at = t5;
    value_at = t6;
    const bytes_t t7 = flat_bytes_t(names);
    const bytes_t t8 = flat_bytes_t(values);
    const int32s_t t9 = flat_int32s_t(order);
    from_names = t7;
    from_values = t8;
    order_at = t9;
    const bytes_t t10 = flat_bytes_t(data);
    const int32s_t t11 = flat_int32s_t(data_ends);
    from_data = t10;
    data_at = t11;
    to = 0LL;
    for (int64_t t12 = 0, t13 = wrong.size[0]; t12 < t13; t12 += 1) {
        row = t12;
        if ((!(int64_t)wrong.at[CHECKED(row, COUNT(wrong))])) {
            for (int64_t t14 = 0, t15 = floor_quotient(facts.size[0], 4LL); t14 < t15; t14 += 1) {
                column = t14;
                fact = (column * 4LL);
                if ((((int64_t)fact_at.at[CHECKED((fact + 2LL), COUNT(fact_at))] != 0) && ((int64_t)nulls_of.at[CHECKED(column, nulls_of.count)].at[CHECKED(row, COUNT(nulls_of.at[CHECKED(column, nulls_of.count)]))] != 0))) {
                    continue;
                }
                copy_sixteen(to_target, to, from_prefixes, (column * 32LL));
                copy_sixteen(to_target, (to + 16LL), from_prefixes, ((column * 32LL) + 16LL));
                to = (to + (int64_t)fact_at.at[CHECKED((fact + 1LL), COUNT(fact_at))]);
                const int32s_t t16 = ends_of.at[CHECKED(column, ends_of.count)];
                const bytes_t t17 = texts_of.at[CHECKED(column, texts_of.count)];
                text_ends = t16;
                texts = t17;
                const int64_t t18 = (int64_t)text_ends.at[CHECKED(row, COUNT(text_ends))];
                const int64_t t19 = (int64_t)text_ends.at[CHECKED((row + 1LL), COUNT(text_ends))];
                at = t18;
                end = t19;
                if (((int64_t)fact_at.at[CHECKED((fact + 3LL), COUNT(fact_at))] != 0)) {
                    to = cloudevents_columnar_kernels_envelope_write_kernels__put_text(to_target, to, texts, at, (end - at), (int64_t)fact_at.at[CHECKED((fact + 0LL), COUNT(fact_at))]);
                } else {
                    to = cloudevents_columnar_kernels_envelope_write_kernels__put_quoted(to_target, to, texts, at, end);
                }
            }
            to_target.at[CHECKED(to, COUNT(to_target))] = (uint8_t)(34LL);
            to = (to + 1LL);
            for (int64_t t20 = (int64_t)end_at.at[CHECKED(row, COUNT(end_at))], t21 = (int64_t)end_at.at[CHECKED((row + 1LL), COUNT(end_at))]; t20 < t21; t20 += 1) {
                place = t20;
                entry = (int64_t)order_at.at[CHECKED(place, COUNT(order_at))];
                if (((value_nulls.size[0] == 0LL) || (!(int64_t)value_nulls.at[CHECKED(entry, COUNT(value_nulls))]))) {
                    const int64_t t22 = (int64_t)name_at.at[CHECKED(entry, COUNT(name_at))];
                    const int64_t t23 = (int64_t)name_at.at[CHECKED((entry + 1LL), COUNT(name_at))];
                    name = t22;
                    name_end = t23;
                    const int64_t t24 = (int64_t)value_at.at[CHECKED(entry, COUNT(value_at))];
                    const int64_t t25 = (int64_t)value_at.at[CHECKED((entry + 1LL), COUNT(value_at))];
                    at = t24;
                    end = t25;
                    is_bare = ((int64_t)bare.at[CHECKED(entry, COUNT(bare))] == 1LL);
                    to = cloudevents_columnar_kernels_envelope_write_kernels__put_entry_member(to_target, to, from_names, name, name_end, from_values, at, end, is_bare);
                }
            }
            if (((int64_t)choices.at[CHECKED(row, COUNT(choices))] != 0LL)) {
                const int64_t t26 = (int64_t)data_at.at[CHECKED(row, COUNT(data_at))];
                const int64_t t27 = (int64_t)data_at.at[CHECKED((row + 1LL), COUNT(data_at))];
                at = t26;
                end = t27;
                to = cloudevents_columnar_kernels_envelope_write_kernels__put_data(to_target, to, ((int64_t)choices.at[CHECKED(row, COUNT(choices))]), from_data, at, end, data.size[0]);
            }
            to_target.at[CHECKED(to, COUNT(to_target))] = (uint8_t)(125LL);
            to = (to + 1LL);
        }
        row_ends.at[CHECKED((row + 1LL), COUNT(row_ends))] = (int32_t)(to);
    }
}

/* cloudevents.columnar.kernels.header_write_kernels.civil */
static inline tuple3_t cloudevents_columnar_kernels_header_write_kernels__civil(int64_t days) {
    int64_t era = 0;
    int64_t day_of_era = 0;
    int64_t year = 0;
    int64_t day_of_year = 0;
    int64_t month = 0;
    int64_t day = 0;
    days = (days + 719468LL);
    era = floor_quotient(days, 146097LL);
    day_of_era = (days - (era * 146097LL));
    year = floor_quotient((((day_of_era - floor_quotient(day_of_era, 1460LL)) + floor_quotient(day_of_era, 36524LL)) - floor_quotient(day_of_era, 146096LL)), 365LL);
    day_of_year = (day_of_era - (((365LL * year) + floor_quotient(year, 4LL)) - floor_quotient(year, 100LL)));
    month = floor_quotient(((5LL * day_of_year) + 2LL), 153LL);
    day = ((day_of_year - floor_quotient(((153LL * month) + 2LL), 5LL)) + 1LL);
    year = (year + (era * 400LL));
    if ((month < 10LL)) {
        return (tuple3_t){{year, (month + 3LL), day}};
    }
    return (tuple3_t){{(year + 1LL), (month - 9LL), day}};
}

/* cloudevents.columnar.kernels.header_write_kernels.put_number */
static inline int64_t cloudevents_columnar_kernels_header_write_kernels__put_number(bytes_t target, int64_t to, int64_t number, int64_t digits) {
    int64_t place = 0;
    for (int64_t t1 = ((to + digits) - 1LL), t2 = (to - 1LL); t1 > t2; t1 += (-1LL)) {
        place = t1;
        target.at[CHECKED(place, COUNT(target))] = (uint8_t)((48LL + floor_remainder(number, 10LL)));
        number = floor_quotient(number, 10LL);
    }
    return (to + digits);
}

/* cloudevents.columnar.kernels.header_write_kernels.put_pair */
static inline void cloudevents_columnar_kernels_header_write_kernels__put_pair(bytes_t target, int64_t to, int64_t number) {
    int64_t tens = 0;
    tens = floor_quotient(number, 10LL);
    target.at[CHECKED(to, COUNT(target))] = (uint8_t)((48LL + tens));
    target.at[CHECKED((to + 1LL), COUNT(target))] = (uint8_t)(((48LL + number) - (tens * 10LL)));
}

/* cloudevents.columnar.kernels.header_write_kernels.put_triple */
static inline int64_t cloudevents_columnar_kernels_header_write_kernels__put_triple(bytes_t target, int64_t to, int64_t number) {
    int64_t hundreds = 0;
    hundreds = floor_quotient(number, 100LL);
    target.at[CHECKED(to, COUNT(target))] = (uint8_t)((48LL + hundreds));
    cloudevents_columnar_kernels_header_write_kernels__put_pair(target, (to + 1LL), (number - (hundreds * 100LL)));
    return (to + 3LL);
}

/* cloudevents.columnar.kernels.header_write_kernels.put_date */
static inline void cloudevents_columnar_kernels_header_write_kernels__put_date(bytes_t target, int64_t to, int64_t days) {
    int64_t year = 0;
    int64_t month = 0;
    int64_t day = 0;
    const tuple3_t t1 = cloudevents_columnar_kernels_header_write_kernels__civil(days);
    year = t1.part[0];
    month = t1.part[1];
    day = t1.part[2];
    cloudevents_columnar_kernels_header_write_kernels__put_number(target, to, year, 4LL);
    target.at[CHECKED((to + 4LL), COUNT(target))] = (uint8_t)(45LL);
    cloudevents_columnar_kernels_header_write_kernels__put_pair(target, (to + 5LL), month);
    target.at[CHECKED((to + 7LL), COUNT(target))] = (uint8_t)(45LL);
    cloudevents_columnar_kernels_header_write_kernels__put_pair(target, (to + 8LL), day);
    target.at[CHECKED((to + 10LL), COUNT(target))] = (uint8_t)(84LL);
}

/* cloudevents.columnar.kernels.header_write_kernels.put_time_of_day */
static inline int64_t cloudevents_columnar_kernels_header_write_kernels__put_time_of_day(bytes_t target, int64_t to, int64_t micros) {
    int64_t seconds = 0;
    int64_t fraction = 0;
    int64_t minutes = 0;
    int64_t hours = 0;
    int64_t millis = 0;
    seconds = floor_quotient(micros, 1000000LL);
    fraction = (micros - (seconds * 1000000LL));
    minutes = floor_quotient(seconds, 60LL);
    hours = floor_quotient(minutes, 60LL);
    cloudevents_columnar_kernels_header_write_kernels__put_pair(target, to, hours);
    target.at[CHECKED((to + 2LL), COUNT(target))] = (uint8_t)(58LL);
    cloudevents_columnar_kernels_header_write_kernels__put_pair(target, (to + 3LL), (minutes - (hours * 60LL)));
    target.at[CHECKED((to + 5LL), COUNT(target))] = (uint8_t)(58LL);
    cloudevents_columnar_kernels_header_write_kernels__put_pair(target, (to + 6LL), (seconds - (minutes * 60LL)));
    to = (to + 8LL);
    if ((fraction != 0)) {
        target.at[CHECKED(to, COUNT(target))] = (uint8_t)(46LL);
        millis = floor_quotient(fraction, 1000LL);
        to = cloudevents_columnar_kernels_header_write_kernels__put_triple(target, (to + 1LL), millis);
        if ((fraction != (millis * 1000LL))) {
            to = cloudevents_columnar_kernels_header_write_kernels__put_triple(target, to, (fraction - (millis * 1000LL)));
        }
    }
    target.at[CHECKED(to, COUNT(target))] = (uint8_t)(90LL);
    return (to + 1LL);
}

/* cloudevents.columnar.kernels.header_write_kernels.write_times */
static inline void cloudevents_columnar_kernels_header_write_kernels__write_times(ints_t micros, bytes_t nulls, int32s_t text_ends, bytes_t texts, bytes_t text_nulls, int32s_t ends, bytes_t target, bytes_t missing) {
    bytes_t source;
    bytes_t to_target;
    int32s_t text_at;
    int64_t date_at = 0;
    int64_t date_day = 0;
    int64_t to = 0;
    int64_t row = 0;
    int64_t at = 0;
    int64_t size = 0;
    int64_t days = 0;
    const bytes_t t1 = flat_bytes_t(texts);
    const bytes_t t2 = flat_bytes_t(target);
    const int32s_t t3 = flat_int32s_t(text_ends);
    source = t1;
    to_target = t2;
    text_at = t3;
    const int64_t t4 = 0LL;
    const int64_t t5 = (-4611686018427387904LL);
    date_at = t4;
    date_day = t5;
    to = 0LL;
    for (int64_t t6 = 0, t7 = micros.size[0]; t6 < t7; t6 += 1) {
        row = t6;
        if (((text_nulls.size[0] == 0LL) || (!(int64_t)text_nulls.at[CHECKED(row, COUNT(text_nulls))]))) {
            at = (int64_t)text_at.at[CHECKED(row, COUNT(text_at))];
            size = ((int64_t)text_at.at[CHECKED((row + 1LL), COUNT(text_at))] - at);
            cloudevents_columnar_kernels_spans__copy_short(to_target, to, source, at, size);
            to = (to + size);
        } else {
            if (((nulls.size[0] == 0LL) || (!(int64_t)nulls.at[CHECKED(row, COUNT(nulls))]))) {
                days = floor_quotient((int64_t)micros.at[CHECKED(row, COUNT(micros))], 86400000000LL);
                if ((days == date_day)) {
                    cloudevents_columnar_kernels_spans__copy_short(to_target, to, to_target, date_at, 11LL);
                } else {
                    cloudevents_columnar_kernels_header_write_kernels__put_date(to_target, to, days);
                }
                const int64_t t8 = to;
                const int64_t t9 = days;
                date_at = t8;
                date_day = t9;
                to = cloudevents_columnar_kernels_header_write_kernels__put_time_of_day(to_target, (to + 11LL), ((int64_t)micros.at[CHECKED(row, COUNT(micros))] - (days * 86400000000LL)));
            } else {
                missing.at[CHECKED(row, COUNT(missing))] = (uint8_t)(1LL);
            }
        }
        ends.at[CHECKED((row + 1LL), COUNT(ends))] = (int32_t)(to);
    }
}

/* cloudevents.columnar.kernels.header_write_kernels.write_headers */
static inline void cloudevents_columnar_kernels_header_write_kernels__write_headers(bytes_t header_names, bytes_list_t texts_of, int32s_list_t ends_of, bytes_list_t nulls_of, int32s_t facts, int32s_t entry_ends, int32s_t entry_name_ends, bytes_t entry_names, int32s_t entry_value_ends, bytes_t entry_values, bytes_t entry_nulls, int32s_t order, bytes_t wrong, int32s_t list_ends, int32s_t name_ends, bytes_t names, int32s_t value_ends, bytes_t values) {
    bytes_t to_names;
    bytes_t to_values;
    bytes_t from_names;
    int32s_t fact_at;
    int32s_t end_at;
    int32s_t order_at;
    int32s_t entry_name_at;
    int32s_t entry_value_at;
    bytes_t from_entry_names;
    bytes_t from_entry_values;
    int32s_t list_end_at;
    int32s_t name_end_at;
    int32s_t value_end_at;
    int64_t header = 0;
    int64_t name_to = 0;
    int64_t value_to = 0;
    int64_t row = 0;
    int64_t column = 0;
    int64_t fact = 0;
    int32s_t text_ends;
    bytes_t texts;
    int64_t at = 0;
    int64_t size = 0;
    int64_t place = 0;
    int64_t entry = 0;
    int64_t name = 0;
    int64_t name_size = 0;
    const bytes_t t1 = flat_bytes_t(names);
    const bytes_t t2 = flat_bytes_t(values);
    const bytes_t t3 = flat_bytes_t(header_names);
    to_names = t1;
    to_values = t2;
    from_names = t3;
    const int32s_t t4 = flat_int32s_t(facts);
    const int32s_t t5 = flat_int32s_t(entry_ends);
    const int32s_t t6 = flat_int32s_t(order);
    fact_at = t4;
    end_at = t5;
    order_at = t6;
    const int32s_t t7 = flat_int32s_t(entry_name_ends);
    const int32s_t t8 = flat_int32s_t(entry_value_ends);
    entry_name_at = t7;
    entry_value_at = t8;
    const bytes_t t9 = flat_bytes_t(entry_names);
    const bytes_t t10 = flat_bytes_t(entry_values);
    from_entry_names = t9;
    from_entry_values = t10;
    const int32s_t t11 = flat_int32s_t(list_ends);
    const int32s_t t12 = flat_int32s_t(name_ends);
    const int32s_t t13 = flat_int32s_t(value_ends);
    list_end_at = t11;
    name_end_at = t12;
    value_end_at = t13;
    header = 0LL;
    name_to = 0LL;
    value_to = 0LL;
    for (int64_t t14 = 0, t15 = wrong.size[0]; t14 < t15; t14 += 1) {
        row = t14;
        if ((!(int64_t)wrong.at[CHECKED(row, COUNT(wrong))])) {
            for (int64_t t16 = 0, t17 = floor_quotient(facts.size[0], 4LL); t16 < t17; t16 += 1) {
                column = t16;
                fact = (column * 4LL);
                if ((((int64_t)fact_at.at[CHECKED((fact + 2LL), COUNT(fact_at))] != 0) && ((int64_t)nulls_of.at[CHECKED(column, nulls_of.count)].at[CHECKED(row, COUNT(nulls_of.at[CHECKED(column, nulls_of.count)]))] != 0))) {
                    continue;
                }
                copy_sixteen(to_names, name_to, from_names, (column * 16LL));
                name_to = (name_to + (int64_t)fact_at.at[CHECKED((fact + 1LL), COUNT(fact_at))]);
                const int32s_t t18 = ends_of.at[CHECKED(column, ends_of.count)];
                const bytes_t t19 = texts_of.at[CHECKED(column, texts_of.count)];
                text_ends = t18;
                texts = t19;
                const int64_t t20 = (int64_t)text_ends.at[CHECKED(row, COUNT(text_ends))];
                const int64_t t21 = ((int64_t)text_ends.at[CHECKED((row + 1LL), COUNT(text_ends))] - (int64_t)text_ends.at[CHECKED(row, COUNT(text_ends))]);
                at = t20;
                size = t21;
                value_to = cloudevents_columnar_kernels_envelope_write_kernels__put_text(to_values, value_to, texts, at, size, (int64_t)fact_at.at[CHECKED((fact + 0LL), COUNT(fact_at))]);
                header = (header + 1LL);
                name_end_at.at[CHECKED(header, COUNT(name_end_at))] = (int32_t)(name_to);
                value_end_at.at[CHECKED(header, COUNT(value_end_at))] = (int32_t)(value_to);
            }
            if ((order.size[0] > 0LL)) {
                for (int64_t t22 = (int64_t)end_at.at[CHECKED(row, COUNT(end_at))], t23 = (int64_t)end_at.at[CHECKED((row + 1LL), COUNT(end_at))]; t22 < t23; t22 += 1) {
                    place = t22;
                    entry = (int64_t)order_at.at[CHECKED(place, COUNT(order_at))];
                    if (((entry_nulls.size[0] > 0LL) && ((int64_t)entry_nulls.at[CHECKED(entry, COUNT(entry_nulls))] != 0))) {
                        continue;
                    }
                    const int64_t t24 = (int64_t)entry_name_at.at[CHECKED(entry, COUNT(entry_name_at))];
                    const int64_t t25 = (int64_t)entry_value_at.at[CHECKED(entry, COUNT(entry_value_at))];
                    name = t24;
                    at = t25;
                    name_size = ((int64_t)entry_name_at.at[CHECKED((entry + 1LL), COUNT(entry_name_at))] - name);
                    size = ((int64_t)entry_value_at.at[CHECKED((entry + 1LL), COUNT(entry_value_at))] - at);
                    cloudevents_columnar_kernels_spans__copy_short(to_names, name_to, flat_bytes_t(table_15), 0LL, 3LL);
                    cloudevents_columnar_kernels_spans__copy_short(to_names, (name_to + 3LL), from_entry_names, name, name_size);
                    cloudevents_columnar_kernels_spans__copy_short(to_values, value_to, from_entry_values, at, size);
                    name_to = (name_to + (name_size + 3LL));
                    value_to = (value_to + size);
                    header = (header + 1LL);
                    name_end_at.at[CHECKED(header, COUNT(name_end_at))] = (int32_t)(name_to);
                    value_end_at.at[CHECKED(header, COUNT(value_end_at))] = (int32_t)(value_to);
                }
            }
        }
        list_end_at.at[CHECKED((row + 1LL), COUNT(list_end_at))] = (int32_t)(header);
    }
}

/* records.kernels.decode_kernels.read_unsigned */
static inline tuple2_t records_kernels_decode_kernels__read_unsigned(bytes_t data, int64_t position, int64_t end) {
    int64_t value = 0;
    int64_t shift = 0;
    int64_t byte = 0;
    value = 0LL;
    shift = 0LL;
    while (((position < end) && (shift < 35LL))) {
        byte = (int64_t)data.at[CHECKED(position, COUNT(data))];
        position = (position + 1LL);
        value = (value | ((byte & 127LL) << shift));
        if ((byte < 128LL)) {
            if ((value > 4294967295LL)) {
                return (tuple2_t){{0LL, (-1LL)}};
            }
            return (tuple2_t){{value, position}};
        }
        shift = (shift + 7LL);
    }
    return (tuple2_t){{0LL, (-1LL)}};
}

/* records.kernels.decode_kernels.read_unsigned_long */
static inline tuple2_t records_kernels_decode_kernels__read_unsigned_long(bytes_t data, int64_t position, int64_t end) {
    int64_t value = 0;
    int64_t shift = 0;
    int64_t byte = 0;
    value = 0LL;
    shift = 0LL;
    while (((position < end) && (shift < 70LL))) {
        byte = (int64_t)data.at[CHECKED(position, COUNT(data))];
        position = (position + 1LL);
        if (((shift == 63LL) && (byte > 1LL))) {
            return (tuple2_t){{0LL, (-1LL)}};
        }
        value = (value | ((byte & 127LL) << shift));
        if ((byte < 128LL)) {
            return (tuple2_t){{value, position}};
        }
        shift = (shift + 7LL);
    }
    return (tuple2_t){{0LL, (-1LL)}};
}

/* records.kernels.decode_kernels.short_unsigned */
static inline tuple2_t records_kernels_decode_kernels__short_unsigned(bytes_t data, int64_t position, int64_t size) {
    int64_t number = 0;
    if (((position + 3LL) > size)) {
        return (tuple2_t){{0LL, ((-1LL) - position)}};
    }
    number = (int64_t)data.at[CHECKED(position, COUNT(data))];
    if ((number < 128LL)) {
        return (tuple2_t){{number, (position + 1LL)}};
    }
    number = ((number & 127LL) | ((int64_t)data.at[CHECKED((position + 1LL), COUNT(data))] << 7LL));
    if ((number < 16384LL)) {
        return (tuple2_t){{number, (position + 2LL)}};
    }
    number = ((number & 16383LL) | ((int64_t)data.at[CHECKED((position + 2LL), COUNT(data))] << 14LL));
    if ((number < 2097152LL)) {
        return (tuple2_t){{number, (position + 3LL)}};
    }
    return (tuple2_t){{0LL, ((-1LL) - position)}};
}

/* records.kernels.decode_kernels.read_int */
static inline int64_t records_kernels_decode_kernels__read_int(bytes_t data, int64_t position, int64_t size) {
    int64_t value = 0;
    int64_t index = 0;
    value = (int64_t)data.at[CHECKED(position, COUNT(data))];
    if ((value > 127LL)) {
        value = (value - 256LL);
    }
    for (int64_t t1 = 1LL, t2 = size; t1 < t2; t1 += 1) {
        index = t1;
        value = ((value << 8LL) | (int64_t)data.at[CHECKED((position + index), COUNT(data))]);
    }
    return value;
}

/* records.kernels.decode_kernels.walk_batches */
static int64_t records_kernels_decode_kernels__walk_batches(bytes_t data, int64_t position, int64_t group_bytes, int64_t first_offset, int64_t end_offset, ints_t table, ints_t state) {
    int64_t size = 0;
    int64_t stop = 0;
    int64_t lines = 0;
    int64_t records = 0;
    int64_t seen = 0;
    int64_t outcome = 0;
    int64_t length = 0;
    int64_t magic = 0;
    int64_t end = 0;
    int64_t base_offset = 0;
    int64_t attributes = 0;
    int64_t last_delta = 0;
    int64_t count = 0;
    int64_t plain = 0;
    int64_t room = 0;
    int64_t last_offset = 0;
    int64_t time_position = 0;
    size = data.size[0];
    stop = (position + group_bytes);
    lines = 0LL;
    records = 0LL;
    seen = 0LL;
    outcome = 0LL;
    while (((lines < table.size[0]) && (position < stop))) {
        if (((position + 17LL) > size)) {
            outcome = 1LL;
            break;
        }
        length = records_kernels_decode_kernels__read_int(data, (position + 8LL), 4LL);
        magic = (int64_t)data.at[CHECKED((position + 16LL), COUNT(data))];
        if ((magic != 2LL)) {
            outcome = ((magic < 2LL) ? 2LL : 4LL);
            break;
        }
        if ((length < (61LL - 12LL))) {
            outcome = 5LL;
            break;
        }
        end = ((position + 12LL) + length);
        if ((end > size)) {
            outcome = 1LL;
            break;
        }
        if ((end > 2147483647LL)) {
            outcome = ((lines > 0LL) ? 0LL : 5LL);
            break;
        }
        base_offset = records_kernels_decode_kernels__read_int(data, position, 8LL);
        if ((base_offset >= end_offset)) {
            state.at[CHECKED(3LL, COUNT(state))] = (int64_t)(base_offset);
            outcome = 1LL;
            break;
        }
        attributes = records_kernels_decode_kernels__read_int(data, (position + 21LL), 2LL);
        last_delta = records_kernels_decode_kernels__read_int(data, (position + 23LL), 4LL);
        count = records_kernels_decode_kernels__read_int(data, (position + 57LL), 4LL);
        plain = ((attributes & 7LL) == 0LL);
        room = ((end - position) - 61LL);
        if (((count < 0LL) || (last_delta < 0LL) || (base_offset < 0LL) || ((plain != 0) && ((count * 7LL) > room)))) {
            outcome = 6LL;
            break;
        }
        last_offset = ((base_offset + last_delta));
        state.at[CHECKED(3LL, COUNT(state))] = (int64_t)(((last_offset + 1LL)));
        if (((count > 0LL) && ((last_offset >= first_offset) || ((attributes & 32LL) != 0)))) {
            table.at[CHECKED((lines) * table.size[1] + 0LL, COUNT(table))] = (int64_t)(position);
            table.at[CHECKED((lines) * table.size[1] + 1LL, COUNT(table))] = (int64_t)((position + 61LL));
            table.at[CHECKED((lines) * table.size[1] + 2LL, COUNT(table))] = (int64_t)(end);
            table.at[CHECKED((lines) * table.size[1] + 3LL, COUNT(table))] = (int64_t)(base_offset);
            table.at[CHECKED((lines) * table.size[1] + 4LL, COUNT(table))] = (int64_t)(last_offset);
            time_position = ((attributes & 8LL) ? 35LL : 27LL);
            table.at[CHECKED((lines) * table.size[1] + 5LL, COUNT(table))] = (int64_t)(records_kernels_decode_kernels__read_int(data, (position + time_position), 8LL));
            table.at[CHECKED((lines) * table.size[1] + 6LL, COUNT(table))] = (int64_t)(count);
            table.at[CHECKED((lines) * table.size[1] + 7LL, COUNT(table))] = (int64_t)(attributes);
            table.at[CHECKED((lines) * table.size[1] + 8LL, COUNT(table))] = (int64_t)(records_kernels_decode_kernels__read_int(data, (position + 43LL), 8LL));
            table.at[CHECKED((lines) * table.size[1] + 9LL, COUNT(table))] = (int64_t)((records_kernels_decode_kernels__read_int(data, (position + 17LL), 4LL) & 4294967295LL));
            lines = (lines + 1LL);
            records = (records + count);
            seen = (seen | attributes);
        }
        position = end;
    }
    state.at[CHECKED(0LL, COUNT(state))] = (int64_t)(position);
    state.at[CHECKED(1LL, COUNT(state))] = (int64_t)(lines);
    state.at[CHECKED(2LL, COUNT(state))] = (int64_t)(records);
    state.at[CHECKED(4LL, COUNT(state))] = (int64_t)(seen);
    return outcome;
}

/* records.kernels.decode_kernels.scan_records */
static int64_t records_kernels_decode_kernels__scan_records(bytes_t data, ints_t table, int64_t lines, int64_t first_offset, int64_t end_offset, ints_t offsets, ints_t timestamps, int32s_t timestamp_types, int32s_t key_at, int32s_t key_ends, int32s_t value_at, int32s_t value_ends, int32s_t headers_at, int32s_t headers_stop, int32s_t header_ends, ints_t state) {
    int64_t size = 0;
    int64_t row = 0;
    int64_t key_bytes = 0;
    int64_t key_nulls = 0;
    int64_t value_bytes = 0;
    int64_t value_nulls = 0;
    int64_t headers = 0;
    int64_t want_offset = 0;
    int64_t want_time = 0;
    int64_t want_type = 0;
    int64_t want_key = 0;
    int64_t want_value = 0;
    int64_t want_headers = 0;
    int64_t line = 0;
    int64_t position = 0;
    int64_t end = 0;
    int64_t base_offset = 0;
    int64_t base_time = 0;
    int64_t append_time = 0;
    int64_t number = 0;
    int64_t record_end = 0;
    int64_t delta = 0;
    int64_t offset = 0;
    int64_t key_position = 0;
    int64_t key_size = 0;
    int64_t value_position = 0;
    int64_t value_size = 0;
    int64_t header_count = 0;
    size = data.size[0];
    row = (int64_t)state.at[CHECKED(0LL, COUNT(state))];
    const int64_t t1 = (int64_t)state.at[CHECKED(1LL, COUNT(state))];
    const int64_t t2 = (int64_t)state.at[CHECKED(2LL, COUNT(state))];
    key_bytes = t1;
    key_nulls = t2;
    const int64_t t3 = (int64_t)state.at[CHECKED(3LL, COUNT(state))];
    const int64_t t4 = (int64_t)state.at[CHECKED(4LL, COUNT(state))];
    value_bytes = t3;
    value_nulls = t4;
    headers = (int64_t)state.at[CHECKED(5LL, COUNT(state))];
    const bool t5 = (offsets.size[0] > 0LL);
    const bool t6 = (timestamps.size[0] > 0LL);
    const bool t7 = (timestamp_types.size[0] > 0LL);
    want_offset = t5;
    want_time = t6;
    want_type = t7;
    const bool t8 = (key_at.size[0] > 0LL);
    const bool t9 = (value_at.size[0] > 0LL);
    const bool t10 = (headers_at.size[0] > 0LL);
    want_key = t8;
    want_value = t9;
    want_headers = t10;
    for (int64_t t11 = 0, t12 = lines; t11 < t12; t11 += 1) {
        line = t11;
        state.at[CHECKED(6LL, COUNT(state))] = (int64_t)(line);
        position = ((int64_t)table.at[CHECKED((line) * table.size[1] + 1LL, COUNT(table))]);
        end = ((int64_t)table.at[CHECKED((line) * table.size[1] + 2LL, COUNT(table))]);
        base_offset = ((int64_t)table.at[CHECKED((line) * table.size[1] + 3LL, COUNT(table))]);
        base_time = ((int64_t)table.at[CHECKED((line) * table.size[1] + 5LL, COUNT(table))]);
        append_time = ((((int64_t)table.at[CHECKED((line) * table.size[1] + 7LL, COUNT(table))]) >> 3LL) & 1LL);
        for (int64_t t13 = 0, t14 = (int64_t)table.at[CHECKED((line) * table.size[1] + 6LL, COUNT(table))]; t13 < t14; t13 += 1) {
            const tuple2_t t15 = records_kernels_decode_kernels__short_unsigned(data, position, size);
            number = t15.part[0];
            position = t15.part[1];
            if ((position < 0LL)) {
                const tuple2_t t16 = records_kernels_decode_kernels__read_unsigned(data, ((-1LL) - position), end);
                number = t16.part[0];
                position = t16.part[1];
            }
            if (((position < 0LL) || ((number & 1LL) != 0) || ((number >> 1LL) > (end - position)))) {
                return 3LL;
            }
            record_end = (position + (number >> 1LL));
            const tuple2_t t17 = records_kernels_decode_kernels__short_unsigned(data, (position + 1LL), size);
            delta = t17.part[0];
            position = t17.part[1];
            if ((position < 0LL)) {
                const tuple2_t t18 = records_kernels_decode_kernels__read_unsigned_long(data, ((-1LL) - position), record_end);
                delta = t18.part[0];
                position = t18.part[1];
            }
            if ((position < 0LL)) {
                return 7LL;
            }
            const tuple2_t t19 = records_kernels_decode_kernels__short_unsigned(data, position, size);
            number = t19.part[0];
            position = t19.part[1];
            if ((position < 0LL)) {
                const tuple2_t t20 = records_kernels_decode_kernels__read_unsigned(data, ((-1LL) - position), record_end);
                number = t20.part[0];
                position = t20.part[1];
            }
            if ((position < 0LL)) {
                return 7LL;
            }
            offset = ((base_offset + ((number >> 1LL) ^ (-(number & 1LL)))));
            const tuple2_t t21 = records_kernels_decode_kernels__short_unsigned(data, position, size);
            number = t21.part[0];
            position = t21.part[1];
            if ((position < 0LL)) {
                const tuple2_t t22 = records_kernels_decode_kernels__read_unsigned(data, ((-1LL) - position), record_end);
                number = t22.part[0];
                position = t22.part[1];
            }
            if ((position < 0LL)) {
                return 7LL;
            }
            const int64_t t23 = (-1LL);
            const int64_t t24 = 0LL;
            key_position = t23;
            key_size = t24;
            if ((!(number & 1LL))) {
                const int64_t t25 = position;
                const int64_t t26 = (number >> 1LL);
                key_position = t25;
                key_size = t26;
                if ((key_size > (record_end - position))) {
                    return 7LL;
                }
                position = (position + key_size);
            }
            const tuple2_t t27 = records_kernels_decode_kernels__short_unsigned(data, position, size);
            number = t27.part[0];
            position = t27.part[1];
            if ((position < 0LL)) {
                const tuple2_t t28 = records_kernels_decode_kernels__read_unsigned(data, ((-1LL) - position), record_end);
                number = t28.part[0];
                position = t28.part[1];
            }
            if ((position < 0LL)) {
                return 7LL;
            }
            const int64_t t29 = (-1LL);
            const int64_t t30 = 0LL;
            value_position = t29;
            value_size = t30;
            if ((!(number & 1LL))) {
                const int64_t t31 = position;
                const int64_t t32 = (number >> 1LL);
                value_position = t31;
                value_size = t32;
                if ((value_size > (record_end - position))) {
                    return 7LL;
                }
                position = (position + value_size);
            }
            if ((position >= record_end)) {
                return 7LL;
            }
            header_count = (int64_t)data.at[CHECKED(position, COUNT(data))];
            if ((header_count == 0LL)) {
                position = (position + 1LL);
                if ((position != record_end)) {
                    return 8LL;
                }
            } else {
                if ((want_headers != 0)) {
                    const tuple2_t t33 = records_kernels_decode_kernels__read_unsigned(data, position, record_end);
                    number = t33.part[0];
                    position = t33.part[1];
                    header_count = (number >> 1LL);
                    if (((position < 0LL) || ((number & 1LL) != 0) || (header_count > ((record_end - position) >> 1LL)))) {
                        return 9LL;
                    }
                }
            }
            if (((offset >= first_offset) && (offset < end_offset))) {
                if ((want_offset != 0)) {
                    offsets.at[CHECKED(row, COUNT(offsets))] = (int64_t)(offset);
                }
                if ((want_time != 0)) {
                    if ((append_time != 0)) {
                        timestamps.at[CHECKED(row, COUNT(timestamps))] = (int64_t)(base_time);
                    } else {
                        timestamps.at[CHECKED(row, COUNT(timestamps))] = (int64_t)(((base_time + (((delta >> 1LL) & 9223372036854775807LL) ^ (-(delta & 1LL))))));
                    }
                }
                if ((want_type != 0)) {
                    timestamp_types.at[CHECKED(row, COUNT(timestamp_types))] = (int32_t)(append_time);
                }
                if ((want_key != 0)) {
                    key_at.at[CHECKED(row, COUNT(key_at))] = (int32_t)(key_position);
                    key_bytes = (key_bytes + key_size);
                    key_nulls = (key_nulls + (key_position < 0LL));
                    key_ends.at[CHECKED((row + 1LL), COUNT(key_ends))] = (int32_t)(key_bytes);
                }
                if ((want_value != 0)) {
                    value_at.at[CHECKED(row, COUNT(value_at))] = (int32_t)(value_position);
                    value_bytes = (value_bytes + value_size);
                    value_nulls = (value_nulls + (value_position < 0LL));
                    value_ends.at[CHECKED((row + 1LL), COUNT(value_ends))] = (int32_t)(value_bytes);
                }
                if ((want_headers != 0)) {
                    headers_at.at[CHECKED(row, COUNT(headers_at))] = (int32_t)(position);
                    headers_stop.at[CHECKED(row, COUNT(headers_stop))] = (int32_t)(record_end);
                    headers = (headers + header_count);
                    header_ends.at[CHECKED((row + 1LL), COUNT(header_ends))] = (int32_t)(headers);
                }
                row = (row + 1LL);
            }
            position = record_end;
        }
        if ((position != end)) {
            return 8LL;
        }
    }
    state.at[CHECKED(0LL, COUNT(state))] = (int64_t)(row);
    const int64_t t34 = key_bytes;
    const int64_t t35 = key_nulls;
    state.at[CHECKED(1LL, COUNT(state))] = (int64_t)(t34);
    state.at[CHECKED(2LL, COUNT(state))] = (int64_t)(t35);
    const int64_t t36 = value_bytes;
    const int64_t t37 = value_nulls;
    state.at[CHECKED(3LL, COUNT(state))] = (int64_t)(t36);
    state.at[CHECKED(4LL, COUNT(state))] = (int64_t)(t37);
    state.at[CHECKED(5LL, COUNT(state))] = (int64_t)(headers);
    return 0LL;
}

/* records.kernels.decode_kernels.scan_messages */
static int64_t records_kernels_decode_kernels__scan_messages(bytes_t data, ints_t table, int64_t lines, int64_t first_offset, int64_t end_offset, ints_t offsets, ints_t timestamps, int32s_t timestamp_types, int32s_t key_at, int32s_t key_ends, int32s_t value_at, int32s_t value_ends, int32s_t headers_at, int32s_t headers_stop, int32s_t header_ends, ints_t state) {
    int64_t row = 0;
    int64_t key_bytes = 0;
    int64_t key_nulls = 0;
    int64_t value_bytes = 0;
    int64_t value_nulls = 0;
    int64_t line = 0;
    int64_t position = 0;
    int64_t end = 0;
    int64_t length = 0;
    int64_t message_end = 0;
    int64_t offset = 0;
    int64_t magic = 0;
    int64_t attributes = 0;
    int64_t time = 0;
    int64_t time_type = 0;
    int64_t key_size = 0;
    int64_t key_position = 0;
    int64_t value_size = 0;
    int64_t value_position = 0;
    row = (int64_t)state.at[CHECKED(0LL, COUNT(state))];
    const int64_t t1 = (int64_t)state.at[CHECKED(1LL, COUNT(state))];
    const int64_t t2 = (int64_t)state.at[CHECKED(2LL, COUNT(state))];
    key_bytes = t1;
    key_nulls = t2;
    const int64_t t3 = (int64_t)state.at[CHECKED(3LL, COUNT(state))];
    const int64_t t4 = (int64_t)state.at[CHECKED(4LL, COUNT(state))];
    value_bytes = t3;
    value_nulls = t4;
    for (int64_t t5 = 0, t6 = lines; t5 < t6; t5 += 1) {
        line = t5;
        state.at[CHECKED(6LL, COUNT(state))] = (int64_t)(line);
        position = ((int64_t)table.at[CHECKED((line) * table.size[1] + 1LL, COUNT(table))]);
        end = ((int64_t)table.at[CHECKED((line) * table.size[1] + 2LL, COUNT(table))]);
        while ((position < end)) {
            if (((end - position) < (12LL + 14LL))) {
                return 3LL;
            }
            length = records_kernels_decode_kernels__read_int(data, (position + 8LL), 4LL);
            if (((length < 14LL) || (length > ((end - position) - 12LL)))) {
                return 5LL;
            }
            message_end = ((position + 12LL) + length);
            offset = ((records_kernels_decode_kernels__read_int(data, position, 8LL) + ((int64_t)table.at[CHECKED((line) * table.size[1] + 3LL, COUNT(table))])));
            magic = (int64_t)data.at[CHECKED((position + 16LL), COUNT(data))];
            attributes = (int64_t)data.at[CHECKED((position + 17LL), COUNT(data))];
            if (((magic > 1LL) || (((int64_t)table.at[CHECKED((line) * table.size[1] + 8LL, COUNT(table))] >= 0LL) && (magic != (int64_t)table.at[CHECKED((line) * table.size[1] + 8LL, COUNT(table))])))) {
                return 4LL;
            }
            if ((((attributes & 7LL) != 0LL) || ((magic == 1LL) && (length < (14LL + 8LL))))) {
                return 7LL;
            }
            position = (position + (17LL + 1LL));
            const int64_t t7 = (-1LL);
            const int64_t t8 = (-1LL);
            time = t7;
            time_type = t8;
            if ((magic == 1LL)) {
                const int64_t t9 = records_kernels_decode_kernels__read_int(data, position, 8LL);
                const int64_t t10 = ((attributes >> 3LL) & 1LL);
                time = t9;
                time_type = t10;
                position = (position + 8LL);
                if ((((int64_t)table.at[CHECKED((line) * table.size[1] + 7LL, COUNT(table))] & 8LL) != 0)) {
                    const int64_t t11 = (int64_t)table.at[CHECKED((line) * table.size[1] + 5LL, COUNT(table))];
                    const int64_t t12 = 1LL;
                    time = t11;
                    time_type = t12;
                }
            }
            key_size = records_kernels_decode_kernels__read_int(data, position, 4LL);
            position = (position + 4LL);
            if ((key_size > ((message_end - position) - 4LL))) {
                return 7LL;
            }
            key_position = (-1LL);
            if ((key_size >= 0LL)) {
                key_position = position;
                position = (position + key_size);
            }
            key_size = max_of(key_size, 0LL);
            value_size = records_kernels_decode_kernels__read_int(data, position, 4LL);
            position = (position + 4LL);
            if ((value_size > (message_end - position))) {
                return 7LL;
            }
            value_position = (-1LL);
            if ((value_size >= 0LL)) {
                value_position = position;
                position = (position + value_size);
            }
            value_size = max_of(value_size, 0LL);
            if ((position != message_end)) {
                return 8LL;
            }
            if (((offset >= first_offset) && (offset < end_offset))) {
                if ((offsets.size[0] > 0LL)) {
                    offsets.at[CHECKED(row, COUNT(offsets))] = (int64_t)(offset);
                }
                if ((timestamps.size[0] > 0LL)) {
                    timestamps.at[CHECKED(row, COUNT(timestamps))] = (int64_t)(time);
                }
                if ((timestamp_types.size[0] > 0LL)) {
                    timestamp_types.at[CHECKED(row, COUNT(timestamp_types))] = (int32_t)(time_type);
                }
                if ((key_at.size[0] > 0LL)) {
                    key_at.at[CHECKED(row, COUNT(key_at))] = (int32_t)(key_position);
                    key_bytes = (key_bytes + key_size);
                    key_nulls = (key_nulls + (key_position < 0LL));
                    key_ends.at[CHECKED((row + 1LL), COUNT(key_ends))] = (int32_t)(key_bytes);
                }
                if ((value_at.size[0] > 0LL)) {
                    value_at.at[CHECKED(row, COUNT(value_at))] = (int32_t)(value_position);
                    value_bytes = (value_bytes + value_size);
                    value_nulls = (value_nulls + (value_position < 0LL));
                    value_ends.at[CHECKED((row + 1LL), COUNT(value_ends))] = (int32_t)(value_bytes);
                }
                if ((headers_at.size[0] > 0LL)) {
                    headers_at.at[CHECKED(row, COUNT(headers_at))] = (int32_t)(0LL);
                    headers_stop.at[CHECKED(row, COUNT(headers_stop))] = (int32_t)(0LL);
                    header_ends.at[CHECKED((row + 1LL), COUNT(header_ends))] = (int32_t)((int64_t)state.at[CHECKED(5LL, COUNT(state))]);
                }
                row = (row + 1LL);
            }
        }
    }
    state.at[CHECKED(0LL, COUNT(state))] = (int64_t)(row);
    const int64_t t13 = key_bytes;
    const int64_t t14 = key_nulls;
    state.at[CHECKED(1LL, COUNT(state))] = (int64_t)(t13);
    state.at[CHECKED(2LL, COUNT(state))] = (int64_t)(t14);
    const int64_t t15 = value_bytes;
    const int64_t t16 = value_nulls;
    state.at[CHECKED(3LL, COUNT(state))] = (int64_t)(t15);
    state.at[CHECKED(4LL, COUNT(state))] = (int64_t)(t16);
    return 0LL;
}

/* records.kernels.decode_kernels.scan_headers */
static inline int64_t records_kernels_decode_kernels__scan_headers(bytes_t data, int32s_t headers_at, int32s_t headers_stop, int32s_t header_ends, int64_t first_row, int64_t end_row, int32s_t name_at, int32s_t name_ends, int32s_t value_at, int32s_t value_ends, ints_t state) {
    int64_t name_bytes = 0;
    int64_t value_bytes = 0;
    int64_t nulls = 0;
    int64_t size = 0;
    int64_t row = 0;
    int64_t position = 0;
    int64_t stop = 0;
    int64_t first = 0;
    int64_t last = 0;
    int64_t header = 0;
    int64_t number = 0;
    const int64_t t1 = (int64_t)state.at[CHECKED(7LL, COUNT(state))];
    const int64_t t2 = (int64_t)state.at[CHECKED(8LL, COUNT(state))];
    const int64_t t3 = (int64_t)state.at[CHECKED(9LL, COUNT(state))];
    name_bytes = t1;
    value_bytes = t2;
    nulls = t3;
    size = data.size[0];
    for (int64_t t4 = first_row, t5 = end_row; t4 < t5; t4 += 1) {
        row = t4;
        position = ((int64_t)headers_at.at[CHECKED(row, COUNT(headers_at))]);
        stop = ((int64_t)headers_stop.at[CHECKED(row, COUNT(headers_stop))]);
        const int64_t t6 = (int64_t)header_ends.at[CHECKED(row, COUNT(header_ends))];
        const int64_t t7 = (int64_t)header_ends.at[CHECKED((row + 1LL), COUNT(header_ends))];
        first = t6;
        last = t7;
        for (int64_t t8 = first, t9 = last; t8 < t9; t8 += 1) {
            header = t8;
            const tuple2_t t10 = records_kernels_decode_kernels__short_unsigned(data, position, size);
            number = t10.part[0];
            position = t10.part[1];
            if ((position < 0LL)) {
                const tuple2_t t11 = records_kernels_decode_kernels__read_unsigned(data, ((-1LL) - position), stop);
                number = t11.part[0];
                position = t11.part[1];
            }
            if (((position < 0LL) || ((number & 1LL) != 0) || ((number >> 1LL) > (stop - position)))) {
                return 9LL;
            }
            name_at.at[CHECKED(header, COUNT(name_at))] = (int32_t)(position);
            name_bytes = (name_bytes + (number >> 1LL));
            name_ends.at[CHECKED((header + 1LL), COUNT(name_ends))] = (int32_t)(name_bytes);
            const tuple2_t t12 = records_kernels_decode_kernels__short_unsigned(data, (position + (number >> 1LL)), size);
            number = t12.part[0];
            position = t12.part[1];
            if ((position < 0LL)) {
                const tuple2_t t13 = records_kernels_decode_kernels__read_unsigned(data, ((-1LL) - position), stop);
                number = t13.part[0];
                position = t13.part[1];
            }
            if (((position < 0LL) || (position > stop))) {
                return 9LL;
            }
            value_at.at[CHECKED(header, COUNT(value_at))] = (int32_t)((-1LL));
            if (((number & 1LL) != 0)) {
                nulls = (nulls + 1LL);
            } else {
                if (((number >> 1LL) > (stop - position))) {
                    return 9LL;
                }
                value_at.at[CHECKED(header, COUNT(value_at))] = (int32_t)(position);
                value_bytes = (value_bytes + (number >> 1LL));
                position = (position + (number >> 1LL));
            }
            value_ends.at[CHECKED((header + 1LL), COUNT(value_ends))] = (int32_t)(value_bytes);
        }
        if (((last > first) && (position != stop))) {
            return 8LL;
        }
    }
    const int64_t t14 = name_bytes;
    const int64_t t15 = value_bytes;
    const int64_t t16 = nulls;
    state.at[CHECKED(7LL, COUNT(state))] = (int64_t)(t14);
    state.at[CHECKED(8LL, COUNT(state))] = (int64_t)(t15);
    state.at[CHECKED(9LL, COUNT(state))] = (int64_t)(t16);
    return 0LL;
}

/* records.kernels.decode_kernels.gather */
static inline void records_kernels_decode_kernels__gather(bytes_t data, int32s_t at, int32s_t ends, int64_t first, int64_t last, bytes_t target) {
    int64_t entry = 0;
    int64_t position = 0;
    int64_t begin = 0;
    for (int64_t t1 = first, t2 = last; t1 < t2; t1 += 1) {
        entry = t1;
        position = ((int64_t)at.at[CHECKED(entry, COUNT(at))]);
        if ((position >= 0LL)) {
            begin = ((int64_t)ends.at[CHECKED(entry, COUNT(ends))]);
            copy_bytes(target, begin, data, position, (((int64_t)ends.at[CHECKED((entry + 1LL), COUNT(ends))]) - begin));
        }
    }
}

/* records.kernels.encode_kernels.varint_size */
static inline int64_t records_kernels_encode_kernels__varint_size(int64_t number) {
    int64_t rest = 0;
    int64_t size = 0;
    rest = ((number << 1LL) ^ (number >> 63LL));
    size = 1LL;
    while (((rest & (-128LL)) != 0)) {
        rest = ((rest >> 7LL) & 144115188075855871LL);
        size = (size + 1LL);
    }
    return size;
}

/* records.kernels.encode_kernels.put_varint */
static inline int64_t records_kernels_encode_kernels__put_varint(bytes_t target, int64_t position, int64_t number) {
    int64_t rest = 0;
    rest = ((number << 1LL) ^ (number >> 63LL));
    while (((rest & (-128LL)) != 0)) {
        target.at[CHECKED(position, COUNT(target))] = (uint8_t)(((rest & 127LL) | 128LL));
        rest = ((rest >> 7LL) & 144115188075855871LL);
        position = (position + 1LL);
    }
    target.at[CHECKED(position, COUNT(target))] = (uint8_t)(rest);
    return (position + 1LL);
}

/* records.kernels.encode_kernels.bit_at */
static inline int64_t records_kernels_encode_kernels__bit_at(bytes_t bitmap, int64_t bit) {
    return (((int64_t)bitmap.at[CHECKED((bit >> 3LL), COUNT(bitmap))] >> (bit & 7LL)) & 1LL);
}

/* records.kernels.encode_kernels.plan_batches */
static int64_t records_kernels_encode_kernels__plan_batches(ints_t rows, int64_t row_count, int64_t batch_bytes_max, ints_t timestamps, int32s_t key_ends, bytes_t key_validity, int64_t key_validity_offset, int32s_t value_ends, bytes_t value_validity, int64_t value_validity_offset, int32s_t header_ends, int32s_t name_ends, int32s_t content_ends, bytes_t content_validity, int64_t content_validity_offset, int32s_t bodies, ints_t table, ints_t state) {
    int64_t has_key = 0;
    int64_t all_keys = 0;
    int64_t has_value = 0;
    int64_t all_values = 0;
    int64_t no_headers = 0;
    int64_t all_contents = 0;
    int64_t all_rows = 0;
    int64_t index = 0;
    int64_t lines = 0;
    int64_t first = 0;
    int64_t used = 0;
    int64_t base = 0;
    int64_t greatest = 0;
    int64_t row = 0;
    int64_t timestamp = 0;
    int64_t key_size = 0;
    int64_t value_size = 0;
    int64_t fixed = 0;
    int64_t begin = 0;
    int64_t end = 0;
    int64_t header = 0;
    int64_t size = 0;
    int64_t body = 0;
    const bool t1 = (key_ends.size[0] > 0LL);
    const bool t2 = (key_validity.size[0] == 0LL);
    has_key = t1;
    all_keys = t2;
    const bool t3 = (value_ends.size[0] > 0LL);
    const bool t4 = (value_validity.size[0] == 0LL);
    has_value = t3;
    all_values = t4;
    const bool t5 = (header_ends.size[0] == 0LL);
    const bool t6 = (content_validity.size[0] == 0LL);
    no_headers = t5;
    all_contents = t6;
    all_rows = (rows.size[0] == 0LL);
    index = ((int64_t)state.at[CHECKED(0LL, COUNT(state))]);
    lines = 0LL;
    first = index;
    used = 0LL;
    base = 0LL;
    greatest = 0LL;
    while ((index < row_count)) {
        row = index;
        if ((!all_rows)) {
            row = ((int64_t)rows.at[CHECKED(index, COUNT(rows))]);
        }
        timestamp = ((int64_t)timestamps.at[CHECKED(row, COUNT(timestamps))]);
        key_size = (-1LL);
        if (((has_key != 0) && ((all_keys != 0) || (records_kernels_encode_kernels__bit_at(key_validity, (row + key_validity_offset)) != 0)))) {
            key_size = (((int64_t)key_ends.at[CHECKED((row + 1LL), COUNT(key_ends))]) - ((int64_t)key_ends.at[CHECKED(row, COUNT(key_ends))]));
        }
        value_size = (-1LL);
        if (((has_value != 0) && ((all_values != 0) || (records_kernels_encode_kernels__bit_at(value_validity, (row + value_validity_offset)) != 0)))) {
            value_size = (((int64_t)value_ends.at[CHECKED((row + 1LL), COUNT(value_ends))]) - ((int64_t)value_ends.at[CHECKED(row, COUNT(value_ends))]));
        }
        fixed = ((((1LL + records_kernels_encode_kernels__varint_size(key_size)) + max_of(key_size, 0LL)) + records_kernels_encode_kernels__varint_size(value_size)) + max_of(value_size, 0LL));
        if ((no_headers != 0)) {
            fixed = (fixed + 1LL);
        } else {
            const int64_t t7 = ((int64_t)header_ends.at[CHECKED(row, COUNT(header_ends))]);
            const int64_t t8 = ((int64_t)header_ends.at[CHECKED((row + 1LL), COUNT(header_ends))]);
            begin = t7;
            end = t8;
            fixed = (fixed + records_kernels_encode_kernels__varint_size((end - begin)));
            for (int64_t t9 = begin, t10 = end; t9 < t10; t9 += 1) {
                header = t9;
                size = (((int64_t)name_ends.at[CHECKED((header + 1LL), COUNT(name_ends))]) - ((int64_t)name_ends.at[CHECKED(header, COUNT(name_ends))]));
                fixed = (fixed + (records_kernels_encode_kernels__varint_size(size) + size));
                size = (-1LL);
                if (((all_contents != 0) || (records_kernels_encode_kernels__bit_at(content_validity, (header + content_validity_offset)) != 0))) {
                    size = (((int64_t)content_ends.at[CHECKED((header + 1LL), COUNT(content_ends))]) - ((int64_t)content_ends.at[CHECKED(header, COUNT(content_ends))]));
                }
                fixed = (fixed + (records_kernels_encode_kernels__varint_size(size) + max_of(size, 0LL)));
            }
        }
        if ((fixed > 2147482624LL)) {
            return row;
        }
        if ((index == first)) {
            const int64_t t11 = timestamp;
            const int64_t t12 = timestamp;
            base = t11;
            greatest = t12;
        }
        body = ((fixed + records_kernels_encode_kernels__varint_size(((timestamp - base)))) + records_kernels_encode_kernels__varint_size((index - first)));
        size = (body + records_kernels_encode_kernels__varint_size(body));
        if (((index > first) && (((61LL + used) + size) > batch_bytes_max))) {
            table.at[CHECKED((lines) * table.size[1] + 0LL, COUNT(table))] = (int64_t)(first);
            table.at[CHECKED((lines) * table.size[1] + 1LL, COUNT(table))] = (int64_t)((index - first));
            table.at[CHECKED((lines) * table.size[1] + 2LL, COUNT(table))] = (int64_t)(used);
            table.at[CHECKED((lines) * table.size[1] + 3LL, COUNT(table))] = (int64_t)(base);
            table.at[CHECKED((lines) * table.size[1] + 4LL, COUNT(table))] = (int64_t)(greatest);
            lines = (lines + 1LL);
            first = index;
            used = 0LL;
            if ((lines == table.size[0])) {
                break;
            }
            const int64_t t13 = timestamp;
            const int64_t t14 = timestamp;
            base = t13;
            greatest = t14;
            body = (fixed + 2LL);
            size = (body + records_kernels_encode_kernels__varint_size(body));
        }
        bodies.at[CHECKED(index, COUNT(bodies))] = (int32_t)(body);
        used = (used + size);
        greatest = max_of(greatest, timestamp);
        index = (index + 1LL);
    }
    if ((index > first)) {
        table.at[CHECKED((lines) * table.size[1] + 0LL, COUNT(table))] = (int64_t)(first);
        table.at[CHECKED((lines) * table.size[1] + 1LL, COUNT(table))] = (int64_t)((index - first));
        table.at[CHECKED((lines) * table.size[1] + 2LL, COUNT(table))] = (int64_t)(used);
        table.at[CHECKED((lines) * table.size[1] + 3LL, COUNT(table))] = (int64_t)(base);
        table.at[CHECKED((lines) * table.size[1] + 4LL, COUNT(table))] = (int64_t)(greatest);
        lines = (lines + 1LL);
        first = index;
    }
    state.at[CHECKED(0LL, COUNT(state))] = (int64_t)(first);
    state.at[CHECKED(1LL, COUNT(state))] = (int64_t)(lines);
    return (-1LL);
}

/* records.kernels.encode_kernels.write_batches */
static int64_t records_kernels_encode_kernels__write_batches(bytes_t target, int64_t position, ints_t table, int64_t lines, ints_t rows, int32s_t bodies, ints_t timestamps, bytes_t key_data, int32s_t key_ends, bytes_t key_validity, int64_t key_validity_offset, bytes_t value_data, int32s_t value_ends, bytes_t value_validity, int64_t value_validity_offset, int32s_t header_ends, bytes_t name_data, int32s_t name_ends, bytes_t content_data, int32s_t content_ends, bytes_t content_validity, int64_t content_validity_offset) {
    int64_t has_key = 0;
    int64_t all_keys = 0;
    int64_t has_value = 0;
    int64_t all_values = 0;
    int64_t no_headers = 0;
    int64_t all_contents = 0;
    int64_t all_rows = 0;
    int64_t line = 0;
    int64_t first = 0;
    int64_t base = 0;
    int64_t index = 0;
    int64_t row = 0;
    int64_t size = 0;
    int64_t begin = 0;
    int64_t end = 0;
    int64_t header = 0;
    const bool t1 = (key_ends.size[0] > 0LL);
    const bool t2 = (key_validity.size[0] == 0LL);
    has_key = t1;
    all_keys = t2;
    const bool t3 = (value_ends.size[0] > 0LL);
    const bool t4 = (value_validity.size[0] == 0LL);
    has_value = t3;
    all_values = t4;
    const bool t5 = (header_ends.size[0] == 0LL);
    const bool t6 = (content_validity.size[0] == 0LL);
    no_headers = t5;
    all_contents = t6;
    all_rows = (rows.size[0] == 0LL);
    for (int64_t t7 = 0, t8 = lines; t7 < t8; t7 += 1) {
        line = t7;
        position = (position + 61LL);
        first = ((int64_t)table.at[CHECKED((line) * table.size[1] + 0LL, COUNT(table))]);
        base = ((int64_t)table.at[CHECKED((line) * table.size[1] + 3LL, COUNT(table))]);
        for (int64_t t9 = first, t10 = (first + ((int64_t)table.at[CHECKED((line) * table.size[1] + 1LL, COUNT(table))])); t9 < t10; t9 += 1) {
            index = t9;
            row = index;
            if ((!all_rows)) {
                row = ((int64_t)rows.at[CHECKED(index, COUNT(rows))]);
            }
            position = records_kernels_encode_kernels__put_varint(target, position, ((int64_t)bodies.at[CHECKED(index, COUNT(bodies))]));
            target.at[CHECKED(position, COUNT(target))] = (uint8_t)(0LL);
            position = records_kernels_encode_kernels__put_varint(target, (position + 1LL), ((((int64_t)timestamps.at[CHECKED(row, COUNT(timestamps))]) - base)));
            position = records_kernels_encode_kernels__put_varint(target, position, (index - first));
            size = (-1LL);
            if (((has_key != 0) && ((all_keys != 0) || (records_kernels_encode_kernels__bit_at(key_validity, (row + key_validity_offset)) != 0)))) {
                size = (((int64_t)key_ends.at[CHECKED((row + 1LL), COUNT(key_ends))]) - ((int64_t)key_ends.at[CHECKED(row, COUNT(key_ends))]));
            }
            position = records_kernels_encode_kernels__put_varint(target, position, size);
            if ((size > 0LL)) {
                copy_bytes(target, position, key_data, ((int64_t)key_ends.at[CHECKED(row, COUNT(key_ends))]), size);
                position = (position + size);
            }
            size = (-1LL);
            if (((has_value != 0) && ((all_values != 0) || (records_kernels_encode_kernels__bit_at(value_validity, (row + value_validity_offset)) != 0)))) {
                size = (((int64_t)value_ends.at[CHECKED((row + 1LL), COUNT(value_ends))]) - ((int64_t)value_ends.at[CHECKED(row, COUNT(value_ends))]));
            }
            position = records_kernels_encode_kernels__put_varint(target, position, size);
            if ((size > 0LL)) {
                copy_bytes(target, position, value_data, ((int64_t)value_ends.at[CHECKED(row, COUNT(value_ends))]), size);
                position = (position + size);
            }
            if ((no_headers != 0)) {
                target.at[CHECKED(position, COUNT(target))] = (uint8_t)(0LL);
                position = (position + 1LL);
            } else {
                const int64_t t11 = ((int64_t)header_ends.at[CHECKED(row, COUNT(header_ends))]);
                const int64_t t12 = ((int64_t)header_ends.at[CHECKED((row + 1LL), COUNT(header_ends))]);
                begin = t11;
                end = t12;
                position = records_kernels_encode_kernels__put_varint(target, position, (end - begin));
                for (int64_t t13 = begin, t14 = end; t13 < t14; t13 += 1) {
                    header = t13;
                    size = (((int64_t)name_ends.at[CHECKED((header + 1LL), COUNT(name_ends))]) - ((int64_t)name_ends.at[CHECKED(header, COUNT(name_ends))]));
                    position = records_kernels_encode_kernels__put_varint(target, position, size);
                    copy_bytes(target, position, name_data, ((int64_t)name_ends.at[CHECKED(header, COUNT(name_ends))]), size);
                    position = (position + size);
                    size = (-1LL);
                    if (((all_contents != 0) || (records_kernels_encode_kernels__bit_at(content_validity, (header + content_validity_offset)) != 0))) {
                        size = (((int64_t)content_ends.at[CHECKED((header + 1LL), COUNT(content_ends))]) - ((int64_t)content_ends.at[CHECKED(header, COUNT(content_ends))]));
                    }
                    position = records_kernels_encode_kernels__put_varint(target, position, size);
                    if ((size > 0LL)) {
                        copy_bytes(target, position, content_data, ((int64_t)content_ends.at[CHECKED(header, COUNT(content_ends))]), size);
                        position = (position + size);
                    }
                }
            }
        }
    }
    return position;
}

/* records.kernels.json_kernels.put_number */
static inline int64_t records_kernels_json_kernels__put_number(bytes_t target, int64_t at, int64_t number) {
    int64_t size = 0;
    int64_t rest = 0;
    int64_t position = 0;
    if ((number < 0LL)) {
        target.at[CHECKED(at, COUNT(target))] = (uint8_t)(45LL);
        at = (at + 1LL);
        if ((number == INT64_MIN)) {
            target.at[CHECKED(at, COUNT(target))] = (uint8_t)(57LL);
            at = (at + 1LL);
            number = 223372036854775808LL;
        } else {
            number = (-number);
        }
    }
    size = 1LL;
    rest = floor_quotient(number, 10LL);
    while ((rest != 0)) {
        rest = floor_quotient(rest, 10LL);
        size = (size + 1LL);
    }
    position = (at + size);
    while ((position > at)) {
        position = (position - 1LL);
        target.at[CHECKED(position, COUNT(target))] = (uint8_t)((48LL + floor_remainder(number, 10LL)));
        number = floor_quotient(number, 10LL);
    }
    return (at + size);
}

/* records.kernels.json_kernels.sequence_size */
static inline int64_t records_kernels_json_kernels__sequence_size(bytes_t data, int64_t at, int64_t end) {
    int64_t lead = 0;
    int64_t low = 0;
    int64_t high = 0;
    int64_t size = 0;
    int64_t index = 0;
    int64_t following = 0;
    lead = (int64_t)data.at[CHECKED(at, COUNT(data))];
    const int64_t t1 = 128LL;
    const int64_t t2 = 191LL;
    low = t1;
    high = t2;
    if (((194LL <= lead) && (lead <= 223LL))) {
        size = 2LL;
    } else {
        if (((224LL <= lead) && (lead <= 239LL))) {
            size = 3LL;
            if ((lead == 224LL)) {
                low = 160LL;
            } else {
                if ((lead == 237LL)) {
                    high = 159LL;
                }
            }
        } else {
            if (((240LL <= lead) && (lead <= 244LL))) {
                size = 4LL;
                if ((lead == 240LL)) {
                    low = 144LL;
                } else {
                    if ((lead == 244LL)) {
                        high = 143LL;
                    }
                }
            } else {
                return (-1LL);
            }
        }
    }
    for (int64_t t3 = 1LL, t4 = size; t3 < t4; t3 += 1) {
        index = t3;
        if (((at + index) >= end)) {
            return (-index);
        }
        following = (int64_t)data.at[CHECKED((at + index), COUNT(data))];
        if (((following < low) || (following > high))) {
            return (-index);
        }
        const int64_t t5 = 128LL;
        const int64_t t6 = 191LL;
        low = t5;
        high = t6;
    }
    return size;
}

/* records.kernels.json_kernels.put_text */
static int64_t records_kernels_json_kernels__put_text(bytes_t target, int64_t at, bytes_t data, int64_t begin, int64_t end) {
    int64_t is_exact = 0;
    int64_t position = 0;
    int64_t start = 0;
    int64_t kind = 0;
    int64_t found = 0;
    int64_t size = 0;
    int64_t index = 0;
    is_exact = 1LL;
    target.at[CHECKED(at, COUNT(target))] = (uint8_t)(34LL);
    at = (at + 1LL);
    position = begin;
    while ((position < end)) {
        start = position;
        kind = 0LL;
        while ((position < end)) {
            kind = (int64_t)table_16.at[CHECKED((int64_t)data.at[CHECKED(position, COUNT(data))], COUNT(table_16))];
            if ((kind != 0LL)) {
                break;
            }
            position = (position + 1LL);
        }
        if ((position > start)) {
            copy_bytes(target, at, data, start, (position - start));
            at = (at + (position - start));
        }
        if ((position == end)) {
            break;
        }
        found = (int64_t)data.at[CHECKED(position, COUNT(data))];
        if ((kind == 3LL)) {
            size = records_kernels_json_kernels__sequence_size(data, position, end);
            if ((size > 0LL)) {
                for (int64_t t1 = 0, t2 = size; t1 < t2; t1 += 1) {
                    index = t1;
                    target.at[CHECKED((at + index), COUNT(target))] = (uint8_t)((int64_t)data.at[CHECKED((position + index), COUNT(data))]);
                }
                at = (at + size);
                position = (position + size);
            } else {
                is_exact = 0LL;
                target.at[CHECKED(at, COUNT(target))] = (uint8_t)(239LL);
                target.at[CHECKED((at + 1LL), COUNT(target))] = (uint8_t)(191LL);
                target.at[CHECKED((at + 2LL), COUNT(target))] = (uint8_t)(189LL);
                at = (at + 3LL);
                position = (position - size);
            }
            continue;
        }
        target.at[CHECKED(at, COUNT(target))] = (uint8_t)(92LL);
        if ((kind == 1LL)) {
            target.at[CHECKED((at + 1LL), COUNT(target))] = (uint8_t)((int64_t)table_16.at[CHECKED((256LL + found), COUNT(table_16))]);
            at = (at + 2LL);
        } else {
            target.at[CHECKED((at + 1LL), COUNT(target))] = (uint8_t)(117LL);
            target.at[CHECKED((at + 2LL), COUNT(target))] = (uint8_t)(48LL);
            target.at[CHECKED((at + 3LL), COUNT(target))] = (uint8_t)(48LL);
            target.at[CHECKED((at + 4LL), COUNT(target))] = (uint8_t)((int64_t)table_17.at[CHECKED((found >> 4LL), COUNT(table_17))]);
            target.at[CHECKED((at + 5LL), COUNT(target))] = (uint8_t)((int64_t)table_17.at[CHECKED((found & 15LL), COUNT(table_17))]);
            at = (at + 6LL);
        }
        position = (position + 1LL);
    }
    target.at[CHECKED(at, COUNT(target))] = (uint8_t)(34LL);
    at = (at + 1LL);
    return (is_exact ? at : (-at));
}

/* records.kernels.json_kernels.put_base64 */
static inline int64_t records_kernels_json_kernels__put_base64(bytes_t target, int64_t at, bytes_t data, int64_t begin, int64_t end) {
    int64_t position = 0;
    int64_t left = 0;
    int64_t bits = 0;
    target.at[CHECKED(at, COUNT(target))] = (uint8_t)(34LL);
    at = (at + 1LL);
    position = begin;
    while ((position < end)) {
        left = (end - position);
        bits = ((int64_t)data.at[CHECKED(position, COUNT(data))] << 16LL);
        if ((left > 1LL)) {
            bits = (bits | ((int64_t)data.at[CHECKED((position + 1LL), COUNT(data))] << 8LL));
        }
        if ((left > 2LL)) {
            bits = (bits | (int64_t)data.at[CHECKED((position + 2LL), COUNT(data))]);
        }
        target.at[CHECKED(at, COUNT(target))] = (uint8_t)((int64_t)table_18.at[CHECKED(((bits >> 18LL) & 63LL), COUNT(table_18))]);
        target.at[CHECKED((at + 1LL), COUNT(target))] = (uint8_t)((int64_t)table_18.at[CHECKED(((bits >> 12LL) & 63LL), COUNT(table_18))]);
        target.at[CHECKED((at + 2LL), COUNT(target))] = (uint8_t)(((left > 1LL) ? (int64_t)table_18.at[CHECKED(((bits >> 6LL) & 63LL), COUNT(table_18))] : 61LL));
        target.at[CHECKED((at + 3LL), COUNT(target))] = (uint8_t)(((left > 2LL) ? (int64_t)table_18.at[CHECKED((bits & 63LL), COUNT(table_18))] : 61LL));
        at = (at + 4LL);
        position = (position + 3LL);
    }
    target.at[CHECKED(at, COUNT(target))] = (uint8_t)(34LL);
    return (at + 1LL);
}

/* records.kernels.json_kernels.put_literal */
static inline int64_t records_kernels_json_kernels__put_literal(bytes_t target, int64_t at, bytes_t literal) {
    copy_bytes(target, at, literal, 0LL, COUNT(literal));
    return (at + COUNT(literal));
}

/* records.kernels.json_kernels.put_field */
static inline int64_t records_kernels_json_kernels__put_field(bytes_t target, int64_t at, bytes_t name, bytes_t name_base64, bytes_t data, int64_t begin, int64_t end, int64_t is_null) {
    at = records_kernels_json_kernels__put_literal(target, at, name);
    if ((is_null != 0)) {
        return records_kernels_json_kernels__put_literal(target, at, table_19);
    }
    at = records_kernels_json_kernels__put_text(target, at, data, begin, end);
    if ((at < 0LL)) {
        at = records_kernels_json_kernels__put_literal(target, (-at), name_base64);
        at = records_kernels_json_kernels__put_base64(target, at, data, begin, end);
    }
    return at;
}

/* records.kernels.json_kernels.put_headers */
static inline int64_t records_kernels_json_kernels__put_headers(bytes_t target, int64_t at, int64_t first, int64_t last, bytes_t names, int32s_t name_ends, bytes_t values, int32s_t value_ends, bytes_t value_bits, int64_t value_bit) {
    int64_t is_exact = 0;
    int64_t header = 0;
    is_exact = 1LL;
    at = records_kernels_json_kernels__put_literal(target, at, table_20);
    for (int64_t t1 = first, t2 = last; t1 < t2; t1 += 1) {
        header = t1;
        if ((header > first)) {
            target.at[CHECKED(at, COUNT(target))] = (uint8_t)(44LL);
            at = (at + 1LL);
        }
        at = records_kernels_json_kernels__put_text(target, at, names, (int64_t)name_ends.at[CHECKED(header, COUNT(name_ends))], (int64_t)name_ends.at[CHECKED((header + 1LL), COUNT(name_ends))]);
        target.at[CHECKED(at, COUNT(target))] = (uint8_t)(44LL);
        at = (at + 1LL);
        if (((COUNT(value_bits) != 0) && (!records_kernels_encode_kernels__bit_at(value_bits, (header + value_bit))))) {
            at = records_kernels_json_kernels__put_literal(target, at, table_19);
        } else {
            at = records_kernels_json_kernels__put_text(target, at, values, (int64_t)value_ends.at[CHECKED(header, COUNT(value_ends))], (int64_t)value_ends.at[CHECKED((header + 1LL), COUNT(value_ends))]);
            if ((at < 0LL)) {
                is_exact = 0LL;
                at = (-at);
            }
        }
    }
    if ((!is_exact)) {
        at = records_kernels_json_kernels__put_literal(target, at, table_21);
        for (int64_t t3 = first, t4 = last; t3 < t4; t3 += 1) {
            header = t3;
            if ((header > first)) {
                target.at[CHECKED(at, COUNT(target))] = (uint8_t)(44LL);
                at = (at + 1LL);
            }
            at = records_kernels_json_kernels__put_text(target, at, names, (int64_t)name_ends.at[CHECKED(header, COUNT(name_ends))], (int64_t)name_ends.at[CHECKED((header + 1LL), COUNT(name_ends))]);
            target.at[CHECKED(at, COUNT(target))] = (uint8_t)(44LL);
            at = (at + 1LL);
            if (((COUNT(value_bits) != 0) && (!records_kernels_encode_kernels__bit_at(value_bits, (header + value_bit))))) {
                at = records_kernels_json_kernels__put_literal(target, at, table_19);
            } else {
                at = records_kernels_json_kernels__put_base64(target, at, values, (int64_t)value_ends.at[CHECKED(header, COUNT(value_ends))], (int64_t)value_ends.at[CHECKED((header + 1LL), COUNT(value_ends))]);
            }
        }
    }
    target.at[CHECKED(at, COUNT(target))] = (uint8_t)(93LL);
    return (at + 1LL);
}

/* records.kernels.json_kernels.put_lines */
static inline int64_t records_kernels_json_kernels__put_lines(bytes_t target, bytes_t head, bytes_t kinds, ints_t kind_ends, int64_t first, int64_t last, ints_t offsets, ints_t timestamps, int32s_t types, bytes_t keys, int32s_t key_ends, bytes_t key_bits, int64_t key_bit, bytes_t values, int32s_t value_ends, bytes_t value_bits, int64_t value_bit, int32s_t header_ends, bytes_t names, int32s_t name_ends, bytes_t header_values, int32s_t header_value_ends, bytes_t header_bits, int64_t header_bit) {
    int64_t at = 0;
    int64_t row = 0;
    int64_t kind = 0;
    int64_t start = 0;
    int64_t is_null = 0;
    at = 0LL;
    for (int64_t t1 = first, t2 = last; t1 < t2; t1 += 1) {
        row = t1;
        at = records_kernels_json_kernels__put_literal(target, at, head);
        at = records_kernels_json_kernels__put_number(target, at, (int64_t)offsets.at[CHECKED(row, COUNT(offsets))]);
        kind = ((int64_t)types.at[CHECKED(row, COUNT(types))] + 1LL);
        start = (kind ? (int64_t)kind_ends.at[CHECKED((kind - 1LL), COUNT(kind_ends))] : 0LL);
        copy_bytes(target, at, kinds, start, ((int64_t)kind_ends.at[CHECKED(kind, COUNT(kind_ends))] - start));
        at = (at + ((int64_t)kind_ends.at[CHECKED(kind, COUNT(kind_ends))] - start));
        at = records_kernels_json_kernels__put_number(target, at, (int64_t)timestamps.at[CHECKED(row, COUNT(timestamps))]);
        is_null = (((COUNT(key_bits) != 0) && (!records_kernels_encode_kernels__bit_at(key_bits, (row + key_bit)))) ? 1LL : 0LL);
        at = records_kernels_json_kernels__put_field(target, at, table_22, table_23, keys, (int64_t)key_ends.at[CHECKED(row, COUNT(key_ends))], (int64_t)key_ends.at[CHECKED((row + 1LL), COUNT(key_ends))], is_null);
        is_null = (((COUNT(value_bits) != 0) && (!records_kernels_encode_kernels__bit_at(value_bits, (row + value_bit)))) ? 1LL : 0LL);
        at = records_kernels_json_kernels__put_field(target, at, table_24, table_25, values, (int64_t)value_ends.at[CHECKED(row, COUNT(value_ends))], (int64_t)value_ends.at[CHECKED((row + 1LL), COUNT(value_ends))], is_null);
        if (((int64_t)header_ends.at[CHECKED((row + 1LL), COUNT(header_ends))] > (int64_t)header_ends.at[CHECKED(row, COUNT(header_ends))])) {
            at = records_kernels_json_kernels__put_headers(target, at, (int64_t)header_ends.at[CHECKED(row, COUNT(header_ends))], (int64_t)header_ends.at[CHECKED((row + 1LL), COUNT(header_ends))], names, name_ends, header_values, header_value_ends, header_bits, header_bit);
        }
        target.at[CHECKED(at, COUNT(target))] = (uint8_t)(125LL);
        target.at[CHECKED((at + 1LL), COUNT(target))] = (uint8_t)(10LL);
        at = (at + 2LL);
    }
    return at;
}

/* records.kernels.key_kernels.find_keys */
static int64_t records_kernels_key_kernels__find_keys(bytes_t data, int64_t count, ints_t table) {
    int64_t size = 0;
    int64_t end = 0;
    int64_t record = 0;
    int64_t number = 0;
    int64_t position = 0;
    int64_t times = 0;
    int64_t offset = 0;
    size = data.size[0];
    end = 0LL;
    for (int64_t t1 = 0, t2 = count; t1 < t2; t1 += 1) {
        record = t1;
        table.at[CHECKED((record) * table.size[1] + 0LL, COUNT(table))] = (int64_t)(end);
        const tuple2_t t3 = records_kernels_decode_kernels__short_unsigned(data, end, size);
        number = t3.part[0];
        position = t3.part[1];
        if ((position < 0LL)) {
            const tuple2_t t4 = records_kernels_decode_kernels__read_unsigned(data, ((-1LL) - position), size);
            number = t4.part[0];
            position = t4.part[1];
        }
        if (((position < 0LL) || ((number & 1LL) != 0) || ((number >> 1LL) > (size - position)))) {
            return record;
        }
        end = (position + (number >> 1LL));
        const tuple2_t t5 = records_kernels_decode_kernels__short_unsigned(data, (position + 1LL), size);
        times = t5.part[0];
        position = t5.part[1];
        if ((position < 0LL)) {
            const tuple2_t t6 = records_kernels_decode_kernels__read_unsigned_long(data, ((-1LL) - position), end);
            times = t6.part[0];
            position = t6.part[1];
        }
        if ((position < 0LL)) {
            return record;
        }
        const tuple2_t t7 = records_kernels_decode_kernels__short_unsigned(data, position, size);
        offset = t7.part[0];
        position = t7.part[1];
        if ((position < 0LL)) {
            const tuple2_t t8 = records_kernels_decode_kernels__read_unsigned(data, ((-1LL) - position), end);
            offset = t8.part[0];
            position = t8.part[1];
        }
        if ((position < 0LL)) {
            return record;
        }
        const tuple2_t t9 = records_kernels_decode_kernels__short_unsigned(data, position, size);
        number = t9.part[0];
        position = t9.part[1];
        if ((position < 0LL)) {
            const tuple2_t t10 = records_kernels_decode_kernels__read_unsigned(data, ((-1LL) - position), end);
            number = t10.part[0];
            position = t10.part[1];
        }
        if ((position < 0LL)) {
            return record;
        }
        table.at[CHECKED((record) * table.size[1] + 4LL, COUNT(table))] = (int64_t)((-1LL));
        if ((!(number & 1LL))) {
            if (((number >> 1LL) > (end - position))) {
                return record;
            }
            table.at[CHECKED((record) * table.size[1] + 4LL, COUNT(table))] = (int64_t)(position);
            position = (position + (number >> 1LL));
        }
        if ((position >= end)) {
            return record;
        }
        table.at[CHECKED((record) * table.size[1] + 1LL, COUNT(table))] = (int64_t)(end);
        table.at[CHECKED((record) * table.size[1] + 2LL, COUNT(table))] = (int64_t)((((times >> 1LL) & 9223372036854775807LL) ^ (-(times & 1LL))));
        table.at[CHECKED((record) * table.size[1] + 3LL, COUNT(table))] = (int64_t)(((offset >> 1LL) ^ (-(offset & 1LL))));
        table.at[CHECKED((record) * table.size[1] + 5LL, COUNT(table))] = (int64_t)(position);
        table.at[CHECKED((record) * table.size[1] + 6LL, COUNT(table))] = (int64_t)((1LL - ((int64_t)data.at[CHECKED(position, COUNT(data))] & 1LL)));
    }
    return ((end == size) ? (-1LL) : count);
}

/* registry.columns.span_kernels.is_utf8 */
static inline bool registry_columns_span_kernels__is_utf8(bytes_t data, int64_t at, int64_t end) {
    int64_t lead = 0;
    int64_t size = 0;
    int64_t code = 0;
    int64_t index = 0;
    int64_t byte = 0;
    while ((at < end)) {
        if ((((at + 8LL) <= end) && ((load_word(data, at) & (-9187201950435737472LL)) == 0LL))) {
            at = (at + 8LL);
            continue;
        }
        lead = (int64_t)data.at[CHECKED(at, COUNT(data))];
        if ((lead < 128LL)) {
            at = (at + 1LL);
            continue;
        }
        if (((lead < 194LL) || (lead > 244LL))) {
            return 0LL;
        }
        size = ((lead < 224LL) ? 2LL : ((lead < 240LL) ? 3LL : 4LL));
        if (((at + size) > end)) {
            return 0LL;
        }
        code = (lead & (127LL >> size));
        for (int64_t t1 = 1LL, t2 = size; t1 < t2; t1 += 1) {
            index = t1;
            byte = (int64_t)data.at[CHECKED((at + index), COUNT(data))];
            if (((byte & 192LL) != 128LL)) {
                return 0LL;
            }
            code = ((code << 6LL) | (byte & 63LL));
        }
        if ((((size == 3LL) && (code < 2048LL)) || ((size == 4LL) && (code < 65536LL)))) {
            return 0LL;
        }
        if ((((55296LL <= code) && (code < 57344LL)) || (code > 1114111LL))) {
            return 0LL;
        }
        at = (at + size);
    }
    return 1LL;
}

/* registry.columns.span_kernels.unsigned_varint */
static inline tuple2_t registry_columns_span_kernels__unsigned_varint(bytes_t data, int64_t at, int64_t end) {
    int64_t number = 0;
    int64_t shift = 0;
    int64_t byte = 0;
    number = 0LL;
    shift = 0LL;
    while ((at < end)) {
        byte = (int64_t)data.at[CHECKED(at, COUNT(data))];
        at = (at + 1LL);
        if (((shift == 63LL) && (byte > 1LL))) {
            return (tuple2_t){{0LL, (-2LL)}};
        }
        number = (number | (((byte & 127LL) << shift)));
        if ((byte < 128LL)) {
            return (tuple2_t){{number, at}};
        }
        shift = (shift + 7LL);
    }
    return (tuple2_t){{0LL, (-1LL)}};
}

/* registry.columns.span_kernels.copy_spans */
static inline void registry_columns_span_kernels__copy_spans(bytes_t data, bytes_t constants, ints_t starts, ints_t sizes, int64_t count, int32s_t ends, bytes_t target) {
    int64_t to = 0;
    int64_t index = 0;
    int64_t start = 0;
    int64_t size = 0;
    int64_t last = 0;
    int64_t step = 0;
    to = 0LL;
    ends.at[CHECKED(0LL, COUNT(ends))] = (int32_t)(0LL);
    for (int64_t t1 = 0, t2 = count; t1 < t2; t1 += 1) {
        index = t1;
        start = (int64_t)starts.at[CHECKED(index, COUNT(starts))];
        size = (int64_t)sizes.at[CHECKED(index, COUNT(sizes))];
        if ((start < 0LL)) {
            copy_bytes(target, to, constants, ((-1LL) - start), size);
        } else {
            if ((size > 32LL)) {
                copy_bytes(target, to, data, start, size);
            } else {
                if ((size >= 8LL)) {
                    last = (size - 8LL);
                    for (int64_t t3 = 0LL, t4 = last; t3 < t4; t3 += 8LL) {
                        step = t3;
                        copy_word(target, (to + step), data, (start + step));
                    }
                    copy_word(target, (to + last), data, (start + last));
                } else {
                    for (int64_t t5 = 0, t6 = size; t5 < t6; t5 += 1) {
                        step = t5;
                        target.at[CHECKED((to + step), COUNT(target))] = (uint8_t)((int64_t)data.at[CHECKED((start + step), COUNT(data))]);
                    }
                }
            }
        }
        to = (to + size);
        ends.at[CHECKED((index + 1LL), COUNT(ends))] = (int32_t)(to);
    }
}

/* registry.columns.span_kernels.read_decimals */
static inline void registry_columns_span_kernels__read_decimals(bytes_t data, bytes_t constants, ints_t starts, ints_t sizes, int64_t count, ints_t words) {
    int64_t index = 0;
    int64_t start = 0;
    int64_t size = 0;
    int64_t low = 0;
    int64_t high = 0;
    int64_t first = 0;
    int64_t step = 0;
    int64_t byte = 0;
    for (int64_t t1 = 0, t2 = count; t1 < t2; t1 += 1) {
        index = t1;
        start = (int64_t)starts.at[CHECKED(index, COUNT(starts))];
        size = (int64_t)sizes.at[CHECKED(index, COUNT(sizes))];
        low = 0LL;
        high = 0LL;
        if ((size > 0LL)) {
            first = ((start < 0LL) ? (int64_t)constants.at[CHECKED(((-1LL) - start), COUNT(constants))] : (int64_t)data.at[CHECKED(start, COUNT(data))]);
            if ((first >= 128LL)) {
                low = (-1LL);
                high = (-1LL);
            }
        }
        for (int64_t t3 = 0, t4 = size; t3 < t4; t3 += 1) {
            step = t3;
            byte = ((start < 0LL) ? (int64_t)constants.at[CHECKED((((-1LL) - start) + step), COUNT(constants))] : (int64_t)data.at[CHECKED((start + step), COUNT(data))]);
            high = (((high << 8LL) | ((low >> 56LL) & 255LL)));
            low = (((low << 8LL) | byte));
        }
        words.at[CHECKED((2LL * index), COUNT(words))] = (int64_t)(low);
        words.at[CHECKED(((2LL * index) + 1LL), COUNT(words))] = (int64_t)(high);
    }
}

/* registry.columns.avro_kernel.undo_row */
static inline void registry_columns_avro_kernel__undo_row(ints_t group_of, ints_t base, ints_t store, ints_t filled, ints_t saved, ints_t caps) {
    int64_t column = 0;
    int64_t group = 0;
    int64_t last = 0;
    int64_t index = 0;
    for (int64_t t1 = 0, t2 = base.size[0]; t1 < t2; t1 += 1) {
        column = t1;
        group = (int64_t)group_of.at[CHECKED(column, COUNT(group_of))];
        last = min_of(((int64_t)filled.at[CHECKED(group, COUNT(filled))] + 1LL), (int64_t)caps.at[CHECKED(group, COUNT(caps))]);
        for (int64_t t3 = (int64_t)saved.at[CHECKED(group, COUNT(saved))], t4 = last; t3 < t4; t3 += 1) {
            index = t3;
            store.at[CHECKED(((int64_t)base.at[CHECKED(column, COUNT(base))] + index), COUNT(store))] = (int64_t)(0LL);
        }
    }
    for (int64_t t5 = 0, t6 = filled.size[0]; t5 < t6; t5 += 1) {
        group = t5;
        filled.at[CHECKED(group, COUNT(filled))] = (int64_t)((int64_t)saved.at[CHECKED(group, COUNT(saved))]);
    }
}

/* registry.columns.avro_kernel.read_avro */
static tuple2_t registry_columns_avro_kernel__read_avro(bytes_t data, ints_t starts, ints_t ends, int64_t row, ints_t ops, ints_t tables, ints_t base, ints_t caps, ints_t group_of, ints_t store, ints_t filled, ints_t saved, ints_t stack, bytes_t reasons) {
    int64_t groups = 0;
    int64_t at = 0;
    int64_t end = 0;
    int64_t group = 0;
    int64_t left = 0;
    int64_t pc = 0;
    int64_t depth = 0;
    int64_t reason = 0;
    int64_t full = 0;
    int64_t op = 0;
    int64_t a = 0;
    int64_t b = 0;
    int64_t c = 0;
    int64_t size = 0;
    int64_t index = 0;
    int64_t raw = 0;
    int64_t number = 0;
    groups = filled.size[0];
    while ((row < starts.size[0])) {
        at = (int64_t)starts.at[CHECKED(row, COUNT(starts))];
        end = (int64_t)ends.at[CHECKED(row, COUNT(ends))];
        for (int64_t t1 = 0, t2 = groups; t1 < t2; t1 += 1) {
            group = t1;
            saved.at[CHECKED(group, COUNT(saved))] = (int64_t)((int64_t)filled.at[CHECKED(group, COUNT(filled))]);
        }
        left = ((end - at) + 1024LL);
        pc = 0LL;
        depth = 0LL;
        reason = 0LL;
        full = (-1LL);
        while (1LL) {
            op = (int64_t)ops.at[CHECKED(pc, COUNT(ops))];
            a = (int64_t)ops.at[CHECKED((pc + 1LL), COUNT(ops))];
            b = (int64_t)ops.at[CHECKED((pc + 2LL), COUNT(ops))];
            c = (int64_t)ops.at[CHECKED((pc + 3LL), COUNT(ops))];
            if ((op == 6LL || op == 7LL || op == 22LL)) {
                const tuple2_t t3 = registry_columns_span_kernels__unsigned_varint(data, at, end);
                size = t3.part[0];
                at = t3.part[1];
                if ((at < 0LL)) {
                    reason = (-at);
                    break;
                }
                if (((size & 1LL) != 0)) {
                    reason = 9LL;
                    break;
                }
                size = ((size >> 1LL) & 9223372036854775807LL);
                if ((size > (end - at))) {
                    reason = 1LL;
                    break;
                }
                if ((op == 6LL)) {
                    if ((!registry_columns_span_kernels__is_utf8(data, at, (at + size)))) {
                        reason = 4LL;
                        break;
                    }
                } else {
                    if (((op == 22LL) && (size > 16LL))) {
                        reason = 11LL;
                        break;
                    }
                }
                if ((a >= 0LL)) {
                    index = (int64_t)filled.at[CHECKED(b, COUNT(filled))];
                    store.at[CHECKED(((int64_t)base.at[CHECKED(a, COUNT(base))] + index), COUNT(store))] = (int64_t)(at);
                    store.at[CHECKED(((int64_t)base.at[CHECKED((a + 1LL), COUNT(base))] + index), COUNT(store))] = (int64_t)(size);
                }
                at = (at + size);
            } else {
                if ((op == 2LL || op == 1LL || op == 23LL || op == 24LL)) {
                    const tuple2_t t4 = registry_columns_span_kernels__unsigned_varint(data, at, end);
                    raw = t4.part[0];
                    at = t4.part[1];
                    if ((at < 0LL)) {
                        reason = (-at);
                        break;
                    }
                    number = (((raw >> 1LL) & 9223372036854775807LL) ^ (-(raw & 1LL)));
                    if (((c != 0) && ((number < (-2147483648LL)) || (number > 2147483647LL)))) {
                        reason = 2LL;
                        break;
                    }
                    if ((a >= 0LL)) {
                        if ((op == 23LL)) {
                            number = double_bits(number, 8LL);
                        } else {
                            if ((op == 24LL)) {
                                number = double_bits(number, 4LL);
                            }
                        }
                        store.at[CHECKED(((int64_t)base.at[CHECKED(a, COUNT(base))] + (int64_t)filled.at[CHECKED(b, COUNT(filled))]), COUNT(store))] = (int64_t)(number);
                    }
                } else {
                    if ((op == 4LL)) {
                        if (((end - at) < 8LL)) {
                            reason = 1LL;
                            break;
                        }
                        if ((a >= 0LL)) {
                            store.at[CHECKED(((int64_t)base.at[CHECKED(a, COUNT(base))] + (int64_t)filled.at[CHECKED(b, COUNT(filled))]), COUNT(store))] = (int64_t)(load_word(data, at));
                        }
                        at = (at + 8LL);
                    } else {
                        if ((op == 3LL || op == 25LL)) {
                            if (((end - at) < 4LL)) {
                                reason = 1LL;
                                break;
                            }
                            number = ((((int64_t)data.at[CHECKED(at, COUNT(data))] | ((int64_t)data.at[CHECKED((at + 1LL), COUNT(data))] << 8LL)) | ((int64_t)data.at[CHECKED((at + 2LL), COUNT(data))] << 16LL)) | ((int64_t)data.at[CHECKED((at + 3LL), COUNT(data))] << 24LL));
                            if ((a >= 0LL)) {
                                store.at[CHECKED(((int64_t)base.at[CHECKED(a, COUNT(base))] + (int64_t)filled.at[CHECKED(b, COUNT(filled))]), COUNT(store))] = (int64_t)(((op == 25LL) ? widened(number) : number));
                            }
                            at = (at + 4LL);
                        } else {
                            if ((op == 5LL)) {
                                if ((at >= end)) {
                                    reason = 1LL;
                                    break;
                                }
                                number = (int64_t)data.at[CHECKED(at, COUNT(data))];
                                if ((number > 1LL)) {
                                    reason = 10LL;
                                    break;
                                }
                                if ((a >= 0LL)) {
                                    store.at[CHECKED(((int64_t)base.at[CHECKED(a, COUNT(base))] + (int64_t)filled.at[CHECKED(b, COUNT(filled))]), COUNT(store))] = (int64_t)(number);
                                }
                                at = (at + 1LL);
                            } else {
                                if ((op == 9LL || op == 10LL || op == 11LL)) {
                                    const tuple2_t t5 = registry_columns_span_kernels__unsigned_varint(data, at, end);
                                    raw = t5.part[0];
                                    at = t5.part[1];
                                    if ((at < 0LL)) {
                                        reason = (-at);
                                        break;
                                    }
                                    number = (((raw >> 1LL) & 9223372036854775807LL) ^ (-(raw & 1LL)));
                                    if (((number < 0LL) || (number >= (int64_t)ops.at[CHECKED((pc + 5LL), COUNT(ops))]))) {
                                        reason = 3LL;
                                        break;
                                    }
                                    if ((op == 9LL)) {
                                        if ((number == c)) {
                                            pc = (int64_t)ops.at[CHECKED((pc + 4LL), COUNT(ops))];
                                            continue;
                                        }
                                        if ((a >= 0LL)) {
                                            store.at[CHECKED(((int64_t)base.at[CHECKED(a, COUNT(base))] + (int64_t)filled.at[CHECKED(b, COUNT(filled))]), COUNT(store))] = (int64_t)(1LL);
                                        }
                                    } else {
                                        number = (int64_t)tables.at[CHECKED((c + number), COUNT(tables))];
                                        if ((number < 0LL)) {
                                            reason = 8LL;
                                            break;
                                        }
                                        if ((op == 10LL)) {
                                            pc = number;
                                            continue;
                                        }
                                        if ((a >= 0LL)) {
                                            store.at[CHECKED(((int64_t)base.at[CHECKED(a, COUNT(base))] + (int64_t)filled.at[CHECKED(b, COUNT(filled))]), COUNT(store))] = (int64_t)(number);
                                        }
                                    }
                                } else {
                                    if ((op == 17LL)) {
                                        store.at[CHECKED(((int64_t)base.at[CHECKED(a, COUNT(base))] + (int64_t)filled.at[CHECKED(b, COUNT(filled))]), COUNT(store))] = (int64_t)(c);
                                    } else {
                                        if ((op == 8LL)) {
                                            if (((end - at) < c)) {
                                                reason = 1LL;
                                                break;
                                            }
                                            if ((a >= 0LL)) {
                                                index = (int64_t)filled.at[CHECKED(b, COUNT(filled))];
                                                store.at[CHECKED(((int64_t)base.at[CHECKED(a, COUNT(base))] + index), COUNT(store))] = (int64_t)(at);
                                                store.at[CHECKED(((int64_t)base.at[CHECKED((a + 1LL), COUNT(base))] + index), COUNT(store))] = (int64_t)(c);
                                            }
                                            at = (at + c);
                                        } else {
                                            if ((op == 16LL)) {
                                                pc = a;
                                                continue;
                                            } else {
                                                if ((op == 12LL)) {
                                                    if (((depth + 2LL) > 256LL)) {
                                                        reason = 5LL;
                                                        break;
                                                    }
                                                    stack.at[CHECKED(depth, COUNT(stack))] = (int64_t)(0LL);
                                                    stack.at[CHECKED((depth + 1LL), COUNT(stack))] = (int64_t)(((a >= 0LL) ? (int64_t)filled.at[CHECKED(a, COUNT(filled))] : 0LL));
                                                    depth = (depth + 2LL);
                                                } else {
                                                    if ((op == 13LL)) {
                                                        if (((int64_t)stack.at[CHECKED((depth - 2LL), COUNT(stack))] == 0LL)) {
                                                            const tuple2_t t6 = registry_columns_span_kernels__unsigned_varint(data, at, end);
                                                            raw = t6.part[0];
                                                            at = t6.part[1];
                                                            if ((at < 0LL)) {
                                                                reason = (-at);
                                                                break;
                                                            }
                                                            number = (((raw >> 1LL) & 9223372036854775807LL) ^ (-(raw & 1LL)));
                                                            if ((number == 0LL)) {
                                                                pc = b;
                                                                continue;
                                                            }
                                                            if ((number < 0LL)) {
                                                                number = ((-number));
                                                                const tuple2_t t7 = registry_columns_span_kernels__unsigned_varint(data, at, end);
                                                                raw = t7.part[0];
                                                                at = t7.part[1];
                                                                if ((at < 0LL)) {
                                                                    reason = (-at);
                                                                    break;
                                                                }
                                                            }
                                                            if (((number < 0LL) || (number > left))) {
                                                                reason = 7LL;
                                                                break;
                                                            }
                                                            left = (left - number);
                                                            stack.at[CHECKED((depth - 2LL), COUNT(stack))] = (int64_t)(number);
                                                        }
                                                        stack.at[CHECKED((depth - 2LL), COUNT(stack))] = (int64_t)(((int64_t)stack.at[CHECKED((depth - 2LL), COUNT(stack))] - 1LL));
                                                        if (((a >= 0LL) && ((int64_t)filled.at[CHECKED(a, COUNT(filled))] >= (int64_t)caps.at[CHECKED(a, COUNT(caps))]))) {
                                                            full = a;
                                                            break;
                                                        }
                                                    } else {
                                                        if ((op == 14LL)) {
                                                            if ((a >= 0LL)) {
                                                                filled.at[CHECKED(a, COUNT(filled))] = (int64_t)(((int64_t)filled.at[CHECKED(a, COUNT(filled))] + 1LL));
                                                            }
                                                            pc = b;
                                                            continue;
                                                        } else {
                                                            if ((op == 15LL)) {
                                                                depth = (depth - 2LL);
                                                                if ((a >= 0LL)) {
                                                                    store.at[CHECKED(((int64_t)base.at[CHECKED(a, COUNT(base))] + (int64_t)filled.at[CHECKED(b, COUNT(filled))]), COUNT(store))] = (int64_t)(((int64_t)filled.at[CHECKED(c, COUNT(filled))] - (int64_t)stack.at[CHECKED((depth + 1LL), COUNT(stack))]));
                                                                }
                                                            } else {
                                                                if ((op == 26LL)) {
                                                                    if (((int64_t)filled.at[CHECKED(a, COUNT(filled))] >= (int64_t)caps.at[CHECKED(a, COUNT(caps))])) {
                                                                        full = a;
                                                                        break;
                                                                    }
                                                                    filled.at[CHECKED(a, COUNT(filled))] = (int64_t)(((int64_t)filled.at[CHECKED(a, COUNT(filled))] + 1LL));
                                                                } else {
                                                                    if ((op == 27LL)) {
                                                                        if (((a >= 0LL) && ((int64_t)filled.at[CHECKED(a, COUNT(filled))] >= (int64_t)caps.at[CHECKED(a, COUNT(caps))]))) {
                                                                            full = a;
                                                                            break;
                                                                        }
                                                                    } else {
                                                                        if ((op == 18LL)) {
                                                                            if (((depth + 1LL) > 256LL)) {
                                                                                reason = 5LL;
                                                                                break;
                                                                            }
                                                                            stack.at[CHECKED(depth, COUNT(stack))] = (int64_t)((pc + 6LL));
                                                                            depth = (depth + 1LL);
                                                                            pc = a;
                                                                            continue;
                                                                        } else {
                                                                            if ((op == 19LL)) {
                                                                                depth = (depth - 1LL);
                                                                                pc = (int64_t)stack.at[CHECKED(depth, COUNT(stack))];
                                                                                continue;
                                                                            } else {
                                                                                if ((op == 20LL)) {
                                                                                    store.at[CHECKED(((int64_t)base.at[CHECKED(a, COUNT(base))] + (int64_t)filled.at[CHECKED(b, COUNT(filled))]), COUNT(store))] = (int64_t)(at);
                                                                                } else {
                                                                                    if ((op == 21LL)) {
                                                                                        index = (int64_t)filled.at[CHECKED(b, COUNT(filled))];
                                                                                        store.at[CHECKED(((int64_t)base.at[CHECKED((a + 1LL), COUNT(base))] + index), COUNT(store))] = (int64_t)((at - (int64_t)store.at[CHECKED(((int64_t)base.at[CHECKED(a, COUNT(base))] + index), COUNT(store))]));
                                                                                    } else {
                                                                                        if ((at != end)) {
                                                                                            reason = 6LL;
                                                                                        }
                                                                                        break;
                                                                                    }
                                                                                }
                                                                            }
                                                                        }
                                                                    }
                                                                }
                                                            }
                                                        }
                                                    }
                                                }
                                            }
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
            }
            pc = (pc + 6LL);
        }
        if ((full >= 0LL)) {
            registry_columns_avro_kernel__undo_row(group_of, base, store, filled, saved, caps);
            return (tuple2_t){{row, full}};
        }
        if ((reason != 0)) {
            reasons.at[CHECKED(row, COUNT(reasons))] = (uint8_t)(reason);
            registry_columns_avro_kernel__undo_row(group_of, base, store, filled, saved, caps);
        } else {
            filled.at[CHECKED(0LL, COUNT(filled))] = (int64_t)(((int64_t)filled.at[CHECKED(0LL, COUNT(filled))] + 1LL));
        }
        row = (row + 1LL);
    }
    return (tuple2_t){{row, (-1LL)}};
}

/* registry.columns.protobuf_kernel.entry_of */
static inline int64_t registry_columns_protobuf_kernel__entry_of(ints_t entries, int64_t first, int64_t count, int64_t hint, int64_t number) {
    int64_t low = 0;
    int64_t high = 0;
    int64_t middle = 0;
    if (((hint < count) && ((int64_t)entries.at[CHECKED(((first + hint) * 12LL), COUNT(entries))] == number))) {
        return hint;
    }
    low = 0LL;
    high = count;
    while ((low < high)) {
        middle = ((low + high) >> 1LL);
        if (((int64_t)entries.at[CHECKED(((first + middle) * 12LL), COUNT(entries))] < number)) {
            low = (middle + 1LL);
        } else {
            high = middle;
        }
    }
    if (((low < count) && ((int64_t)entries.at[CHECKED(((first + low) * 12LL), COUNT(entries))] == number))) {
        return low;
    }
    return (-1LL);
}

/* registry.columns.protobuf_kernel.scalar */
static inline tuple2_t registry_columns_protobuf_kernel__scalar(bytes_t data, int64_t at, int64_t end, int64_t kind) {
    int64_t low = 0;
    int64_t raw = 0;
    if ((kind == 5LL)) {
        if (((end - at) < 8LL)) {
            return (tuple2_t){{0LL, (-1LL)}};
        }
        return (tuple2_t){{load_word(data, at), (at + 8LL)}};
    }
    if ((kind == 6LL)) {
        if (((end - at) < 4LL)) {
            return (tuple2_t){{0LL, (-1LL)}};
        }
        low = ((int64_t)data.at[CHECKED(at, COUNT(data))] | ((int64_t)data.at[CHECKED((at + 1LL), COUNT(data))] << 8LL));
        return (tuple2_t){{((low | ((int64_t)data.at[CHECKED((at + 2LL), COUNT(data))] << 16LL)) | ((int64_t)data.at[CHECKED((at + 3LL), COUNT(data))] << 24LL)), (at + 4LL)}};
    }
    const tuple2_t t1 = registry_columns_span_kernels__unsigned_varint(data, at, end);
    raw = t1.part[0];
    at = t1.part[1];
    if ((kind == 1LL)) {
        raw = (((raw & 4294967295LL) ^ 2147483648LL) - 2147483648LL);
    } else {
        if ((kind == 2LL)) {
            raw = (raw & 4294967295LL);
        } else {
            if ((kind == 3LL)) {
                raw = (((raw >> 1LL) & 9223372036854775807LL) ^ (-(raw & 1LL)));
            } else {
                if ((kind == 4LL)) {
                    raw = ((raw != 0LL) ? 1LL : 0LL);
                }
            }
        }
    }
    return (tuple2_t){{raw, at}};
}

/* registry.columns.protobuf_kernel.skipped */
static inline int64_t registry_columns_protobuf_kernel__skipped(bytes_t data, int64_t at, int64_t end, int64_t wire) {
    int64_t size = 0;
    if ((wire == 0LL)) {
        const tuple2_t t1 = registry_columns_span_kernels__unsigned_varint(data, at, end);
        (void)(t1.part[0]);
        at = t1.part[1];
        return at;
    }
    if ((wire == 2LL)) {
        const tuple2_t t2 = registry_columns_span_kernels__unsigned_varint(data, at, end);
        size = t2.part[0];
        at = t2.part[1];
        if ((at < 0LL)) {
            return at;
        }
        return (((0LL <= size) && (size <= (end - at))) ? (at + size) : (-1LL));
    }
    if ((wire == 1LL)) {
        return (((end - at) >= 8LL) ? (at + 8LL) : (-1LL));
    }
    if ((wire == 5LL)) {
        return (((end - at) >= 4LL) ? (at + 4LL) : (-1LL));
    }
    return (-12LL);
}

/* registry.columns.protobuf_kernel.read_protobuf */
static tuple2_t registry_columns_protobuf_kernel__read_protobuf(bytes_t data, ints_t starts, ints_t ends, int64_t row, ints_t entries, ints_t firsts, ints_t counts, ints_t oneofs, ints_t base, ints_t caps, ints_t group_of, ints_t store, ints_t filled, ints_t saved, ints_t stack, bytes_t reasons) {
    int64_t groups = 0;
    int64_t at = 0;
    int64_t end = 0;
    int64_t group = 0;
    int64_t depth = 0;
    int64_t frame = 0;
    int64_t hint = 0;
    int64_t reason = 0;
    int64_t full = 0;
    int64_t items = 0;
    int64_t tag = 0;
    int64_t wire = 0;
    int64_t number = 0;
    int64_t found = 0;
    int64_t entry = 0;
    int64_t column = 0;
    int64_t kind = 0;
    int64_t place = 0;
    int64_t size = 0;
    int64_t stop = 0;
    int64_t before = 0;
    int64_t value = 0;
    int64_t sizes = 0;
    int64_t other = 0;
    groups = filled.size[0];
    while ((row < starts.size[0])) {
        at = (int64_t)starts.at[CHECKED(row, COUNT(starts))];
        end = (int64_t)ends.at[CHECKED(row, COUNT(ends))];
        for (int64_t t1 = 0, t2 = groups; t1 < t2; t1 += 1) {
            group = t1;
            saved.at[CHECKED(group, COUNT(saved))] = (int64_t)((int64_t)filled.at[CHECKED(group, COUNT(filled))]);
        }
        depth = 0LL;
        frame = 0LL;
        hint = 0LL;
        reason = 0LL;
        full = (-1LL);
        while (1LL) {
            if ((at >= end)) {
                if ((depth == 0LL)) {
                    break;
                }
                depth = (depth - 1LL);
                items = (int64_t)stack.at[CHECKED(((depth * 4LL) + 2LL), COUNT(stack))];
                if ((items >= 0LL)) {
                    filled.at[CHECKED(items, COUNT(filled))] = (int64_t)(((int64_t)filled.at[CHECKED(items, COUNT(filled))] + 1LL));
                }
                end = (int64_t)stack.at[CHECKED((depth * 4LL), COUNT(stack))];
                frame = (int64_t)stack.at[CHECKED(((depth * 4LL) + 1LL), COUNT(stack))];
                hint = (int64_t)stack.at[CHECKED(((depth * 4LL) + 3LL), COUNT(stack))];
                continue;
            }
            const tuple2_t t3 = registry_columns_span_kernels__unsigned_varint(data, at, end);
            tag = t3.part[0];
            at = t3.part[1];
            if ((at < 0LL)) {
                reason = (-at);
                break;
            }
            wire = (tag & 7LL);
            number = ((tag >> 3LL) & 2305843009213693951LL);
            if (((number == 0LL) || (number > 536870911LL))) {
                reason = 12LL;
                break;
            }
            found = registry_columns_protobuf_kernel__entry_of(entries, (int64_t)firsts.at[CHECKED(frame, COUNT(firsts))], (int64_t)counts.at[CHECKED(frame, COUNT(counts))], hint, number);
            if ((found < 0LL)) {
                at = registry_columns_protobuf_kernel__skipped(data, at, end, wire);
                if ((at < 0LL)) {
                    reason = (-at);
                    break;
                }
                continue;
            }
            entry = (((int64_t)firsts.at[CHECKED(frame, COUNT(firsts))] + found) * 12LL);
            column = (int64_t)entries.at[CHECKED((entry + 3LL), COUNT(entries))];
            group = (int64_t)entries.at[CHECKED((entry + 4LL), COUNT(entries))];
            items = (int64_t)entries.at[CHECKED((entry + 6LL), COUNT(entries))];
            kind = (int64_t)entries.at[CHECKED((entry + 2LL), COUNT(entries))];
            hint = ((items >= 0LL) ? found : (found + 1LL));
            if (((items >= 0LL) && ((int64_t)filled.at[CHECKED(items, COUNT(filled))] >= (int64_t)caps.at[CHECKED(items, COUNT(caps))]))) {
                full = items;
                break;
            }
            place = ((items >= 0LL) ? (int64_t)filled.at[CHECKED(items, COUNT(filled))] : (int64_t)filled.at[CHECKED(group, COUNT(filled))]);
            if ((wire != (int64_t)entries.at[CHECKED((entry + 1LL), COUNT(entries))])) {
                if (((wire != 2LL) || (items == (-1LL)) || ((int64_t)entries.at[CHECKED((entry + 11LL), COUNT(entries))] == 0LL))) {
                    reason = 12LL;
                    break;
                }
                const tuple2_t t4 = registry_columns_span_kernels__unsigned_varint(data, at, end);
                size = t4.part[0];
                at = t4.part[1];
                if ((at < 0LL)) {
                    reason = (-at);
                    break;
                }
                if (((size < 0LL) || (size > (end - at)))) {
                    reason = 1LL;
                    break;
                }
                stop = (at + size);
                before = place;
                while ((at < stop)) {
                    if (((items >= 0LL) && ((int64_t)filled.at[CHECKED(items, COUNT(filled))] >= (int64_t)caps.at[CHECKED(items, COUNT(caps))]))) {
                        full = items;
                        break;
                    }
                    const tuple2_t t5 = registry_columns_protobuf_kernel__scalar(data, at, stop, kind);
                    value = t5.part[0];
                    at = t5.part[1];
                    if ((at < 0LL)) {
                        reason = (-at);
                        break;
                    }
                    if ((items >= 0LL)) {
                        store.at[CHECKED(((int64_t)base.at[CHECKED(column, COUNT(base))] + (int64_t)filled.at[CHECKED(items, COUNT(filled))]), COUNT(store))] = (int64_t)(value);
                        filled.at[CHECKED(items, COUNT(filled))] = (int64_t)(((int64_t)filled.at[CHECKED(items, COUNT(filled))] + 1LL));
                    }
                }
                if (((reason != 0) || (full >= 0LL))) {
                    break;
                }
                if ((items >= 0LL)) {
                    sizes = ((int64_t)base.at[CHECKED((int64_t)entries.at[CHECKED((entry + 7LL), COUNT(entries))], COUNT(base))] + (int64_t)filled.at[CHECKED(group, COUNT(filled))]);
                    store.at[CHECKED(sizes, COUNT(store))] = (int64_t)(((int64_t)store.at[CHECKED(sizes, COUNT(store))] + ((int64_t)filled.at[CHECKED(items, COUNT(filled))] - before)));
                }
                continue;
            }
            if ((kind >= 7LL)) {
                const tuple2_t t6 = registry_columns_span_kernels__unsigned_varint(data, at, end);
                size = t6.part[0];
                at = t6.part[1];
                if ((at < 0LL)) {
                    reason = (-at);
                    break;
                }
                if (((size < 0LL) || (size > (end - at)))) {
                    reason = 1LL;
                    break;
                }
                if (((kind == 7LL) && (!registry_columns_span_kernels__is_utf8(data, at, (at + size))))) {
                    reason = 4LL;
                    break;
                }
                if (((column >= 0LL) && (kind != 9LL))) {
                    store.at[CHECKED(((int64_t)base.at[CHECKED(column, COUNT(base))] + place), COUNT(store))] = (int64_t)(at);
                    store.at[CHECKED(((int64_t)base.at[CHECKED((column + 1LL), COUNT(base))] + place), COUNT(store))] = (int64_t)(size);
                }
            } else {
                const tuple2_t t7 = registry_columns_protobuf_kernel__scalar(data, at, end, kind);
                value = t7.part[0];
                at = t7.part[1];
                if ((at < 0LL)) {
                    reason = (-at);
                    break;
                }
                size = 0LL;
                if ((column >= 0LL)) {
                    store.at[CHECKED(((int64_t)base.at[CHECKED(column, COUNT(base))] + place), COUNT(store))] = (int64_t)(value);
                }
            }
            if (((int64_t)entries.at[CHECKED((entry + 5LL), COUNT(entries))] >= 0LL)) {
                for (int64_t t8 = 0, t9 = (int64_t)entries.at[CHECKED((entry + 10LL), COUNT(entries))]; t8 < t9; t8 += 1) {
                    other = t8;
                    store.at[CHECKED(((int64_t)base.at[CHECKED((int64_t)oneofs.at[CHECKED(((int64_t)entries.at[CHECKED((entry + 9LL), COUNT(entries))] + other), COUNT(oneofs))], COUNT(base))] + place), COUNT(store))] = (int64_t)(0LL);
                }
                store.at[CHECKED(((int64_t)base.at[CHECKED((int64_t)entries.at[CHECKED((entry + 5LL), COUNT(entries))], COUNT(base))] + place), COUNT(store))] = (int64_t)(1LL);
            }
            if ((items >= 0LL)) {
                store.at[CHECKED(((int64_t)base.at[CHECKED((int64_t)entries.at[CHECKED((entry + 7LL), COUNT(entries))], COUNT(base))] + (int64_t)filled.at[CHECKED(group, COUNT(filled))]), COUNT(store))] = (int64_t)(((int64_t)store.at[CHECKED(((int64_t)base.at[CHECKED((int64_t)entries.at[CHECKED((entry + 7LL), COUNT(entries))], COUNT(base))] + (int64_t)filled.at[CHECKED(group, COUNT(filled))]), COUNT(store))] + 1LL));
            }
            if ((kind >= 9LL)) {
                if ((depth >= 100LL)) {
                    reason = 5LL;
                    break;
                }
                stack.at[CHECKED((depth * 4LL), COUNT(stack))] = (int64_t)(end);
                stack.at[CHECKED(((depth * 4LL) + 1LL), COUNT(stack))] = (int64_t)(frame);
                stack.at[CHECKED(((depth * 4LL) + 2LL), COUNT(stack))] = (int64_t)(items);
                stack.at[CHECKED(((depth * 4LL) + 3LL), COUNT(stack))] = (int64_t)(hint);
                depth = (depth + 1LL);
                end = (at + size);
                frame = (int64_t)entries.at[CHECKED((entry + 8LL), COUNT(entries))];
                hint = 0LL;
            } else {
                at = (at + size);
                if ((items >= 0LL)) {
                    filled.at[CHECKED(items, COUNT(filled))] = (int64_t)(((int64_t)filled.at[CHECKED(items, COUNT(filled))] + 1LL));
                }
            }
        }
        if ((full >= 0LL)) {
            registry_columns_avro_kernel__undo_row(group_of, base, store, filled, saved, caps);
            return (tuple2_t){{row, full}};
        }
        if ((reason != 0)) {
            reasons.at[CHECKED(row, COUNT(reasons))] = (uint8_t)(reason);
            registry_columns_avro_kernel__undo_row(group_of, base, store, filled, saved, caps);
        } else {
            filled.at[CHECKED(0LL, COUNT(filled))] = (int64_t)(((int64_t)filled.at[CHECKED(0LL, COUNT(filled))] + 1LL));
        }
        row = (row + 1LL);
    }
    return (tuple2_t){{row, (-1LL)}};
}

/* v07.columns.crc32 */
static inline int64_t v07_columns__crc32(bytes_t data, int64_t start, int64_t stop, ints_t tables) {
    int64_t value = 0;
    int64_t at = 0;
    value = 4294967295LL;
    at = start;
    while (((at + 16LL) <= stop)) {
        value = ((((((((((((((((int64_t)tables.at[CHECKED((3840LL + ((value ^ (int64_t)data.at[CHECKED(at, COUNT(data))]) & 255LL)), COUNT(tables))] ^ (int64_t)tables.at[CHECKED((3584LL + (((value >> 8LL) ^ (int64_t)data.at[CHECKED((at + 1LL), COUNT(data))]) & 255LL)), COUNT(tables))]) ^ (int64_t)tables.at[CHECKED((3328LL + (((value >> 16LL) ^ (int64_t)data.at[CHECKED((at + 2LL), COUNT(data))]) & 255LL)), COUNT(tables))]) ^ (int64_t)tables.at[CHECKED((3072LL + ((value >> 24LL) ^ (int64_t)data.at[CHECKED((at + 3LL), COUNT(data))])), COUNT(tables))]) ^ (int64_t)tables.at[CHECKED((2816LL + (int64_t)data.at[CHECKED((at + 4LL), COUNT(data))]), COUNT(tables))]) ^ (int64_t)tables.at[CHECKED((2560LL + (int64_t)data.at[CHECKED((at + 5LL), COUNT(data))]), COUNT(tables))]) ^ (int64_t)tables.at[CHECKED((2304LL + (int64_t)data.at[CHECKED((at + 6LL), COUNT(data))]), COUNT(tables))]) ^ (int64_t)tables.at[CHECKED((2048LL + (int64_t)data.at[CHECKED((at + 7LL), COUNT(data))]), COUNT(tables))]) ^ (int64_t)tables.at[CHECKED((1792LL + (int64_t)data.at[CHECKED((at + 8LL), COUNT(data))]), COUNT(tables))]) ^ (int64_t)tables.at[CHECKED((1536LL + (int64_t)data.at[CHECKED((at + 9LL), COUNT(data))]), COUNT(tables))]) ^ (int64_t)tables.at[CHECKED((1280LL + (int64_t)data.at[CHECKED((at + 10LL), COUNT(data))]), COUNT(tables))]) ^ (int64_t)tables.at[CHECKED((1024LL + (int64_t)data.at[CHECKED((at + 11LL), COUNT(data))]), COUNT(tables))]) ^ (int64_t)tables.at[CHECKED((768LL + (int64_t)data.at[CHECKED((at + 12LL), COUNT(data))]), COUNT(tables))]) ^ (int64_t)tables.at[CHECKED((512LL + (int64_t)data.at[CHECKED((at + 13LL), COUNT(data))]), COUNT(tables))]) ^ (int64_t)tables.at[CHECKED((256LL + (int64_t)data.at[CHECKED((at + 14LL), COUNT(data))]), COUNT(tables))]) ^ (int64_t)tables.at[CHECKED((int64_t)data.at[CHECKED((at + 15LL), COUNT(data))], COUNT(tables))]);
        at = (at + 16LL);
    }
    while ((at < stop)) {
        value = ((value >> 8LL) ^ (int64_t)tables.at[CHECKED(((value ^ (int64_t)data.at[CHECKED(at, COUNT(data))]) & 255LL), COUNT(tables))]);
        at = (at + 1LL);
    }
    return (value ^ 4294967295LL);
}

/* v07.columns._int32 */
static inline int64_t v07_columns___int32(bytes_t data, int64_t at) {
    return (((((int64_t)data.at[CHECKED(at, COUNT(data))] << 24LL) | ((int64_t)data.at[CHECKED((at + 1LL), COUNT(data))] << 16LL)) | ((int64_t)data.at[CHECKED((at + 2LL), COUNT(data))] << 8LL)) | (int64_t)data.at[CHECKED((at + 3LL), COUNT(data))]);
}

/* v07.columns.scan */
static inline int64_t v07_columns__scan(bytes_t data, int64_t position, int64_t end, bool check, ints_t tables, ints_t starts, ints_t ends, ints_t out) {
    int64_t count = 0;
    int64_t reason = 0;
    int64_t size = 0;
    int64_t stop = 0;
    int64_t magic = 0;
    int64_t start = 0;
    count = 0LL;
    reason = 0LL;
    while (((end - position) >= 4LL)) {
        size = v07_columns___int32(data, position);
        if ((size >= 2147483648LL)) {
            reason = 2LL;
            break;
        }
        stop = ((position + 4LL) + size);
        if ((stop > end)) {
            break;
        }
        magic = ((size > 0LL) ? (int64_t)data.at[CHECKED((position + 4LL), COUNT(data))] : 255LL);
        if (((magic > 1LL) || (size < (5LL + magic)))) {
            reason = 2LL;
            break;
        }
        if (((magic == 1LL) && (((int64_t)data.at[CHECKED((position + 5LL), COUNT(data))] & 3LL) != 0))) {
            reason = 1LL;
            break;
        }
        start = ((position + 9LL) + magic);
        if ((check && (v07_columns__crc32(data, start, stop, tables) != v07_columns___int32(data, (start - 4LL))))) {
            reason = 2LL;
            break;
        }
        starts.at[CHECKED(count, COUNT(starts))] = (int64_t)(start);
        ends.at[CHECKED(count, COUNT(ends))] = (int64_t)(stop);
        count = (count + 1LL);
        position = stop;
    }
    out.at[CHECKED(0LL, COUNT(out))] = (int64_t)(position);
    out.at[CHECKED(1LL, COUNT(out))] = (int64_t)(reason);
    return count;
}

/* v07.columns.gather */
static inline void v07_columns__gather(bytes_t data, ints_t starts, ints_t ends, int64_t count, bytes_t target, int32s_t offsets) {
    int64_t at = 0;
    int64_t row = 0;
    int64_t size = 0;
    at = 0LL;
    offsets.at[CHECKED(0LL, COUNT(offsets))] = (int32_t)(0LL);
    for (int64_t t1 = 0, t2 = count; t1 < t2; t1 += 1) {
        row = t1;
        size = ((int64_t)ends.at[CHECKED(row, COUNT(ends))] - (int64_t)starts.at[CHECKED(row, COUNT(starts))]);
        copy_bytes(target, at, data, (int64_t)starts.at[CHECKED(row, COUNT(starts))], size);
        at = (at + size);
        offsets.at[CHECKED((row + 1LL), COUNT(offsets))] = (int32_t)(at);
    }
}

/* v07.columns._complete_size */
static inline int64_t v07_columns___complete_size(bytes_t data) {
    int64_t position = 0;
    int64_t end = 0;
    int64_t size = 0;
    const int64_t t1 = 0LL;
    const int64_t t2 = data.size[0];
    position = t1;
    end = t2;
    while (((end - position) >= 4LL)) {
        size = v07_columns___int32(data, position);
        if ((size >= 2147483648LL)) {
            return (-1LL);
        }
        if ((((position + 4LL) + size) > end)) {
            break;
        }
        position = (position + (4LL + size));
    }
    return position;
}

static PyObject *py_client_produce_partitioner_columns___murmur2_partitions(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "_murmur2_partitions", given, count, 6);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int32s_t argument1 = take_int32s_t(&call, 1, 0);
    const bytes_t argument2 = take_bytes_t(&call, 2, 0);
    const int64_t argument3 = take_int64_t(&call, 3);
    const int64_t argument4 = take_int64_t(&call, 4);
    const int32s_t argument5 = take_int32s_t(&call, 5, 1);
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        client_produce_partitioner_columns___murmur2_partitions(argument0, argument1, argument2, argument3, argument4, argument5);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    Py_RETURN_NONE;
}

static PyObject *py_cloudevents_columnar_kernels_texts__class_of(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "class_of", given, count, 1);
    const int64_t argument0 = take_int64_t(&call, 0);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_texts__class_of(argument0);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_texts__same_bytes(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "same_bytes", given, count, 5);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const bytes_t argument2 = take_bytes_t(&call, 2, 0);
    const int64_t argument3 = take_int64_t(&call, 3);
    const int64_t argument4 = take_int64_t(&call, 4);
    bool result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_texts__same_bytes(argument0, argument1, argument2, argument3, argument4);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyBool_FromLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_texts__is_plain(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "is_plain", given, count, 1);
    const int64_t argument0 = take_int64_t(&call, 0);
    bool result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_texts__is_plain(argument0);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyBool_FromLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_texts__has_no(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "has_no", given, count, 2);
    const int64_t argument0 = take_int64_t(&call, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    bool result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_texts__has_no(argument0, argument1);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyBool_FromLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_texts__skip_plain(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "skip_plain", given, count, 3);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_texts__skip_plain(argument0, argument1, argument2);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_texts__character(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "character", given, count, 3);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    tuple2_t result = {{0}};
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_texts__character(argument0, argument1, argument2);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return tuple_of(result.part, 2);
}

static PyObject *py_cloudevents_columnar_kernels_texts__is_string(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "is_string", given, count, 3);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    bool result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_texts__is_string(argument0, argument1, argument2);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyBool_FromLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_texts__skip_class(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "skip_class", given, count, 4);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    const int64_t argument3 = take_int64_t(&call, 3);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_texts__skip_class(argument0, argument1, argument2, argument3);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_texts__skip_uri_part(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "skip_uri_part", given, count, 4);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    const int64_t argument3 = take_int64_t(&call, 3);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_texts__skip_uri_part(argument0, argument1, argument2, argument3);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_texts__skip_authority(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "skip_authority", given, count, 3);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_texts__skip_authority(argument0, argument1, argument2);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_texts__skip_query(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "skip_query", given, count, 3);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_texts__skip_query(argument0, argument1, argument2);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_texts__is_uri(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "is_uri", given, count, 4);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    const bool argument3 = take_bool(&call, 3);
    bool result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_texts__is_uri(argument0, argument1, argument2, argument3);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyBool_FromLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_texts__skip_blanks(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "skip_blanks", given, count, 3);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_texts__skip_blanks(argument0, argument1, argument2);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_texts__is_media_type(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "is_media_type", given, count, 3);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    bool result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_texts__is_media_type(argument0, argument1, argument2);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyBool_FromLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_texts__lower(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "lower", given, count, 1);
    const int64_t argument0 = take_int64_t(&call, 0);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_texts__lower(argument0);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_texts__same_letters(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "same_letters", given, count, 4);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const bytes_t argument2 = take_bytes_t(&call, 2, 0);
    const int64_t argument3 = take_int64_t(&call, 3);
    bool result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_texts__same_letters(argument0, argument1, argument2, argument3);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyBool_FromLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_texts__is_json_type(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "is_json_type", given, count, 3);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    bool result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_texts__is_json_type(argument0, argument1, argument2);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyBool_FromLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_texts__is_integer(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "is_integer", given, count, 3);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    bool result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_texts__is_integer(argument0, argument1, argument2);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyBool_FromLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_texts__is_boolean(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "is_boolean", given, count, 3);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    bool result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_texts__is_boolean(argument0, argument1, argument2);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyBool_FromLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_texts__base64_digit(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "base64_digit", given, count, 1);
    const int64_t argument0 = take_int64_t(&call, 0);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_texts__base64_digit(argument0);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_texts__is_base64(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "is_base64", given, count, 3);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    bool result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_texts__is_base64(argument0, argument1, argument2);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyBool_FromLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_texts__known_place(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "known_place", given, count, 3);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_texts__known_place(argument0, argument1, argument2);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_texts__is_known(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "is_known", given, count, 5);
    const int32s_t argument0 = take_int32s_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const bytes_t argument2 = take_bytes_t(&call, 2, 0);
    const int64_t argument3 = take_int64_t(&call, 3);
    const int64_t argument4 = take_int64_t(&call, 4);
    bool result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_texts__is_known(argument0, argument1, argument2, argument3, argument4);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyBool_FromLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_texts__remember(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "remember", given, count, 5);
    const int32s_t argument0 = take_int32s_t(&call, 0, 1);
    const int64_t argument1 = take_int64_t(&call, 1);
    const bytes_t argument2 = take_bytes_t(&call, 2, 0);
    const int64_t argument3 = take_int64_t(&call, 3);
    const int64_t argument4 = take_int64_t(&call, 4);
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        cloudevents_columnar_kernels_texts__remember(argument0, argument1, argument2, argument3, argument4);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    Py_RETURN_NONE;
}

static PyObject *py_cloudevents_columnar_kernels_spans__lay_out(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "lay_out", given, count, 3);
    const int32s_t argument0 = take_int32s_t(&call, 0, 0);
    const int32s_t argument1 = take_int32s_t(&call, 1, 1);
    const bytes_t argument2 = take_bytes_t(&call, 2, 1);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_spans__lay_out(argument0, argument1, argument2);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_spans__copy_short(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "copy_short", given, count, 5);
    const bytes_t argument0 = take_bytes_t(&call, 0, 1);
    const int64_t argument1 = take_int64_t(&call, 1);
    const bytes_t argument2 = take_bytes_t(&call, 2, 0);
    const int64_t argument3 = take_int64_t(&call, 3);
    const int64_t argument4 = take_int64_t(&call, 4);
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        cloudevents_columnar_kernels_spans__copy_short(argument0, argument1, argument2, argument3, argument4);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    Py_RETURN_NONE;
}

static PyObject *py_cloudevents_columnar_kernels_spans__gather(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "gather", given, count, 7);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const bytes_t argument1 = take_bytes_t(&call, 1, 0);
    const bytes_t argument2 = take_bytes_t(&call, 2, 0);
    const bytes_t argument3 = take_bytes_t(&call, 3, 0);
    const int32s_t argument4 = take_int32s_t(&call, 4, 0);
    const int32s_t argument5 = take_int32s_t(&call, 5, 0);
    const bytes_t argument6 = take_bytes_t(&call, 6, 1);
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        cloudevents_columnar_kernels_spans__gather(argument0, argument1, argument2, argument3, argument4, argument5, argument6);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    Py_RETURN_NONE;
}

static PyObject *py_cloudevents_columnar_kernels_spans__field(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "field", given, count, 3);
    const int32s_t argument0 = take_int32s_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_spans__field(argument0, argument1, argument2);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_spans__lay_out_entries(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "lay_out_entries", given, count, 6);
    const ints_t argument0 = take_ints_t(&call, 0, 0);
    const int32s_t argument1 = take_int32s_t(&call, 1, 0);
    const int32s_t argument2 = take_int32s_t(&call, 2, 0);
    const int32s_t argument3 = take_int32s_t(&call, 3, 1);
    const int32s_t argument4 = take_int32s_t(&call, 4, 1);
    const int32s_t argument5 = take_int32s_t(&call, 5, 1);
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        cloudevents_columnar_kernels_spans__lay_out_entries(argument0, argument1, argument2, argument3, argument4, argument5);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    Py_RETURN_NONE;
}

static PyObject *py_cloudevents_columnar_kernels_spans__gather_entries(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "gather_entries", given, count, 10);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const bytes_t argument1 = take_bytes_t(&call, 1, 0);
    const bytes_t argument2 = take_bytes_t(&call, 2, 0);
    const bytes_t argument3 = take_bytes_t(&call, 3, 0);
    const bytes_t argument4 = take_bytes_t(&call, 4, 0);
    const ints_t argument5 = take_ints_t(&call, 5, 0);
    const int32s_t argument6 = take_int32s_t(&call, 6, 0);
    const int32s_t argument7 = take_int32s_t(&call, 7, 0);
    const bytes_t argument8 = take_bytes_t(&call, 8, 1);
    const bytes_t argument9 = take_bytes_t(&call, 9, 1);
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        cloudevents_columnar_kernels_spans__gather_entries(argument0, argument1, argument2, argument3, argument4, argument5, argument6, argument7, argument8, argument9);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    Py_RETURN_NONE;
}

static PyObject *py_cloudevents_columnar_kernels_spans__find_entries(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "find_entries", given, count, 10);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const bytes_t argument1 = take_bytes_t(&call, 1, 0);
    const bytes_t argument2 = take_bytes_t(&call, 2, 0);
    const bytes_t argument3 = take_bytes_t(&call, 3, 0);
    const ints_t argument4 = take_ints_t(&call, 4, 0);
    const int32s_t argument5 = take_int32s_t(&call, 5, 0);
    const int32s_t argument6 = take_int32s_t(&call, 6, 0);
    const bytes_t argument7 = take_bytes_t(&call, 7, 0);
    const int32s_t argument8 = take_int32s_t(&call, 8, 1);
    const int32s_t argument9 = take_int32s_t(&call, 9, 1);
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        cloudevents_columnar_kernels_spans__find_entries(argument0, argument1, argument2, argument3, argument4, argument5, argument6, argument7, argument8, argument9);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    Py_RETURN_NONE;
}

static PyObject *py_cloudevents_columnar_kernels_timestamp_kernels__number_at(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "number_at", given, count, 3);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_timestamp_kernels__number_at(argument0, argument1, argument2);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_timestamp_kernels__days_since_1970(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "days_since_1970", given, count, 3);
    const int64_t argument0 = take_int64_t(&call, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_timestamp_kernels__days_since_1970(argument0, argument1, argument2);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_timestamp_kernels__read_time(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "read_time", given, count, 3);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    tuple2_t result = {{0}};
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_timestamp_kernels__read_time(argument0, argument1, argument2);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return tuple_of(result.part, 2);
}

static PyObject *py_cloudevents_columnar_kernels_header_read_kernels__core_slot(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "core_slot", given, count, 3);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_header_read_kernels__core_slot(argument0, argument1, argument2);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_header_read_kernels__is_one_zero(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "is_one_zero", given, count, 2);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    bool result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_header_read_kernels__is_one_zero(argument0, argument1);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyBool_FromLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_header_read_kernels__is_valid_core(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "is_valid_core", given, count, 4);
    const int64_t argument0 = take_int64_t(&call, 0);
    const bytes_t argument1 = take_bytes_t(&call, 1, 0);
    const int64_t argument2 = take_int64_t(&call, 2);
    const int64_t argument3 = take_int64_t(&call, 3);
    bool result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_header_read_kernels__is_valid_core(argument0, argument1, argument2, argument3);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyBool_FromLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_header_read_kernels__is_extension_name(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "is_extension_name", given, count, 3);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    bool result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_header_read_kernels__is_extension_name(argument0, argument1, argument2);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyBool_FromLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_header_read_kernels__kind_of(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "kind_of", given, count, 7);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    const bytes_t argument3 = take_bytes_t(&call, 3, 0);
    const int32s_t argument4 = take_int32s_t(&call, 4, 0);
    const int32s_t argument5 = take_int32s_t(&call, 5, 0);
    const int64_t argument6 = take_int64_t(&call, 6);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_header_read_kernels__kind_of(argument0, argument1, argument2, argument3, argument4, argument5, argument6);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_header_read_kernels__is_valid_extension(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "is_valid_extension", given, count, 4);
    const int64_t argument0 = take_int64_t(&call, 0);
    const bytes_t argument1 = take_bytes_t(&call, 1, 0);
    const int64_t argument2 = take_int64_t(&call, 2);
    const int64_t argument3 = take_int64_t(&call, 3);
    bool result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_header_read_kernels__is_valid_extension(argument0, argument1, argument2, argument3);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyBool_FromLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_header_read_kernels__is_new_name(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "is_new_name", given, count, 6);
    const int32s_t argument0 = take_int32s_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    const bytes_t argument3 = take_bytes_t(&call, 3, 0);
    const int64_t argument4 = take_int64_t(&call, 4);
    const int64_t argument5 = take_int64_t(&call, 5);
    bool result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_header_read_kernels__is_new_name(argument0, argument1, argument2, argument3, argument4, argument5);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyBool_FromLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_header_read_kernels__put_entry(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "put_entry", given, count, 6);
    const int32s_t argument0 = take_int32s_t(&call, 0, 1);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    const int64_t argument3 = take_int64_t(&call, 3);
    const int64_t argument4 = take_int64_t(&call, 4);
    const int64_t argument5 = take_int64_t(&call, 5);
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        cloudevents_columnar_kernels_header_read_kernels__put_entry(argument0, argument1, argument2, argument3, argument4, argument5);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    Py_RETURN_NONE;
}

static PyObject *py_cloudevents_columnar_kernels_header_read_kernels__is_structured(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "is_structured", given, count, 3);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    bool result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_header_read_kernels__is_structured(argument0, argument1, argument2);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyBool_FromLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_header_read_kernels__is_json_format(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "is_json_format", given, count, 3);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    bool result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_header_read_kernels__is_json_format(argument0, argument1, argument2);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyBool_FromLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_header_read_kernels__is_prefixed(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "is_prefixed", given, count, 3);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    bool result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_header_read_kernels__is_prefixed(argument0, argument1, argument2);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyBool_FromLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_header_read_kernels__is_prefixed_loosely(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "is_prefixed_loosely", given, count, 3);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    bool result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_header_read_kernels__is_prefixed_loosely(argument0, argument1, argument2);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyBool_FromLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_header_read_kernels__find_attributes(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "find_attributes", given, count, 22);
    const int32s_t argument0 = take_int32s_t(&call, 0, 0);
    const int32s_t argument1 = take_int32s_t(&call, 1, 0);
    const int32s_t argument2 = take_int32s_t(&call, 2, 0);
    const bytes_t argument3 = take_bytes_t(&call, 3, 0);
    const int32s_t argument4 = take_int32s_t(&call, 4, 0);
    const bytes_t argument5 = take_bytes_t(&call, 5, 0);
    const bytes_t argument6 = take_bytes_t(&call, 6, 0);
    const int32s_t argument7 = take_int32s_t(&call, 7, 0);
    const bytes_t argument8 = take_bytes_t(&call, 8, 0);
    const bytes_t argument9 = take_bytes_t(&call, 9, 0);
    const int32s_t argument10 = take_int32s_t(&call, 10, 0);
    const int32s_t argument11 = take_int32s_t(&call, 11, 0);
    const int64_t argument12 = take_int64_t(&call, 12);
    const int32s_t argument13 = take_int32s_t(&call, 13, 1);
    const bytes_t argument14 = take_bytes_t(&call, 14, 1);
    const int32s_t argument15 = take_int32s_t(&call, 15, 1);
    const ints_t argument16 = take_ints_t(&call, 16, 1);
    const bytes_t argument17 = take_bytes_t(&call, 17, 1);
    const ints_t argument18 = take_ints_t(&call, 18, 1);
    const int32s_t argument19 = take_int32s_t(&call, 19, 1);
    const int32s_t argument20 = take_int32s_t(&call, 20, 1);
    const ints_t argument21 = take_ints_t(&call, 21, 1);
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        cloudevents_columnar_kernels_header_read_kernels__find_attributes(argument0, argument1, argument2, argument3, argument4, argument5, argument6, argument7, argument8, argument9, argument10, argument11, argument12, argument13, argument14, argument15, argument16, argument17, argument18, argument19, argument20, argument21);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    Py_RETURN_NONE;
}

static PyObject *py_cloudevents_columnar_kernels_data_decode_kernels__decoded_size(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "decoded_size", given, count, 3);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_data_decode_kernels__decoded_size(argument0, argument1, argument2);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_data_decode_kernels__put_decoded(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "put_decoded", given, count, 5);
    const bytes_t argument0 = take_bytes_t(&call, 0, 1);
    const int64_t argument1 = take_int64_t(&call, 1);
    const bytes_t argument2 = take_bytes_t(&call, 2, 0);
    const int64_t argument3 = take_int64_t(&call, 3);
    const int64_t argument4 = take_int64_t(&call, 4);
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        cloudevents_columnar_kernels_data_decode_kernels__put_decoded(argument0, argument1, argument2, argument3, argument4);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    Py_RETURN_NONE;
}

static PyObject *py_cloudevents_columnar_kernels_data_decode_kernels__hex_at(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "hex_at", given, count, 2);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_data_decode_kernels__hex_at(argument0, argument1);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_data_decode_kernels__escape_at(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "escape_at", given, count, 3);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    tuple2_t result = {{0}};
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_data_decode_kernels__escape_at(argument0, argument1, argument2);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return tuple_of(result.part, 2);
}

static PyObject *py_cloudevents_columnar_kernels_data_decode_kernels__utf8_size(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "utf8_size", given, count, 1);
    const int64_t argument0 = take_int64_t(&call, 0);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_data_decode_kernels__utf8_size(argument0);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_data_decode_kernels__unescaped_size(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "unescaped_size", given, count, 3);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_data_decode_kernels__unescaped_size(argument0, argument1, argument2);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_data_decode_kernels__put_unescaped(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "put_unescaped", given, count, 5);
    const bytes_t argument0 = take_bytes_t(&call, 0, 1);
    const int64_t argument1 = take_int64_t(&call, 1);
    const bytes_t argument2 = take_bytes_t(&call, 2, 0);
    const int64_t argument3 = take_int64_t(&call, 3);
    const int64_t argument4 = take_int64_t(&call, 4);
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        cloudevents_columnar_kernels_data_decode_kernels__put_unescaped(argument0, argument1, argument2, argument3, argument4);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    Py_RETURN_NONE;
}

static PyObject *py_cloudevents_columnar_kernels_data_decode_kernels__gather_data(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "gather_data", given, count, 7);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const bytes_t argument1 = take_bytes_t(&call, 1, 0);
    const bytes_t argument2 = take_bytes_t(&call, 2, 0);
    const bytes_t argument3 = take_bytes_t(&call, 3, 0);
    const int32s_t argument4 = take_int32s_t(&call, 4, 0);
    const int32s_t argument5 = take_int32s_t(&call, 5, 0);
    const bytes_t argument6 = take_bytes_t(&call, 6, 1);
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        cloudevents_columnar_kernels_data_decode_kernels__gather_data(argument0, argument1, argument2, argument3, argument4, argument5, argument6);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    Py_RETURN_NONE;
}

static PyObject *py_cloudevents_columnar_kernels_json_scan_kernels__marked(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "marked", given, count, 1);
    const int64_t argument0 = take_int64_t(&call, 0);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_json_scan_kernels__marked(argument0);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_json_scan_kernels__skip_spaces(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "skip_spaces", given, count, 3);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_json_scan_kernels__skip_spaces(argument0, argument1, argument2);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_json_scan_kernels__skip_escape(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "skip_escape", given, count, 3);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_json_scan_kernels__skip_escape(argument0, argument1, argument2);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_json_scan_kernels__skip_string(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "skip_string", given, count, 3);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    tuple2_t result = {{0}};
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_json_scan_kernels__skip_string(argument0, argument1, argument2);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return tuple_of(result.part, 2);
}

static PyObject *py_cloudevents_columnar_kernels_json_scan_kernels__skip_number(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "skip_number", given, count, 3);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_json_scan_kernels__skip_number(argument0, argument1, argument2);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_json_scan_kernels__skip_scalar(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "skip_scalar", given, count, 3);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    tuple2_t result = {{0}};
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_json_scan_kernels__skip_scalar(argument0, argument1, argument2);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return tuple_of(result.part, 2);
}

static PyObject *py_cloudevents_columnar_kernels_json_scan_kernels__skip_name(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "skip_name", given, count, 3);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_json_scan_kernels__skip_name(argument0, argument1, argument2);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_json_scan_kernels__skip_value(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "skip_value", given, count, 3);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    tuple2_t result = {{0}};
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_json_scan_kernels__skip_value(argument0, argument1, argument2);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return tuple_of(result.part, 2);
}

static PyObject *py_cloudevents_columnar_kernels_envelope_read_kernels__is_utf8_charset(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "is_utf8_charset", given, count, 3);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    bool result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_envelope_read_kernels__is_utf8_charset(argument0, argument1, argument2);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyBool_FromLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_envelope_read_kernels__fits_json_kind(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "fits_json_kind", given, count, 2);
    const int64_t argument0 = take_int64_t(&call, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    bool result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_envelope_read_kernels__fits_json_kind(argument0, argument1);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyBool_FromLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_envelope_read_kernels__is_extension(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "is_extension", given, count, 10);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    const int64_t argument3 = take_int64_t(&call, 3);
    const int64_t argument4 = take_int64_t(&call, 4);
    const int64_t argument5 = take_int64_t(&call, 5);
    const bytes_t argument6 = take_bytes_t(&call, 6, 0);
    const int32s_t argument7 = take_int32s_t(&call, 7, 0);
    const int32s_t argument8 = take_int32s_t(&call, 8, 0);
    const int64_t argument9 = take_int64_t(&call, 9);
    bool result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_envelope_read_kernels__is_extension(argument0, argument1, argument2, argument3, argument4, argument5, argument6, argument7, argument8, argument9);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyBool_FromLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_envelope_read_kernels__is_valid_member(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "is_valid_member", given, count, 6);
    const int64_t argument0 = take_int64_t(&call, 0);
    const bytes_t argument1 = take_bytes_t(&call, 1, 0);
    const int64_t argument2 = take_int64_t(&call, 2);
    const int64_t argument3 = take_int64_t(&call, 3);
    const int64_t argument4 = take_int64_t(&call, 4);
    const int32s_t argument5 = take_int32s_t(&call, 5, 1);
    bool result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_envelope_read_kernels__is_valid_member(argument0, argument1, argument2, argument3, argument4, argument5);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyBool_FromLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_envelope_read_kernels__expected_name(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "expected_name", given, count, 5);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    const int32s_t argument3 = take_int32s_t(&call, 3, 0);
    const int64_t argument4 = take_int64_t(&call, 4);
    tuple2_t result = {{0}};
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_envelope_read_kernels__expected_name(argument0, argument1, argument2, argument3, argument4);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return tuple_of(result.part, 2);
}

static PyObject *py_cloudevents_columnar_kernels_envelope_read_kernels__remember_name(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "remember_name", given, count, 5);
    const int32s_t argument0 = take_int32s_t(&call, 0, 1);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    const int64_t argument3 = take_int64_t(&call, 3);
    const int64_t argument4 = take_int64_t(&call, 4);
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        cloudevents_columnar_kernels_envelope_read_kernels__remember_name(argument0, argument1, argument2, argument3, argument4);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    Py_RETURN_NONE;
}

static PyObject *py_cloudevents_columnar_kernels_envelope_read_kernels__place_data(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "place_data", given, count, 6);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    const int64_t argument3 = take_int64_t(&call, 3);
    const int64_t argument4 = take_int64_t(&call, 4);
    const int64_t argument5 = take_int64_t(&call, 5);
    tuple3_t result = {{0}};
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_envelope_read_kernels__place_data(argument0, argument1, argument2, argument3, argument4, argument5);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return tuple_of(result.part, 3);
}

static PyObject *py_cloudevents_columnar_kernels_envelope_read_kernels__read_envelope(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "read_envelope", given, count, 15);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    const int32s_t argument3 = take_int32s_t(&call, 3, 1);
    const int64_t argument4 = take_int64_t(&call, 4);
    const int64_t argument5 = take_int64_t(&call, 5);
    const int32s_t argument6 = take_int32s_t(&call, 6, 1);
    const int32s_t argument7 = take_int32s_t(&call, 7, 1);
    const int32s_t argument8 = take_int32s_t(&call, 8, 1);
    const int64_t argument9 = take_int64_t(&call, 9);
    const int64_t argument10 = take_int64_t(&call, 10);
    const bytes_t argument11 = take_bytes_t(&call, 11, 0);
    const int32s_t argument12 = take_int32s_t(&call, 12, 0);
    const int32s_t argument13 = take_int32s_t(&call, 13, 0);
    const int64_t argument14 = take_int64_t(&call, 14);
    tuple4_t result = {{0}};
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_envelope_read_kernels__read_envelope(argument0, argument1, argument2, argument3, argument4, argument5, argument6, argument7, argument8, argument9, argument10, argument11, argument12, argument13, argument14);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return tuple_of(result.part, 4);
}

static PyObject *py_cloudevents_columnar_kernels_envelope_read_kernels__read_envelopes(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "read_envelopes", given, count, 16);
    const int32s_t argument0 = take_int32s_t(&call, 0, 0);
    const bytes_t argument1 = take_bytes_t(&call, 1, 0);
    const bytes_t argument2 = take_bytes_t(&call, 2, 0);
    const int32s_t argument3 = take_int32s_t(&call, 3, 0);
    const int32s_t argument4 = take_int32s_t(&call, 4, 0);
    const int32s_t argument5 = take_int32s_t(&call, 5, 1);
    const int32s_t argument6 = take_int32s_t(&call, 6, 1);
    const bytes_t argument7 = take_bytes_t(&call, 7, 1);
    const int32s_t argument8 = take_int32s_t(&call, 8, 1);
    const ints_t argument9 = take_ints_t(&call, 9, 1);
    const bytes_t argument10 = take_bytes_t(&call, 10, 1);
    const bytes_t argument11 = take_bytes_t(&call, 11, 1);
    const ints_t argument12 = take_ints_t(&call, 12, 1);
    const int32s_t argument13 = take_int32s_t(&call, 13, 1);
    const int32s_t argument14 = take_int32s_t(&call, 14, 1);
    const ints_t argument15 = take_ints_t(&call, 15, 1);
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        cloudevents_columnar_kernels_envelope_read_kernels__read_envelopes(argument0, argument1, argument2, argument3, argument4, argument5, argument6, argument7, argument8, argument9, argument10, argument11, argument12, argument13, argument14, argument15);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    Py_RETURN_NONE;
}

static PyObject *py_cloudevents_columnar_kernels_validate_kernels__is_ordinary(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "is_ordinary", given, count, 2);
    const int32s_t argument0 = take_int32s_t(&call, 0, 0);
    const bytes_t argument1 = take_bytes_t(&call, 1, 0);
    bool result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_validate_kernels__is_ordinary(argument0, argument1);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyBool_FromLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_validate_kernels__is_all_plain(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "is_all_plain", given, count, 3);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    bool result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_validate_kernels__is_all_plain(argument0, argument1, argument2);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyBool_FromLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_validate_kernels__check_texts(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "check_texts", given, count, 7);
    const int64_t argument0 = take_int64_t(&call, 0);
    const int32s_t argument1 = take_int32s_t(&call, 1, 0);
    const bytes_t argument2 = take_bytes_t(&call, 2, 0);
    const bytes_t argument3 = take_bytes_t(&call, 3, 0);
    const bool argument4 = take_bool(&call, 4);
    const int32s_t argument5 = take_int32s_t(&call, 5, 1);
    const bytes_t argument6 = take_bytes_t(&call, 6, 1);
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        cloudevents_columnar_kernels_validate_kernels__check_texts(argument0, argument1, argument2, argument3, argument4, argument5, argument6);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    Py_RETURN_NONE;
}

static PyObject *py_cloudevents_columnar_kernels_validate_kernels__is_before(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "is_before", given, count, 5);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    const int64_t argument3 = take_int64_t(&call, 3);
    const int64_t argument4 = take_int64_t(&call, 4);
    bool result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_validate_kernels__is_before(argument0, argument1, argument2, argument3, argument4);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyBool_FromLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_validate_kernels__check_entries(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "check_entries", given, count, 11);
    const int32s_t argument0 = take_int32s_t(&call, 0, 0);
    const int32s_t argument1 = take_int32s_t(&call, 1, 0);
    const bytes_t argument2 = take_bytes_t(&call, 2, 0);
    const int32s_t argument3 = take_int32s_t(&call, 3, 0);
    const bytes_t argument4 = take_bytes_t(&call, 4, 0);
    const bytes_t argument5 = take_bytes_t(&call, 5, 0);
    const bytes_t argument6 = take_bytes_t(&call, 6, 0);
    const int32s_t argument7 = take_int32s_t(&call, 7, 0);
    const int32s_t argument8 = take_int32s_t(&call, 8, 0);
    const int32s_t argument9 = take_int32s_t(&call, 9, 1);
    const bytes_t argument10 = take_bytes_t(&call, 10, 1);
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        cloudevents_columnar_kernels_validate_kernels__check_entries(argument0, argument1, argument2, argument3, argument4, argument5, argument6, argument7, argument8, argument9, argument10);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    Py_RETURN_NONE;
}

static PyObject *py_cloudevents_columnar_kernels_validate_kernels__is_utf8(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "is_utf8", given, count, 3);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    bool result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_validate_kernels__is_utf8(argument0, argument1, argument2);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyBool_FromLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_validate_kernels__judge_data(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "judge_data", given, count, 8);
    const int32s_t argument0 = take_int32s_t(&call, 0, 0);
    const bytes_t argument1 = take_bytes_t(&call, 1, 0);
    const bytes_t argument2 = take_bytes_t(&call, 2, 0);
    const int32s_t argument3 = take_int32s_t(&call, 3, 0);
    const bytes_t argument4 = take_bytes_t(&call, 4, 0);
    const bytes_t argument5 = take_bytes_t(&call, 5, 0);
    const bool argument6 = take_bool(&call, 6);
    const bytes_t argument7 = take_bytes_t(&call, 7, 1);
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        cloudevents_columnar_kernels_validate_kernels__judge_data(argument0, argument1, argument2, argument3, argument4, argument5, argument6, argument7);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    Py_RETURN_NONE;
}

static PyObject *py_cloudevents_columnar_kernels_validate_kernels__as_null_flags(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "as_null_flags", given, count, 3);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const bytes_t argument1 = take_bytes_t(&call, 1, 0);
    const bytes_t argument2 = take_bytes_t(&call, 2, 1);
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        cloudevents_columnar_kernels_validate_kernels__as_null_flags(argument0, argument1, argument2);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    Py_RETURN_NONE;
}

static PyObject *py_cloudevents_columnar_kernels_envelope_write_kernels__skip_unquoted(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "skip_unquoted", given, count, 3);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_envelope_write_kernels__skip_unquoted(argument0, argument1, argument2);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_envelope_write_kernels__quoted_size(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "quoted_size", given, count, 3);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_envelope_write_kernels__quoted_size(argument0, argument1, argument2);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_envelope_write_kernels__put_quoted(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "put_quoted", given, count, 5);
    const bytes_t argument0 = take_bytes_t(&call, 0, 1);
    const int64_t argument1 = take_int64_t(&call, 1);
    const bytes_t argument2 = take_bytes_t(&call, 2, 0);
    const int64_t argument3 = take_int64_t(&call, 3);
    const int64_t argument4 = take_int64_t(&call, 4);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_envelope_write_kernels__put_quoted(argument0, argument1, argument2, argument3, argument4);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_envelope_write_kernels__put_base64(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "put_base64", given, count, 5);
    const bytes_t argument0 = take_bytes_t(&call, 0, 1);
    const int64_t argument1 = take_int64_t(&call, 1);
    const bytes_t argument2 = take_bytes_t(&call, 2, 0);
    const int64_t argument3 = take_int64_t(&call, 3);
    const int64_t argument4 = take_int64_t(&call, 4);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_envelope_write_kernels__put_base64(argument0, argument1, argument2, argument3, argument4);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_envelope_write_kernels__quoted_column_size(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "quoted_column_size", given, count, 2);
    const int32s_t argument0 = take_int32s_t(&call, 0, 0);
    const bytes_t argument1 = take_bytes_t(&call, 1, 0);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_envelope_write_kernels__quoted_column_size(argument0, argument1);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_envelope_write_kernels__entries_size(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "entries_size", given, count, 11);
    const int32s_t argument0 = take_int32s_t(&call, 0, 0);
    const int32s_t argument1 = take_int32s_t(&call, 1, 0);
    const bytes_t argument2 = take_bytes_t(&call, 2, 0);
    const int32s_t argument3 = take_int32s_t(&call, 3, 0);
    const bytes_t argument4 = take_bytes_t(&call, 4, 0);
    const bytes_t argument5 = take_bytes_t(&call, 5, 0);
    const bytes_t argument6 = take_bytes_t(&call, 6, 0);
    const bytes_t argument7 = take_bytes_t(&call, 7, 0);
    const int32s_t argument8 = take_int32s_t(&call, 8, 0);
    const int32s_t argument9 = take_int32s_t(&call, 9, 0);
    const bytes_t argument10 = take_bytes_t(&call, 10, 1);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_envelope_write_kernels__entries_size(argument0, argument1, argument2, argument3, argument4, argument5, argument6, argument7, argument8, argument9, argument10);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_envelope_write_kernels__data_size(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "data_size", given, count, 3);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int32s_t argument1 = take_int32s_t(&call, 1, 0);
    const bytes_t argument2 = take_bytes_t(&call, 2, 0);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_envelope_write_kernels__data_size(argument0, argument1, argument2);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_envelope_write_kernels__put_text(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "put_text", given, count, 6);
    const bytes_t argument0 = take_bytes_t(&call, 0, 1);
    const int64_t argument1 = take_int64_t(&call, 1);
    const bytes_t argument2 = take_bytes_t(&call, 2, 0);
    const int64_t argument3 = take_int64_t(&call, 3);
    const int64_t argument4 = take_int64_t(&call, 4);
    const int64_t argument5 = take_int64_t(&call, 5);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_envelope_write_kernels__put_text(argument0, argument1, argument2, argument3, argument4, argument5);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_envelope_write_kernels__put_entry_member(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "put_entry_member", given, count, 9);
    const bytes_t argument0 = take_bytes_t(&call, 0, 1);
    const int64_t argument1 = take_int64_t(&call, 1);
    const bytes_t argument2 = take_bytes_t(&call, 2, 0);
    const int64_t argument3 = take_int64_t(&call, 3);
    const int64_t argument4 = take_int64_t(&call, 4);
    const bytes_t argument5 = take_bytes_t(&call, 5, 0);
    const int64_t argument6 = take_int64_t(&call, 6);
    const int64_t argument7 = take_int64_t(&call, 7);
    const bool argument8 = take_bool(&call, 8);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_envelope_write_kernels__put_entry_member(argument0, argument1, argument2, argument3, argument4, argument5, argument6, argument7, argument8);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_envelope_write_kernels__put_data(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "put_data", given, count, 7);
    const bytes_t argument0 = take_bytes_t(&call, 0, 1);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    const bytes_t argument3 = take_bytes_t(&call, 3, 0);
    const int64_t argument4 = take_int64_t(&call, 4);
    const int64_t argument5 = take_int64_t(&call, 5);
    const int64_t argument6 = take_int64_t(&call, 6);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_envelope_write_kernels__put_data(argument0, argument1, argument2, argument3, argument4, argument5, argument6);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_envelope_write_kernels__write_envelopes(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "write_envelopes", given, count, 19);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const bytes_list_t argument1 = take_bytes_list_t(&call, 1);
    const int32s_list_t argument2 = take_int32s_list_t(&call, 2);
    const bytes_list_t argument3 = take_bytes_list_t(&call, 3);
    const int32s_t argument4 = take_int32s_t(&call, 4, 0);
    const int32s_t argument5 = take_int32s_t(&call, 5, 0);
    const int32s_t argument6 = take_int32s_t(&call, 6, 0);
    const bytes_t argument7 = take_bytes_t(&call, 7, 0);
    const int32s_t argument8 = take_int32s_t(&call, 8, 0);
    const bytes_t argument9 = take_bytes_t(&call, 9, 0);
    const bytes_t argument10 = take_bytes_t(&call, 10, 0);
    const int32s_t argument11 = take_int32s_t(&call, 11, 0);
    const bytes_t argument12 = take_bytes_t(&call, 12, 0);
    const bytes_t argument13 = take_bytes_t(&call, 13, 0);
    const int32s_t argument14 = take_int32s_t(&call, 14, 0);
    const bytes_t argument15 = take_bytes_t(&call, 15, 0);
    const bytes_t argument16 = take_bytes_t(&call, 16, 0);
    const bytes_t argument17 = take_bytes_t(&call, 17, 1);
    const int32s_t argument18 = take_int32s_t(&call, 18, 1);
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        cloudevents_columnar_kernels_envelope_write_kernels__write_envelopes(argument0, argument1, argument2, argument3, argument4, argument5, argument6, argument7, argument8, argument9, argument10, argument11, argument12, argument13, argument14, argument15, argument16, argument17, argument18);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    Py_RETURN_NONE;
}

static PyObject *py_cloudevents_columnar_kernels_header_write_kernels__civil(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "civil", given, count, 1);
    const int64_t argument0 = take_int64_t(&call, 0);
    tuple3_t result = {{0}};
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_header_write_kernels__civil(argument0);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return tuple_of(result.part, 3);
}

static PyObject *py_cloudevents_columnar_kernels_header_write_kernels__put_number(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "put_number", given, count, 4);
    const bytes_t argument0 = take_bytes_t(&call, 0, 1);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    const int64_t argument3 = take_int64_t(&call, 3);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_header_write_kernels__put_number(argument0, argument1, argument2, argument3);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_header_write_kernels__put_pair(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "put_pair", given, count, 3);
    const bytes_t argument0 = take_bytes_t(&call, 0, 1);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        cloudevents_columnar_kernels_header_write_kernels__put_pair(argument0, argument1, argument2);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    Py_RETURN_NONE;
}

static PyObject *py_cloudevents_columnar_kernels_header_write_kernels__put_triple(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "put_triple", given, count, 3);
    const bytes_t argument0 = take_bytes_t(&call, 0, 1);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_header_write_kernels__put_triple(argument0, argument1, argument2);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_header_write_kernels__put_date(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "put_date", given, count, 3);
    const bytes_t argument0 = take_bytes_t(&call, 0, 1);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        cloudevents_columnar_kernels_header_write_kernels__put_date(argument0, argument1, argument2);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    Py_RETURN_NONE;
}

static PyObject *py_cloudevents_columnar_kernels_header_write_kernels__put_time_of_day(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "put_time_of_day", given, count, 3);
    const bytes_t argument0 = take_bytes_t(&call, 0, 1);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = cloudevents_columnar_kernels_header_write_kernels__put_time_of_day(argument0, argument1, argument2);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_cloudevents_columnar_kernels_header_write_kernels__write_times(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "write_times", given, count, 8);
    const ints_t argument0 = take_ints_t(&call, 0, 0);
    const bytes_t argument1 = take_bytes_t(&call, 1, 0);
    const int32s_t argument2 = take_int32s_t(&call, 2, 0);
    const bytes_t argument3 = take_bytes_t(&call, 3, 0);
    const bytes_t argument4 = take_bytes_t(&call, 4, 0);
    const int32s_t argument5 = take_int32s_t(&call, 5, 1);
    const bytes_t argument6 = take_bytes_t(&call, 6, 1);
    const bytes_t argument7 = take_bytes_t(&call, 7, 1);
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        cloudevents_columnar_kernels_header_write_kernels__write_times(argument0, argument1, argument2, argument3, argument4, argument5, argument6, argument7);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    Py_RETURN_NONE;
}

static PyObject *py_cloudevents_columnar_kernels_header_write_kernels__write_headers(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "write_headers", given, count, 18);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const bytes_list_t argument1 = take_bytes_list_t(&call, 1);
    const int32s_list_t argument2 = take_int32s_list_t(&call, 2);
    const bytes_list_t argument3 = take_bytes_list_t(&call, 3);
    const int32s_t argument4 = take_int32s_t(&call, 4, 0);
    const int32s_t argument5 = take_int32s_t(&call, 5, 0);
    const int32s_t argument6 = take_int32s_t(&call, 6, 0);
    const bytes_t argument7 = take_bytes_t(&call, 7, 0);
    const int32s_t argument8 = take_int32s_t(&call, 8, 0);
    const bytes_t argument9 = take_bytes_t(&call, 9, 0);
    const bytes_t argument10 = take_bytes_t(&call, 10, 0);
    const int32s_t argument11 = take_int32s_t(&call, 11, 0);
    const bytes_t argument12 = take_bytes_t(&call, 12, 0);
    const int32s_t argument13 = take_int32s_t(&call, 13, 1);
    const int32s_t argument14 = take_int32s_t(&call, 14, 1);
    const bytes_t argument15 = take_bytes_t(&call, 15, 1);
    const int32s_t argument16 = take_int32s_t(&call, 16, 1);
    const bytes_t argument17 = take_bytes_t(&call, 17, 1);
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        cloudevents_columnar_kernels_header_write_kernels__write_headers(argument0, argument1, argument2, argument3, argument4, argument5, argument6, argument7, argument8, argument9, argument10, argument11, argument12, argument13, argument14, argument15, argument16, argument17);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    Py_RETURN_NONE;
}

static PyObject *py_records_kernels_decode_kernels__read_unsigned(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "read_unsigned", given, count, 3);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    tuple2_t result = {{0}};
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = records_kernels_decode_kernels__read_unsigned(argument0, argument1, argument2);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return tuple_of(result.part, 2);
}

static PyObject *py_records_kernels_decode_kernels__read_unsigned_long(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "read_unsigned_long", given, count, 3);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    tuple2_t result = {{0}};
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = records_kernels_decode_kernels__read_unsigned_long(argument0, argument1, argument2);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return tuple_of(result.part, 2);
}

static PyObject *py_records_kernels_decode_kernels__short_unsigned(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "short_unsigned", given, count, 3);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    tuple2_t result = {{0}};
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = records_kernels_decode_kernels__short_unsigned(argument0, argument1, argument2);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return tuple_of(result.part, 2);
}

static PyObject *py_records_kernels_decode_kernels__read_int(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "read_int", given, count, 3);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = records_kernels_decode_kernels__read_int(argument0, argument1, argument2);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_records_kernels_decode_kernels__walk_batches(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "walk_batches", given, count, 7);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    const int64_t argument3 = take_int64_t(&call, 3);
    const int64_t argument4 = take_int64_t(&call, 4);
    const ints_t argument5 = take_ints_t(&call, 5, 1);
    const ints_t argument6 = take_ints_t(&call, 6, 1);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = records_kernels_decode_kernels__walk_batches(argument0, argument1, argument2, argument3, argument4, argument5, argument6);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_records_kernels_decode_kernels__scan_records(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "scan_records", given, count, 16);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const ints_t argument1 = take_ints_t(&call, 1, 0);
    const int64_t argument2 = take_int64_t(&call, 2);
    const int64_t argument3 = take_int64_t(&call, 3);
    const int64_t argument4 = take_int64_t(&call, 4);
    const ints_t argument5 = take_ints_t(&call, 5, 1);
    const ints_t argument6 = take_ints_t(&call, 6, 1);
    const int32s_t argument7 = take_int32s_t(&call, 7, 1);
    const int32s_t argument8 = take_int32s_t(&call, 8, 1);
    const int32s_t argument9 = take_int32s_t(&call, 9, 1);
    const int32s_t argument10 = take_int32s_t(&call, 10, 1);
    const int32s_t argument11 = take_int32s_t(&call, 11, 1);
    const int32s_t argument12 = take_int32s_t(&call, 12, 1);
    const int32s_t argument13 = take_int32s_t(&call, 13, 1);
    const int32s_t argument14 = take_int32s_t(&call, 14, 1);
    const ints_t argument15 = take_ints_t(&call, 15, 1);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = records_kernels_decode_kernels__scan_records(argument0, argument1, argument2, argument3, argument4, argument5, argument6, argument7, argument8, argument9, argument10, argument11, argument12, argument13, argument14, argument15);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_records_kernels_decode_kernels__scan_messages(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "scan_messages", given, count, 16);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const ints_t argument1 = take_ints_t(&call, 1, 0);
    const int64_t argument2 = take_int64_t(&call, 2);
    const int64_t argument3 = take_int64_t(&call, 3);
    const int64_t argument4 = take_int64_t(&call, 4);
    const ints_t argument5 = take_ints_t(&call, 5, 1);
    const ints_t argument6 = take_ints_t(&call, 6, 1);
    const int32s_t argument7 = take_int32s_t(&call, 7, 1);
    const int32s_t argument8 = take_int32s_t(&call, 8, 1);
    const int32s_t argument9 = take_int32s_t(&call, 9, 1);
    const int32s_t argument10 = take_int32s_t(&call, 10, 1);
    const int32s_t argument11 = take_int32s_t(&call, 11, 1);
    const int32s_t argument12 = take_int32s_t(&call, 12, 1);
    const int32s_t argument13 = take_int32s_t(&call, 13, 1);
    const int32s_t argument14 = take_int32s_t(&call, 14, 1);
    const ints_t argument15 = take_ints_t(&call, 15, 1);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = records_kernels_decode_kernels__scan_messages(argument0, argument1, argument2, argument3, argument4, argument5, argument6, argument7, argument8, argument9, argument10, argument11, argument12, argument13, argument14, argument15);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_records_kernels_decode_kernels__scan_headers(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "scan_headers", given, count, 11);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int32s_t argument1 = take_int32s_t(&call, 1, 0);
    const int32s_t argument2 = take_int32s_t(&call, 2, 0);
    const int32s_t argument3 = take_int32s_t(&call, 3, 0);
    const int64_t argument4 = take_int64_t(&call, 4);
    const int64_t argument5 = take_int64_t(&call, 5);
    const int32s_t argument6 = take_int32s_t(&call, 6, 1);
    const int32s_t argument7 = take_int32s_t(&call, 7, 1);
    const int32s_t argument8 = take_int32s_t(&call, 8, 1);
    const int32s_t argument9 = take_int32s_t(&call, 9, 1);
    const ints_t argument10 = take_ints_t(&call, 10, 1);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = records_kernels_decode_kernels__scan_headers(argument0, argument1, argument2, argument3, argument4, argument5, argument6, argument7, argument8, argument9, argument10);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_records_kernels_decode_kernels__gather(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "gather", given, count, 6);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int32s_t argument1 = take_int32s_t(&call, 1, 0);
    const int32s_t argument2 = take_int32s_t(&call, 2, 0);
    const int64_t argument3 = take_int64_t(&call, 3);
    const int64_t argument4 = take_int64_t(&call, 4);
    const bytes_t argument5 = take_bytes_t(&call, 5, 1);
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        records_kernels_decode_kernels__gather(argument0, argument1, argument2, argument3, argument4, argument5);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    Py_RETURN_NONE;
}

static PyObject *py_records_kernels_encode_kernels__varint_size(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "varint_size", given, count, 1);
    const int64_t argument0 = take_int64_t(&call, 0);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = records_kernels_encode_kernels__varint_size(argument0);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_records_kernels_encode_kernels__put_varint(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "put_varint", given, count, 3);
    const bytes_t argument0 = take_bytes_t(&call, 0, 1);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = records_kernels_encode_kernels__put_varint(argument0, argument1, argument2);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_records_kernels_encode_kernels__bit_at(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "bit_at", given, count, 2);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = records_kernels_encode_kernels__bit_at(argument0, argument1);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_records_kernels_encode_kernels__plan_batches(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "plan_batches", given, count, 18);
    const ints_t argument0 = take_ints_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    const ints_t argument3 = take_ints_t(&call, 3, 0);
    const int32s_t argument4 = take_int32s_t(&call, 4, 0);
    const bytes_t argument5 = take_bytes_t(&call, 5, 0);
    const int64_t argument6 = take_int64_t(&call, 6);
    const int32s_t argument7 = take_int32s_t(&call, 7, 0);
    const bytes_t argument8 = take_bytes_t(&call, 8, 0);
    const int64_t argument9 = take_int64_t(&call, 9);
    const int32s_t argument10 = take_int32s_t(&call, 10, 0);
    const int32s_t argument11 = take_int32s_t(&call, 11, 0);
    const int32s_t argument12 = take_int32s_t(&call, 12, 0);
    const bytes_t argument13 = take_bytes_t(&call, 13, 0);
    const int64_t argument14 = take_int64_t(&call, 14);
    const int32s_t argument15 = take_int32s_t(&call, 15, 1);
    const ints_t argument16 = take_ints_t(&call, 16, 1);
    const ints_t argument17 = take_ints_t(&call, 17, 1);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = records_kernels_encode_kernels__plan_batches(argument0, argument1, argument2, argument3, argument4, argument5, argument6, argument7, argument8, argument9, argument10, argument11, argument12, argument13, argument14, argument15, argument16, argument17);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_records_kernels_encode_kernels__write_batches(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "write_batches", given, count, 22);
    const bytes_t argument0 = take_bytes_t(&call, 0, 1);
    const int64_t argument1 = take_int64_t(&call, 1);
    const ints_t argument2 = take_ints_t(&call, 2, 0);
    const int64_t argument3 = take_int64_t(&call, 3);
    const ints_t argument4 = take_ints_t(&call, 4, 0);
    const int32s_t argument5 = take_int32s_t(&call, 5, 0);
    const ints_t argument6 = take_ints_t(&call, 6, 0);
    const bytes_t argument7 = take_bytes_t(&call, 7, 0);
    const int32s_t argument8 = take_int32s_t(&call, 8, 0);
    const bytes_t argument9 = take_bytes_t(&call, 9, 0);
    const int64_t argument10 = take_int64_t(&call, 10);
    const bytes_t argument11 = take_bytes_t(&call, 11, 0);
    const int32s_t argument12 = take_int32s_t(&call, 12, 0);
    const bytes_t argument13 = take_bytes_t(&call, 13, 0);
    const int64_t argument14 = take_int64_t(&call, 14);
    const int32s_t argument15 = take_int32s_t(&call, 15, 0);
    const bytes_t argument16 = take_bytes_t(&call, 16, 0);
    const int32s_t argument17 = take_int32s_t(&call, 17, 0);
    const bytes_t argument18 = take_bytes_t(&call, 18, 0);
    const int32s_t argument19 = take_int32s_t(&call, 19, 0);
    const bytes_t argument20 = take_bytes_t(&call, 20, 0);
    const int64_t argument21 = take_int64_t(&call, 21);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = records_kernels_encode_kernels__write_batches(argument0, argument1, argument2, argument3, argument4, argument5, argument6, argument7, argument8, argument9, argument10, argument11, argument12, argument13, argument14, argument15, argument16, argument17, argument18, argument19, argument20, argument21);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_records_kernels_json_kernels__put_number(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "put_number", given, count, 3);
    const bytes_t argument0 = take_bytes_t(&call, 0, 1);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = records_kernels_json_kernels__put_number(argument0, argument1, argument2);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_records_kernels_json_kernels__sequence_size(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "sequence_size", given, count, 3);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = records_kernels_json_kernels__sequence_size(argument0, argument1, argument2);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_records_kernels_json_kernels__put_text(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "put_text", given, count, 5);
    const bytes_t argument0 = take_bytes_t(&call, 0, 1);
    const int64_t argument1 = take_int64_t(&call, 1);
    const bytes_t argument2 = take_bytes_t(&call, 2, 0);
    const int64_t argument3 = take_int64_t(&call, 3);
    const int64_t argument4 = take_int64_t(&call, 4);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = records_kernels_json_kernels__put_text(argument0, argument1, argument2, argument3, argument4);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_records_kernels_json_kernels__put_base64(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "put_base64", given, count, 5);
    const bytes_t argument0 = take_bytes_t(&call, 0, 1);
    const int64_t argument1 = take_int64_t(&call, 1);
    const bytes_t argument2 = take_bytes_t(&call, 2, 0);
    const int64_t argument3 = take_int64_t(&call, 3);
    const int64_t argument4 = take_int64_t(&call, 4);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = records_kernels_json_kernels__put_base64(argument0, argument1, argument2, argument3, argument4);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_records_kernels_json_kernels__put_literal(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "put_literal", given, count, 3);
    const bytes_t argument0 = take_bytes_t(&call, 0, 1);
    const int64_t argument1 = take_int64_t(&call, 1);
    const bytes_t argument2 = take_bytes_t(&call, 2, 0);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = records_kernels_json_kernels__put_literal(argument0, argument1, argument2);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_records_kernels_json_kernels__put_field(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "put_field", given, count, 8);
    const bytes_t argument0 = take_bytes_t(&call, 0, 1);
    const int64_t argument1 = take_int64_t(&call, 1);
    const bytes_t argument2 = take_bytes_t(&call, 2, 0);
    const bytes_t argument3 = take_bytes_t(&call, 3, 0);
    const bytes_t argument4 = take_bytes_t(&call, 4, 0);
    const int64_t argument5 = take_int64_t(&call, 5);
    const int64_t argument6 = take_int64_t(&call, 6);
    const int64_t argument7 = take_int64_t(&call, 7);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = records_kernels_json_kernels__put_field(argument0, argument1, argument2, argument3, argument4, argument5, argument6, argument7);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_records_kernels_json_kernels__put_headers(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "put_headers", given, count, 10);
    const bytes_t argument0 = take_bytes_t(&call, 0, 1);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    const int64_t argument3 = take_int64_t(&call, 3);
    const bytes_t argument4 = take_bytes_t(&call, 4, 0);
    const int32s_t argument5 = take_int32s_t(&call, 5, 0);
    const bytes_t argument6 = take_bytes_t(&call, 6, 0);
    const int32s_t argument7 = take_int32s_t(&call, 7, 0);
    const bytes_t argument8 = take_bytes_t(&call, 8, 0);
    const int64_t argument9 = take_int64_t(&call, 9);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = records_kernels_json_kernels__put_headers(argument0, argument1, argument2, argument3, argument4, argument5, argument6, argument7, argument8, argument9);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_records_kernels_json_kernels__put_lines(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "put_lines", given, count, 24);
    const bytes_t argument0 = take_bytes_t(&call, 0, 1);
    const bytes_t argument1 = take_bytes_t(&call, 1, 0);
    const bytes_t argument2 = take_bytes_t(&call, 2, 0);
    const ints_t argument3 = take_ints_t(&call, 3, 0);
    const int64_t argument4 = take_int64_t(&call, 4);
    const int64_t argument5 = take_int64_t(&call, 5);
    const ints_t argument6 = take_ints_t(&call, 6, 0);
    const ints_t argument7 = take_ints_t(&call, 7, 0);
    const int32s_t argument8 = take_int32s_t(&call, 8, 0);
    const bytes_t argument9 = take_bytes_t(&call, 9, 0);
    const int32s_t argument10 = take_int32s_t(&call, 10, 0);
    const bytes_t argument11 = take_bytes_t(&call, 11, 0);
    const int64_t argument12 = take_int64_t(&call, 12);
    const bytes_t argument13 = take_bytes_t(&call, 13, 0);
    const int32s_t argument14 = take_int32s_t(&call, 14, 0);
    const bytes_t argument15 = take_bytes_t(&call, 15, 0);
    const int64_t argument16 = take_int64_t(&call, 16);
    const int32s_t argument17 = take_int32s_t(&call, 17, 0);
    const bytes_t argument18 = take_bytes_t(&call, 18, 0);
    const int32s_t argument19 = take_int32s_t(&call, 19, 0);
    const bytes_t argument20 = take_bytes_t(&call, 20, 0);
    const int32s_t argument21 = take_int32s_t(&call, 21, 0);
    const bytes_t argument22 = take_bytes_t(&call, 22, 0);
    const int64_t argument23 = take_int64_t(&call, 23);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = records_kernels_json_kernels__put_lines(argument0, argument1, argument2, argument3, argument4, argument5, argument6, argument7, argument8, argument9, argument10, argument11, argument12, argument13, argument14, argument15, argument16, argument17, argument18, argument19, argument20, argument21, argument22, argument23);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_records_kernels_key_kernels__find_keys(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "find_keys", given, count, 3);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const ints_t argument2 = take_ints_t(&call, 2, 1);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = records_kernels_key_kernels__find_keys(argument0, argument1, argument2);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_registry_columns_span_kernels__is_utf8(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "is_utf8", given, count, 3);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    bool result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = registry_columns_span_kernels__is_utf8(argument0, argument1, argument2);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyBool_FromLong(result);
}

static PyObject *py_registry_columns_span_kernels__unsigned_varint(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "unsigned_varint", given, count, 3);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    tuple2_t result = {{0}};
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = registry_columns_span_kernels__unsigned_varint(argument0, argument1, argument2);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return tuple_of(result.part, 2);
}

static PyObject *py_registry_columns_span_kernels__copy_spans(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "copy_spans", given, count, 7);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const bytes_t argument1 = take_bytes_t(&call, 1, 0);
    const ints_t argument2 = take_ints_t(&call, 2, 0);
    const ints_t argument3 = take_ints_t(&call, 3, 0);
    const int64_t argument4 = take_int64_t(&call, 4);
    const int32s_t argument5 = take_int32s_t(&call, 5, 1);
    const bytes_t argument6 = take_bytes_t(&call, 6, 1);
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        registry_columns_span_kernels__copy_spans(argument0, argument1, argument2, argument3, argument4, argument5, argument6);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    Py_RETURN_NONE;
}

static PyObject *py_registry_columns_span_kernels__read_decimals(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "read_decimals", given, count, 6);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const bytes_t argument1 = take_bytes_t(&call, 1, 0);
    const ints_t argument2 = take_ints_t(&call, 2, 0);
    const ints_t argument3 = take_ints_t(&call, 3, 0);
    const int64_t argument4 = take_int64_t(&call, 4);
    const ints_t argument5 = take_ints_t(&call, 5, 1);
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        registry_columns_span_kernels__read_decimals(argument0, argument1, argument2, argument3, argument4, argument5);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    Py_RETURN_NONE;
}

static PyObject *py_registry_columns_avro_kernel__undo_row(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "undo_row", given, count, 6);
    const ints_t argument0 = take_ints_t(&call, 0, 0);
    const ints_t argument1 = take_ints_t(&call, 1, 0);
    const ints_t argument2 = take_ints_t(&call, 2, 1);
    const ints_t argument3 = take_ints_t(&call, 3, 1);
    const ints_t argument4 = take_ints_t(&call, 4, 0);
    const ints_t argument5 = take_ints_t(&call, 5, 0);
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        registry_columns_avro_kernel__undo_row(argument0, argument1, argument2, argument3, argument4, argument5);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    Py_RETURN_NONE;
}

static PyObject *py_registry_columns_avro_kernel__read_avro(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "read_avro", given, count, 14);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const ints_t argument1 = take_ints_t(&call, 1, 0);
    const ints_t argument2 = take_ints_t(&call, 2, 0);
    const int64_t argument3 = take_int64_t(&call, 3);
    const ints_t argument4 = take_ints_t(&call, 4, 0);
    const ints_t argument5 = take_ints_t(&call, 5, 0);
    const ints_t argument6 = take_ints_t(&call, 6, 0);
    const ints_t argument7 = take_ints_t(&call, 7, 0);
    const ints_t argument8 = take_ints_t(&call, 8, 0);
    const ints_t argument9 = take_ints_t(&call, 9, 1);
    const ints_t argument10 = take_ints_t(&call, 10, 1);
    const ints_t argument11 = take_ints_t(&call, 11, 1);
    const ints_t argument12 = take_ints_t(&call, 12, 1);
    const bytes_t argument13 = take_bytes_t(&call, 13, 1);
    tuple2_t result = {{0}};
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = registry_columns_avro_kernel__read_avro(argument0, argument1, argument2, argument3, argument4, argument5, argument6, argument7, argument8, argument9, argument10, argument11, argument12, argument13);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return tuple_of(result.part, 2);
}

static PyObject *py_registry_columns_protobuf_kernel__entry_of(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "entry_of", given, count, 5);
    const ints_t argument0 = take_ints_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    const int64_t argument3 = take_int64_t(&call, 3);
    const int64_t argument4 = take_int64_t(&call, 4);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = registry_columns_protobuf_kernel__entry_of(argument0, argument1, argument2, argument3, argument4);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_registry_columns_protobuf_kernel__scalar(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "scalar", given, count, 4);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    const int64_t argument3 = take_int64_t(&call, 3);
    tuple2_t result = {{0}};
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = registry_columns_protobuf_kernel__scalar(argument0, argument1, argument2, argument3);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return tuple_of(result.part, 2);
}

static PyObject *py_registry_columns_protobuf_kernel__skipped(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "skipped", given, count, 4);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    const int64_t argument3 = take_int64_t(&call, 3);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = registry_columns_protobuf_kernel__skipped(argument0, argument1, argument2, argument3);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_registry_columns_protobuf_kernel__read_protobuf(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "read_protobuf", given, count, 16);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const ints_t argument1 = take_ints_t(&call, 1, 0);
    const ints_t argument2 = take_ints_t(&call, 2, 0);
    const int64_t argument3 = take_int64_t(&call, 3);
    const ints_t argument4 = take_ints_t(&call, 4, 0);
    const ints_t argument5 = take_ints_t(&call, 5, 0);
    const ints_t argument6 = take_ints_t(&call, 6, 0);
    const ints_t argument7 = take_ints_t(&call, 7, 0);
    const ints_t argument8 = take_ints_t(&call, 8, 0);
    const ints_t argument9 = take_ints_t(&call, 9, 0);
    const ints_t argument10 = take_ints_t(&call, 10, 0);
    const ints_t argument11 = take_ints_t(&call, 11, 1);
    const ints_t argument12 = take_ints_t(&call, 12, 1);
    const ints_t argument13 = take_ints_t(&call, 13, 1);
    const ints_t argument14 = take_ints_t(&call, 14, 1);
    const bytes_t argument15 = take_bytes_t(&call, 15, 1);
    tuple2_t result = {{0}};
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = registry_columns_protobuf_kernel__read_protobuf(argument0, argument1, argument2, argument3, argument4, argument5, argument6, argument7, argument8, argument9, argument10, argument11, argument12, argument13, argument14, argument15);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return tuple_of(result.part, 2);
}

static PyObject *py_v07_columns__crc32(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "crc32", given, count, 4);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    const ints_t argument3 = take_ints_t(&call, 3, 0);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = v07_columns__crc32(argument0, argument1, argument2, argument3);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_v07_columns___int32(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "_int32", given, count, 2);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = v07_columns___int32(argument0, argument1);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_v07_columns__scan(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "scan", given, count, 8);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const int64_t argument1 = take_int64_t(&call, 1);
    const int64_t argument2 = take_int64_t(&call, 2);
    const bool argument3 = take_bool(&call, 3);
    const ints_t argument4 = take_ints_t(&call, 4, 0);
    const ints_t argument5 = take_ints_t(&call, 5, 1);
    const ints_t argument6 = take_ints_t(&call, 6, 1);
    const ints_t argument7 = take_ints_t(&call, 7, 1);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = v07_columns__scan(argument0, argument1, argument2, argument3, argument4, argument5, argument6, argument7);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

static PyObject *py_v07_columns__gather(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "gather", given, count, 6);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    const ints_t argument1 = take_ints_t(&call, 1, 0);
    const ints_t argument2 = take_ints_t(&call, 2, 0);
    const int64_t argument3 = take_int64_t(&call, 3);
    const bytes_t argument4 = take_bytes_t(&call, 4, 1);
    const int32s_t argument5 = take_int32s_t(&call, 5, 1);
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        v07_columns__gather(argument0, argument1, argument2, argument3, argument4, argument5);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    Py_RETURN_NONE;
}

static PyObject *py_v07_columns___complete_size(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    call_t call; begin_call(&call, "_complete_size", given, count, 1);
    const bytes_t argument0 = take_bytes_t(&call, 0, 0);
    int64_t result = 0;
    if (!call.failed) {
        Py_BEGIN_ALLOW_THREADS
        result = v07_columns___complete_size(argument0);
        Py_END_ALLOW_THREADS
    }
    if (end_call(&call)) return NULL;
    return PyLong_FromLongLong(result);
}

#include "rows.h"

static PyMethodDef METHODS[] = {
    {"client_produce_partitioner_columns___murmur2_partitions", (PyCFunction)(void (*)(void))py_client_produce_partitioner_columns___murmur2_partitions, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_texts__class_of", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_texts__class_of, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_texts__same_bytes", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_texts__same_bytes, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_texts__is_plain", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_texts__is_plain, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_texts__has_no", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_texts__has_no, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_texts__skip_plain", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_texts__skip_plain, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_texts__character", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_texts__character, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_texts__is_string", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_texts__is_string, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_texts__skip_class", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_texts__skip_class, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_texts__skip_uri_part", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_texts__skip_uri_part, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_texts__skip_authority", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_texts__skip_authority, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_texts__skip_query", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_texts__skip_query, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_texts__is_uri", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_texts__is_uri, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_texts__skip_blanks", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_texts__skip_blanks, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_texts__is_media_type", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_texts__is_media_type, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_texts__lower", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_texts__lower, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_texts__same_letters", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_texts__same_letters, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_texts__is_json_type", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_texts__is_json_type, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_texts__is_integer", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_texts__is_integer, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_texts__is_boolean", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_texts__is_boolean, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_texts__base64_digit", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_texts__base64_digit, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_texts__is_base64", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_texts__is_base64, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_texts__known_place", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_texts__known_place, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_texts__is_known", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_texts__is_known, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_texts__remember", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_texts__remember, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_spans__lay_out", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_spans__lay_out, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_spans__copy_short", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_spans__copy_short, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_spans__gather", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_spans__gather, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_spans__field", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_spans__field, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_spans__lay_out_entries", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_spans__lay_out_entries, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_spans__gather_entries", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_spans__gather_entries, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_spans__find_entries", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_spans__find_entries, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_timestamp_kernels__number_at", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_timestamp_kernels__number_at, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_timestamp_kernels__days_since_1970", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_timestamp_kernels__days_since_1970, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_timestamp_kernels__read_time", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_timestamp_kernels__read_time, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_header_read_kernels__core_slot", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_header_read_kernels__core_slot, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_header_read_kernels__is_one_zero", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_header_read_kernels__is_one_zero, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_header_read_kernels__is_valid_core", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_header_read_kernels__is_valid_core, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_header_read_kernels__is_extension_name", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_header_read_kernels__is_extension_name, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_header_read_kernels__kind_of", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_header_read_kernels__kind_of, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_header_read_kernels__is_valid_extension", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_header_read_kernels__is_valid_extension, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_header_read_kernels__is_new_name", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_header_read_kernels__is_new_name, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_header_read_kernels__put_entry", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_header_read_kernels__put_entry, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_header_read_kernels__is_structured", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_header_read_kernels__is_structured, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_header_read_kernels__is_json_format", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_header_read_kernels__is_json_format, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_header_read_kernels__is_prefixed", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_header_read_kernels__is_prefixed, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_header_read_kernels__is_prefixed_loosely", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_header_read_kernels__is_prefixed_loosely, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_header_read_kernels__find_attributes", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_header_read_kernels__find_attributes, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_data_decode_kernels__decoded_size", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_data_decode_kernels__decoded_size, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_data_decode_kernels__put_decoded", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_data_decode_kernels__put_decoded, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_data_decode_kernels__hex_at", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_data_decode_kernels__hex_at, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_data_decode_kernels__escape_at", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_data_decode_kernels__escape_at, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_data_decode_kernels__utf8_size", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_data_decode_kernels__utf8_size, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_data_decode_kernels__unescaped_size", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_data_decode_kernels__unescaped_size, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_data_decode_kernels__put_unescaped", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_data_decode_kernels__put_unescaped, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_data_decode_kernels__gather_data", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_data_decode_kernels__gather_data, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_json_scan_kernels__marked", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_json_scan_kernels__marked, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_json_scan_kernels__skip_spaces", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_json_scan_kernels__skip_spaces, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_json_scan_kernels__skip_escape", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_json_scan_kernels__skip_escape, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_json_scan_kernels__skip_string", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_json_scan_kernels__skip_string, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_json_scan_kernels__skip_number", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_json_scan_kernels__skip_number, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_json_scan_kernels__skip_scalar", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_json_scan_kernels__skip_scalar, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_json_scan_kernels__skip_name", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_json_scan_kernels__skip_name, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_json_scan_kernels__skip_value", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_json_scan_kernels__skip_value, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_envelope_read_kernels__is_utf8_charset", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_envelope_read_kernels__is_utf8_charset, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_envelope_read_kernels__fits_json_kind", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_envelope_read_kernels__fits_json_kind, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_envelope_read_kernels__is_extension", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_envelope_read_kernels__is_extension, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_envelope_read_kernels__is_valid_member", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_envelope_read_kernels__is_valid_member, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_envelope_read_kernels__expected_name", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_envelope_read_kernels__expected_name, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_envelope_read_kernels__remember_name", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_envelope_read_kernels__remember_name, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_envelope_read_kernels__place_data", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_envelope_read_kernels__place_data, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_envelope_read_kernels__read_envelope", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_envelope_read_kernels__read_envelope, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_envelope_read_kernels__read_envelopes", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_envelope_read_kernels__read_envelopes, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_validate_kernels__is_ordinary", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_validate_kernels__is_ordinary, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_validate_kernels__is_all_plain", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_validate_kernels__is_all_plain, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_validate_kernels__check_texts", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_validate_kernels__check_texts, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_validate_kernels__is_before", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_validate_kernels__is_before, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_validate_kernels__check_entries", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_validate_kernels__check_entries, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_validate_kernels__is_utf8", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_validate_kernels__is_utf8, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_validate_kernels__judge_data", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_validate_kernels__judge_data, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_validate_kernels__as_null_flags", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_validate_kernels__as_null_flags, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_envelope_write_kernels__skip_unquoted", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_envelope_write_kernels__skip_unquoted, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_envelope_write_kernels__quoted_size", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_envelope_write_kernels__quoted_size, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_envelope_write_kernels__put_quoted", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_envelope_write_kernels__put_quoted, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_envelope_write_kernels__put_base64", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_envelope_write_kernels__put_base64, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_envelope_write_kernels__quoted_column_size", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_envelope_write_kernels__quoted_column_size, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_envelope_write_kernels__entries_size", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_envelope_write_kernels__entries_size, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_envelope_write_kernels__data_size", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_envelope_write_kernels__data_size, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_envelope_write_kernels__put_text", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_envelope_write_kernels__put_text, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_envelope_write_kernels__put_entry_member", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_envelope_write_kernels__put_entry_member, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_envelope_write_kernels__put_data", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_envelope_write_kernels__put_data, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_envelope_write_kernels__write_envelopes", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_envelope_write_kernels__write_envelopes, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_header_write_kernels__civil", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_header_write_kernels__civil, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_header_write_kernels__put_number", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_header_write_kernels__put_number, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_header_write_kernels__put_pair", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_header_write_kernels__put_pair, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_header_write_kernels__put_triple", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_header_write_kernels__put_triple, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_header_write_kernels__put_date", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_header_write_kernels__put_date, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_header_write_kernels__put_time_of_day", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_header_write_kernels__put_time_of_day, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_header_write_kernels__write_times", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_header_write_kernels__write_times, METH_FASTCALL, NULL},
    {"cloudevents_columnar_kernels_header_write_kernels__write_headers", (PyCFunction)(void (*)(void))py_cloudevents_columnar_kernels_header_write_kernels__write_headers, METH_FASTCALL, NULL},
    {"records_kernels_decode_kernels__read_unsigned", (PyCFunction)(void (*)(void))py_records_kernels_decode_kernels__read_unsigned, METH_FASTCALL, NULL},
    {"records_kernels_decode_kernels__read_unsigned_long", (PyCFunction)(void (*)(void))py_records_kernels_decode_kernels__read_unsigned_long, METH_FASTCALL, NULL},
    {"records_kernels_decode_kernels__short_unsigned", (PyCFunction)(void (*)(void))py_records_kernels_decode_kernels__short_unsigned, METH_FASTCALL, NULL},
    {"records_kernels_decode_kernels__read_int", (PyCFunction)(void (*)(void))py_records_kernels_decode_kernels__read_int, METH_FASTCALL, NULL},
    {"records_kernels_decode_kernels__walk_batches", (PyCFunction)(void (*)(void))py_records_kernels_decode_kernels__walk_batches, METH_FASTCALL, NULL},
    {"records_kernels_decode_kernels__scan_records", (PyCFunction)(void (*)(void))py_records_kernels_decode_kernels__scan_records, METH_FASTCALL, NULL},
    {"records_kernels_decode_kernels__scan_messages", (PyCFunction)(void (*)(void))py_records_kernels_decode_kernels__scan_messages, METH_FASTCALL, NULL},
    {"records_kernels_decode_kernels__scan_headers", (PyCFunction)(void (*)(void))py_records_kernels_decode_kernels__scan_headers, METH_FASTCALL, NULL},
    {"records_kernels_decode_kernels__gather", (PyCFunction)(void (*)(void))py_records_kernels_decode_kernels__gather, METH_FASTCALL, NULL},
    {"records_kernels_encode_kernels__varint_size", (PyCFunction)(void (*)(void))py_records_kernels_encode_kernels__varint_size, METH_FASTCALL, NULL},
    {"records_kernels_encode_kernels__put_varint", (PyCFunction)(void (*)(void))py_records_kernels_encode_kernels__put_varint, METH_FASTCALL, NULL},
    {"records_kernels_encode_kernels__bit_at", (PyCFunction)(void (*)(void))py_records_kernels_encode_kernels__bit_at, METH_FASTCALL, NULL},
    {"records_kernels_encode_kernels__plan_batches", (PyCFunction)(void (*)(void))py_records_kernels_encode_kernels__plan_batches, METH_FASTCALL, NULL},
    {"records_kernels_encode_kernels__write_batches", (PyCFunction)(void (*)(void))py_records_kernels_encode_kernels__write_batches, METH_FASTCALL, NULL},
    {"records_kernels_json_kernels__put_number", (PyCFunction)(void (*)(void))py_records_kernels_json_kernels__put_number, METH_FASTCALL, NULL},
    {"records_kernels_json_kernels__sequence_size", (PyCFunction)(void (*)(void))py_records_kernels_json_kernels__sequence_size, METH_FASTCALL, NULL},
    {"records_kernels_json_kernels__put_text", (PyCFunction)(void (*)(void))py_records_kernels_json_kernels__put_text, METH_FASTCALL, NULL},
    {"records_kernels_json_kernels__put_base64", (PyCFunction)(void (*)(void))py_records_kernels_json_kernels__put_base64, METH_FASTCALL, NULL},
    {"records_kernels_json_kernels__put_literal", (PyCFunction)(void (*)(void))py_records_kernels_json_kernels__put_literal, METH_FASTCALL, NULL},
    {"records_kernels_json_kernels__put_field", (PyCFunction)(void (*)(void))py_records_kernels_json_kernels__put_field, METH_FASTCALL, NULL},
    {"records_kernels_json_kernels__put_headers", (PyCFunction)(void (*)(void))py_records_kernels_json_kernels__put_headers, METH_FASTCALL, NULL},
    {"records_kernels_json_kernels__put_lines", (PyCFunction)(void (*)(void))py_records_kernels_json_kernels__put_lines, METH_FASTCALL, NULL},
    {"records_kernels_key_kernels__find_keys", (PyCFunction)(void (*)(void))py_records_kernels_key_kernels__find_keys, METH_FASTCALL, NULL},
    {"registry_columns_span_kernels__is_utf8", (PyCFunction)(void (*)(void))py_registry_columns_span_kernels__is_utf8, METH_FASTCALL, NULL},
    {"registry_columns_span_kernels__unsigned_varint", (PyCFunction)(void (*)(void))py_registry_columns_span_kernels__unsigned_varint, METH_FASTCALL, NULL},
    {"registry_columns_span_kernels__copy_spans", (PyCFunction)(void (*)(void))py_registry_columns_span_kernels__copy_spans, METH_FASTCALL, NULL},
    {"registry_columns_span_kernels__read_decimals", (PyCFunction)(void (*)(void))py_registry_columns_span_kernels__read_decimals, METH_FASTCALL, NULL},
    {"registry_columns_avro_kernel__undo_row", (PyCFunction)(void (*)(void))py_registry_columns_avro_kernel__undo_row, METH_FASTCALL, NULL},
    {"registry_columns_avro_kernel__read_avro", (PyCFunction)(void (*)(void))py_registry_columns_avro_kernel__read_avro, METH_FASTCALL, NULL},
    {"registry_columns_protobuf_kernel__entry_of", (PyCFunction)(void (*)(void))py_registry_columns_protobuf_kernel__entry_of, METH_FASTCALL, NULL},
    {"registry_columns_protobuf_kernel__scalar", (PyCFunction)(void (*)(void))py_registry_columns_protobuf_kernel__scalar, METH_FASTCALL, NULL},
    {"registry_columns_protobuf_kernel__skipped", (PyCFunction)(void (*)(void))py_registry_columns_protobuf_kernel__skipped, METH_FASTCALL, NULL},
    {"registry_columns_protobuf_kernel__read_protobuf", (PyCFunction)(void (*)(void))py_registry_columns_protobuf_kernel__read_protobuf, METH_FASTCALL, NULL},
    {"v07_columns__crc32", (PyCFunction)(void (*)(void))py_v07_columns__crc32, METH_FASTCALL, NULL},
    {"v07_columns___int32", (PyCFunction)(void (*)(void))py_v07_columns___int32, METH_FASTCALL, NULL},
    {"v07_columns__scan", (PyCFunction)(void (*)(void))py_v07_columns__scan, METH_FASTCALL, NULL},
    {"v07_columns__gather", (PyCFunction)(void (*)(void))py_v07_columns__gather, METH_FASTCALL, NULL},
    {"v07_columns___complete_size", (PyCFunction)(void (*)(void))py_v07_columns___complete_size, METH_FASTCALL, NULL},
    {"read_rows", (PyCFunction)(void (*)(void))read_rows, METH_FASTCALL, NULL},
    {"write_rows", (PyCFunction)(void (*)(void))write_rows, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

#define DIGEST "4e10552a200c8183"
#include "module.h"
