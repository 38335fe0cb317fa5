import java.nio.ByteBuffer;
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.*;
import org.apache.kafka.clients.consumer.internals.*;
import org.apache.kafka.common.TopicPartition;

/**
 * Assigns as Kafka's own assignors do. One question a line: assignor, topics (a=3,b=1), members
 * (id/instance/subscription in hex;...), separated by blanks. The answer, for each member in the order of the
 * question: assignment in hex / the subscription written again / user data after that assignment, generation 5.
 */
public class Assignors {
    public static void main(String[] args) {
        Scanner in = new Scanner(System.in);
        StringBuilder out = new StringBuilder();
        while (in.hasNextLine())
            out.append(answer(in.nextLine().split(" "))).append('\n');
        System.out.print(out);
    }

    static String answer(String[] words) {
        Map<String, Integer> counts = new HashMap<>();
        for (String topic : words[1].split(","))
            counts.put(topic.split("=")[0], Integer.parseInt(topic.split("=")[1]));
        List<String> order = new ArrayList<>();
        Map<String, Subscription> members = new HashMap<>();
        for (String member : words[2].split(";")) {
            String[] parts = member.split("/");
            Subscription subscription = ConsumerProtocol.deserializeSubscription(bytes(parts[2]));
            if (!parts[1].isEmpty())
                subscription.setGroupInstanceId(Optional.of(parts[1]));
            order.add(parts[0]);
            members.put(parts[0], subscription);
        }
        Map<String, List<TopicPartition>> assigned = assignor(words[0]).assign(counts, members);
        StringJoiner answers = new StringJoiner(" ");
        for (String member : order) {
            Assignment assignment = new Assignment(assigned.get(member));
            Subscription said = members.get(member);
            if (said.userData() != null)
                said.userData().rewind();
            ConsumerPartitionAssignor mine = assignor(words[0]);
            mine.onAssignment(assignment, new ConsumerGroupMetadata("g", 5, member, Optional.empty()));
            answers.add(hex(ConsumerProtocol.serializeAssignment(assignment))
                + "/" + hex(ConsumerProtocol.serializeSubscription(said))
                + "/" + hex(mine.subscriptionUserData(new HashSet<>(said.topics()))));
        }
        return answers.toString();
    }

    static AbstractPartitionAssignor assignor(String name) {
        switch (name) {
            case "range": return new RangeAssignor();
            case "roundrobin": return new RoundRobinAssignor();
            case "sticky": return new StickyAssignor();
            default: return new CooperativeStickyAssignor();
        }
    }

    static ByteBuffer bytes(String hex) {
        return ByteBuffer.wrap(HexFormat.of().parseHex(hex));
    }

    static String hex(ByteBuffer data) {
        if (data == null)
            return "-";
        byte[] copy = new byte[data.remaining()];
        data.duplicate().get(copy);
        return HexFormat.of().formatHex(copy);
    }
}
