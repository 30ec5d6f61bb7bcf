import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Ships orders: reads the topic `orders` as a member of the share group `workers`, and writes to the topic `shipments`.
 *
 * <p>An order is accepted when its shipment is written. So an order that was in work when a program failed is delivered
 * again, and may have two shipments.
 */
public final class OrderConsumer {
    private static final String GROUP = "workers";

    public static void main(String[] arguments) throws ExecutionException, InterruptedException {
        beginWithFirstOrder();
        try (var consumer =
                        new KafkaShareConsumer<>(consumerProperties(), new StringDeserializer(), new StringDeserializer());
                var producer = new KafkaProducer<>(bootstrap(), new StringSerializer(), new StringSerializer())) {
            consumer.subscribe(List.of("orders"));
            while (true) {
                ConsumerRecords<String, String> orders = consumer.poll(Duration.ofSeconds(1));
                List<Future<RecordMetadata>> shipments = ship(orders, producer);
                int index = 0;
                for (var order : orders) {
                    consumer.acknowledge(order, outcome(shipments.get(index++)));
                }
                consumer.commitSync().forEach((partition, error) ->
                        error.ifPresent(reason -> System.out.println("not acknowledged: " + partition + " " + reason)));
            }
        }
    }

    /** A new group begins at the end of its topics unless its setting says otherwise. */
    private static void beginWithFirstOrder() throws ExecutionException, InterruptedException {
        try (var admin = Admin.create(bootstrap())) {
            var group = new ConfigResource(ConfigResource.Type.GROUP, GROUP);
            var earliest = new ConfigEntry("share.auto.offset.reset", "earliest");
            var change = new AlterConfigOp(earliest, AlterConfigOp.OpType.SET);
            admin.incrementalAlterConfigs(Map.of(group, List.of(change))).all().get();
        }
    }

    private static List<Future<RecordMetadata>> ship(
            ConsumerRecords<String, String> orders, Producer<String, String> producer) {
        var shipments = new ArrayList<Future<RecordMetadata>>();
        for (var order : orders) {
            print(order);
            shipments.add(producer.send(new ProducerRecord<>("shipments", "java", order.value())));
        }
        producer.flush();
        return shipments;
    }

    private static AcknowledgeType outcome(Future<RecordMetadata> shipment) throws InterruptedException {
        try {
            shipment.get();
            return AcknowledgeType.ACCEPT;
        } catch (ExecutionException error) {
            System.out.println("not shipped: " + error.getCause());
            return AcknowledgeType.RELEASE;
        }
    }

    private static void print(ConsumerRecord<String, String> order) {
        System.out.printf(
                "%d-%d %s (delivery %d)%n",
                order.partition(), order.offset(), order.value(), order.deliveryCount().orElseThrow());
    }

    private static Properties consumerProperties() {
        var properties = bootstrap();
        properties.put("group.id", GROUP);
        properties.put("share.acknowledgement.mode", "explicit");
        return properties;
    }

    private static Properties bootstrap() {
        var properties = new Properties();
        properties.put("bootstrap.servers", System.getenv("BOOTSTRAP_SERVERS"));
        return properties;
    }
}
