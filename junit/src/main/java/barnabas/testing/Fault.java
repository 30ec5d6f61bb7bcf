package barnabas.testing;

import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * A fault to plan with {@link Broker#plan}. Without an API, a group and a topic it meets every request; without
 * {@link #times}, any number of them. APIs and errors have Kafka's names, such as ShareFetch and REQUEST_TIMED_OUT.
 */
public final class Fault {
    private final Map<String, Object> fields = new LinkedHashMap<>();

    private Fault(String kind) {
        fields.put("kind", kind);
    }

    /** The request is not carried out, and its connection is closed. */
    public static Fault refuse() {
        return new Fault("refuse");
    }

    /** The request is carried out, but its connection is closed instead of an answer. */
    public static Fault cut() {
        return new Fault("cut");
    }

    /** The request is carried out after this time of the broker's clock. */
    public static Fault delay(Duration time) {
        return new Fault("delay").with("delay_ms", time.toMillis());
    }

    /** The request is not carried out, and answered with this error. */
    public static Fault error(String error) {
        return new Fault("error").with("error", error);
    }

    public Fault api(String api) {
        return with("api", api);
    }

    public Fault group(String group) {
        return with("group", group);
    }

    public Fault topic(String topic) {
        return with("topic", topic);
    }

    /** The fault ends after this number of requests. */
    public Fault times(int times) {
        return with("times", times);
    }

    Map<String, Object> fields() {
        return fields;
    }

    private Fault with(String name, Object value) {
        fields.put(name, value);
        return this;
    }
}
