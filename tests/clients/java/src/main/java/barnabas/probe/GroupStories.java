package barnabas.probe;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.BooleanSupplier;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InvalidRegularExpression;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * Consumers of both protocols in one process. Arguments: bootstrap servers, a topic of six partitions with
 * records, the story. Prints one line for each expected state; a wait without success ends it.
 */
public final class GroupStories {
    private static final Duration POLL = Duration.ofMillis(50);
    private static final long PATIENCE_MS = 600_000;
    private static final Map<String, Object> CLASSIC = Map.of(
        "group.protocol", "classic",
        "partition.assignment.strategy", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
        "session.timeout.ms", "45000",
        "heartbeat.interval.ms", "300");

    private final String bootstrap;
    private final String topic;
    private final String group;
    private final List<KafkaConsumer<String, String>> open = new ArrayList<>();

    private GroupStories(String bootstrap, String topic, String story) {
        this.bootstrap = bootstrap;
        this.topic = topic;
        this.group = topic + "-" + story;
    }

    public static void main(String[] arguments) throws Exception {
        GroupStories stories = new GroupStories(arguments[0], arguments[1], arguments[2]);
        switch (arguments[2]) {
            case "migration" -> stories.migration();
            case "static" -> stories.staticMembers();
            case "pattern" -> stories.pattern();
            default -> throw new IllegalArgumentException(arguments[2]);
        }
        stories.open.forEach(KafkaConsumer::close);
    }

    private void migration() throws Exception {
        var first = consumer(CLASSIC);
        var second = consumer(CLASSIC);
        first.subscribe(List.of(topic));
        second.subscribe(List.of(topic));
        await(() -> sizes(3, first, second));
        first.commitSync();
        say("two classic members");
        var newcomer = consumer(Map.of());
        newcomer.subscribe(List.of(topic));
        await(() -> sizes(2, first, second, newcomer));
        first.commitSync();
        newcomer.commitSync();
        say("with a third");
        leave(newcomer, CloseOptions.GroupMembershipOperation.LEAVE_GROUP);
        await(() -> sizes(3, first, second));
        first.commitSync();
        second.commitSync();
        say("without it");
    }

    private void staticMembers() throws Exception {
        var dynamic = consumer(Map.of());
        var fixed = consumer(Map.of("group.instance.id", "fixed"));
        dynamic.subscribe(List.of(topic));
        fixed.subscribe(List.of(topic));
        await(() -> sizes(3, dynamic, fixed));
        say("a dynamic and a static member");
        Set<TopicPartition> before = new HashSet<>(fixed.assignment());
        leave(fixed, CloseOptions.GroupMembershipOperation.REMAIN_IN_GROUP);
        var back = consumer(Map.of("group.instance.id", "fixed"));
        back.subscribe(List.of(topic));
        await(() -> back.assignment().equals(before));
        say("it is back with its partitions");
    }

    private void pattern() throws Exception {
        var first = consumer(Map.of("group.remote.assignor", "range"));
        var second = consumer(Map.of("group.remote.assignor", "range"));
        first.subscribe(new SubscriptionPattern(topic + ".?"));
        second.subscribe(new SubscriptionPattern(topic + ".?"));
        await(() -> sizes(3, first, second));
        say("two members by a pattern");
        var wrong = consumer(Map.of());
        wrong.subscribe(new SubscriptionPattern("("));
        try {
            await(() -> false);
        } catch (InvalidRegularExpression refused) {
            System.out.println("a wrong pattern: " + refused.getClass().getSimpleName());
        }
        open.remove(wrong);
        wrong.close();
    }

    private KafkaConsumer<String, String> consumer(Map<String, Object> more) {
        Map<String, Object> settings = new HashMap<>();
        settings.put(ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
        settings.put(ConsumerConfig.GROUP_ID_CONFIG, group);
        settings.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        settings.put(ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, "false");
        settings.put(ConsumerConfig.GROUP_PROTOCOL_CONFIG, "consumer");
        settings.putAll(more);
        var consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
        open.add(consumer);
        return consumer;
    }

    private void leave(KafkaConsumer<String, String> consumer, CloseOptions.GroupMembershipOperation operation) {
        open.remove(consumer);
        consumer.close(CloseOptions.timeout(Duration.ofMillis(PATIENCE_MS)).withGroupMembershipOperation(operation));
    }

    @SafeVarargs
    private boolean sizes(int size, KafkaConsumer<String, String>... consumers) {
        for (var consumer : consumers) {
            if (consumer.assignment().size() != size) return false;
        }
        return true;
    }

    private void await(BooleanSupplier isSo) {
        long deadline = System.currentTimeMillis() + PATIENCE_MS;
        while (!isSo.getAsBoolean()) {
            if (System.currentTimeMillis() > deadline) throw new IllegalStateException("It did not come true.");
            for (var consumer : List.copyOf(open)) consumer.poll(POLL);
        }
    }

    private void say(String what) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", (Object) bootstrap))) {
            ConsumerGroupDescription described = admin.describeConsumerGroups(List.of(group)).all().get().get(group);
            System.out.println(what + ": " + described.type() + " " + described.partitionAssignor() + " "
                + described.members().size());
        }
    }
}
