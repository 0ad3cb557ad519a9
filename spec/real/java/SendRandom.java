import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * Sends random messages with RocketMQ's Java client and prints what was sent and what came back.
 *
 * <pre>
 * SendRandom NAMESRV TOPIC sync|async|oneway|batch|transaction COUNT SEED
 * </pre>
 *
 * One line a message, fields separated by tabs: index (also the property "index"), status, msgId, offsetMsgId, broker,
 * queueId, queueOffset, flag, then base64 of tags, of the joined keys and of the body, and the properties as
 * name:value pairs of base64, separated by commas. What is absent is "-". Of a batch each message has the whole batch's
 * status and place. Of three messages in transactions the first is committed at once, the second rolled back, the third
 * committed when the broker asks what has become of it.
 */
public final class SendRandom {
  private static final int BATCH = 10;
  private static final int LONGEST_BODY = 20_000; // the client compresses those from 4096 on
  private static final long LIMIT_SECONDS = 60;

  private final Random random;
  private final String topic;
  private final ConcurrentHashMap<Message, SendResult> results = new ConcurrentHashMap<>();

  private SendRandom(String topic, long seed) {
    this.topic = topic;
    this.random = new Random(seed);
  }

  public static void main(String[] args) throws Exception {
    if (args.length != 5) {
      System.err.println("usage: SendRandom NAMESRV TOPIC sync|async|oneway|batch|transaction COUNT SEED");
      System.exit(2);
    }
    // The old client logs to stdout, which is for our lines.
    PrintStream out = System.out;
    System.setOut(System.err);
    DefaultMQProducer producer =
        args[2].equals("transaction")
            ? new TransactionMQProducer("java-" + args[2])
            : new DefaultMQProducer("java-" + args[2]);
    producer.setNamesrvAddr(args[0]);
    producer.setInstanceName("java-" + ProcessHandle.current().pid());
    producer.setSendMsgTimeout(20_000);
    int status = 0;
    try {
      SendRandom sender = new SendRandom(args[1], Long.parseLong(args[4]));
      List<Message> messages = sender.make(Integer.parseInt(args[3]));
      if (producer instanceof TransactionMQProducer) {
        sender.sendInTransactions((TransactionMQProducer) producer, messages);
      } else {
        producer.start();
        sender.send(producer, args[2], messages);
      }
      sender.print(messages, out);
      producer.shutdown();
    } catch (Exception e) {
      System.err.println("SendRandom " + String.join(" ", args) + ": " + e);
      status = 1;
    }
    // The client's own threads would keep the process alive for seconds, and they have nothing left to do.
    out.flush();
    Runtime.getRuntime().halt(status);
  }

  private void send(DefaultMQProducer producer, String mode, List<Message> messages) throws Exception {
    switch (mode) {
      case "sync":
        for (Message message : messages) {
          results.put(message, producer.send(message));
        }
        break;
      case "async":
        sendAsync(producer, messages);
        break;
      case "oneway":
        for (Message message : messages) {
          producer.sendOneway(message);
        }
        break;
      case "batch":
        for (int from = 0; from < messages.size(); from += BATCH) {
          List<Message> members = messages.subList(from, Math.min(from + BATCH, messages.size()));
          SendResult result = producer.send(new ArrayList<>(members));
          for (Message member : members) {
            results.put(member, result);
          }
        }
        break;
      default:
        throw new IllegalArgumentException("no such mode: " + mode);
    }
  }

  private void sendAsync(DefaultMQProducer producer, List<Message> messages) throws Exception {
    CountDownLatch open = new CountDownLatch(messages.size());
    for (Message message : messages) {
      producer.send(message, new SendCallback() {
        @Override
        public void onSuccess(SendResult result) {
          results.put(message, result);
          open.countDown();
        }

        @Override
        public void onException(Throwable e) {
          System.err.println("SendRandom: " + e);
          open.countDown();
        }
      });
    }
    if (!open.await(LIMIT_SECONDS, TimeUnit.SECONDS)) {
      throw new IllegalStateException(open.getCount() + " callbacks are missing");
    }
  }

