package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A producer with acks=all and a group of two members, on a cluster whose brokers die. Arguments and what it
// prints: see cluster_accounts.py.
func runCluster(servers, topic string) {
	var lock sync.Mutex
	say := func(words ...any) {
		lock.Lock()
		defer lock.Unlock()
		fmt.Println(words...)
	}
	made := func(opts ...kgo.Opt) *kgo.Client {
		opts = append(opts, kgo.SeedBrokers(strings.Split(servers, ",")...), kgo.MetadataMaxAge(5*time.Second))
		c, err := kgo.NewClient(opts...)
		must("client", err)
		return c
	}
	stopSending, sent := make(chan bool), make(chan bool)
	go func() {
		c := made(kgo.DefaultProduceTopic(topic), kgo.RequiredAcks(kgo.AllISRAcks()), kgo.ProducerLinger(0))
		defer c.Close()
		ctx := context.Background()
		number := 0
		for sending := true; sending; number++ {
			value := fmt.Sprint(number)
			c.Produce(ctx, kgo.KeySliceRecord([]byte(value), []byte(value)), func(_ *kgo.Record, err error) {
				if err != nil {
					say("e", value, err)
				} else {
					say("a", value)
				}
			})
			select {
			case <-stopSending:
				sending = false
			case <-time.After(5 * time.Millisecond):
			}
		}
		must("flush", c.Flush(ctx))
		say("sent", number)
		close(sent)
	}()
	var members sync.WaitGroup
	ctx, stop := context.WithCancel(context.Background())
	for member := 0; member < 2; member++ {
		members.Add(1)
		go func() {
			defer members.Done()
			c := made(kgo.ConsumerGroup(topic), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(),
				kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.SessionTimeout(6*time.Second),
				kgo.HeartbeatInterval(500*time.Millisecond), kgo.BlockRebalanceOnPoll())
			for ctx.Err() == nil {
				c.PollFetches(ctx).EachRecord(func(r *kgo.Record) { say("r", string(r.Value)) })
				bounded, done := context.WithTimeout(context.Background(), 5*time.Second)
				_ = c.CommitUncommittedOffsets(bounded) // what is not committed comes again
				done()
				c.AllowRebalance()
			}
			c.CloseAllowingRebalance()
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
