import java.util.List;
import java.util.Map;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.remoting.protocol.body.ClusterInfo;
import org.apache.rocketmq.remoting.protocol.route.BrokerData;
import org.apache.rocketmq.remoting.protocol.route.QueueData;
import org.apache.rocketmq.remoting.protocol.route.TopicRouteData;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/**
 * Prepares a cluster for the specs, with the admin client of RocketMQ itself.
 *
 * <pre>
 * Admin NAMESRV awaitBroker NAME...            waits until the name server knows the brokers
 * Admin NAMESRV createTopic QUEUES TOPIC...    makes the topics on every master and waits for their routes
 * Admin NAMESRV route TOPIC                    prints the route as JSON
 * </pre>
 *
 * Exits 0 when done, 1 with a message on stderr otherwise.
 */
public final class Admin {
  private static final long LIMIT_MS = 60_000;
  private static final long PAUSE_MS = 50;

  private Admin() {}

  public static void main(String[] args) {
    if (args.length < 3) {
      System.err.println("usage: Admin NAMESRV awaitBroker|createTopic|route NAME...");
      System.exit(2);
    }
    DefaultMQAdminExt admin = new DefaultMQAdminExt(5000L);
    admin.setNamesrvAddr(args[0]);
    admin.setInstanceName("admin-" + ProcessHandle.current().pid());
    int status = 0;
    try {
      admin.start();
      run(admin, args);
    } catch (Exception e) {
      System.err.println("Admin " + String.join(" ", args) + ": " + e);
      status = 1;
    }
    // The client's own threads would keep the process alive for seconds, and they have nothing left to do.
    System.out.flush();
    Runtime.getRuntime().halt(status);
  }

  private static void run(DefaultMQAdminExt admin, String[] args) throws Exception {
    switch (args[1]) {
      case "awaitBroker":
        List<String> names = rest(args, 2);
        await("brokers " + names, () -> addresses(admin).keySet().containsAll(names));
        break;
      case "createTopic":
        for (String topic : rest(args, 3)) {
          createTopic(admin, topic, Integer.parseInt(args[2]));
        }
        break;
      case "route":
        System.out.println(admin.examineTopicRouteInfo(args[2]).toJson());
        break;
      default:
        throw new IllegalArgumentException("unknown command " + args[1]);
    }
  }

  private static List<String> rest(String[] args, int from) {
    return List.of(args).subList(from, args.length);
  }

  private static Map<String, BrokerData> addresses(DefaultMQAdminExt admin) throws Exception {
    ClusterInfo info = admin.examineBrokerClusterInfo();
    return info.getBrokerAddrTable();
  }

  private static void createTopic(DefaultMQAdminExt admin, String topic, int queues) throws Exception {
    int masters = 0;
    for (BrokerData broker : addresses(admin).values()) {
      String master = broker.getBrokerAddrs().get(0L);
      if (master != null) {
        admin.createAndUpdateTopicConfig(master, new TopicConfig(topic, queues, queues));
        masters++;
      }
    }
    if (masters == 0) {
      throw new IllegalStateException("the name server knows no master");
    }
    int expected = masters;
    await("topic " + topic, () -> writableBrokers(admin, topic, queues) == expected);
  }

  private static int writableBrokers(DefaultMQAdminExt admin, String topic, int queues) throws Exception {
    TopicRouteData route = admin.examineTopicRouteInfo(topic);
    List<QueueData> data = route.getQueueDatas();
    return (int) data.stream().filter(queue -> queue.getWriteQueueNums() == queues).count();
  }

  private interface Condition {
    boolean holds() throws Exception;
  }

  /** Asks again and again until the condition holds; what it throws meanwhile counts as "not yet". */
  private static void await(String what, Condition condition) throws InterruptedException {
    long end = System.nanoTime() + LIMIT_MS * 1_000_000L;
    Exception last = null;
    while (System.nanoTime() < end) {
      try {
        if (condition.holds()) {
          return;
        }
      } catch (Exception e) {
        last = e;
      }
      Thread.sleep(PAUSE_MS);
    }
    throw new IllegalStateException(what + " did not show within " + LIMIT_MS / 1000 + " s, last answer: " + last);
  }
}
