// Writes and reads values of a schema registry with @kafkajs/confluent-schema-registry, which uses avsc.
//
// Every line of standard input is one command, and every line of output its answer:
//
//   write SUBJECT SCHEMA VALUE  registers a schema, and prints a value, given in Avro's JSON, framed, in hex
//   read HEX                    prints a framed value in Avro's JSON
//
// Words are separated by tabs. An answer that begins with "error" says what failed.
const readline = require('readline')
const { SchemaRegistry, SchemaType } = require('@kafkajs/confluent-schema-registry')

const registry = new SchemaRegistry({ host: process.argv[2] }, { [SchemaType.AVRO]: { wrapUnions: true } })

async function answered(words) {
  if (words[0] === 'write') {
    const { id } = await registry.register({ type: SchemaType.AVRO, schema: words[2] }, { subject: words[1] })
    const type = await registry.getSchema(id)
    const data = await registry.encode(id, type.fromString(words[3]))
    return data.toString('hex')
  }
  if (words[0] === 'read') {
    const data = Buffer.from(words[1], 'hex')
    const value = await registry.decode(data)
    const type = await registry.getSchema(data.readInt32BE(1))
    return type.toString(value)
  }
  throw new Error(`unknown command ${words[0]}`)
}

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    try {
      console.log(await answered(line.split('\t')))
    } catch (error) {
      console.log(`error ${String(error.message).replace(/\s+/g, ' ')}`)
    }
  }
}

main()
