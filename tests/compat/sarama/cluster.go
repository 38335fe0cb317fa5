package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

var lines sync.Mutex

func say(words ...any) {
	lines.Lock()
	defer lines.Unlock()
	fmt.Println(words...)
}

type reader struct{}

func (reader) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (reader) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (reader) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message, more := <-claim.Messages():
			if !more {
				return nil
			}
			say("r", string(message.Value))
			session.MarkMessage(message, "")
		case <-session.Context().Done():
			return nil
		}
	}
}

func clusterConfig() *sarama.Config {
	c := config(sarama.V3_6_0_0)
	c.Producer.Partitioner = sarama.NewHashPartitioner
	c.Producer.Idempotent = true
	c.Net.MaxOpenRequests = 1
	c.Producer.Retry.Max = 200
	c.Metadata.RefreshFrequency = 5 * time.Second
	c.Consumer.Return.Errors = false
	c.Consumer.Offsets.AutoCommit.Interval = 200 * time.Millisecond
	c.Consumer.Group.Session.Timeout = 6 * time.Second
	c.Consumer.Group.Heartbeat.Interval = 500 * time.Millisecond
	return c
}

// A producer with acks=all and a group of two members, on a cluster whose brokers die. Arguments and what it
// prints: see cluster_accounts.py.
func runCluster(servers, topic string) {
	brokers := strings.Split(servers, ",")
	stopSending, sent := make(chan bool), make(chan bool)
	go func() {
		producer, err := sarama.NewSyncProducer(brokers, clusterConfig())
		check(err, "producer")
		number := 0
		for sending := true; sending; number++ {
			value := fmt.Sprint(number)
			message := &sarama.ProducerMessage{Topic: topic, Key: sarama.StringEncoder(value), Value: sarama.StringEncoder(value)}
			if _, _, err := producer.SendMessage(message); err != nil {
				say("e", value, err)
			} else {
				say("a", value)
			}
			select {
			case <-stopSending:
				sending = false
			case <-time.After(5 * time.Millisecond):
			}
		}
		check(producer.Close(), "close")
		say("sent", number)
		close(sent)
	}()
	var members sync.WaitGroup
	ctx, stop := context.WithCancel(context.Background())
	for member := 0; member < 2; member++ {
		members.Add(1)
		go func() {
			defer members.Done()
			group, err := sarama.NewConsumerGroup(brokers, topic, clusterConfig())
			check(err, "group")
			for ctx.Err() == nil {
				if err := group.Consume(ctx, []string{topic}, reader{}); err != nil {
					time.Sleep(200 * time.Millisecond) // no coordinator: asked again
				}
			}
			_ = group.Close()
		}()
	}
	orders := bufio.NewScanner(os.Stdin)
	orders.Scan()
	close(stopSending)
	<-sent
	orders.Scan()
	stop()
	members.Wait()
}
