// The parts of the client matrix with franz-go: see programs.py. Arguments: address, prefix, parts.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const deadline = 10 * time.Minute

type facts map[string]any

type run struct {
	address, prefix string
	admin           *kadm.Client
}

func main() {
	r := &run{address: os.Args[1], prefix: os.Args[2]}
	client := r.client()
	defer client.Close()
	r.admin = kadm.NewClient(client)
	parts := map[string]func(context.Context) (facts, error){
		"basic": r.basic, "rebalance": r.rebalance, "transactions": r.transactions, "share": r.share,
	}
	for _, name := range os.Args[3:] {
		ctx, cancel := context.WithTimeout(context.Background(), deadline)
		found, err := parts[name](ctx)
		cancel()
		if err != nil {
			fmt.Fprintln(os.Stderr, name, err)
			os.Exit(1)
		}
		found["part"] = name
		line, _ := json.Marshal(found)
		fmt.Println(string(line))
	}
}

func (r *run) client(options ...kgo.Opt) *kgo.Client {
	options = append(options, kgo.SeedBrokers(r.address), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	client, err := kgo.NewClient(options...)
	if err != nil {
		panic(err)
	}
	return client
}

func (r *run) consumer(group, topic string, options ...kgo.Opt) *kgo.Client {
	options = append(options, kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.HeartbeatInterval(300*time.Millisecond),
		kgo.MetadataMinAge(100*time.Millisecond))
	return r.client(options...)
}

func (r *run) create(ctx context.Context, topic string, partitions int32) error {
	_, err := r.admin.CreateTopic(ctx, partitions, 1, nil, topic)
	return err
}

// That number of records, to the partitions in turn, each with a value of its own.
func (r *run) produce(ctx context.Context, client *kgo.Client, topic string, count, partitions int) error {
	var records []*kgo.Record
	for number := range count {
		value := fmt.Appendf(nil, "record-%d", number)
		records = append(records, &kgo.Record{Topic: topic, Partition: int32(number % partitions), Value: value})
	}
	return client.ProduceSync(ctx, records...).FirstErr()
}

// Polls the clients in turn until the condition holds; the records are kept in values.
func until(ctx context.Context, what string, values map[string]bool, condition func() bool, clients ...*kgo.Client) error {
	for !condition() {
		if ctx.Err() != nil {
			return fmt.Errorf("in vain: %s", what)
		}
		for _, client := range clients {
			short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
			client.PollFetches(short).EachRecord(func(record *kgo.Record) { values[string(record.Value)] = true })
			cancel()
		}
	}
	return nil
}

func (r *run) committed(ctx context.Context, group string) int64 {
	offsets, err := r.admin.FetchOffsets(ctx, group)
	if err != nil {
		return -1
	}
	sum := int64(0)
	offsets.Each(func(one kadm.OffsetResponse) { sum += one.At })
	return sum
}

func (r *run) basic(ctx context.Context) (facts, error) {
	topic := r.prefix + "-basic"
	retention, size := "90000", "50000"
	if _, err := r.admin.CreateTopic(ctx, 1, 1, map[string]*string{"retention.ms": &retention}, topic); err != nil {
		return nil, err
	}
	if _, err := r.admin.UpdatePartitions(ctx, 2, topic); err != nil {
		return nil, err
	}
	bigger := []kadm.AlterConfig{{Name: "max.message.bytes", Value: &size}}
	if _, err := r.admin.AlterTopicConfigs(ctx, bigger, topic); err != nil {
		return nil, err
	}
	configs, err := r.admin.DescribeTopicConfigs(ctx, topic)
	if err != nil {
		return nil, err
	}
	set := map[string]string{}
	for _, config := range configs[0].Configs {
		set[config.Key] = config.MaybeValue()
	}
	topics, err := r.admin.ListTopics(ctx)
	if err != nil {
		return nil, err
	}
	producer := r.client()
	defer producer.Close()
	if err := r.produce(ctx, producer, topic, 10, 2); err != nil {
		return nil, err
	}
	consumer := r.consumer(topic, topic)
	values := map[string]bool{}
	if err := until(ctx, "records are read", values, func() bool { return len(values) == 10 }, consumer); err != nil {
		return nil, err
	}
	if err := consumer.CommitUncommittedOffsets(ctx); err != nil {
		return nil, err
	}
	consumer.Close()
	groups, err := r.admin.ListGroups(ctx)
	if err != nil {
		return nil, err
	}
	_, listed := groups[topic]
	found := facts{
		"partitions": len(topics[topic].Partitions), "retention": number(set["retention.ms"]),
		"bytes": number(set["max.message.bytes"]), "listed": topics.Has(topic), "read": len(values),
		"committed": r.committed(ctx, topic), "group": listed,
	}
	if _, err := r.admin.DeleteGroups(ctx, topic); err != nil {
		return nil, err
	}
	_, err = r.admin.DeleteTopics(ctx, topic)
	return found, err
}

func number(text string) int64 {
	var value int64
	fmt.Sscan(text, &value)
	return value
}

// One consumer has both partitions, two have one each, and the remaining one has both again.
func (r *run) rebalance(ctx context.Context) (facts, error) {
	topic := r.prefix + "-rebalance"
	if err := r.create(ctx, topic, 2); err != nil {
		return nil, err
	}
	producer := r.client()
	defer producer.Close()
	if err := r.produce(ctx, producer, topic, 20, 2); err != nil {
		return nil, err
	}
	var first, second assigned
	one := r.consumer(topic, topic, first.options()...)
	values := map[string]bool{}
	if err := until(ctx, "the first has all", values, func() bool { return first.count() == 2 && len(values) == 20 }, one); err != nil {
		return nil, err
	}
	if err := one.CommitUncommittedOffsets(ctx); err != nil {
		return nil, err
	}
	two := r.consumer(topic, topic, second.options()...)
	shared := func() bool { return first.count() == 1 && second.count() == 1 }
	if err := until(ctx, "they share", values, shared, one, two); err != nil {
		return nil, err
	}
	if err := r.produce(ctx, producer, topic, 20, 2); err != nil {
		return nil, err
	}
	again := map[string]bool{}
	if err := until(ctx, "both have read", again, func() bool { return len(again) == 20 }, one, two); err != nil {
		return nil, err
	}
	for _, client := range []*kgo.Client{one, two} {
		if err := client.CommitUncommittedOffsets(ctx); err != nil {
			return nil, err
		}
	}
	one.Close()
	if err := until(ctx, "the second has all", values, func() bool { return second.count() == 2 }, two); err != nil {
		return nil, err
	}
	two.Close()
	return facts{"read": len(values), "again": len(again), "committed": r.committed(ctx, topic)}, nil
}

// The number of partitions of a consumer; the callbacks run while it is polled, or in its own goroutine.
type assigned struct{ partitions atomic.Int64 }

func (a *assigned) count() int64 { return a.partitions.Load() }

func (a *assigned) options() []kgo.Opt {
	lost := func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) { a.add(partitions, -1) }
	return []kgo.Opt{
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
			a.add(partitions, 1)
		}),
		kgo.OnPartitionsRevoked(lost), kgo.OnPartitionsLost(lost),
	}
}

