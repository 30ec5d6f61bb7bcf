import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

/**
 * Writes the assignments by Apache Kafka of random groups that change step by step, as JSON:
 *
 *   java -cp "JARS" ConsumerAssignorVectors.java > consumer_assignors.json
 *
 * with Kafka's server jars as the class path. Each step begins with the targets of the one before.
 */
public class ConsumerAssignorVectors {
    static final int SEEDS = 60;
    static final int STEPS = 5;

    final Random random;
    final boolean mixed;
    final List<Uuid> topics = new ArrayList<>();
    final Map<Uuid, Integer> counts = new HashMap<>();
    final Map<String, Optional<String>> members = new TreeMap<>();
    final Map<String, Set<Uuid>> subscribed = new HashMap<>();
    Map<String, Map<Uuid, Set<Integer>>> targets = new HashMap<>();

    ConsumerAssignorVectors(int seed) {
        random = new Random(seed);
        mixed = seed % 2 == 1;
        int topicCount = 1 + random.nextInt(5);
        for (int i = 0; i < topicCount; i++) {
            Uuid topic = new Uuid(random.nextLong(), random.nextLong());
            topics.add(topic);
            counts.put(topic, 1 + random.nextInt(seed % 5 == 0 ? 40 : 9));
        }
    }

    void change(int step) {
        int joining = step == 0 ? 1 + random.nextInt(6) : random.nextInt(3);
        for (int i = 0; i < joining; i++) {
            String id = Long.toHexString(random.nextLong());
            members.put(id, random.nextInt(4) == 0 ? Optional.of("i" + random.nextInt(1000)) : Optional.empty());
            subscribed.put(id, subscription());
        }
        List<String> ids = new ArrayList<>(members.keySet());
        if (step > 0 && ids.size() > 1 && random.nextInt(2) == 0) {
            String left = ids.get(random.nextInt(ids.size()));
            members.remove(left);
            targets.remove(left);
        }
        if (step > 0 && mixed) {
            String changed = new ArrayList<>(members.keySet()).get(random.nextInt(members.size()));
            subscribed.put(changed, subscription());
        }
        if (step > 0 && random.nextInt(3) == 0) {
            counts.merge(topics.get(random.nextInt(topics.size())), random.nextInt(5), Integer::sum);
        }
    }

    Set<Uuid> subscription() {
        Set<Uuid> result = new HashSet<>();
        for (Uuid topic : topics) {
            if (!mixed || random.nextInt(3) > 0) result.add(topic);
        }
        return result;
    }

    String assign(ConsumerGroupPartitionAssignor assignor) {
        Map<String, MemberSubscriptionAndAssignmentImpl> specs = new HashMap<>();
        Map<Uuid, Map<Integer, String>> inverted = new HashMap<>();
        StringBuilder before = new StringBuilder();
        members.forEach((id, instance) -> specs.put(id, new MemberSubscriptionAndAssignmentImpl(
            Optional.empty(), instance, subscribed.get(id), new Assignment(targets.getOrDefault(id, Map.of())))));
        targets.forEach((id, target) -> target.forEach((topic, partitions) -> partitions.forEach(
            one -> inverted.computeIfAbsent(topic, __ -> new HashMap<>()).put(one, id))));
        for (String id : specs.keySet()) {
            if (before.length() > 0) before.append(',');
            String instance = members.get(id).map(one -> '"' + one + '"').orElse("null");
            List<Integer> names = new ArrayList<>();
            subscribed.get(id).forEach(topic -> names.add(topics.indexOf(topic)));
            before.append("[\"" + id + "\"," + instance + "," + names + ","
                + json(targets.getOrDefault(id, Map.of())) + "]");
        }
        boolean same = subscribed.keySet().stream().filter(members::containsKey).map(subscribed::get).distinct()
            .count() == 1;
        var result = assignor.assign(
            new GroupSpecImpl(specs, same ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS, inverted),
            new SubscribedTopicDescriber() {
                public int numPartitions(Uuid topic) {
                    return counts.get(topic);
                }

                public Set<String> racksForPartition(Uuid topic, int partition) {
                    return Set.of();
                }
            });
        Map<String, Map<Uuid, Set<Integer>>> assigned = new HashMap<>();
        StringBuilder after = new StringBuilder();
        for (String id : specs.keySet()) {
            if (after.length() > 0) after.append(',');
            // As a record carries it, and its replay takes it over; with the partitions in ascending order.
            Map<Uuid, Set<Integer>> copy = new HashMap<>();
            var member = result.members().get(id);
            if (member != null) {
                member.partitions().forEach((topic, partitions) ->
                    copy.put(topic, new HashSet<>(new TreeSet<>(partitions))));
            }
            assigned.put(id, copy);
            after.append(json(copy));
        }
        targets = assigned;
        List<Integer> partitionCounts = new ArrayList<>();
        List<String> names = new ArrayList<>();
        for (Uuid topic : topics) {
            partitionCounts.add(counts.get(topic));
            names.add(String.format("\"%016x%016x\"", topic.getMostSignificantBits(),
                topic.getLeastSignificantBits()));
        }
        return "{\"assignor\":\"" + assignor.name() + "\",\"homogeneous\":" + same + ",\"topics\":" + names
            + ",\"counts\":" + partitionCounts + ",\"members\":[" + before + "],\"output\":[" + after + "]}";
    }

    /** Topics in the map's own order: which of two comes first in one bucket shows nowhere else. */
    String json(Map<Uuid, Set<Integer>> partitions) {
        List<String> entries = new ArrayList<>();
        partitions.forEach((topic, ones) ->
            entries.add("\"" + topics.indexOf(topic) + "\":" + new TreeSet<>(ones)));
        return "{" + String.join(",", entries) + "}";
    }

    public static void main(String[] arguments) {
        List<String> lines = new ArrayList<>();
        for (int seed = 0; seed < SEEDS; seed++) {
            ConsumerGroupPartitionAssignor assignor = seed % 6 == 5 ? new RangeAssignor() : new UniformAssignor();
            ConsumerAssignorVectors group = new ConsumerAssignorVectors(seed);
            for (int step = 0; step < STEPS; step++) {
                group.change(step);
                lines.add(group.assign(assignor).replace(", ", ","));
            }
        }
        System.out.println("[\n" + String.join(",\n", lines) + "\n]");
    }
}
