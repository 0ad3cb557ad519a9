import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import org.apache.rocketmq.client.QueryResult;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.MessageClientExt;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * Asks what a producer of RocketMQ's Java client can ask. Reads one question a line from stdin, its words separated by tabs,
 * and prints one line of JSON for each: {"value":...}, {"messages":[...]} or {"error":text,"code":number}.
 *
 * <pre>
 * Ask NAMESRV
 * max|min|earliest TOPIC BROKER QUEUE
 * search TOPIC BROKER QUEUE TIMESTAMP
 * view TOPIC ID
 * query TOPIC KEY MAX BEGIN END
 * </pre>
 */
@SuppressWarnings("deprecation")
public final class Ask {
  private Ask() {}

  public static void main(String[] args) {
    DefaultMQProducer producer = new DefaultMQProducer("ask");
    producer.setNamesrvAddr(args[0]);
    producer.setInstanceName("ask-" + ProcessHandle.current().pid());
    PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    int status = 0;
    try {
      producer.start();
      BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
      for (String line = in.readLine(); line != null; line = in.readLine()) {
        out.println(answer(producer, line.split("\t", -1)));
      }
    } catch (Exception e) {
      System.err.println("Ask: " + e);
      status = 1;
    }
    out.flush();
    // The client's own threads would keep the process alive for seconds, and they have nothing left to do.
    Runtime.getRuntime().halt(status);
  }

  private static String answer(DefaultMQProducer producer, String[] words) {
    try {
      return ask(producer, words);
    } catch (MQBrokerException e) {
      return error(e.getResponseCode(), e);
    } catch (MQClientException e) {
      return error(e.getResponseCode(), e);
    } catch (Exception e) {
      return error(0, e);
    }
  }

  private static String error(int code, Exception e) {
    return new Json().number("code", code).text("error", String.valueOf(e.getMessage())).toString();
  }

  private static String ask(DefaultMQProducer producer, String[] words) throws Exception {
    switch (words[0]) {
      case "max":
        return value(producer.maxOffset(queue(words)));
      case "min":
        return value(producer.minOffset(queue(words)));
      case "earliest":
        return value(producer.earliestMsgStoreTime(queue(words)));
      case "search":
        return value(producer.searchOffset(queue(words), Long.parseLong(words[4])));
      case "view":
        return messages(List.of(producer.viewMessage(words[1], words[2])));
      case "query":
        QueryResult found = producer.queryMessage(words[1], words[2], Integer.parseInt(words[3]),
            Long.parseLong(words[4]), Long.parseLong(words[5]));
        return messages(found.getMessageList());
      default:
        throw new IllegalArgumentException("unknown question " + words[0]);
    }
  }

  private static MessageQueue queue(String[] words) {
    return new MessageQueue(words[1], words[2], Integer.parseInt(words[3]));
  }

  private static String value(long value) {
    return new Json().number("value", value).toString();
  }

  private static String messages(List<MessageExt> messages) {
    List<String> all = new ArrayList<>();
    for (MessageExt message : messages) {
      all.add(message(message));
    }
    return new Json().raw("messages", "[" + String.join(",", all) + "]").toString();
  }

  private static String message(MessageExt message) {
    boolean client = message instanceof MessageClientExt;
    return new Json()
        .text("topic", message.getTopic())
        .text("body", Base64.getEncoder().encodeToString(message.getBody()))
        .text("tags", message.getTags())
        .text("keys", message.getKeys())
        .number("flag", message.getFlag())
        .number("sys_flag", message.getSysFlag())
        .number("queue_id", message.getQueueId())
        .number("queue_offset", message.getQueueOffset())
        .number("commit_log_offset", message.getCommitLogOffset())
        .number("born_timestamp", message.getBornTimestamp())
        .number("store_timestamp", message.getStoreTimestamp())
        .number("reconsume_times", message.getReconsumeTimes())
        .number("prepared_transaction_offset", message.getPreparedTransactionOffset())
        .text("born_host", message.getBornHost().toString().replaceFirst("^[^/]*/", ""))
        .text("store_host", message.getStoreHost().toString().replaceFirst("^[^/]*/", ""))
        .text("msg_id", message.getMsgId())
        .text("offset_msg_id", client ? ((MessageClientExt) message).getOffsetMsgId() : message.getMsgId())
        .texts("properties", message.getProperties())
        .toString();
  }
}
