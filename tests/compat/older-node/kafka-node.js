// What kafka-node does with a broker: "records" writes and reads with what it can compress, commits and asks
// around, with one line "ok PART" for each part that went well; "member GROUP TOPIC" is a member of a group that
// prints what it reads as "r PARTITION OFFSET" and leaves on SIGTERM.
'use strict'

const assert = require('node:assert/strict')
const kafka = require('kafka-node')

const [, , kafkaHost, what, ...rest] = process.argv
const promised = f => new Promise((resolve, reject) => f((error, result) => (error ? reject(error) : resolve(result))))
const GROUP = { kafkaHost, fromOffset: 'earliest', sessionTimeout: 6000, heartbeatInterval: 500, autoCommit: true, autoCommitIntervalMs: 200 }

const ROWS = [['key', 'value'], [null, 'no key'], ['large', '0123456789'.repeat(5000)]]
for (let n = 0; n < 200; n++) ROWS.push([`k${n}`, `v${n}`.repeat(20)])

async function ready() {
  const client = new kafka.KafkaClient({ kafkaHost })
  await promised(done => client.once('ready', () => done()))
  return client
}

function read(consumer, count) {
  const found = []
  return new Promise((resolve, reject) => {
    setTimeout(() => reject(new Error(`only ${found.length} of ${count} records`)), 60000).unref()
    consumer.on('error', reject)
    consumer.on('message', message => {
      found.push(message)
      if (found.length === count) consumer.close(true, () => resolve(found))
    })
  })
}

async function records() {
  for (const [attributes, codec] of ['none', 'gzip'].entries()) {
    const topic = `kafka-node-${process.pid}-${codec}`
    const client = await ready()
    const producer = new kafka.Producer(client, { requireAcks: -1 })
    await promised(done => client.refreshMetadata([topic], () => done()))
    const messages = ROWS.map(([key, value]) => (key === null ? value : new kafka.KeyedMessage(key, value)))
    const sent = await promised(done => producer.send([{ topic, partition: 0, attributes, messages }], done))
    assert.equal(sent[topic][0], 0)
    const places = [{ topic, partition: 0, offset: 0 }]
    const found = await read(new kafka.Consumer(await ready(), places, { autoCommit: false, fromOffset: true }), ROWS.length)
    assert.deepEqual(found.map(({ key, value }) => [key === null || key === undefined ? null : String(key), value]), ROWS)
    assert.deepEqual(found.map(each => each.offset), ROWS.map((_, n) => n))
    const grouped = await read(new kafka.ConsumerGroup({ ...GROUP, groupId: `group-of-${topic}` }, [topic]), ROWS.length)
    assert.deepEqual(grouped.map(each => each.value), ROWS.map(([, value]) => value))
    const offset = new kafka.Offset(client)
    assert.equal((await promised(done => offset.fetchLatestOffsets([topic], done)))[topic][0], ROWS.length)
    await promised(done => offset.commit(`by-hand-${topic}`, [{ topic, partition: 0, offset: 10 }], done))
    assert.equal((await promised(done => offset.fetchCommits(`by-hand-${topic}`, [{ topic, partition: 0 }], done)))[topic][0], 10)
    const admin = new kafka.Admin(client)
    assert.equal((await promised(done => admin.listGroups(done)))[`group-of-${topic}`], 'consumer')
    console.log(`ok ${codec}`)
  }
  process.exit(0)
}

function member(groupId, topic) {
  const consumer = new kafka.ConsumerGroup({ ...GROUP, groupId }, [topic])
  consumer.on('message', message => console.log('r', message.partition, message.offset))
  consumer.on('error', error => console.error(error))
  process.on('SIGTERM', () => consumer.close(true, () => process.exit(0)))
}

if (what === 'member') member(...rest)
else records().catch(error => { console.error(error); process.exit(1) })
