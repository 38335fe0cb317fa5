// What kafkajs does with a broker: it writes and reads with every codec, administers, and consumes in a group.
// One line "ok PART" for each part that went well; the first failure ends the program.
'use strict'

const assert = require('node:assert/strict')
const { Kafka, CompressionTypes, CompressionCodecs, ConfigResourceTypes, AssignerProtocol, logLevel } = require('kafkajs')
const { PartitionAssigners } = require('kafkajs')
const lz4 = require('lz4js')

CompressionCodecs[CompressionTypes.Snappy] = require('kafkajs-snappy')
CompressionCodecs[CompressionTypes.LZ4] = () => ({
  compress: async encoder => Buffer.from(lz4.compress(encoder.buffer)),
  decompress: async buffer => Buffer.from(lz4.decompress(buffer)),
})

const zstd = new Promise(resolve => require('zstd-codec').ZstdCodec.run(z => resolve(new z.Streaming())))
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: async encoder => Buffer.from((await zstd).compress(encoder.buffer)),
  decompress: async buffer => Buffer.from((await zstd).decompress(buffer)),
})

const [, , servers, ...parts] = process.argv
const kafka = new Kafka({ clientId: 'kafkajs-compat', brokers: [servers], logLevel: logLevel.NOTHING, retry: { retries: 10 } })

// A consumer that ends waits for its last fetch: by default 5 s, since nothing comes any more.
const MAX_WAIT_MS = 300

const ROWS = [
  { key: 'key', value: 'value', headers: {} },
  { key: null, value: 'no key', headers: {} },
  { key: 'tombstone', value: null, headers: {} },
  { key: 'large', value: '0123456789'.repeat(5000), headers: {} },
]
for (let n = 0; n < 200; n++) ROWS.push({ key: `k${n}`, value: `v${n}`.repeat(20), headers: { n: [`${n}`, 'again'] } })

const plain = message => ({
  key: message.key === null ? null : message.key.toString(),
  value: message.value === null ? null : message.value.toString(),
  headers: Object.fromEntries(Object.entries(message.headers).map(([k, v]) => [k, [v].flat().map(String)])),
})

async function write(topic, compression, idempotent) {
  const producer = kafka.producer({ idempotent, maxInFlightRequests: 1, createPartitioner: () => () => 0 })
  await producer.connect()
  const [{ baseOffset, errorCode }] = await producer.send({ topic, compression, acks: -1, messages: ROWS })
  assert.deepEqual([baseOffset, errorCode], ['0', 0])
  await producer.disconnect()
}

async function read(topic, groupId, count, assigners = [PartitionAssigners.roundRobin], options = {}) {
  const consumer = kafka.consumer({ groupId, partitionAssigners: assigners, rebalanceTimeout: 5000, maxWaitTimeInMs: MAX_WAIT_MS, ...options })
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  const found = []
  await new Promise((resolve, reject) => {
    setTimeout(() => reject(new Error(`only ${found.length} of ${count} records`)), 30000).unref()
    consumer.on(consumer.events.CRASH, ({ payload }) => payload.restart || reject(payload.error))
    consumer.run({
      eachMessage: async ({ partition, message }) => {
        found.push({ partition, offset: message.offset, ...plain(message) })
        if (found.length === count) setTimeout(resolve, 0)
      },
    })
  })
  await consumer.commitOffsets([{ topic, partition: 0, offset: String(count), metadata: 'by hand' }]).catch(() => {})
  await consumer.disconnect()
  return found
}

async function records() {
  for (const [name, codec] of Object.entries(CompressionTypes)) {
    for (const idempotent of [false, true]) {
      const topic = `js-${name}-${idempotent}`
      await write(topic, codec, idempotent)
      const found = await read(topic, `group-of-${topic}`, ROWS.length)
      assert.deepEqual(found.map(({ key, value, headers }) => ({ key, value, headers })), ROWS)
      assert.deepEqual(found.map(row => row.offset), ROWS.map((_, n) => String(n)))
      console.log(`ok ${name} idempotent=${idempotent}`)
    }
  }
}

