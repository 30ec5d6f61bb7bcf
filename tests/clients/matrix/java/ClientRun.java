import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;

/** The parts of the client matrix with Kafka's Java client: see programs.py. Arguments: address, prefix, parts. */
public final class ClientRun {
    static final int DEADLINE_SECONDS = 600;

    private final String address;
    private final String prefix;

    private ClientRun(String address, String prefix) {
        this.address = address;
        this.prefix = prefix;
    }

    public static void main(String[] args) throws Exception {
        ClientRun run = new ClientRun(args[0], args[1]);
        for (int index = 2; index < args.length; index++) {
            System.out.println(run.part(args[index]));
        }
        System.exit(0);
    }

    private String part(String name) throws Exception {
        switch (name) {
            case "basic":
                return basic();
            case "rebalance":
                return rebalance("classic");
            case "rebalance-consumer":
                return rebalance("consumer");
            case "transactions":
                return transactions();
            case "share":
                // Older clients lack it, so it is looked up by name.
                return (String) Class.forName("ShareRun").getMethod("run", String.class, String.class)
                    .invoke(null, address, prefix);
            default:
                throw new IllegalArgumentException(name);
        }
    }

    private String basic() throws Exception {
        String topic = prefix + "-basic";
        try (Admin admin = Admin.create(settings(Map.of()))) {
            admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1).configs(Map.of("retention.ms", "90000"))))
                .all().get();
            admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(2))).all().get();
            ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
            AlterConfigOp bigger = new AlterConfigOp(
                new ConfigEntry("max.message.bytes", "50000"), AlterConfigOp.OpType.SET);
            admin.incrementalAlterConfigs(Map.of(resource, List.of(bigger))).all().get();
            Config config = admin.describeConfigs(List.of(resource)).all().get().get(resource);
            int partitions = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size();
            boolean listed = admin.listTopics().names().get().contains(topic);
            produce(topic, 10);
            int read = 0;
            try (KafkaConsumer<String, String> consumer = consumer(Map.of("group.id", topic))) {
                consumer.subscribe(List.of(topic));
                List<String> values = new ArrayList<>();
                await("records are read", () -> {
                    consumer.poll(Duration.ofMillis(100)).forEach(record -> values.add(record.value()));
                    return values.size() >= 10;
                });
                consumer.commitSync();
                read = values.size();
            }
            long committed = committed(admin, topic);
            boolean group = admin.listConsumerGroups().all().get().stream().anyMatch(one -> one.groupId().equals(topic));
            admin.deleteConsumerGroups(List.of(topic)).all().get();
            admin.deleteTopics(List.of(topic)).all().get();
            return "{\"part\": \"basic\", \"partitions\": " + partitions + ", \"retention\": "
                + config.get("retention.ms").value() + ", \"bytes\": " + config.get("max.message.bytes").value()
                + ", \"listed\": " + listed + ", \"read\": " + read + ", \"committed\": " + committed
                + ", \"group\": " + group + "}";
        }
    }

    private static long committed(Admin admin, String group) throws Exception {
        Map<TopicPartition, OffsetAndMetadata> offsets =
            admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get();
        return offsets.values().stream().mapToLong(OffsetAndMetadata::offset).sum();
    }

    /** One consumer has both partitions, two have one each, and the remaining one has both again. */
    private String rebalance(String protocol) throws Exception {
        String topic = prefix + "-rebalance-" + protocol;
        create(topic, 2);
        produce(topic, 20);
        Map<String, Object> settings = new HashMap<>(Map.of("group.id", topic));
        if (!protocol.equals("classic")) {
            settings.put("group.protocol", protocol);
        }
        Set<String> values = new TreeSet<>();
        KafkaConsumer<String, String> first = consumer(settings);
        KafkaConsumer<String, String> second = consumer(settings);
        first.subscribe(List.of(topic));
        await("the first has all", () -> poll(values, first) && first.assignment().size() == 2 && values.size() == 20);
        first.commitSync();
        second.subscribe(List.of(topic));
        await("they share", () -> poll(values, first, second)
            && first.assignment().size() == 1 && second.assignment().size() == 1);
        produce(topic, 20);
        Set<String> again = new TreeSet<>();
        await("both have read", () -> poll(again, first, second) && again.size() == 20);
        first.commitSync();
        second.commitSync();
        first.close();
        await("the second has all", () -> poll(values, second) && second.assignment().size() == 2);
        second.close();
        try (Admin admin = Admin.create(settings(Map.of()))) {
            return "{\"part\": \"rebalance" + (protocol.equals("classic") ? "" : "-" + protocol) + "\", \"read\": "
                + values.size() + ", \"again\": " + again.size() + ", \"committed\": " + committed(admin, topic) + "}";
        }
    }

    @SafeVarargs
    private static boolean poll(Set<String> values, KafkaConsumer<String, String>... consumers) {
        for (KafkaConsumer<String, String> consumer : consumers) {
            for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(100))) {
                values.add(record.value());
            }
        }
        return true;
    }

    /** Consume, process, produce: one transaction is committed, one aborted. */
    private String transactions() throws Exception {
        String input = prefix + "-input";
        String output = prefix + "-output";
        create(input, 1);
        create(output, 1);
        produce(input, 5);
        try (KafkaProducer<String, String> producer = producer(Map.of("transactional.id", prefix + "-tx"));
             KafkaConsumer<String, String> consumer = consumer(Map.of("group.id", input))) {
            producer.initTransactions();
            consumer.subscribe(List.of(input));
            List<ConsumerRecord<String, String>> records = new ArrayList<>();
            await("the input is read", () -> {
                consumer.poll(Duration.ofMillis(100)).forEach(records::add);
                return records.size() == 5;
            });
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(output, "dropped"));
            producer.flush();
            producer.abortTransaction();
            producer.beginTransaction();
            for (ConsumerRecord<String, String> record : records) {
                producer.send(new ProducerRecord<>(output, record.value()));
            }
            producer.sendOffsetsToTransaction(
                Map.of(new TopicPartition(input, 0), new OffsetAndMetadata(5)), consumer.groupMetadata());
            producer.commitTransaction();
        }
        Set<String> seen = new TreeSet<>();
        try (KafkaConsumer<String, String> consumer =
                 consumer(Map.of("group.id", output, "isolation.level", "read_committed"));
             Admin admin = Admin.create(settings(Map.of()))) {
            consumer.subscribe(List.of(output));
            await("the output is read", () -> poll(seen, consumer) && seen.size() == 5);
            return "{\"part\": \"transactions\", \"seen\": " + seen.size() + ", \"dropped\": "
                + seen.contains("dropped") + ", \"committed\": " + committed(admin, input) + "}";
        }
    }

    private void create(String topic, int partitions) throws Exception {
        try (Admin admin = Admin.create(settings(Map.of()))) {
            admin.createTopics(List.of(new NewTopic(topic, Optional.of(partitions), Optional.empty()))).all().get();
        }
    }

    /** That number of records, to the partitions in turn, each with a value of its own. */
    private void produce(String topic, int count) throws Exception {
        try (KafkaProducer<String, String> producer = producer(Map.of())) {
            int partitions = producer.partitionsFor(topic).size();
            for (int number = 0; number < count; number++) {
                producer.send(new ProducerRecord<>(topic, number % partitions, null, "record-" + number));
            }
            producer.flush();
        }
    }

    private KafkaProducer<String, String> producer(Map<String, Object> more) {
        return new KafkaProducer<>(settings(more), new StringSerializer(), new StringSerializer());
    }

    private KafkaConsumer<String, String> consumer(Map<String, Object> more) {
        Properties settings = settings(more);
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        settings.put("heartbeat.interval.ms", "500");
        settings.put("metadata.max.age.ms", "1000");
        if (settings.containsKey("group.protocol")) {
            settings.remove("heartbeat.interval.ms");
        }
        return new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
    }

    private Properties settings(Map<String, Object> more) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", address);
        settings.putAll(more);
        return settings;
    }

    static void await(String what, BooleanSupplier condition) {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(DEADLINE_SECONDS);
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException("in vain: " + what);
            }
        }
    }
}
