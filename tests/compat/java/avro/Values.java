import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.io.BinaryDecoder;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;
import org.apache.avro.io.JsonEncoder;

/**
 * Writes and reads values with Java's Avro. Every line of standard input is one command of words separated by
 * tabs, and every line of output its answer; one that begins with "error" says what failed.
 *
 * <pre>
 * write SCHEMA VALUE         prints a value, given in Avro's JSON, in hex
 * read WRITER READER HEX     prints a value of the writer's schema, resolved into the reader's, in Avro's JSON
 * </pre>
 */
public class Values {
  public static void main(String[] args) throws Exception {
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    PrintStream out = new PrintStream(System.out, true, "UTF-8");
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      String answer;
      try {
        answer = answered(line.split("\t", -1));
      } catch (Exception | StackOverflowError error) {
        answer = "error " + String.valueOf(error).replaceAll("\\s+", " ");
      }
      out.println(answer);
    }
  }

  private static String answered(String[] words) throws Exception {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    if (words[0].equals("write")) {
      Schema schema = new Schema.Parser().parse(words[1]);
      Object value = new GenericDatumReader<>(schema)
          .read(null, DecoderFactory.get().jsonDecoder(schema, words[2]));
      BinaryEncoder encoder = EncoderFactory.get().binaryEncoder(bytes, null);
      new GenericDatumWriter<>(schema).write(value, encoder);
      encoder.flush();
      StringBuilder hex = new StringBuilder();
      for (byte each : bytes.toByteArray()) {
        hex.append(String.format("%02x", each));
      }
      return hex.toString();
    }
    Schema writer = new Schema.Parser().parse(words[1]);
    Schema reader = new Schema.Parser().parse(words[2]);
    byte[] data = new byte[words[3].length() / 2];
    for (int place = 0; place < data.length; place++) {
      data[place] = (byte) Integer.parseInt(words[3].substring(2 * place, 2 * place + 2), 16);
    }
    BinaryDecoder decoder = DecoderFactory.get().binaryDecoder(data, null);
    Object value = new GenericDatumReader<>(writer, reader).read(null, decoder);
    if (!decoder.isEnd()) {
      throw new IllegalStateException("bytes are left");
    }
    JsonEncoder encoder = EncoderFactory.get().jsonEncoder(reader, bytes, false);
    new GenericDatumWriter<>(reader).write(value, encoder);
    encoder.flush();
    return bytes.toString("UTF-8");
  }
}
