package orders;

import static org.junit.jupiter.api.Assertions.assertEquals;

import barnabas.testing.TopicRecord;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.kafka.core.KafkaTemplate;

/** The application's own client sends to the broker of the base class. */
final class SendingTest extends OrdersTest {
    @Autowired
    private KafkaTemplate<String, String> template;

    @Test
    void aRecordOfTheApplicationIsInTheTopic() throws Exception {
        broker.createTopic("orders", 1, Map.of());
        template.send("orders", "order 1").get(30, TimeUnit.SECONDS);
        List<TopicRecord> records = broker.records("orders");
        assertEquals(1, records.size());
        assertEquals("order 1", records.get(0).valueText());
    }
}
