import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.trace.TraceBean;
import org.apache.rocketmq.client.trace.TraceContext;
import org.apache.rocketmq.client.trace.TraceDataEncoder;
import org.apache.rocketmq.client.trace.TraceType;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * Reads a trace topic from its beginning, decodes the records with the Java client's own decoder, and prints one line of JSON
 * for each that is about TOPIC.
 *
 * <pre>
 * TraceRead [-Dexpect=N] [-Dseconds=N] NAMESRV TRACE_TOPIC TOPIC
 * </pre>
 *
 * "expect" waits (up to "seconds", 30) until at least so many were read.
 */
@SuppressWarnings("deprecation")
public final class TraceRead {
  private static final int BATCH = 32;
  private static final long PAUSE_MS = 50;

  private final DefaultMQPullConsumer consumer = new DefaultMQPullConsumer("trace-read");
  private final Map<MessageQueue, Long> next = new HashMap<>();
  private final PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
  private final String traceTopic;
  private final String topic;
  private long printed;

  private TraceRead(String traceTopic, String topic) {
    this.traceTopic = traceTopic;
    this.topic = topic;
  }

  public static void main(String[] args) {
    if (args.length != 3) {
      System.err.println("usage: TraceRead [-Dexpect=N] [-Dseconds=N] NAMESRV TRACE_TOPIC TOPIC");
      System.exit(2);
    }
    int status = 0;
    TraceRead read = new TraceRead(args[1], args[2]);
    try {
      read.consumer.setNamesrvAddr(args[0]);
      read.consumer.setInstanceName("trace-read-" + ProcessHandle.current().pid());
      read.consumer.start();
      read.readAll(Long.getLong("expect", 0), Long.getLong("seconds", 30));
    } catch (Exception e) {
      System.err.println("TraceRead " + String.join(" ", args) + ": " + e);
      status = 1;
    }
    read.out.flush();
    // The client's own threads would keep the process alive for seconds, and they have nothing left to do.
    Runtime.getRuntime().halt(status);
  }

  private void readAll(long expect, long seconds) throws Exception {
    long end = System.nanoTime() + seconds * 1_000_000_000L;
    sweep();
    while (printed < expect && System.nanoTime() < end) {
      Thread.sleep(PAUSE_MS);
      sweep();
    }
    if (printed < expect) {
      throw new IllegalStateException("expected " + expect + " records, found " + printed);
    }
  }

  private void sweep() throws Exception {
    for (MessageQueue queue : consumer.fetchSubscribeMessageQueues(traceTopic)) {
      long offset = next.getOrDefault(queue, Math.max(0, consumer.minOffset(queue)));
      long max = consumer.maxOffset(queue);
      while (offset < max) {
        PullResult result = consumer.pull(queue, "*", offset, BATCH);
        if (result.getPullStatus() == PullStatus.FOUND) {
          result.getMsgFoundList().forEach(this::print);
        }
        offset = Math.max(offset + (result.getPullStatus() == PullStatus.FOUND ? 0 : 1), result.getNextBeginOffset());
      }
      next.put(queue, offset);
    }
  }

  private void print(MessageExt message) {
    String body = new String(message.getBody(), StandardCharsets.UTF_8);
    for (TraceContext context : TraceDataEncoder.decoderFromTraceDataString(body)) {
      for (TraceBean bean : context.getTraceBeans()) {
        if (topic.equals(bean.getTopic())) {
          print(message, context, bean);
        }
      }
    }
  }

  private void print(MessageExt message, TraceContext context, TraceBean bean) {
    Json json = new Json()
        .text("kind", context.getTraceType().name())
        .number("timestamp", context.getTimeStamp())
        .text("region", context.getRegionId())
        .text("group", context.getGroupName())
        .text("topic", bean.getTopic())
        .text("msg_id", bean.getMsgId())
        .text("carrier_keys", message.getKeys());
    if (context.getTraceType() != TraceType.Recall) {
      json.text("tags", bean.getTags())
          .text("keys", bean.getKeys())
          .text("store_host", bean.getStoreHost())
          .text("msg_type", String.valueOf(bean.getMsgType()));
    }
    if (context.getTraceType() == TraceType.Pub) {
      json.number("body_length", bean.getBodyLength())
          .number("cost", context.getCostTime())
          .text("offset_msg_id", bean.getOffsetMsgId())
          .bool("success", context.isSuccess());
    } else if (context.getTraceType() == TraceType.EndTransaction) {
      json.text("transaction_id", bean.getTransactionId())
          .text("state", String.valueOf(bean.getTransactionState()))
          .bool("from_check", bean.isFromTransactionCheck());
    } else {
      json.bool("success", context.isSuccess());
    }
    out.println(json);
    printed++;
  }
}
