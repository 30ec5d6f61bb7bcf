// Command jobs runs a queue of small jobs on a Kafka broker, and prints the rate and latencies as one line of JSON.
//
//	jobs ADDRESS TOPIC GROUP COUNT
//
// Each producer sends one record at a time and waits for its answer. Members of a share group acquire one record per fetch
// (record_limit 1) and accept it with their next request. A run is valid only if each job was delivered exactly once.
package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	producerCount = 8
	consumerCount = 8
	warmUpCount   = 800
	runTimeout    = 10 * time.Minute
)

// result is the measurement of one run.
type result struct {
	Seconds float64 `json:"seconds"`
	P50Ms   float64 `json:"p50_ms"`
	P99Ms   float64 `json:"p99_ms"`
}

func main() {
	if len(os.Args) != 5 {
		fail(fmt.Errorf("usage: jobs ADDRESS TOPIC GROUP COUNT"))
	}
	count, err := strconv.Atoi(os.Args[4])
	if err != nil {
		fail(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), runTimeout)
	defer cancel()
	outcome, err := run(ctx, os.Args[1], os.Args[2], os.Args[3], count)
	if err != nil {
		fail(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(outcome); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func run(ctx context.Context, address, topic, group string, count int) (result, error) {
	work := newQueue(warmUpCount + count)
	consumers, err := startConsumers(ctx, address, topic, group, work)
	if err != nil {
		return result{}, err
	}
	producers, err := newClients(producerCount, address, kgo.DefaultProduceTopic(topic), kgo.ProducerLinger(0))
	if err != nil {
		return result{}, err
	}
	if _, err := work.play(ctx, producers, 0, warmUpCount); err != nil {
		return result{}, fmt.Errorf("warm-up: %w", err)
	}
	outcome, err := work.play(ctx, producers, warmUpCount, count)
	for _, client := range append(producers, consumers...) {
		client.Close()
	}
	return outcome, err
}

func newClients(count int, address string, options ...kgo.Opt) ([]*kgo.Client, error) {
	clients := make([]*kgo.Client, count)
	for index := range clients {
		client, err := kgo.NewClient(append(options, kgo.SeedBrokers(address))...)
		if err != nil {
			return nil, err
		}
		clients[index] = client
	}
	return clients, nil
}

func startConsumers(ctx context.Context, address, topic, group string, work *queue) ([]*kgo.Client, error) {
	consumers, err := newClients(
		consumerCount, address,
		kgo.ConsumeTopics(topic), kgo.ShareGroup(group), kgo.ShareMaxRecords(1), kgo.ShareMaxRecordsStrict(),
	)
	for _, consumer := range consumers {
		go consume(ctx, consumer, work)
	}
	return consumers, err
}

// consume acquires one job at a time; a poll accepts the job of the previous poll.
func consume(ctx context.Context, consumer *kgo.Client, work *queue) {
	for {
		fetches := consumer.PollRecords(ctx, 1)
		if fetches.IsClientClosed() || ctx.Err() != nil {
			return
		}
		fetches.EachError(func(_ string, _ int32, err error) { work.stop(err) })
		fetches.EachRecord(func(record *kgo.Record) { work.deliver(record.Value) })
	}
}

// queue has the jobs of a run by number, with the times at which each was sent and delivered.
type queue struct {
	mutex     sync.Mutex
	sent      []time.Time
	latencies []time.Duration
	delivered []bool
	missing   int
	done      chan error
}

func newQueue(count int) *queue {
	return &queue{sent: make([]time.Time, count), latencies: make([]time.Duration, count), delivered: make([]bool, count)}
}

// play sends jobs, waits until each of them was delivered, and measures both.
func (work *queue) play(ctx context.Context, producers []*kgo.Client, first, count int) (result, error) {
	work.mutex.Lock()
	work.missing = count
	work.done = make(chan error, 1)
	work.mutex.Unlock()
	begin := time.Now()
	for index, producer := range producers {
		go work.produce(ctx, producer, first+index, first+count, len(producers))
	}
	select {
	case err := <-work.done:
		return summarise(time.Since(begin), work.latencies[first:first+count]), err
	case <-ctx.Done():
		return result{}, fmt.Errorf("%d of %d jobs were not delivered: %w", work.missing, count, ctx.Err())
	}
}

func (work *queue) produce(ctx context.Context, producer *kgo.Client, first, end, step int) {
	for number := first; number < end; number += step {
		job := binary.BigEndian.AppendUint64(nil, uint64(number))
		work.mutex.Lock()
		work.sent[number] = time.Now()
		work.mutex.Unlock()
		if err := producer.ProduceSync(ctx, kgo.SliceRecord(job)).FirstErr(); err != nil {
			work.stop(err)
			return
		}
	}
}

func (work *queue) deliver(job []byte) {
	number := binary.BigEndian.Uint64(job)
	work.mutex.Lock()
	defer work.mutex.Unlock()
	if work.delivered[number] {
		work.end(fmt.Errorf("job %d was delivered twice", number))
		return
	}
	work.delivered[number] = true
	work.latencies[number] = time.Since(work.sent[number])
	if work.missing--; work.missing == 0 {
		work.end(nil)
	}
}

func (work *queue) stop(err error) {
	work.mutex.Lock()
	defer work.mutex.Unlock()
	work.end(err)
}

// end reports the first outcome of a run and ignores later ones.
func (work *queue) end(err error) {
	select {
	case work.done <- err:
	default:
	}
}

func summarise(duration time.Duration, latencies []time.Duration) result {
	slices.Sort(latencies)
	return result{
		Seconds: duration.Seconds(),
		P50Ms:   percentile(latencies, 50),
		P99Ms:   percentile(latencies, 99),
	}
}

func percentile(sorted []time.Duration, percent int) float64 {
	return sorted[min(len(sorted)-1, len(sorted)*percent/100)].Seconds() * 1000
}
