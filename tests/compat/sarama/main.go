// What sarama does with a broker: it writes and reads with every codec, administers, and consumes in a group.
// One line "ok PART" for each part that went well; the first failure ends the program.
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"sort"
	"strings"
	"time"

	"github.com/IBM/sarama"
)

var servers []string

func check(err error, what string) {
	if err != nil {
		fmt.Printf("failed: %s: %v\n", what, err)
		os.Exit(1)
	}
}

func expect(good bool, what string, values ...any) {
	if !good {
		check(fmt.Errorf("unexpected %v", values), what)
	}
}

func config(version sarama.KafkaVersion) *sarama.Config {
	c := sarama.NewConfig()
	c.Version = version
	c.ClientID = "sarama-compat"
	c.Producer.Return.Successes = true
	c.Producer.RequiredAcks = sarama.WaitForAll
	c.Producer.Partitioner = sarama.NewManualPartitioner
	c.Consumer.Return.Errors = true
	c.Consumer.Offsets.Initial = sarama.OffsetOldest
	c.Metadata.Retry.Max = 20
	return c
}

type row struct {
	key, value []byte
	headers    []sarama.RecordHeader
}

func rows(withHeaders bool) []row {
	found := []row{
		{[]byte("key"), []byte("value"), nil},
		{nil, []byte("no key"), nil},
		{[]byte("tombstone"), nil, nil},
		{[]byte("large"), bytes.Repeat([]byte("0123456789"), 5000), nil},
	}
	for n := 0; n < 200; n++ {
		headers := []sarama.RecordHeader{{Key: []byte("n"), Value: []byte(fmt.Sprint(n))}, {Key: []byte("n"), Value: []byte("again")}}
		if !withHeaders {
			headers = nil
		}
		found = append(found, row{[]byte(fmt.Sprint("k", n)), []byte(strings.Repeat(fmt.Sprint("v", n), 20)), headers})
	}
	return found
}

func roundTrip(version sarama.KafkaVersion, codec sarama.CompressionCodec, idempotent bool) {
	what := fmt.Sprintf("%s %s idempotent=%t", version, codec, idempotent)
	topic := strings.NewReplacer(" ", "-", "=", "-").Replace("t-" + what)
	c := config(version)
	c.Producer.Compression = codec
	if idempotent {
		c.Producer.Idempotent = true
		c.Net.MaxOpenRequests = 1
	}
	producer, err := sarama.NewSyncProducer(servers, c)
	check(err, what)
	sent := rows(version.IsAtLeast(sarama.V0_11_0_0))
	messages := make([]*sarama.ProducerMessage, 0, len(sent))
	for _, r := range sent {
		m := &sarama.ProducerMessage{Topic: topic, Partition: 0, Headers: r.headers}
		if r.key != nil {
			m.Key = sarama.ByteEncoder(r.key)
		}
		if r.value != nil {
			m.Value = sarama.ByteEncoder(r.value)
		}
		messages = append(messages, m)
	}
	check(producer.SendMessages(messages), what)
	for n, m := range messages {
		expect(m.Offset == int64(n), what, "offset", m.Offset, n)
	}
	check(producer.Close(), what)

	consumer, err := sarama.NewConsumer(servers, c)
	check(err, what)
	partition, err := consumer.ConsumePartition(topic, 0, sarama.OffsetOldest)
	check(err, what)
	deadline := time.After(20 * time.Second)
	for n, r := range sent {
		select {
		case m := <-partition.Messages():
			same := m.Offset == int64(n) && bytes.Equal(m.Key, r.key) && bytes.Equal(m.Value, r.value) && (m.Value == nil) == (r.value == nil)
			expect(same, what, m.Offset, string(m.Key), n)
			expect(len(m.Headers) == len(r.headers), what, "headers", len(m.Headers))
			for i, h := range r.headers {
				expect(bytes.Equal(h.Key, m.Headers[i].Key) && bytes.Equal(h.Value, m.Headers[i].Value), what, "header", i)
			}
		case err := <-partition.Errors():
			check(err, what)
		case <-deadline:
			expect(false, what, "nothing after offset", n)
		}
	}
	check(partition.Close(), what)
	check(consumer.Close(), what)
	fmt.Println("ok", what)
}

