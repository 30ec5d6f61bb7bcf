// The parts of the client matrix with kafkajs: see programs.py. Arguments: address, prefix, parts.
const { Kafka, logLevel, Partitioners } = require('kafkajs')

const DEADLINE_MS = 600_000
const [address, prefix, ...parts] = process.argv.slice(2)
const kafka = new Kafka({ brokers: [address], clientId: 'kafkajs', logLevel: logLevel.NOTHING })
const admin = kafka.admin()

async function until(what, condition) {
  const deadline = Date.now() + DEADLINE_MS
  while (!condition()) {
    if (Date.now() > deadline) throw new Error(`in vain: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

const create = (topic, numPartitions, configEntries = []) =>
  admin.createTopics({ topics: [{ topic, numPartitions, configEntries }] })

async function produce(topic, count, partitions) {
  const producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner })
  await producer.connect()
  const messages = Array.from({ length: count }, (_, number) => ({
    value: `record-${number}`, partition: number % partitions,
  }))
  await producer.send({ topic, messages, acks: -1 })
  await producer.disconnect()
}

// A consumer that keeps the values it reads and the partitions it has, and commits after each record.
async function consume(groupId, topic, readUncommitted = false) {
  const consumer = kafka.consumer({
    groupId, readUncommitted, heartbeatInterval: 300, sessionTimeout: 45_000, maxWaitTimeInMs: 100,
  })
  const reader = { values: new Set(), partitions: 0, close: () => consumer.disconnect() }
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    reader.partitions = (payload.memberAssignment[topic] ?? []).length
  })
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  await consumer.run({
    autoCommitThreshold: 1,
    eachMessage: async ({ message }) => { reader.values.add(message.value.toString()) },
  })
  return reader
}

async function committed(groupId, topic) {
  const [offsets] = await admin.fetchOffsets({ groupId, topics: [topic] })
  return offsets.partitions.reduce((sum, one) => sum + Math.max(Number(one.offset), 0), 0)
}

async function basic() {
  const topic = `${prefix}-basic`
  await create(topic, 1, [{ name: 'retention.ms', value: '90000' }])
  await admin.createPartitions({ topicPartitions: [{ topic, count: 2 }] })
  const resource = { type: 2, name: topic }
  await admin.alterConfigs({ resources: [{ ...resource, configEntries: [
    { name: 'retention.ms', value: '90000' }, { name: 'max.message.bytes', value: '50000' },
  ] }] })
  const { resources } = await admin.describeConfigs({ resources: [resource], includeSynonyms: false })
  const config = (name) => Number(resources[0].configEntries.find((entry) => entry.configName === name).configValue)
  const { topics } = await admin.fetchTopicMetadata({ topics: [topic] })
  const listed = (await admin.listTopics()).includes(topic)
  await produce(topic, 10, 2)
  const reader = await consume(topic, topic)
  await until('records are read', () => reader.values.size === 10)
  await reader.close()
  const facts = {
    part: 'basic', partitions: topics[0].partitions.length, retention: config('retention.ms'),
    bytes: config('max.message.bytes'), listed, read: reader.values.size, committed: await committed(topic, topic),
    group: (await admin.listGroups()).groups.some((group) => group.groupId === topic),
  }
  await admin.deleteGroups([topic])
  await admin.deleteTopics({ topics: [topic] })
  return facts
}

async function rebalance() {
  const topic = `${prefix}-rebalance`
  await create(topic, 2)
  await produce(topic, 20, 2)
  const first = await consume(topic, topic)
  await until('the first has all', () => first.partitions === 2 && first.values.size === 20)
  const read = first.values.size
  const second = await consume(topic, topic)
  await until('they share', () => first.partitions === 1 && second.partitions === 1)
  first.values.clear()
  second.values.clear()
  await produce(topic, 20, 2)
  await until('both have read', () => first.values.size + second.values.size === 20)
  await first.close()
  await until('the second has all', () => second.partitions === 2)
  await second.close()
  return { part: 'rebalance', read, again: 20, committed: await committed(topic, topic) }
}

async function transactions() {
  const [input, output] = [`${prefix}-input`, `${prefix}-output`]
  await create(input, 1)
  await create(output, 1)
  await produce(input, 5, 1)
  const producer = kafka.producer({
    transactionalId: `${prefix}-tx`, maxInFlightRequests: 1, idempotent: true,
    createPartitioner: Partitioners.DefaultPartitioner,
  })
  await producer.connect()
  const dropped = await producer.transaction()
  await dropped.send({ topic: output, messages: [{ value: 'dropped' }] })
  await dropped.abort()
  const kept = await producer.transaction()
  const messages = Array.from({ length: 5 }, (_, number) => ({ value: `record-${number}` }))
  await kept.send({ topic: output, messages })
  await kept.sendOffsets({
    consumerGroupId: input, topics: [{ topic: input, partitions: [{ partition: 0, offset: '5' }] }],
  })
  await kept.commit()
  await producer.disconnect()
  const reader = await consume(output, output)
  await until('the output is read', () => reader.values.size === 5)
  await reader.close()
  return {
    part: 'transactions', seen: reader.values.size, dropped: reader.values.has('dropped'),
    committed: await committed(input, input),
  }
}

async function main() {
  const all = { basic, rebalance, transactions }
  await admin.connect()
  for (const part of parts) console.log(JSON.stringify(await all[part]()))
  await admin.disconnect()
}

main().catch((error) => {
  console.error(error)
  process.exit(1)
})
