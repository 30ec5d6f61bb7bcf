package orders;

import static org.junit.jupiter.api.Assertions.assertEquals;

import barnabas.testing.BarnabasExtension;
import barnabas.testing.Broker;
import barnabas.testing.Fault;
import barnabas.testing.Group;
import barnabas.testing.RecordState;
import barnabas.testing.Topic;
import barnabas.testing.TopicRecord;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** The tests of the billing worker, with a real broker. */
@ExtendWith(BarnabasExtension.class)
final class BillingTest {
    private static final Duration LOCK = Duration.ofSeconds(30);
    private static final Duration PATIENCE = Duration.ofMinutes(10);
    private static final Billing.Payments PAYMENTS = (id, cents) -> {};

    private final List<Runnable> ends = new ArrayList<>();
    private Broker broker;
    private String orders;
    private String invoices;
    private String group;

    @BeforeEach
    void open(Broker broker, @Topic String orders, @Topic String invoices, @Group String group) {
        this.broker = broker;
        this.orders = orders;
        this.invoices = invoices;
        this.group = group;
    }

    @AfterEach
    void end() {
        ends.forEach(Runnable::run);
    }

    @Test
    void eachOrderGetsAnInvoice() {
        place("a 999", "b 999", "c 999");
        work(PAYMENTS);
        work(PAYMENTS);
        await(() -> invoiced().equals(List.of("a", "b", "c")));
    }

    @Test
    void aRecordThatIsNoOrderIsRejected() {
        place("nonsense", "a 999");
        work(PAYMENTS);
        await(() -> invoiced().equals(List.of("a")));
        await(() -> states().equals(List.of("passed", "passed")));
    }

    @Test
    void anOrderIsBilledOnceThePaymentServiceIsBack() {
        AtomicInteger tries = new AtomicInteger();
        place("a 999");
        work((id, cents) -> {
            if (tries.incrementAndGet() < 3) {
                throw new Billing.PaymentServiceDown();
            }
        });
        await(() -> invoiced().equals(List.of("a")));
        assertEquals(3, tries.get());
    }

    @Test
    void theOrderOfAWorkerThatHangsIsBilledByAnother() {
        place("a 999");
        var hanging = new KafkaShareConsumer<>(
            Map.of("bootstrap.servers", broker.bootstrapServers(), "group.id", group),
            new StringDeserializer(), new StringDeserializer());
        ends.add(hanging::close);
        hanging.subscribe(List.of(orders));
        while (hanging.poll(Duration.ofSeconds(1)).isEmpty()) {
            // The group gives it the order soon.
        }
        broker.advance(LOCK.plusSeconds(1));
        assertEquals(List.of("available"), states());
        work(PAYMENTS);
        await(() -> invoiced().equals(List.of("a")));
    }

    @Test
    void anOrderThatAlwaysFailsIsGivenUpAfterFiveDeliveries() throws InterruptedException {
        CountDownLatch deliveries = new CountDownLatch(5);
        place("bad 999");
        work((id, cents) -> {
            if (id.equals("bad")) {
                deliveries.countDown();
                throw new Billing.PaymentServiceDown();
            }
        });
        deliveries.await();
        await(() -> states().equals(List.of("passed")));
        place("a 999");
        await(() -> invoiced().equals(List.of("a")));
    }

    @Test
    void aLostAnswerMakesNoSecondInvoice() {
        long fault = broker.plan(Fault.cut().api("Produce").topic(invoices).times(1));
        place("a 999");
        work(PAYMENTS);
        await(() -> invoiced().equals(List.of("a")));
        assertEquals(1, broker.hits(fault));
    }

    private void place(String... values) {
        try (var producer = new KafkaProducer<>(
            Map.of("bootstrap.servers", broker.bootstrapServers()),
            new StringSerializer(), new StringSerializer())) {
            for (String value : values) {
                producer.send(new ProducerRecord<>(orders, value));
            }
        }
    }

    /** A worker until the end of the test. */
    private void work(Billing.Payments payments) {
        Billing billing = new Billing(broker.bootstrapServers(), orders, invoices, group, payments);
        Thread thread = new Thread(billing);
        thread.start();
        ends.add(() -> {
            billing.stop();
            join(thread);
        });
    }

    private static void join(Thread thread) {
        try {
            thread.join(PATIENCE.toMillis());
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }

    /** The ids of the orders with an invoice, sorted. */
    private List<String> invoiced() {
        return broker.records(invoices).stream().map(TopicRecord::keyText).sorted().toList();
    }

    private List<String> states() {
        return broker.shareState(group).stream().map(RecordState::state).toList();
    }

    /** Looks until the condition holds, because workers write and acknowledge in the background. */
    private static void await(BooleanSupplier condition) {
        long deadline = System.nanoTime() + PATIENCE.toNanos();
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() > deadline) {
                throw new AssertionError("The condition did not hold within " + PATIENCE);
            }
            Thread.onSpinWait();
        }
    }
}