func offsets(version sarama.KafkaVersion) {
	client, err := sarama.NewClient(servers, config(version))
	check(err, "client")
	topic := fmt.Sprintf("t-%s-none-idempotent-false", version)
	oldest, err := client.GetOffset(topic, 0, sarama.OffsetOldest)
	check(err, "oldest offset")
	newest, err := client.GetOffset(topic, 0, sarama.OffsetNewest)
	check(err, "newest offset")
	expect(oldest == 0 && newest == int64(len(rows(false))), "offsets", oldest, newest)
	check(client.Close(), "client")
	fmt.Println("ok offsets", version)
}

func administer(version sarama.KafkaVersion) {
	admin, err := sarama.NewClusterAdmin(servers, config(version))
	check(err, "admin")
	retention := "5000"
	detail := &sarama.TopicDetail{NumPartitions: 2, ReplicationFactor: 1, ConfigEntries: map[string]*string{"retention.ms": &retention}}
	check(admin.CreateTopic("administered", detail, false), "create topic")
	expect(admin.CreateTopic("administered", detail, false) != nil, "create topic twice")
	check(admin.CreatePartitions("administered", 4, nil, false), "create partitions")
	time.Sleep(200 * time.Millisecond)
	topics, err := admin.ListTopics()
	check(err, "list topics")
	found := topics["administered"]
	expect(found.NumPartitions == 4 && *found.ConfigEntries["retention.ms"] == "5000", "list topics", found)
	described, err := admin.DescribeTopics([]string{"administered"})
	check(err, "describe topics")
	expect(len(described) == 1 && len(described[0].Partitions) == 4, "describe topics", described)
	nodes, _, err := admin.DescribeCluster()
	check(err, "describe cluster")
	expect(len(nodes) == 1 || len(nodes) == 3, "describe cluster", nodes)
	longer := "7000"
	change := map[string]sarama.IncrementalAlterConfigsEntry{"retention.ms": {Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &longer}}
	check(admin.IncrementalAlterConfig(sarama.TopicResource, "administered", change, false), "incremental alter config")
	time.Sleep(200 * time.Millisecond)
	entries, err := admin.DescribeConfig(sarama.ConfigResource{Type: sarama.TopicResource, Name: "administered", ConfigNames: []string{"retention.ms"}})
	check(err, "describe config")
	expect(len(entries) == 1 && entries[0].Value == "7000" && !entries[0].Default, "describe config", entries)
	check(admin.AlterConfig(sarama.TopicResource, "administered", map[string]*string{"retention.ms": &retention}, false), "alter config")
	source := fmt.Sprintf("t-%s-gzip-idempotent-false", version)
	check(admin.DeleteRecords(source, map[int32]int64{0: 10}), "delete records")
	dirs, err := admin.DescribeLogDirs([]int32{1})
	check(err, "describe log dirs")
	expect(len(dirs[1]) == 1, "describe log dirs", dirs)
	check(admin.DeleteTopic("administered"), "delete topic")
	check(admin.Close(), "close admin")
	fmt.Println("ok admin", version)
}

type handler struct{ values chan string }

func (handler) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (handler) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (h handler) ConsumeClaim(s sarama.ConsumerGroupSession, c sarama.ConsumerGroupClaim) error {
	for m := range c.Messages() {
		s.MarkMessage(m, "marked")
		h.values <- fmt.Sprint(m.Partition, "/", m.Offset)
	}
	return nil
}

