package barnabas.probe;

import com.fasterxml.jackson.databind.JsonNode;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListShareGroupOffsetsSpec;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.StringSerializer;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;

/** Commands without a consumer: producing, and requesting a share group's offsets. */
final class ProbeRequests {
    private ProbeRequests() {
    }

    static Properties properties(JsonNode config) {
        Properties properties = new Properties();
        config.properties().forEach(entry -> properties.setProperty(entry.getKey(), entry.getValue().asText()));
        return properties;
    }

    static List<String> strings(JsonNode array) {
        List<String> strings = new ArrayList<>();
        array.forEach(element -> strings.add(element.asText()));
        return strings;
    }

    /** Produces the values to a topic, waits for all of them and returns their offsets. */
    static List<Long> produce(JsonNode command) throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (KafkaProducer<String, String> producer =
                 new KafkaProducer<>(properties(command.get("config")), new StringSerializer(), new StringSerializer())) {
            for (JsonNode value : command.get("values")) {
                sent.add(producer.send(new ProducerRecord<>(command.get("topic").asText(), value.asText())));
            }
        }
        List<Long> offsets = new ArrayList<>();
        for (Future<RecordMetadata> record : sent) {
            offsets.add(record.get().offset());
        }
        return offsets;
    }

    /** Start offset and lag of every partition with state of the group. */
    static List<Map<String, Object>> groupOffsets(JsonNode command) throws Exception {
        String group = command.get("group").asText();
        List<Map<String, Object>> offsets = new ArrayList<>();
        try (Admin admin = Admin.create(properties(command.get("config")))) {
            admin.listShareGroupOffsets(Map.of(group, new ListShareGroupOffsetsSpec()))
                .partitionsToOffsetInfo(group).get().forEach((partition, info) -> {
                    if (info != null) {
                        Map<String, Object> fields = new HashMap<>();
                        fields.put("topic", partition.topic());
                        fields.put("partition", partition.partition());
                        fields.put("start_offset", info.startOffset());
                        fields.put("lag", info.lag().orElse(null));
                        offsets.add(fields);
                    }
                });
        }
        return offsets;
    }
}
