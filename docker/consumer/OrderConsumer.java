import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

/** Consumes the topic `orders` as a member of the share group `workers`, one record at a time. */
public final class OrderConsumer {
    public static void main(String[] arguments) {
        var properties = new Properties();
        properties.put("bootstrap.servers", System.getenv("BOOTSTRAP_SERVERS"));
        properties.put("group.id", "workers");
        properties.put("share.acknowledgement.mode", "explicit");
        try (var consumer =
                new KafkaShareConsumer<>(properties, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of("orders"));
            while (true) {
                for (var record : consumer.poll(Duration.ofSeconds(1))) {
                    System.out.printf(
                            "%d-%d %s (delivery %d)%n",
                            record.partition(), record.offset(), record.value(), record.deliveryCount().orElseThrow());
                    consumer.acknowledge(record, AcknowledgeType.ACCEPT);
                }
                consumer.commitSync();
            }
        }
    }
}
