package org.apache.spark.kafka010;

import java.util.Map;

/** Stands in for a class of the artefact that is not published: there are no delegation tokens. */
public class KafkaTokenUtil$ {
  public static final KafkaTokenUtil$ MODULE$ = new KafkaTokenUtil$();

  public scala.Option<?> findMatchingTokenClusterConfig(org.apache.spark.SparkConf conf, String servers) {
    return scala.Option.empty();
  }

  public boolean needTokenUpdate(Map<String, Object> settings, scala.Option<?> token) {
    return false;
  }
}
