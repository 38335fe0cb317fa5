import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricsReporter;
import org.apache.kafka.common.telemetry.internals.ClientTelemetryUtils;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.telemetry.ClientTelemetry;
import org.apache.kafka.server.telemetry.ClientTelemetryPayload;
import org.apache.kafka.server.telemetry.ClientTelemetryReceiver;

/** Writes what clients push to the file of the setting `receiver.file`: client id, instance id, whether last, bytes, names as protobuf reads them. */
public final class Receiver implements MetricsReporter, ClientTelemetry, ClientTelemetryReceiver {
    private Path file;

    @Override
    public void configure(Map<String, ?> settings) {
        file = Path.of(String.valueOf(settings.get("receiver.file")));
    }

    @Override
    public ClientTelemetryReceiver clientReceiver() {
        return this;
    }

    @Override
    public synchronized void exportMetrics(AuthorizableRequestContext context, ClientTelemetryPayload payload) {
        ByteBuffer data = payload.data();
        byte[] bytes = new byte[data.remaining()];
        data.get(bytes);
        StringBuilder names = new StringBuilder();
        for (var resource : ClientTelemetryUtils.deserializeMetricsData(ByteBuffer.wrap(bytes)).getResourceMetricsList()) {
            for (var scope : resource.getScopeMetricsList()) {
                for (var metric : scope.getMetricsList()) {
                    boolean isSum = metric.hasSum() && metric.getSum().getIsMonotonic();
                    names.append(metric.getName()).append(isSum ? ":sum " : ":gauge ");
                }
            }
        }
        String line = String.join(
                "\t",
                context.clientId(),
                payload.clientInstanceId().toString(),
                String.valueOf(payload.isTerminating()),
                Base64.getEncoder().encodeToString(bytes),
                names.toString().strip());
        try {
            Files.writeString(file, line + "\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
    }

    @Override
    public void init(List<KafkaMetric> metrics) {}

    @Override
    public void metricChange(KafkaMetric metric) {}

    @Override
    public void metricRemoval(KafkaMetric metric) {}

    @Override
    public void close() {}
}
