package barnabas.probe;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;

import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * Lets a test written in another language drive Kafka's Java clients and tools.
 *
 * <p>Reads one JSON command a line on standard input and writes one JSON answer a line on standard output:
 * {@code {"id": 1, "target": "a", "op": "poll", ...}} is answered by {@code {"id": 1, "result": ...}} or
 * {@code {"id": 1, "error": {"type": ..., "message": ...}}}. Commands for one target run in order on a thread of its
 * own, since a share consumer belongs to one thread; commands for several targets run side by side.
 */
public final class ShareProbe {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final PrintStream answers;
    private final Map<String, ExecutorService> threads = new ConcurrentHashMap<>();
    private final Map<String, ProbeConsumer> consumers = new ConcurrentHashMap<>();

    private ShareProbe(PrintStream answers) {
        this.answers = answers;
    }

    public static void main(String[] args) throws Exception {
        PrintStream answers = new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);
        ToolRun.captureStandardStreams();
        ShareProbe probe = new ShareProbe(answers);
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            probe.accept(JSON.readTree(line));
        }
        Runtime.getRuntime().halt(0);
    }

    private void accept(JsonNode command) {
        String target = command.get("target").asText();
        threads.computeIfAbsent(target, name -> Executors.newSingleThreadExecutor())
            .execute(() -> answer(command, target));
    }

    private void answer(JsonNode command, String target) {
        ObjectNode answer = JSON.createObjectNode();
        answer.set("id", command.get("id"));
        try {
            answer.set("result", JSON.valueToTree(run(command, target)));
        } catch (Throwable failure) {
            answer.putObject("error")
                .put("type", failure.getClass().getSimpleName())
                .put("message", String.valueOf(failure.getMessage()));
        }
        synchronized (answers) {
            answers.println(answer);
        }
    }

    private Object run(JsonNode command, String target) throws Exception {
        String op = command.get("op").asText();
        switch (op) {
            case "tool":
                return ToolRun.run(command);
            case "produce":
                return ProbeRequests.produce(command);
            case "group_offsets":
                return ProbeRequests.groupOffsets(command);
            case "open":
                consumers.put(target, new ProbeConsumer(command));
                return null;
            default:
                return consumers.get(target).run(op, command);
        }
    }
}
