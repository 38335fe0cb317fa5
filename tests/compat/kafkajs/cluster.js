// A producer with acks=all and a group of two members, on a cluster whose brokers die. Arguments and what it
// prints: see cluster_accounts.py.
'use strict'

const readline = require('node:readline')
const { Kafka, logLevel } = require('kafkajs')

const [, , servers, topic] = process.argv
const kafka = new Kafka({
  clientId: 'kafkajs-cluster',
  brokers: servers.split(','),
  logLevel: logLevel.NOTHING,
  connectionTimeout: 1000,
  retry: { initialRetryTime: 100, maxRetryTime: 1000, retries: 100 },
})
const say = line => process.stdout.write(line + '\n')
const pause = ms => new Promise(resolve => setTimeout(resolve, ms))

let sending = true
async function produce() {
  const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1, metadataMaxAge: 5000 })
  await producer.connect()
  let number = 0
  for (; sending; number++) {
    const value = String(number)
    try {
      await producer.send({ topic, acks: -1, messages: [{ key: value, value }] })
      say(`a ${value}`)
    } catch (error) {
      say(`e ${value} ${error.message}`)
    }
    await pause(5)
  }
  await producer.disconnect()
  say(`sent ${number}`)
}

async function consume() {
  const consumer = kafka.consumer({
    groupId: topic, sessionTimeout: 6000, heartbeatInterval: 500, maxWaitTimeInMs: 500, metadataMaxAge: 5000,
  })
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  await consumer.run({
    autoCommitInterval: 200,
    eachMessage: async ({ message }) => say(`r ${message.value}`),
  })
  return consumer
}

;(async () => {
  const orders = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]()
  const produced = produce()
  const members = await Promise.all([consume(), consume()])
  await orders.next()
  sending = false
  await produced
  await orders.next()
  await Promise.all(members.map(each => each.disconnect()))
  process.exit(0)
})().catch(error => {
  console.log(`failed: ${error.stack}`)
  process.exit(1)
})
