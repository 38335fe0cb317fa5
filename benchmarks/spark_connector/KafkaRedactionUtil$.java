package org.apache.spark.kafka010;

/** Stands in for a class of the artefact that is not published: hides nothing. */
public class KafkaRedactionUtil$ {
  public static final KafkaRedactionUtil$ MODULE$ = new KafkaRedactionUtil$();

  public scala.collection.immutable.Seq<?> redactParams(scala.collection.immutable.Seq<?> settings) {
    return settings;
  }
}