async function administer() {
  const admin = kafka.admin()
  await admin.connect()
  const topic = 'js-administered'
  const entry = { topic, numPartitions: 2, replicationFactor: 1, configEntries: [{ name: 'retention.ms', value: '5000' }] }
  assert.equal(await admin.createTopics({ topics: [entry], waitForLeaders: true }), true)
  assert.equal(await admin.createTopics({ topics: [entry] }), false)
  assert.ok((await admin.listTopics()).includes(topic))
  await admin.createPartitions({ topicPartitions: [{ topic, count: 4 }] })
  await new Promise(resolve => setTimeout(resolve, 300))
  const { topics } = await admin.fetchTopicMetadata({ topics: [topic] })
  assert.equal(topics[0].partitions.length, 4)
  const resource = { type: ConfigResourceTypes.TOPIC, name: topic }
  const configs = async () => (await admin.describeConfigs({ resources: [resource] })).resources[0].configEntries
  const retention = async () => (await configs()).find(each => each.configName === 'retention.ms').configValue
  assert.equal(await retention(), '5000')
  await admin.alterConfigs({ resources: [{ ...resource, configEntries: [{ name: 'retention.ms', value: '7000' }] }] })
  await new Promise(resolve => setTimeout(resolve, 300))
  assert.equal(await retention(), '7000')
  const { brokers, controller } = await admin.describeCluster()
  assert.ok([1, 3].includes(brokers.length) && brokers.some(({ nodeId }) => nodeId === controller))
  const source = 'js-GZIP-false'
  const offsets = async () => (await admin.fetchTopicOffsets(source)).map(({ partition, low, high }) => [partition, low, high])
  assert.deepEqual(await offsets(), [[0, '0', String(ROWS.length)]])
  const byTime = await admin.fetchTopicOffsetsByTimestamp(source, 1)
  assert.deepEqual(byTime.map(each => each.offset), ['0'])
  await admin.deleteTopicRecords({ topic: source, partitions: [{ partition: 0, offset: '10' }] })
  assert.deepEqual(await offsets(), [[0, '10', String(ROWS.length)]])
  await admin.deleteTopics({ topics: [topic] })
  await new Promise(resolve => setTimeout(resolve, 300))
  assert.ok(!(await admin.listTopics()).includes(topic))
  await admin.disconnect()
  console.log('ok admin')
}

async function groups() {
  const topic = 'js-shared'
  const admin = kafka.admin()
  await admin.connect()
  await admin.createTopics({ topics: [{ topic, numPartitions: 4, replicationFactor: 1 }], waitForLeaders: true })
  const producer = kafka.producer()
  await producer.connect()
  const messages = Array.from({ length: 100 }, (_, n) => ({ partition: n % 4, value: String(n) }))
  await producer.send({ topic, messages })
  await producer.disconnect()

  const seen = new Set()
  const members = [1, 2, 3].map(() => kafka.consumer({ groupId: 'js-group', rebalanceTimeout: 5000, maxWaitTimeInMs: MAX_WAIT_MS, heartbeatInterval: 300 }))
  const joined = members.map(member => new Promise(resolve => member.on(member.events.GROUP_JOIN, resolve)))
  await new Promise((resolve, reject) => {
    setTimeout(() => reject(new Error(`only ${seen.size} records`)), 40000).unref()
    for (const member of members) {
      member.on(member.events.CRASH, ({ payload }) => payload.restart || reject(payload.error))
      member.connect().then(() => member.subscribe({ topics: [topic], fromBeginning: true })).then(() =>
        member.run({
          eachMessage: async ({ message }) => {
            seen.add(message.value.toString())
            if (seen.size === 100) resolve()
          },
        }),
      ).catch(reject)
    }
  })
  await Promise.all(joined)
  const { groups: [described] } = await admin.describeGroups(['js-group'])
  assert.equal(described.errorCode, 0)
  assert.equal(described.protocolType, 'consumer')
  for (const { memberAssignment } of described.members) AssignerProtocol.MemberAssignment.decode(memberAssignment)
  await Promise.all(members.map(member => member.disconnect()))
  assert.ok((await admin.listGroups()).groups.some(each => each.groupId === 'js-group'))
  const fetched = await admin.fetchOffsets({ groupId: 'js-group', topics: [topic] })
  assert.deepEqual(fetched[0].partitions.map(each => each.offset), ['25', '25', '25', '25'])
  await admin.resetOffsets({ groupId: 'js-group', topic, earliest: true })
  await admin.setOffsets({ groupId: 'js-group', topic, partitions: [{ partition: 1, offset: '7' }] })
  const reset = await admin.fetchOffsets({ groupId: 'js-group', topics: [topic] })
  assert.deepEqual(reset[0].partitions.map(each => each.offset).sort(), ['-2', '-2', '-2', '7'])
  await admin.deleteGroups(['js-group'])
  await admin.disconnect()
  console.log('ok groups')
}

const run = { records, administer, groups }
;(async () => {
  for (const part of parts) await run[part]()
  process.exit(0)
})().catch(error => {
  console.log(`failed: ${error.stack}`)
  process.exit(1)
})
