#include "route/routes_private.h"

/* "No route" has several causes; a person needs to know which it is, and what to do about it. */

static void write_said(const rmq_topic *topic, rmq_buf *out) {
  rmq_buf_text(out, " (");
  rmq_inquiry_report(&topic->inquiry, out);
  rmq_buf_text(out, ")");
}

static void write_how_to_create(const rmq_topic *topic, rmq_buf *out) {
  rmq_buf_printf(out,
                 " Create it, for example: mqadmin updateTopic -n \"%s\" -t %s -c DefaultCluster",
                 topic->routes->config.namesrv, topic->name);
}

static void explain_unreached(const rmq_topic *topic, rmq_buf *out) {
  rmq_buf_printf(out, "No route to topic \"%s\": no name server could answer", topic->name);
  write_said(topic, out);
  rmq_buf_text(out, ". Check the setting namesrv, and that a name server runs there.");
}

static void explain_timeout(const rmq_topic *topic, rmq_buf *out) {
  rmq_buf_printf(
      out, "No route to topic \"%s\" in time: the name servers did not answer before the timeout",
      topic->name);
  write_said(topic, out);
  rmq_buf_text(out, ". Check the setting namesrv, and that a name server runs there.");
}

static void explain_unknown(const rmq_topic *topic, rmq_buf *out) {
  const rmq_routes_config *config = &topic->routes->config;
  rmq_buf_printf(out, "No route to topic \"%s\": the topic does not exist", topic->name);
  write_said(topic, out);
  if (topic->default_unknown) {
    rmq_buf_printf(out,
                   ", and neither does the default topic \"%s\", so sending cannot create it (the "
                   "brokers have "
                   "autoCreateTopicEnable off, or none is registered).",
                   config->create_topic_key);
  } else {
    rmq_buf_text(out, ", and auto_create_topic is off, so sending does not create it.");
  }
  write_how_to_create(topic, out);
}

static void explain_unusable(const rmq_topic *topic, rmq_buf *out) {
  const rmq_publish *publish = topic->publish;
  rmq_buf_printf(out,
                 "No route to topic \"%s\": it has no writable queue (%zu read-only, %zu without a "
                 "master).",
                 topic->name, publish->n_read_only, publish->n_no_master);
  if (publish->n_read_only > 0) {
    rmq_buf_printf(
        out,
        " Make it writable, for example: mqadmin updateTopicPerm -n \"%s\" -t %s -p 6 -c CLUSTER.",
        topic->routes->config.namesrv, topic->name);
  }
  if (publish->n_no_master > 0) rmq_buf_text(out, " Start the master of its brokers.");
  if (publish->n_read_only == 0 && publish->n_no_master == 0) {
    rmq_buf_printf(out,
                   " Its route has no queues. Give it some, for example: mqadmin updateTopic -n "
                   "\"%s\" -t %s -c CLUSTER -w 8.",
                   topic->routes->config.namesrv, topic->name);
  }
}

void rmq_topic_explain(const rmq_topic *topic, rmq_route_result result, rmq_buf *out) {
  switch (result) {
    case RMQ_ROUTE_READY:
      break;
    case RMQ_ROUTE_TIMEOUT:
      explain_timeout(topic, out);
      break;
    case RMQ_ROUTE_UNREACHED:
      explain_unreached(topic, out);
      break;
    case RMQ_ROUTE_UNKNOWN:
      explain_unknown(topic, out);
      break;
    case RMQ_ROUTE_UNUSABLE:
      explain_unusable(topic, out);
      break;
  }
}
