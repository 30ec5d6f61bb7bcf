package barnabas.testing;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/**
 * A real broker in a process of its own, with a clock, faults and state that a test controls.
 *
 * <p>The system property {@code barnabas.command} names the command, by default {@code barnabas}. The broker ends
 * with {@link #close}, and with this JVM in every case, because it holds the other end of the broker's input.
 */
public final class Broker implements AutoCloseable {
    /** As in the Python kit; docs/testing.md has the reasons. */
    private static final Map<String, String> SETTINGS = Map.of(
        "share.state.store", "topic",
        "log.flush", "never",
        "connections.max.idle.ms", "-1",
        "offsets.topic.num.partitions", "1",
        "transaction.state.log.num.partitions", "1",
        "share.coordinator.state.topic.num.partitions", "1",
        "group.share.assignment.interval.ms", "0");

    private static final String COMMAND_PROPERTY = "barnabas.command";
    private static final long STOP_SECONDS_MAX = 30;

    private final Process process;
    private final Path directory;
    private final String bootstrapServers;
    private final Control control;

    private Broker(Process process, Path directory, String bootstrapServers, Control control) {
        this.process = process;
        this.directory = directory;
        this.bootstrapServers = bootstrapServers;
        this.control = control;
    }

    /** Starts a broker with the settings of the kit. */
    public static Broker start() {
        return start(Map.of());
    }

    /** Starts a broker with further settings. */
    public static Broker start(Map<String, String> settings) {
        try {
            Path directory = Files.createTempDirectory("barnabas-");
            String token = UUID.randomUUID().toString();
            Process process = launch(directory, token, settings);
            BufferedReader output = process.inputReader();
            String line = output.readLine();
            if (line == null) {
                throw new IllegalStateException("The broker did not start: " + Files.readString(log(directory)));
            }
            JsonNode ready = new ObjectMapper().readTree(line);
            Control control = new Control(ready.get("control").asText(), token);
            return new Broker(process, directory, ready.get("bootstrap_servers").asText(), control);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private static Process launch(Path directory, String token, Map<String, String> settings)
        throws IOException {
        Map<String, String> all = new LinkedHashMap<>(SETTINGS);
        all.putAll(settings);
        List<String> command = new ArrayList<>(List.of(
            System.getProperty(COMMAND_PROPERTY, "barnabas"),
            "testing", "--listen=127.0.0.1:0", "--data-dir=" + directory.resolve("data")));
        all.forEach((name, value) -> command.add("--set=" + name + "=" + value));
        ProcessBuilder builder = new ProcessBuilder(command).redirectError(log(directory).toFile());
        builder.environment().keySet().removeIf(
            name -> name.startsWith("BARNABAS_") || name.startsWith("KAFKA_"));
        builder.environment().put("BARNABAS_TESTING_TOKEN", token);
        try {
            return builder.start();
        } catch (IOException error) {
            throw new IllegalStateException(
                "The command " + command.get(0) + " cannot be started. Name it by its absolute path in the system "
                    + "property " + COMMAND_PROPERTY + ", such as -D" + COMMAND_PROPERTY
                    + "=$PWD/.venv/bin/barnabas", error);
        }
    }

    private static Path log(Path directory) {
        return directory.resolve("broker.log");
    }

    /** The address for clients, as host:port. */
    public String bootstrapServers() {
        return bootstrapServers;
    }

    /** Advances the clock, and returns when all work that became due is written. Connected members stay. */
    public void advance(Duration time) {
        control.post("clock/advance", Map.of("ms", time.toMillis()));
    }

    /** Creates a topic. */
    public void createTopic(String name, int partitions, Map<String, String> settings) {
        control.post("topics", Map.of("name", name, "partitions", partitions, "configs", settings));
    }

    /** Changes settings of a group, which need not exist. */
    public void configureGroup(String group, Map<String, String> settings) {
        control.post("groups/" + Control.quoted(group) + "/settings", Map.of("configs", settings));
    }

    /** Plans a fault, and returns its number. */
    public long plan(Fault fault) {
        return control.post("faults", fault.fields()).get("id").asLong();
    }

    /** The requests that have met a fault. */
    public int hits(long faultId) {
        for (JsonNode fault : control.get("faults").get("faults")) {
            if (fault.get("id").asLong() == faultId) {
                return fault.get("hits").asInt();
            }
        }
        return 0;
    }

    /** Ends all faults. */
    public void clearFaults() {
        control.delete("faults");
    }

    /** Removes all topics and groups, and disconnects all clients. */
    public void reset() {
        control.post("reset", Map.of());
    }

    /** All committed records of a topic, by partition and offset. */
    public List<TopicRecord> records(String topic) {
        List<TopicRecord> records = new ArrayList<>();
        int partitions = 1;
        for (int partition = 0; partition < partitions; partition++) {
            JsonNode next = null;
            do {
                long offset = next == null ? 0 : next.asLong();
                JsonNode page = control.get(
                    "records/" + Control.quoted(topic) + "?partition=" + partition + "&offset=" + offset);
                partitions = page.get("partitions").asInt();
                for (JsonNode record : page.get("records")) {
                    records.add(new TopicRecord(
                        partition, record.get("offset").asLong(), record.get("timestamp_ms").asLong(),
                        bytes(record.get("key")), bytes(record.get("value"))));
                }
                next = page.get("next_offset");
            } while (!next.isNull());
        }
        return records;
    }

    /** The state of each record in the partitions that a share group reads. */
    public List<RecordState> shareState(String group) {
        List<RecordState> states = new ArrayList<>();
        for (JsonNode range : control.get("share-state/" + Control.quoted(group)).get("ranges")) {
            long last = range.get("last_offset").asLong();
            for (long offset = range.get("first_offset").asLong(); offset <= last; offset++) {
                states.add(new RecordState(
                    range.get("topic").asText(), range.get("partition").asInt(), offset,
                    range.get("state").asText(), range.get("deliveries").asInt(),
                    range.get("member").asText(null)));
            }
        }
        return states;
    }

    private static byte[] bytes(JsonNode text) {
        return text.isNull() ? null : Base64.getDecoder().decode(text.asText());
    }

    /** Ends the broker, and removes its data. */
    @Override
    public void close() {
        try {
            process.getOutputStream().close();
            if (!process.waitFor(STOP_SECONDS_MAX, TimeUnit.SECONDS)) {
                process.destroyForcibly();
            }
            try (Stream<Path> paths = Files.walk(directory)) {
                paths.sorted(Comparator.reverseOrder()).forEach(path -> path.toFile().delete());
            }
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        } catch (InterruptedException error) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
        }
    }
}
