// What no-kafka does with a broker: as kafka-node.js.
'use strict'

const assert = require('node:assert/strict')
const Kafka = require('no-kafka')

const [, , connectionString, what, ...rest] = process.argv
const SETTINGS = { connectionString, logger: { logLevel: 1 } }
const GROUP = { ...SETTINGS, startingOffset: Kafka.EARLIEST_OFFSET, sessionTimeout: 6000, heartbeatTimeout: 500, idleTimeout: 100 }

const ROWS = [['key', 'value'], [null, 'no key'], ['tombstone', null], ['large', '0123456789'.repeat(5000)]]
for (let n = 0; n < 200; n++) ROWS.push([`k${n}`, `v${n}`.repeat(20)])

const text = buffer => (buffer === null || buffer === undefined ? null : buffer.toString())

// `subscribe` is given a function that takes sets of messages; all of them, once there are enough.
function read(count, subscribe) {
  const found = []
  return new Promise((resolve, reject) => {
    setTimeout(() => reject(new Error(`only ${found.length} of ${count} records`)), 60000).unref()
    Promise.resolve(subscribe(set => {
      found.push(...set)
      if (found.length >= count) resolve(found)
    })).catch(reject)
  })
}

async function records() {
  for (const [name, codec] of [['none', Kafka.COMPRESSION_NONE], ['snappy', Kafka.COMPRESSION_SNAPPY], ['gzip', Kafka.COMPRESSION_GZIP]]) {
    const topic = `no-kafka-${process.pid}-${name}`
    const consumer = new Kafka.SimpleConsumer({ ...SETTINGS, groupId: `by-hand-${topic}` })
    await consumer.init()
    while (await consumer.offset(topic, 0).catch(() => -1) < 0) await new Promise(resolve => setTimeout(resolve, 50))
    const producer = new Kafka.Producer({ ...SETTINGS, codec, requiredAcks: -1 })
    await producer.init()
    const [sent] = await producer.send(ROWS.map(([key, value]) => ({ topic, partition: 0, message: { key, value } })))
    assert.deepEqual([sent.error, Number(sent.offset)], [null, 0])
    await producer.end()
    const found = await read(ROWS.length, take => consumer.subscribe(topic, 0, { offset: 0 }, take))
    assert.deepEqual(found.map(({ message }) => [text(message.key), text(message.value)]), ROWS)
    assert.deepEqual(found.map(each => Number(each.offset)), ROWS.map((_, n) => n))
    await consumer.commitOffset([{ topic, partition: 0, offset: 40, metadata: 'by hand' }])
    const [committed] = await consumer.fetchOffset([{ topic, partition: 0 }])
    assert.deepEqual([committed.offset, committed.metadata], [40, 'by hand'])
    await consumer.end()
    console.log(`ok ${name}`)
  }
  process.exit(0)
}

async function member(groupId, topic) {
  const consumer = new Kafka.GroupConsumer({ ...GROUP, groupId })
  process.on('SIGTERM', () => consumer.end().then(() => process.exit(0)))
  const handler = async (set, _, partition) => {
    for (const { offset } of set) console.log('r', partition, offset)
    await consumer.commitOffset({ topic, partition, offset: set[set.length - 1].offset })
  }
  await consumer.init([{ subscriptions: [topic], handler }])
}

const running = what === 'member' ? member(...rest) : records()
running.catch(error => { console.error(error); process.exit(1) })
