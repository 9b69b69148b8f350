import java.io.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.serialization.*;

/** Produces each line of standard input, in base64, as a key, and prints the partition it went to. */
public class Partitions {
    public static void main(String[] args) throws Exception {
        Properties config = new Properties();
        config.put("bootstrap.servers", args[0]);
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer());
             BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII))) {
            for (String line; (line = in.readLine()) != null; ) {
                byte[] key = Base64.getDecoder().decode(line);
                for (int i = 1; i < args.length; i++) {
                    sent.add(producer.send(new ProducerRecord<>(args[i], key, new byte[0])));
                }
            }
        }
        StringBuilder out = new StringBuilder();
        for (Future<RecordMetadata> f : sent) {
            out.append(f.get().partition()).append('\n');
        }
        System.out.print(out);
    }
}
