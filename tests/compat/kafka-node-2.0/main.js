// kafka-node 2.0, of 2017: "write SERVERS TOPIC" until it is killed, and "read SERVERS TOPIC GROUP". It writes
// numbers, in turn to three partitions, and prints "ack N" when one is acknowledged; it prints what it reads as
// "r PARTITION VALUE".
'use strict'

const kafka = require('kafka-node')

const [, , what, kafkaHost, topic, group] = process.argv
const PARTITIONS = 3

// A client of this age may stop for ever when a broker dies, and says nothing: then another takes its place.
const SILENCE_MS = 15000

function write (number = 0) {
  const client = new kafka.KafkaClient({ kafkaHost, connectTimeout: 5000, requestTimeout: 10000, autoConnect: true })
  const producer = new kafka.Producer(client, { requireAcks: -1, ackTimeoutMs: 5000 })
  let isReplaced = false
  let watch
  const listen = () => {
    clearTimeout(watch)
    watch = setTimeout(() => {
      console.error('another')
      isReplaced = true
      client.close(() => {})
      write(number)
    }, SILENCE_MS)
  }
  const again = error => {
    console.error('again', String(error))
    setTimeout(() => client.refreshMetadata([topic], () => next()), 300)
  }
  const next = () => {
    if (isReplaced) return
    listen()
    producer.send([{ topic, partition: number % PARTITIONS, messages: [String(number)] }], (error, data) => {
      if (isReplaced) return
      if (error || !data || !data[topic]) return again(error)
      console.log('ack', number++)
      setImmediate(next)
    })
  }
  producer.on('error', error => console.error('error', String(error)))
  client.on('error', error => console.error('error', String(error)))
  listen()
  producer.once('ready', () => client.refreshMetadata([topic], () => next()))
}

function read () {
  const consumer = new kafka.ConsumerGroup({
    kafkaHost, groupId: group, fromOffset: 'earliest', sessionTimeout: 6000, heartbeatInterval: 500, autoCommit: true, autoCommitIntervalMs: 200
  }, [topic])
  let heard = Date.now()
  consumer.on('message', message => {
    heard = Date.now()
    console.log('r', message.partition, message.value)
  })
  consumer.on('error', error => console.error('error', String(error)))
  const watch = setInterval(() => {
    if (Date.now() - heard < SILENCE_MS) return
    clearInterval(watch)
    console.error('again')
    consumer.close(true, () => {})
    read()
  }, 1000)
}

process.on('uncaughtException', error => { console.error('uncaught', error); process.exit(1) })
if (what === 'write') write()
else read()
