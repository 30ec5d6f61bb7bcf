package barnabas.testing;

/** A committed record of a topic. Key and value may be null. */
public record TopicRecord(int partition, long offset, long timestampMs, byte[] key, byte[] value) {
    /** The key as text in UTF-8. */
    public String keyText() {
        return text(key);
    }

    /** The value as text in UTF-8. */
    public String valueText() {
        return text(value);
    }

    private static String text(byte[] data) {
        return data == null ? null : new String(data, java.nio.charset.StandardCharsets.UTF_8);
    }
}
