import java.io.BufferedOutputStream;
import java.io.FileOutputStream;
import java.io.FileDescriptor;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.common.message.MessageClientExt;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * Reads every message of one or more topics with RocketMQ's Java client, from the earliest offset of every queue, and
 * prints one line of ASCII-only JSON a message. It commits no offset, so it can run again.
 *
 * <pre>
 * Drain [-Dexpect=N] [-Dseconds=N] [-Dparent=TOPIC] NAMESRV TOPIC...
 * </pre>
 *
 * The name of a light queue (%LMQ%...) may stand for a topic; "parent" is then a topic on the brokers that have it, for
 * no name server knows light queues.
 *
 * A message becomes readable a moment after its send was acknowledged, therefore "expect" waits (up to "seconds", 30) until
 * at least so many messages were read. One more look at every queue follows, so that a message stored twice shows.
 */
@SuppressWarnings("deprecation")
public final class Drain {
  private static final int BATCH = 32;
  private static final long PAUSE_MS = 50;

  private final DefaultMQPullConsumer consumer = new DefaultMQPullConsumer("drain");
  private final Map<MessageQueue, Long> next = new HashMap<>();
  private final OutputStream out = new BufferedOutputStream(new FileOutputStream(FileDescriptor.out), 1 << 18);
  private long printed;

  private Drain() {}

  public static void main(String[] args) {
    if (args.length < 2) {
      System.err.println("usage: Drain [-Dexpect=N] [-Dseconds=N] NAMESRV TOPIC...");
      System.exit(2);
    }
    int status = 0;
    Drain drain = new Drain();
    try {
      drain.consumer.setNamesrvAddr(args[0]);
      drain.consumer.setInstanceName("drain-" + ProcessHandle.current().pid());
      drain.consumer.start();
      List<String> topics = List.of(args).subList(1, args.length);
      drain.readAll(topics, Long.getLong("expect", 0), Long.getLong("seconds", 30));
      drain.out.flush();
    } catch (Exception e) {
      System.err.println("Drain " + String.join(" ", args) + ": " + e);
      status = 1;
    }
    // The client's own threads would keep the process alive for seconds, and they have nothing left to do.
    Runtime.getRuntime().halt(status);
  }

  private void readAll(List<String> topics, long expect, long seconds) throws Exception {
    long end = System.nanoTime() + seconds * 1_000_000_000L;
    sweep(topics);
    while (printed < expect && System.nanoTime() < end) {
      Thread.sleep(PAUSE_MS);
      sweep(topics);
    }
    sweep(topics);
    if (printed < expect) {
      out.flush();
      throw new IllegalStateException("expected " + expect + " messages, found " + printed);
    }
  }

  /** Reads each queue from where the last sweep ended up to its present end. */
  private void sweep(List<String> topics) throws Exception {
    for (String topic : topics) {
      List<MessageQueue> queues = new ArrayList<>(queuesOf(topic));
      queues.sort(null);
      for (MessageQueue queue : queues) {
        if (!next.containsKey(queue)) {
          next.put(queue, Math.max(0, consumer.minOffset(queue)));
        }
        readQueue(queue, consumer.maxOffset(queue));
      }
    }
  }

  private Collection<MessageQueue> queuesOf(String topic) throws Exception {
    String parent = System.getProperty("parent");
    if (parent == null || !topic.startsWith("%LMQ%")) {
      return consumer.fetchSubscribeMessageQueues(topic);
    }
    Set<MessageQueue> queues = new HashSet<>();
    for (MessageQueue queue : consumer.fetchSubscribeMessageQueues(parent)) {
      consumer.maxOffset(queue); // the client learns the broker's address
      queues.add(new MessageQueue(topic, queue.getBrokerName(), 0));
    }
    return queues;
  }

  private void readQueue(MessageQueue queue, long max) throws Exception {
    long offset = next.get(queue);
    while (offset < max) {
      PullResult result = consumer.pull(queue, "*", offset, BATCH);
      if (result.getPullStatus() == PullStatus.FOUND) {
        for (MessageExt message : result.getMsgFoundList()) {
          print(message);
        }
      } else if (result.getNextBeginOffset() <= offset) {
        throw new IOException(queue + " gives " + result.getPullStatus() + " at offset " + offset + " of " + max);
      }
      offset = result.getNextBeginOffset();
    }
    next.put(queue, offset);
  }

  private void print(MessageExt message) throws IOException {
    boolean client = message instanceof MessageClientExt;
    StringBuilder json = new StringBuilder(512 + message.getBody().length * 4 / 3);
    json.append('{');
    text(json, "topic", message.getTopic());
    text(json, "broker", message.getBrokerName());
    number(json, "queueId", message.getQueueId());
    number(json, "queueOffset", message.getQueueOffset());
    text(json, "msgId", message.getMsgId());
    text(json, "offsetMsgId", client ? ((MessageClientExt) message).getOffsetMsgId() : message.getMsgId());
    text(json, "tags", message.getTags());
    text(json, "keys", message.getKeys());
    number(json, "flag", message.getFlag());
    number(json, "sysFlag", message.getSysFlag());
    number(json, "bornTimestamp", message.getBornTimestamp());
    number(json, "storeTimestamp", message.getStoreTimestamp());
    number(json, "reconsumeTimes", message.getReconsumeTimes());
    text(json, "bornHost", String.valueOf(message.getBornHost()));
    properties(json, message.getProperties());
    json.append(",\"body\":\"").append(Base64.getEncoder().encodeToString(message.getBody())).append("\"}\n");
    out.write(json.toString().getBytes(StandardCharsets.ISO_8859_1));
    printed++;
  }

  private static void properties(StringBuilder json, Map<String, String> properties) {
    json.append(",\"properties\":{");
    for (Map.Entry<String, String> entry : new TreeMap<>(properties).entrySet()) {
      text(json, entry.getKey(), entry.getValue());
    }
    json.append('}');
  }

  private static void number(StringBuilder json, String name, long value) {
    name(json, name).append(value);
  }

  private static void text(StringBuilder json, String name, String value) {
    name(json, name);
    if (value == null) {
      json.append("null");
    } else {
      quote(json, value);
    }
  }

  private static StringBuilder name(StringBuilder json, String name) {
    if (json.charAt(json.length() - 1) != '{') {
      json.append(',');
    }
    quote(json, name);
    return json.append(':');
  }

  private static void quote(StringBuilder json, String value) {
    json.append('"');
    for (int i = 0; i < value.length(); i++) {
      char c = value.charAt(i);
      if (c == '"' || c == '\\') {
        json.append('\\').append(c);
      } else if (c >= 0x20 && c < 0x7f) {
        json.append(c);
      } else {
        json.append(String.format("\\u%04x", (int) c));
      }
    }
    json.append('"');
  }
}