func (a *assigned) add(partitions map[string][]int32, sign int) {
	for _, indexes := range partitions {
		a.partitions.Add(int64(sign * len(indexes)))
	}
}

// Consume, process, produce: one transaction is aborted, one committed.
func (r *run) transactions(ctx context.Context) (facts, error) {
	input, output := r.prefix+"-input", r.prefix+"-output"
	for _, topic := range []string{input, output} {
		if err := r.create(ctx, topic, 1); err != nil {
			return nil, err
		}
	}
	producer := r.client()
	defer producer.Close()
	if err := r.produce(ctx, producer, input, 5, 1); err != nil {
		return nil, err
	}
	session, err := kgo.NewGroupTransactSession(
		kgo.SeedBrokers(r.address), kgo.TransactionalID(r.prefix+"-tx"), kgo.ConsumerGroup(input),
		kgo.ConsumeTopics(input), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.RequireStableFetchOffsets())
	if err != nil {
		return nil, err
	}
	if err := session.Begin(); err != nil {
		return nil, err
	}
	if err := session.ProduceSync(ctx, &kgo.Record{Topic: output, Value: []byte("dropped")}).FirstErr(); err != nil {
		return nil, err
	}
	if _, err := session.End(ctx, kgo.TryAbort); err != nil {
		return nil, err
	}
	read := 0
	for read < 5 {
		fetches := session.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, err
		}
		if err := session.Begin(); err != nil {
			return nil, err
		}
		fetches.EachRecord(func(record *kgo.Record) {
			read++
			session.Produce(ctx, &kgo.Record{Topic: output, Value: record.Value}, nil)
		})
		if committed, err := session.End(ctx, kgo.TryCommit); err != nil || !committed {
			return nil, fmt.Errorf("not committed: %w", err)
		}
	}
	session.Close()
	consumer := r.consumer(output, output, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	defer consumer.Close()
	seen := map[string]bool{}
	if err := until(ctx, "the output is read", seen, func() bool { return len(seen) == 5 }, consumer); err != nil {
		return nil, err
	}
	return facts{"seen": len(seen), "dropped": seen["dropped"], "committed": r.committed(ctx, input)}, nil
}

func (r *run) beginEarliest(ctx context.Context, group string) error {
	setting := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	setting.Name, setting.Value = "share.auto.offset.reset", kmsg.StringPtr("earliest")
	resource := kmsg.NewIncrementalAlterConfigsRequestResource()
	resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceTypeGroupConfig, group
	resource.Configs = append(resource.Configs, setting)
	request := kmsg.NewPtrIncrementalAlterConfigsRequest()
	request.Resources = append(request.Resources, resource)
	client := r.client()
	defer client.Close()
	response, err := request.RequestWith(ctx, client)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(response.Resources[0].ErrorCode)
}

// Accepts every record, except one that it releases first.
func (r *run) share(ctx context.Context) (facts, error) {
	topic := r.prefix + "-share"
	if err := r.create(ctx, topic, 1); err != nil {
		return nil, err
	}
	if err := r.beginEarliest(ctx, topic); err != nil {
		return nil, err
	}
	producer := r.client()
	defer producer.Close()
	if err := r.produce(ctx, producer, topic, 10, 1); err != nil {
		return nil, err
	}
	consumer := r.client(kgo.ShareGroup(topic), kgo.ConsumeTopics(topic))
	accepted := map[string]bool{}
	released := false
	for len(accepted) < 10 && ctx.Err() == nil {
		short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		consumer.PollFetches(short).EachRecord(func(record *kgo.Record) {
			if string(record.Value) == "record-7" && !released {
				released = true
				consumer.MarkAcks(kgo.AckRelease, record)
				return
			}
			consumer.MarkAcks(kgo.AckAccept, record)
			accepted[fmt.Sprintf("%s/%d", record.Value, record.DeliveryCount())] = true
		})
		cancel()
		if err := consumer.FlushAcks(ctx); err != nil {
			return nil, err
		}
	}
	consumer.Close()
	return facts{"accepted": len(accepted), "again": accepted["record-7/2"]}, ctx.Err()
}
