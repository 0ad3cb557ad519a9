import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import org.apache.rocketmq.client.producer.selector.SelectMessageQueueByHash;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * Which queues SelectMessageQueueByHash picks.
 *
 * <pre>
 * HashQueues FILE COUNT...
 * </pre>
 *
 * A line of the file is a key: "S" and a text's UTF-8 in hex, "I" and an Integer, "L" and a Long, or "B" and a Boolean. For
 * each a line is printed with the ids of the queues picked out of COUNT queues, for each COUNT.
 */
public final class HashQueues {
  private HashQueues() {}

  public static void main(String[] args) throws Exception {
    SelectMessageQueueByHash selector = new SelectMessageQueueByHash();
    List<List<MessageQueue>> lists = new ArrayList<>();
    for (String count : List.of(args).subList(1, args.length)) {
      List<MessageQueue> queues = new ArrayList<>();
      for (int id = 0; id < Integer.parseInt(count); id++) {
        queues.add(new MessageQueue("T", "broker", id));
      }
      lists.add(queues);
    }
    StringBuilder out = new StringBuilder();
    for (String line : Files.readAllLines(Path.of(args[0]))) {
      Object key = key(line);
      for (List<MessageQueue> queues : lists) {
        out.append(selector.select(queues, null, key).getQueueId()).append(' ');
      }
      out.append('\n');
    }
    System.out.print(out);
  }

  private static Object key(String line) {
    String value = line.substring(2);
    switch (line.charAt(0)) {
      case 'S':
        return new String(HexFormat.of().parseHex(value), StandardCharsets.UTF_8);
      case 'I':
        return Integer.valueOf(value);
      case 'L':
        return Long.valueOf(value);
      case 'B':
        return Boolean.valueOf(value);
      default:
        throw new IllegalArgumentException(line);
    }
  }
}
