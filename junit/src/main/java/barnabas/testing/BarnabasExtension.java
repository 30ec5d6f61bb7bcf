package barnabas.testing;

import java.util.Map;
import java.util.UUID;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ExtensionContext.Namespace;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;

/**
 * Gives tests a broker, and a new topic and a new share group for each test.
 *
 * <p>A parameter of type {@link Broker} gets the broker of this JVM, which starts with its first use. A parameter
 * of type String with {@link Topic} or {@link Group} gets a new name; the topic exists, and the group begins at
 * its earliest record. Faults end with each test.
 */
public final class BarnabasExtension implements ParameterResolver, AfterEachCallback {
    private static final Namespace NAMESPACE = Namespace.create(BarnabasExtension.class);
    private static final int TEST_NAME_LENGTH_MAX = 60;
    private static final int UNIQUE_LENGTH = 8;

    @Override
    public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
        Class<?> type = parameter.getParameter().getType();
        boolean isName = parameter.isAnnotated(Topic.class) || parameter.isAnnotated(Group.class);
        return type == Broker.class || (type == String.class && isName);
    }

    @Override
    public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
        Broker broker = broker(context);
        if (parameter.getParameter().getType() == Broker.class) {
            return broker;
        }
        String name = uniqueName(context);
        parameter.findAnnotation(Topic.class)
            .ifPresent(topic -> broker.createTopic(name, topic.partitions(), Map.of()));
        if (parameter.isAnnotated(Group.class)) {
            broker.configureGroup(name, Map.of("share.auto.offset.reset", "earliest"));
        }
        return name;
    }

    @Override
    public void afterEach(ExtensionContext context) {
        Running running = context.getRoot().getStore(NAMESPACE).get(Running.class, Running.class);
        if (running != null) {
            running.broker.clearFaults();
        }
    }

    private static Broker broker(ExtensionContext context) {
        return context.getRoot().getStore(NAMESPACE)
            .getOrComputeIfAbsent(Running.class, key -> new Running(Broker.start()), Running.class)
            .broker;
    }

    private static String uniqueName(ExtensionContext context) {
        String test = context.getRequiredTestMethod().getName().replaceAll("[^a-zA-Z0-9.-]+", "-");
        String prefix = test.substring(0, Math.min(test.length(), TEST_NAME_LENGTH_MAX));
        return prefix + "-" + UUID.randomUUID().toString().substring(0, UNIQUE_LENGTH);
    }

    /** JUnit closes it at the end of all tests. */
    private record Running(Broker broker) implements ExtensionContext.Store.CloseableResource {
        @Override
        public void close() {
            broker.close();
        }
    }
}