  private void sendInTransactions(TransactionMQProducer producer, List<Message> messages) throws Exception {
    Set<String> unasked = ConcurrentHashMap.newKeySet();
    // Its end is awaited, so that what the last answers say has been sent.
    ThreadPoolExecutor checks =
        new ThreadPoolExecutor(2, 2, 1, TimeUnit.SECONDS, new LinkedBlockingQueue<>());
    producer.setExecutorService(checks);
    producer.setTransactionListener(new TransactionListener() {
      @Override
      public LocalTransactionState executeLocalTransaction(Message message, Object index) {
        switch ((Integer) index % 3) {
          case 0:
            return LocalTransactionState.COMMIT_MESSAGE;
          case 1:
            return LocalTransactionState.ROLLBACK_MESSAGE;
          default:
            unasked.add(message.getUserProperty("index"));
            return LocalTransactionState.UNKNOW;
        }
      }

      @Override
      public LocalTransactionState checkLocalTransaction(MessageExt message) {
        unasked.remove(message.getUserProperty("index"));
        return LocalTransactionState.COMMIT_MESSAGE;
      }
    });
    producer.start();
    for (int index = 0; index < messages.size(); index++) {
      results.put(messages.get(index), producer.sendMessageInTransaction(messages.get(index), index));
    }
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(LIMIT_SECONDS);
    while (!unasked.isEmpty() && System.nanoTime() < end) {
      Thread.sleep(10);
    }
    checks.shutdown();
    if (!unasked.isEmpty() || !checks.awaitTermination(LIMIT_SECONDS, TimeUnit.SECONDS)) {
      throw new IllegalStateException("nobody asked about " + unasked);
    }
  }

  private List<Message> make(int count) {
    List<Message> messages = new ArrayList<>();
    for (int index = 1; index <= count; index++) {
      Message message = new Message(topic, body());
      message.setFlag(random.nextInt());
      if (random.nextInt(8) > 0) {
        message.setTags(text(10));
      }
      List<String> keys = new ArrayList<>();
      for (int i = random.nextInt(4); i > 0; i--) {
        keys.add(text(10));
      }
      if (!keys.isEmpty()) {
        message.setKeys(keys);
      }
      message.putUserProperty("index", String.valueOf(index));
      for (int i = random.nextInt(6); i > 0; i--) {
        message.putUserProperty("p" + i + text(6), text(40));
      }
      messages.add(message);
    }
    return messages;
  }

  /** Random bytes, in half of the bodies the same few again and again. */
  private byte[] body() {
    byte[] body = new byte[1 + random.nextInt(1 + random.nextInt(LONGEST_BODY))];
    random.nextBytes(body);
    if (random.nextBoolean()) {
      for (int i = 16; i < body.length; i++) {
        body[i] = body[i - 16];
      }
    }
    return body;
  }

  /** Random characters, at least one: ASCII without blanks, accents, Chinese, emoji. */
  private String text(int longest) {
    StringBuilder text = new StringBuilder();
    for (int i = 1 + random.nextInt(longest); i > 0; i--) {
      switch (random.nextInt(6)) {
        case 0:
          text.appendCodePoint(0x4E00 + random.nextInt(0x5000));
          break;
        case 1:
          text.appendCodePoint(0x1F300 + random.nextInt(0x350));
          break;
        case 2:
          text.appendCodePoint(0xC0 + random.nextInt(0x180));
          break;
        default:
          text.append((char) (33 + random.nextInt(94)));
      }
    }
    return text.toString();
  }

  private void print(List<Message> messages, PrintStream out) {
    StringBuilder lines = new StringBuilder();
    for (Message message : messages) {
      SendResult result = results.get(message);
      List<String> fields = new ArrayList<>();
      fields.add(message.getUserProperty("index"));
      fields.add(result == null ? "-" : result.getSendStatus().name());
      fields.add(result == null ? "-" : result.getMsgId());
      fields.add(result == null ? "-" : result.getOffsetMsgId());
      fields.add(result == null ? "-" : result.getMessageQueue().getBrokerName());
      fields.add(result == null ? "-" : String.valueOf(result.getMessageQueue().getQueueId()));
      fields.add(result == null ? "-" : String.valueOf(result.getQueueOffset()));
      fields.add(String.valueOf(message.getFlag()));
      fields.add(base64(message.getTags()));
      fields.add(base64(message.getKeys()));
      fields.add(Base64.getEncoder().encodeToString(message.getBody()));
      List<String> properties = new ArrayList<>();
      new TreeMap<>(message.getProperties()).forEach((name, value) ->
          properties.add(base64(name) + ":" + base64(value)));
      fields.add(String.join(",", properties));
      lines.append(String.join("\t", fields)).append('\n');
    }
    out.print(lines);
  }

  private static String base64(String text) {
    return text == null ? "-" : Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
  }
}
