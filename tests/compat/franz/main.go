// What franz-go does with a broker: it writes and reads with every codec, administers (kadm), and consumes in groups.
// One line "ok PART" for each part that went well; the first failure ends the program.
package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

var seeds string

func either(all ...error) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}

func check(what string, err error) {
	must(what, err)
	fmt.Println("ok", what)
}

func must(what string, err error) {
	if err != nil {
		fmt.Println("failed:", what, err)
		os.Exit(1)
	}
}

func client(opts ...kgo.Opt) *kgo.Client {
	c, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(seeds), kgo.AllowAutoTopicCreation()}, opts...)...)
	must("client", err)
	return c
}

func roundTrip(ctx context.Context, name string, opts ...kgo.Opt) {
	topic := "fz-" + name
	c := client(append(opts, kgo.DefaultProduceTopic(topic), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
	defer c.Close()
	n := 500
	for i := 0; i < n; i++ {
		r := &kgo.Record{Key: []byte(fmt.Sprint("k", i)), Value: []byte(strings.Repeat(fmt.Sprint("v", i), 30)), Headers: []kgo.RecordHeader{{Key: "h", Value: []byte("x")}, {Key: "n", Value: nil}}}
		if i == 7 {
			r.Value = nil
		}
		c.Produce(ctx, r, func(_ *kgo.Record, err error) { must("produce "+name, err) })
	}
	must("flush", c.Flush(ctx))
	got := 0
	tomb := 0
	cctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	for got < n {
		fs := c.PollFetches(cctx)
		for _, e := range fs.Errors() {
			must("fetch "+name, e.Err)
		}
		fs.EachRecord(func(r *kgo.Record) {
			got++
			if r.Value == nil {
				tomb++
			}
			if len(r.Headers) != 2 {
				must("headers", errors.New("count"))
			}
		})
	}
	if tomb != 1 {
		must("tomb", fmt.Errorf("%d", tomb))
	}
	fmt.Println("ok round trip", name, got)
}

func base64Of(data []byte) string {
	return base64.StdEncoding.EncodeToString(data)
}

func main() {
	seeds = os.Args[1]
	if len(os.Args) > 2 && os.Args[2] == "secured" {
		runSecured(seeds)
		return
	}
	if len(os.Args) > 3 && os.Args[2] == "cluster" {
		runCluster(seeds, os.Args[3])
		return
	}
	ctx, stop := context.WithTimeout(context.Background(), 120*time.Second)
	defer stop()
	for _, c := range []struct {
		n string
		o kgo.CompressionCodec
	}{{"none", kgo.NoCompression()}, {"gzip", kgo.GzipCompression()}, {"snappy", kgo.SnappyCompression()}, {"lz4", kgo.Lz4Compression()}, {"zstd", kgo.ZstdCompression()}} {
		roundTrip(ctx, c.n, kgo.ProducerBatchCompression(c.o))
		roundTrip(ctx, c.n+"-plain", kgo.ProducerBatchCompression(c.o), kgo.DisableIdempotentWrite(), kgo.RequiredAcks(kgo.LeaderAck()))
	}
	for n, v := range map[string]*kversion.Versions{"0.8.2": kversion.V0_8_2(), "0.9": kversion.V0_9_0(), "0.10.2": kversion.V0_10_2(), "0.11": kversion.V0_11_0(), "1.1": kversion.V1_1_0(), "2.8": kversion.V2_8_0()} {
		if n[0] == '0' && n != "0.11" {
			continue
		}
		roundTrip(ctx, "v"+n, kgo.MaxVersions(v))
	}
	c := client()
	a := kadm.NewClient(c)
	_, err := a.CreateTopics(ctx, 3, 1, map[string]*string{"retention.ms": kadm.StringPtr("60000")}, "fza", "fzb")
	check("create topics", err)
	cr, _ := a.CreateTopics(ctx, 3, 1, nil, "fza")
	check("create again errs", func() error {
		if errors.Is(cr["fza"].Err, kerr.TopicAlreadyExists) {
			return nil
		}
		return fmt.Errorf("%v", cr)
	}())
	vt, err := a.ValidateCreateTopics(ctx, 3, 1, nil, "fzval")
	check("validate create", either(err, vt["fzval"].Err))
	cp, err := a.CreatePartitions(ctx, 2, "fza")
	check("create partitions", either(err, cp["fza"].Err))
	up, err := a.UpdatePartitions(ctx, 6, "fza")
	check("update partitions", either(err, up["fza"].Err))
	td, err := a.ListTopics(ctx)
	check("list topics", either(err, td.Error()))
	td, err = a.ListTopicsWithInternal(ctx)
	check("list topics internal", either(err, td.Error()))
	m, err := a.Metadata(ctx, "fza")
	check(fmt.Sprint("metadata ", len(m.Topics["fza"].Partitions), m.Controller, m.Cluster != ""), err)
	bd, err := a.ListBrokers(ctx)
	check(fmt.Sprint("brokers ", len(bd)), err)
	_, err = a.ApiVersions(ctx)
	check("api versions", err)
	rc, err := a.DescribeTopicConfigs(ctx, "fza")
	check("describe topic configs", err)
	for _, r := range rc {
		check("  each", r.Err)
	}
	_, err = a.DescribeBrokerConfigs(ctx, 1)
	check("describe broker configs", err)
	ar, err := a.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "retention.ms", Value: kadm.StringPtr("7")}}, "fza")
	check("alter topic configs", err)
	for _, r := range ar {
		check("  each", r.Err)
	}
	ar, err = a.AlterTopicConfigsState(ctx, []kadm.AlterConfig{{Name: "retention.ms", Value: kadm.StringPtr("70000000")}}, "fza")
	check("alter topic configs state", err)
	for _, r := range ar {
		check("  each", r.Err)
	}
	ar, err = a.AlterBrokerConfigs(ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "log.retention.ms", Value: kadm.StringPtr("7000000")}})
	check("alter broker configs", err)
	for _, r := range ar {
		check("  each", r.Err)
	}
	ld, err := a.DescribeAllLogDirs(ctx, nil)
	check(fmt.Sprint("log dirs ", len(ld)), err)
	so, err := a.ListStartOffsets(ctx, "fz-none")
	check("start offsets", either(err, so.Error()))
	eo, err := a.ListEndOffsets(ctx, "fz-none")
	check(fmt.Sprint("end offsets ", eo), either(err, eo.Error()))
	eo, err = a.ListCommittedOffsets(ctx, "fz-none")
	check("committed offsets", either(err, eo.Error()))
	eo, err = a.ListOffsetsAfterMilli(ctx, 5, "fz-none")
	check("offsets after", either(err, eo.Error()))
	dr, err := a.DeleteRecords(ctx, kadm.Offsets{"fz-none": {0: {Topic: "fz-none", Partition: 0, At: 10}}})
	check("delete records", either(err, dr["fz-none"][0].Err))
	_, err = a.DescribeProducers(ctx, kadm.TopicsSet{"fz-none": {0: {}}})
	check("describe producers", err)
	_, err = a.ListTransactions(ctx, nil, nil)
	check("list transactions", err)
	_, err = a.DescribeTransactions(ctx, "nope")
	if err == nil || !strings.Contains(err.Error(), kerr.TransactionalIDNotFound.Message) {
		must("describe transactions", fmt.Errorf("%v", err))
	}
	_, err = a.ElectLeaders(ctx, kadm.ElectPreferredReplica, kadm.TopicsSet{"fza": {0: {}}})
	check("elect leaders", err)
	_, err = a.ListPartitionReassignments(ctx, nil)
	check("list reassignments", err)
	_, err = a.AlterPartitionAssignments(ctx, kadm.AlterPartitionAssignmentsReq{"fza": {0: {1}}})
	check("alter assignments", err)
	acls := kadm.NewACLs().AnyResource().Allow().Deny().Operations()
	da, err := a.DescribeACLs(ctx, acls)
	check(fmt.Sprint("describe acls ", da), err)
	_, err = a.DescribeClientQuotas(ctx, false, nil)
	check("describe quotas", err)
	_, err = a.DescribeUserSCRAMs(ctx)
	check("describe scram", err)
	_, err = kmsg.NewPtrDescribeClusterRequest().RequestWith(ctx, c)
	check("describe cluster", err)

	// groups
	for _, bal := range []struct {
		n string
		b kgo.GroupBalancer
	}{{"coop", kgo.CooperativeStickyBalancer()}, {"range", kgo.RangeBalancer()}, {"rr", kgo.RoundRobinBalancer()}, {"sticky", kgo.StickyBalancer()}} {
		topic := "fzg-" + bal.n
		a.CreateTopics(ctx, 4, 1, nil, topic)
		p := client(kgo.DefaultProduceTopic(topic), kgo.RecordPartitioner(kgo.RoundRobinPartitioner()))
		for i := 0; i < 200; i++ {
			p.Produce(ctx, kgo.StringRecord(fmt.Sprint(i)), nil)
		}
		must("flush", p.Flush(ctx))
		seen := make(chan string, 1000)
		var members []*kgo.Client
		gctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		for k := 0; k < 3; k++ {
			g := client(kgo.ConsumerGroup("g-"+bal.n), kgo.ConsumeTopics(topic), kgo.Balancers(bal.b), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.AutoCommitInterval(200*time.Millisecond))
			members = append(members, g)
			go func() {
				for gctx.Err() == nil {
					fs := g.PollFetches(gctx)
					fs.EachRecord(func(r *kgo.Record) { seen <- string(r.Value) })
				}
			}()
		}
		set := map[string]bool{}
		for len(set) < 200 {
			select {
			case v := <-seen:
				set[v] = true
			case <-gctx.Done():
				must("group "+bal.n, fmt.Errorf("only %d", len(set)))
			}
		}
		time.Sleep(500 * time.Millisecond)
		dg, err := a.DescribeGroups(ctx, "g-"+bal.n)
		check(fmt.Sprint("describe group ", bal.n, " ", dg["g-"+bal.n].State, len(dg["g-"+bal.n].Members)), either(err, dg["g-"+bal.n].Err))
		lag, err := a.Lag(ctx, "g-"+bal.n)
		check(fmt.Sprint("lag ", bal.n, lag["g-"+bal.n].Lag.Total()), either(err, lag.Error()))
		cancel()
		for _, g := range members {
			g.Close()
		}
		p.Close()
	}
	gl, err := a.ListGroups(ctx)
	check(fmt.Sprint("list groups ", len(gl)), err)
	fo, err := a.FetchOffsets(ctx, "g-rr")
	check(fmt.Sprint("fetch offsets ", len(fo)), either(err, fo.Error()))
	fm := a.FetchManyOffsets(ctx, "g-rr", "g-range", "nope")
	check("fetch many", fm["g-rr"].Err)
	err = a.CommitAllOffsets(ctx, "g-new", kadm.Offsets{"fza": {0: {Topic: "fza", Partition: 0, At: 0}}})
	check("commit", err)
	do, err := a.DeleteOffsets(ctx, "g-new", kadm.TopicsSet{"fza": {0: {}}})
	check("delete offsets", either(err, do["fza"][0]))
	gd, err := a.DeleteGroups(ctx, "g-rr", "g-range")
	check("delete groups", either(err, gd["g-rr"].Err, gd["g-range"].Err))
	dt, err := a.DeleteTopics(ctx, "fza", "fzb")
	check("delete topics", either(err, dt["fza"].Err, dt["fzb"].Err))
}
