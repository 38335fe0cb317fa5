// franz-go with TLS, SASL or both: what each case of a JSON file says, then access rules, users of SCRAM and tokens.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

type secured struct {
	Name, Address, Ca, Certificate, Key, Mechanism, User, Password, Token string
	Tls                                                                   bool
}

func (s secured) mechanism() sasl.Mechanism {
	auth := scram.Auth{User: s.User, Pass: s.Password, IsToken: s.Token == "delegation"}
	switch s.Mechanism {
	case "PLAIN":
		return plain.Auth{User: s.User, Pass: s.Password}.AsMechanism()
	case "SCRAM-SHA-256":
		return auth.AsSha256Mechanism()
	case "SCRAM-SHA-512":
		return auth.AsSha512Mechanism()
	}
	return oauth.Auth{Token: s.Token}.AsMechanism()
}

func (s secured) client(opts ...kgo.Opt) *kgo.Client {
	opts = append(opts, kgo.SeedBrokers(s.Address), kgo.AllowAutoTopicCreation())
	if s.Tls {
		pem, err := os.ReadFile(s.Ca)
		must(s.Name, err)
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(pem)
		c := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
		if s.Certificate != "" {
			pair, err := tls.LoadX509KeyPair(s.Certificate, s.Key)
			must(s.Name, err)
			c.Certificates = []tls.Certificate{pair}
		}
		opts = append(opts, kgo.DialTLSConfig(c))
	}
	if s.Mechanism != "" {
		opts = append(opts, kgo.SASL(s.mechanism()))
	}
	c, err := kgo.NewClient(opts...)
	must(s.Name, err)
	return c
}

func runSecured(path string) {
	ctx, stop := context.WithTimeout(context.Background(), 60*time.Second)
	defer stop()
	data, err := os.ReadFile(path)
	must(path, err)
	var cases struct{ Good, Bad []secured }
	must(path, json.Unmarshal(data, &cases))
	for _, s := range cases.Good {
		topic := "franz-" + s.Name
		c := s.client(kgo.DefaultProduceTopic(topic), kgo.ConsumerGroup(topic), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
		for n := 0; n < 20; n++ {
			must(s.Name, c.ProduceSync(ctx, kgo.StringRecord(fmt.Sprint(n))).FirstErr())
		}
		got := 0
		for got < 20 {
			fetched := c.PollFetches(ctx)
			must(s.Name, fetched.Err())
			fetched.EachRecord(func(r *kgo.Record) {
				if string(r.Value) != fmt.Sprint(got) {
					must(s.Name, fmt.Errorf("%s instead of %d", r.Value, got))
				}
				got++
			})
		}
		must(s.Name, c.CommitUncommittedOffsets(ctx))
		c.Close()
		fmt.Println("ok group", s.Name)
	}
	securedAdmin(ctx, cases.Good[0])
	for _, s := range cases.Bad {
		c := s.client()
		since := time.Now()
		err := c.Ping(ctx)
		c.Close()
		if err == nil || time.Since(since) > 5*time.Second {
			must(s.Name, fmt.Errorf("%v after %v", err, time.Since(since)))
		}
		fmt.Println("refused", s.Name+":", err)
	}
}

func securedAdmin(ctx context.Context, s secured) {
	c := s.client()
	defer c.Close()
	a := kadm.NewClient(c)
	rules := kadm.NewACLs().Topics("franz-1").ResourcePatternType(kadm.ACLPatternPrefixed).Operations(kadm.OpRead).Allow("User:franz").AllowHosts("*")
	created, err := a.CreateACLs(ctx, rules)
	must("create acls", err)
	for _, each := range created {
		must("create acls", each.Err)
	}
	filter := kadm.NewACLs().Topics("franz-11").ResourcePatternType(kadm.ACLPatternMatch).Operations(kadm.OpAny).Allow("User:franz").AllowHosts()
	described, err := a.DescribeACLs(ctx, filter)
	must("describe acls", err)
	if len(described) != 1 || len(described[0].Described) != 1 {
		must("describe acls", fmt.Errorf("%v", described))
	}
	deleted, err := a.DeleteACLs(ctx, filter)
	must("delete acls", err)
	if len(deleted) != 1 || len(deleted[0].Deleted) != 1 {
		must("delete acls", fmt.Errorf("%v", deleted))
	}
	fmt.Println("ok acls")
	altered, err := a.AlterUserSCRAMs(ctx, nil, []kadm.UpsertSCRAM{{User: "franz", Mechanism: kadm.ScramSha512, Iterations: 4096, Password: "pw"}})
	must("upsert user", either(err, altered.Error()))
	time.Sleep(100 * time.Millisecond)
	users, err := a.DescribeUserSCRAMs(ctx, "franz")
	must("describe users", either(err, users.Error()))
	if users["franz"].CredInfos[0].Iterations != 4096 {
		must("describe users", fmt.Errorf("%v", users))
	}
	own := s
	own.Mechanism, own.User, own.Password = "SCRAM-SHA-512", "franz", "pw"
	o := own.client()
	must("log in as the new user", o.Ping(ctx))
	o.Close()
	altered, err = a.AlterUserSCRAMs(ctx, []kadm.DeleteSCRAM{{User: "franz", Mechanism: kadm.ScramSha512}}, nil)
	must("delete user", either(err, altered.Error()))
	fmt.Println("ok users")
	request := kmsg.NewPtrCreateDelegationTokenRequest()
	request.MaxLifetimeMillis = -1
	token, err := request.RequestWith(ctx, c)
	must("create token", err)
	if token.ErrorCode != 0 {
		must("create token", fmt.Errorf("%d", token.ErrorCode))
	}
	own.User, own.Password, own.Token = token.TokenID, base64Of(token.HMAC), "delegation"
	o = own.client()
	must("log in by the token", o.Ping(ctx))
	o.Close()
	fmt.Println("ok tokens")
	quota := kadm.AlterClientQuotaEntry{Entity: kadm.ClientQuotaEntity{{Type: "user", Name: kadm.StringPtr("franz")}}, Ops: []kadm.AlterClientQuotaOp{{Key: "producer_byte_rate", Value: 1e6}}}
	changed, err := a.AlterClientQuotas(ctx, []kadm.AlterClientQuotaEntry{quota})
	must("alter quotas", either(err, changed[0].Err))
	time.Sleep(100 * time.Millisecond)
	quotas, err := a.DescribeClientQuotas(ctx, true, []kadm.DescribeClientQuotaComponent{{Type: "user", MatchName: kadm.StringPtr("franz"), MatchType: 0}})
	must("describe quotas", err)
	if len(quotas) != 1 || quotas[0].Values[0].Value != 1e6 {
		must("describe quotas", fmt.Errorf("%v", quotas))
	}
	fmt.Println("ok quotas")
}
