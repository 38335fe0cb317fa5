// sarama with TLS, SASL or both: what each case of a JSON file says, then access rules and users of SCRAM.
package main

import (
	"crypto/sha256"
	"crypto/sha512"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/IBM/sarama"
	"github.com/xdg-go/scram"
)

type secured struct {
	Name, Address, Ca, Certificate, Key, Mechanism, User, Password, Token string
	Tls                                                                   bool
}

type conversation struct {
	*scram.ClientConversation
	generator scram.HashGeneratorFcn
}

func (c *conversation) Begin(user, password, authorization string) error {
	client, err := c.generator.NewClient(user, password, authorization)
	if err == nil {
		c.ClientConversation = client.NewConversation()
	}
	return err
}

type tokens string

func (t tokens) Token() (*sarama.AccessToken, error) {
	return &sarama.AccessToken{Token: string(t)}, nil
}

func (s secured) config() *sarama.Config {
	c := config(sarama.V3_6_0_0)
	c.Metadata.Retry.Max = 0
	if s.Tls {
		pem, err := os.ReadFile(s.Ca)
		check(err, s.Name)
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(pem)
		c.Net.TLS.Enable = true
		c.Net.TLS.Config = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
		if s.Certificate != "" {
			pair, err := tls.LoadX509KeyPair(s.Certificate, s.Key)
			check(err, s.Name)
			c.Net.TLS.Config.Certificates = []tls.Certificate{pair}
		}
	}
	if s.Mechanism != "" {
		c.Net.SASL.Enable = true
		c.Net.SASL.Mechanism = sarama.SASLMechanism(s.Mechanism)
		c.Net.SASL.User, c.Net.SASL.Password = s.User, s.Password
		c.Net.SASL.TokenProvider = tokens(s.Token)
		hashes := map[string]scram.HashGeneratorFcn{"SCRAM-SHA-256": sha256.New, "SCRAM-SHA-512": sha512.New}
		c.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient {
			return &conversation{generator: hashes[s.Mechanism]}
		}
	}
	return c
}

func runSecured(path string) {
	data, err := os.ReadFile(path)
	check(err, path)
	var cases struct{ Good, Bad []secured }
	check(json.Unmarshal(data, &cases), path)
	for _, s := range cases.Good {
		servers = []string{s.Address}
		c := s.config()
		producer, err := sarama.NewSyncProducer(servers, c)
		check(err, s.Name)
		for n := 0; n < 20; n++ {
			_, o, err := producer.SendMessage(&sarama.ProducerMessage{Topic: "sarama-" + s.Name, Value: sarama.StringEncoder(fmt.Sprint(n))})
			check(err, s.Name)
			expect(o == int64(n), s.Name, "offset", o, n)
		}
		check(producer.Close(), s.Name)
		fmt.Println("ok produce", s.Name)
	}
	for _, s := range cases.Good {
		securedGroup(s)
	}
	servers = []string{cases.Good[0].Address}
	securedAdmin(cases.Good[0])
	for _, s := range cases.Bad {
		since := time.Now()
		_, err := sarama.NewClient([]string{s.Address}, s.config())
		expect(err != nil && time.Since(since) < 5*time.Second, s.Name, err, time.Since(since))
		fmt.Println("refused", s.Name+":", err)
	}
}

func securedGroup(s secured) {
	values := make(chan string, 100)
	consumer, err := sarama.NewConsumerGroup([]string{s.Address}, "sarama-"+s.Name, s.config())
	check(err, s.Name)
	ctx, cancel := contextOf(20 * time.Second)
	done := make(chan bool)
	go func() {
		for ctx.Err() == nil {
			if err := consumer.Consume(ctx, []string{"sarama-" + s.Name}, handler{values}); err != nil && ctx.Err() == nil {
				check(err, s.Name)
			}
		}
		done <- true
	}()
	for n := 0; n < 20; n++ {
		select {
		case v := <-values:
			expect(v == fmt.Sprint("0/", n), s.Name, v, n)
		case <-ctx.Done():
			expect(false, s.Name, "only", n)
		}
	}
	cancel()
	<-done
	check(consumer.Close(), s.Name)
	fmt.Println("ok group", s.Name)
}

