package orders;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * A worker of a share group that writes an invoice for each order. Any number of workers share the orders.
 *
 * <p>An order is the text "ID CENTS". Any other record is rejected. If the payment service is down, the order is
 * released, and delivered again. BillingTest tests all of that with a real broker. SIGTERM and Ctrl-C end the
 * program after the orders of the last poll.
 */
public final class Billing implements Runnable {
    /** Charges a customer. Charging an order twice must have no effect. */
    public interface Payments {
        void charge(String orderId, long cents) throws PaymentServiceDown;
    }

    /** The payment service does not answer; it may do so later. */
    public static final class PaymentServiceDown extends Exception {
        private static final long serialVersionUID = 1;
    }

    private static final Duration POLL = Duration.ofSeconds(10);

    private final KafkaShareConsumer<String, String> consumer;
    private final KafkaProducer<String, String> producer;
    private final String invoices;
    private final Payments payments;

    public Billing(String bootstrap, String orders, String invoices, String group, Payments payments) {
        this.invoices = invoices;
        this.payments = payments;
        producer = new KafkaProducer<>(
            Map.of("bootstrap.servers", bootstrap), new StringSerializer(), new StringSerializer());
        consumer = new KafkaShareConsumer<>(
            Map.of("bootstrap.servers", bootstrap, "group.id", group, "share.acknowledgement.mode", "explicit"),
            new StringDeserializer(), new StringDeserializer());
        consumer.subscribe(List.of(orders));
    }

    /** A worker on the topics `orders` and `invoices`; the argument is the address of the broker. */
    public static void main(String[] arguments) {
        Billing billing = new Billing(arguments[0], "orders", "invoices", "billing", Billing::print);
        Thread worker = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            billing.stop();
            try {
                worker.join();
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
            }
        }));
        billing.run();
    }

    private static void print(String orderId, long cents) {
        System.out.println("charged " + cents + " cents for order " + orderId);
    }

    /** Bills orders until {@link #stop}. */
    @Override
    public void run() {
        try (producer; consumer) {
            while (true) {
                for (ConsumerRecord<String, String> record : consumer.poll(POLL)) {
                    consumer.acknowledge(record, bill(record));
                }
                consumer.commitSync();
            }
        } catch (WakeupException stopped) {
            // `stop` was called.
        }
    }

    /** Ends `run`; any thread may call it. */
    public void stop() {
        consumer.wakeup();
    }

    private AcknowledgeType bill(ConsumerRecord<String, String> record) {
        String[] order = record.value() == null ? new String[0] : record.value().split(" ");
        if (order.length != 2 || !order[1].matches("[1-9][0-9]{0,11}")) {
            return AcknowledgeType.REJECT;
        }
        try {
            payments.charge(order[0], Long.parseLong(order[1]));
            producer.send(new ProducerRecord<>(invoices, order[0], "invoice of " + order[1])).get();
            return AcknowledgeType.ACCEPT;
        } catch (PaymentServiceDown | ExecutionException temporary) {
            return AcknowledgeType.RELEASE;
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            return AcknowledgeType.RELEASE;
        }
    }
}
