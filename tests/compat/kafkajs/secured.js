// kafkajs with TLS, SASL or both: what each case of a JSON file says, then access rules.
'use strict'

const assert = require('node:assert/strict')
const fs = require('node:fs')
const { Kafka, AclResourceTypes, AclOperationTypes, AclPermissionTypes, ResourcePatternTypes, logLevel } = require('kafkajs')

const client = (c, retries = 10) => {
  const ssl = c.Tls && { ca: [fs.readFileSync(c.Ca)], ...(c.Certificate && { cert: fs.readFileSync(c.Certificate), key: fs.readFileSync(c.Key) }) }
  const sasl = c.Mechanism && {
    mechanism: c.Mechanism.toLowerCase(),
    username: c.User,
    password: c.Password,
    ...(c.Token && { oauthBearerProvider: async () => ({ value: c.Token }) }),
  }
  const retry = { retries, initialRetryTime: 50 }
  return new Kafka({ brokers: [c.Address], ssl: ssl || undefined, sasl: sasl || undefined, logLevel: logLevel.NOTHING, retry })
}

async function group(c) {
  const topic = `kafkajs-${c.Name}`
  const kafka = client(c)
  const producer = kafka.producer()
  await producer.connect()
  const messages = Array.from({ length: 20 }, (_, n) => ({ value: String(n) }))
  await producer.send({ topic, messages })
  await producer.disconnect()
  const consumer = kafka.consumer({ groupId: topic, maxWaitTimeInMs: 300 }) // it ends when its last fetch does
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  const found = []
  await new Promise((resolve, reject) => {
    setTimeout(() => reject(new Error(`${c.Name}: only ${found.length}`)), 20000).unref()
    consumer.run({
      eachMessage: async ({ message }) => {
        found.push(message.value.toString())
        if (found.length === 20) resolve()
      },
    })
  })
  assert.deepEqual(found, messages.map(each => each.value))
  await consumer.disconnect()
  console.log(`ok group ${c.Name}`)
}

async function rules(c) {
  const admin = client(c).admin()
  await admin.connect()
  const rule = {
    resourceType: AclResourceTypes.TOPIC,
    resourceName: 'kafkajs-',
    resourcePatternType: ResourcePatternTypes.PREFIXED,
    principal: 'User:kafkajs',
    host: '*',
    operation: AclOperationTypes.READ,
    permissionType: AclPermissionTypes.ALLOW,
  }
  assert.equal(await admin.createAcls({ acl: [rule] }), true)
  const filter = { ...rule, resourceName: 'kafkajs-1', resourcePatternType: ResourcePatternTypes.MATCH, operation: AclOperationTypes.ANY }
  const { resources } = await admin.describeAcls(filter)
  assert.deepEqual(resources.map(each => [each.resourceName, each.acls.length]), [['kafkajs-', 1]])
  const { filterResponses } = await admin.deleteAcls({ filters: [filter] })
  assert.equal(filterResponses[0].matchingAcls.length, 1)
  assert.equal((await admin.describeAcls(filter)).resources.length, 0)
  await admin.disconnect()
  console.log('ok acls')
}

async function refused(c) {
  const admin = client(c, 0).admin()
  const since = Date.now()
  // It takes a refused token for a good one, and learns better by its first request.
  const error = await admin.connect().then(() => admin.listTopics()).then(() => null, error => error)
  assert.ok(error !== null && Date.now() - since < 5000, `${c.Name}: ${error} after ${Date.now() - since} ms`)
  console.log(`refused ${c.Name}: ${error.message}`)
}

async function secured(path) {
  const { Good, Bad } = JSON.parse(fs.readFileSync(path))
  for (const c of Good) await group(c)
  await rules(Good[0])
  for (const c of Bad) await refused(c)
}

secured(process.argv[2]).then(() => process.exit(0)).catch(error => {
  console.log(`failed: ${error.stack}`)
  process.exit(1)
})
