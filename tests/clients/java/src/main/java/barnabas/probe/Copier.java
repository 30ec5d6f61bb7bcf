package barnabas.probe;

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Copies records from one topic to another, each poll's in a transaction with the group's offsets, until it is
 * killed. Prints the number of committed records after each transaction, and aborts every fourth one.
 *
 * <p>Arguments: bootstrap, topic to read, topic to write, group, transactional id.
 */
public final class Copier {
    private static final int RECORDS_PER_POLL = 10;
    private static final int ABORT_EVERY = 4;

    private Copier() {
    }

    public static void main(String[] arguments) {
        String from = arguments[1];
        String to = arguments[2];
        try (KafkaConsumer<String, String> consumer = consumer(arguments[0], arguments[3]);
                KafkaProducer<String, String> producer = producer(arguments[0], arguments[4])) {
            producer.initTransactions();
            consumer.subscribe(List.of(from));
            int committed = 0;
            for (int turn = 1; ; turn++) {
                ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(200));
                if (records.isEmpty()) {
                    continue;
                }
                Map<TopicPartition, OffsetAndMetadata> before = positions(consumer, records);
                producer.beginTransaction();
                for (ConsumerRecord<String, String> record : records) {
                    producer.send(new ProducerRecord<>(to, record.partition(), null, record.value()));
                }
                if (turn % ABORT_EVERY == 0) {
                    producer.abortTransaction();
                    before.forEach(consumer::seek);
                    continue;
                }
                producer.sendOffsetsToTransaction(next(records), consumer.groupMetadata());
                producer.commitTransaction();
                committed += records.count();
                System.out.println(committed);
            }
        } catch (KafkaException error) {
            System.err.println(error);
            System.exit(1);
        }
    }

    private static Map<TopicPartition, OffsetAndMetadata> positions(
            KafkaConsumer<String, String> consumer, ConsumerRecords<String, String> records) {
        Map<TopicPartition, OffsetAndMetadata> found = new HashMap<>();
        for (TopicPartition partition : records.partitions()) {
            found.put(partition, new OffsetAndMetadata(records.records(partition).get(0).offset()));
        }
        return found;
    }

    private static Map<TopicPartition, OffsetAndMetadata> next(ConsumerRecords<String, String> records) {
        Map<TopicPartition, OffsetAndMetadata> found = new HashMap<>();
        for (TopicPartition partition : records.partitions()) {
            List<ConsumerRecord<String, String>> read = records.records(partition);
            found.put(partition, new OffsetAndMetadata(read.get(read.size() - 1).offset() + 1));
        }
        return found;
    }

    private static KafkaConsumer<String, String> consumer(String bootstrap, String group) {
        Properties config = new Properties();
        config.put("bootstrap.servers", bootstrap);
        config.put("group.id", group);
        config.put("auto.offset.reset", "earliest");
        config.put("enable.auto.commit", "false");
        config.put("isolation.level", "read_committed");
        config.put("session.timeout.ms", "6000");
        config.put("heartbeat.interval.ms", "300");
        config.put("max.poll.records", String.valueOf(RECORDS_PER_POLL));
        return new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer());
    }

    private static KafkaProducer<String, String> producer(String bootstrap, String transactionalId) {
        Properties config = new Properties();
        config.put("bootstrap.servers", bootstrap);
        config.put("transactional.id", transactionalId);
        config.put("linger.ms", "0");
        return new KafkaProducer<>(config, new StringSerializer(), new StringSerializer());
    }
}
