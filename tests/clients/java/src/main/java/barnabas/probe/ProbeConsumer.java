package barnabas.probe;

import com.fasterxml.jackson.databind.JsonNode;

import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.StringDeserializer;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/** One {@link KafkaShareConsumer} with string keys and values, driven by commands; used by one thread only. */
final class ProbeConsumer {
    private final KafkaShareConsumer<String, String> consumer;
    private final List<Map<String, Object>> outcomes = new ArrayList<>();

    ProbeConsumer(JsonNode command) {
        consumer = new KafkaShareConsumer<>(
            ProbeRequests.properties(command.get("config")), new StringDeserializer(), new StringDeserializer());
        consumer.setAcknowledgementCommitCallback(this::noteOutcome);
        consumer.subscribe(ProbeRequests.strings(command.get("topics")));
    }

    Object run(String op, JsonNode command) {
        switch (op) {
            case "subscribe":
                consumer.subscribe(ProbeRequests.strings(command.get("topics")));
                return null;
            case "poll":
                return poll(timeout(command));
            case "acknowledge":
                acknowledge(command);
                return null;
            case "commit_sync":
                return commitSync(timeout(command));
            case "commit_async":
                consumer.commitAsync();
                return null;
            case "outcomes":
                return drainOutcomes();
            case "lock_timeout_ms":
                return consumer.acquisitionLockTimeoutMs().orElse(null);
            case "close":
                consumer.close(timeout(command));
                return drainOutcomes();
            default:
                throw new IllegalArgumentException("unknown operation: " + op);
        }
    }

    private static Duration timeout(JsonNode command) {
        return Duration.ofMillis(command.get("timeout_ms").asLong());
    }

    private List<Map<String, Object>> poll(Duration timeout) {
        List<Map<String, Object>> records = new ArrayList<>();
        for (ConsumerRecord<String, String> record : consumer.poll(timeout)) {
            Map<String, Object> fields = new HashMap<>();
            fields.put("topic", record.topic());
            fields.put("partition", record.partition());
            fields.put("offset", record.offset());
            fields.put("key", record.key());
            fields.put("value", record.value());
            fields.put("headers", headers(record));
            fields.put("delivery_count", record.deliveryCount().map(Short::intValue).orElse(0));
            records.add(fields);
        }
        return records;
    }

    private static Map<String, String> headers(ConsumerRecord<String, String> record) {
        Map<String, String> headers = new HashMap<>();
        for (Header header : record.headers()) {
            headers.put(header.key(), new String(header.value(), StandardCharsets.UTF_8));
        }
        return headers;
    }

    private void acknowledge(JsonNode command) {
        String topic = command.get("topic").asText();
        int partition = command.get("partition").asInt();
        AcknowledgeType type = AcknowledgeType.valueOf(command.get("type").asText());
        for (JsonNode offset : command.get("offsets")) {
            acknowledgeOffset(topic, partition, offset.asLong(), type);
        }
    }

    /** By coordinates, so that a test does not have to keep the record. */
    private void acknowledgeOffset(String topic, int partition, long offset, AcknowledgeType type) {
        consumer.acknowledge(new ConsumerRecord<>(topic, partition, offset, null, null), type);
    }

    private List<Map<String, Object>> commitSync(Duration timeout) {
        List<Map<String, Object>> results = new ArrayList<>();
        for (Map.Entry<TopicIdPartition, Optional<KafkaException>> entry : consumer.commitSync(timeout).entrySet()) {
            results.add(partitionResult(entry.getKey(), entry.getValue().orElse(null)));
        }
        return results;
    }

    private void noteOutcome(Map<TopicIdPartition, Set<Long>> offsets, Exception failure) {
        for (Map.Entry<TopicIdPartition, Set<Long>> entry : offsets.entrySet()) {
            Map<String, Object> outcome = partitionResult(entry.getKey(), failure);
            outcome.put("offsets", entry.getValue());
            outcomes.add(outcome);
        }
    }

    private static Map<String, Object> partitionResult(TopicIdPartition partition, Exception failure) {
        Map<String, Object> result = new HashMap<>();
        result.put("topic", partition.topic());
        result.put("partition", partition.partition());
        result.put("error", failure == null ? null : failure.getClass().getSimpleName());
        return result;
    }

    private List<Map<String, Object>> drainOutcomes() {
        List<Map<String, Object>> drained = List.copyOf(outcomes);
        outcomes.clear();
        return drained;
    }
}
