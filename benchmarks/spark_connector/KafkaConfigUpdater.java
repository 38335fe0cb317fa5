package org.apache.spark.kafka010;

import java.util.HashMap;
import java.util.Map;

/** Stands in for a class of the artefact that is not published: settings as given, no delegation tokens. */
public class KafkaConfigUpdater {
  private final Map<String, Object> settings;

  public KafkaConfigUpdater(String module, scala.collection.immutable.Map<String, Object> given) {
    settings = new HashMap<>(scala.jdk.javaapi.CollectionConverters.asJava(given));
  }

  public KafkaConfigUpdater set(String name, Object value) {
    settings.put(name, value);
    return this;
  }

  public KafkaConfigUpdater setIfUnset(String name, Object value) {
    settings.putIfAbsent(name, value);
    return this;
  }

  public KafkaConfigUpdater setAuthenticationConfigIfNeeded() {
    return this;
  }

  public KafkaConfigUpdater setAuthenticationConfigIfNeeded(scala.Option<?> token) {
    return this;
  }

  public Map<String, Object> build() {
    return settings;
  }
}
