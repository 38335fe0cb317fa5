"""brod and samsa, clients of Kafka 0.7 for Python 2, in Jython: "write" or "read", then CLIENT PORT TOPIC.

They write numbers into partition 0 until they are killed, and print "sent N"; they print what they read as
"r VALUE". This file is Python 2 and 3.
"""

import struct
import sys
import time

HEAD_BYTES = 9
"""Bytes of a message of magic 0 in front of its value: size, magic, checksum."""


class Struct:
    """`struct.Struct` as samsa derives from it, which Jython does not allow."""

    def __init__(self, fmt):
        self.format, self.size = fmt, struct.calcsize(fmt)

    def pack(self, *values):
        return struct.pack(self.format, *values)

    def pack_into(self, target, offset, *values):
        struct.pack_into(self.format, target, offset, *values)

    def unpack(self, data):
        return struct.unpack(self.format, data)

    def unpack_from(self, data, offset=0):
        return struct.unpack_from(self.format, data, offset)


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
    struct.Struct = Struct
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
            print("sent", number)
            sys.stdout.flush()
            number += 1
            time.sleep(0.005)
    offset = earliest(topic)
    while True:
        found, next_offset = read(topic, offset)
        for _, value in found:
            print("r", str(value).strip())
        sys.stdout.flush()
        if next_offset:
            offset = next_offset
        else:
            time.sleep(0.1)


if __name__ == "__main__":
    main(*sys.argv[1:])
