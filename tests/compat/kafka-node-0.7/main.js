// node main.js PORT TOPIC COUNT: sends COUNT messages to partition 0, then prints everything it consumes.
const kafka = require('kafka');
const [port, topic, count] = [Number(process.argv[2]), process.argv[3], Number(process.argv[4])];

const producer = new kafka.Producer({ host: '127.0.0.1', port, topic, partition: 0 });
producer.connect(() => {
  for (let number = 0; number < count; number++) producer.send(`from node ${number}`);
});

const consumer = new kafka.Consumer({ host: '127.0.0.1', port, pollInterval: 50 });
consumer.on('message', (from, message) => console.log(`${from} ${message}`));
consumer.connect(() => consumer.subscribeTopic({ name: topic, partition: 0 }));