func group(version sarama.KafkaVersion, strategy sarama.BalanceStrategy) {
	what := fmt.Sprintf("group %s %s", version, strategy.Name())
	topic := strings.ReplaceAll(what, " ", "-")
	c := config(version)
	c.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{strategy}
	if version.IsAtLeast(sarama.V1_0_0_0) {
		admin, err := sarama.NewClusterAdmin(servers, c)
		check(err, what)
		check(admin.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: 4, ReplicationFactor: 1}, false), what)
		check(admin.Close(), what)
		time.Sleep(200 * time.Millisecond)
	}
	producer, err := sarama.NewSyncProducer(servers, c)
	check(err, what)
	partitions := 1
	if version.IsAtLeast(sarama.V1_0_0_0) {
		partitions = 4
	}
	expected := []string{}
	for n := 0; n < 100; n++ {
		p, o, err := producer.SendMessage(&sarama.ProducerMessage{Topic: topic, Partition: int32(n % partitions), Value: sarama.StringEncoder(fmt.Sprint(n))})
		check(err, what)
		expected = append(expected, fmt.Sprint(p, "/", o))
	}
	check(producer.Close(), what)
	values := make(chan string, 1000)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan bool)
	for member := 0; member < 2; member++ {
		consumer, err := sarama.NewConsumerGroup(servers, topic, c)
		check(err, what)
		go func() {
			for ctx.Err() == nil {
				if err := consumer.Consume(ctx, []string{topic}, handler{values}); err != nil && ctx.Err() == nil {
					check(err, what)
				}
			}
			consumer.Close()
			done <- true
		}()
	}
	seen := map[string]bool{}
	deadline := time.After(40 * time.Second)
	for len(seen) < len(expected) {
		select {
		case v := <-values:
			seen[v] = true
		case <-deadline:
			expect(false, what, "only", len(seen))
		}
	}
	cancel()
	<-done
	<-done
	got := []string{}
	for v := range seen {
		got = append(got, v)
	}
	sort.Strings(got)
	sort.Strings(expected)
	expect(strings.Join(got, " ") == strings.Join(expected, " "), what, got)
	if version.IsAtLeast(sarama.V1_1_0_0) {
		admin, err := sarama.NewClusterAdmin(servers, c)
		check(err, what)
		committed, err := admin.ListConsumerGroupOffsets(topic, map[string][]int32{topic: {0, 1, 2, 3}})
		check(err, what)
		for p := int32(0); p < 4; p++ {
			block := committed.GetBlock(topic, p)
			expect(block.Offset == 25 && block.Metadata == "marked", what, "committed", p, block.Offset, block.Metadata)
		}
		groups, err := admin.ListConsumerGroups()
		check(err, what)
		expect(groups[topic] == "consumer", what, groups)
		described, err := admin.DescribeConsumerGroups([]string{topic})
		check(err, what)
		expect(described[0].State == "Empty", what, described[0].State)
		check(admin.DeleteConsumerGroup(topic), what)
		check(admin.Close(), what)
	}
	fmt.Println("ok", what)
}

func contextOf(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d)
}

func main() {
	servers = []string{os.Args[1]}
	parts := os.Args[2:]
	if len(parts) == 2 && parts[0] == "cluster" {
		runCluster(os.Args[1], parts[1])
		return
	}
	for _, part := range parts {
		switch part {
		case "secured":
			runSecured(servers[0])
		case "records":
			for codec := sarama.CompressionNone; codec <= sarama.CompressionZSTD; codec++ {
				roundTrip(sarama.V3_6_0_0, codec, false)
				roundTrip(sarama.V3_6_0_0, codec, true)
			}
			offsets(sarama.V3_6_0_0)
			administer(sarama.V3_6_0_0)
		case "old":
			for _, version := range []sarama.KafkaVersion{sarama.V0_8_2_2, sarama.V0_9_0_1, sarama.V0_10_2_0, sarama.V0_11_0_0, sarama.V1_1_0_0} {
				for codec := sarama.CompressionNone; codec <= sarama.CompressionSnappy; codec++ {
					roundTrip(version, codec, false)
				}
				offsets(version)
			}
		case "groups":
			for _, strategy := range []sarama.BalanceStrategy{sarama.NewBalanceStrategyRange(), sarama.NewBalanceStrategyRoundRobin(), sarama.NewBalanceStrategySticky()} {
				group(sarama.V3_6_0_0, strategy)
			}
		case "old groups":
			group(sarama.V0_10_2_0, sarama.NewBalanceStrategyRange())
			group(sarama.V1_1_0_0, sarama.NewBalanceStrategyRoundRobin())
		}
	}
}
