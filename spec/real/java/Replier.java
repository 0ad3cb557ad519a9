import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * Replies to the requests of a topic with RocketMQ's Java client: "re:" and the request's body, with the request's
 * property "index". A message with the tag "silent" gets no reply; one with the tag "stop" ends the program.
 *
 * <pre>
 * Replier NAMESRV TOPIC GROUP
 * </pre>
 */
public final class Replier {
  private static final long LONGEST_LIFE_SECONDS = 300;

  private Replier() {}

  public static void main(String[] args) throws Exception {
    DefaultMQProducer producer = new DefaultMQProducer(args[2] + "-replies");
    producer.setNamesrvAddr(args[0]);
    producer.setInstanceName("replies-" + ProcessHandle.current().pid());
    producer.setSendMsgTimeout(20000);
    producer.start();
    CountDownLatch stopped = new CountDownLatch(1);
    DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(args[2]);
    consumer.setNamesrvAddr(args[0]);
    consumer.setInstanceName("requests-" + ProcessHandle.current().pid());
    consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
    consumer.setPullInterval(0);
    consumer.subscribe(args[1], "*");
    consumer.registerMessageListener(
        (java.util.List<MessageExt> list, org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyContext c) -> {
          for (MessageExt request : list) {
            if ("stop".equals(request.getTags())) stopped.countDown();
            else if (!"silent".equals(request.getTags())) reply(producer, request);
          }
          return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
    consumer.start();
    boolean well = stopped.await(LONGEST_LIFE_SECONDS, TimeUnit.SECONDS);
    // The client's own threads would keep the process alive, and they have nothing left to do.
    Runtime.getRuntime().halt(well ? 0 : 1);
  }

  private static void reply(DefaultMQProducer producer, MessageExt request) {
    try {
      ByteArrayOutputStream body = new ByteArrayOutputStream();
      body.write("re:".getBytes(StandardCharsets.US_ASCII));
      body.write(request.getBody());
      Message reply = MessageUtil.createReplyMessage(request, body.toByteArray());
      String index = request.getUserProperty("index");
      if (index != null) reply.putUserProperty("index", index);
      producer.send(reply);
    } catch (Exception e) {
      System.err.println("Replier: " + e + ", because of " + e.getCause());
    }
  }
}
