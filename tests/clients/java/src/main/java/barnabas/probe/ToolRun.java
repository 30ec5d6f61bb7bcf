package barnabas.probe;

import com.fasterxml.jackson.databind.JsonNode;

import org.apache.kafka.common.utils.Exit;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;

/**
 * Runs the main method of one of Kafka's command line tools inside this process and captures its output.
 *
 * <p>Works for tools that end through Kafka's {@link Exit}; one that calls {@link System#exit} needs a process.
 */
final class ToolRun {
    private static final SwitchableStream OUTPUT = new SwitchableStream();
    private static final SwitchableStream ERRORS = new SwitchableStream();

    /** Work of the tool at the end of its process, such as closing its producer. */
    private static final List<Runnable> HOOKS = new CopyOnWriteArrayList<>();

    /** The code of the first exit; a tool that treats ToolExit as a failure exits once more. */
    private static Integer exitCode;

    private ToolRun() {
    }

    /** Thrown in place of ending the process. */
    private static final class ToolExit extends Error {
        private static final long serialVersionUID = 1L;

        ToolExit() {
            super("the tool has ended", null, false, false);
        }
    }

    /** Stays in place for good, because Scala's Console keeps the stream that it first saw. */
    private static final class SwitchableStream extends OutputStream {
        private volatile OutputStream destination = new FileOutputStream(FileDescriptor.err);

        @Override
        public void write(int value) throws java.io.IOException {
            destination.write(value);
        }

        @Override
        public void write(byte[] bytes, int offset, int length) throws java.io.IOException {
            destination.write(bytes, offset, length);
        }
    }

    static void captureStandardStreams() {
        System.setOut(new PrintStream(OUTPUT, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(ERRORS, true, StandardCharsets.UTF_8));
        Exit.setExitProcedure((code, message) -> {
            exitCode = exitCode == null ? code : exitCode;
            throw new ToolExit();
        });
        Exit.setShutdownHookAdder((name, hook) -> HOOKS.add(hook));
    }

    /** One tool at a time: the standard streams are the process's. */
    static synchronized Map<String, Object> run(JsonNode command) throws Exception {
        ByteArrayOutputStream output = new ByteArrayOutputStream();
        ByteArrayOutputStream errors = new ByteArrayOutputStream();
        OutputStream before = OUTPUT.destination;
        exitCode = null;
        HOOKS.clear();
        System.setIn(new ByteArrayInputStream(input(command).getBytes(StandardCharsets.UTF_8)));
        OUTPUT.destination = output;
        ERRORS.destination = errors;
        try {
            invoke(command.get("main").asText(), command.get("arguments"));
            HOOKS.forEach(Runnable::run);
            return Map.of(
                "exit_code", exitCode == null ? 0 : exitCode,
                "output", output.toString(StandardCharsets.UTF_8),
                "errors", errors.toString(StandardCharsets.UTF_8));
        } finally {
            OUTPUT.destination = before;
            ERRORS.destination = before;
        }
    }

    /** The input of the tool; commands of the probe arrive by the stream that it opened before. */
    private static String input(JsonNode command) {
        return command.has("input") ? command.get("input").asText() : "";
    }

    private static void invoke(String mainClass, JsonNode arguments) throws Exception {
        String[] args = ProbeRequests.strings(arguments).toArray(String[]::new);
        try {
            Class.forName(mainClass).getMethod("main", String[].class).invoke(null, (Object) args);
        } catch (InvocationTargetException invocation) {
            if (!(invocation.getCause() instanceof ToolExit)) {
                // As at the end of a process of its own.
                invocation.getCause().printStackTrace();
                exitCode = 1;
            }
        }
    }
}
