import java.lang.management.ManagementFactory;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.message.Message;

/**
 * Sends messages of 128 bytes with the Java client's async send, as fast as its answers let it.
 *
 * <pre>
 * AsyncSender NAMESRV TOPIC IN_FLIGHT COUNT [autoBatch]
 * </pre>
 *
 * A quarter of COUNT goes first, for the compiler, and is not counted. Prints "per_second A cpu_us B": acknowledged messages a
 * second, and the processor time of the whole process for each, in microseconds.
 */
public final class AsyncSender {
  private final DefaultMQProducer producer = new DefaultMQProducer("bench-java");
  private final AtomicLong failed = new AtomicLong();
  private final byte[] body = new byte[128];
  private final String topic;
  private final int inFlight;
  private final Semaphore room;

  private AsyncSender(String topic, int inFlight) {
    this.topic = topic;
    this.inFlight = inFlight;
    this.room = new Semaphore(inFlight);
    java.util.Arrays.fill(body, (byte) 'x');
  }

  public static void main(String[] args) throws Exception {
    AsyncSender sender = new AsyncSender(args[1], Integer.parseInt(args[2]));
    int count = Integer.parseInt(args[3]);
    sender.producer.setNamesrvAddr(args[0]);
    sender.producer.setSendMsgTimeout(60_000);
    sender.producer.setAutoBatch(args.length > 4);
    sender.producer.start();
    sender.send(count / 4);
    long cpu = cpuNanos();
    long started = System.nanoTime();
    sender.send(count);
    double seconds = (System.nanoTime() - started) / 1e9;
    double micros = (cpuNanos() - cpu) / 1e3 / count;
    if (sender.failed.get() > 0) {
      System.err.println("AsyncSender: " + sender.failed.get() + " messages failed");
      Runtime.getRuntime().halt(1);
    }
    System.out.printf("per_second %.0f cpu_us %.3f%n", count / seconds, micros);
    System.out.flush();
    Runtime.getRuntime().halt(0);
  }

  private static long cpuNanos() {
    return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
  }

  /** Returns when all of them are answered. */
  private void send(int count) throws Exception {
    SendCallback callback =
        new SendCallback() {
          @Override
          public void onSuccess(SendResult result) {
            if (result.getSendStatus() != SendStatus.SEND_OK) {
              failed.incrementAndGet();
            }
            room.release();
          }

          @Override
          public void onException(Throwable e) {
            failed.incrementAndGet();
            room.release();
          }
        };
    for (int i = 0; i < count; i++) {
      room.acquire();
      producer.send(new Message(topic, body), callback);
    }
    room.acquire(inFlight);
    room.release(inFlight);
  }
}
