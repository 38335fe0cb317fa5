// sarama 1.19, of 2018, as it was for brokers of 0.8.2 to 0.10: "write SERVERS TOPIC VERSION" until it is killed,
// and "read SERVERS TOPIC VERSION". It writes numbers, in turn to three partitions, and prints "ack N" when one
// is acknowledged; it prints what it reads as "r PARTITION VALUE".
package main

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/Shopify/sarama"
)

const partitions = 3

func config(text string) *sarama.Config {
	version, err := sarama.ParseKafkaVersion(text)
	if err != nil {
		panic(err)
	}
	c := sarama.NewConfig()
	c.Version = version
	c.ClientID = "old-sarama"
	c.Net.MaxOpenRequests = 1
	c.Producer.Return.Successes = true
	c.Producer.RequiredAcks = sarama.WaitForAll
	c.Producer.Partitioner = sarama.NewManualPartitioner
	c.Producer.Retry.Max = 20
	c.Producer.Compression = sarama.CompressionGZIP
	c.Consumer.Return.Errors = true
	c.Metadata.Retry.Max = 20
	return c
}

func write(servers []string, topic string, c *sarama.Config) {
	producer, err := sarama.NewSyncProducer(servers, c)
	if err != nil {
		panic(err)
	}
	for number := 0; ; {
		value := sarama.StringEncoder(fmt.Sprint(number))
		_, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: topic, Partition: int32(number % partitions), Value: value})
		if err != nil {
			fmt.Fprintln(os.Stderr, "again", err)
			time.Sleep(200 * time.Millisecond)
			continue
		}
		fmt.Println("ack", number)
		number++
	}
}

func read(servers []string, topic string, c *sarama.Config) {
	consumer, err := sarama.NewConsumer(servers, c)
	if err != nil {
		panic(err)
	}
	var all sync.WaitGroup
	for partition := int32(0); partition < partitions; partition++ {
		each, err := consumer.ConsumePartition(topic, partition, sarama.OffsetOldest)
		if err != nil {
			panic(err)
		}
		all.Add(1)
		go func() {
			for {
				select {
				case message := <-each.Messages():
					fmt.Println("r", message.Partition, string(message.Value))
				case err := <-each.Errors():
					fmt.Fprintln(os.Stderr, "error", err)
				}
			}
		}()
	}
	all.Wait()
}

func main() {
	servers, topic, c := strings.Split(os.Args[2], ","), os.Args[3], config(os.Args[4])
	if os.Args[1] == "write" {
		write(servers, topic, c)
	}
	read(servers, topic, c)
}
