"""brod and samsa, clients of Kafka 0.7 for Python 2, in Jython: "write" or "read", then CLIENT PORT TOPIC.

Writers send numbers to partition 0 until they are killed, and print "sent N". Readers print each record as "r
VALUE". This file is valid in Python 2 and 3.
"""

import collections
import struct
import sys
import time
import types

HEAD_BYTES = 9
"""Bytes before the value in a message with magic byte 0: size, magic byte and checksum."""


class NamedStruct:
    """A replacement for samsa's class of this name, which Jython cannot derive from `struct.Struct`."""

    def __init__(self, name, fields, byteorder="!"):
        self.format = byteorder + "".join(field[0] for field in fields)
        self.size = struct.calcsize(self.format)
        self.namedtuple = collections.namedtuple(name, [field[1] for field in fields])

    def pack(self, *values, **named):
        return struct.pack(self.format, *self.namedtuple(*values, **named))

    def pack_into(self, target, offset, *values, **named):
        target[offset : offset + self.size] = bytearray(self.pack(*values, **named))

    def unpack(self, data):
        return self.namedtuple(*struct.unpack(self.format, data))

    def unpack_from(self, data, offset=0):
        return self.namedtuple(*struct.unpack_from(self.format, data, offset))


def brod_client(port):
    import brod

    client = brod.Kafka("127.0.0.1", port)

    def write(topic, values):
        client.produce(topic, values, 0)

    def read(topic, offset):
        found = list(client.fetch(topic, offset, 0, 1 << 20))
        return found, (found[-1][0] + HEAD_BYTES + len(found[-1][1]) if found else None)

    return write, read, lambda topic: client.earliest_offset(topic, 0)


def samsa_client(port):
    module = types.ModuleType("samsa.utils.namedstruct")
    module.NamedStruct = NamedStruct
    sys.modules[module.__name__] = module
    from samsa.client import OFFSET_EARLIEST, Client
    from samsa.handlers import ThreadingHandler

    client = Client("127.0.0.1", ThreadingHandler(), port)

    def write(topic, values):
        client.produce(topic, 0, values)

    def read(topic, offset):
        found = client.fetch(topic, 0, offset, 1 << 20)
        return [(each.offset, each.payload) for each in found], (found[-1].next_offset if found else None)

    return write, read, lambda topic: client.offsets(topic, 0, OFFSET_EARLIEST, 1)[0]


def main(what, name, port, topic):
    write, read, earliest = {"brod": brod_client, "samsa": samsa_client}[name](int(port))
    if what == "write":
        number = 0
        while True:
            write(topic, [str(number)])
            sys.stdout.write("sent " + str(number) + "\n")
            sys.stdout.flush()
            number += 1
            time.sleep(0.005)
    offset = earliest(topic)
    while True:
        found, next_offset = read(topic, offset)
        for _, value in found:
            sys.stdout.write("r " + str(value).strip() + "\n")
        sys.stdout.flush()
        if next_offset:
            offset = next_offset
        else:
            time.sleep(0.1)


if __name__ == "__main__":
    main(*sys.argv[1:])
