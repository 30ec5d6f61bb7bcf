import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;

/** The share group's part of {@link ClientRun}, for clients that know share groups. */
public final class ShareRun {
    private ShareRun() {
    }

    /** Accepts every record, except one that it releases first. */
    public static String run(String address, String prefix) throws Exception {
        String topic = prefix + "-share";
        Properties settings = new Properties();
        settings.put("bootstrap.servers", address);
        try (Admin admin = Admin.create(settings)) {
            admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1))).all().get();
            ConfigResource group = new ConfigResource(ConfigResource.Type.GROUP, topic);
            ConfigEntry earliest = new ConfigEntry("share.auto.offset.reset", "earliest");
            admin.incrementalAlterConfigs(Map.of(group, List.of(new AlterConfigOp(earliest, AlterConfigOp.OpType.SET))))
                .all().get();
        }
        try (KafkaProducer<String, String> producer =
                 new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            for (int number = 0; number < 10; number++) {
                producer.send(new ProducerRecord<>(topic, "record-" + number));
            }
        }
        settings.put("group.id", topic);
        settings.put("share.acknowledgement.mode", "explicit");
        Set<String> accepted = new TreeSet<>();
        Set<String> released = new TreeSet<>();
        try (KafkaShareConsumer<String, String> consumer =
                 new KafkaShareConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(topic));
            ClientRun.await("records are accepted", () -> {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(100))) {
                    boolean release = record.value().equals("record-7") && released.add(record.value());
                    consumer.acknowledge(record, release ? AcknowledgeType.RELEASE : AcknowledgeType.ACCEPT);
                    if (!release) {
                        accepted.add(record.value() + "/" + record.deliveryCount().map(Short::intValue).orElse(0));
                    }
                }
                consumer.commitSync();
                return accepted.size() == 10;
            });
        }
        return "{\"part\": \"share\", \"accepted\": " + accepted.size() + ", \"again\": "
            + accepted.contains("record-7/2") + "}";
    }
}
