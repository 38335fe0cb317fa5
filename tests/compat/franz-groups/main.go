// A member of a group that says what it gets: franz-go in the words of group_members.py. Arguments: the bootstrap
// servers, the group, the topic, and how the group assigns.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sort"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A member of KIP-848 has the broker assign; franz-go offers that to those who name this in its context only.
const optIn = "opt_in_kafka_next_gen_balancer_beta"

var lock sync.Mutex

func say(words ...any) {
	lock.Lock()
	defer lock.Unlock()
	fmt.Println(words...)
}

func told(word string, places map[string][]int32) {
	for _, partitions := range places {
		sort.Slice(partitions, func(i, j int) bool { return partitions[i] < partitions[j] })
		words := []any{word}
		for _, partition := range partitions {
			words = append(words, partition)
		}
		say(words...)
	}
}

func main() {
	servers, group, topic, strategy := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	opts := []kgo.Opt{
		kgo.SeedBrokers(strings.Split(servers, ",")...),
		kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.AutoCommitInterval(200 * time.Millisecond),
		kgo.SessionTimeout(6 * time.Second),
		kgo.HeartbeatInterval(300 * time.Millisecond),
		kgo.MetadataMaxAge(5 * time.Second),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, places map[string][]int32) { told("+", places) }),
		kgo.OnPartitionsRevoked(func(_ context.Context, c *kgo.Client, places map[string][]int32) {
			// Without a function of its own a client commits here; with one, that has to.
			if err := c.CommitUncommittedOffsets(context.Background()); err != nil {
				fmt.Fprintln(os.Stderr, "commit:", err)
			}
			told("-", places)
		}),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, places map[string][]int32) { told("-", places) }),
	}
	switch strategy {
	case "range":
		opts = append(opts, kgo.Balancers(kgo.RangeBalancer()))
	case "cooperative-sticky":
		opts = append(opts, kgo.Balancers(kgo.CooperativeStickyBalancer()))
	case "kip-848":
		opts = append(opts, kgo.WithContext(context.WithValue(context.Background(), optIn, true)))
	default:
		fmt.Fprintln(os.Stderr, "no such strategy:", strategy)
		os.Exit(2)
	}
	client, err := kgo.NewClient(opts...)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer client.Close()
	for ctx.Err() == nil {
		fetches := client.PollFetches(ctx)
		for _, failed := range fetches.Errors() {
			if ctx.Err() == nil {
				fmt.Fprintln(os.Stderr, failed.Topic, failed.Partition, failed.Err)
			}
		}
		fetches.EachRecord(func(r *kgo.Record) { say("r", r.Partition, r.Offset, string(r.Value)) })
	}
}