func securedAdmin(s secured) {
	admin, err := sarama.NewClusterAdmin(servers, s.config())
	check(err, "admin")
	rule := func(name string, pattern sarama.AclResourcePatternType) *sarama.ResourceAcls {
		return &sarama.ResourceAcls{
			Resource: sarama.Resource{ResourceType: sarama.AclResourceTopic, ResourceName: name, ResourcePatternType: pattern},
			Acls:     []*sarama.Acl{{Principal: "User:sarama", Host: "*", Operation: sarama.AclOperationRead, PermissionType: sarama.AclPermissionAllow}},
		}
	}
	check(admin.CreateACLs([]*sarama.ResourceAcls{rule("sarama-1", sarama.AclPatternLiteral), rule("sarama-", sarama.AclPatternPrefixed)}), "create acls")
	name, user := "sarama-1", "User:sarama"
	filter := sarama.AclFilter{ResourceType: sarama.AclResourceTopic, ResourceName: &name, ResourcePatternTypeFilter: sarama.AclPatternMatch, Principal: &user, Operation: sarama.AclOperationAny, PermissionType: sarama.AclPermissionAny}
	found, err := admin.ListAcls(filter)
	check(err, "list acls")
	expect(len(found) == 2, "list acls", found)
	matching, err := admin.DeleteACL(filter, false)
	check(err, "delete acls")
	expect(len(matching) == 2, "delete acls", matching)
	found, err = admin.ListAcls(filter)
	check(err, "list acls")
	expect(len(found) == 0, "list acls", found)
	fmt.Println("ok acls")
	changed, err := admin.UpsertUserScramCredentials([]sarama.AlterUserScramCredentialsUpsert{{Name: "sarama", Mechanism: sarama.SCRAM_MECHANISM_SHA_256, Iterations: 4096, Salt: []byte("some salt"), Password: []byte("pw")}})
	check(err, "upsert user")
	expect(changed[0].ErrorCode == sarama.ErrNoError, "upsert user", changed[0].ErrorCode)
	time.Sleep(100 * time.Millisecond)
	users, err := admin.DescribeUserScramCredentials([]string{"sarama", "missing"})
	check(err, "describe users")
	expect(len(users) == 2, "describe users", users)
	for _, u := range users {
		if u.User == "sarama" {
			expect(len(u.CredentialInfos) == 1 && u.CredentialInfos[0].Iterations == 4096, "describe users", u)
		} else {
			expect(u.ErrorCode == 91, "describe users", u.ErrorCode)
		}
	}
	own := s
	own.Mechanism, own.User, own.Password = "SCRAM-SHA-256", "sarama", "pw"
	client, err := sarama.NewClient(servers, own.config())
	check(err, "log in as the new user")
	check(client.Close(), "log in as the new user")
	changed, err = admin.DeleteUserScramCredentials([]sarama.AlterUserScramCredentialsDelete{{Name: "sarama", Mechanism: sarama.SCRAM_MECHANISM_SHA_256}})
	check(err, "delete user")
	expect(changed[0].ErrorCode == sarama.ErrNoError, "delete user", changed[0].ErrorCode)
	fmt.Println("ok users")
	rate := sarama.ClientQuotasOp{Key: "consumer_byte_rate", Value: 100000}
	entity := []sarama.QuotaEntityComponent{{EntityType: sarama.QuotaEntityUser, MatchType: sarama.QuotaMatchExact, Name: "sarama"}}
	check(admin.AlterClientQuotas(entity, rate, false), "alter quotas")
	time.Sleep(100 * time.Millisecond)
	quotas, err := admin.DescribeClientQuotas([]sarama.QuotaFilterComponent{{EntityType: sarama.QuotaEntityUser, MatchType: sarama.QuotaMatchExact, Match: "sarama"}}, false)
	check(err, "describe quotas")
	expect(len(quotas) == 1 && quotas[0].Values["consumer_byte_rate"] == 100000, "describe quotas", quotas)
	check(admin.Close(), "close admin")
	fmt.Println("ok quotas")
}
