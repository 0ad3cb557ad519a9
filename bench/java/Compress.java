import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import org.apache.rocketmq.common.compression.CompressionType;
import org.apache.rocketmq.common.compression.Compressor;
import org.apache.rocketmq.common.compression.CompressorFactory;

/**
 * What bench_compress measures, done by the compressors of RocketMQ's Java client.
 *
 * <pre>
 * Compress zlib|lz4|zstd SECONDS FILE...
 * </pre>
 */
public final class Compress {
  private static final int LEVEL = 5;
  private static final OperatingSystemMXBean PROCESS =
      ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class);

  private Compress() {}

  public static void main(String[] args) throws Exception {
    Compressor compressor = CompressorFactory.getCompressor(CompressionType.of(args[0]));
    double seconds = Double.parseDouble(args[1]);
    for (int i = 2; i < args.length; i++) { // so that all of it is compiled before anything is measured
      measure(compressor, args[i], seconds);
    }
    for (int i = 2; i < args.length; i++) {
      System.out.println(measure(compressor, args[i], seconds));
    }
  }

  private static byte[][] read(String file) throws Exception {
    byte[] bytes = Files.readAllBytes(Path.of(file));
    int length = Integer.parseInt(file.substring(file.lastIndexOf('-') + 1));
    byte[][] bodies = new byte[bytes.length / length][];
    for (int i = 0; i < bodies.length; i++) {
      bodies[i] = Arrays.copyOfRange(bytes, i * length, (i + 1) * length);
    }
    return bodies;
  }

  /** Java's client sends what the compressor gives, shorter or not. */
  private static String measure(Compressor compressor, String file, double seconds) throws Exception {
    byte[][] bodies = read(file);
    long started = PROCESS.getProcessCpuTime();
    double done = 0;
    double spent = 0;
    long packed = 0;
    while (spent < seconds) {
      packed = 0;
      for (byte[] body : bodies) {
        packed += compressor.compress(body, LEVEL).length;
        done += body.length;
      }
      spent = (PROCESS.getProcessCpuTime() - started) / 1e9;
    }
    return String.format("%s %.0f %d", file, done / spent, packed);
  }
}
